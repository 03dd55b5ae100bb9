"""FLASH-IO: the checkpoint and the two plot files of a block-structured adaptive mesh code.

Source: M. Zingale's FLASH I/O benchmark as kept with PnetCDF (github.com/Parallel-NetCDF/PnetCDF,
benchmarks/FLASH-IO: physicaldata.fh, definitions.fh, checkpoint_ncmpi_parallel.F90, plotfile_ncmpi_parallel.F90).

Memory: ``unk(nvar, nxb + 2 nguard, nyb + 2 nguard, nzb + 2 nguard, blocks)``, Fortran order, one array of all
unknowns, so that an unknown is strided by nvar elements inside its guard cells. Rank r has local_blocks + (r mod 3)
blocks, which lie behind those of rank r - 1 in every file.

Files: the checkpoint holds the tree (``lrefine``, ``nodetype``, ``gid``) and the grid (``coordinates``,
``blocksize``, ``bndbox``) and each of the nvar unknowns as an array of doubles (blocks, nzb, nyb, nxb). A plot file
holds the same and four unknowns (density, temperature, pressure, the first fluid) in single precision, from packed
copies. They are at the centres or at the corners (one more per direction). The attributes of the original are left out.
PnetCDF's nonblocking form hands ``unk`` over as a subarray, and so do MPI-IO and HDF5 (a hyperslab in memory); its
blocking form copies each unknown before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from mpiio_ext.bench.kernels.layout import FileLayout, packed_variables
from mpiio_ext.bench.kernels.program import Access, Box, Close, Kernel, Open, Phase, Step, Wait
from mpiio_ext.errors import ArgumentError

_HYDRO = ("dens", "velx", "vely", "velz", "pres", "ener", "temp", "gamc", "game", "enuc", "gpot")
_PLOTTED = ("dens", "temp", "pres", "f1__")
_GID = 15  # 6 neighbours, the parent, 8 children
_DIMENSIONS = 3
_PHASES = ("checkpoint", "plotfile", "corners")
_FILES = ("flash_chk_0000", "flash_plt_cnt_0000", "flash_plt_crn_0000")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flash(Kernel):
    """One checkpoint, and with `plots` one plot file of centred data and one of corner data.

    Attributes
    ----------
    nxb, nyb, nzb : zones of a block
    nguard : guard cells on every side
    nvar : unknowns, at least the 11 of the hydrodynamics and one fluid
    local_blocks : blocks of every third rank; the others have one and two more
    use_nonblocking_io : PnetCDF's nonblocking calls and one wait per file, else its blocking ones
    plots : write the plot files
    """

    name: ClassVar[str] = "flash"
    title: ClassVar[str] = "FLASH-IO"
    noncontiguous: ClassVar[bool] = True
    interfaces: ClassVar[tuple[str, ...]] = ("hdf5", "pnetcdf", "mpiio")
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"nxb": 8, "nyb": 8, "nzb": 8, "local_blocks": 20},
        "laptop": {"nxb": 16, "nyb": 16, "nzb": 16, "local_blocks": 20},
        "published": {"nxb": 16, "nyb": 16, "nzb": 16, "local_blocks": 80},
        "published_8": {"nxb": 8, "nyb": 8, "nzb": 8, "local_blocks": 80},
        "published_32": {"nxb": 32, "nyb": 32, "nzb": 32, "local_blocks": 80},
    }

    nxb: int = 16
    nyb: int = 16
    nzb: int = 16
    nguard: int = 4
    nvar: int = 24
    local_blocks: int = 80
    use_nonblocking_io: bool = True
    plots: bool = True

    def traits(self) -> list[str]:  # noqa: D102
        return [*([] if self.use_nonblocking_io else ["blocking"]), *([] if self.plots else ["checkpoint"])]

    def check(self) -> None:  # noqa: D102
        self.check_least(1, "nxb", "nyb", "nzb", "local_blocks")
        if self.nguard < 0 or self.nvar <= len(_HYDRO):
            raise ArgumentError(
                f"{self.name}: nguard must not be negative, nvar must be at least {len(_HYDRO) + 1}, "
                f"not {self.nguard} and {self.nvar}"
            )

    def scaling(self, factor: float) -> dict[str, Any]:  # noqa: D102
        return {"local_blocks": max(1, round(self.local_blocks * factor))}

    @property
    def _names(self) -> tuple[str, ...]:
        return _PHASES if self.plots else _PHASES[:1]

    @property
    def unknowns(self) -> tuple[str, ...]:
        """Names of the nvar unknowns in the order of ``unk``; blanks are underscores, as in the files."""
        return (*_HYDRO, *(f"f{n + 1}".ljust(4, "_") for n in range(self.nvar - len(_HYDRO))))

    def blocks(self, rank: int) -> tuple[int, int]:
        """Return (blocks on the ranks below, blocks of the rank)."""
        rounds, over = divmod(rank, 3)
        return rank * self.local_blocks + 3 * rounds + over * (over - 1) // 2, self.local_blocks + over

    def _zones(self, phase: str) -> tuple[int, int, int]:
        more = 1 if phase == "corners" else 0
        return self.nzb + more, self.nyb + more, self.nxb + more

    def files(self) -> tuple[FileLayout, ...]:  # noqa: D102
        below, own = self.blocks(self.ranks - 1)
        total = below + own
        layouts = []
        for phase, name in zip(self._names, _FILES, strict=False):
            checkpoint = phase == "checkpoint"
            real = "<f8" if checkpoint else "<f4"
            parts: list[tuple[str, str, tuple[int, ...]]] = [
                ("lrefine", "<i4", (total,)),
                ("nodetype", "<i4", (total,)),
                ("gid", "<i4", (total, _GID)),
                ("coordinates", real, (total, _DIMENSIONS)),
                ("blocksize", real, (total, _DIMENSIONS)),
                ("bndbox", real, (total, _DIMENSIONS, 2)),
            ]
            names = self.unknowns if checkpoint else _PLOTTED
            parts += [(name, real, (total, *self._zones(phase))) for name in names]
            layouts.append(FileLayout(name=name, variables=packed_variables(*parts)))
        return tuple(layouts)

    def phases(self) -> tuple[Phase, ...]:  # noqa: D102
        return tuple(Phase(name=name, operation="write", contiguous=name != "checkpoint") for name in self._names)

    def steps(self, phase: str, rank: int, interface: str) -> Iterator[Step]:  # noqa: D102
        file = _PHASES.index(phase)
        nonblocking = self.use_nonblocking_io and interface == "pnetcdf"
        copied = phase != "checkpoint" or (interface == "pnetcdf" and not nonblocking)
        below, own = self.blocks(rank)
        yield Open(file=file, mode="create")
        for variable in self.files()[file].variables:
            inner = variable.shape[1:]
            slab = ((below, *(0,) * len(inner)), (own, *inner))
            in_unk = variable.name in self.unknowns and not copied
            yield Access(
                file=file,
                variable=variable.name,
                write=True,
                slabs=(slab,),
                nonblocking=nonblocking,
                boxes=(self._place(variable.name, own),) if in_unk else None,
                memory="unk" if in_unk else "",
            )
        if nonblocking:
            yield Wait(file=file)
        yield Close(file=file)

    def _place(self, unknown: str, blocks: int) -> Box:
        """Return the part of ``unk``, slowest dimension first, that is one unknown without its guard cells."""
        zones = (self.nzb, self.nyb, self.nxb)
        return (
            (blocks, *(n + 2 * self.nguard for n in zones), self.nvar),
            (0, *(self.nguard,) * _DIMENSIONS, self.unknowns.index(unknown)),
            (blocks, *zones, 1),
        )
