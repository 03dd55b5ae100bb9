"""When the level of a series changed: change points found by ruptures, kept where a permutation test says so.

Problem. A history of performance has steps (an upgrade, a failing part, a file system that fills), noise that is not
normal, and single slow jobs, which are no steps. How many steps there are is not known.

Algorithm. The values are replaced by their ranks, so that a slow job counts as the lowest rank and no more, and nothing
depends on the form of the distribution (Lung-Yut-Fong, Lévy-Leduc and Cappé, 2012). ruptures finds the partition whose
squared deviations from the segments' means, plus a penalty for each change, are least (PELT: Killick, Fearnhead and
Eckley, 2012; Truong, Oudre and Vayatis, 2020). Each change of it is then tested between its two neighbours: the largest
CUSUM of the ranks over all places where it could be, against that of random orders of the same values, as E-divisive
does (Matteson and James, 2014). The least sure change is taken out and its neighbours are tested anew, until all are
sure. At last each is moved by some jobs to where the values deviate least from the medians of both sides: ranks tell
that there is a change, but the lowest of the higher level is next to the highest of the lower one for them.

Guarantees. The same series gives the same changes: random orders come from a fixed seed. A change has at least
`least` jobs on either side. Without a change in a series of independent values one is found with a probability of
about `level`; values that depend on their predecessors raise it.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from mpiio_ext.analytics.errors import AnalyticsError

if TYPE_CHECKING:
    from mpiio_ext.analytics.histories.table import Floats

__all__ = ["Change", "breaks", "change_points"]

#: Random orders for a test; the smallest p-value is one in so many.
_ORDERS = 999
_SEED = 20180215


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of level.

    Attributes
    ----------
    place : int
        First job of the new level.
    begin, end : int
        First job of the level before, and the job after the last of the new level.
    before, after : float
        Medians.
    p : float
        Of no change between its neighbours.
    """

    place: int
    begin: int
    end: int
    before: float
    after: float
    p: float

    @property
    def ratio(self) -> float:
        """Median after over median before; NaN where that was 0."""
        return self.after / self.before if self.before else float("nan")


def _ruptures() -> Any:
    try:
        import ruptures
    except ImportError as error:
        raise AnalyticsError("finding change points needs ruptures: pip install 'mpiio_ext[analytics]'") from error
    return ruptures


def _cusum(values: Any, least: int) -> Any:
    """Return the largest standardised CUSUM along the last axis, over places with `least` values on both sides."""
    count = values.shape[-1]
    at = np.arange(least, count - least + 1)
    sums = np.cumsum(values - values.mean(axis=-1, keepdims=True), axis=-1)[..., at - 1]
    return np.max(np.abs(sums) / np.sqrt(at * (count - at) / count), axis=-1)


def _p_value(ranks: Floats, least: int) -> float:
    """Return the probability of so large a CUSUM in a random order of the values.

    The order that was seen counts as one of them (Phipson and Smyth, 2010). This is SciPy's ``permutation_test`` of
    pairings, whose loop over the orders in Python would be most of the time of a report.
    """
    orders = np.random.default_rng(_SEED).permuted(np.tile(ranks, (_ORDERS, 1)), axis=1)
    larger = np.count_nonzero(_cusum(orders, least) >= _cusum(ranks, least) - 1e-12)
    return (1 + float(larger)) / (1 + _ORDERS)


def breaks(values: Floats, *, least: int = 7) -> list[int]:
    """Return the places where the ranks of a series change, by ruptures alone, not tested.

    Raises
    ------
    AnalyticsError
        ruptures is not installed.
    """
    import scipy.stats

    if len(values) < 2 * least or np.ptp(values) == 0:
        return []
    ranks = scipy.stats.zscore(scipy.stats.rankdata(values))
    # Schwarz's criterion: a change has two parameters, place and level, and ranks are scaled to a variance of 1.
    found = _ruptures().KernelCPD(kernel="linear", min_size=least).fit(ranks).predict(pen=2 * np.log(len(values)))
    return [int(place) for place in found[:-1]]


def change_points(values: Floats, *, least: int = 7, level: float = 0.01, step: float = 0.05) -> list[Change]:
    """Return the changes of level of a series.

    Parameters
    ----------
    values : numpy.ndarray, shape (jobs,)
        Known values by time.
    least : int
        Jobs that a level has at least.
    level : float
        Largest p-value of a change.
    step : float
        Smallest change of the median that counts, as a share of the larger one.

    Raises
    ------
    AnalyticsError
        ruptures is not installed.
    """
    import scipy.stats

    found = breaks(values, least=least)
    if not found:
        return []
    ranks = scipy.stats.zscore(scipy.stats.rankdata(values))
    places = [0, *found, len(values)]
    known: dict[tuple[int, int], float] = {}
    while len(places) > 2:
        tests = {}
        for at in range(1, len(places) - 1):
            begin, place, end = places[at - 1 : at + 2]
            if (begin, end) not in known:
                known[begin, end] = _p_value(ranks[begin:end], least)
            tests[at] = _change(values, begin, place, end, known[begin, end])
        weakest = max(tests, key=lambda at: (_small(tests[at], step), tests[at].p))
        if tests[weakest].p <= level and not _small(tests[weakest], step):
            return _placed(values, [tests[at] for at in sorted(tests)], least)
        del places[weakest]
    return []


def _placed(values: Floats, changes: list[Change], least: int) -> list[Change]:
    """Return the changes at their best places, the levels between them as long as before or at least `least`."""
    places = [0, *(change.place for change in changes), len(values)]
    for at in range(1, len(places) - 1):
        begin, place, end = places[at - 1 : at + 2]
        near = range(max(begin + least, place - least), min(end - least, place + least) + 1)
        places[at] = min(near, key=lambda k: (_deviation(values[begin:k]) + _deviation(values[k:end]), abs(k - place)))
    return [_change(values, begin, place, end, change.p)
            for change, begin, place, end in zip(changes, places, places[1:], places[2:], strict=False)]  # fmt: skip


def _deviation(values: Floats) -> float:
    return float(np.abs(values - np.median(values)).sum())


def _change(values: Floats, begin: int, place: int, end: int, p: float) -> Change:
    return Change(place=place, begin=begin, end=end, before=float(np.median(values[begin:place])),
                  after=float(np.median(values[place:end])), p=p)  # fmt: skip


def _small(change: Change, step: float) -> bool:
    larger = max(abs(change.before), abs(change.after))
    return abs(change.after - change.before) <= step * larger
