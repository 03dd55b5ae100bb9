"""Time in I/O of the logs of one job: of each, and of all together, as time on the clock.

Problem. A job starts several programs, side by side or in turn, and each writes a log. The sum of their run times is
not how long the job runs, and the sum of their times in I/O is not how long it has any.

Algorithm. A log has I/O while any of its files that count is between its first and its last access; with DXT or
HEATMAP, only while bytes move. That is at least the time that one rank spends in calls, metadata calls among them, and
at most what all ranks do together. Of all logs: the union, in each stretch of time in which logs overlap at least that
of its busiest log, and at most that of all of its logs.

Guarantees. A log without its time counts as if it ran alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from mpiio_ext.analytics.diagnosis.activity import merged
from mpiio_ext.analytics.diagnosis.case import Case
from mpiio_ext.analytics.tables.arrays import Numbers

Parts = tuple[Numbers, Numbers]


@dataclasses.dataclass(frozen=True)
class LogTime:
    """When a log ran (s since 1970; NaN: not known), and its time in I/O.

    Attributes
    ----------
    in_io : seconds.
    parts : starts and ends (s since 1970) of the time in its files or DXT; `in_io` may be more, or less.
    """

    start: float
    run_time: float
    in_io: float
    parts: Parts

    @property
    def known(self) -> bool:
        """Whether it is known when it ran."""
        return bool(np.isfinite(self.start + self.run_time))


def log_time(cases: Sequence[Case], start: float, run_time: float) -> LogTime:
    """Return the time in I/O of one log, whose reads and writes are `cases`."""
    parts = [part for case in cases for part in _parts(case, start)]
    found = merged(*(np.concatenate(each) for each in zip(*parts, strict=True))) if parts else (np.zeros(0),) * 2
    least = max((sum(case.rank_time) for case in cases), default=0.0)
    least = 0.0 if least > 1.1 * run_time else least  # of threads, or blocked in pipes
    most = min((case.in_all_calls for case in cases if not np.isnan(case.in_all_calls)), default=np.inf)
    known = float(np.nan_to_num(run_time, nan=np.inf))
    return LogTime(start, run_time, min(max(_seconds(found), least), most, known), found)


def _parts(case: Case, start: float) -> list[Parts]:
    """Return when files are accessed; of those whose requests DXT or HEATMAP has, only when any rank is in one."""
    files, seen = case.files, case.activity
    begin, end = files.intervals()
    counted = files.counted & np.isfinite(begin) & np.isfinite(end)
    timed = np.zeros(len(files), bool)
    if seen is not None and not seen.partial and len(seen.busy[0]) and np.isfinite(start):
        timed = np.array(case.complete) if seen.source == "DXT" else files.requests() > 0
    out = [merged(begin[counted & ~timed], end[counted & ~timed])]
    if seen is not None and (counted & timed).any():
        spans = merged(begin[counted & timed], end[counted & timed])
        out.append(_common(spans, (seen.busy[0] + start, seen.busy[1] + start)))
    return out


def _common(one: Parts, other: Parts) -> Parts:
    """Return what two unions of intervals have in common; both are in order."""
    edges = np.unique(np.concatenate([*one, *other]))
    begin, end = edges[:-1], edges[1:]
    inside = np.ones(len(begin), bool)
    for starts, ends in (one, other):
        place = np.searchsorted(starts, begin, side="right") - 1
        inside &= (place >= 0) & (ends[np.maximum(place, 0)] > begin) if len(starts) else False
    return merged(begin[inside], end[inside])


def _seconds(parts: Parts) -> float:
    return float((parts[1] - parts[0]).sum())


def stretches(logs: Sequence[LogTime]) -> list[list[int]]:
    """Return the numbers of the logs of each stretch of time in which logs overlap, earliest first."""
    order = sorted((number for number, log in enumerate(logs) if log.known), key=lambda number: logs[number].start)
    out: list[list[int]] = []
    end = -np.inf
    for number in order:
        if logs[number].start >= end:
            out.append([])
        out[-1].append(number)
        end = max(end, logs[number].start + logs[number].run_time)
    return out + [[number] for number, log in enumerate(logs) if not log.known]


def together(logs: Sequence[LogTime]) -> float:
    """Return the time in I/O of all logs together (s)."""
    total = 0.0
    for stretch in stretches(logs):
        some = [logs[number] for number in stretch]
        union = _seconds(merged(*(np.concatenate([log.parts[end] for log in some]) for end in (0, 1))))
        own = [log.in_io for log in some]
        total += min(max(union, *own), sum(own))
    return total


def explained(logs: Sequence[LogTime], times: Sequence[float]) -> float:
    """Return how much of the time in I/O of all logs together a cause takes (s) that takes `times` of each log."""
    total = 0.0
    for stretch in stretches(logs):
        whole = sum(logs[number].in_io for number in stretch)
        part = sum(min(times[number], logs[number].in_io) for number in stretch) / whole if whole > 0 else 0.0
        total += together([logs[number] for number in stretch]) * part
    return total


def running(logs: Sequence[LogTime]) -> float:
    """Return the time in which any of the logs runs (s)."""
    known = [log for log in logs if log.known]
    begin = np.array([log.start for log in known])
    end = begin + np.array([log.run_time for log in known])
    alone = [log.run_time for log in logs if not log.known]
    return _seconds(merged(begin, end)) + float(np.nansum(alone))
