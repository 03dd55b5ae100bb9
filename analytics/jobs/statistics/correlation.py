"""Correlation of metrics with performance, with confidence intervals and correction for many tests.

Source: Lockwood et al., "A Year in the Life of a Parallel File System" (SC18, Section V), and its published tools
(``calc_correlation_vector``). They have, of each file system, the coefficients of Pearson and of Spearman between the
normalised performance and each metric, over the jobs that have both. The paper has p-values; the intervals and the
correction are added here.

Algorithm. Both coefficients and their p-values are SciPy's. The interval is Fisher's: arctanh of the coefficient is
nearly normal, of variance 1/(n - 3) for Pearson's and (1 + r²/2)/(n - 3) for Spearman's (Bonett and Wright, 2000). All
p-values of a table are corrected together. Jobs of all motifs are together in these coefficients, as in the paper, so a
metric in which motifs differ correlates for that alone. Beside each stands the mean of the coefficients within the
histories, by Fisher's transformation, weighted by n - 3.

Guarantees. A metric with fewer than 4 pairs, or with one value only, is not tested: its numbers are NaN. Jobs of a
history follow each other in time and are not independent, so that p-values are smaller than they should be: a p-value
near the limit proves nothing.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from mpiio_ext.analytics.jobs.metrics import EXPLAINING
from mpiio_ext.analytics.jobs.statistics.moved import corrected
from mpiio_ext.analytics.jobs.table import MOTIF, SCALE, SYSTEM, Jobs
from mpiio_ext.analytics.tables.arrays import Flags, Numbers

#: Performance that can be compared between kinds of I/O.
NORMALISED = "darshan_normalized_perf_by_max"
_LEAST_PAIRS = 4
#: A perfect coefficient has no finite transform.
_NEARLY_ONE = 1 - 1e-9


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """One coefficient.

    Attributes
    ----------
    group : file system, or history.
    metric : column.
    method : ``pearson`` or ``spearman``.
    pairs : jobs that have both values.
    coefficient, low, high : with the ends of its confidence interval; NaN if not tested.
    p, p_corrected : of no correlation; corrected over the whole table.
    within : mean of the coefficients within the histories; NaN if none has one.
    """

    group: str
    metric: str
    method: str
    pairs: int
    coefficient: float
    low: float
    high: float
    p: float
    p_corrected: float = math.nan
    within: float = math.nan

    @property
    def reversed_within(self) -> bool:
        """Whether the sign within the histories is not that of all jobs together."""
        return self.coefficient * self.within < 0


def correlate(x: Numbers, y: Numbers, method: str, confidence: float = 0.95) -> tuple[float, float, float, float]:
    """Return coefficient, both ends of its interval, and p-value; NaN if unknown.

    Parameters
    ----------
    x, y : numpy.ndarray
        Known values, in pairs.
    method : ``pearson`` or ``spearman``.
    confidence : of the interval, between 0 and 1.
    """
    import scipy.special
    import scipy.stats

    if len(x) < _LEAST_PAIRS or np.ptp(x) == 0 or np.ptp(y) == 0:
        return (math.nan,) * 4
    found = scipy.stats.pearsonr(x, y) if method == "pearson" else scipy.stats.spearmanr(x, y)
    r = float(found.statistic)
    if abs(r) >= 1:
        return r, r, r, float(found.pvalue)
    variance = (1.0 if method == "pearson" else 1 + r * r / 2) / (len(x) - 3)
    half = float(scipy.special.ndtri((1 + confidence) / 2)) * math.sqrt(variance)
    return r, math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half), float(found.pvalue)


def _within(x: Numbers, y: Numbers, every: Sequence[Flags], method: str) -> float:
    """Return the mean of the coefficients of the histories; NaN without any."""
    import scipy.stats

    total = weight = 0.0
    for rows in every:
        one, two = x[rows], y[rows]
        if len(one) < _LEAST_PAIRS or np.ptp(one) == 0 or np.ptp(two) == 0:
            continue
        if method == "spearman":
            one, two = scipy.stats.rankdata(one), scipy.stats.rankdata(two)
        r = min(max(float(np.corrcoef(one, two)[0, 1]), -_NEARLY_ONE), _NEARLY_ONE)
        total += (len(one) - 3) * math.atanh(r)
        weight += len(one) - 3
    return math.tanh(total / weight) if weight else math.nan


def _tested(table: Jobs, group: str, metrics: Sequence[str], target: str, confidence: float) -> list[Correlation]:
    performance = table.numbers(target)
    kinds = np.char.add(np.char.add(table.texts(MOTIF), " "), table.texts(SCALE))
    every = [kinds == kind for kind in sorted(set(kinds.tolist()))]
    out = []
    for name in metrics:
        values = table.numbers(name)
        both = ~np.isnan(performance) & ~np.isnan(values)
        pairs = int(both.sum())
        for method in ("pearson", "spearman"):
            r, low, high, p = correlate(values[both], performance[both], method, confidence)
            within = _within(values[both], performance[both], [rows[both] for rows in every], method)
            out.append(
                Correlation(
                    group=group,
                    metric=name,
                    method=method,
                    pairs=pairs,
                    coefficient=r,
                    low=low,
                    high=high,
                    p=p,
                    within=within,
                )
            )
    return out


def correlation_table(
    table: Jobs, metrics: Sequence[str] | None = None, *, target: str = NORMALISED, confidence: float = 0.95
) -> list[Correlation]:
    """Return the correlations of metrics with performance on each file system.

    Parameters
    ----------
    table : with the derived columns.
    metrics : columns. Default: all of `EXPLAINING` that have values.
    target : column of the performance.
    confidence : of the intervals.
    """
    systems = table.texts(SYSTEM)
    out: list[Correlation] = []
    for system in sorted(set(systems.tolist())):
        mine = table.take(systems == system)
        names = [
            name for name in (EXPLAINING if metrics is None else metrics) if not np.isnan(mine.numbers(name)).all()
        ]
        out += _tested(mine, system, names, target, confidence)
    adjusted = corrected([one.p for one in out])
    return [dataclasses.replace(one, p_corrected=p) for one, p in zip(out, adjusted, strict=True)]
