"""The sweep line over arrays: which intervals are critical, and for how long each is so by itself.

Problem. The time from a job's first access to its last one holds pauses, and files whose accesses overlap: neither the
span nor the sum of the files' times is the time that the job spends on I/O.

Algorithm. In C, ``csrc/tools/analytics/mpiox_critical_path.h``: sorted intervals are gone along once; where the
current file
ends, the line goes on with the open file that ends last. Ties are settled there, so that an answer does not depend on
the order of the input. O(n log m) for n intervals in groups of m.

Guarantees. The exclusive times of a group add up to its critical path, the time in which anything is open. No smaller
set of intervals covers it. An interval that cannot be counted has a state that says why, and no time.

Source: IOMiner, Section II-D, Algorithm 2. The paper's heap has no key; the farthest end makes the set minimal.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import numpy.typing as npt

from mpiio_ext._tools import ffi, lib
from mpiio_ext.analytics.tables.arrays import Flags, Numbers, Whole
from mpiio_ext.errors import ArgumentError

#: State of an interval that is critical; 0: others cover its time.
CRITICAL = 1

#: States of intervals that are not counted: number -> name.
NOT_COUNTED = {2: "empty", 3: "unknown", 4: "reversed", 5: "endless"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sweep:
    """The values of the sweep line for each interval, in the order of the input.

    Attributes
    ----------
    exclusive : ndarray of float64
        Length of the interval's part of the critical path, in the unit of the times; 0 unless critical.
    since : ndarray of float64 or None
        Where that part begins (NaN unless critical); it goes to the interval's end. None unless asked for.
    state : ndarray of int8
        0 covered by others, 1 critical, 2 empty (starts and ends at the same time), 3 unknown (start or end is NULL),
        4 reversed (ends before it starts), 5 endless (infinite). Only 0 and 1 are counted.
    """

    exclusive: Numbers
    since: Numbers | None
    state: npt.NDArray[np.int8]

    @functools.cached_property
    def critical(self) -> Flags:
        """Return for each interval whether it is critical."""
        return np.asarray(self.state == CRITICAL)

    @functools.cached_property
    def counted(self) -> Flags:
        """Return for each interval whether it has a time that counts."""
        return np.asarray(self.state <= CRITICAL)


def group_starts(group: Whole) -> Whole:
    """Return the index of the first element of each run of equal values; empty for no elements."""
    if len(group) == 0:
        return np.zeros(0, dtype=np.int64)
    return np.concatenate([[0], np.flatnonzero(group[1:] != group[:-1]) + 1])


def _order(group: Whole) -> Whole | None:
    """Return a stable order that puts equal groups side by side; None if they already are."""
    if bool(np.all(group[1:] >= group[:-1])):
        return None
    starts = group_starts(group)
    if len(np.unique(group[starts])) == len(starts):
        return None
    return np.argsort(group, kind="stable")


def _call(group: Whole | None, start: Numbers, end: Numbers, segments: bool) -> Sweep:
    """Run the C function on arrays whose groups stand side by side."""
    n = len(start)
    exclusive, state = np.empty(n), np.empty(n, dtype=np.int8)
    since = np.empty(n) if segments else None

    def pointer(array: npt.NDArray[np.generic] | None, kind: str) -> ffi.CData:
        return ffi.NULL if array is None else ffi.cast(kind, array.ctypes.data)

    code = lib.mpiio_ext_critical_path(
        pointer(group, "int64_t *"),
        pointer(start, "double *"),
        pointer(end, "double *"),
        n,
        pointer(exclusive, "double *"),
        pointer(since, "double *"),
        pointer(state, "int8_t *"),
    )
    if code != 0:
        raise MemoryError(f"the sweep line over {n:,} intervals: no memory; pass fewer jobs at a time")
    return Sweep(exclusive=exclusive, since=since, state=state)


def sweep(
    start: npt.ArrayLike, end: npt.ArrayLike, group: npt.ArrayLike | None = None, *, segments: bool = False
) -> Sweep:
    """Find the critical intervals of one job, or of every group, and their exclusive times.

    Parameters
    ----------
    start, end : array_like of float
        Half-open intervals, any unit of time; NaN if unknown.
    group : array_like of int, optional
        The job of each interval. In any order; sorted or grouped input is not sorted again. None: all are one job's.
    segments : bool
        Also say where each exclusive part begins.

    Returns
    -------
    Sweep

    Raises
    ------
    ArgumentError
        Arrays of different lengths.
    """
    start = np.ascontiguousarray(start, dtype=np.float64)
    end = np.ascontiguousarray(end, dtype=np.float64)
    if start.ndim != 1 or start.shape != end.shape:
        raise ArgumentError(f"start and end need the same length: {start.shape} and {end.shape}")
    if group is None:
        return _call(None, start, end, segments)
    group = np.ascontiguousarray(group, dtype=np.int64)
    if group.shape != start.shape:
        raise ArgumentError(f"group and start need the same length: {group.shape} and {start.shape}")
    order = _order(group)
    if order is None:
        return _call(group, start, end, segments)
    found = _call(group[order], start[order], end[order], segments)
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return Sweep(
        exclusive=found.exclusive[back],
        since=None if found.since is None else found.since[back],
        state=found.state[back],
    )
