"""VPIC-IO and BD-CATS-IO: particles of a plasma simulation, written by one code and clustered by another.

Source: Lockwood et al., "TOKIO on ClusterStor" (Section "I/O performance regression tests"): every process writes 8 Mi
particles of eight properties, six floating-point and two integer ones. Each is a one-dimensional array of one shared
HDF5 file, through H5Part. BD-CATS reads positions and momenta of all particles, 75 % of the bytes. Names and types are
those of VPIC-IO (S. Byna et al., "Parallel I/O, analysis, and visualization of a trillion particle simulation", SC12):
H5Part's group ``Step#0``, single precision, 32-bit identifiers. Rank r's particles follow those of rank r - 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from mpiio_ext.bench.kernels.layout import FileLayout, packed_variables
from mpiio_ext.bench.kernels.program import Access, Close, Kernel, Open, Phase, Step

_FLOATS = ("x", "y", "z", "px", "py", "pz")
_INTEGERS = ("id1", "id2")


@dataclass(frozen=True, slots=True, kw_only=True)
class Vpic(Kernel):
    """Write: create, eight collective writes, close.

    Attributes
    ----------
    particles : per rank
    """

    name: ClassVar[str] = "vpic"
    title: ClassVar[str] = "VPIC-IO"
    noncontiguous: ClassVar[bool] = False
    interfaces: ClassVar[tuple[str, ...]] = ("hdf5", "mpiio")
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"particles": 128 << 10},
        "laptop": {"particles": 1 << 20},
        "published": {"particles": 8 << 20},
    }

    particles: int = 1 << 20

    def check(self) -> None:  # noqa: D102
        self.check_least(1, "particles")

    def scaling(self, factor: float) -> dict[str, Any]:  # noqa: D102
        return {"particles": max(1, round(self.particles * factor))}

    def files(self) -> tuple[FileLayout, ...]:  # noqa: D102
        shape = (self.particles * self.ranks,)
        parts = [(f"Step#0/{name}", "<f4", shape) for name in _FLOATS]
        parts += [(f"Step#0/{name}", "<i4", shape) for name in _INTEGERS]
        return (FileLayout(name="vpic", variables=packed_variables(*parts)),)

    def phases(self) -> tuple[Phase, ...]:  # noqa: D102
        return (Phase(name="particles", operation="write"),)

    def steps(self, phase: str, rank: int, interface: str) -> Iterator[Step]:  # noqa: D102
        del phase, interface
        yield Open(file=0, mode="create")
        yield from self._all(rank, (*_FLOATS, *_INTEGERS), write=True)
        yield Close(file=0)

    def _all(self, rank: int, names: tuple[str, ...], *, write: bool) -> Iterator[Step]:
        slab = ((rank * self.particles,), (self.particles,))
        for name in names:
            yield Access(file=0, variable=f"Step#0/{name}", write=write, slabs=(slab,))


@dataclass(frozen=True, slots=True, kw_only=True)
class BdCats(Vpic):
    """VPIC-IO's file, then the six floating-point properties read by the ranks that did not write them."""

    name: ClassVar[str] = "bdcats"
    title: ClassVar[str] = "BD-CATS-IO"

    def phases(self) -> tuple[Phase, ...]:  # noqa: D102
        return (Phase(name="particles", operation="write"), Phase(name="clustering", operation="read"))

    def steps(self, phase: str, rank: int, interface: str) -> Iterator[Step]:  # noqa: D102
        if phase == "particles":
            yield from super(BdCats, self).steps(phase, rank, interface)
            return
        yield Open(file=0, mode="read")
        yield from self._all((rank + 1) % self.ranks, _FLOATS, write=False)
        yield Close(file=0)
