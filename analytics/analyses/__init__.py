"""The analyses of the paper as functions of tuples."""
