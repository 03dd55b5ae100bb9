"""S3D-IO: checkpoints of a combustion simulation, each a new file of three- and four-dimensional arrays.

Source: github.com/wkliao/S3D-IO (pnetcdf_m.f90, param_m.f90), the I/O of S3D (J. H. Chen et al., "Terascale direct
numerical simulations of turbulent combustion using S3D", Computational Science & Discovery 2, 2009), as used by Bez
et al. (Section "Applications": five checkpoints, each four nonblocking writes, a wait and a flush) and by Liao and
Choudhary, "Dynamically Adapting File Domain Partitioning Methods …" (SC08).

Layout: arrays of doubles, x fastest: ``yspecies`` (nsc + 1, z, y, x), ``u`` (3, z, y, x), ``pressure`` and ``temp``
(z, y, x), in this order in the file. x, y and z are cut into blocks for npx × npy × npz processes, rank = (mypz npy +
mypy) npx + mypx; the fourth, most significant dimension is not cut. Memory is the block. The original is written for
PnetCDF; the other interfaces make the four accesses as blocking collective ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from mpiio_ext.bench.kernels.geometry import balanced_grid
from mpiio_ext.bench.kernels.layout import FileLayout, Slab, packed_variables
from mpiio_ext.bench.kernels.program import Access, Close, Kernel, Open, Phase, Step, Sync, Wait
from mpiio_ext.errors import ArgumentError


@dataclass(frozen=True, slots=True, kw_only=True)
class S3d(Kernel):
    """`checkpoints` files written, and with `restart` the last one read back by the same blocks.

    Attributes
    ----------
    nx, ny, nz : grid points per process (the command line has nx_g = nx · npx, …)
    npx, npy, npz : processes per direction; all 0 = as equal as possible
    nsc : species are nsc + 1
    checkpoints : files (i_time_end)
    method : 0 PnetCDF's blocking calls, 1 its nonblocking ones
    restart : read the last checkpoint
    io_one_species_at_a_time : with method 0, one access per component of the four-dimensional arrays
    flush : flush every checkpoint before it is closed
    """

    name: ClassVar[str] = "s3d"
    title: ClassVar[str] = "S3D-IO"
    noncontiguous: ClassVar[bool] = True
    interfaces: ClassVar[tuple[str, ...]] = ("pnetcdf", "mpiio", "hdf5", "netcdf4")
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"nx": 20, "ny": 20, "nz": 20},
        "laptop": {"nx": 40, "ny": 40, "nz": 40},
        "published": {"nx": 50, "ny": 50, "nz": 50},  # S3D-IO's README and SC08; 305.18 GiB on 16³ processes
        "forwarding": {"nx": 48, "ny": 48, "nz": 48},  # Bez et al., Table 3: 33.7 GiB on 8³ processes
    }

    nx: int = 50
    ny: int = 50
    nz: int = 50
    npx: int = 0
    npy: int = 0
    npz: int = 0
    nsc: int = 10
    checkpoints: int = 5
    method: int = 1
    restart: bool = True
    io_one_species_at_a_time: bool = False
    flush: bool = True

    @property
    def label(self) -> str:  # noqa: D102
        return self.title + (", blocking" if self.method == 0 else "") + (", by species" if self._by_species else "")

    @property
    def key(self) -> str:  # noqa: D102
        return self.name + ("-blocking" if self.method == 0 else "") + ("-species" if self._by_species else "")

    @property
    def _by_species(self) -> bool:
        return self.method == 0 and self.io_one_species_at_a_time

    @property
    def processes(self) -> tuple[int, int, int]:
        """(npx, npy, npz)."""
        x, y, z = balanced_grid(self.ranks, 3) if self.npx == 0 else (self.npx, self.npy, self.npz)
        return x, y, z

    def check(self) -> None:  # noqa: D102
        self.check_least(1, "nx", "ny", "nz", "checkpoints")
        if self.nsc < 0 or self.method not in (0, 1):
            raise ArgumentError(
                f"{self.name}: nsc must not be negative, method must be 0 or 1, not {self.nsc} and {self.method}"
            )
        if math.prod(self.processes) != self.ranks:
            raise ArgumentError(
                f"{self.name}: npx·npy·npz = {math.prod(self.processes)} is not the number of ranks, {self.ranks}"
            )

    def scaling(self, factor: float) -> dict[str, Any]:  # noqa: D102
        nx, ny, nz = (max(1, round(n * factor ** (1 / 3))) for n in (self.nx, self.ny, self.nz))
        return {"nx": nx, "ny": ny, "nz": nz}

    def files(self) -> tuple[FileLayout, ...]:  # noqa: D102
        npx, npy, npz = self.processes
        grid = (self.nz * npz, self.ny * npy, self.nx * npx)
        variables = packed_variables(
            ("yspecies", "<f8", (self.nsc + 1, *grid)),
            ("u", "<f8", (3, *grid)),
            ("pressure", "<f8", grid),
            ("temp", "<f8", grid),
        )
        return tuple(FileLayout(name=f"s3d.{n + 1}", variables=variables) for n in range(self.checkpoints))

    def phases(self) -> tuple[Phase, ...]:  # noqa: D102
        written = Phase(name="checkpoint", operation="write")
        return (written, Phase(name="restart", operation="read")) if self.restart else (written,)

    def steps(self, phase: str, rank: int, interface: str) -> Iterator[Step]:  # noqa: D102
        write = phase == "checkpoint"
        nonblocking = self.method == 1 and interface == "pnetcdf"
        for file in range(self.checkpoints) if write else (self.checkpoints - 1,):
            yield Open(file=file, mode="create" if write else "read")
            for variable, slab in self._slabs(rank):
                yield Access(file=file, variable=variable, write=write, slabs=(slab,), nonblocking=nonblocking)
            if nonblocking:
                yield Wait(file=file)
            if write and self.flush:
                yield Sync(file=file)
            yield Close(file=file)

    def _slabs(self, rank: int) -> Iterator[tuple[str, Slab]]:
        npx, npy, _ = self.processes
        start = (rank // (npx * npy) * self.nz, rank // npx % npy * self.ny, rank % npx * self.nx)
        count = (self.nz, self.ny, self.nx)
        for name, components in (("yspecies", self.nsc + 1), ("u", 3)):
            if self._by_species:
                for component in range(components):
                    yield name, ((component, *start), (1, *count))
            else:
                yield name, ((0, *start), (components, *count))
        for name in ("pressure", "temp"):
            yield name, (start, count)
