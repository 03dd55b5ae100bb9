"""A history divided into normal, long-term and transient regimes of performance.

Source: Lockwood et al., "A Year in the Life of a Parallel File System" (SC18, Sections IV and V): where the moving
average over 14 days and that over 49 days cross, one *divergence region* ends and the next begins. Within a region
performance is above or below what is usual around it. The paper studies long-term variation by these regions, and
transients by single jobs within them. Which job belongs to which regime it leaves to the eye; here it is decided so:

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
Each job is in one regime. Regions cover the history without gaps; the first and the last are cut off by its
ends, which the paper leaves out and which are marked here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mpiio_ext.analytics.jobs.history import History
from mpiio_ext.analytics.jobs.regimes.averages import crossings, moving_average, moving_median
from mpiio_ext.analytics.jobs.statistics.correction import corrected
from mpiio_ext.analytics.jobs.statistics.moved import effect_of
from mpiio_ext.analytics.jobs.statistics.outliers import LIMIT, modified_z
from mpiio_ext.analytics.jobs.table import PERFORMANCE

if TYPE_CHECKING:
    from mpiio_ext.analytics.tables.arrays import Numbers, Texts

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
    values = history.jobs.numbers(rules.target)
    known = ~np.isnan(values)
    history = dataclasses.replace(history, jobs=history.jobs.take(known))
    values, times = values[known], history.jobs.times()
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
    """Return how a region differs from the jobs around it, and the p-value; NaN if it is too short."""
    if min(len(values), len(others)) < rules.least or times[-1] - times[0] < rules.short_days * _DAY:
        return float("nan"), float("nan")
    return effect_of(others, values)
