"""The paper's five contributing factors (IOMiner, Section II-D).

Small requests come from Darshan's histogram, whose bins hold their upper bound: a request of exactly 1 MiB is in the
bin that ends there. The threshold ``small_bytes`` therefore means: at most so many bytes.
"""

from __future__ import annotations

import numpy as np

from mpiio_ext.analytics.factors.equations import ratio
from mpiio_ext.analytics.factors.files import Files, bins
from mpiio_ext.analytics.factors.registry import factor
from mpiio_ext.analytics.tables.arrays import Flags, Numbers
from mpiio_ext.analytics.tables.schema import SIZE_BINS
from mpiio_ext.errors import ArgumentError

#: Cells of a table of (job, OST) up to which it is quicker than sorting.
MOST_CELLS = 1 << 28

_BINS = tuple(f"{{direction}}_size_{name}" for name in SIZE_BINS)


@factor("small", "share of POSIX requests of at most small_bytes (a bound of Darshan's histogram)", columns=_BINS)
def small(files: Files, *, small_bytes: float = 1 << 20) -> Numbers:
    """Return the share of small requests of each file."""
    bounds = [bound for bound in SIZE_BINS.values() if bound is not None]
    if small_bytes not in bounds:
        raise ArgumentError(
            f"small_bytes is {small_bytes}; Darshan's histogram has the bounds {', '.join(map(str, bounds))} (bytes)"
        )
    few = sum(files[name] for name in bins(files.direction)[: bounds.index(int(small_bytes)) + 1])
    return ratio(few, files.requests())


@factor(
    "non_consecutive",
    "share of POSIX requests that do not begin where the one before ended (1 - Equation 3)",
    columns=(*_BINS, "{consecutive}"),
)
def non_consecutive(files: Files) -> Numbers:
    """Return the share of requests of each file that leave a gap, or go back."""
    return np.clip(1 - ratio(files["{consecutive}"], files.requests()), 0, 1)


def _without_mpiio(files: Files) -> Flags:
    """Return for each file whether its whole log, of which nothing is missing, has no MPI-IO."""
    return np.asarray((files["uses_mpiio"] == 0) & (files["partial"] == 0))


_MPIIO = ("{collective}", "{independent}", "{nonblocking}", "uses_mpiio", "partial")


@factor(
    "collective",
    "1 if the job used collective MPI-IO for this direction, 0 if it did not",
    unit="flag",
    bad="low",
    weighting="job",
    columns=_MPIIO,
)
def collective(files: Files) -> Numbers:
    """Return whether each job used collective I/O; unknown unless a log shows it."""
    calls = np.where(_without_mpiio(files), 0.0, files["{collective}"])
    found = files.largest(calls)
    return np.where(np.isnan(found), np.nan, (found > 0).astype(float))


@factor("no_collective", "share of MPI-IO calls that are not collective; 1 for a job without MPI-IO", columns=_MPIIO)
def no_collective(files: Files) -> Numbers:
    """Return the share of each file's MPI-IO calls that are independent or nonblocking."""
    others = files["{independent}"] + files["{nonblocking}"]
    return np.where(_without_mpiio(files), 1.0, ratio(others, others + files["{collective}"]))


@factor("osts", "distinct OSTs of the job's files", unit="count", bad="low", weighting="job", columns=("osts",))
def osts(files: Files) -> Numbers:
    """Return the number of OSTs of each job; unknown where no file has any."""
    rows, targets = files.ost_pairs
    if len(targets) == 0:
        return np.full(files.jobs, np.nan)
    job = np.repeat(np.arange(files.jobs), files.sizes)[rows]
    width = int(targets.max()) + 1
    if files.jobs * width > MOST_CELLS:
        count = np.bincount(np.unique(job * width + targets) // width, minlength=files.jobs)
    else:
        seen = np.zeros(files.jobs * width, dtype=bool)
        seen[job * width + targets] = True
        count = np.add.reduce(seen.reshape(files.jobs, width), axis=1, dtype=np.int64)
    return np.where(count > 0, count.astype(float), np.nan)


@factor(
    "processes_per_ost",
    "processes that access a file, over its stripe count",
    unit="ratio",
    columns=("ranks", "stripe_count"),
)
def processes_per_ost(files: Files) -> Numbers:
    """Return the contention of each file."""
    stripes = files["stripe_count"]
    return ratio(files["ranks"], np.where(stripes > 0, stripes, np.nan))
