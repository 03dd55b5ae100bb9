"""Time in I/O of the logs of one job: of each, and of all together, as time on the clock.

Problem. A job starts several programs, side by side or in turn, and each writes a log. The sum of their run times is
not how long the job runs, and the sum of their times in I/O is not how long it has any.

Algorithm. On the clock, a log has I/O for at least the time of its slowest rank in calls, and for at most the time of
all its ranks together. All calls lie between the first and the last call on a file; calls that move bytes lie in bins
of HEATMAP with bytes, if no sync and no call of MPI-IO comes beside. In each stretch of time in which logs overlap, all
logs together have at least the time of the log with most, and at least the union of these parts without the time in
them in which a log may have no call. They have at most the time of all, and no more than these parts.

Guarantees. The time lies within the bounds. A log without its time counts as if it ran alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from mpiio_ext.analytics.diagnosis.activity import Activity, merged
from mpiio_ext.analytics.ledger import Interval, Ledger
from mpiio_ext.analytics.tables.arrays import Numbers

Parts = tuple[Numbers, Numbers]


@dataclasses.dataclass(frozen=True, kw_only=True)
class LogTime:
    """When a log ran (s since 1970; NaN: not known), and its time in I/O.

    Attributes
    ----------
    in_io : seconds on the clock in which any rank is in a call.
    parts : starts and ends (s since 1970) of the time outside of which no call is, but for `beside` seconds.
    """

    start: float
    run_time: float
    in_io: Interval
    parts: Parts
    beside: float = 0.0

    @property
    def known(self) -> bool:
        """Whether it is known when it ran."""
        return bool(np.isfinite(self.start + self.run_time))


def log_time(ledger: Ledger, activity: Activity | None, start: float, run_time: float) -> LogTime:
    """Return the time in I/O of one log."""
    found, clock = ledger.spans(), ledger.clock()
    beside, seen = 0.0, activity
    if seen is not None and seen.source == "HEATMAP" and not seen.partial and ledger.moves_by_posix_alone:
        found, beside = (
            merged(*map(np.concatenate, zip(seen.busy, ledger.spans("STDIO"), strict=True))),
            ledger.mean("meta", layer="POSIX").most * ledger.processes,
        )
    most = min(clock.most, max(clock.least, _seconds(found) + beside))
    return LogTime(
        start=start,
        run_time=run_time,
        in_io=Interval(clock.least, most),
        parts=(found[0] + start, found[1] + start),
        beside=beside,
    )


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


def together(logs: Sequence[LogTime]) -> Interval:
    """Return the time in I/O of all logs together (s)."""
    least, most = 0.0, 0.0
    for stretch in stretches(logs):
        some = [logs[number] for number in stretch]
        union = _seconds(merged(*(np.concatenate([log.parts[end] for log in some]) for end in (0, 1))))
        missed = sum(_seconds(log.parts) - (log.in_io.least - log.beside) for log in some)
        low = max(union - missed, *(log.in_io.least for log in some))
        least += low
        most += max(low, min(union + sum(log.beside for log in some), sum(log.in_io.most for log in some)))
    return Interval(least, most)


def explained(logs: Sequence[LogTime], times: Sequence[float]) -> float:
    """Return how much of the time in I/O of all logs together a cause takes (s) that takes `times` of each log."""
    total = 0.0
    for stretch in stretches(logs):
        whole = sum(logs[number].in_io.middle for number in stretch)
        part = sum(min(times[number], logs[number].in_io.middle) for number in stretch) / whole if whole > 0 else 0.0
        total += together([logs[number] for number in stretch]).middle * part
    return total


def running(logs: Sequence[LogTime]) -> float:
    """Return the time in which any of the logs runs (s)."""
    known = [log for log in logs if log.known]
    begin = np.array([log.start for log in known])
    end = begin + np.array([log.run_time for log in known])
    alone = [log.run_time for log in logs if not log.known]
    return _seconds(merged(begin, end)) + float(np.nansum(alone))
