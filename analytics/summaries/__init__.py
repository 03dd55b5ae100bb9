"""Tables with one row of scalars per job, in the vocabulary of the published year of integrated summaries."""

from mpiio_ext.analytics.summaries.derived import derive
from mpiio_ext.analytics.summaries.errors import SummariesError
from mpiio_ext.analytics.summaries.filters import Filter, published, select
from mpiio_ext.analytics.summaries.histories import History, histories
from mpiio_ext.analytics.summaries.metrics import Metric, metric
from mpiio_ext.analytics.summaries.reading import read
from mpiio_ext.analytics.summaries.table import Summaries

__all__ = ["Filter", "History", "Metric", "Summaries", "SummariesError", "derive", "histories", "metric", "published",
           "read", "select"]  # fmt: skip
