"""3-D block decomposition of a cube of doubles.

Source: coll_perf.c of the ROMIO test suite: a cubic array in row-major order, block-distributed over a 3-D grid of
processes with MPI_Type_create_darray, contiguous in memory, written and read with one collective call. The original's
elements are ints; they are doubles here, as in the simulation codes that the test stands for.

Layout: element (z, y, x) of the n³ array is at byte ((z·n + y)·n + x)·8. The process grid is balanced, the blocks are
of ceil(n / processes) in each dimension, so that the last process of a dimension may have less, or nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mpiio_ext.bench.kernels.geometry import balanced_grid
from mpiio_ext.bench.kernels.layout import Slab
from mpiio_ext.bench.kernels.pattern import MicroForm, Pattern, Sizes
from mpiio_ext.bench.kernels.shapes import DOUBLE, Contiguous, Darray
from mpiio_ext.bench.kernels.views import Call, Plan, idle_plan
from mpiio_ext.errors import ArgumentError


@dataclass(frozen=True, slots=True, kw_only=True)
class Block3D(Pattern):
    """Geometry: edge of the cube in elements."""

    name: ClassVar[str] = "block3d"
    title: ClassVar[str] = "3-D blocks (coll_perf)"
    interfaces: ClassVar[tuple[str, ...]] = ("mpiio", "hdf5")
    micro_forms: ClassVar[tuple[MicroForm, ...]] = (
        MicroForm(name="blocks3d", title="3-D blocks of doubles", pattern="blocks3d"),
    )

    edge: int

    @classmethod
    def create(cls, sizes: Sizes, ranks: int) -> list[Pattern]:  # noqa: D102
        edge = round((sizes.file_bytes / 8) ** (1 / 3))
        while edge**3 * 8 > sizes.file_bytes:
            edge -= 1
        if edge < max(balanced_grid(ranks, 3)):
            raise ArgumentError(
                f"block3d: {sizes.file_bytes} bytes hold a cube of {edge} elements a side, too few for "
                f"the {balanced_grid(ranks, 3)} grid of {ranks} ranks"
            )
        return [cls(ranks=ranks, edge=edge)]

    @property
    def extent_bytes(self) -> int:  # noqa: D102
        return self.edge**3 * 8

    def _part(self, rank: int) -> Darray:
        return Darray(element=DOUBLE, sizes=(self.edge,) * 3, grid=balanced_grid(self.ranks, 3), rank=rank)

    def write_plan(self, rank: int) -> Plan:  # noqa: D102
        part = self._part(rank)
        if part.size_bytes == 0:
            return idle_plan(DOUBLE, calls=1)
        memory = Contiguous(element=DOUBLE, count=part.size_bytes // 8)
        return Plan(element=DOUBLE, displacement_bytes=0, file=part, calls=(Call(offset_elements=0, memory=memory),))

    @property
    def array_shape(self) -> tuple[int, ...]:  # noqa: D102
        return (self.edge,) * 3

    def array_slabs(self, rank: int) -> list[tuple[Slab, ...]]:  # noqa: D102
        block = self._part(rank).as_block()
        return [((block.starts, block.subsizes),) if block.size_bytes else ()]
