"""Factors about storage targets: a file, or an OST, that is far slower than its likes in the same job.

Problem. A failing device makes one OST slow, and a job waits for the slowest. A job that writes many alike files shows
which one: the files on that OST take many times as long as the others ("bad OST performance caused by occasional device
failure", IOMiner, Section II-D).

Algorithm. Alike are files of a job of which within a factor of two the median number of bytes was moved, of those with
at least 1 MiB: of smaller ones the time is that of opening them, and a median of 100 B says nothing of a device. What
counts is the time for a byte in calls, at most from a file's first access to its last one: between its calls a program
does something else. An OST's is the mean over the alike files on it, because a cache hides single files: on a bad OST
many files are slow, not one. Compared with the median over the job's OSTs.
"""

from __future__ import annotations

import numpy as np

from mpiio_ext.analytics.factors.equations import ratio
from mpiio_ext.analytics.factors.files import Files
from mpiio_ext.analytics.factors.registry import factor
from mpiio_ext.analytics.tables.arrays import Numbers, Whole

#: Files are alike whose bytes differ from the median by this factor at most.
ALIKE = 2.0
#: Bytes below which a file is like none.
LEAST = 1 << 20


def alike(files: Files) -> Numbers:
    """Return the time for a byte of each file that is like the others of its job (s/B); NaN for the others."""
    return files.kept("alike", lambda: _alike(files))


def _alike(files: Files) -> Numbers:
    moved = np.where(files.counted & (files["{bytes}"] >= LEAST), files["{bytes}"], np.nan)
    median = files.per_file(files.median(moved))
    like = (moved >= median / ALIKE) & (moved <= median * ALIKE)
    inside = np.where(files["{time}"] > 0, np.fmin(files["{time}"], files.duration), files.duration)
    return np.where(like, ratio(inside, moved), np.nan)


def ost_times(files: Files) -> tuple[Whole, Whole, Numbers, Numbers]:
    """Return (job's index, OST, mean time for a byte of its alike files, their number), by job, then OST."""
    rows, targets = files.ost_pairs
    times = alike(files)[rows]
    known = ~np.isnan(times)
    rows, targets, times = rows[known], targets[known], times[known]
    width = int(targets.max()) + 1 if len(targets) else 1
    keys = np.repeat(np.arange(files.jobs), files.sizes)[rows] * width + targets
    distinct, inverse = np.unique(keys, return_inverse=True)
    number = np.bincount(inverse, minlength=len(distinct))
    mean = ratio(np.bincount(inverse, times, minlength=len(distinct)), number)
    return distinct // width, distinct % width, mean, number.astype(np.float64)


@factor(
    "slow_file",
    "time for a byte of the slowest of the job's alike files, over their median; unknown below alike_files",
    unit="ratio",
    weighting="job",
    columns=("{bytes}", "{time}", "{start}", "{end}"),
)
def slow_file(files: Files, *, alike_files: float = 4) -> Numbers:
    """Return how many times slower each job's slowest file is than the median of its likes."""
    times = alike(files)
    enough = files.count(~np.isnan(times)) >= alike_files
    return np.where(enough, ratio(files.largest(times), files.median(times)), np.nan)


@factor(
    "slow_ost",
    "mean time for a byte on the slowest OST of the job's alike files, over the median of its OSTs",
    unit="ratio",
    weighting="job",
    columns=("{bytes}", "{time}", "{start}", "{end}", "osts"),
)
def slow_ost(files: Files, *, alike_files: float = 4, alike_osts: float = 4) -> Numbers:
    """Return how many times slower each job's slowest OST is than the median one; unknown for few files or OSTs."""
    job, _, mean, _ = ost_times(files)
    order = np.lexsort((mean, job))
    job, mean = job[order], mean[order]
    counts = np.bincount(job, minlength=files.jobs)
    last = np.cumsum(counts)
    first = last - counts
    out = np.full(files.jobs, np.nan)
    enough = (counts >= alike_osts) & (files.count(~np.isnan(alike(files))) >= alike_files)
    low, high = first[enough] + (counts[enough] - 1) // 2, first[enough] + counts[enough] // 2
    out[enough] = ratio(mean[last[enough] - 1], (mean[low] + mean[high]) / 2)
    return out
