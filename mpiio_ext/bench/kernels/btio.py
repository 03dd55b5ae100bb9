"""BT-IO: the nested strided pattern of the diagonal multi-partitioning, several time steps in one file.

Source: NAS Parallel Benchmarks 3.x, BT, I/O type "full" (P. Wong, R. F. Van der Wijngaart, "NAS Parallel Benchmarks I/O
Version 2.4", NAS-03-002, 2003): make_set.f places the cells, full_mpiio.f builds the types and writes a step with one
MPI_File_write_at_all.

Layout: N³ grid points of 5 doubles, x fastest, one copy of the grid per time step. p² ranks; each owns p cells, one on
every z-level c, at process coordinates

    x(c) = (rank mod p + c) mod p,   y(c) = (rank div p - c) mod p,   z(c) = c,      c = 0 … p-1,

so that every rank owns one cell in each row, column and level. The file type is the struct of the p subarrays. In
memory each cell lies in a box with two ghost points on every side (5-vectors too). All cells of a rank are one 5-D
array, described by the struct of p subarrays of it. The number of ranks has to be a square: the largest square number
of ranks takes part, the others wait.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, ClassVar

from mpiio_ext.bench.kernels.layout import Slab
from mpiio_ext.bench.kernels.pattern import Pattern, Sizes
from mpiio_ext.bench.kernels.shapes import Block, Element, Sequence
from mpiio_ext.bench.kernels.views import Call, Plan
from mpiio_ext.errors import ArgumentError

_POINT = Element(basic_bytes=8, count=5)
_GHOST = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class BTIO(Pattern):
    """Geometry: grid points a side, time steps, ranks that are there (`ranks` is the square number that takes part)."""

    name: ClassVar[str] = "btio"
    title: ClassVar[str] = "BT-IO (nested strided)"
    interfaces: ClassVar[tuple[str, ...]] = ("mpiio", "hdf5")

    grid: int
    time_steps: int
    ranks_there: int

    @classmethod
    def create(cls, sizes: Sizes, ranks: int) -> list[Pattern]:  # noqa: D102
        side = math.isqrt(ranks)
        grid = round((sizes.file_bytes / (40 * sizes.steps)) ** (1 / 3))
        while grid**3 * 40 * sizes.steps > sizes.file_bytes:
            grid -= 1
        if grid < side:
            raise ArgumentError(
                f"btio: {sizes.file_bytes} bytes in {sizes.steps} steps are a grid of {grid} points a "
                f"side, too few for {side} × {side} ranks"
            )
        return [cls(ranks=side * side, grid=grid, time_steps=sizes.steps, ranks_there=ranks)]

    @property
    def note(self) -> str:  # noqa: D102
        if self.ranks == self.ranks_there:
            return ""
        return f"BT-IO needs a square number of ranks: {self.ranks} of {self.ranks_there} take part"

    @property
    def step_bytes(self) -> int:
        """Bytes of one time step in the file."""
        return self.grid**3 * _POINT.size_bytes

    def geometry(self) -> dict[str, Any]:  # noqa: D102
        own = dataclasses.asdict(self)
        return {"steps" if name == "time_steps" else name: value for name, value in own.items()}

    def words(self, sizes: Sizes) -> list[str]:  # noqa: D102
        return ["--steps", str(sizes.steps)]

    @property
    def extent_bytes(self) -> int:  # noqa: D102
        return self.time_steps * self.step_bytes

    def _range(self, coordinate: int) -> tuple[int, int]:
        """Return (start, count) of the grid points at a process coordinate: the first `excess` ones get one more."""
        size, excess = divmod(self.grid, math.isqrt(self.ranks))
        return coordinate * size + min(coordinate, excess), size + (coordinate < excess)

    def _cells(self, rank: int) -> list[tuple[tuple[int, int, int], tuple[int, int, int]]]:
        """Return ((z, y, x) start, (z, y, x) count) of every cell of a rank, z ascending."""
        side = math.isqrt(self.ranks)
        y, x = divmod(rank, side)
        cells = []
        for level in range(side):
            ranges = [self._range(c) for c in (level, (y - level) % side, (x + level) % side)]
            starts, counts = zip(*ranges, strict=True)
            cells.append((starts, counts))
        return cells

    def write_plan(self, rank: int) -> Plan:  # noqa: D102
        cells = self._cells(rank)
        box = self._range(0)[1] + 2 * _GHOST
        sizes = (len(cells), box, box, box)
        file = Sequence(
            parts=tuple(
                Block(element=_POINT, sizes=(self.grid,) * 3, subsizes=counts, starts=starts)
                for starts, counts in cells
            )
        )
        memory = Sequence(
            parts=tuple(
                Block(element=_POINT, sizes=sizes, subsizes=(1, *counts), starts=(cell, _GHOST, _GHOST, _GHOST))
                for cell, (_, counts) in enumerate(cells)
            )
        )
        points = file.size_bytes // _POINT.size_bytes
        calls = tuple(Call(offset_elements=step * points, memory=memory) for step in range(self.time_steps))
        return Plan(element=_POINT, displacement_bytes=0, file=file, calls=calls)

    @property
    def array_shape(self) -> tuple[int, ...]:  # noqa: D102
        return (self.time_steps, self.grid, self.grid, self.grid, 5)

    def array_slabs(self, rank: int) -> list[tuple[Slab, ...]]:  # noqa: D102
        cells = self._cells(rank)
        return [
            tuple(((step, *starts, 0), (1, *counts, 5)) for starts, counts in cells) for step in range(self.time_steps)
        ]
