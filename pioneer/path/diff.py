"""The common part of two sequences of operations: the fewest differences, in C (csrc/tools/pioneer/mpiox_diff.h)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpiio_ext._tools import ffi, lib
from mpiio_ext.errors import ArgumentError

#: Differences between two points that are known to correspond, after which the next point is guessed.
EFFORT = 2048

_E_NOMEM = -1


@dataclass(frozen=True, slots=True)
class Difference:
    """Which elements of two sequences correspond.

    Attributes
    ----------
    common_first, common_second : bool, as long as the sequences. The k-th True of one corresponds to the k-th True of
        the other.
    minimal : no smaller number of differences exists. False: perhaps one does.
    """

    common_first: NDArray[np.bool_]
    common_second: NDArray[np.bool_]
    minimal: bool

    @property
    def distance(self) -> int:
        """Number of elements without a counterpart."""
        return int(np.count_nonzero(~self.common_first) + np.count_nonzero(~self.common_second))


def compare(first: NDArray[np.int32], second: NDArray[np.int32], *, effort: int = EFFORT) -> Difference:
    """Return the pairs that correspond in two sequences of numbers from 0 on.

    Parameters
    ----------
    first, second : int32, one dimension.
    effort : how far the smallest set is looked for; 0: without a limit, however long that takes.

    Raises
    ------
    ArgumentError
        A number is negative.
    MemoryError
        16 bytes for each element are needed.
    """
    first = np.ascontiguousarray(first, np.int32)
    second = np.ascontiguousarray(second, np.int32)
    symbols = 1 + max(int(first.max(initial=-1)), int(second.max(initial=-1)))
    common = np.zeros(first.size, np.uint8), np.zeros(second.size, np.uint8)
    a, b = (
        ffi.new(
            "mpiio_ext_diff_sequence *",
            {
                "elements": ffi.cast("int32_t *", elements.ctypes.data),
                "count": elements.size,
                "common": ffi.cast("unsigned char *", marks.ctypes.data),
            },
        )
        for elements, marks in zip((first, second), common, strict=True)
    )
    minimal = ffi.new("int *")
    code = lib.mpiio_ext_diff(a, b, symbols, effort, minimal)
    if code == _E_NOMEM:
        raise MemoryError(f"comparing sequences of {first.size} and {second.size} operations")
    if code != 0:
        raise ArgumentError("sequences to be compared consist of numbers from 0 on")
    return Difference(common[0].astype(bool), common[1].astype(bool), bool(minimal[0]))
