"""Factors beyond the paper's: alignment, small files, and how the work is shared out among ranks, files and time.

Source: the root causes that the paper found behind the five factors (IOMiner, Section III-F): one file that takes 95 %
of the time, a root process that writes most, files that are written one after the other.
"""

from __future__ import annotations

import numpy as np

from mpiio_ext.analytics.factors.equations import ratio
from mpiio_ext.analytics.factors.files import Files, bins
from mpiio_ext.analytics.factors.registry import factor
from mpiio_ext.analytics.sweep.intervals import sweep
from mpiio_ext.analytics.tables.arrays import Numbers


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
