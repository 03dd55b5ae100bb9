"""Sets of jobs drawn at random, every policy, every size of the pool: Figures 2 and 3 and the text of Section 3.2.

Problem.    10,000 sets of 16 patterns, 9 or more pool sizes, 7 policies; as Python objects that would take an hour.
Algorithm.  Arrays over sets: the policies' formulas are a few array operations for each pool size; MCKP is one dynamic
            programming for each set, whose last row holds the best value of every pool size at once
            (mpiio_ext.delegates.arbitration.solver.profiles).
Guarantees. The same numbers as the policies' own `allocate` (tested); the same seed gives the same result. Sets are
            drawn with replacement, also within a set. STATIC's C is the largest number of compute nodes that a set can
            have, unless another one is given, or each set's own.
Source.     Sections 3.1 and 3.2 of the arbitration paper; options are the measured numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from mpiio_ext.delegates.arbitration.curves import Curve
from mpiio_ext.delegates.arbitration.pattern import Pattern
from mpiio_ext.delegates.arbitration.registry import POLICIES
from mpiio_ext.delegates.arbitration.solver import profiles
from mpiio_ext.errors import ArgumentError

__all__ = ["Catalogue", "Simulation", "best_option_counts", "catalogue", "simulate"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: Two aggregate bandwidths are the same when they differ by less than this part: sums in different orders.
_SAME = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """Patterns that sets are drawn from.

    Attributes
    ----------
    names : of the patterns
    counts : (options,) numbers of I/O nodes, ascending from 0 or more, that every pattern has
    bandwidth : (patterns, options) MB/s
    compute_nodes, processes : (patterns,)
    """

    names: tuple[str, ...]
    counts: Ints
    bandwidth: Floats
    compute_nodes: Ints
    processes: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """What the policies reach.

    Attributes
    ----------
    seed, apps, statistic : as asked for
    compute_nodes : STATIC's C; None = the compute nodes of each set
    pools : (pools,) I/O nodes
    bandwidth : policy -> (sets, pools) aggregate bandwidth, MB/s
    given : policy -> (sets, pools) I/O nodes given; MCKP and ORACLE: see `meets_oracle`
    set_nodes : (sets,) compute nodes of each set
    meets_oracle : (sets,) the smallest pool with which MCKP reaches ORACLE
    """

    seed: int
    apps: int
    statistic: str
    compute_nodes: int | None
    pools: Ints
    bandwidth: Mapping[str, Floats]
    given: Mapping[str, Ints]
    set_nodes: Ints
    meets_oracle: Ints

    def ratio(self, policy: str, other: str) -> Floats:
        """Return bandwidth of one policy over another's, (sets, pools)."""
        return self.bandwidth[policy] / self.bandwidth[other]


def catalogue(curves: Mapping[Pattern, Curve], *, statistic: Literal["mean", "max"] = "mean") -> Catalogue:
    """Return the patterns of curves that have the same numbers of I/O nodes.

    Raises
    ------
    ArgumentError
        There are fewer than one, or the curves have no number in common with all others.
    """
    if not curves:
        raise ArgumentError("there is no curve to simulate with")
    counts = sorted(set.intersection(*(set(curve.counts) for curve in curves.values())))
    if not counts:
        raise ArgumentError("the curves have no number of I/O nodes in common")
    value = [[curve.points[c].best if statistic == "max" else curve.points[c].mean for c in counts]
             for curve in curves.values()]
    return Catalogue(
        names=tuple(pattern.name for pattern in curves), counts=np.array(counts), bandwidth=np.array(value),
        compute_nodes=np.array([pattern.compute_nodes for pattern in curves]),
        processes=np.array([pattern.processes for pattern in curves]),
    )


def best_option_counts(data: Catalogue) -> dict[int, int]:
    """Return, for each number of I/O nodes, of how many patterns it is the best (the smallest of several)."""
    best = data.counts[data.bandwidth.argmax(axis=1)]
    return {int(count): int((best == count).sum()) for count in data.counts}


def _fitted(data: Catalogue, wanted: Ints, limit: int) -> Ints:
    """Return places in `counts`: the largest number that is not above the wanted one and the pool; else the first."""
    places: Ints = np.maximum(np.searchsorted(data.counts, np.minimum(wanted, limit), side="right") - 1, 0)
    return places


def _wanted(policy: str, data: Catalogue, members: Ints, pool: int, total: int | Ints) -> Ints:
    """Return the numbers of a policy's formula, (sets, apps)."""
    nodes = data.compute_nodes[members]
    if policy == "zero":
        return np.zeros_like(nodes)
    if policy == "one":
        return np.ones_like(nodes)
    if policy == "static":
        return -(-nodes * pool // total)
    size = nodes if policy == "size" else data.processes[members]
    whole = size.sum(axis=1, keepdims=True)
    shares: Ints = (2 * pool * size + whole) // (2 * whole)
    return shares


def simulate(
    data: Catalogue, *, pools: Sequence[int], sets: int = 10_000, apps: int = 16, seed: int = 0,
    policies: Sequence[str] = tuple(POLICIES), compute_nodes: int | Literal["set"] | None = None,
    statistic: str = "mean",
) -> Simulation:
    """Draw sets of patterns and apply policies to them.

    Parameters
    ----------
    pools : numbers of I/O nodes, each >= 0
    sets, apps : how many sets of how many patterns
    policies : names of `POLICIES`; mckp and oracle are always there
    compute_nodes : of the system, for STATIC; "set" = those of the set; None = apps x the largest pattern

    Raises
    ------
    ArgumentError
        No set, no pattern in a set, no pool, or an unknown policy.
    """
    unknown = [name for name in policies if name not in POLICIES]
    if unknown or sets < 1 or apps < 1 or not pools or min(pools) < 0:
        raise ArgumentError(f"there is no policy {unknown[0]!r}: choose from {', '.join(POLICIES)}" if unknown else
                            "sets, apps and the number of pools must be 1 or more, and a pool 0 or more")
    members = np.random.default_rng(seed).integers(0, len(data.names), (sets, apps))
    set_nodes = data.compute_nodes[members].sum(axis=1)
    system = apps * int(data.compute_nodes.max()) if compute_nodes is None else compute_nodes
    total = set_nodes[:, None] if system == "set" else system
    sizes = np.array(sorted(set(pools)))
    rows = data.bandwidth[members]
    best_places = data.bandwidth.argmax(axis=1)
    oracle = np.take_along_axis(rows, best_places[members][..., None], 2)[..., 0].sum(axis=1)
    enough = int(max(sizes[-1], apps * data.counts[-1]))
    first = np.arange(len(data.names) + 1) * data.counts.size
    profile = profiles(first, np.tile(data.counts, len(data.names)), data.bandwidth.ravel(), members, enough)
    bandwidth: dict[str, Floats] = {}
    given: dict[str, Ints] = {}
    for policy in policies:
        if policy in ("mckp", "oracle"):
            continue
        reached, used = np.empty((sets, sizes.size)), np.empty((sets, sizes.size), np.int64)
        for k, pool in enumerate(sizes.tolist()):
            wanted = _wanted(policy, data, members, pool, total)
            places = _fitted(data, wanted, pool if policy != "one" else int(data.counts[-1]))
            reached[:, k] = np.take_along_axis(rows, places[..., None], 2)[..., 0].sum(axis=1)
            used[:, k] = data.counts[places].sum(axis=1)
        bandwidth[policy], given[policy] = reached, used
    bandwidth["oracle"] = np.repeat(oracle[:, None], sizes.size, 1)
    bandwidth["mckp"] = profile[:, sizes]
    meets = (profile >= oracle[:, None] * (1 - _SAME)).argmax(axis=1)
    return Simulation(seed=seed, apps=apps, statistic=statistic, pools=sizes, bandwidth=bandwidth, given=given,
                      compute_nodes=None if system == "set" else system, set_nodes=set_nodes, meets_oracle=meets)
