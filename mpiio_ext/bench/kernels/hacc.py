"""HACC-IO: checkpoint and restart of a cosmology code, nine arrays of particles behind a header.

Source: github.com/glennklockwood/hacc-io (``RestartIO_GLEAN.cxx``); parameters are named as there. A particle has 38
bytes: xx, yy, zz, vx, vy, vz, phi in single precision, a 64-bit pid and a 16-bit mask. A file begins with a header of
24 MiB (FILE_HEADER_SIZE_MAX); behind it lies a rank's block, one array after the other. All calls are independent:
nine writes, then the header: the "10 large chunks" of Lockwood et al., "TOKIO on ClusterStor". A restart reads the
header first, through an open of its own. (Setting the size of the new file beforehand is left out.)

Configurations: Bez et al., "Arbitration Policies for On-Demand User-Level I/O Forwarding on HPC Platforms" (Section
5.1): 100 000 particles, file per process, POSIX; Lockwood et al.: 96 MiB per process on Mira, 1 GiB on Edison,
MPI-IO.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from mpiio_ext.bench.kernels.layout import FileLayout, Variable, packed_variables
from mpiio_ext.bench.kernels.program import Access, Close, Kernel, Open, Phase, Step
from mpiio_ext.errors import ArgumentError

#: What a particle has, in the order of the file.
_FIELDS = (*((name, "<f4") for name in ("xx", "yy", "zz", "vx", "vy", "vz", "phi")), ("pid", "<i8"), ("mask", "<u2"))
_HEADER_BYTES = 24 << 20
_HEADER_ITEM_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Hacc(Kernel):
    """A file per process.

    Attributes
    ----------
    numparticles : per rank
    header_size : of a file's header, in bytes, a multiple of 8
    """

    name: ClassVar[str] = "hacc"
    title: ClassVar[str] = "HACC-IO"
    noncontiguous: ClassVar[bool] = False
    interfaces: ClassVar[tuple[str, ...]] = ("posix", "mpiio")
    #: The headers of "quick" alone would be its whole volume, so they are smaller.
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"numparticles": 100_000, "header_size": 1 << 20},
        "laptop": {"numparticles": 1_000_000},
        "published": {"numparticles": 100_000},
        "tokio_mira": {"numparticles": 1_986_775},
        "tokio_edison": {"numparticles": 27_594_105},
    }

    numparticles: int = 100_000
    header_size: int = _HEADER_BYTES

    @property
    def key(self) -> str:  # noqa: D102
        return f"{self.name}-{self.numparticles}-{self.header_size}"

    def check(self) -> None:  # noqa: D102
        self.check_least(1, "numparticles")
        if self.header_size < _HEADER_ITEM_BYTES or self.header_size % _HEADER_ITEM_BYTES:
            raise ArgumentError(
                f"{self.name}: header_size must be a multiple of {_HEADER_ITEM_BYTES}, not {self.header_size}"
            )

    def scaling(self, factor: float) -> dict[str, Any]:  # noqa: D102
        items = max(1, round(self.header_size * factor / _HEADER_ITEM_BYTES))
        return {"numparticles": max(1, round(self.numparticles * factor)), "header_size": items * _HEADER_ITEM_BYTES}

    def files(self) -> tuple[FileLayout, ...]:  # noqa: D102
        return tuple(
            FileLayout(name=f"{self.key}-Part{rank:08d}-of-{self.ranks:08d}", variables=self._arrays(rank), owner=rank)
            for rank in range(self.ranks)
        )

    def _arrays(self, rank: int) -> tuple[Variable, ...]:
        """Return the contents of a rank's file."""
        particles = [(_array(name, rank), dtype, (self.numparticles,)) for name, dtype in _FIELDS]
        return packed_variables(("header", "<i8", (self.header_size // _HEADER_ITEM_BYTES,)), *particles)

    def phases(self) -> tuple[Phase, ...]:  # noqa: D102
        return (Phase(name="checkpoint", operation="write"), Phase(name="restart", operation="read"))

    def steps(self, phase: str, rank: int, interface: str) -> Iterator[Step]:  # noqa: D102
        del interface
        header = (("header", self.header_size // _HEADER_ITEM_BYTES),)
        particles = tuple((_array(name, rank), self.numparticles) for name, _ in _FIELDS)
        if phase == "checkpoint":
            yield Open(file=rank, mode="create")
            yield from _accesses(rank, particles + header, write=True)
            yield Close(file=rank)
            return
        yield Open(file=rank, mode="read")
        yield from _accesses(rank, header, write=False)
        yield Close(file=rank)
        yield Open(file=rank, mode="read")
        yield from _accesses(rank, particles, write=False)
        yield Close(file=rank)


def _array(name: str, rank: int) -> str:
    return f"{name}/{rank:08d}"


def _accesses(file: int, arrays: tuple[tuple[str, int], ...], *, write: bool) -> Iterator[Step]:
    for name, items in arrays:
        yield Access(file=file, variable=name, write=write, slabs=(((0,), (items,)),), collective=False)
