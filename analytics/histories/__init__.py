"""Tables with one row of scalars per job, in the vocabulary of the published year of integrated summaries."""

from mpiio_ext.analytics.histories.derived import derive
from mpiio_ext.analytics.histories.errors import HistoryError
from mpiio_ext.analytics.histories.filters import Filter, published, select
from mpiio_ext.analytics.histories.history import History, histories
from mpiio_ext.analytics.histories.metrics import Metric, metric
from mpiio_ext.analytics.histories.reading import read
from mpiio_ext.analytics.histories.table import Jobs

__all__ = ["Filter", "History", "HistoryError", "Jobs", "Metric", "derive", "histories", "metric", "published", "read",
           "select"]  # fmt: skip
