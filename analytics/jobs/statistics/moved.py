"""Which metrics differ between two sets of jobs of a history.

Algorithm. For each metric the test of Mann and Whitney checks whether values of one set tend to be larger than those of
the other; the test assumes nothing about their distribution. The effect is the rank-biserial correlation (Cliff's
delta): the probability that a value of the second set is larger than one of the first, minus that of the opposite. 0
says that the sets do not differ, ±1 that they do not overlap.

Guarantees. A metric of which either set has fewer than three values is left out. p-values are not corrected here, but
by the caller that has all of a report's tests (:mod:`mpiio_ext.analytics.jobs.statistics.moved`).

Single jobs that are far from the level around them.

Algorithm. The modified z-score of B. Iglewicz and D. Hoaglin, "How to Detect and Handle Outliers" (1993): the distance
from the median, over the median absolute distance scaled to the standard deviation of a normal distribution; beyond 3.5
a value is an outlier. Median and scale are those of a level between two changes, or of a window, so that a step of the
series makes no outliers. Performance is skewed: it falls further below its median than it rises above it. Where that
matters (`sided_z`) each side has its own scale, the median absolute distance of the values on that side.

Guarantees. If most values are equal, so that there is no scale, no value is an outlier.

Correction for testing many hypotheses at once: Benjamini and Hochberg's, of SciPy.

Tables of correlations and of metrics that moved are screenings of dozens of metrics in dozens of histories: a person
then inspects the ones that stand out. The share of false entries in such a list matters; the false discovery rate of
Benjamini and Hochberg (1995) limits it. It holds for metrics that depend on each other positively, as loads of the same
servers do (Benjamini and Yekutieli, 2001). Holm's method limits the chance of a single false one among all tests
instead, and so leaves out most of what is there. It would also need statsmodels, with pandas and patsy behind it;
`scipy.stats.false_discovery_control` is there.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from mpiio_ext.analytics.jobs.metrics import EXPLAINING
from mpiio_ext.analytics.jobs.table import Jobs
from mpiio_ext.analytics.tables.arrays import Numbers

_LEAST = 3
#: Values up to which SciPy's test may be exact.
_EXACT = 8
#: Effects from which a difference is called large (J. Romano et al., 2006, for Cliff's delta).
LARGE_EFFECT = 0.474


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """How a metric differs between two sets of jobs.

    Attributes
    ----------
    before, after : medians of the first and the second set.
    effect : float
        -1 to 1.
    p, p_corrected : of no difference.
    """

    metric: str
    before: float
    after: float
    effect: float
    p: float
    p_corrected: float = math.nan


def effect_of(first: Numbers, second: Numbers) -> tuple[float, float]:
    """Return the rank-biserial correlation of two sets of known values, and the p-value of Mann and Whitney's test."""
    import scipy.stats

    found = scipy.stats.mannwhitneyu(second, first)
    return 2 * float(found.statistic) / (len(first) * len(second)) - 1, float(found.pvalue)


def compared(first: Jobs, second: Jobs, metrics: Sequence[str] | None = None) -> list[Moved]:
    """Return how each metric differs between two sets of jobs, the largest effect first."""
    pairs = {}
    for name in EXPLAINING if metrics is None else metrics:
        one, two = (values[~np.isnan(values)] for values in (first.numbers(name), second.numbers(name)))
        if min(len(one), len(two)) >= _LEAST and not (np.ptp(one) == np.ptp(two) == 0 and one[0] == two[0]):
            pairs[name] = (one, two)
    found = _effects(pairs)
    out = [
        Moved(
            metric=name,
            before=float(np.median(one)),
            after=float(np.median(two)),
            effect=found[name][0],
            p=found[name][1],
        )
        for name, (one, two) in pairs.items()
    ]
    return sorted(out, key=lambda moved: -abs(moved.effect))


def _effects(pairs: Mapping[str, tuple[Numbers, Numbers]]) -> dict[str, tuple[float, float]]:
    """Return effect and p-value of each pair of sets; pairs of equal sizes are tested together, which is quicker.

    The distribution is exact for eight values or fewer without ties, as SciPy has it; it would decide that for all rows
    together.
    """
    import scipy.stats

    alike: dict[tuple[int, int, str], list[str]] = {}
    for name, (one, two) in pairs.items():
        exact = min(len(one), len(two)) <= _EXACT and len(np.unique(np.concatenate((one, two)))) == len(one) + len(two)
        alike.setdefault((len(one), len(two), "exact" if exact else "asymptotic"), []).append(name)
    out: dict[str, tuple[float, float]] = {}
    for (first, second, method), names in alike.items():
        ones, twos = (np.array([pairs[name][side] for name in names]) for side in (0, 1))
        found = scipy.stats.mannwhitneyu(twos, ones, axis=1, method=method)
        effects = 2 * found.statistic / (first * second) - 1
        out.update(zip(names, zip(effects.tolist(), found.pvalue.tolist(), strict=True), strict=True))
    return out


def adjusted(every: Sequence[Sequence[Moved]]) -> list[list[Moved]]:
    """Return the same with p-values that are corrected for all tests together."""
    values = iter(corrected([moved.p for group in every for moved in group]))
    return [[dataclasses.replace(moved, p_corrected=next(values)) for moved in group] for group in every]


#: Modified z-score beyond which a value is an outlier.
LIMIT = 3.5


#: Standard deviations of a normal distribution in its median absolute deviation.
_NORMAL = 1.4826


def modified_z(distances: Numbers, spread: Numbers | float | None = None) -> Numbers:
    """Return the modified z-score of each value.

    Parameters
    ----------
    distances : numpy.ndarray, shape (jobs,)
        Of each value from its median; all known.
    spread : float or numpy.ndarray, optional
        Median absolute distance: one, or one for each value. Default: that of all.
    """
    if not len(distances):
        return distances
    scale = _NORMAL * np.asarray(np.median(np.abs(distances)) if spread is None else spread)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(scale > 0, distances / scale, 0.0)


def sided_z(distances: Numbers) -> Numbers:
    """Return the modified z-score of each value by the spread of the values on its own side of the median.

    Parameters
    ----------
    distances : numpy.ndarray, shape (jobs,)
        Of each value from the median of all; all known.
    """
    low, high = distances <= 0, distances >= 0
    out = np.zeros(len(distances))
    for side in (low, high):
        if side.any():
            out[side] = modified_z(distances[side])
    return out


def corrected(values: Sequence[float]) -> list[float]:
    """Return the p-values adjusted by Benjamini and Hochberg's procedure; NaN, a test that was not made, stays NaN."""
    import scipy.stats

    given = np.asarray(values, dtype=np.float64)
    out = np.full(len(given), np.nan)
    known = ~np.isnan(given)
    if known.any():
        out[known] = scipy.stats.false_discovery_control(given[known], method="bh")
    return [float(value) for value in out]
