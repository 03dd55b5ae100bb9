"""Input and output of a policy: jobs, the machine, an allocation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mpiio_ext.common.shown import Shown
from mpiio_ext.delegates.arbitration.curves import Curve
from mpiio_ext.errors import ArgumentError


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job that is running or about to.

    Attributes
    ----------
    name : unique among the jobs of one decision; ties are decided in the order of names
    compute_nodes, processes : its size
    curve : its bandwidth by I/O nodes; None = nothing is known, the default of the system is taken
    weight : what a MB/s of it counts for the policy MCKP
    current : I/O nodes that it has now; None = it is about to start
    """

    name: str
    compute_nodes: int
    processes: int
    curve: Curve | None = None
    weight: float = 1.0
    current: int | None = None

    def __post_init__(self) -> None:
        if self.compute_nodes < 1 or self.processes < 1:
            raise ArgumentError(f"job {self.name!r}: compute_nodes and processes must be 1 or more")
        if not 0 <= self.weight < float("inf"):
            raise ArgumentError(f"job {self.name!r}: weight must be a finite number >= 0, not {self.weight}")
        if self.current is not None and self.current < 0:
            raise ArgumentError(f"job {self.name!r}: current must be >= 0, not {self.current}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The I/O nodes to be given, and the limits for a job.

    Attributes
    ----------
    io_nodes : in the pool
    compute_nodes : of the whole system, running jobs or not; only STATIC asks for it. None = those of the jobs
    most : I/O nodes that one job may get; None = no limit
    direct : a job may use the file system without I/O nodes (0)
    divisible : the number must divide the job's compute nodes (Section 3.1: to balance the load)
    counts : numbers that may be given; None = those that the job's curve has, or, without a curve, any
    """

    io_nodes: int
    compute_nodes: int | None = None
    most: int | None = None
    direct: bool = True
    divisible: bool = True
    counts: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.io_nodes < 0:
            raise ArgumentError(f"io_nodes must be >= 0, not {self.io_nodes}")
        if self.compute_nodes is not None and self.compute_nodes < 1:
            raise ArgumentError(f"compute_nodes must be 1 or more, not {self.compute_nodes}")
        if self.most is not None and self.most < 1:
            raise ArgumentError(f"most must be 1 or more, not {self.most}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The I/O nodes of one job.

    Attributes
    ----------
    io_nodes : of its own; 0 = none: direct access, or the shared node
    bandwidth : expected, MB/s; None = nothing is known of the job
    shared : the job uses the system-wide shared I/O node
    """

    io_nodes: int
    bandwidth: float | None
    shared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Allocation(Shown):
    """The answer of a policy.

    Attributes
    ----------
    policy : its name
    grants : job -> what it gets
    pool : I/O nodes there are to give
    bound : MB/s that no allocation exceeds, in the policy's own (weighted) values, as long as jobs without a curve
        lack no more than they do here; None = the policy knows none
    value : of this allocation in the same values, jobs without a curve left out; None as well
    notes : what the policy had to do besides, as "floor lowered to 0.3"
    """

    policy: str
    grants: Mapping[str, Grant]
    pool: int
    bound: float | None = None
    value: float | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def io_nodes(self) -> int:
        """I/O nodes given, the shared one included."""
        return sum(grant.io_nodes for grant in self.grants.values()) + any(g.shared for g in self.grants.values())

    @property
    def bandwidth(self) -> float:
        """Aggregate bandwidth in MB/s (equation 2) of the jobs of which one is known."""
        return sum(grant.bandwidth for grant in self.grants.values() if grant.bandwidth is not None)

    @property
    def is_within_pool(self) -> bool:
        """False where a policy gives more than there is, so that jobs share: STATIC and others round up."""
        return self.io_nodes <= self.pool

    def lines(self) -> list[str]:
        """Return a line for each job, one for all, and the notes."""
        lines = [
            f"{job}: {'shared' if grant.shared else grant.io_nodes}"
            + (", bandwidth not known" if grant.bandwidth is None else f", {grant.bandwidth:.1f} MB/s")
            for job, grant in self.grants.items()
        ]
        lines.append(
            f"{self.policy}: {self.io_nodes} of {self.pool} I/O nodes, {self.bandwidth:.1f} MB/s"
            + ("" if self.is_within_pool else "; more than there are: jobs share I/O nodes")
        )
        return [*lines, *self.notes]

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each job."""
        return [
            {"job": name, "io_nodes": grant.io_nodes, "bandwidth_mb_per_s": grant.bandwidth, "shared": grant.shared}
            for name, grant in self.grants.items()
        ]

    def document(self) -> dict[str, Any]:
        """Return the result as plain data; bandwidths in MB/s, null if unknown."""
        return {
            "what": "arbitration allocation",
            "units": {"bandwidth": "MB/s (10^6 bytes)"},
            "policy": self.policy,
            "pool": self.pool,
            "io_nodes": self.io_nodes,
            "within_pool": self.is_within_pool,
            "bandwidth": self.bandwidth,
            "value": self.value,
            "bound": self.bound,
            "notes": list(self.notes),
            "jobs": {
                name: {"io_nodes": grant.io_nodes, "bandwidth": grant.bandwidth, "shared": grant.shared}
                for name, grant in self.grants.items()
            },
        }
