"""The accesses: patterns, and kernels, which are the I/O of applications; one module each.

A new one is one module and one line here. `program` defines the description of a module; `pattern` adds the parts that
only patterns have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mpiio_ext.bench.arguments import one_of
from mpiio_ext.bench.kernels.block3d import Block3D
from mpiio_ext.bench.kernels.btio import BTIO
from mpiio_ext.bench.kernels.climate import ClimateFlush
from mpiio_ext.bench.kernels.coll_perf import CollPerf
from mpiio_ext.bench.kernels.contiguous import ContiguousSegments
from mpiio_ext.bench.kernels.e3sm import E3smF, E3smG, E3smI
from mpiio_ext.bench.kernels.flash import Flash
from mpiio_ext.bench.kernels.hacc import Hacc
from mpiio_ext.bench.kernels.interleaved import InterleavedBlocks
from mpiio_ext.bench.kernels.ior import IorFilePerProcess, IorHard, IorShared
from mpiio_ext.bench.kernels.ipic3d import Ipic3d
from mpiio_ext.bench.kernels.lattice4d import Lattice4d
from mpiio_ext.bench.kernels.madbench import Madbench
from mpiio_ext.bench.kernels.mpi_io_test import MpiIoTestNToN, MpiIoTestSegmented, MpiIoTestStrided
from mpiio_ext.bench.kernels.nas_btio import NasBtio
from mpiio_ext.bench.kernels.pattern import Pattern, Sizes
from mpiio_ext.bench.kernels.pioneer import Pioneer
from mpiio_ext.bench.kernels.program import Kernel, Program
from mpiio_ext.bench.kernels.random_pieces import RandomPieces
from mpiio_ext.bench.kernels.s3asim import S3aSim
from mpiio_ext.bench.kernels.s3d import S3d
from mpiio_ext.bench.kernels.tiles2d import Tiles2D
from mpiio_ext.bench.kernels.vpic import BdCats, Vpic
from mpiio_ext.errors import ArgumentError

__all__ = [
    "KERNELS",
    "LARGEST_SCALE",
    "PATTERNS",
    "WITH_FILE",
    "Kernel",
    "Pattern",
    "Program",
    "Sizes",
    "create",
    "create_patterns",
    "kernel_name",
    "kind_of",
]

#: Pattern name -> class, in the order in which the bench runs them.
#:
#: :meta hide-value:
PATTERNS: dict[str, type[Pattern]] = {
    pattern.name: pattern
    for pattern in (ContiguousSegments, InterleavedBlocks, Block3D, Tiles2D, BTIO, RandomPieces, ClimateFlush)
}

#: Kernel name -> class, in the order in which the bench runs them.
#:
#: :meta hide-value:
KERNELS: dict[str, type[Kernel]] = {
    kernel.name: kernel
    for kernel in (
        IorShared,
        IorFilePerProcess,
        IorHard,
        MpiIoTestStrided,
        MpiIoTestSegmented,
        MpiIoTestNToN,
        CollPerf,
        Vpic,
        BdCats,
        Hacc,
        S3aSim,
        S3d,
        Flash,
        NasBtio,
        Madbench,
        Ipic3d,
        E3smF,
        E3smG,
        E3smI,
        Lattice4d,
    )
}


#: Kernels that are named with a file, ``NAME:FILE``: name -> (class, the parameter that is the file).
#:
#: :meta hide-value:
WITH_FILE: dict[str, tuple[type[Kernel], str]] = {Pioneer.name: (Pioneer, "path")}


#: Largest factor by which the volume of a kernel is multiplied.
LARGEST_SCALE = 1000.0


def kernel_name(text: str) -> str:
    """Return the name of a kernel as the user gives it, ``NAME`` or ``NAME:FILE``.

    Raises
    ------
    ValueError
        No kernel has this name, or the name of its file is missing.
    """
    name, colon, file = text.partition(":")
    if name in WITH_FILE and not file:
        raise ValueError(f"the kernel '{name}' needs a file: {name}:FILE")
    if not (colon and name in WITH_FILE):
        one_of([*KERNELS, *(f"{name}:FILE" for name in WITH_FILE)])(text)
    return text


def kind_of(name: str) -> type[Kernel]:
    """Return the class of a kernel, ``NAME`` or ``NAME:FILE``."""
    plain = name.partition(":")[0]
    return WITH_FILE[plain][0] if plain in WITH_FILE else KERNELS[name]


def create_patterns(names: tuple[str, ...], sizes: Sizes, ranks: int) -> list[Pattern]:
    """Return every variant of the named patterns for `ranks` ranks.

    Raises
    ------
    ArgumentError
        The sizes do not fit the number of ranks.
    """
    return [variant for name in names for variant in PATTERNS[name].create(sizes, ranks)]


def create(
    name: str, ranks: int, *, preset: str = "laptop", parameters: Mapping[str, Any] | None = None, scale: float = 1.0
) -> Kernel:
    """Return a kernel in one of its sizes, with `parameters` on top, its volume per rank multiplied by `scale`.

    Raises
    ------
    ArgumentError
        The kernel has no such preset or parameter, or they do not fit.
    """
    if not 0 < scale <= LARGEST_SCALE:
        raise ArgumentError(f"{name}: scale must be above 0 and at most {LARGEST_SCALE:g}, not {scale:g}")
    kind = kind_of(name)
    plain, _, file = name.partition(":")
    given = {WITH_FILE[plain][1]: file} if plain in WITH_FILE else {}
    if preset not in kind.presets:
        raise ArgumentError(f"{name}: no preset '{preset}' (there are: {', '.join(kind.presets)})")
    return kind.create(ranks, {**kind.presets[preset], **(parameters or {}), **given}, scale=scale)
