"""Policies on sets of jobs drawn at random, with every size of the pool: Figures 2 and 3 and the text of Section 3.2.

Algorithm.  Every policy simulates itself (:meth:`mpiio_ext.delegates.arbitration.rules.base.Policy.simulate`).
            ORACLE, and the knapsack's best for every size of the pool, are what they are compared with.
Guarantees. The same numbers as the policies' own `allocate` (tested); the same seed gives the same result. STATIC's C
            is the largest number of compute nodes that a set can have, unless another one is given, or each set's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mpiio_ext.common.shown import Shown
from mpiio_ext.delegates.arbitration.rules import policy, policy_classes
from mpiio_ext.delegates.arbitration.sets import Catalogue, Sets
from mpiio_ext.errors import ArgumentError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: Two aggregate bandwidths are the same when they differ by less than this part: sums in different orders.
_SAME = 1e-9


@dataclass(frozen=True, kw_only=True, repr=False)
class Simulation(Shown):
    """The results of the policies.

    Attributes
    ----------
    seed, apps, statistic : as asked for
    compute_nodes : STATIC's C; None = the compute nodes of each set
    pools : (pools,) I/O nodes
    too_small : pools that were asked for and are left out: no set of `apps` jobs can run with them
    bandwidth : policy -> (sets, pools) aggregate bandwidth, MB/s
    given : policy -> (sets, pools) I/O nodes given; MCKP and ORACLE: see `meets_oracle`
    set_nodes : (sets,) compute nodes of each set
    meets_oracle : (sets,) the smallest pool with which MCKP reaches ORACLE
    best_counts : of the patterns, see :class:`mpiio_ext.delegates.arbitration.sets.Catalogue`
    """

    seed: int
    apps: int
    statistic: str
    compute_nodes: int | None
    pools: Ints
    too_small: tuple[int, ...]
    bandwidth: Mapping[str, Floats]
    given: Mapping[str, Ints]
    set_nodes: Ints
    meets_oracle: Ints
    best_counts: Mapping[int, int]

    def ratio(self, policy: str, other: str) -> Floats:
        """Return bandwidth of one policy over another's, (sets, pools)."""
        return self.bandwidth[policy] / self.bandwidth[other]

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each policy and size of the pool, over the sets."""
        return [
            {
                "policy": name.upper(),
                "io_nodes": pool,
                **{f"{key}_mb_per_s": value for key, value in _spread(values[:, column]).items()},
                "sets_beyond_the_pool": None
                if name not in self.given
                else int((self.given[name][:, column] > pool).sum()),
            }
            for name, values in self.bandwidth.items()
            for column, pool in enumerate(self.pools.tolist())
        ]

    def document(self) -> dict[str, Any]:
        """Return the results as plain data; bandwidths in MB/s, gains as ratios."""
        document: dict[str, Any] = {
            "what": "arbitration simulation",
            "units": {"bandwidth": "MB/s (10^6 bytes)", "gains": "ratio"},
            "sets": len(self.set_nodes),
            "apps": self.apps,
            "seed": self.seed,
            "statistic": self.statistic,
            "system_compute_nodes": self.compute_nodes,
            "pools": self.pools.tolist(),
            "pools_too_small": list(self.too_small),
            "best_option_counts_of_maxima": {str(count): number for count, number in self.best_counts.items()},
            "set_compute_nodes": _spread(self.set_nodes),
            "mckp_meets_oracle_io_nodes": _spread(self.meets_oracle),
            "bandwidth": {
                name: [_spread(values[:, k]) for k in range(len(self.pools))] for name, values in self.bandwidth.items()
            },
            "sets_beyond_the_pool": {
                name: (given > self.pools).sum(axis=0).tolist() for name, given in self.given.items()
            },
            "gains": {},
        }
        if "zero" in self.bandwidth:
            document["gains"]["oracle_over_zero"] = _spread(self.ratio("oracle", "zero")[:, 0])
            if "one" in self.bandwidth:
                document["gains"]["one_over_zero"] = _spread(self.ratio("one", "zero")[:, 0])
        if "static" in self.bandwidth:
            ratio = self.ratio("mckp", "static")
            document["gains"]["mckp_over_static"] = [_spread(ratio[:, k]) for k in range(len(self.pools))]
            fair = self.given["static"] <= self.pools
            below = ratio < 1 - 1e-9
            document["sets_where_mckp_is_below_static_within_the_pool"] = int((fair & below).sum())
            document["sets_where_mckp_is_below_static_beyond_the_pool"] = int((~fair & below).sum())
        return document

    def lines(self) -> list[str]:
        """Return the statements of Section 3.2 about a simulation, in sentences, with the paper's figures."""
        document = self.document()
        counts = ", ".join(f"{n}: {k}" for n, k in document["best_option_counts_of_maxima"].items())
        lines = [
            f"patterns by best number of I/O nodes (largest repetition): {counts} (paper: 0: 62, 1: 12, 2: 83, "
            "4: 15, 8: 17)"
        ]
        nodes = document["set_compute_nodes"]
        lines.append(
            f"compute nodes of a set: {nodes['min']:g}, median {nodes['median']:g}, {nodes['max']:g} (paper: "
            f"88, 256, 512); STATIC's system has {document['system_compute_nodes'] or 'those of the set'}"
        )
        gains = document["gains"]
        if "oracle_over_zero" in gains:
            each = {key: 100 * (value - 1) for key, value in gains["oracle_over_zero"].items()}
            lines.append(
                f"ORACLE over ZERO: {each['min']:+.2f} % to {each['max']:+.2f} %, median "
                f"{each['median']:+.2f} % (paper: +0.83, +121.68, +25.63)"
            )
        if "one_over_zero" in gains:
            lines.append(f"ONE: median slowdown {100 * (1 - gains['one_over_zero']['median']):.2f} % (paper: 82.11)")
        if self.too_small:
            lines.append(
                f"left out: pools of {', '.join(map(str, self.too_small))} I/O nodes, with which {self.apps} jobs of "
                "these curves cannot run at once"
            )
        meets = document["mckp_meets_oracle_io_nodes"]
        lines.append(
            f"MCKP meets ORACLE with {meets['median']:g} I/O nodes in the median set, {meets['max']:g} in all "
            "(paper: 56)"
        )
        if "mckp_over_static" in gains:
            pairs = list(zip(document["pools"], gains["mckp_over_static"], strict=True))
            lines += _gain_lines(dict(pairs))
            below = document["sets_where_mckp_is_below_static_within_the_pool"]
            given = {
                pool: number
                for pool, number in zip(document["pools"], document["sets_beyond_the_pool"]["static"], strict=True)
                if number
            }
            within = document["sets"] * len(pairs) - sum(given.values())
            lines.append(f"MCKP below STATIC: in {below} of the {within:,} cases where STATIC stays within the pool")
            if given:
                lines.append(
                    f"STATIC gives more I/O nodes than there are in {sum(given.values()):,} cases, of the "
                    f"{document['sets']:,} sets: "
                    + ", ".join(f"{number:,} with {pool}" for pool, number in given.items())
                    + "; MCKP below STATIC in "
                    f"{document['sets_where_mckp_is_below_static_beyond_the_pool']:,} of them"
                )
        return lines


def _gain_lines(gains: Mapping[int, Mapping[str, float]]) -> list[str]:
    """Return the statements of Section 3.2 about MCKP over STATIC, for the simulated sizes of the pool."""
    most = max(gains, key=lambda pool: gains[pool]["median"])
    given = {pool: each for pool, each in gains.items() if pool > 0}
    lines = [
        f"MCKP over STATIC: largest median {gains[most]['median']:.2f}× with {most} I/O nodes (paper: 5.11× with 24)"
    ]
    if 24 in gains:
        lines.append(
            "MCKP over STATIC with 24: {min:.2f}×, median {median:.2f}×, {max:.2f}× (paper: 1.03, 5.11, "
            "15.06)".format_map(gains[24])
        )
    if 56 in gains:
        each = {key: 100 * (value - 1) for key, value in gains[56].items()}
        lines.append(
            "MCKP over STATIC with 56: {min:+.2f} %, median {median:+.2f} %, {max:+.2f} % (paper: +4.08, "
            "+211.38, +739.22)".format_map(each)
        )
    if 64 in gains and 128 in gains:
        lines.append(
            f"MCKP over STATIC, medians with 64 and 128: {gains[64]['median']:.2f}× and "
            f"{gains[128]['median']:.2f}× (paper: 2.7 to 1.6)"
        )
    if given:
        mean = sum(each["mean"] for each in given.values()) / len(given)
        largest = max(each["max"] for each in given.values())
        lines.append(f"MCKP over STATIC, all pools but 0: mean {mean:.2f}×, largest {largest:.2f}× (paper: 2.6, 23.75)")
    return lines


def _spread(values: Any) -> dict[str, float]:
    return {
        "min": float(np.min(values)),
        "median": float(np.median(values)),
        "mean": float(np.mean(values)),
        "max": float(np.max(values)),
    }


def simulate(
    data: Catalogue,
    *,
    pools: Sequence[int],
    sets: int = 10_000,
    apps: int = 16,
    seed: int = 0,
    policies: Sequence[str] | None = None,
    compute_nodes: int | Literal["set"] | None = None,
    statistic: str = "mean",
) -> Simulation:
    """Draw sets of patterns and apply policies to them.

    Parameters
    ----------
    pools : numbers of I/O nodes, each >= 0
    sets, apps : how many sets of how many patterns
    policies : names; None = all. mckp and oracle are always there
    compute_nodes : of the system, for STATIC; "set" = those of the set; None = apps x the largest pattern

    Raises
    ------
    ArgumentError
        No set, no pattern in a set, no pool, none in which the jobs of a set can run at once, or an unknown policy.
    """
    if sets < 1 or apps < 1 or not pools or min(pools) < 0:
        raise ArgumentError("sets, apps and the number of pools must be 1 or more, and a pool 0 or more")
    least = apps * int(data.counts[0])
    enough = [pool for pool in pools if pool >= least]
    if not enough:
        raise ArgumentError(f"{apps} jobs of these curves need {least} I/O nodes at least, and no pool has so many")
    members = np.random.default_rng(seed).integers(0, len(data.names), (sets, apps))
    system = apps * int(data.compute_nodes.max()) if compute_nodes is None else compute_nodes
    drawn = Sets(data, members, np.array(enough), None if system == "set" else system)
    names = [name.lower() for name in (policy_classes() if policies is None else policies)]
    found = {
        name: policy(name).simulate(drawn)
        for name in [*(name for name in names if name not in ("oracle", "mckp")), "oracle", "mckp"]
    }
    oracle = found["oracle"][0][:, :1]
    return Simulation(
        seed=seed,
        apps=apps,
        statistic=statistic,
        compute_nodes=drawn.system_nodes,
        pools=drawn.pools,
        too_small=tuple(sorted(set(pools) - set(enough))),
        bandwidth={name: bandwidth for name, (bandwidth, _) in found.items()},
        given={name: given for name, (_, given) in found.items() if given is not None},
        set_nodes=drawn.compute_nodes.sum(axis=1),
        best_counts=data.best_counts,
        meets_oracle=(drawn.profile >= oracle * (1 - _SAME)).argmax(axis=1),
    )
