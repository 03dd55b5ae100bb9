"""Changes of level in many series, of which few are false though many were searched.

Algorithm. Each series is asked for its changes (:mod:`mpiio_ext.analytics.jobs.statistics.changes`) with what all of
them show the dependence of a value on the one before it. The p-values of all changes are corrected together, and
with them that of each series in which no change was found, for its largest CUSUM. Such a series was searched as well:
without it the correction would have only p-values that are small already. A permutation test of N orders knows no
p-value below 1 in N + 1, which is too large where one of hundreds of series has changed: such tests are made again with
as many orders as the correction asks for. As k of m tests need m over k times the orders of one, all of them together
cost no more than a hundred orders for each series at a level of 0.01.

Guarantees. If no series has a change, one is reported with a probability of about `level` for all of them together, as
far as the tests are exact (the guarantees of :mod:`mpiio_ext.analytics.jobs.statistics.changes`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mpiio_ext.analytics.jobs.statistics.changes import Change, change_points, finer, smallest_p, whole
from mpiio_ext.analytics.jobs.statistics.correction import corrected
from mpiio_ext.analytics.jobs.statistics.dependence import dependences

if TYPE_CHECKING:
    from mpiio_ext.analytics.tables.arrays import Numbers


def sure_changes(
    every: Sequence[Numbers], *, least: int = 7, level: float = 0.01, step: float = 0.05
) -> list[list[tuple[Change, float]]]:
    """Return the changes of each series that are sure among all series, with their corrected p-values.

    Parameters
    ----------
    every : sequence of numpy.ndarray, each of shape (jobs,)
        Known values by time. One that is too short for two levels is no test.
    least : jobs that a level has at least.
    level : largest corrected p-value.
    step : smallest change of the median that counts, as a share of the larger one.

    Raises
    ------
    AnalyticsError
        ruptures is not installed.
    """
    phis = dependences(every)
    found = [
        change_points(values, least=least, level=level, step=step, dependence=phi)
        for values, phi in zip(every, phis, strict=True)
    ]
    others = [
        whole(values, least=least, dependence=phi)
        for values, phi, changes in zip(every, phis, found, strict=True)
        if not changes and len(values) >= 2 * least
    ]
    owners = [at for at, changes in enumerate(found) for _ in changes]
    changes = [change for mine in found for change in mine]
    target = level
    while True:
        values = corrected([*(change.p for change in changes), *others])
        # As small as the orders can resolve: only these can become smaller.
        small = [at for at, change in enumerate(changes) if change.p <= smallest_p(target)]
        wanted = level * len(small) / max(len(values), 1)
        if not small or values[small[0]] <= level or smallest_p(wanted) >= smallest_p(target):
            break
        for at in small:
            owner = owners[at]
            changes[at] = finer(every[owner], changes[at], level=wanted, least=least, dependence=phis[owner])
        target = wanted
    out: list[list[tuple[Change, float]]] = [[] for _ in every]
    for owner, change, value in zip(owners, changes, values, strict=False):
        if value <= level:
            out[owner].append((change, value))
    return out
