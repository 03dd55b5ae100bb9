"""The times of a run by calls and files: one table, with bounds, from any source; see :mod:`.ledger`."""

from mpiio_ext.analytics.ledger.ledger import Bounds, Interval, Ledger, Traced
from mpiio_ext.analytics.ledger.records import KINDS
from mpiio_ext.analytics.ledger.sources import numbers_of, of_files, of_log, of_rows

__all__ = ["KINDS", "Bounds", "Interval", "Ledger", "Traced", "numbers_of", "of_files", "of_log", "of_rows"]
