"""Differential test: random programs of MPI-IO calls against the MPI library's own and against a NumPy model."""
