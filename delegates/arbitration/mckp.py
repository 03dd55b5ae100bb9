"""The policy MCKP: the allocation with the largest aggregate bandwidth, exactly; and what a real system needs besides.

Problem.    Equation 1 of the arbitration paper: one option of each job, I/O nodes within the pool, the largest sum of
            bandwidths. Taken literally it starves jobs, trusts single measurements and moves jobs for nothing.
Algorithm.  Each setting changes options or values of the knapsack (csrc/arbitration/mpiox_mckp.h), which stays exact:
            weights       a job's values are multiplied by its weight;
            confidence    values are lower confidence bounds of the means instead of the means;
            floor         options below `floor` x the best that the job could have alone in this pool are left out.
                          Where the floors of all jobs do not fit together, the largest common one that does is taken;
            migration     options other than the present one lose the share migration_cost_s / horizon_s of their value:
                          the time in which a job that is moved does no I/O, of the time until the next decision;
            hysteresis    running jobs keep what they have unless the whole allocation gains more than this share;
            shared node   one I/O node is shared by all jobs that ask: an option of weight 0 and the value of one node
                          divided by the number of jobs (Section 3.1); the other nodes are given out.
            A job without a curve gets the system's default (STATIC's number, Section 3.1); smaller numbers only where
            the pool would not be enough otherwise, the fewer jobs and nodes the better.
Guarantees. Never more I/O nodes than the pool. The allocation depends on the jobs, not on the order in which they are
            given: ties are decided in the order of names, as mpiio_ext.delegates.arbitration.solver says. With no
            setting it is the paper's MCKP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mpiio_ext.delegates.arbitration.errors import InfeasibleError
from mpiio_ext.delegates.arbitration.formulas import default_count, options
from mpiio_ext.delegates.arbitration.jobs import Allocation, Grant, Job, Machine
from mpiio_ext.delegates.arbitration.policies import check_jobs, grant_of
from mpiio_ext.delegates.arbitration.solver import Solution, solve
from mpiio_ext.errors import ArgumentError

__all__ = ["Mckp"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Option:
    """One choice of one job: what it costs, what it counts, and what the job gets then."""

    io_nodes: int
    value: float
    grant: Grant


@dataclass(frozen=True, slots=True, kw_only=True)
class Mckp:
    """The largest aggregate bandwidth within the pool.

    Attributes
    ----------
    confidence : one-sided confidence of the values, 0.5 to below 1; None = means
    floor : share of the best bandwidth that it could have alone, which every job gets at least; 0 to 1
    migration_cost_s : time without I/O of a job that gets another number, s
    horizon_s : expected time until the next decision, s
    hysteresis : relative gain of the whole allocation below which running jobs keep what they have
    shared_node : one I/O node of the pool is shared
    """

    confidence: float | None = None
    floor: float = 0.0
    migration_cost_s: float = 0.0
    horizon_s: float = 600.0
    hysteresis: float = 0.0
    shared_node: bool = False

    name = "MCKP"
    reallocates = True

    def __post_init__(self) -> None:
        if self.confidence is not None and not 0.5 <= self.confidence < 1:
            raise ArgumentError(f"confidence must be from 0.5 to below 1, not {self.confidence}")
        if not 0 <= self.floor <= 1:
            raise ArgumentError(f"floor must be from 0 to 1, not {self.floor}")
        if not 0 <= self.migration_cost_s <= self.horizon_s or not 0 < self.horizon_s < float("inf"):
            raise ArgumentError("migration_cost_s must be from 0 to horizon_s, and horizon_s a finite time above 0: "
                                f"not {self.migration_cost_s} and {self.horizon_s}")
        if not 0 <= self.hysteresis < float("inf"):
            raise ArgumentError(f"hysteresis must be a finite number >= 0, not {self.hysteresis}")

    def allocate(self, jobs: Sequence[Job], machine: Machine) -> Allocation:
        """Decide; see :class:`mpiio_ext.delegates.arbitration.policies.Policy`."""
        check_jobs(jobs)
        ordered = sorted(jobs, key=lambda job: job.name)
        shared = self.shared_node and machine.io_nodes > 0
        pool = machine.io_nodes - shared
        classes = self._classes(ordered, machine, pool, shared)
        notes: list[str] = []
        floored, floor = _with_floor(classes, self.floor, pool)
        if floor < self.floor:
            notes.append(f"floor lowered from {self.floor:g} to {floor:.3g}: the pool is too small for more")
        chosen, solution = _choose(floored, pool)
        kept = self._kept(ordered, floored, pool)
        if kept is not None:
            kept_chosen, kept_solution = kept
            if any(new.io_nodes != old.io_nodes for new, old in zip(chosen, kept_chosen, strict=True)) and (
                solution.value <= kept_solution.value * (1 + self.hysteresis)
            ):
                chosen, solution = kept_chosen, kept_solution
                notes.append(f"running jobs keep what they have: moving them gains less than {self.hysteresis:.1%}")
        grants = {job.name: option.grant for job, option in zip(ordered, chosen, strict=True)}
        return Allocation(policy=self.name, grants={job.name: grants[job.name] for job in jobs}, pool=machine.io_nodes,
                          value=solution.value, bound=solution.bound, notes=tuple(notes))

    def _classes(self, jobs: Sequence[Job], machine: Machine, pool: int, shared: bool) -> list[list[_Option]]:
        """Return the options of every job."""
        limit = pool if machine.most is None else min(machine.most, pool)
        allowed = {job.name: [c for c in options(job, machine) if c <= limit] for job in jobs}
        classes = [self._known(job, allowed[job.name], shared, len(jobs)) if job.curve is not None else []
                   for job in jobs]
        # More than anything that the jobs with a curve could gain: an unknown job is cut last.
        cut = 1.0 + 2 * sum(max((abs(o.value) for o in each), default=0.0) for each in classes)
        for index, job in enumerate(jobs):
            if job.curve is None:
                classes[index] = _unknown(job, jobs, machine, allowed[job.name], cut, shared)
            if not classes[index]:
                raise InfeasibleError(f"job {job.name!r}: none of its options fits a pool of {pool} I/O nodes")
        return classes

    def _known(self, job: Job, allowed: Sequence[int], shared: bool, running: int) -> list[_Option]:
        assert job.curve is not None
        found = [self._option(job, count, grant_of(job, count)) for count in allowed]
        if shared and 1 in job.curve.counts:
            bandwidth = job.curve.bandwidth(1) / running
            if all(option.io_nodes > 0 or option.grant.bandwidth is None or option.grant.bandwidth < bandwidth
                   for option in found):
                grant = Grant(io_nodes=0, bandwidth=bandwidth, shared=True)
                found = [self._option(job, 0, grant), *(option for option in found if option.io_nodes > 0)]
        return found

    def _option(self, job: Job, count: int, grant: Grant) -> _Option:
        assert job.curve is not None and grant.bandwidth is not None
        value = grant.bandwidth
        if self.confidence is not None and not grant.shared and count in job.curve.points:
            value = job.curve.lower_bound(count, self.confidence)
        elif self.confidence is not None and grant.shared and job.curve.bandwidth(1) > 0:
            value *= job.curve.lower_bound(1, self.confidence) / job.curve.bandwidth(1)
        if job.current is not None and job.current != count:
            value *= 1 - self.migration_cost_s / self.horizon_s
        return _Option(io_nodes=count, value=value * job.weight, grant=grant)

    def _kept(
        self, jobs: Sequence[Job], classes: Sequence[list[_Option]], pool: int
    ) -> tuple[list[_Option], Solution] | None:
        """Return the best choice in which running jobs keep what they have; None: not asked for, or there is none."""
        if self.hysteresis == 0 or all(job.current is None for job in jobs):
            return None
        limited = [
            each if job.current is None else [option for option in each if option.io_nodes == job.current]
            for job, each in zip(jobs, classes, strict=True)
        ]
        if not all(limited):
            return None
        try:
            return _choose(limited, pool)
        except InfeasibleError:
            return None


def _unknown(
    job: Job, jobs: Sequence[Job], machine: Machine, allowed: Sequence[int], cut: float, shared: bool
) -> list[_Option]:
    """Return the options of a job of which nothing is known: the default; less counts as a loss."""
    if not allowed:
        return [_Option(io_nodes=0, value=0.0, grant=Grant(io_nodes=0, bandwidth=None, shared=True))] if shared else []
    default = default_count(job, jobs, machine, allowed)
    return [_Option(io_nodes=count, value=-cut * (default - count), grant=grant_of(job, count))
            for count in allowed if count <= default]


def _choose(classes: Sequence[Sequence[_Option]], pool: int) -> tuple[list[_Option], Solution]:
    solution = solve([[(option.io_nodes, option.value) for option in each] for each in classes], pool)
    return [each[choice] for each, choice in zip(classes, solution.choices.tolist(), strict=True)], solution


def _shares(each: Sequence[_Option]) -> Mapping[int, float]:
    """Return what each option gives of the best one, by its place; 1 where nothing is known of the job."""
    best = max((option.grant.bandwidth or 0.0) for option in each)
    return {k: 1.0 if best == 0 or o.grant.bandwidth is None else o.grant.bandwidth / best for k, o in enumerate(each)}


def _with_floor(
    classes: Sequence[list[_Option]], floor: float, pool: int
) -> tuple[list[list[_Option]], float]:
    """Leave out options below the floor; return what is left and the floor, the largest up to `floor` that fits."""
    if floor == 0:
        return list(classes), 0.0
    shares = [_shares(each) for each in classes]

    def above(level: float) -> list[list[_Option]]:
        return [[o for k, o in enumerate(each) if share[k] >= level]
                for each, share in zip(classes, shares, strict=True)]

    def fits(level: float) -> bool:
        return sum(min(option.io_nodes for option in each) for each in above(level)) <= pool

    levels = sorted({floor, *(value for share in shares for value in share.values() if value < floor)})
    if not fits(levels[0]):
        return list(classes), 0.0  # no allocation at all: the solver says so
    low, high = 0, len(levels) - 1
    while low < high:  # the higher the floor, the more is needed: monotone
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(levels[middle]) else (low, middle - 1)
    return above(levels[low]), levels[low]
