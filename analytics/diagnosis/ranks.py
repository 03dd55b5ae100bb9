"""What one rank does, as far as a log shows it: the ranks that move a file's bytes, and how long a rank is in calls.

Problem. Darshan adds the times of all ranks up. 35,000 s of metadata calls of 65,536 ranks are half a second of each,
and the job waits for that half second, while the data of the same file may be the work of one rank alone.

Algorithm. Of a shared file a log has the slowest and the fastest rank, with time and bytes. The bytes of the file over
those of the busier of the two are the number of ranks that move it. The slowest rank's time less an average rank's
share of the other calls is its time in data calls; it lies between an average rank's time and that of all. Files of one
rank each are spread evenly over the ranks, but those of rank 0, which are known where it wrote them.

Guarantees. What a log does not have is NaN. A rank's metadata time is never more than that of all ranks, and without
other facts that of an average rank: the slowest one needs at least as long.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mpiio_ext.analytics.diagnosis.activity import Activity, Calls
from mpiio_ext.analytics.factors.equations import ratio
from mpiio_ext.analytics.factors.files import Files
from mpiio_ext.analytics.sweep.intervals import sweep
from mpiio_ext.analytics.tables.arrays import Flags, Numbers, Whole


def processes(files: Files) -> float:
    """Return how many processes a job has: of logs side by side, those of the most that run at once; NaN if unknown."""
    largest = float(files.largest(files["processes"])[0])
    rows, start, end = _logs(files)
    if len(rows) < 2:
        return largest
    there = (start[None, :] <= start[:, None]) & (start[:, None] < end[None, :])
    return max(largest, float((there * np.nan_to_num(files["processes"][rows])).sum(axis=1).max()))


def run_time(files: Files) -> float:
    """Return the time (s) in which any of the job's logs runs; their sum where it is not known when they ran."""
    rows, start, end = _logs(files)
    return float(files.by_log("run_time")[0]) if len(rows) < 2 else float(sweep(start, end).exclusive.sum())


def _logs(files: Files) -> tuple[Whole, Numbers, Numbers]:
    """Return a file of each log of the job, and when the log begins and ends (s); none if a log does not have it."""
    if "log_id" not in files.table.schema.names:
        return np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
    _, rows = np.unique(files.table["log_id"].to_numpy(zero_copy_only=False), return_index=True)
    start = files["start_time"][rows]
    end = start + files["run_time"][rows]
    return (rows if not np.isnan(end).any() else rows[:0]), start, end


def _ranks(files: Files) -> Numbers:
    """Return the ranks that opened each file; all where that is not known, and at least 1."""
    found = np.where(np.isnan(files["ranks"]), files["processes"], files["ranks"])
    known: Numbers = np.maximum(np.nan_to_num(found, nan=1.0), 1.0)
    return known


def movers(files: Files) -> Numbers:
    """Return how many ranks move the bytes of each file in the direction at hand, at most; NaN where that is not known.

    The log has what the slowest rank moves both ways: of this way it is that, less what all ranks move the other way.
    """
    moved = np.nan_to_num(files["{bytes}"])
    other = np.nan_to_num(files["bytes_read"]) + np.nan_to_num(files["bytes_written"]) - moved
    busier = np.fmax(files["slowest_rank_bytes"], files["fastest_rank_bytes"]) - other
    found = np.clip(ratio(moved, np.where(busier > 0, busier, np.nan)), 1.0, _ranks(files))
    return np.where(files["ranks"] == 1, 1.0, found)


def appended(files: Files) -> Flags:
    """Return for each file whether its ranks append to it, one between the others.

    Darshan counts the place of an appended write by what the rank itself has written: so the file ends, by its count,
    where the busiest rank alone would have ended, although several ranks write, each behind its own last write.
    """
    ends = files["max_offset_written"] + 1
    busier = np.fmax(files["slowest_rank_bytes"], files["fastest_rank_bytes"]) - np.nan_to_num(files["bytes_read"])
    in_turn = files["consec_writes"] >= 0.9 * files.requests("write")
    return np.asarray((files["ranks"] > 1) & in_turn & (ends <= 1.1 * busier) & (files["bytes_written"] >= 1.5 * ends))


def time_in_calls(files: Files, direction: str | None = None) -> Numbers:
    """Return the time (s) of the slowest rank of each file in its data calls; of both directions for "both"."""
    ranks, slowest, meta = _ranks(files), files["slowest_rank_time"], np.nan_to_num(files["meta_time"])
    both = np.nan_to_num(files["read_time"]) + np.nan_to_num(files["write_time"])
    data = both if direction == "both" else np.nan_to_num(files["{time}"])
    own = slowest - (meta + both - data) / ranks
    return np.where(np.isnan(own), data / ranks, np.clip(own, data / ranks, data))


def opening(files: Files, calls: Sequence[Calls]) -> Numbers:
    """Return the time (s) of a rank in MPI-IO calls that open or close each file, without waiting for a slow rank.

    All ranks close a file together: who moves data in less time than the slowest rank waits for that one there, if not
    in the data calls, as for an aggregator. Recordings have the time without waiting. `calls`: counters of each file.
    """
    both = np.nan_to_num(files["read_time"]) + np.nan_to_num(files["write_time"])
    mean, recorded = np.array([sum(each.mean.values()) for each in calls]), [each.inside > 0 for each in calls]
    waited = np.maximum(time_in_calls(files, "both") - np.maximum(both / _ranks(files), mean), 0.0)
    whole: Numbers = np.array([each.opening for each in calls])
    return np.maximum(whole - np.where(recorded, 0.0, waited), 0.0)


def metadata_and_data(files: Files, ranks: float, chosen: Flags | None = None) -> tuple[float, float]:
    """Return the time (s) that a rank spends in metadata calls, and in data calls, over all files, or the chosen."""
    meta = np.where(True if chosen is None else chosen, np.nan_to_num(files["meta_time"]) / _ranks(files), 0.0)
    data = np.where(True if chosen is None else chosen, time_in_calls(files, "both"), 0.0)
    return of_all(files, meta, ranks), of_all(files, data, ranks)


def of_all(files: Files, times: Numbers, ranks: float) -> float:
    """Return the time (s) that a rank spends on all files, of that which a rank spends on each.

    All ranks of a shared file spend it at the same time; those of files of their own do so side by side.
    """
    shared = _ranks(files) > 1
    root = ~shared & (files["root_bytes_written"] > 0) & (files["root_bytes_written"] >= files["bytes_written"])
    others = ~shared & ~root
    side = max(1.0, min(ranks - 1 if root.any() else ranks, float(others.sum())))
    return _sum(times, shared) + max(_sum(times, root), _sum(times, others) / side)


def owners(files: Files, activity: Activity | None) -> Whole:
    """Return the rank of each file that one rank alone has opened; -1 for others, and where that is not known."""
    if activity is None or "file_id" not in files.table.schema.names:
        return np.full(len(files), -1, np.int64)
    known = [activity.owners.get(number, -1) for number in files.table["file_id"].to_pylist()]
    return np.where(files["ranks"] == 1, np.array(known, np.int64), -1)


def of_busiest(files: Files, times: Sequence[Numbers], ranks: float, whose: Whole) -> tuple[float, ...]:
    """Return the times (s) that the rank with most of them spends on all files, of several kinds, as `of_all` of each.

    `whose`: :func:`owners`; where it is not known of all files of one rank each, these are spread evenly.
    """
    own = _ranks(files) == 1
    if not own.any() or (whose[own] < 0).any():
        return tuple(of_all(files, each, ranks) for each in times)
    by_rank = np.stack([np.bincount(whose[own], each[own]) for each in times])
    most = int(np.argmax(by_rank.sum(axis=0)))
    return tuple(_sum(each, ~own) + float(alone[most]) for each, alone in zip(times, by_rank, strict=True))


def _sum(values: Numbers, chosen: Flags) -> float:
    return float(values[chosen].sum())
