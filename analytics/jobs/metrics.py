"""Meaning of the columns of a table of summaries: a label for people, a unit, and whether large or small is good.

The names are those of the published summaries of NERSC (tokio-abcutils). The choice of rows is that of the UMAMI
figures. Lockwood et al., "UMAMI: A Recipe for Generating Meaningful Metrics through Holistic I/O Performance Analysis"
(PDSW-DISCS 2017), and "A Year in the Life of a Parallel File System" (SC18, Section V). A column that is not listed is
shown under its own name, without a judgement of what is good.

The numbers of a box plot: quartiles, and whiskers at the 5th and the 95th percentile.

Source: Lockwood et al., UMAMI (PDSW-DISCS 2017), Section IV: "whiskers represent the 5th and 95th percentiles".
Percentiles are interpolated linearly between neighbours (NumPy's default).
"""

from __future__ import annotations

import dataclasses

import numpy as np

from mpiio_ext.analytics.jobs.table import PERFORMANCE
from mpiio_ext.analytics.tables.arrays import Numbers


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """The meaning of a column.

    Attributes
    ----------
    name : str
        Name of the column.
    label : str
        For people.
    unit : str
        ``B``, ``B/s``, ``s``, ``%``, ``1/s``, "" (a count or a ratio): of the value times `factor`.
    factor : float
        What a value of the column is multiplied with to be in `unit`.
    big_is_good : bool or None
        Whether a job with a large value had it better than one with a small value; None: not known.
    """

    name: str
    label: str
    unit: str = ""
    factor: float = 1.0
    big_is_good: bool | None = None

    @property
    def extensive(self) -> bool:
        """Whether the metric is counted over the time of the job: then a job that takes longer has more of it."""
        return self.name.startswith(("fs_tot_", "jobsdb_concurrent_"))


_MIB = float(1 << 20)
_GIB = float(1 << 30)
#: (column, label, unit, factor, whether large is good).
_LISTED: tuple[tuple[str, str, str, float, bool | None], ...] = (
    (PERFORMANCE, "Performance", "B/s", _MIB, True),
    ("darshan_normalized_perf_by_max", "Performance over the best", "", 1, True),
    ("darshan_io_time", "I/O time", "s", 1, False),
    ("darshan_walltime", "Run time", "s", 1, False),
    ("darshan_total_gibs_posix", "Job's bytes", "B", _GIB, None),
    ("coverage_factor_bw", "Coverage factor, bytes", "", 1, True),
    ("coverage_factor_read_bw", "Coverage factor, bytes read", "", 1, True),
    ("coverage_factor_write_bw", "Coverage factor, bytes written", "", 1, True),
    ("coverage_factor_opens", "Coverage factor, opens", "", 1, True),
    ("coverage_factor_stats", "Coverage factor, stats", "", 1, True),
    ("coverage_factor_ops", "Coverage factor, operations", "", 1, True),
    ("coverage_factor_nodehrs", "Coverage factor, node hours", "", 1, True),
    ("contention_bw", "Bandwidth contention", "", 1, False),
    ("contention_opens", "Contention, opens", "", 1, False),
    ("contention_stats", "Contention, stats", "", 1, False),
    ("contention_ops", "Operations contention", "", 1, False),
    ("fs_ave_mds_cpu", "MDS CPU load, mean", "%", 1, False),
    ("fs_max_mds_cpu", "MDS CPU load, peak", "%", 1, False),
    ("fs_ave_oss_cpu", "OSS CPU load, mean", "%", 1, False),
    ("fs_max_oss_cpu", "OSS CPU load, peak", "%", 1, False),
    ("fs_tot_bytes", "Servers' bytes", "B", 1, None),
    ("fs_tot_bytes_read", "Servers' bytes read", "B", 1, None),
    ("fs_tot_bytes_written", "Servers' bytes written", "B", 1, None),
    ("fs_tot_openclose_ops", "Opens and closes", "", 1, False),
    ("fs_tot_metadata_ops", "Metadata operations", "", 1, False),
    ("fs_tot_getattr_ops", "getattr operations", "", 1, False),
    ("fs_tot_unlink_ops", "unlink operations", "", 1, False),
    ("fs_frac_missing", "Share of samples missing", "", 1, None),
    ("fshealth_ost_avg_full_pct", "OST fullness, mean", "%", 1, False),
    ("fshealth_ost_most_full_pct", "OST fullness, fullest", "%", 1, False),
    ("fshealth_ost_least_full_pct", "OST fullness, emptiest", "%", 1, False),
    ("fshealth_ost_overloaded_oss_count", "Failed-over servers", "", 1, False),
    ("fshealth_ost_overloaded_ost_count", "Failed-over OSTs", "", 1, False),
    ("fshealth_ost_overloaded_pct", "Share of OSTs failed over", "%", 1, False),
    ("fshealth_disk_down_count", "Disks down", "", 1, False),
    ("fshealth_disk_not_ready_count", "Disks not ready", "", 1, False),
    ("jobsdb_concurrent_jobs", "Concurrent jobs", "", 1, False),
    ("jobsdb_concurrent_nodes", "Nodes of concurrent jobs", "", 1, False),
    ("jobsdb_concurrent_nodehrs", "Node hours of concurrent jobs", "", 1, False),
    ("topology_job_avg_radius", "Job radius, mean", "", 1, False),
    ("topology_job_max_radius", "Job radius, largest", "", 1, False),
    ("topology_job_min_radius", "Job radius, smallest", "", 1, False),
    ("bench_open_s", "Opening", "s", 1, False),
    ("bench_close_s", "Closing", "s", 1, False),
    ("bench_plan_s", "Planning", "s", 1, False),
    ("bench_exchange_s", "Exchange", "s", 1, False),
    ("bench_io_s", "Storage access", "s", 1, False),
    ("bench_wait_s", "Waiting", "s", 1, False),
    ("bench_rounds", "Two-phase rounds", "", 1, False),
    ("bench_requests", "Requests to the file system", "", 1, False),
    ("bench_message_bytes", "Bytes between nodes", "B", 1, False),
    ("bench_spread", "Spread of the repetitions", "", 1, False),
    ("bench_ratio_to_native", "Ratio to native", "", 1, True),
)

METRICS = {
    name: Metric(name=name, label=label, unit=unit, factor=factor, big_is_good=good)
    for name, label, unit, factor, good in _LISTED
}

#: Rows of an UMAMI figure where no hint requests them, in this order, as far as there are values.
DEFAULT_ROWS = (
    PERFORMANCE,
    "coverage_factor_bw",
    "coverage_factor_opens",
    "coverage_factor_ops",
    "fs_ave_mds_cpu",
    "fs_ave_oss_cpu",
    "fs_tot_openclose_ops",
    "fshealth_ost_most_full_pct",
    "fshealth_ost_overloaded_oss_count",
    "jobsdb_concurrent_nodes",
    "topology_job_max_radius",
    "bench_open_s",
    "bench_exchange_s",
    "bench_io_s",
    "bench_wait_s",
    "bench_close_s",
    "bench_requests",
)

#: Other forms of performance, which explain nothing.
_PERFORMANCE_ITSELF = {
    PERFORMANCE,
    "darshan_normalized_perf_by_max",
    "darshan_io_time",
    "darshan_walltime",
    "darshan_total_gibs_posix",
    "bench_ratio_to_native",
    "bench_spread",
}
#: 1 minus a coverage factor: the same information, and the same test twice.
_SAME = {"contention_bw", "contention_opens", "contention_stats", "contention_ops"}

#: Metrics that performance is compared with.
EXPLAINING = tuple(name for name in METRICS if name not in _PERFORMANCE_ITSELF | _SAME)

_ALIASES = {"performance": PERFORMANCE, "contention": "contention_bw", "coverage": "coverage_factor_bw"}


def metric(name: str) -> Metric:
    """Return the meaning of a column; one that is not listed has its own name as label."""
    known = METRICS.get(name)
    return known if known is not None else Metric(name=name, label=name.lstrip("_").replace("_", " "))


def alias(name: str) -> str:
    """Return the column that a short name such as ``performance`` stands for; others are columns themselves."""
    return _ALIASES.get(name, name)


@dataclasses.dataclass(frozen=True, slots=True)
class Box:
    """Statistics of a metric, all in the unit of its column; `count` values are known."""

    low: float
    first: float
    median: float
    third: float
    high: float
    count: int

    @property
    def numbers(self) -> tuple[float, float, float, float, float]:
        """The five numbers, from the lowest to the highest."""
        return self.low, self.first, self.median, self.third, self.high

    def as_json(self) -> dict[str, float]:
        """Return the numbers by name: ``jobs``, ``p5``, ``q1``, ``median``, ``q3``, ``p95``."""
        return {"jobs": self.count, **dict(zip(("p5", "q1", "median", "q3", "p95"), self.numbers, strict=True))}


def box(values: Numbers) -> Box | None:
    """Return the box of the known values; None without any."""
    known = values[~np.isnan(values)]
    if not len(known):
        return None
    low, first, median, third, high = np.percentile(known, (5, 25, 50, 75, 95)).tolist()
    return Box(low, first, median, third, high, len(known))
