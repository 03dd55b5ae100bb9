"""NAS BT-IO: the solution of the block-tridiagonal benchmark, appended every few time steps and read back in the end.

Source: P. Wong, R. F. Van der Wijngaart, "NAS Parallel Benchmarks I/O Version 2.4", NAS-03-002, 2003 (BT: make_set.f,
full_mpiio.f, setparams.c); for PnetCDF github.com/wkliao/BTIO (pnetcdf_m.f90). The classes C and D
are BT-C and BT-D of Bez et al., Table 3.

The grid has problem_size³ points of five doubles, x fastest, one copy per write; the diagonal multi-partitioning is
that of the pattern ``btio`` (`mpiio_ext.bench.kernels.btio`). In memory each of a rank's cells lies in an array
with two ghost points on every side, MAX_CELL_DIM = problem_size / p + 1 points a side without them.

I/O type "full": one collective access per write, with the struct of the p subarrays as file type and in
memory. PnetCDF makes one access per cell and, nonblocking, one wait per write. HDF5 selects all cells of a
five-dimensional array. The file is written from its beginning to its end, closed, and read back in the same way, as
the verification does.
PnetCDF's original has the writes in an unlimited dimension, which places them as the fixed one does here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from mpiio_ext.bench.kernels.btio import BTIO
from mpiio_ext.bench.kernels.layout import FileLayout, Slab, packed_variables
from mpiio_ext.bench.kernels.program import Access, Box, Close, Open, Phase, SquareKernel, Step, Wait
from mpiio_ext.errors import ArgumentError

_GHOST = 2
_COMPONENTS = 5

_CLASSES: dict[str, dict[str, Any]] = {
    "S": {"problem_size": 12, "niter": 60},
    "W": {"problem_size": 24, "niter": 200},
    "A": {"problem_size": 64, "niter": 200},
    "B": {"problem_size": 102, "niter": 200},
    "C": {"problem_size": 162, "niter": 200},
    "D": {"problem_size": 408, "niter": 250},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NasBtio(SquareKernel):
    """I/O type "full": the solution is written niter / wr_interval times, then read as often.

    Attributes
    ----------
    problem_size : grid points a side
    niter : time steps
    wr_interval : time steps between two writes
    nonblocking : PnetCDF posts the cells and waits once per write (BTIO's I/O method 3, else 2)
    """

    name: ClassVar[str] = "nas_btio"
    title: ClassVar[str] = "NAS BT-IO full"
    needs: ClassVar[str] = "BT-IO needs a square number of ranks"
    noncontiguous: ClassVar[bool] = True
    interfaces: ClassVar[tuple[str, ...]] = ("mpiio", "pnetcdf", "hdf5")
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {**_CLASSES["W"], "niter": 50},
        "laptop": {**_CLASSES["A"], "niter": 50},
        "published": _CLASSES["C"],
        **_CLASSES,
    }

    problem_size: int = 64
    niter: int = 200
    wr_interval: int = 5
    nonblocking: bool = True

    def traits(self) -> list[str]:  # noqa: D102
        return [] if self.nonblocking else ["blocking"]

    @property
    def writes(self) -> int:
        """How often the solution is written."""
        return self.niter // self.wr_interval

    def check(self) -> None:  # noqa: D102
        if self.wr_interval < 1 or self.niter < self.wr_interval:
            raise ArgumentError(
                f"{self.name}: wr_interval must be at least 1 and at most niter, not "
                f"{self.wr_interval} with niter {self.niter}"
            )
        if self.problem_size < self.side:
            raise ArgumentError(
                f"{self.name}: a problem_size of {self.problem_size} is too small for {self.side} × {self.side} ranks"
            )

    def scaling(self, factor: float) -> dict[str, Any]:  # noqa: D102
        return {"problem_size": max(self.side, round(self.problem_size * factor ** (1 / 3)))}

    def files(self) -> tuple[FileLayout, ...]:  # noqa: D102
        shape = (self.writes, *(self.problem_size,) * 3, _COMPONENTS)
        return (FileLayout(name=self.name, variables=packed_variables(("var", "<f8", shape), steps=True)),)

    def phases(self) -> tuple[Phase, ...]:  # noqa: D102
        return (Phase(name="timesteps", operation="write"), Phase(name="verification", operation="read"))

    def steps(self, phase: str, rank: int, interface: str) -> Iterator[Step]:  # noqa: D102
        write = phase == "timesteps"
        cells = self._cells(rank)
        yield Open(file=0, mode="create" if write else "read")
        for number in range(self.writes):
            slabs = tuple(((number, *start), (1, *count)) for start, count in cells)
            yield from self._one(slabs, write=write, interface=interface)
        yield Close(file=0)

    def _one(self, slabs: tuple[Slab, ...], *, write: bool, interface: str) -> Iterator[Step]:
        """Yield the accesses to one copy of the grid."""
        if interface != "pnetcdf":
            yield Access(file=0, variable="var", write=write, slabs=slabs, boxes=(self._box(),) * len(slabs))
            return
        for slab in slabs:
            yield Access(
                file=0, variable="var", write=write, slabs=(slab,), boxes=(self._box(),), nonblocking=self.nonblocking
            )
        if self.nonblocking:
            yield Wait(file=0)

    def _cells(self, rank: int) -> list[Slab]:
        """Return the cells of a rank in one copy of the grid, (z, y, x, component), z ascending."""
        geometry = BTIO(ranks=self.active, grid=self.problem_size, time_steps=1, ranks_there=self.ranks)
        return [(start[1:], count[1:]) for start, count in geometry.array_slabs(rank)[0]]

    def _box(self) -> Box:
        """Return a cell in memory."""
        side = self.problem_size // self.side + 1 + 2 * _GHOST
        return (side, side, side, _COMPONENTS), (_GHOST, _GHOST, _GHOST, 0)
