"""Which metrics differ between the regimes of a history.

Algorithm. Within each history, jobs of each regime other than normal are compared with the normal ones, metric by
metric (:mod:`mpiio_ext.analytics.statistics.moved`); the p-values of all histories, regimes and metrics are corrected
together. A metric is *named* where its difference is sure, and large by the limits for Cliff's delta.

Guarantees. Histories are not mixed: kinds of I/O differ in nearly every metric, and that is no explanation. A regime
with fewer than three jobs is not tested. Nothing is said of causes: a metric that differs may be the cause, or suffer
from the same one, or be a sum over a time that is longer because the job was slow (``extensive``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from mpiio_ext.analytics.regimes.partition import NORMAL, REGIMES, Partition
from mpiio_ext.analytics.statistics.moved import LARGE_EFFECT, Moved, adjusted, compared

__all__ = ["Difference", "explain", "named"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How a metric differs between a regime and the normal jobs of a history.

    Attributes
    ----------
    system, motif, regime : str
    jobs, normal_jobs : int
        Of the regime, and those it is compared with.
    moved : Moved
        `before` is the median of the normal jobs, `after` that of the regime.
    """

    system: str
    motif: str
    regime: str
    jobs: int
    normal_jobs: int
    moved: Moved


def explain(every: Sequence[Partition], metrics: Sequence[str] | None = None) -> list[Difference]:
    """Return all tested differences, by history and regime, the largest effect first.

    Parameters
    ----------
    every : sequence of Partition
    metrics : sequence of str, optional
        Columns; default: all that are listed as explaining.
    """
    pairs = [(one, regime) for one in every for regime in REGIMES if regime != NORMAL]
    tests = adjusted([compared(one.history.jobs.take(one.regimes == NORMAL),
                               one.history.jobs.take(one.regimes == regime), metrics)
                      for one, regime in pairs])  # fmt: skip
    return [Difference(system=one.history.system, motif=one.history.motif, regime=regime,
                       jobs=int(np.sum(one.regimes == regime)), normal_jobs=int(np.sum(one.regimes == NORMAL)),
                       moved=moved)
            for (one, regime), found in zip(pairs, tests, strict=True) for moved in found]  # fmt: skip


def named(found: Sequence[Difference], level: float = 0.01) -> list[Difference]:
    """Return the differences that are sure and large."""
    return [one for one in found if one.moved.p_corrected <= level and abs(one.moved.effect) >= LARGE_EFFECT]
