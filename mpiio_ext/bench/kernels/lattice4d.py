"""lattice4d: the field of a four-dimensional lattice, cut into blocks in all directions, as lattice QCD stores it.

Source: report 7935 of github.com/pmodels/mpich, on the I/O of github.com/paboyle/Grid: a subarray view of four
dimensions over sites, one collective write and one collective read. On Lustre they were up to six times slower than
MPI_Alltoallv in the program and contiguous writes behind it, which the interface ``transposed`` does.

Layout: an array (t, z, y, x, value) of doubles, x the fastest of the directions. `doubles` values of a site are a gauge
field: 4 links of 3 x 3 complex numbers. Every rank has a block; rank = ((rt pz + rz) py + ry) px + rx. A rank's pieces
in the file are lx sites each.
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
class Lattice4d(Kernel):
    """One field written and read back by the same blocks.

    Attributes
    ----------
    lx, ly, lz, lt : sites per process and direction
    px, py, pz, pt : processes per direction; all 0 = as equal as possible, the fastest directions first
    doubles : values of a site
    """

    name: ClassVar[str] = "lattice4d"
    title: ClassVar[str] = "Lattice in 4-D blocks"
    noncontiguous: ClassVar[bool] = True
    interfaces: ClassVar[tuple[str, ...]] = ("mpiio", "transposed", "posix")
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"lx": 8, "ly": 8, "lz": 8, "lt": 8},
        "laptop": {"lx": 16, "ly": 16, "lz": 16, "lt": 16},
        "published": {"lx": 32, "ly": 32, "lz": 32, "lt": 32},
    }

    lx: int = 16
    ly: int = 16
    lz: int = 16
    lt: int = 16
    px: int = 0
    py: int = 0
    pz: int = 0
    pt: int = 0
    doubles: int = 72

    @property
    def block(self) -> tuple[int, int, int, int]:
        """Sites of a rank: (t, z, y, x)."""
        return self.lt, self.lz, self.ly, self.lx

    @property
    def processes(self) -> tuple[int, int, int, int]:
        """Processes: (t, z, y, x)."""
        if self.px == 0:
            x, y, z, t = balanced_grid(self.ranks, 4)
            return t, z, y, x
        return self.pt, self.pz, self.py, self.px

    def check(self) -> None:  # noqa: D102
        self.check_least(1, "lx", "ly", "lz", "lt", "doubles")
        if min(self.processes) < 1 or math.prod(self.processes) != self.ranks:
            raise ArgumentError(
                f"{self.name}: px·py·pz·pt = {math.prod(self.processes)} is not the number of ranks, {self.ranks}"
            )

    def scaling(self, factor: float) -> dict[str, Any]:  # noqa: D102
        lt, lz, ly, lx = (max(1, round(n * factor ** (1 / 4))) for n in self.block)
        return {"lx": lx, "ly": ly, "lz": lz, "lt": lt}

    def files(self) -> tuple[FileLayout, ...]:  # noqa: D102
        whole = tuple(size * parts for size, parts in zip(self.block, self.processes, strict=True))
        return (FileLayout(name="lattice", variables=packed_variables(("field", "<f8", (*whole, self.doubles)))),)

    def steps(self, phase: str, rank: int, interface: str) -> Iterator[Step]:  # noqa: D102
        del interface
        yield Open(file=0, mode="create" if phase == "write" else "read")
        yield Access(file=0, variable="field", write=phase == "write", slabs=(self._slab(rank),))
        yield Close(file=0)

    def _slab(self, rank: int) -> Slab:
        start = []
        for size, parts in zip(reversed(self.block), reversed(self.processes), strict=True):
            rank, place = divmod(rank, parts)
            start.append(place * size)
        return (*reversed(start), 0), (*self.block, self.doubles)
