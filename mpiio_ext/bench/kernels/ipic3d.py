"""iPIC3D: fields, particles and restart files of a plasma simulation.

Source: github.com/CmPA/iPic3D and github.com/KTH-HPC/iPIC3D (inputoutput/ParallelIO.cpp and H5hut-io.cpp: WriteMethod
H5hut; include/PSKOutput.h and inputoutput/Restart3D.cpp: restart files; inputfiles/*.inp), one of the codes that W.
He et al., "Pioneer: A Solution to Parallel I/O Workload Characterization and Generation", Section VI-A, trace on 1024
processes, without its parameters.

Fields: per output cycle a shared file with the nodes of the whole grid. It has E and B, and for every species the
density and the three components of the current. Each is an array (z, y, x) of doubles in H5Block's group ``Step#0``. A
process has nxc × nyc × nzc cells and as many nodes, the last ones in a direction one more. Particles: per output cycle
a shared file with charge, position and velocity of every species, each a one-dimensional array of doubles, process by
process; the number of particles varies between processes. Restart: per process a file of its own with its nodes, both
end layers included, and its particles, written without MPI in the original; the run that resumes reads it.

The original packs before it writes, so memory is dense. The scalars beside the arrays are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from mpiio_ext.bench.kernels.geometry import balanced_grid
from mpiio_ext.bench.kernels.layout import FileLayout, Slab, packed_variables
from mpiio_ext.bench.kernels.program import Access, Close, Kernel, Open, Phase, Step
from mpiio_ext.errors import ArgumentError

_PROPERTIES = ("q", "x", "y", "z", "u", "v", "w")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ipic3d(Kernel):
    """`outputs` times fields and particles, then one restart file per process, written and read.

    Attributes
    ----------
    nxc, nyc, nzc : cells per process (an input file has nxc · XLEN, …)
    ns : species
    npcelx, npcely, npcelz : particles per cell and species
    imbalance : percent by which the number of particles of a process is below or above the mean
    outputs : output cycles
    """

    name: ClassVar[str] = "ipic3d"
    title: ClassVar[str] = "iPIC3D"
    noncontiguous: ClassVar[bool] = True
    interfaces: ClassVar[tuple[str, ...]] = ("hdf5", "mpiio")
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"nxc": 12, "nyc": 12, "nzc": 12, "ns": 2, "npcelx": 2, "npcely": 2, "npcelz": 2},
        "laptop": {"nxc": 20, "nyc": 20, "nzc": 20, "ns": 2, "npcelx": 3, "npcely": 3, "npcelz": 3, "outputs": 1},
        "published": {"nxc": 64, "nyc": 48, "nzc": 32, "ns": 4},  # inputfiles/LargeIvy.inp
        "gem": {"nxc": 15, "nyc": 15, "nzc": 1, "ns": 2},  # inputfiles/GEM.inp
    }

    nxc: int = 64
    nyc: int = 48
    nzc: int = 32
    ns: int = 4
    npcelx: int = 4
    npcely: int = 4
    npcelz: int = 4
    imbalance: int = 5
    outputs: int = 2

    def check(self) -> None:  # noqa: D102
        self.check_least(1, "nxc", "nyc", "nzc", "ns", "npcelx", "npcely", "npcelz", "outputs")
        if not 0 <= self.imbalance < 100:
            raise ArgumentError(f"{self.name}: imbalance must be from 0 to 99 percent, not {self.imbalance}")

    def scaling(self, factor: float) -> dict[str, Any]:  # noqa: D102
        nxc, nyc, nzc = (max(1, round(n * factor ** (1 / 3))) for n in (self.nxc, self.nyc, self.nzc))
        return {"nxc": nxc, "nyc": nyc, "nzc": nzc}

    @property
    def processes(self) -> tuple[int, int, int]:
        """(XLEN, YLEN, ZLEN)."""
        x, y, z = balanced_grid(self.ranks, 3)
        return x, y, z

    def particles(self, rank: int, species: int) -> int:
        """Return how many particles of a species a rank has: in turn fewer, as many and more than the mean."""
        mean = self.nxc * self.nyc * self.nzc * self.npcelx * self.npcely * self.npcelz
        return max(1, mean + mean * self.imbalance * ((rank + species) % 3 - 1) // 100)

    def _run(self, rank: int, species: int) -> Slab:
        """Return a rank's part of the particles of all ranks."""
        return (sum(self.particles(r, species) for r in range(rank)),), (self.particles(rank, species),)

    def _nodes(self, rank: int) -> Slab:
        """Return a rank's part of the nodes of the grid; (z, y, x), and the last rank coordinate varies fastest."""
        lengths = self.processes
        coordinates = (rank // (lengths[1] * lengths[2]), rank // lengths[2] % lengths[1], rank % lengths[2])
        cells = (self.nxc, self.nyc, self.nzc)
        start = tuple(c * n for c, n in zip(coordinates, cells, strict=True))
        count = tuple(n + (c == length - 1) for c, n, length in zip(coordinates, cells, lengths, strict=True))
        return start[::-1], count[::-1]

    def _moments(self) -> Iterator[str]:
        yield from ("Ex", "Ey", "Ez", "Bx", "By", "Bz")
        for species in range(self.ns):
            yield from (f"{moment}_{species}" for moment in ("rho", "Jx", "Jy", "Jz"))

    def files(self) -> tuple[FileLayout, ...]:  # noqa: D102
        x, y, z = self.processes
        nodes = (z * self.nzc + 1, y * self.nyc + 1, x * self.nxc + 1)
        fields = packed_variables(*((f"Step#0/Block/{name}/0", "<f8", nodes) for name in self._moments()))
        totals = [sum(self.particles(rank, species) for rank in range(self.ranks)) for species in range(self.ns)]
        particles = packed_variables(
            *((f"Step#0/{name}_{species}", "<f8", (n,)) for species, n in enumerate(totals) for name in _PROPERTIES)
        )
        return (
            *(FileLayout(name=f"GEM-Fields_{n:06d}", variables=fields) for n in range(self.outputs)),
            *(FileLayout(name=f"GEM-Partcl_{n:06d}", variables=particles) for n in range(self.outputs)),
            *(self._restart(rank) for rank in range(self.ranks)),
        )

    def _restart(self, rank: int) -> FileLayout:
        nodes = (self.nxc + 1, self.nyc + 1, self.nzc + 1)
        parts: list[tuple[str, tuple[int, ...]]] = []
        parts += [(f"fields/{name}/cycle_0", nodes) for name in ("Bx", "By", "Bz", "Ex", "Ey", "Ez")]
        parts += [(f"moments/species_{species}/rho/cycle_0", nodes) for species in range(self.ns)]
        for names in (("x", "y", "z"), ("u", "v", "w"), ("q",)):
            for species in range(self.ns):
                shape = (self.particles(rank, species),)
                parts += [(f"particles/species_{species}/{name}/cycle_0", shape) for name in names]
        variables = packed_variables(*((name, "<f8", shape) for name, shape in parts))
        return FileLayout(name=f"restart{rank}", variables=variables, owner=rank)

    def phases(self) -> tuple[Phase, ...]:  # noqa: D102
        return (
            Phase(name="fields", operation="write"),
            Phase(name="particles", operation="write", contiguous=True),
            Phase(name="restart", operation="write", contiguous=True),
            Phase(name="resume", operation="read", contiguous=True),
        )

    def steps(self, phase: str, rank: int, interface: str) -> Iterator[Step]:  # noqa: D102
        del interface
        if phase in ("restart", "resume"):
            yield from self._own(rank, write=phase == "restart")
            return
        for output in range(self.outputs):
            file = output + (self.outputs if phase == "particles" else 0)
            yield Open(file=file, mode="create")
            for variable, slab in self._fields(rank) if phase == "fields" else self._particles(rank):
                yield Access(file=file, variable=variable, write=True, slabs=(slab,))
            yield Close(file=file)

    def _fields(self, rank: int) -> Iterator[tuple[str, Slab]]:
        nodes = self._nodes(rank)
        yield from ((f"Step#0/Block/{name}/0", nodes) for name in self._moments())

    def _particles(self, rank: int) -> Iterator[tuple[str, Slab]]:
        for species in range(self.ns):
            run = self._run(rank, species)
            yield from ((f"Step#0/{name}_{species}", run) for name in _PROPERTIES)

    def _own(self, rank: int, *, write: bool) -> Iterator[Step]:
        file = 2 * self.outputs + rank
        yield Open(file=file, mode="create" if write else "read")
        for variable in self._restart(rank).variables:
            whole = ((0,) * len(variable.shape), variable.shape)
            yield Access(file=file, variable=variable.name, write=write, slabs=(whole,), collective=False)
        yield Close(file=file)
