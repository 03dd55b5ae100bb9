"""Variation explained: normal, long-term and transient regimes of performance, and the differences between them."""

from mpiio_ext.analytics.jobs.regimes.explain import Difference, explain
from mpiio_ext.analytics.jobs.regimes.partition import Partition, Region, Rules, partition

__all__ = ["Difference", "Partition", "Region", "Rules", "explain", "partition"]
