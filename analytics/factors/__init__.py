"""Contributing factors of poor I/O performance: a registry, the paper's five and more, and their extraction by job."""

from mpiio_ext.analytics.factors.catalogue import ENTRY_POINTS, factors
from mpiio_ext.analytics.factors.extract import extract
from mpiio_ext.analytics.factors.files import Files
from mpiio_ext.analytics.factors.registry import Factor, factor, register, unregister

__all__ = ["ENTRY_POINTS", "Factor", "Files", "extract", "factor", "factors", "register", "unregister"]
