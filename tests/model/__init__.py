"""The model-based test: random histories of several ranks against MPI's consistency rules."""
