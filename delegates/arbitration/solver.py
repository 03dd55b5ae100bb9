"""The exact multiple-choice knapsack: jobs that come and go, validation, errors.

One class is a job. An option has a number of I/O nodes (`weight`) and their worth (`value`). Exactly one option of each
class is chosen, so that the weights stay within the capacity and the sum of values is the largest. The algorithm and
its guarantees stand in mpiio_ext.delegates.arbitration.knapsack: among the best choices it takes one of least total
weight. Among those, from the last class to the first, each class takes its lightest option that leaves a best choice to
the classes before it. The result therefore depends on the classes and the order of their keys only.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mpiio_ext.delegates.arbitration import knapsack
from mpiio_ext.delegates.arbitration.errors import InfeasibleError
from mpiio_ext.errors import ArgumentError, MpiioExtError

#: Largest capacity, number of classes and of options of all classes: a row of the table fits in memory.
MAX_CAPACITY = 2**24
_MAX_CLASSES = 2**20
_MAX_OPTIONS = 2**28
_MAX_VALUE = 1e300

_BAD_CLASS = (
    "give at least one option, weights that are >= 0, finite values up to 1e300 and a key that is not there yet"
)


class Solution(NamedTuple):
    """A best choice.

    Attributes
    ----------
    value : sum of the values of the chosen options
    bound : of the linear relaxation: no choice is worth more, value <= bound
    weight : sum of the weights of the chosen options
    choices : (classes,) int32, the chosen option of each class, in the order of keys
    core : classes that the dynamic programming decided; the others were proven beforehand
    """

    value: float
    bound: float
    weight: int
    choices: npt.NDArray[np.int32]
    core: int


def _capacity(capacity: int) -> int:
    if not isinstance(capacity, int | np.integer) or isinstance(capacity, bool) or not 0 <= capacity <= MAX_CAPACITY:
        raise ArgumentError(f"capacity must be a whole number from 0 to {MAX_CAPACITY}, not {capacity!r}")
    return int(capacity)


def _check_room(classes: int, options: int, what: str) -> None:
    if classes > _MAX_CLASSES or options > _MAX_OPTIONS:
        raise ArgumentError(f"{what}: more than 2^20 classes or 2^28 options")


def _is_bad(weights: npt.NDArray[np.int32], values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    return ~((weights >= 0) & (np.abs(values) <= _MAX_VALUE))  # not a number: neither


def _solution(
    first: npt.NDArray[np.int64], weights: npt.NDArray[np.int32], values: npt.NDArray[np.float64], capacity: int
) -> Solution:
    """Return the best choice of options that have been checked; see :func:`solve_arrays`."""
    try:
        best = knapsack.best_choice(first, weights.astype(np.int64), values, capacity)
    except MemoryError:
        raise MpiioExtError("not enough memory for the tables of the knapsack") from None
    if best is None:
        raise InfeasibleError(
            "the lightest options of all classes together exceed the capacity, or a class has none "
            "that fits: raise the capacity, or offer options of weight 0"
        )
    return Solution(*best)


class Solver:
    """Classes that come and go; every solution is a new one.

    Parameters
    ----------
    capacity : 0 to `MAX_CAPACITY`

    Not for use by several threads at once.
    """

    __slots__ = ("_capacity", "_classes", "_options")

    def __init__(self, capacity: int) -> None:
        self._capacity = _capacity(capacity)
        self._classes: dict[int, tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]] = {}
        self._options = 0

    def __len__(self) -> int:
        return len(self._classes)

    @property
    def keys(self) -> npt.NDArray[np.int64]:
        """The keys of the classes, ascending."""
        return np.array(sorted(self._classes), np.int64)

    def add(self, key: int, weights: npt.ArrayLike, values: npt.ArrayLike) -> None:
        """Add a class.

        Parameters
        ----------
        key : from -2^63 to 2^63 - 1
        weights, values : (options,); they are copied

        Raises
        ------
        ArgumentError
            No option, a negative weight, a value that is not finite, or a key that is there.
        """
        key = int(np.int64(operator.index(key)))
        w, p = np.array(weights, np.int32), np.array(values, np.float64)
        if w.shape != p.shape or w.ndim != 1:
            raise ArgumentError(f"class {key}: one weight and one value an option, not {w.shape} and {p.shape}")
        if key in self._classes or w.size == 0 or _is_bad(w, p).any():
            raise ArgumentError(f"class {key}: {_BAD_CLASS}")
        _check_room(len(self) + 1, self._options + w.size, f"class {key}")
        self._classes[key] = w, p
        self._options += w.size

    def remove(self, key: int) -> None:
        """Take a class out.

        Raises
        ------
        ArgumentError
            There is no class of that key.
        """
        if key not in self._classes:
            raise ArgumentError(f"there is no class {key}")
        self._options -= self._classes.pop(key)[0].size

    def solve(self) -> Solution:
        """Return the best choice for the classes that are there.

        Raises
        ------
        InfeasibleError
            There is no choice within the capacity.
        MpiioExtError
            There is not enough memory.
        """
        classes = [self._classes[key] for key in sorted(self._classes)]
        first = np.cumsum([0, *(w.size for w, _ in classes)])
        none = np.empty(0, np.int32), np.empty(0)
        weights, values = (np.concatenate(each) for each in zip(*(classes or [none]), strict=True))
        return _solution(first, weights, values, self._capacity)


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
    MpiioExtError
        There is not enough memory.
    """
    f = np.ascontiguousarray(first, np.int64)
    w, p = np.ascontiguousarray(weights, np.int32), np.ascontiguousarray(values, np.float64)
    if f.ndim != 1 or f.size < 1 or w.ndim != 1 or w.shape != p.shape:
        raise ArgumentError("first, weights and values must be lists of numbers, the last two of one length")
    if f[0] != 0 or f[-1] != w.size or (f.size > 2 and (f[1:] < f[:-1]).any()):
        raise ArgumentError(f"first must ascend from 0 to the number of options, {w.size}")
    capacity = _capacity(capacity)
    _check_room(f.size - 1, w.size, "the knapsack")
    bad = np.flatnonzero(_is_bad(w, p))
    refused = np.flatnonzero(np.diff(f) == 0)[:1].tolist() + (np.searchsorted(f, bad[:1], side="right") - 1).tolist()
    if refused:
        raise ArgumentError(f"class {min(refused)}: {_BAD_CLASS}")
    return _solution(f, w, p, capacity)


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
    capacity = _capacity(capacity)
    same_class = np.ones(max(w.size - 1, 0), np.bool_)
    same_class[f[1:-1] - 1] = False
    if (
        (np.diff(f) <= 0).any()
        or (w < 0).any()
        or (np.diff(w)[same_class] < 0).any()
        or (m < 0).any()
        or (m >= f.size - 1).any()
    ):
        raise ArgumentError(
            "classes must not be empty, their weights must ascend from 0 or more, and members must be "
            f"from 0 to {f.size - 2}"
        )
    try:
        return knapsack.profile_table(f, w.astype(np.int64), p, m.astype(np.int64), capacity)
    except MemoryError:
        raise MpiioExtError("not enough memory for the profiles of the knapsack") from None
