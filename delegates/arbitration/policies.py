"""The policies to which MCKP is compared, behind one protocol.

ZERO and ONE give every job none or one I/O node; STATIC goes by compute nodes and the size of the system, SIZE and
PROCESS divide the pool by compute nodes or processes; ORACLE gives each job the number with the highest bandwidth,
whatever there is. Their numbers are the paper's: where it rounds up, they may together exceed the pool, and jobs share
I/O nodes then (``Allocation.is_within_pool``).

Source. Section 3.2 of the arbitration paper.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from mpiio_ext.delegates.arbitration.formulas import fitted, options, proportional, static
from mpiio_ext.delegates.arbitration.jobs import Allocation, Grant, Job, Machine
from mpiio_ext.errors import ArgumentError

__all__ = ["One", "Oracle", "Policy", "Process", "Size", "Static", "Zero", "check_jobs", "grant_of"]


@runtime_checkable
class Policy(Protocol):
    """A rule that says which job gets how many I/O nodes."""

    @property
    def name(self) -> str:
        """As in the paper, in capitals."""

    @property
    def reallocates(self) -> bool:
        """Whether running jobs may get another number when others come or go."""

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


def check_jobs(jobs: Sequence[Job]) -> None:
    """Refuse two jobs of one name."""
    names = [job.name for job in jobs]
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise ArgumentError(f"two jobs are called {twice[0]!r}: names must be unique within a decision")


def grant_of(job: Job, io_nodes: int) -> Grant:
    """Return a grant with the bandwidth that the job's curve promises."""
    return Grant(io_nodes=io_nodes, bandwidth=None if job.curve is None else job.curve.bandwidth(io_nodes))


def _each(
    name: str, jobs: Sequence[Job], machine: Machine, wanted: Callable[[Job], int], *, limited: bool = True
) -> Allocation:
    """Give each job the wanted number, fitted to its options."""
    check_jobs(jobs)
    grants = {job.name: grant_of(job, fitted(wanted(job), options(job, machine, limited=limited))) for job in jobs}
    return Allocation(policy=name, grants=grants, pool=machine.io_nodes)


@dataclass(frozen=True, slots=True)
class Zero:
    """No job gets an I/O node (its smallest option, where it must have one)."""

    name = "ZERO"
    reallocates = False

    def allocate(self, jobs: Sequence[Job], machine: Machine) -> Allocation:
        """Decide; see :class:`Policy`."""
        return _each(self.name, jobs, machine, lambda _: 0)


@dataclass(frozen=True, slots=True)
class One:
    """Every job gets one I/O node of its own, whether or not there are as many."""

    name = "ONE"
    reallocates = False

    def allocate(self, jobs: Sequence[Job], machine: Machine) -> Allocation:
        """Decide; see :class:`Policy`."""
        return _each(self.name, jobs, machine, lambda _: 1, limited=False)


@dataclass(frozen=True, slots=True)
class Static:
    """ceil(Ca / R) with R = C / F of the whole system: what machines with a forwarding layer do."""

    name = "STATIC"
    reallocates = False

    def allocate(self, jobs: Sequence[Job], machine: Machine) -> Allocation:
        """Decide; see :class:`Policy`."""
        return _each(self.name, jobs, machine, lambda job: static(job, jobs, machine))


@dataclass(frozen=True, slots=True)
class Size:
    """The pool divided by compute nodes of the running jobs."""

    name = "SIZE"
    reallocates = True

    def allocate(self, jobs: Sequence[Job], machine: Machine) -> Allocation:
        """Decide; see :class:`Policy`."""
        sizes = [job.compute_nodes for job in jobs]
        return _each(self.name, jobs, machine, lambda job: proportional(job.compute_nodes, sizes, machine.io_nodes))


@dataclass(frozen=True, slots=True)
class Process:
    """The pool divided by processes of the running jobs."""

    name = "PROCESS"
    reallocates = True

    def allocate(self, jobs: Sequence[Job], machine: Machine) -> Allocation:
        """Decide; see :class:`Policy`."""
        sizes = [job.processes for job in jobs]
        return _each(self.name, jobs, machine, lambda job: proportional(job.processes, sizes, machine.io_nodes))


@dataclass(frozen=True, slots=True)
class Oracle:
    """The best number for each job, whatever the pool: an upper bound. A job without a curve gets STATIC's number."""

    name = "ORACLE"
    reallocates = True

    def allocate(self, jobs: Sequence[Job], machine: Machine) -> Allocation:
        """Decide; see :class:`Policy`."""

        def best(job: Job) -> int:
            if job.curve is None:
                return static(job, jobs, machine)
            curve = job.curve
            return max(options(job, machine, limited=False), key=lambda count: (curve.bandwidth(count), -count))

        return _each(self.name, jobs, machine, best, limited=False)
