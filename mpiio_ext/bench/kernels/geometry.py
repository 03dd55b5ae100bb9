"""Small questions of geometry that patterns and kernels share: grids of processes, byte counts in words."""

from __future__ import annotations


def balanced_grid(ranks: int, dimensions: int) -> tuple[int, ...]:
    """Return the factors of `ranks`, as equal as possible and descending (the purpose of MPI_Dims_create)."""
    if dimensions == 1:
        return (ranks,)
    best: tuple[int, ...] | None = None
    for first in range(ranks, 0, -1):
        if ranks % first:
            continue
        rest = balanced_grid(ranks // first, dimensions - 1)
        if rest[0] > first:
            continue
        candidate = (first, *rest)
        if best is None or candidate[0] - candidate[-1] < best[0] - best[-1]:
            best = candidate
    return best if best is not None else (ranks,) + (1,) * (dimensions - 1)
