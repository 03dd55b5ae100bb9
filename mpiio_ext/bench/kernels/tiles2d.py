"""2-D tiles with ghost cells: an image or a plane of doubles, one tile per rank.

Source: mpi-tile-io of the Parallel I/O Benchmarking Consortium (R. Ross, Argonne National Laboratory), whose tiles
overlap by ghost cells, and the memory layout of stencil codes.

Layout: the file is a row-major array of (Y + 2g) × (X + 2g) doubles: the domain of Y × X cells and a frame of g
physical boundary cells around it that nobody writes. Each rank holds its tile with g ghost cells on every side in
memory. Writing stores the tile without its ghost cells (noncontiguous in memory and in the file). Reading fills the
ghost cells too, from the neighbours' tiles (overlapping reads), as far as they lie in the domain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mpiio_ext.bench.kernels.geometry import balanced_grid
from mpiio_ext.bench.kernels.pattern import Pattern, Sizes
from mpiio_ext.bench.kernels.shapes import DOUBLE, Block, Mask
from mpiio_ext.bench.kernels.views import Call, Plan
from mpiio_ext.errors import ArgumentError


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiles2D(Pattern):
    """Geometry: cells of a tile in y and x, width of the ghost zone."""

    name: ClassVar[str] = "tiles2d"
    title: ClassVar[str] = "2-D tiles with ghost cells"

    tile: tuple[int, int]
    ghost: int

    @classmethod
    def create(cls, sizes: Sizes, ranks: int) -> list[Pattern]:  # noqa: D102
        rows, columns = balanced_grid(ranks, 2)
        ghost = sizes.ghost
        edge = math.isqrt(sizes.file_bytes // 8)
        tile = ((edge - 2 * ghost) // rows, (edge - 2 * ghost) // columns)
        if min(tile) < 1:
            raise ArgumentError(
                f"tiles2d: {sizes.file_bytes} bytes are too few for {rows} × {columns} tiles with {ghost} ghost cells"
            )
        return [cls(ranks=ranks, tile=tile, ghost=ghost)]

    @property
    def _grid(self) -> tuple[int, ...]:
        return balanced_grid(self.ranks, 2)

    @property
    def _domain(self) -> tuple[int, int]:
        return self._grid[0] * self.tile[0], self._grid[1] * self.tile[1]

    @property
    def _file_sizes(self) -> tuple[int, int]:
        return self._domain[0] + 2 * self.ghost, self._domain[1] + 2 * self.ghost

    def words(self, sizes: Sizes) -> list[str]:  # noqa: D102
        return ["--ghost", str(sizes.ghost)]

    @property
    def extent_bytes(self) -> int:  # noqa: D102
        return math.prod(self._file_sizes) * 8

    @property
    def written_end_bytes(self) -> int:  # noqa: D102
        last_row = self.ghost + self._domain[0] - 1
        return (last_row * self._file_sizes[1] + self.ghost + self._domain[1]) * 8

    def _plan(self, rank: int, halo: int) -> Plan:
        """Return the access to the tile and `halo` cells around it, as far as they lie in the domain."""
        file_starts, memory_starts, counts = [], [], []
        for size, tile, coordinate in zip(self._domain, self.tile, divmod(rank, self._grid[1]), strict=True):
            low = max(0, coordinate * tile - halo)
            high = min(size, (coordinate + 1) * tile + halo)
            counts.append(high - low)
            file_starts.append(low + self.ghost)
            memory_starts.append(low - coordinate * tile + self.ghost)
        memory = Block(
            element=DOUBLE,
            sizes=(self.tile[0] + 2 * self.ghost, self.tile[1] + 2 * self.ghost),
            subsizes=tuple(counts),
            starts=tuple(memory_starts),
        )
        file = Block(element=DOUBLE, sizes=self._file_sizes, subsizes=tuple(counts), starts=tuple(file_starts))
        return Plan(element=DOUBLE, displacement_bytes=0, file=file, calls=(Call(offset_elements=0, memory=memory),))

    def write_plan(self, rank: int) -> Plan:  # noqa: D102
        return self._plan(rank, 0)

    def read_plan(self, rank: int) -> Plan:  # noqa: D102
        return self._plan(rank, self.ghost)

    def mask(self, begin: int, end: int) -> Mask | None:  # noqa: D102
        if self.ghost == 0:
            return None
        first, last = begin // 8, -(-end // 8)
        row, column = np.divmod(np.arange(first, last, dtype=np.int64), self._file_sizes[1])
        inside = (row >= self.ghost) & (row < self.ghost + self._domain[0])
        inside &= (column >= self.ghost) & (column < self.ghost + self._domain[1])
        return np.repeat(inside, 8)[begin - first * 8 : end - first * 8]
