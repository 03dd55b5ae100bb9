"""The policy MCKP: the exact allocation with the largest aggregate bandwidth, and the needs of a real system.

Problem.    Equation 1 of the arbitration paper: one option of each job, I/O nodes within the pool, the largest sum of
            bandwidths. Taken literally it starves jobs, trusts single measurements and moves jobs for nothing.
Algorithm.  Each setting changes options or values of the knapsack (mpiio_ext.delegates.arbitration.knapsack), which
            stays exact:
            weights       a job's values are multiplied by its weight;
            confidence    values are lower confidence bounds of the means instead of the means;
            floor         options below `floor` x the best that the job could have alone in this pool are left out.
                          Where the floors of all jobs do not fit together, the largest common one that does is taken;
            migration     options other than the present one lose the share migration_cost_s / horizon_s of their value:
                          the time in which a job that is moved does no I/O, of the time until the next decision;
            hysteresis    as many running jobs as possible keep their I/O nodes, unless the whole allocation gains
                          more than this share; with 0 they keep it if moving them would gain nothing;
            shared node   one I/O node is shared by all jobs that ask: an option of weight 0 and the value of one node
                          divided by the number of jobs (Section 3.1); the other nodes are given out.
            A job without a curve gets the system's default (STATIC's number, Section 3.1); smaller numbers only where
            the pool would not be enough otherwise, as few I/O nodes less as possible. What it lacks counts in the
            choice, not in `Allocation.value` and `bound`. A note gives the bandwidth that the other jobs could gain if
            such jobs got as little as they can use.
Guarantees. Never more I/O nodes than the pool. The allocation depends on the jobs, not on the order in which they are
            given: ties are decided in the order of names, as mpiio_ext.delegates.arbitration.solver says. With no
            setting it is the paper's MCKP.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mpiio_ext.delegates.arbitration.classes import Classes, Worth, classes_of
from mpiio_ext.delegates.arbitration.formulas import options
from mpiio_ext.delegates.arbitration.jobs import Allocation, Grant, Job, Machine
from mpiio_ext.delegates.arbitration.rules.base import Floats, Ints, Policy, check_jobs
from mpiio_ext.delegates.arbitration.sets import Sets
from mpiio_ext.delegates.arbitration.solver import solve_arrays
from mpiio_ext.errors import ArgumentError

#: Sums that differ by less than this part are the same: they were added in another order.
_SAME = 1e-9
#: Jobs that a note names at most.
_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Mckp(Policy):
    """The largest aggregate bandwidth within the pool.

    Attributes
    ----------
    confidence : one-sided confidence of the values, 0.5 to below 1; None = means
    floor : share of the best bandwidth that it could have alone, which every job gets at least; 0 to 1
    migration_cost_s : time without I/O of a job that gets another number, s
    horizon_s : expected time until the next decision, s
    hysteresis : relative gain of the whole allocation below which running jobs keep their I/O nodes
    shared_node : one I/O node of the pool is shared
    """

    confidence: float | None = None
    floor: float = 0.0
    migration_cost_s: float = 0.0
    horizon_s: float = 600.0
    hysteresis: float = 0.0
    shared_node: bool = False

    name, order = "MCKP", 6
    rule = "the largest sum of bandwidths within the pool"
    asks_curves = True
    colour, marker = "series0", "^"

    def __post_init__(self) -> None:
        if self.confidence is not None and not 0.5 <= self.confidence < 1:
            raise ArgumentError(f"confidence must be from 0.5 to below 1, not {self.confidence}")
        if not 0 <= self.floor <= 1:
            raise ArgumentError(f"floor must be from 0 to 1, not {self.floor}")
        if not 0 <= self.migration_cost_s <= self.horizon_s or not 0 < self.horizon_s < float("inf"):
            raise ArgumentError(
                "migration_cost_s must be from 0 to horizon_s, and horizon_s a finite time above 0: "
                f"not {self.migration_cost_s} and {self.horizon_s}"
            )
        if not 0 <= self.hysteresis < float("inf"):
            raise ArgumentError(f"hysteresis must be a finite number >= 0, not {self.hysteresis}")

    def allocate(self, jobs: Sequence[Job], machine: Machine) -> Allocation:
        """Decide; see :class:`Policy`."""
        check_jobs(jobs)
        if not jobs:
            return Allocation(policy=self.name, grants={}, pool=machine.io_nodes, value=0.0, bound=0.0)
        ordered = sorted(jobs, key=lambda job: job.name)
        shared = self.shared_node and machine.io_nodes > 0
        pool = machine.io_nodes - shared
        worth = Worth(confidence=self.confidence, moved=1 - self.migration_cost_s / self.horizon_s)
        classes, floor = _with_floor(
            classes_of(ordered, machine, pool, worth, shared=shared), self.floor, len(jobs), pool
        )
        notes: list[str] = []
        if floor < self.floor:
            notes.append(f"floor lowered from {self.floor:g} to {floor:.3g}: the pool is too small for more")
        current = np.array([-1 if job.current is None else job.current for job in ordered], np.int64)
        best = _solve(classes, current, pool)
        chosen = best.chosen if self.hysteresis == 0 else self._kept(classes, current, best.chosen, pool, notes)
        found = classes.where(chosen)
        notes += _note_of_unknown(ordered, machine, classes, found, current, pool)
        grants = dict(zip((job.name for job in ordered), _grants(found), strict=True))
        return Allocation(
            policy=self.name,
            grants={job.name: grants[job.name] for job in jobs},
            pool=machine.io_nodes,
            value=float(found.worth.sum()),
            bound=_bound(classes, current, best, pool),
            notes=tuple(notes),
        )

    def simulate(self, sets: Sets) -> tuple[Floats, None]:
        """Decide for all sets at once, without settings: one table of the knapsack has every size of the pool.

        Raises
        ------
        ArgumentError
            There are settings.
        """
        if self != Mckp():
            raise ArgumentError("MCKP is simulated without settings")
        return sets.profile[:, sets.pools], None

    def _kept(self, classes: Classes, current: Ints, best: Ints, pool: int, notes: list[str]) -> Ints:
        """Return the I/O nodes of running jobs: their present ones, unless the best choice gains enough."""
        if _moves(classes.where(best), current) == 0:
            return best
        kept = _keep_most(classes, current, pool)
        new, old = classes.where(best), classes.where(kept)
        base = float(old.worth.sum())
        lacks_more = old.penalty.sum() > new.penalty.sum() * (1 + _SAME)
        gains = float(new.worth.sum()) - base > self.hysteresis * base
        if lacks_more or gains or _moves(old, current) == _moves(new, current):
            return best
        notes.append(f"running jobs keep their I/O nodes: moving them gains less than {self.hysteresis:.1%}")
        return kept


@dataclass(frozen=True, slots=True)
class _Choice:
    """A choice of the knapsack: the place of each job's option, and a bound for all choices."""

    chosen: Ints
    bound: float


def _solve(classes: Classes, current: Ints, pool: int, bonus: float | None = None) -> _Choice:
    """Return the best choice.

    Present I/O nodes of running jobs get a bonus; without a setting it is so small that it decides only between choices
    that are otherwise the same.
    """
    first = classes.first(current.size)
    values = classes.worth - classes.penalty
    if (current >= 0).any():
        bonus = _SAME / 64 * float(np.abs(values).max()) if bonus is None else bonus
        values = values + bonus * (classes.counts == current[classes.of])
    solution = solve_arrays(first, classes.counts.astype(np.int32), values, pool)
    return _Choice(first[:-1] + solution.choices, solution.bound)


def _moves(chosen: Classes, current: Ints) -> int:
    """Return how many running jobs get another number than they have."""
    return int(((current >= 0) & (chosen.counts != current)).sum())


def _keep_most(classes: Classes, current: Ints, pool: int) -> Ints:
    """Return the best choice of those that leave the most running jobs as they are."""
    keeps = classes.counts == current[classes.of]
    can = np.zeros(current.size, np.bool_)
    can[classes.of[keeps]] = True
    places = np.flatnonzero(keeps | ~can[classes.of])
    limited = classes.where(places)
    least = np.minimum.reduceat(limited.counts, limited.first(current.size)[:-1])
    if least.sum() > pool:  # not all can: another knapsack selects those that can
        bonus = 1.0 + 2 * float(np.abs(classes.worth).sum() + np.abs(classes.penalty).sum())
        can &= classes.counts[_solve(classes, current, pool, bonus).chosen] == current
        places = np.flatnonzero(keeps & can[classes.of] | ~can[classes.of])
        limited = classes.where(places)
    chosen: Ints = places[_solve(limited, current, pool).chosen]
    return chosen


def _bound(classes: Classes, current: Ints, best: _Choice, pool: int) -> float:
    """Return a bound for all allocations that leave unknown jobs as much as the best one does."""
    if not classes.penalty.any():
        return best.bound
    is_best = np.zeros(classes.of.size, np.bool_)
    is_best[best.chosen] = True
    fixed = classes.where(is_best | ~np.isnan(classes.bandwidth))
    return _solve(fixed, current, pool).bound + float(fixed.penalty.sum())


def _note_of_unknown(
    jobs: Sequence[Job], machine: Machine, classes: Classes, found: Classes, current: Ints, pool: int
) -> list[str]:
    """Return the loss of the others due to jobs without a curve, which come first; [] without a loss."""
    unknown = [place for place, job in enumerate(jobs) if job.curve is None]
    known = np.array([place for place, job in enumerate(jobs) if job.curve is not None], np.int64)
    if not unknown or not known.size:
        return []
    given = int(found.counts[unknown].sum())
    least = sum(options(jobs[place], machine)[0] for place in unknown)
    if given <= least:
        return []
    others = classes.where(np.isin(classes.of, known))
    others = replace(others, of=np.searchsorted(known, others.of))
    best = others.where(_solve(others, current[known], pool - least).chosen)
    had = float(found.worth[known].sum())
    lost = float(best.worth.sum()) - had
    if lost <= _SAME * max(had, 1.0):
        return []
    names = ", ".join(jobs[place].name for place in unknown[:_NAMED]) + (", ..." if len(unknown) > _NAMED else "")
    return [
        f"jobs without a curve get {given} I/O nodes, the default ({names}): with {least} for them the others "
        f"would have {lost:.1f} MB/s more than {had:.1f}"
    ]


def _grants(found: Classes) -> list[Grant]:
    return [
        Grant(io_nodes=count, bandwidth=None if bandwidth != bandwidth else bandwidth, shared=shared)
        for count, bandwidth, shared in zip(
            found.counts.tolist(), found.bandwidth.tolist(), found.shared.tolist(), strict=True
        )
    ]


def _shares(classes: Classes, first: Ints) -> Floats:
    """Return the part of its job's best value that each option gives; 1 if the job is unknown."""
    bandwidth = np.where(np.isnan(classes.bandwidth), 0.0, classes.bandwidth)
    best = np.maximum.reduceat(bandwidth, first[:-1])[classes.of]
    return np.where(best > 0, bandwidth / np.where(best > 0, best, 1.0), 1.0)


def _with_floor(classes: Classes, floor: float, jobs: int, pool: int) -> tuple[Classes, float]:
    """Leave out options below the floor; return the others and the floor, the largest up to `floor` that fits."""
    if floor == 0:
        return classes, 0.0
    first = classes.first(jobs)
    shares = _shares(classes, first)

    def fits(level: float) -> bool:
        counts = np.where(shares >= level, classes.counts, np.iinfo(np.int64).max // (jobs + 1))
        return bool(np.minimum.reduceat(counts, first[:-1]).sum() <= pool)

    levels = sorted({floor, *(value for value in shares.tolist() if value < floor)})
    if not fits(levels[0]):
        return classes, 0.0  # no allocation at all: the solver reports it
    low, high = 0, len(levels) - 1
    while low < high:  # the higher the floor, the more is needed: monotone
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(levels[middle]) else (low, middle - 1)
    return classes.where(shares >= levels[low]), levels[low]
