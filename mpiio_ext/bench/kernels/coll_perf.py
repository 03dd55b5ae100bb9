"""coll_perf: a three-dimensional array in blocks, written and read with one collective call.

Source: ``test/coll_perf.c`` of ROMIO: an array of `array_of_gsizes` integers of 4 bytes, row-major, block-distributed
in all three dimensions over the grid of MPI_Dims_create (MPI_Type_create_darray), contiguous in memory. 128 x 128 x
128 elements for all processes together. The original first writes and reads once without timing; that is what
repetitions are for here. Blocks are of ceil(n / processes) elements a dimension, so that the last process of a
dimension may have less. PnetCDF's tests have the same with a variable in place of the file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from mpiio_ext.bench.kernels.geometry import balanced_grid
from mpiio_ext.bench.kernels.layout import FileLayout, Slab, packed_variables
from mpiio_ext.bench.kernels.program import Access, Close, Kernel, Open, Step
from mpiio_ext.errors import ArgumentError


@dataclass(frozen=True, slots=True, kw_only=True)
class CollPerf(Kernel):
    """Write: create, one collective write, close; read: open, one collective read of the same, close.

    Attributes
    ----------
    array_of_gsizes : elements of the whole array per dimension, slowest first
    """

    name: ClassVar[str] = "coll_perf"
    title: ClassVar[str] = "coll_perf"
    noncontiguous: ClassVar[bool] = True
    interfaces: ClassVar[tuple[str, ...]] = ("mpiio", "hdf5", "pnetcdf", "netcdf4")
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"array_of_gsizes": (96, 96, 96)},
        "laptop": {"array_of_gsizes": (384, 384, 384)},
        "published": {"array_of_gsizes": (128, 128, 128)},
    }

    array_of_gsizes: tuple[int, int, int] = (128, 128, 128)

    @property
    def label(self) -> str:  # noqa: D102
        return f"{self.title}, {' x '.join(map(str, self.array_of_gsizes))}"

    @property
    def key(self) -> str:  # noqa: D102
        return f"{self.name}-{'x'.join(map(str, self.array_of_gsizes))}"

    @property
    def _grid(self) -> tuple[int, ...]:
        return balanced_grid(self.ranks, 3)

    def check(self) -> None:  # noqa: D102
        if len(self.array_of_gsizes) != 3:
            raise ArgumentError(f"{self.name}: array_of_gsizes must have 3 numbers, not {len(self.array_of_gsizes)}")
        for size, processes in zip(self.array_of_gsizes, self._grid, strict=True):
            # netCDF4-python leaves out empty accesses, on which the other ranks would wait
            if size < 1 or (processes - 1) * math.ceil(size / processes) >= size:
                raise ArgumentError(
                    f"{self.name}: array_of_gsizes: blocks of {size} elements over {processes} "
                    "processes leave some without any"
                )

    def scaling(self, factor: float) -> dict[str, Any]:  # noqa: D102
        edge = factor ** (1 / 3)
        sizes = (max(1, round(n * edge / p)) * p for n, p in zip(self.array_of_gsizes, self._grid, strict=True))
        return {"array_of_gsizes": tuple(sizes)}

    def files(self) -> tuple[FileLayout, ...]:  # noqa: D102
        return (FileLayout(name=self.key, variables=packed_variables(("array", "<i4", self.array_of_gsizes))),)

    def steps(self, phase: str, rank: int, interface: str) -> Iterator[Step]:  # noqa: D102
        del interface
        write = phase == "write"
        yield Open(file=0, mode="create" if write else "read")
        yield Access(file=0, variable="array", write=write, slabs=(self._block(rank),))
        yield Close(file=0)

    def _block(self, rank: int) -> Slab:
        """Return a rank's block; ranks are numbered row-major in the grid."""
        start, count = [], []
        for size, processes in zip(reversed(self.array_of_gsizes), reversed(self._grid), strict=True):
            rank, place = divmod(rank, processes)
            block = math.ceil(size / processes)
            start.append(place * block)
            count.append(min(block, size - place * block))
        return tuple(reversed(start)), tuple(reversed(count))
