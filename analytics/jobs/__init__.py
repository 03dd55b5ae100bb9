"""The table of jobs: a row of scalars each, in the vocabulary of the published year of integrated summaries."""

from mpiio_ext.analytics.errors import HistoryError
from mpiio_ext.analytics.jobs.derived import derive
from mpiio_ext.analytics.jobs.files import read, update, write
from mpiio_ext.analytics.jobs.filters import Filter, published, select
from mpiio_ext.analytics.jobs.history import History, histories
from mpiio_ext.analytics.jobs.metrics import Metric, metric
from mpiio_ext.analytics.jobs.table import Jobs

__all__ = [
    "Filter",
    "History",
    "HistoryError",
    "Jobs",
    "Metric",
    "derive",
    "histories",
    "metric",
    "published",
    "read",
    "select",
    "update",
    "write",
]
