"""Factors beyond the paper's: alignment, small files, how the work is shared out, and slow files and storage targets.

Source: the root causes that the paper found behind the five factors (IOMiner, Section III-F): one file that takes 95 %
of the time, a root process that writes most, files that are written one after the other.

A slow file, or a slow OST, is far slower than its likes in the same job.

Problem. A failing device makes one OST slow, and a job waits for the slowest. A job that writes many alike files shows
which one: the files on that OST take many times as long as the others ("bad OST performance caused by occasional device
failure", IOMiner, Section II-D).

Algorithm. Files of a job are alike if their bytes are within a factor of two of the median, among files with at least 1
MiB: the time of smaller files is spent on opening them, and a median of 100 B does not describe a device. What counts
is the time for a byte in calls, at most from a file's first access to its last one: between its calls a program does
something else. An OST's is the mean over the alike files on it, because a cache hides single files: on a bad OST many
files are slow, not one. Compared with the median over the job's OSTs.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mpiio_ext.analytics.factors.equations import ratio
from mpiio_ext.analytics.factors.files import Files, bins
from mpiio_ext.analytics.factors.registry import factor
from mpiio_ext.analytics.sweep.intervals import sweep
from mpiio_ext.analytics.tables.arrays import Numbers, Whole


@factor(
    "unaligned",
    "share of POSIX requests, of both directions, that do not begin at a block of the file system",
    columns=("unaligned", *bins("read"), *bins("write")),
)
def unaligned(files: Files) -> Numbers:
    """Return the share of unaligned requests of each file."""
    return np.clip(ratio(files["unaligned"], files.requests("read") + files.requests("write")), 0, 1)


@factor(
    "small_files",
    "share of the critical time in files of which at most small_file_bytes were moved; 0 unless there are many_files",
    columns=("{bytes}",),
)
def small_files(files: Files, *, small_file_bytes: float = 1 << 20, many_files: float = 100) -> Numbers:
    """Return 1 for a small file of a job with many of them, else 0."""
    moved = files["{bytes}"]
    is_small = files.counted & (moved <= small_file_bytes)
    many = files.per_file(files.count(is_small) >= many_files)
    return np.where(np.isnan(moved), np.nan, (is_small & many).astype(float))


_TIMES = ("{start}", "{end}")


@factor(
    "root_writes",
    "share of the job's bytes that rank 0 wrote, of files whose ranks are recorded; unknown for one process",
    weighting="job",
    directions=("write",),
    columns=("root_bytes_written", "bytes_written", "processes"),
)
def root_writes(files: Files) -> Numbers:
    """Return rank 0's share of each job's bytes."""
    root, written = files["root_bytes_written"], files["bytes_written"]
    known = ~np.isnan(root)
    share = ratio(files.sum(root), files.sum(np.where(known, written, np.nan)))
    enough = files.sum(np.where(known, written, 0.0)) >= files.min_known * files.sum(written)
    return np.where(enough & (files.largest(files["processes"]) > 1), share, np.nan)


@factor("dominant_file", "largest share of the critical time that one file takes", weighting="job", columns=_TIMES)
def dominant_file(files: Files) -> Numbers:
    """Return the exclusive time of each job's longest critical file, over the job's critical time."""
    return ratio(files.largest(np.where(files.counted, files.exclusive, np.nan)), files.critical_time)


@factor(
    "serialised",
    "how little the files overlap: 0 all within the longest one, 1 strictly one after the other",
    weighting="job",
    columns=_TIMES,
)
def serialised(files: Files) -> Numbers:
    """Return ``(T - M) / (S - M)``: critical time T, sum S and maximum M of the files' times; unknown for one file."""
    longest = files.largest(files.duration)
    spread = files.sum(files.duration) - longest
    return np.clip(ratio(files.critical_time - longest, np.where(spread > 0, spread, np.nan)), 0, 1)


@factor(
    "metadata",
    "share of the I/O time of all ranks that is spent in metadata calls",
    weighting="job",
    columns=("read_time", "write_time", "meta_time"),
)
def metadata(files: Files) -> Numbers:
    """Return the metadata share of each job, over all its files and both directions."""
    meta = files["meta_time"]
    data = np.where(np.isnan(files["read_time"]), 0, files["read_time"])
    data = data + np.where(np.isnan(files["write_time"]), 0, files["write_time"])
    return ratio(files.sum(meta), files.sum(meta + data))


@factor(
    "straggler",
    "share of the slowest rank's I/O time that an average rank does not need (shared files)",
    columns=(
        "slowest_rank_time",
        "fastest_rank_bytes",
        "read_time",
        "write_time",
        "meta_time",
        "ranks",
        "{collective}",
    ),
)
def straggler(files: Files) -> Numbers:
    """Return ``1 - mean / slowest`` of each shared file.

    Unknown where collective calls were made and the fastest rank moved nothing: only aggregators access such a file,
    and that is meant.
    """
    total = files["read_time"] + files["write_time"] + files["meta_time"]
    value = np.clip(1 - ratio(ratio(total, files["ranks"]), files["slowest_rank_time"]), 0, 1)
    aggregated = (files["{collective}"] > 0) & (files["fastest_rank_bytes"] == 0)
    return np.where(aggregated | (files["ranks"] <= 1), np.nan, value)


@factor(
    "idle",
    "share of the run time in which no file is read or written",
    weighting="job",
    columns=("read_start", "read_end", "write_start", "write_end", "read_time", "write_time", "run_time"),
)
def idle(files: Files) -> Numbers:
    """Return the share of each job's run time outside the critical paths of both directions together."""
    intervals = [files.intervals(direction) for direction in ("read", "write")]
    start, end = (np.concatenate(edges) for edges in zip(*intervals, strict=True))
    both = sweep(start, end, np.concatenate([files.job, files.job]))
    time = both.exclusive[: len(files)] + both.exclusive[len(files) :]
    known = both.counted[: len(files)] | both.counted[len(files) :]
    return np.clip(1 - ratio(files.sum(np.where(known, time, np.nan)), files.by_log("run_time")), 0, 1)


@factor(
    "gaps",
    "share of the span from the first access to the last one in which no file is accessed",
    weighting="job",
    columns=_TIMES,
)
def gaps(files: Files) -> Numbers:
    """Return how much of the span of Equation 1 is no I/O time."""
    first, last = files.span
    return np.clip(1 - ratio(files.critical_time, last - first), 0, 1)


#: Files are alike whose bytes differ from the median by this factor at most.
ALIKE = 2.0
#: Bytes below which a file is like none.
LEAST = 1 << 20
#: OSTs from which on, and share of the indexes up to the highest that must have been met.
_LEAST_OSTS, _MET = 16, 0.9


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


def count_of_osts(met: Iterable[int]) -> int | None:
    """Return how many OSTs there are, by the indexes that were met; None if these do not show it.

    Files name the OSTs that they lie on, by index from 0. A few may be all that there are, or all that were requested.
    So a number is concluded only from many OSTs with hardly a gap between the first index and the highest.
    """
    indexes = set(met)
    count = max(indexes, default=-1) + 1
    return count if len(indexes) >= _LEAST_OSTS and len(indexes) >= _MET * count else None
