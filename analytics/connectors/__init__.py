"""Connectors: each reads one kind of log and returns its tuples as Arrow tables, with an outcome for every log."""
