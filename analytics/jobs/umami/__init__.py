"""UMAMI: a job against the history of its application, file system, motif and processes."""

from mpiio_ext.analytics.jobs.umami.job import find
from mpiio_ext.analytics.jobs.umami.rows import Row, Umami, umami

__all__ = ["Row", "Umami", "find", "umami"]
