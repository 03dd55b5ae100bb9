"""The evidence of pairs of runs: the gain of one setting over another, and its confidence interval.

Problem: run times on shared machines drift, jump and have long tails, and a tuner looks at many settings, so that the
fastest time seen is mostly luck. A mean and its standard deviation would make this luck look like a gain.

How: both settings run as neighbours, in random order, and only the logarithm of the ratio inside each pair counts:
drift cancels. If neither setting is faster, such a ratio is as often above 1 as below by the same factor, whatever the
distribution of the times; that is what Wilcoxon's signed-rank test assumes (F. Wilcoxon, "Individual comparisons by
ranking methods", Biometrics Bulletin 1, 1945), and its exact form holds for six pairs as for a hundred. The interval
holds the ratios that the test does not reject; the estimate is the median of the pairwise means (J. L. Hodges,
E. L. Lehmann, "Estimates of location based on rank tests", Annals of Mathematical Statistics 34, 1963).

Guarantee: for two equal settings the lower end lies above 1 in at most (1 - confidence) / 2 of all cases. The condition
is that the pairs are new: the pairs that chose the setting do not count.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from mpiio_ext.errors import ArgumentError
from mpiio_ext.tune.errors import need


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The gain of a setting over the baseline.

    Attributes
    ----------
    pairs : pairs of runs.
    gain : cost of the baseline divided by cost of the setting; 2 means twice as fast.
    low, high : ends of the confidence interval of `gain`.
    confidence : of the interval, in (0, 1).
    p_value : of "no difference", two-sided.
    baseline_cost, cost : medians of the two, in the objective's unit.
    """

    pairs: int
    gain: float
    low: float
    high: float
    confidence: float
    p_value: float
    baseline_cost: float
    cost: float

    @property
    def wins(self) -> bool:
        """Whether the setting is faster beyond chance."""
        return self.low > 1.0


def least_pairs(confidence: float) -> int:
    """Return the number of pairs below which no result, however clear, reaches the confidence: 6 for 0.95."""
    if not 0.5 <= confidence < 1.0:
        raise ArgumentError(f"confidence is {confidence}; allowed: from 0.5 to below 1")
    return math.ceil(1 - math.log2(1 - confidence) - 1e-9)


@functools.cache
def _rejected_rank_sum(pairs: int, confidence: float) -> int:
    """Return the largest sum of the ranks of one sign at which the two-sided exact test rejects; -1 if none exists."""
    wilcoxon = need("scipy.stats").wilcoxon
    found = -1
    for wanted in range(pairs * (pairs + 1) // 2):
        signed, left = [], wanted
        for rank in range(pairs, 0, -1):  # some ranks that add up to `wanted`
            negative = rank <= left
            left -= rank if negative else 0
            signed.append(-rank if negative else rank)
        if wilcoxon(signed, method="exact").pvalue > 1 - confidence:
            break
        found = wanted
    return found


def evidence(baseline: Sequence[float], changed: Sequence[float], confidence: float = 0.95) -> Evidence:
    """Compare two settings by pairs of runs.

    Parameters
    ----------
    baseline, changed : costs (> 0, lower is better) of the two runs of each pair, in the same order.
    confidence : of the interval.

    Raises
    ------
    ArgumentError
        The lengths differ, a cost is not positive, or there are fewer pairs than `least_pairs`.
    """
    least = least_pairs(confidence)
    if len(baseline) != len(changed) or len(baseline) < least:
        raise ArgumentError(f"{len(baseline)} and {len(changed)} costs; needed: as many of both, at least {least}")
    if min(*baseline, *changed) <= 0:
        raise ArgumentError("costs must be positive")
    logs = [math.log(a / b) for a, b in zip(baseline, changed, strict=True)]
    means = sorted((logs[i] + logs[j]) / 2 for i in range(len(logs)) for j in range(i + 1))
    cut = _rejected_rank_sum(len(logs), confidence)
    p_value = float(need("scipy.stats").wilcoxon(logs, method="exact").pvalue) if any(logs) else 1.0
    return Evidence(
        pairs=len(logs),
        gain=math.exp(statistics.median(means)),
        low=math.exp(means[cut]),
        high=math.exp(means[-1 - cut]),
        confidence=confidence,
        p_value=p_value,
        baseline_cost=statistics.median(baseline),
        cost=statistics.median(changed),
    )
