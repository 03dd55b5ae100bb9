"""The flush of a climate model: hundreds of variables on an irregular grid, and how its cells belong to the ranks.

Source: the E3SM I/O benchmark (github.com/Parallel-NetCDF/E3SM-IO, docs/variables.md: partitioned variables per
decomposition map, numbers of levels and types, sizes of grids). Case F is the atmosphere, G the ocean, I the land.
Vertical levels are the slowest dimension in F and I, whose pieces are therefore a few values long, and the fastest
dimension in G, where a cell is 640 bytes in one piece.

Ours: the original's decompositions are recordings of production runs, most of them not public. Here a grid's cells are
dealt to the ranks at random, in runs of a random length up to the case's longest. In the public recording of case F for
16 processes runs have 1 to 4 columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mpiio_ext.bench.kernels.shapes import Offsets

#: Most cells that are dealt out: each is a run of a rank at worst, and every rank has them all in memory.
MOST_CELLS = 1 << 28


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Variables that share a decomposition.

    Attributes
    ----------
    name : of the variables, before their number
    number : how many in the original
    levels : of the vertical, soil or plant dimension; 1: none
    cells : of their grid for each cell of the case's
    dtype : of a value
    inner : the levels are the fastest dimension
    """

    name: str
    number: int
    levels: int = 1
    cells: int = 1
    dtype: str = "<f4"
    inner: bool = False

    @property
    def cell_bytes(self) -> int:
        """Bytes of one variable for each cell of the case's grid."""
        return self.levels * self.cells * int(np.dtype(self.dtype).itemsize)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One flush.

    Attributes
    ----------
    title : for people
    groups : of variables
    longest : cells of a run
    """

    title: str
    groups: tuple[Group, ...]
    longest: int

    def reduced(self, divisor: int) -> tuple[Group, ...]:
        """Return the groups with so many times fewer variables, at least one each."""
        return tuple(
            Group(
                name=group.name,
                number=max(1, group.number // divisor),
                levels=group.levels,
                cells=group.cells,
                dtype=group.dtype,
                inner=group.inner,
            )
            for group in self.groups
        )


CASES: Mapping[str, Case] = {
    "tiny": Case(
        title="many tiny pieces",
        groups=(Group(name="surface", number=324), Group(name="column", number=63, levels=72)),
        longest=4,
    ),
    "long": Case(
        title="few long pieces",
        groups=(
            Group(name="cell", number=6, dtype="<f8"),
            Group(name="edge", number=2, cells=3, dtype="<f8"),
            Group(name="cell_level", number=25, levels=80, dtype="<f8", inner=True),
            Group(name="edge_level", number=2, levels=80, cells=3, dtype="<f8", inner=True),
            Group(name="vertex_level", number=2, levels=80, cells=2, dtype="<f8", inner=True),
            Group(name="cell_interface", number=4, levels=81, dtype="<f8", inner=True),
        ),
        longest=4,
    ),
    "mixed": Case(
        title="2-D and 3-D variables",
        groups=(
            Group(name="surface", number=465),
            Group(name="ground", number=75, levels=15),
            Group(name="lake", number=4, levels=10),
            Group(name="landunit", number=1, levels=9),
            Group(name="plant", number=1, levels=17),
        ),
        longest=16,
    ),
}


@lru_cache(maxsize=16)
def deal(cells: int, ranks: int, longest: int, seed: int) -> tuple[tuple[Offsets, Offsets], ...]:
    """Return for each rank (starts, lengths) of its runs of a grid, in cells, shape (runs,), ascending and apart.

    Every cell belongs to one rank. Every rank draws the same.
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    lengths = generator.integers(1, longest, cells, endpoint=True)
    ends = np.minimum(np.cumsum(lengths), cells)
    ends = ends[: int(np.searchsorted(ends, cells)) + 1]
    starts = np.concatenate(([0], ends[:-1]))
    owner = generator.integers(0, ranks, starts.size)
    first = np.flatnonzero(np.concatenate(([True], owner[1:] != owner[:-1])))  # neighbours of one rank are one run
    begins, owners = starts[first], owner[first]
    sizes = np.diff(np.concatenate((begins, [cells])))
    return tuple((begins[owners == rank], sizes[owners == rank]) for rank in range(ranks))
