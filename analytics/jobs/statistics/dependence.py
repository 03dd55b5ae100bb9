"""How much a value of a series depends on the one before it, where the level may change; and the series without that.

Problem. Nights that follow each other are alike: a file system is full for weeks, a neighbour computes for days. Such a
series wanders, and a test that takes its values as independent calls each slow wave a change of level.

Algorithm. The series is taken as an autoregression of the first order around its levels, with the coefficient phi. Its
differences hold what is needed, and a step of the level is in few of them. Those of values one place apart have the
variance 2 s² (1 - phi), those of values two places apart 2 s² (1 - phi²): the second over the first, minus 1, is phi.
That is the idea of Chakar, Lebarbier, Lévy-Leduc and Robin, "A robust approach for estimating change-points in
the mean of an AR(1) process" (Bernoulli 23(2), 2017). They take medians of the differences; of ranks, which have no
extremes, the means are steadier. A short series determines its phi badly: where there are other series of the same
kind, its own estimate counts as many values as it has, and their median as up to a hundred. Half a standard error is
added, because too small a phi makes false changes and too large a one only makes real ones less sure.

Guarantees. phi is between 0 and 0.9. A series whose neighbours are less alike than chance is taken as independent. A
dependence that lasts longer than an autoregression's is underestimated: waves of such a series are found as changes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mpiio_ext.analytics.tables.arrays import Numbers

_MOST = 0.9
#: Values that all other series together count as at most.
_OTHERS = 100
#: Fewer values have no differences to compare.
_LEAST = 4


def ranked(values: Numbers) -> Numbers:
    """Return the ranks of known values, scaled to mean 0 and variance 1; zeros where all values are equal."""
    import scipy.stats

    if not len(values) or np.ptp(values) == 0:
        return np.zeros(len(values))
    return np.asarray(scipy.stats.zscore(scipy.stats.rankdata(values)), dtype=np.float64)


def _variances(ranks: Numbers) -> tuple[float, float]:
    """Return the mean squares of the differences of values one place and two places apart."""
    return float(np.mean((ranks[1:] - ranks[:-1]) ** 2)), float(np.mean((ranks[2:] - ranks[:-2]) ** 2))


def _own(ranks: Numbers) -> float:
    if len(ranks) < _LEAST:
        return 0.0
    near, far = _variances(ranks)
    return far / near - 1 if near > 0 else 0.0


def dependences(every: Sequence[Numbers]) -> list[float]:
    """Return phi of each series, each with the help of the others.

    Parameters
    ----------
    every : sequence of numpy.ndarray, each of shape (jobs,)
        Known values by time.
    """
    estimates = [_own(ranked(values)) for values in every]
    lengths = [len(values) for values in every]
    usual = float(np.median([phi for phi, count in zip(estimates, lengths, strict=True) if count >= _LEAST] or [0.0]))
    out = []
    for phi, count in zip(estimates, lengths, strict=True):
        more = min(_OTHERS, sum(lengths) - count)
        known = max(count + more, 1)
        out.append(min(max((count * phi + more * usual) / known + 0.5 / math.sqrt(known), 0.0), _MOST))
    return out


def whitened(ranks: Numbers, phi: float) -> Numbers:
    """Return the values less those predicted from the one before each; one fewer, or the same if phi is 0.

    A step of the level stays a step, smaller by the factor 1 - phi.
    """
    return ranks[1:] - phi * ranks[:-1] if phi and len(ranks) else ranks


def penalty_factor(ranks: Numbers, phi: float) -> float:
    """Return how much larger than that of independent ranks the variance of a sum over the series is; 1 or more."""
    if not phi or len(ranks) < _LEAST:
        return 1.0
    # Without the largest difference: where values hardly vary but for one step, that is all of the sum.
    squares = np.sort((ranks[1:] - ranks[:-1]) ** 2)[:-1]
    within = float(np.mean(squares)) / 2 / (1 - phi)
    return max(1.0, within * (1 + phi) / (1 - phi))
