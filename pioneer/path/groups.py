"""Subgroups of child processes with the same behaviour, found in the first part of their traces.

Problem.   The children of some programs do different things in several groups. A path needs one representative of each.
Algorithm. Bootstrap characterization (paper, section V-A): of the first tenth of each trace, the share of every
           operation, and the operation reuse distance, the number of operations between two successive ones of a kind
           (section III-A). Two children are alike when neither their shares nor the distributions of their distances
           differ by more than `TOLERANCE`; a group is who is connected by likeness. Ranks in order, so that the answer
           does not depend on anything else.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

PORTION = 0.1
#: Largest difference of two shares of operations (total variation), and of two distributions of reuse distances
#: (Kolmogorov-Smirnov), between processes that are alike.
TOLERANCE = 0.05
_LEAST = 200  # operations; shorter traces are compared as a whole
_BUCKETS = 40  # reuse distances by powers of 2**0.5


def profile_of(operations: NDArray[np.int32], symbols: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the share of each operation, and the cumulative distribution of reuse distances.

    Parameters
    ----------
    operations : numbers of the operations of one process, in order.
    symbols : how many different ones there are in all processes.
    """
    first = operations[: max(_LEAST, int(PORTION * operations.size))]
    shares = np.bincount(first, minlength=symbols) / max(1, first.size)
    order = np.argsort(first, kind="stable")
    same = first[order][1:] == first[order][:-1]
    distances = (np.diff(order) - 1)[same]
    bucket = np.minimum(_BUCKETS - 1, (2 * np.log2(distances + 1)).astype(np.int64))
    counts = np.bincount(bucket, minlength=_BUCKETS)
    return shares, np.cumsum(counts) / max(1, distances.size)


def _are_alike(
    one: tuple[NDArray[np.float64], NDArray[np.float64]],
    other: tuple[NDArray[np.float64], NDArray[np.float64]],
    tolerance: float,
) -> bool:
    shares = 0.5 * float(np.abs(one[0] - other[0]).sum())
    distances = float(np.abs(one[1] - other[1]).max(initial=0.0))
    return shares <= tolerance and distances <= tolerance


def find_groups(
    operations: Mapping[int, NDArray[np.int32]], *, root: int = 0, tolerance: float = TOLERANCE
) -> tuple[tuple[int, ...], ...]:
    """Return the ranks of each group: first the root alone, then the subgroups in the order of their lowest ranks.

    Parameters
    ----------
    operations : by rank, numbers of the operations in order.
    root : the root process.
    tolerance : see `TOLERANCE`.
    """
    symbols = 1 + max((int(sequence.max(initial=-1)) for sequence in operations.values()), default=0)
    profiles = {rank: profile_of(sequence, symbols) for rank, sequence in sorted(operations.items())}
    groups: list[list[int]] = []
    for rank, profile in profiles.items():
        if rank == root:
            continue
        alike = [group for group in groups if any(_are_alike(profile, profiles[other], tolerance) for other in group)]
        joined = sorted([rank, *(other for group in alike for other in group)])
        groups = sorted([*(group for group in groups if group not in alike), joined])
    return ((root,), *(tuple(group) for group in groups))
