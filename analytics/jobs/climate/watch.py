"""The regression watch: since when performance changed, and which metrics changed with it.

Algorithm. Of each history: the changes of its performance that are sure when all histories are looked at
(:mod:`mpiio_ext.analytics.jobs.statistics.screening`); for each change the metrics that changed with it
(:mod:`mpiio_ext.analytics.jobs.climate.company`); and the jobs that are outliers within their level. A *regression* is
a history whose last change was to a lower performance, and no longer ago than is asked for: a step that has been
undone, or of which everyone knows, alarms nobody.

Guarantees. The same table gives the same answer. A single slow job is an outlier, never a regression: a new level needs
`least` jobs.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mpiio_ext.analytics.jobs.climate.company import contradicts, in_company
from mpiio_ext.analytics.jobs.history import History
from mpiio_ext.analytics.jobs.metrics import metric
from mpiio_ext.analytics.jobs.statistics.changes import Change
from mpiio_ext.analytics.jobs.statistics.moved import Moved
from mpiio_ext.analytics.jobs.statistics.outliers import LIMIT, sided_z
from mpiio_ext.analytics.jobs.statistics.screening import sure_changes
from mpiio_ext.analytics.jobs.table import ID, PERFORMANCE

if TYPE_CHECKING:
    from mpiio_ext.analytics.tables.arrays import Numbers

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


@dataclasses.dataclass(frozen=True, slots=True)
class _Series:
    """The jobs of a history that have the value which is watched."""

    history: History
    values: Numbers
    times: Numbers

    @classmethod
    def of(cls, history: History, target: str) -> _Series:
        values = history.jobs.numbers(target)
        known = ~np.isnan(values)
        jobs = history.jobs if known.all() else history.jobs.take(known)
        return cls(dataclasses.replace(history, jobs=jobs), values[known], jobs.times())


def _outliers(one: _Series, changes: Sequence[Change], target: str) -> list[Outlier]:
    good = metric(target).big_is_good is not False
    bounds = [0, *(change.place for change in changes), len(one.values)]
    out = []
    names = one.history.jobs.texts(ID)
    for begin, end in itertools.pairwise(bounds):
        part = one.values[begin:end]
        scores = sided_z(part - np.median(part))
        for at in np.flatnonzero(np.abs(scores) > LIMIT).tolist():
            out.append(
                Outlier(
                    time=float(one.times[begin + at]),
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
    series = [_Series.of(history, options.target) for history in every]
    series = [one for one in series if len(one.values)]
    found = sure_changes([one.values for one in series], least=options.least, level=options.level, step=options.step)
    jobs = [(one, pair) for one, pairs in zip(series, found, strict=True) for pair in pairs]
    company = iter(
        in_company(
            [(one.history.jobs, change) for one, (change, _) in jobs],
            least=options.least,
            level=options.level,
            metrics=options.metrics,
            big_is_good=metric(options.target).big_is_good is not False,
        )
    )
    newest = max((float(one.times[-1]) for one in series), default=0.0)
    out = []
    for one, pairs in zip(series, found, strict=True):
        shifts = [_shift(one, change, p, next(company), options) for change, p in pairs]
        out.append(_watched(one, shifts, newest, options))
    return out


def _shift(one: _Series, change: Change, p: float, company: dict[str, tuple[Moved, int]], options: Options) -> Shift:
    good = metric(options.target).big_is_good is not False
    return Shift(
        time=float(one.times[change.place]),
        job=str(one.history.jobs.texts(ID)[change.place]),
        change=change,
        p_corrected=p,
        moved=[item for item, _ in company.values()],
        own={name: float(one.times[place]) for name, (_, place) in company.items()},
        worse=(change.after < change.before) is good,
    )


def _watched(one: _Series, shifts: Sequence[Shift], newest: float, options: Options) -> Watched:
    last = shifts[-1] if shifts else None
    recent = last is not None and (options.within_days is None or newest - last.time <= options.within_days * _DAY)
    begin = last.change.place if last else 0
    return Watched(
        system=one.history.system,
        motif=one.history.motif,
        scale=one.history.scale,
        jobs=len(one.values),
        newest=float(one.times[-1]),
        level=float(np.median(one.values[begin:])),
        shifts=shifts,
        outliers=_outliers(one, [shift.change for shift in shifts], options.target),
        regression=last if last is not None and recent and last.worse else None,
    )


def largest_lasting(every: Sequence[Watched], target: str) -> tuple[Watched, Shift] | None:
    """Return the change of level that was largest and has lasted, with its history: a fall, else a rise; None: neither.

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
