"""Base class of policies: one class has the name, decision, simulation and documentation of a policy.

Algorithm.  A policy is asked with jobs and a machine (`allocate`), or with many sets of jobs at once (`simulate`),
            which asks `allocate` set by set where the class has no faster way. A `Formula` is a number for each job
            from the sizes of all jobs; it is written once, for arrays, and both ways use it.
Guarantees. Where a formula rounds up, jobs may together exceed the pool, and share I/O nodes then
            (``Allocation.is_within_pool``). `simulate` finds the numbers that `allocate` finds (tested).
Source.     Section 3.2 of the arbitration paper.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from mpiio_ext.delegates.arbitration.formulas import fitted, options
from mpiio_ext.delegates.arbitration.jobs import Allocation, Grant, Job, Machine
from mpiio_ext.delegates.arbitration.sets import Sets
from mpiio_ext.errors import ArgumentError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Policy(ABC):
    """A rule that decides how many I/O nodes each job gets.

    Attributes
    ----------
    name : as in the paper, in capitals
    rule : I/O nodes of a job, for the table of docs/explanation/arbitration.md
    exceeds : when all together may exceed the pool, for the same table
    reallocates : running jobs may get another number when others come or go
    asks_curves : without the curve of a job it gets a default
    asks_system : the compute nodes of the whole machine matter
    colour, marker, line : in figures, as `mpiio_ext.common.plots.Look` has them
    order : place in tables and figures
    """

    name: ClassVar[str]
    rule: ClassVar[str]
    exceeds: ClassVar[str] = "never"
    reallocates: ClassVar[bool] = True
    asks_curves: ClassVar[bool] = False
    asks_system: ClassVar[bool] = False
    colour: ClassVar[str] = "series2"
    marker: ClassVar[str] = "x"
    line: ClassVar[str] = "-"
    order: ClassVar[int] = 100

    @abstractmethod
    def allocate(self, jobs: Sequence[Job], machine: Machine) -> Allocation:
        """Decide.

        Raises
        ------
        ArgumentError
            Two jobs of one name.
        CurveError
            A job can use no number of I/O nodes.
        InfeasibleError
            There is no allocation within the pool (MCKP).
        """

    def simulate(self, sets: Sets) -> tuple[Floats, Ints | None]:
        """Decide for many sets of jobs and sizes of the pool; every measured number of I/O nodes can be used.

        Returns
        -------
        aggregate bandwidth in MB/s and I/O nodes that are given, both (sets, pools); None = not counted
        """
        shape = (len(sets.members), len(sets.pools))
        bandwidth, given = np.empty(shape), np.empty(shape, np.int64)
        for row in range(shape[0]):
            jobs = sets.jobs(row)
            for column, pool in enumerate(sets.pools.tolist()):
                most = int(sets.data.counts[-1])
                found = self.allocate(
                    jobs, Machine(io_nodes=pool, compute_nodes=sets.system_nodes, divisible=False, most=most or None)
                )
                bandwidth[row, column], given[row, column] = found.bandwidth, found.io_nodes
        return bandwidth, given


def check_jobs(jobs: Sequence[Job]) -> None:
    """Refuse two jobs of one name."""
    names = [job.name for job in jobs]
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise ArgumentError(f"two jobs are called {twice[0]!r}: names must be unique within a decision")


def grant_of(job: Job, io_nodes: int) -> Grant:
    """Return a grant with the bandwidth that the job's curve promises."""
    return Grant(io_nodes=io_nodes, bandwidth=None if job.curve is None else job.curve.bandwidth(io_nodes))


class Sizes(NamedTuple):
    """The arguments of formulas.

    Attributes
    ----------
    compute_nodes, processes : of the jobs, (jobs,) or (sets, jobs)
    io_nodes : in the pool
    total : compute nodes of the system, one number or (sets, 1)
    """

    compute_nodes: Ints
    processes: Ints
    io_nodes: int
    total: int | Ints


class Formula(Policy):
    """A policy that is a formula of sizes.

    Attributes
    ----------
    limited : no job gets more than the pool has
    """

    limited: ClassVar[bool] = True

    @abstractmethod
    def wanted(self, sizes: Sizes) -> Ints:
        """Return the number of each job, before it is fitted to the options of the job; as `sizes.compute_nodes`."""

    def allocate(self, jobs: Sequence[Job], machine: Machine) -> Allocation:
        """Decide; see :class:`Policy`."""
        check_jobs(jobs)
        nodes = np.array([job.compute_nodes for job in jobs], np.int64)
        total = int(nodes.sum()) if machine.compute_nodes is None else machine.compute_nodes
        wanted = self.wanted(Sizes(nodes, np.array([job.processes for job in jobs], np.int64), machine.io_nodes, total))
        grants = {
            job.name: grant_of(job, fitted(count, options(job, machine, limited=self.limited)))
            for job, count in zip(jobs, wanted.tolist(), strict=True)
        }
        return Allocation(policy=self.name, grants=grants, pool=machine.io_nodes)

    def simulate(self, sets: Sets) -> tuple[Floats, Ints]:
        """Decide for all sets at once; see :class:`Policy`."""
        columns = []
        for pool in sets.pools.tolist():
            wanted = self.wanted(Sizes(sets.compute_nodes, sets.processes, pool, sets.total))
            columns.append(sets.reached(sets.fitted_places(wanted, pool if self.limited else None)))
        bandwidth, given = zip(*columns, strict=True)
        return np.stack(bandwidth, axis=1), np.stack(given, axis=1)
