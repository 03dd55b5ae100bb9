"""Ranks, as far as a log shows them: how many run at once, how many move a file's bytes, and whose a file is.

Problem. Darshan adds up what all ranks move. The data of a file that all ranks open may be the work of one rank alone.

Algorithm. Of a shared file a log has the slowest and the fastest rank, with their bytes. The bytes of the file over
those of the busier of the two are the number of ranks that move it. HEATMAP has the bytes of each rank.

Guarantees. What a log does not have is NaN. How long a rank is in calls is the ledger's (:mod:`.analytics.ledger`).
"""

from __future__ import annotations

import dataclasses

import numpy as np

from mpiio_ext.analytics.diagnosis.activity import Activity
from mpiio_ext.analytics.factors.equations import ratio
from mpiio_ext.analytics.factors.files import Files
from mpiio_ext.analytics.sweep.intervals import sweep
from mpiio_ext.analytics.tables.arrays import Flags, Numbers, Whole
from mpiio_ext.analytics.tables.plain import values_of

#: Share of the bytes of all files that a HEATMAP must have to show which ranks move them.
_ALL = 0.9


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
    _, rows = np.unique(values_of(files.table["log_id"]), return_index=True)
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

    The log has the bytes that the slowest rank moves both ways. The bytes of that rank in this direction are at least
    this number less the bytes that all ranks move in the other direction.
    """
    moved = np.nan_to_num(files["{bytes}"])
    other = np.nan_to_num(files["bytes_read"]) + np.nan_to_num(files["bytes_written"]) - moved
    busier = np.fmax(files["slowest_rank_bytes"], files["fastest_rank_bytes"]) - other
    found = np.clip(ratio(moved, np.where(busier > 0, busier, np.nan)), 1.0, _ranks(files))
    return np.where(files["ranks"] == 1, 1.0, found)


def appended(files: Files) -> Flags:
    """Return for each file whether its ranks append to it, one between the others.

    Darshan places an appended write at the sum of the rank's own earlier writes. So by Darshan's counters the file ends
    where the busiest rank alone would end it, although several ranks write, each behind its own last write.
    """
    ends = files["max_offset_written"] + 1
    busier = np.fmax(files["slowest_rank_bytes"], files["fastest_rank_bytes"]) - np.nan_to_num(files["bytes_read"])
    in_turn = files["consec_writes"] >= 0.9 * files.requests("write")
    return np.asarray((files["ranks"] > 1) & in_turn & (ends <= 1.1 * busier) & (files["bytes_written"] >= 1.5 * ends))


def owners(files: Files, activity: Activity | None) -> Whole:
    """Return the rank of each file that one rank alone has opened; -1 for others, and where that is not known."""
    if activity is None or "file_id" not in files.table.schema.names:
        return np.full(len(files), -1, np.int64)
    known = [activity.owners.get(number, -1) for number in files.table["file_id"].to_pylist()]
    return np.where(files["ranks"] == 1, np.array(known, np.int64), -1)


def with_all_bytes(activity: Activity | None, files: Files) -> Activity | None:
    """Return the facts of a log, without a HEATMAP that lacks bytes of the files.

    HEATMAP counts the bytes of POSIX and of the C library. Of a job that writes through DFS, HEATMAP has only the bytes
    that rank 0 prints, which show neither the ranks that write data nor the times.
    """
    write = files.direction == "write"
    heat = None if activity is None else activity.heat.get(write)
    if activity is None or heat is None:
        return activity
    by_mpi = np.nan_to_num(files["mpiio_bytes_written" if write else "mpiio_bytes_read"])
    moved = np.nan_to_num(files["{bytes}"])
    if heat.sum() >= _ALL * float(np.where(moved > 0, moved, by_mpi).sum()):
        return activity
    bytes_of, in_turn, wall = dict(activity.heat), dict(activity.in_turn), dict(activity.wall)
    del bytes_of[write]
    in_turn.pop(write, None)
    if activity.source == "HEATMAP":
        wall.pop(write, None)
    return dataclasses.replace(activity, heat=bytes_of, in_turn=in_turn, wall=wall)
