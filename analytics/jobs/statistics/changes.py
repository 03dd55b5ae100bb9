"""Changes of a series' level: change points found by ruptures and confirmed by a permutation test.

Problem. A history of performance has steps (an upgrade, a failing part, a file system that fills), noise that is not
normal, and single slow jobs, which are no steps. How many steps there are is not known.

Algorithm. The values are replaced by their ranks, so that a slow job counts as the lowest rank and no more, and nothing
depends on the form of the distribution (Lung-Yut-Fong, Lévy-Leduc and Cappé, 2012). ruptures finds the partition whose
squared deviations from the segments' means, plus a penalty for each change, are least (PELT: Killick, Fearnhead and
Eckley, 2012; Truong, Oudre and Vayatis, 2020). Each change of the partition is then tested between its two neighbours.
The largest CUSUM of the ranks, over all possible places of the change, is compared with that of random orders of the
same values, as E-divisive does (Matteson and James, 2014). The least sure change is taken out and its neighbours are
tested anew, until all are sure. Random orders are a fair comparison only of values that do not depend on their
predecessors: both the penalty and the test allow for that dependence
(:mod:`mpiio_ext.analytics.jobs.statistics.changes`). The penalty grows with the variance of sums; what is ordered at
random is what the value before does not let expect. At last each change is moved by some jobs to where the values
deviate least from the medians of both sides. Ranks show that there is a change, but for them the lowest of the higher
level is next to the highest of the lower one.

Guarantees. The same series gives the same changes: random orders come from a fixed seed. A change has at least
`least` jobs on either side. Without a change in a series of independent values one is found with a probability of
about `level`; in one autoregression of 120 values with a coefficient of 0.5 with about three times that, because the
coefficient is an estimate. A level of few jobs between two others may be missed where values depend on each other. A
caller with many series corrects the p-values, with `whole` for the series without a change, and makes those
that are as small as so many orders can resolve more exact with `finer`.

How much a value of a series depends on the one before it, where the level may change; and the series without that.

Problem. Nights that follow each other are alike: a file system is full for weeks, a neighbour computes for days. Such a
series wanders, and a test that takes its values as independent calls each slow wave a change of level.

Algorithm. The series is taken as an autoregression of the first order around its levels, with the coefficient phi. The
differences of the series are enough to compute phi, and a step of the level affects only a few differences. Those of
values one place apart have the variance 2 s² (1 - phi), those of values two places apart 2 s² (1 - phi²): the second
over the first, minus 1, is phi. That is the idea of Chakar, Lebarbier, Lévy-Leduc and Robin, "A robust approach for
estimating change-points in the mean of an AR(1) process" (Bernoulli 23(2), 2017). They take medians of the differences;
of ranks, which have no extremes, the means are steadier. A short series determines its phi badly: where there are other
series of the same kind, its own estimate counts as many values as it has, and their median as up to a hundred. Half a
standard error is added, because too small a phi makes false changes and too large a one only makes real ones less sure.

Guarantees. phi is between 0 and 0.9. A series whose neighbours are less alike than chance is taken as independent. A
dependence that lasts longer than an autoregression's is underestimated: waves of such a series are found as changes.

Changes of level in many series, of which few are false though many were searched.

Algorithm. The changes of each series are computed (:mod:`mpiio_ext.analytics.jobs.statistics.changes`) with the
dependence of a value on the one before, which comes from all series. The p-values of all changes are corrected
together, and with them that of each series in which no change was found, for its largest CUSUM. Such a series was
searched as well: without it the correction would have only p-values that are small already. A permutation test of N
orders has no p-value below 1 in N + 1, which is too large if one of hundreds of series has changed. Such tests are made
again with as many orders as the correction needs. As k of m tests need m over k times the orders of one, all of them
together cost no more than a hundred orders for each series at a level of 0.01.

Guarantees. If no series has a change, one is reported with a probability of about `level` for all of them together, as
far as the tests are exact (the guarantees of :mod:`mpiio_ext.analytics.jobs.statistics.changes`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from mpiio_ext.analytics.jobs.statistics.moved import corrected
from mpiio_ext.analytics.tables.arrays import Numbers
from mpiio_ext.common.extras import needing

#: Random orders of a test, unless its level needs more, and at most; the smallest p-value is one in that number.
_ORDERS, _MOST_ORDERS = 999, 200_000
#: Random orders at a time, first and at most, and how many larger ones end a test: it will not be sure any more.
_FIRST, _BATCH, _ENOUGH = 99, 4000, 10
_SEED = 20180215


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of level.

    Attributes
    ----------
    place : first job of the new level.
    begin, end : first job of the level before, and the job after the last of the new level.
    before, after : medians.
    p : of no change between its neighbours.
    tested : (int, int)
        First job, and the one after the last, of the test of `p`: the neighbours as ruptures placed them.
    """

    place: int
    begin: int
    end: int
    before: float
    after: float
    p: float
    tested: tuple[int, int]

    @property
    def ratio(self) -> float:
        """Median after over median before; NaN if that was 0."""
        return self.after / self.before if self.before else float("nan")


def _cusum(values: Numbers, least: int) -> Numbers:
    """Return the largest standardised CUSUM along the last axis, over places with `least` values on both sides."""
    count = values.shape[-1]
    at = np.arange(least, count - least + 1)
    sums = np.cumsum(values - values.mean(axis=-1, keepdims=True), axis=-1)[..., at - 1]
    out: Numbers = np.max(np.abs(sums) / np.sqrt(at * (count - at) / count), axis=-1)
    return out


def _p_value(values: Numbers, least: int, orders: int = _ORDERS, enough: int = _ENOUGH) -> float:
    """Return the probability of so large a CUSUM in a random order of the values.

    The order that was seen counts as one of them (Phipson and Smyth, 2010). A test whose p-value is far from small ends
    when `enough` orders were as large (Besag and Clifford, 1991). This is SciPy's ``permutation_test`` of pairings,
    whose loop over the orders in Python would be most of the time of a report.
    """
    random = np.random.default_rng(_SEED)
    seen = _cusum(values, least) - 1e-12
    larger = made = 0
    while made < orders and larger < enough:
        count = min(orders - made, _BATCH if made else _FIRST)
        tried = random.permuted(np.tile(values, (count, 1)), axis=1)
        larger += int(np.count_nonzero(_cusum(tried, least) >= seen))
        made += count
    return (1 + larger) / (1 + made)


def _test(ranks: Numbers, least: int, dependence: float, orders: int = _ORDERS) -> float:
    """Return the p-value of no change in ranks that depend on those before them; 1 if there is no place for one."""
    left = whitened(ranks, dependence)
    sides = least - (len(ranks) - len(left))  # the first rank has none before it
    return _p_value(left, sides, orders) if len(left) >= 2 * sides > 0 else 1.0


def _needed(level: float) -> int:
    """Return how many random orders resolve p-values down to a level."""
    return min(max(_ORDERS, math.ceil(1 / level)), _MOST_ORDERS)


def smallest_p(level: float) -> float:
    """Return the smallest p-value that a test for a level can have."""
    return 1 / (1 + _needed(level))


def breaks(values: Numbers, *, least: int = 7, dependence: float = 0.0) -> list[int]:
    """Return the places where the ranks of a series change, by ruptures alone, not tested.

    Raises
    ------
    AnalyticsError
        ruptures is not installed.
    """
    if len(values) < 2 * least or np.ptp(values) == 0:
        return []
    ranks = ranked(values)
    # Schwarz's criterion: a change has two parameters, place and level, and ranks are scaled to a variance of 1.
    penalty = 2 * np.log(len(values)) * penalty_factor(ranks, dependence)
    with needing("analytics", "finding change points"):
        import ruptures
    found = ruptures.KernelCPD(kernel="linear", min_size=least).fit(ranks).predict(pen=penalty)
    return [int(place) for place in found[:-1]]


def change_points(
    values: Numbers, *, least: int = 7, level: float = 0.01, step: float = 0.05, dependence: float | None = None
) -> list[Change]:
    """Return the changes of level of a series.

    Parameters
    ----------
    values : numpy.ndarray, shape (jobs,)
        Known values by time.
    least : jobs that a level has at least.
    level : largest p-value of a change.
    step : smallest change of the median that counts, as a share of the larger one.
    dependence : of a value on the one before it, 0 to 0.9. Default: estimated from this series alone.

    Raises
    ------
    AnalyticsError
        ruptures is not installed.
    """
    dependence = dependences([values])[0] if dependence is None else dependence
    found = breaks(values, least=least, dependence=dependence)
    if not found:
        return []
    ranks = ranked(values)
    places = [0, *found, len(values)]
    known: dict[tuple[int, int], float] = {}
    while len(places) > 2:
        tests = {}
        for at in range(1, len(places) - 1):
            begin, place, end = places[at - 1 : at + 2]
            if (begin, end) not in known:
                known[begin, end] = _test(ranks[begin:end], least, dependence, _needed(level))
            tests[at] = _change(values, begin, place, end, known[begin, end])
        weakest = max(tests, key=lambda at: (_small(tests[at], step), tests[at].p))
        if tests[weakest].p <= level and not _small(tests[weakest], step):
            return _placed(values, [tests[at] for at in sorted(tests)], least)
        del places[weakest]
    return []


def whole(values: Numbers, *, least: int = 7, dependence: float = 0.0) -> float:
    """Return the p-value of no change at any place of a series; 1 if it is too short or constant."""
    return _test(ranked(values), least, dependence) if len(values) >= 2 * least and np.ptp(values) > 0 else 1.0


def finer(values: Numbers, change: Change, *, level: float, least: int = 7, dependence: float = 0.0) -> Change:
    """Return a change with a p-value of enough random orders to be below a level, as far as those are not too many."""
    part = ranked(values)[change.tested[0] : change.tested[1]]
    return dataclasses.replace(change, p=_test(part, least, dependence, _needed(level)))


def _placed(values: Numbers, changes: list[Change], least: int) -> list[Change]:
    """Return the changes at their best places, the levels between them as long as before or at least `least`."""
    places = [0, *(change.place for change in changes), len(values)]
    for at in range(1, len(places) - 1):
        begin, place, end = places[at - 1 : at + 2]
        near = range(max(begin + least, place - least), min(end - least, place + least) + 1)
        places[at] = min(near, key=lambda k: (_deviation(values[begin:k]) + _deviation(values[k:end]), abs(k - place)))
    return [
        _change(values, begin, place, end, change.p, change.tested)
        for change, begin, place, end in zip(changes, places, places[1:], places[2:], strict=False)
    ]


def _deviation(values: Numbers) -> float:
    return float(np.abs(values - np.median(values)).sum())


def _change(
    values: Numbers, begin: int, place: int, end: int, p: float, tested: tuple[int, int] | None = None
) -> Change:
    return Change(
        place=place,
        begin=begin,
        end=end,
        before=float(np.median(values[begin:place])),
        after=float(np.median(values[place:end])),
        p=p,
        tested=tested or (begin, end),
    )


def _small(change: Change, step: float) -> bool:
    larger = max(abs(change.before), abs(change.after))
    return abs(change.after - change.before) <= step * larger


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
    """Return the variance of a sum over the series, over that of independent ranks; 1 or more."""
    if not phi or len(ranks) < _LEAST:
        return 1.0
    # Without the largest difference: where values hardly vary but for one step, that is all of the sum.
    squares = np.sort((ranks[1:] - ranks[:-1]) ** 2)[:-1]
    within = float(np.mean(squares)) / 2 / (1 - phi)
    return max(1.0, within * (1 + phi) / (1 - phi))


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
