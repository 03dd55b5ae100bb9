"""The regression watch: since when performance changed, and which metrics changed with it.

Algorithm. For each history the module finds the changes of performance that are sure among all histories
(:mod:`mpiio_ext.analytics.jobs.statistics.changes`), for each change the metrics that changed with it
(:mod:`mpiio_ext.analytics.jobs.climate.watch`), and the jobs that are outliers within their level. A *regression* is a
history whose last change was to a lower performance, within the requested time: a change that has been undone, or that
everyone knows, raises no alarm.

Guarantees. The same table gives the same answer. A single slow job is an outlier, never a regression: a new level needs
`least` jobs.

Which metrics changed together with performance.

Problem. A file system fills for months: its fullness before any day differs from that after it, surely and by much, and
is named with whatever else happened on that day.

Algorithm. For a change of performance, each metric is compared between the jobs near before and near after it
(:mod:`mpiio_ext.analytics.jobs.statistics.moved`; p-values corrected over all changes). A metric is named if the
difference is sure and large, and if the metric has a change of its own within a few jobs of the change of performance.
ruptures finds this change, with the dependence of its values on the values before them. A slow drift has no such
change. A metric that became better where performance became worse, or conversely, is reported as contradicting: it is
no explanation, and comes behind the others. Metrics that are counted over the job's time come last: a slow job has more
of them because it is slow.

Guarantees. What is named changed at the same time, which does not make it the cause.

Blind spots of the regression watch: histories that are too short, and those without new jobs.

Problem. A watch of nothing finds nothing, and its report is the same as that of a healthy system. Examples are a suite
that stopped, a file system that was removed from the suite, and a history too short for two levels.

Algorithm. A history is too short with fewer jobs than two levels have at least. It has stopped where the newest job of
the table is later than its own by more than a gap (:mod:`mpiio_ext.analytics.jobs.history`): others go on. Whether
all have stopped, only the clock can show it.

Guarantees. A history that began and has no usual interval yet is never called stopped; it is too short.

Falls of many histories at the same time, put together: a file system fell, not thirty programs.

Algorithm. The regressions of a file system are sorted by their day; where the next is no more than a few days later, it
belongs to the same fall: noise moves each day a little. Groups of two or more histories are reported, the largest
first.

Guarantees. Each regression is in one group at most; the regressions themselves stay as they are.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mpiio_ext.analytics.jobs.history import History, longest_interval
from mpiio_ext.analytics.jobs.metrics import metric
from mpiio_ext.analytics.jobs.statistics.changes import Change, breaks, dependences, sure_changes
from mpiio_ext.analytics.jobs.statistics.moved import LARGE_EFFECT, LIMIT, Moved, adjusted, compared, sided_z
from mpiio_ext.analytics.jobs.table import ID, PERFORMANCE, Jobs

#: Jobs on either side that are compared, over those that a level has at least.
_NEAR = 4


def in_company(
    every: Sequence[tuple[Jobs, Change]],
    *,
    least: int = 7,
    level: float = 0.01,
    metrics: Sequence[str] | None = None,
    big_is_good: bool = True,
) -> list[dict[str, tuple[Moved, int]]]:
    """Return, for each change, the metrics that changed with it, and the first job of the new level of each.

    Parameters
    ----------
    every : sequence of (Jobs, Change)
        Jobs of a history by start, and a change of their performance.
    least : jobs that a level has at least; half as far from the change of performance a metric's own may be.
    level : largest corrected p-value.
    metrics : columns; default: all that are listed as explaining.
    big_is_good : of what is called performance.

    Returns
    -------
    list of mapping of str to (Moved, int)
        By the size of the effect; contradicting metrics come behind the others, and metrics counted over the job's time
        last.
    """
    found_of = []
    for jobs, change in every:
        first, last = max(change.begin, change.place - _NEAR * least), min(change.end, change.place + _NEAR * least)
        before, after = np.arange(first, change.place), np.arange(change.place, last)
        found_of.append(compared(jobs.take(before), jobs.take(after), metrics))
    out = []
    for (jobs, change), found in zip(every, adjusted(found_of), strict=True):
        large = [item for item in found if item.p_corrected <= level and abs(item.effect) >= LARGE_EFFECT]
        worse = (change.after < change.before) is big_is_good
        large.sort(key=lambda one: (metric(one.metric).extensive, contradicts(one, worse=worse)))
        out.append(
            {
                item.metric: (item, place)
                for item in large
                if (place := _own(jobs, item.metric, change.place, least)) is not None
            }
        )
    return out


def _own(jobs: Jobs, name: str, near: int, least: int) -> int | None:
    """Return the place of a metric's own change that is nearest to that of performance; None if all are too far."""
    values = jobs.numbers(name)
    known = np.flatnonzero(~np.isnan(values))
    values = values[known]
    places = known[breaks(values, least=least, dependence=dependences([values])[0])]
    close = places[np.abs(places - near) <= least // 2]
    return int(close[np.argmin(np.abs(close - near))]) if len(close) else None


def contradicts(item: Moved, *, worse: bool) -> bool:
    """Return whether a metric moved to the side that is good where performance became worse, or conversely."""
    good = metric(item.metric).big_is_good
    return good is not None and ((item.effect > 0) == good) == worse


__all__ = ["Options", "Outlier", "Shift", "Watched", "as_json", "largest_lasting", "watch"]

_DAY = 86400.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How the watch judges.

    Attributes
    ----------
    target : str
        Column that is watched.
    least : int
        Jobs that a level has at least.
    level : float
        Largest corrected p-value of a change, and of a metric that moved with it.
    step : float
        Smallest change of the median that counts, as a share.
    within_days : float or None
        A change for the worse alarms for so long, counted back from the newest job of the table; None: for ever.
    metrics : sequence of str, optional
        Columns that are compared; default: all that are listed as explaining.
    """

    target: str = PERFORMANCE
    least: int = 7
    level: float = 0.01
    step: float = 0.05
    within_days: float | None = 30.0
    metrics: Sequence[str] | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """A change of level, with the metrics that changed with it.

    Attributes
    ----------
    time : float
        Start of the first job of the new level, in s since 1970 UTC.
    job : str
        Its ID.
    change : Change
        With medians in the unit of the column.
    p_corrected : float
    moved : sequence of Moved
        Metrics that changed with it, the largest effect first, those that are counted over the job's time last.
    own : mapping of str to float
        Metric -> time of its own change.
    worse : bool
    """

    time: float
    job: str
    change: Change
    p_corrected: float
    moved: Sequence[Moved]
    own: dict[str, float]
    worse: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Outlier:
    """A job far from its level: modified z-score beyond 3.5, by the spread on its side of `expected`, the median."""

    time: float
    job: str
    value: float
    expected: float
    score: float
    worse: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """The finding of the watch for a history; `regression` is the change for the worse that alarms, or None."""

    system: str
    motif: str
    scale: str
    jobs: int
    newest: float
    level: float
    shifts: Sequence[Shift]
    outliers: Sequence[Outlier]
    regression: Shift | None


def _outliers(one: History, changes: Sequence[Change], target: str) -> list[Outlier]:
    good = metric(target).big_is_good is not False
    bounds = [0, *(change.place for change in changes), len(one.jobs)]
    out = []
    values, times, names = one.jobs.numbers(target), one.jobs.times(), one.jobs.texts(ID)
    for begin, end in itertools.pairwise(bounds):
        part = values[begin:end]
        scores = sided_z(part - np.median(part))
        for at in np.flatnonzero(np.abs(scores) > LIMIT).tolist():
            out.append(
                Outlier(
                    time=float(times[begin + at]),
                    job=str(names[begin + at]),
                    value=float(part[at]),
                    expected=float(np.median(part)),
                    score=float(scores[at]),
                    worse=bool(scores[at] < 0) is good,
                )
            )
    return out


def watch(every: Sequence[History], options: Options | None = None) -> list[Watched]:
    """Return the changes of each history, in the given order.

    Parameters
    ----------
    every : sequence of History
    options : Options, optional

    Raises
    ------
    AnalyticsError
        ruptures is not installed.
    """
    options = Options() if options is None else options
    series = [one for history in every if len((one := history.having(options.target)).jobs)]
    values = [one.jobs.numbers(options.target) for one in series]
    found = sure_changes(values, least=options.least, level=options.level, step=options.step)
    jobs = [(one, pair) for one, pairs in zip(series, found, strict=True) for pair in pairs]
    company = iter(
        in_company(
            [(one.jobs, change) for one, (change, _) in jobs],
            least=options.least,
            level=options.level,
            metrics=options.metrics,
            big_is_good=metric(options.target).big_is_good is not False,
        )
    )
    newest = max((float(one.jobs.times()[-1]) for one in series), default=0.0)
    out = []
    for one, pairs in zip(series, found, strict=True):
        shifts = [_shift(one, change, p, next(company), options) for change, p in pairs]
        out.append(_watched(one, shifts, newest, options))
    return out


def _shift(one: History, change: Change, p: float, company: dict[str, tuple[Moved, int]], options: Options) -> Shift:
    good, times = metric(options.target).big_is_good is not False, one.jobs.times()
    return Shift(
        time=float(times[change.place]),
        job=str(one.jobs.texts(ID)[change.place]),
        change=change,
        p_corrected=p,
        moved=[item for item, _ in company.values()],
        own={name: float(times[place]) for name, (_, place) in company.items()},
        worse=(change.after < change.before) is good,
    )


def _watched(one: History, shifts: Sequence[Shift], newest: float, options: Options) -> Watched:
    last = shifts[-1] if shifts else None
    recent = last is not None and (options.within_days is None or newest - last.time <= options.within_days * _DAY)
    begin = last.change.place if last else 0
    return Watched(
        system=one.system,
        motif=one.motif,
        scale=one.scale,
        jobs=len(one.jobs),
        newest=float(one.jobs.times()[-1]),
        level=float(np.median(one.jobs.numbers(options.target)[begin:])),
        shifts=shifts,
        outliers=_outliers(one, [shift.change for shift in shifts], options.target),
        regression=last if last is not None and recent and last.worse else None,
    )


def largest_lasting(every: Sequence[Watched], target: str) -> tuple[Watched, Shift] | None:
    """Return the largest lasting change of level, with its history: a fall, else a rise; None if there is neither.

    A change lasts as far as no later level has undone it. So of a fall the best level since then counts.
    """
    good = metric(target).big_is_good is not False
    found: list[tuple[bool, float, Watched, Shift]] = []
    for one in every:
        for place, shift in enumerate(one.shifts):
            since = [later.change.after for later in one.shifts[place:]]
            undone = max(since) if shift.change.after < shift.change.before else min(since)
            lasting = undone / shift.change.before if shift.change.before > 0 else float("nan")
            down = shift.change.after < shift.change.before
            if lasting > 0 and (lasting < 1) is down:
                found.append((down is good, abs(math.log(lasting)), one, shift))
    _, _, history, change = max(found, key=lambda each: each[:2], default=(False, 0.0, None, None))
    return None if history is None or change is None else (history, change)


def as_json(found: Watched) -> dict[str, Any]:
    """Return the finding of a history as data for JSON; values are in the units of the columns."""
    shifts = [
        {
            "since": shift.time,
            "job": shift.job,
            "before": shift.change.before,
            "after": shift.change.after,
            "ratio": shift.change.ratio,
            "p": shift.change.p,
            "p_corrected": shift.p_corrected,
            "worse": shift.worse,
            "moved": [
                dataclasses.asdict(item)
                | {"own_change": shift.own.get(item.metric), "contradicts": contradicts(item, worse=shift.worse)}
                for item in shift.moved
            ],
        }
        for shift in found.shifts
    ]
    return {
        "file_system": found.system,
        "motif": found.motif,
        "processes": found.scale or None,
        "jobs": found.jobs,
        "newest": found.newest,
        "level": found.level,
        "regression_since": found.regression.time if found.regression else None,
        "changes": shifts,
        "outliers": [dataclasses.asdict(one) for one in found.outliers],
    }


def newest(every: Sequence[History]) -> float | None:
    """Return the begin of the newest job of all histories, in s since 1970 UTC; None if no job has a start."""
    starts = [float(np.nanmax(times)) for history in every if not np.isnan(times := history.jobs.times()).all()]
    return max(starts, default=None)


def too_few(every: Sequence[History], watched: Sequence[Watched], options: Options) -> int:
    """Return how many histories cannot have a change: they have fewer known values than two levels."""
    return len(every) - sum(one.jobs >= 2 * options.least for one in watched)


def stopped(every: Sequence[History]) -> list[tuple[History, float]]:
    """Return the histories without a job since a time (s since 1970 UTC), while others went on, the last one first."""
    last = newest(every)
    out = []
    for history in every:
        times = history.jobs.times()
        usual = longest_interval(times)
        if last is not None and usual is not None and last - (end := float(np.nanmax(times))) > usual:
            out.append((history, end))
    return sorted(out, key=lambda one: -one[1])


#: Longest time between two that belong together, in s.
_APART = 3 * 86400.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Fall:
    """Histories of a file system that fell together.

    Attributes
    ----------
    first, middle, last : earliest, median and latest change, in s since 1970 UTC.
    fallen, watched : histories that fell, and all of the file system.
    ratio : median of the medians after over those before.
    """

    system: str
    first: float
    middle: float
    last: float
    fallen: int
    watched: int
    ratio: float


def falls(every: Sequence[Watched]) -> list[Fall]:
    """Return the falls of two histories or more, the largest first."""
    out = []
    for system in dict.fromkeys(one.system for one in every):
        mine = [one for one in every if one.system == system]
        fallen = sorted((one.regression for one in mine if one.regression is not None), key=lambda shift: shift.time)
        times = np.array([shift.time for shift in fallen])
        for places in np.split(np.arange(len(fallen)), np.flatnonzero(np.diff(times) > _APART) + 1):
            if len(places) > 1:
                ratio = float(np.median([fallen[at].change.ratio for at in places.tolist()]))
                out.append(
                    Fall(
                        system=system,
                        first=float(times[places[0]]),
                        middle=float(np.median(times[places])),
                        last=float(times[places[-1]]),
                        fallen=len(places),
                        watched=len(mine),
                        ratio=ratio,
                    )
                )
    return sorted(out, key=lambda fall: -fall.fallen)
