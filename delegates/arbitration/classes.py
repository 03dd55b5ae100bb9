"""From jobs to the classes of the knapsack, as arrays: all options of all jobs in one row each.

Problem.    The service decides whenever a job comes or goes; an object for each option of each of hundreds of jobs
            takes a hundred times as long as the knapsack itself.
Algorithm.  The columns of all curves are put behind each other; what a job can use, and what that is worth, are a few
            operations on whole arrays. Jobs without any measurement get one option, the system's default, if all
            defaults fit. Otherwise they get all smaller numbers as well; each I/O node that they lack costs a penalty
            above all that the others could gain. So an unknown job is cut last, and as little as possible.
Guarantees. Options of a job ascend by I/O nodes and are those of `formulas.options`. Penalties are kept apart from what
            options are worth.
Source.     Section 3.1 of the arbitration paper: options, default, shared node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt

from mpiio_ext.delegates.arbitration.curves import Columns
from mpiio_ext.delegates.arbitration.errors import InfeasibleError
from mpiio_ext.delegates.arbitration.formulas import fitted, options, static_share
from mpiio_ext.delegates.arbitration.jobs import Job, Machine

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Classes:
    """Options, those of job 0 first; each attribute has one element an option.

    Attributes
    ----------
    of : the job, by its place
    counts : I/O nodes of its own
    bandwidth : that the job expects, MB/s; NaN = nothing is known
    worth : what that counts for the policy
    penalty : for I/O nodes that an unknown job lacks
    shared : the job uses the shared I/O node
    """

    of: Ints
    counts: Ints
    bandwidth: Floats
    worth: Floats
    penalty: Floats
    shared: npt.NDArray[np.bool_]

    def where(self, chosen: npt.NDArray[np.bool_] | Ints) -> Classes:
        """Return some of the options, by a mask or by places."""
        return Classes(**{each.name: getattr(self, each.name)[chosen] for each in fields(self)})

    def first(self, jobs: int) -> Ints:
        """Return the place of each job's first option, and the number of options behind them."""
        return np.searchsorted(self.of, np.arange(jobs + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """How bandwidths become values: see :class:`mpiio_ext.delegates.arbitration.rules.mckp.Mckp`.

    Attributes
    ----------
    confidence : of lower bounds; None = means
    moved : what is left of the value of a number that the job does not have now, 0 to 1
    """

    confidence: float | None
    moved: float


def _columns(job: Job, machine: Machine) -> Columns:
    """Return the numbers that a job may be given, as far as its curve covers them."""
    assert job.curve is not None
    known = job.curve.columns()
    if machine.counts is None:
        return known
    counts = np.array(sorted({c for c in machine.counts if known.counts[0] <= c <= known.counts[-1]}), dtype=np.int64)
    places = np.minimum(np.searchsorted(known.counts, counts), known.counts.size - 1)
    measured = known.counts[places] == counts
    return Columns(
        counts,
        np.interp(counts, known.counts, known.means),
        np.where(measured, known.errors[places], 0.0),
        known.freedom[places],
    )


def _worth(bandwidth: Floats, errors: Floats, freedom: Floats, worth: Worth) -> Floats:
    if worth.confidence is None:
        return bandwidth
    from scipy.special import stdtrit

    lower: Floats = np.maximum(bandwidth - stdtrit(freedom, worth.confidence) * errors, 0.0)
    return lower


def _known(jobs: Sequence[Job], places: Sequence[int], machine: Machine, worth: Worth) -> Classes:
    """Return all points of the curves of some of the jobs."""
    columns = [_columns(jobs[place], machine) for place in places]
    of = np.repeat(np.array(places, np.int64), [each.counts.size for each in columns])
    bandwidth = np.concatenate([each.means for each in columns])
    value = _worth(
        bandwidth,
        np.concatenate([each.errors for each in columns]),
        np.concatenate([each.freedom for each in columns]),
        worth,
    )
    return Classes(
        of=of,
        counts=np.concatenate([each.counts for each in columns]),
        bandwidth=bandwidth,
        worth=value,
        penalty=np.zeros(of.size),
        shared=np.zeros(of.size, np.bool_),
    )


def _with_shared(usable: Classes, ones: Classes, jobs: int) -> Classes:
    """Add the shared node: the value of one node (`ones`) by the number of jobs, where no direct access is better."""
    direct = np.full(jobs, -np.inf)
    direct[usable.of[usable.counts == 0]] = usable.bandwidth[usable.counts == 0]
    ones = ones.where(ones.bandwidth / jobs > direct[ones.of])
    asks = np.zeros(jobs, np.bool_)
    asks[ones.of] = True
    own = usable.where((usable.counts > 0) | ~asks[usable.of])
    shared = Classes(
        of=ones.of,
        counts=np.zeros(ones.of.size, np.int64),
        bandwidth=ones.bandwidth / jobs,
        worth=ones.worth / jobs,
        penalty=ones.penalty,
        shared=np.ones(ones.of.size, np.bool_),
    )
    return _joined([shared, own])


def _usable(classes: Classes, nodes: Ints, machine: Machine, pool: int) -> Classes:
    """Leave out numbers that a job cannot use, as `formulas.options` does."""
    limit = np.minimum(nodes if machine.most is None else machine.most, pool)
    fine = classes.counts <= (limit[classes.of] if isinstance(limit, np.ndarray) else limit)
    if machine.divisible:
        fine &= nodes[classes.of] % np.maximum(classes.counts, 1) == 0
    if not machine.direct:
        fine &= classes.counts > 0
    return classes.where(fine)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unknown:
    """Numbers that a job without a curve can use, and its default among them."""

    allowed: tuple[int, ...]
    default: int


def _unknown(
    jobs: Sequence[Job], places: Sequence[int], machine: Machine, pool: int, shared: bool
) -> dict[int, _Unknown]:
    """Return the numbers that jobs without a curve can use; jobs of one size can use the same."""
    total = machine.compute_nodes if machine.compute_nodes is not None else sum(job.compute_nodes for job in jobs)
    by_size: dict[int, _Unknown] = {}
    for place in places:
        nodes = jobs[place].compute_nodes
        if nodes in by_size:
            continue
        allowed = tuple(count for count in options(jobs[place], machine) if count <= pool)
        default = fitted(static_share(nodes, machine.io_nodes, total), allowed) if allowed else 0
        shares = shared and (not allowed or allowed[0] > 0)
        by_size[nodes] = _Unknown(allowed=(0, *allowed) if shares else allowed, default=default)
    return {place: by_size[jobs[place].compute_nodes] for place in places}


def _options_of_unknown(each: _Unknown, cut: float, *, all_fit: bool) -> list[tuple[int, float]]:
    """Return (I/O nodes, penalty) of a job without a curve."""
    if all_fit:
        return [(count, 0.0) for count in each.allowed if count == each.default]
    return [(count, cut * (each.default - count)) for count in each.allowed if count <= each.default]


def _of_unknown(found: dict[int, _Unknown], cut: float, *, shared: bool, all_fit: bool) -> Classes:
    rows = [
        (place, *option) for place, each in found.items() for option in _options_of_unknown(each, cut, all_fit=all_fit)
    ]
    counts = np.array([count for _, count, _ in rows], np.int64)
    return Classes(
        of=np.array([place for place, _, _ in rows], np.int64),
        counts=counts,
        bandwidth=np.full(len(rows), np.nan),
        worth=np.zeros(len(rows)),
        penalty=np.array([penalty for _, _, penalty in rows]),
        shared=(counts == 0) & shared,
    )


def _joined(parts: Sequence[Classes]) -> Classes:
    """Put the options of several parts together; of one job those of the first part come first."""
    if len(parts) == 1:
        return parts[0]
    joined = Classes(
        **{each.name: np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(Classes)}
    )
    return joined.where(np.argsort(joined.of, kind="stable"))


def _refuse_empty(jobs: Sequence[Job], has_option: npt.NDArray[np.bool_], machine: Machine, pool: int) -> None:
    empty = np.flatnonzero(~has_option)
    if empty.size:
        job = jobs[int(empty[0])]
        options(job, machine)  # names what is missing
        raise InfeasibleError(f"job {job.name!r}: none of its options fits a pool of {pool} I/O nodes")


def _weighted(classes: Classes, jobs: Sequence[Job], worth: Worth) -> Classes:
    """Let weights count, and the time that a move of a running job takes."""
    weights = np.array([job.weight for job in jobs])
    value = classes.worth * weights[classes.of]
    if worth.moved < 1:
        current = np.array([-1 if job.current is None else job.current for job in jobs], np.int64)[classes.of]
        value = np.where((current >= 0) & (current != classes.counts), value * worth.moved, value)
    return replace(classes, worth=value)


def classes_of(jobs: Sequence[Job], machine: Machine, pool: int, worth: Worth, *, shared: bool) -> Classes:
    """Return the options of jobs.

    Parameters
    ----------
    pool : I/O nodes that are given out, without the shared one
    shared : there is a shared one

    Raises
    ------
    CurveError
        A job can use no number of I/O nodes.
    InfeasibleError
        A job has no option that fits the pool.
    """
    nodes = np.array([job.compute_nodes for job in jobs], np.int64)
    known = [place for place, job in enumerate(jobs) if job.curve is not None]
    unknown = _unknown(jobs, [place for place, job in enumerate(jobs) if job.curve is None], machine, pool, shared)
    parts: list[Classes] = []
    if known:
        found = _known(jobs, known, machine, worth)
        usable = _usable(found, nodes, machine, pool)
        parts.append(_with_shared(usable, found.where(found.counts == 1), len(jobs)) if shared else usable)
    has_option = np.zeros(len(jobs), np.bool_)
    for part in parts:
        has_option[part.of] = True
    has_option[[place for place, each in unknown.items() if each.allowed]] = True
    _refuse_empty(jobs, has_option, machine, pool)
    classes = _weighted(_joined(parts), jobs, worth) if parts else None
    if not unknown:
        assert classes is not None
        return classes
    need = sum(each.default for each in unknown.values())
    cut = 1.0
    if classes is not None:
        starts = np.flatnonzero(np.diff(classes.of, prepend=-1))
        need += int(np.minimum.reduceat(classes.counts, starts).sum())
        cut += 2 * float(np.maximum.reduceat(classes.worth, starts).sum())
    rest = _of_unknown(unknown, cut, shared=shared and not machine.direct, all_fit=need <= pool)
    return rest if classes is None else _joined([classes, rest])
