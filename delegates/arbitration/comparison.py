"""The same jobs under several policies and sizes of the pool, for Figures 6 to 8 of the arbitration paper.

Algorithm. Each policy allocates each pool once. A job's bandwidth *alone* is the best that it has with the whole pool.

Source. Section 5.2 of the arbitration paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mpiio_ext.delegates.arbitration.errors import CurveError
from mpiio_ext.delegates.arbitration.jobs import Allocation, Job, Machine
from mpiio_ext.delegates.arbitration.rules import policy
from mpiio_ext.delegates.arbitration.rules.base import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The I/O nodes that each policy gives to each job, by size of the pool.

    Attributes
    ----------
    pools : I/O nodes
    allocations : policy -> an allocation for each pool
    alone : job -> MB/s that it has at most with each pool, without the other jobs
    """

    pools: tuple[int, ...]
    allocations: Mapping[str, tuple[Allocation, ...]]
    alone: Mapping[str, tuple[float, ...]]

    def bandwidth(self, name: str, job: str) -> list[float]:
        """Return MB/s of a job under a policy, by pool."""
        return [allocation.grants[job].bandwidth or 0.0 for allocation in self.allocations[name]]

    def shares(self, name: str, job: str) -> list[float]:
        """Return the bandwidth of a job under a policy over that alone, by pool; 1 if it has none alone."""
        return [
            own / alone if alone else 1.0 for own, alone in zip(self.bandwidth(name, job), self.alone[job], strict=True)
        ]

    def lines(self) -> list[str]:
        """Return a line for each policy and pool."""
        return [
            f"{one.policy}, {pool} I/O nodes: {one.bandwidth:,.1f} MB/s; "
            + ", ".join(f"{job} {grant.io_nodes}" for job, grant in one.grants.items())
            + ("" if one.is_within_pool else "; more than there are: jobs share I/O nodes")
            for found in self.allocations.values()
            for pool, one in zip(self.pools, found, strict=True)
        ]

    def document(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "what": "arbitration comparison",
            "units": {"bandwidth": "MB/s (10^6 bytes)"},
            "pools": self.pools,
            "alone": self.alone,
            "policies": {name: [one.document() for one in found] for name, found in self.allocations.items()},
        }


def compare(jobs: Sequence[Job], machine: Machine, pools: Sequence[int], policies: Mapping[str, Policy]) -> Comparison:
    """Give each pool to the jobs by each policy.

    Parameters
    ----------
    machine : its number of I/O nodes is not used
    pools : I/O nodes
    policies : by name

    Raises
    ------
    CurveError
        A job without a curve, or one that can use no number of I/O nodes.
    """
    if unknown := [job.name for job in jobs if job.curve is None]:
        raise CurveError(f"no bandwidth is known of {', '.join(unknown)}")
    machines = [replace(machine, io_nodes=pool) for pool in pools]
    best = policy("mckp")
    return Comparison(
        pools=tuple(pools),
        allocations={name: tuple(one.allocate(jobs, each) for each in machines) for name, one in policies.items()},
        alone={job.name: tuple(best.allocate([job], each).bandwidth for each in machines) for job in jobs},
    )
