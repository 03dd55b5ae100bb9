"""Which metrics differ between the regimes of a history.

Algorithm. Within each history, jobs of each regime other than normal are compared with the normal ones beside them,
metric by metric (:mod:`mpiio_ext.analytics.jobs.statistics.moved`); the p-values of all histories, regimes and metrics
are corrected together. A metric is *named* where its difference is significant, and large by the limits for Cliff's
delta. Beside them are the 28 normal jobs before each job of the regime and the 28 after it: against all of a year a
metric that drifts, as the fullness of OSTs does, differs in every regime.

Guarantees. The p-values take jobs for independent, which jobs of one stretch are not: they describe. Histories are not
mixed: kinds of I/O differ in nearly every metric, and that is no explanation. A regime with fewer than three jobs is
not tested. Nothing is said of causes: a metric that differs may be the cause, or suffer from the same one, or be a sum
over a time that is longer because the job was slow (``extensive``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mpiio_ext.analytics.jobs.regimes.partition import NORMAL, REGIMES, Partition
from mpiio_ext.analytics.jobs.statistics.moved import LARGE_EFFECT, Moved, adjusted, compared

if TYPE_CHECKING:
    from mpiio_ext.analytics.tables.arrays import Flags, Texts

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
    """Return which jobs are normal ones beside those of a regime."""
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
