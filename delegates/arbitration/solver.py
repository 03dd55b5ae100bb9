"""The exact multiple-choice knapsack of csrc/tools/arbitration, seen from Python.

One class is a job, one option a number of I/O nodes (`weight`) and what it is worth (`value`); exactly one option of
each class is chosen, weights stay within the capacity, and the sum of values is the largest. The algorithm and its
guarantees stand in csrc/tools/arbitration/mpiox_mckp.h: among the best choices it takes one of least total weight;
among those, going through the classes from the last to the first, each takes its lightest option that leaves a best
choice to the classes before it. The result therefore depends on the classes and the order of their keys only.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mpiio_ext._tools import ffi, lib
from mpiio_ext.delegates.arbitration.errors import InfeasibleError
from mpiio_ext.errors import ArgumentError, MpiioExtError

__all__ = ["MAX_CAPACITY", "Solution", "Solver", "profiles", "solve", "solve_arrays"]

#: Largest capacity, as in csrc/tools/arbitration/mpiox_mckp_table.h.
MAX_CAPACITY = 2**24

_E_NOMEM, _E_ARG, _E_FULL, _INFEASIBLE = -1, -2, -7, 1


class Solution(NamedTuple):
    """A best choice.

    Attributes
    ----------
    value : sum of the values of the chosen options
    bound : of the linear relaxation: no choice is worth more, value <= bound
    weight : sum of the weights of the chosen options
    choices : (classes,) int32, the chosen option of each class, in the order of keys
    core : classes that the dynamic programming decided; the others were proven beforehand
    operations : of the dynamic programming, one option at one capacity each
    """

    value: float
    bound: float
    weight: int
    choices: npt.NDArray[np.int32]
    core: int
    operations: int


def _capacity(capacity: int) -> int:
    if not isinstance(capacity, int | np.integer) or isinstance(capacity, bool) or not 0 <= capacity <= MAX_CAPACITY:
        raise ArgumentError(f"capacity must be a whole number from 0 to {MAX_CAPACITY}, not {capacity!r}")
    return int(capacity)


def _failed(rc: int, what: str) -> MpiioExtError:
    if rc == _INFEASIBLE:
        return InfeasibleError("the lightest options of all classes together exceed the capacity, or a class has none "
                               "that fits: raise the capacity, or offer options of weight 0")
    if rc == _E_NOMEM:
        return MpiioExtError("not enough memory for the tables of the knapsack")
    if rc == _E_FULL:
        return ArgumentError(f"{what}: more than 2^20 classes or 2^28 options")
    return ArgumentError(f"{what}: give at least one option, weights that are >= 0, finite values up to 1e300 and a "
                         "key that is not there yet")


class Solver:
    """Classes that come and go; a solution after a change costs a fraction of a new one.

    Parameters
    ----------
    capacity : 0 to `MAX_CAPACITY`

    Not for use by several threads at once.
    """

    __slots__ = ("_choices", "_counts", "_handle", "_n", "_pointer", "_reals")

    def __init__(self, capacity: int) -> None:
        out = ffi.new("mpiio_ext_mckp **")
        rc = lib.mpiio_ext_mckp_create(_capacity(capacity), out)
        if rc != 0:
            raise _failed(rc, "capacity")
        self._handle: Any = ffi.gc(out[0], lib.mpiio_ext_mckp_free)
        self._n = 0
        self._reals = ffi.new("double[2]")
        self._counts = ffi.new("int64_t[4]")
        self._room(16)

    def _room(self, n: int) -> None:
        self._choices = np.empty(n, np.int32)
        self._pointer = ffi.from_buffer("int32_t[]", self._choices)

    def __len__(self) -> int:
        return self._n

    @property
    def keys(self) -> npt.NDArray[np.int64]:
        """The keys of the classes, ascending."""
        keys = np.empty(self._n, np.int64)
        lib.mpiio_ext_mckp_keys(self._handle, ffi.from_buffer("int64_t[]", keys), self._n)
        return keys

    def set_capacity(self, capacity: int) -> None:
        """Change the capacity; the next solution is a new one."""
        lib.mpiio_ext_mckp_set_capacity(self._handle, _capacity(capacity))

    def add(self, key: int, weights: npt.ArrayLike, values: npt.ArrayLike) -> None:
        """Add a class.

        Raises
        ------
        ArgumentError
            No option, a negative weight, a value that is not finite, or a key that is there.
        """
        w, p = np.ascontiguousarray(weights, np.int32), np.ascontiguousarray(values, np.float64)
        if w.shape != p.shape or w.ndim != 1:
            raise ArgumentError(f"class {key}: one weight and one value an option, not {w.shape} and {p.shape}")
        rc = lib.mpiio_ext_mckp_add(self._handle, key, w.size, ffi.from_buffer("int32_t[]", w),
                                    ffi.from_buffer("double[]", p))
        if rc != 0:
            raise _failed(rc, f"class {key}")
        self._n += 1
        if self._n > self._choices.size:
            self._room(2 * self._n)

    def remove(self, key: int) -> None:
        """Take a class out.

        Raises
        ------
        ArgumentError
            There is no class of that key.
        """
        if lib.mpiio_ext_mckp_remove(self._handle, key) != 0:
            raise ArgumentError(f"there is no class {key}")
        self._n -= 1

    def _empty(self) -> None:
        """Take all classes out; the memory stays."""
        lib.mpiio_ext_mckp_empty(self._handle)
        self._n = 0

    def _add_arrays(
        self, first: npt.NDArray[np.int64], weights: npt.NDArray[np.int32], values: npt.NDArray[np.float64]
    ) -> None:
        """Add classes 0.. to an empty solver."""
        n = first.size - 1
        refused = ffi.new("int64_t *")
        rc = lib.mpiio_ext_mckp_add_all(self._handle, n, ffi.from_buffer("int64_t[]", first),
                                        ffi.from_buffer("int32_t[]", weights), ffi.from_buffer("double[]", values),
                                        refused)
        if rc != 0:
            raise _failed(rc, f"class {refused[0]}")
        self._n = n
        if n > self._choices.size:
            self._room(n)

    def solve(self) -> Solution:
        """Return the best choice for the classes that are there.

        Raises
        ------
        InfeasibleError
            There is no choice within the capacity.
        """
        rc = lib.mpiio_ext_mckp_solve(self._handle, self._pointer, self._choices.size, self._reals, self._counts)
        if rc != 0:
            raise _failed(rc, "the knapsack")
        value, bound = self._reals
        weight, n, core, operations = self._counts
        return Solution(value=value, bound=bound, weight=weight, choices=self._choices[:n].copy(), core=core,
                        operations=operations)


class _Kept(threading.local):
    """The solver of a thread: fresh memory for many options takes the kernel longer than the solution takes."""

    solver: Solver | None = None


_kept = _Kept()
#: Options up to which the memory of a solver is kept: some 80 bytes each.
_MOST_KEPT = 2**19


def _solver_for(capacity: int, options: int) -> Solver:
    """Return a solver without classes; one that is kept where the options are not too many."""
    if options > _MOST_KEPT:
        return Solver(capacity)
    if _kept.solver is None:
        _kept.solver = Solver(capacity)
    _kept.solver._empty()
    _kept.solver.set_capacity(capacity)
    return _kept.solver


def solve_arrays(first: npt.ArrayLike, weights: npt.ArrayLike, values: npt.ArrayLike, capacity: int) -> Solution:
    """Return the best choice of classes that are given as arrays.

    Parameters
    ----------
    first : (classes + 1,); the options of class i are [first[i], first[i + 1])
    weights, values : (options,)
    capacity : 0 to `MAX_CAPACITY`

    Raises
    ------
    ArgumentError
        Arrays that do not fit together, or bad options: see :meth:`Solver.add`.
    InfeasibleError
        There is no choice within the capacity.
    """
    f = np.ascontiguousarray(first, np.int64)
    w, p = np.ascontiguousarray(weights, np.int32), np.ascontiguousarray(values, np.float64)
    if f.ndim != 1 or f.size < 1 or w.ndim != 1 or w.shape != p.shape:
        raise ArgumentError("first, weights and values must be lists of numbers, the last two of one length")
    if f[0] != 0 or f[-1] != w.size or (f.size > 2 and (f[1:] < f[:-1]).any()):
        raise ArgumentError(f"first must ascend from 0 to the number of options, {w.size}")
    solver = _solver_for(capacity, w.size)
    solver._add_arrays(f, w, p)
    return solver.solve()


def solve(classes: Sequence[Sequence[tuple[int, float]]], capacity: int) -> Solution:
    """Return the best choice of classes that are given as lists of (weight, value); see :func:`solve_arrays`."""
    first = np.cumsum([0, *(len(options) for options in classes)])
    flat = [option for options in classes for option in options]
    return solve_arrays(first, [w for w, _ in flat], [p for _, p in flat], capacity)


def profiles(
    first: npt.ArrayLike, weights: npt.ArrayLike, values: npt.ArrayLike, members: npt.ArrayLike, capacity: int
) -> npt.NDArray[np.float64]:
    """Return the best value at every capacity up to `capacity` of many sets of classes.

    Parameters
    ----------
    first, weights, values : a catalogue of classes as in :func:`solve_arrays`; weights ascend within a class
    members : (sets, n), the classes of each set
    capacity : the largest one

    Returns
    -------
    (sets, capacity + 1) float64
        -inf where the lightest options do not fit.

    Raises
    ------
    ArgumentError
        Weights that do not ascend or are negative, an empty class, or a member that is no class.
    """
    f, m = np.ascontiguousarray(first, np.int64), np.ascontiguousarray(members, np.int32)
    w, p = np.ascontiguousarray(weights, np.int32), np.ascontiguousarray(values, np.float64)
    if m.ndim != 2 or f.ndim != 1 or f.size < 1 or w.shape != p.shape or f[0] != 0 or f[-1] != w.size:
        raise ArgumentError("members must be a matrix, and first must ascend from 0 to the number of options")
    best = np.empty((m.shape[0], _capacity(capacity) + 1))
    rc = lib.mpiio_ext_mckp_profiles(
        f.size - 1, ffi.from_buffer("int64_t[]", f), ffi.from_buffer("int32_t[]", w), ffi.from_buffer("double[]", p),
        m.shape[0], m.shape[1], ffi.from_buffer("int32_t[]", m), capacity, ffi.from_buffer("double[]", best),
    )  # fmt: skip
    if rc == _E_NOMEM:
        raise _failed(rc, "profiles")
    if rc != 0:
        raise ArgumentError("classes must not be empty, their weights must ascend from 0 or more, and members must be "
                            f"from 0 to {f.size - 2}")
    return best
