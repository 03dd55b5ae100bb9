"""Exploration: access patterns measured with different numbers of I/O delegates, and the resulting curves."""
