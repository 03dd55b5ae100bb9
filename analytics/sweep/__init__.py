"""The sweep line: critical files of jobs, their exclusive times, and the critical path (IOMiner, Section II-D)."""

from mpiio_ext.analytics.sweep.intervals import NOT_COUNTED, Sweep, group_starts, sweep
from mpiio_ext.analytics.sweep.paths import critical_files, critical_paths
from mpiio_ext.analytics.sweep.ranges import job_ranges

__all__ = ["NOT_COUNTED", "Sweep", "critical_files", "critical_paths", "group_starts", "job_ranges", "sweep"]
