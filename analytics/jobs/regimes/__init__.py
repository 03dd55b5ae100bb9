"""A history divided into normal, long-term and transient regimes of performance.

Source: Lockwood et al., "A Year in the Life of a Parallel File System" (SC18, Sections IV and V): where the moving
average over 14 days and that over 49 days cross, one *divergence region* ends and the next begins. Within a region
performance is above or below what is usual around it. The paper studies long-term variation by these regions, and
transients by single jobs within them. The paper leaves the choice of a job's regime to the eye; here these rules
decide:

- *Long-term*: a region of at least a short window's length and seven jobs (the paper's least region). Its jobs differ
  from those around it, up to a long window before and after, to the side on which the short average lies. The test is
  that of Mann and Whitney, corrected over the regions, and the difference is more than a given share of the median.
  ``low`` or ``high``. All other jobs of the history would be the wrong measure: after an upgrade the year before is no
  norm.
- *Transient*: a job whose distance from the median of the short window around it has a modified z-score beyond 3.5, by
  the median of such distances in the long window around it. It goes before long-term: a single job is the finer scale
  of time. ``low`` or ``high``.
- *Normal*: all others.

Guarantees. A region's p-value is descriptive: the crossings that bound the region were chosen by the same values, and
values that follow each other depend on each other, so that a series without any regime has long-term regions as well.
Each job is in one regime. Regions cover the history without gaps. The ends of the history cut off the first and the
last region; the paper leaves these two out, and this module marks them.

Simple moving averages over time, and the times at which two of these cross.

Source: Lockwood et al., "A Year in the Life of a Parallel File System" (SC18, Section IV), and its published tools
(``sma_by_value``, ``find_sma_intercepts``): a window is a span of time, not a number of jobs, and stands around each
job. Its value is the mean over all jobs that began in the half-open time from half a window before it to half a window
after it. Two averages cross at the first job at which the short one is on the other side of the long one than at the
job before.

Which metrics differ between the regimes of a history.

Algorithm. Within each history, the jobs of each regime other than normal are compared, metric by metric, with the
normal jobs beside them (:mod:`mpiio_ext.analytics.jobs.statistics.moved`). The p-values of all histories, regimes and
metrics are corrected together. A metric is *named* where its difference is significant, and large by the limits for
Cliff's delta. The normal jobs beside them are the 28 before each job of the regime and the 28 after it. In a comparison
with all jobs of a year, a metric that drifts, such as the fullness of OSTs, would differ in every regime.

Guarantees. The p-values take jobs for independent, which jobs of one stretch are not: they describe. Histories are not
mixed: kinds of I/O differ in nearly every metric, and that is no explanation. A regime with fewer than three jobs is
not tested. The result states no causes: a metric that differs may be the cause, or suffer from the same cause, or be a
sum over a time that is longer because the job was slow (``extensive``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from mpiio_ext.analytics.jobs.history import History
from mpiio_ext.analytics.jobs.statistics.moved import (
    LARGE_EFFECT,
    LIMIT,
    Moved,
    adjusted,
    compared,
    corrected,
    effect_of,
    modified_z,
)
from mpiio_ext.analytics.jobs.table import PERFORMANCE
from mpiio_ext.analytics.tables.arrays import Flags, Numbers, Texts, Whole

__all__ = ["Difference", "Partition", "Region", "Rules", "explain", "partition"]

NORMAL, LONG_LOW, LONG_HIGH = "normal", "long-term low", "long-term high"
TRANSIENT_LOW, TRANSIENT_HIGH = "transient low", "transient high"
REGIMES = (NORMAL, LONG_LOW, LONG_HIGH, TRANSIENT_LOW, TRANSIENT_HIGH)
_DAY = 86400.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How a history is divided.

    Attributes
    ----------
    target : str
        Column of the performance.
    short_days, long_days : float
        Windows of the moving averages.
    least : int
        Jobs of a region that can be long-term.
    level : float
        Largest corrected p-value of a region that is long-term.
    step : float
        Smallest distance of its median from that of the other jobs, as a share of the latter.
    """

    target: str = PERFORMANCE
    short_days: float = 14.0
    long_days: float = 49.0
    least: int = 7
    level: float = 0.01
    step: float = 0.05


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Jobs between two crossings.

    Attributes
    ----------
    begin, end : int
        First job, and the one after the last.
    above : bool
        The short average lies above the long one.
    bounded : bool
        Both ends are crossings, not ends of the history.
    regime : str
        ``normal``, ``long-term low`` or ``long-term high``.
    effect, p_corrected : float
        Of the difference from the jobs around, as a description; NaN if the region is too short.
    """

    begin: int
    end: int
    above: bool
    bounded: bool
    regime: str
    effect: float
    p_corrected: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A history with the regime of each job.

    Attributes
    ----------
    history : History
        The jobs whose performance is known.
    values, short, long : numpy.ndarray, shape (jobs,)
        Performance, and its two moving averages.
    regions : sequence of Region
    regimes : numpy.ndarray of str, shape (jobs,)
    """

    history: History
    values: Numbers
    short: Numbers
    long: Numbers
    regions: Sequence[Region]
    regimes: Texts


def partition(history: History, rules: Rules | None = None) -> Partition:
    """Divide a history into regimes.

    Parameters
    ----------
    history : History
        By start.
    """
    rules = Rules() if rules is None else rules
    history = history.having(rules.target)
    values, times = history.jobs.numbers(rules.target), history.jobs.times()
    short = moving_average(times, values, rules.short_days * _DAY)
    long = moving_average(times, values, rules.long_days * _DAY)
    regions = _regions(times, values, short, long, rules)
    regimes = np.full(len(values), NORMAL, dtype="<U14")
    for region in regions:
        regimes[region.begin : region.end] = region.regime
    distances = values - moving_median(times, values, rules.short_days * _DAY)
    scores = modified_z(distances, moving_median(times, np.abs(distances), rules.long_days * _DAY))
    regimes[scores < -LIMIT] = TRANSIENT_LOW
    regimes[scores > LIMIT] = TRANSIENT_HIGH
    return Partition(history=history, values=values, short=short, long=long, regions=regions, regimes=regimes)


def _regions(times: Numbers, values: Numbers, short: Numbers, long: Numbers, rules: Rules) -> list[Region]:
    cuts = crossings(short, long).tolist()
    bounds = list(zip([0, *cuts], [*cuts, len(values)], strict=True)) if len(values) else []
    around = [_around(times, values, begin, end, rules) for begin, end in bounds]
    tests = [
        _effect(times[begin:end], values[begin:end], others, rules)
        for (begin, end), others in zip(bounds, around, strict=True)
    ]
    adjusted = corrected([p for _, p in tests])
    out = []
    for (begin, end), others, (effect, _), p in zip(bounds, around, tests, adjusted, strict=True):
        above = bool(short[begin] > long[begin])
        lasting = p <= rules.level and (effect > 0) == above and _far(values[begin:end], others, rules.step)
        out.append(
            Region(
                begin=begin,
                end=end,
                above=above,
                bounded=begin > 0 and end < len(values),
                regime=(LONG_HIGH if above else LONG_LOW) if lasting else NORMAL,
                effect=effect,
                p_corrected=p,
            )
        )
    return out


def _around(times: Numbers, values: Numbers, begin: int, end: int, rules: Rules) -> Numbers:
    """Return the values of the jobs up to a long window before a region and after it."""
    first = np.searchsorted(times, times[begin] - rules.long_days * _DAY)
    last = np.searchsorted(times, times[end - 1] + rules.long_days * _DAY, side="right")
    return np.concatenate([values[first:begin], values[end:last]])


def _far(values: Numbers, others: Numbers, step: float) -> bool:
    usual = float(np.median(others))
    return abs(float(np.median(values)) - usual) > step * abs(usual)


def _effect(times: Numbers, values: Numbers, others: Numbers, rules: Rules) -> tuple[float, float]:
    """Return the difference of a region from the jobs around it, and the p-value; NaN if the region is too short."""
    if min(len(values), len(others)) < rules.least or times[-1] - times[0] < rules.short_days * _DAY:
        return float("nan"), float("nan")
    return effect_of(others, values)


def windows(times: Numbers, width_s: float) -> tuple[Whole, Whole]:
    """Return, for each job, the first job of its window and the one after the last.

    Parameters
    ----------
    times : numpy.ndarray, shape (jobs,)
        Starts in s, ascending.
    width_s : of the window, in s.
    """
    first = np.searchsorted(times, times - width_s / 2, side="left")
    return first.astype(np.int64), np.searchsorted(times, times + width_s / 2, side="left").astype(np.int64)


def moving_average(times: Numbers, values: Numbers, width_s: float) -> Numbers:
    """Return the mean of the known values around each job.

    Parameters
    ----------
    times, values : numpy.ndarray, shape (jobs,)
        Starts in s, ascending, and values, all known.
    width_s : of the window, in s.
    """
    first, end = windows(times, width_s)
    # Sums of the distances from the mean: a sum of large numbers would lose their differences.
    middle = values.mean() if len(values) else 0.0
    sums = np.concatenate([[0.0], np.cumsum(values - middle)])
    out: Numbers = middle + (sums[end] - sums[first]) / (end - first)
    return out


def moving_median(times: Numbers, values: Numbers, width_s: float) -> Numbers:
    """Return the median of the values around each job; as `moving_average`."""
    if not len(values):
        return values
    first, end = windows(times, width_s)
    # A row for each window, filled up with infinity, sorted together: a median by itself takes longer than its values.
    count = end - first
    places = first[:, None] + np.arange(int(count.max()))
    rows = np.where(places < end[:, None], values[np.minimum(places, len(values) - 1)], np.inf)
    rows.sort(axis=1)
    jobs = np.arange(len(values))
    out: Numbers = (rows[jobs, (count - 1) // 2] + rows[jobs, count // 2]) / 2
    return out


def crossings(short: Numbers, long: Numbers) -> Whole:
    """Return the jobs at which the short average is above the long one and was not at the job before, or conversely."""
    above = short > long
    return np.flatnonzero(above[1:] != above[:-1]).astype(np.int64) + 1


#: Normal jobs on either side of a job with which its regime is compared.
_NEAR = 28


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How a metric differs between a regime and the normal jobs of a history.

    Attributes
    ----------
    jobs, normal_jobs : int
        Of the regime, and the normal ones beside them.
    moved : Moved
        `before` is the median of the normal jobs, `after` that of the regime.
    """

    system: str
    motif: str
    scale: str
    regime: str
    jobs: int
    normal_jobs: int
    moved: Moved


def _beside(regimes: Texts, regime: str) -> Flags:
    """Return the normal jobs beside those of a regime."""
    normal = np.flatnonzero(regimes == NORMAL)
    places = np.searchsorted(normal, np.flatnonzero(regimes == regime))
    steps = np.zeros(len(normal) + 1, dtype=np.int64)
    np.add.at(steps, np.maximum(places - _NEAR, 0), 1)
    np.add.at(steps, np.minimum(places + _NEAR, len(normal)), -1)
    chosen = np.zeros(len(regimes), dtype=bool)
    chosen[normal[np.cumsum(steps[:-1]) > 0]] = True
    return chosen


def explain(every: Sequence[Partition], metrics: Sequence[str] | None = None) -> list[Difference]:
    """Return all tested differences, by history and regime, the largest effect first.

    Parameters
    ----------
    every : sequence of Partition
    metrics : sequence of str, optional
        Columns; default: all that are listed as explaining.
    """
    pairs = [(one, regime) for one in every for regime in REGIMES if regime != NORMAL]
    beside = [_beside(one.regimes, regime) for one, regime in pairs]
    tests = adjusted(
        [
            compared(one.history.jobs.take(normal), one.history.jobs.take(one.regimes == regime), metrics)
            for (one, regime), normal in zip(pairs, beside, strict=True)
        ]
    )
    return [
        Difference(
            system=one.history.system,
            motif=one.history.motif,
            scale=one.history.scale,
            regime=regime,
            jobs=int(np.sum(one.regimes == regime)),
            normal_jobs=int(np.sum(normal)),
            moved=moved,
        )
        for (one, regime), normal, found in zip(pairs, beside, tests, strict=True)
        for moved in found
    ]


def named(found: Sequence[Difference], level: float = 0.01) -> list[Difference]:
    """Return the differences that are significant and large."""
    return [one for one in found if one.moved.p_corrected <= level and abs(one.moved.effect) >= LARGE_EFFECT]
