"""The I/O of applications, one module each. A new one is one module and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mpiio_ext.bench.kernels.coll_perf import CollPerf
from mpiio_ext.bench.kernels.flash import Flash
from mpiio_ext.bench.kernels.hacc import Hacc, HaccShared
from mpiio_ext.bench.kernels.ior import IorFilePerProcess, IorHard, IorRandom, IorShared
from mpiio_ext.bench.kernels.ipic3d import Ipic3d
from mpiio_ext.bench.kernels.madbench import Madbench
from mpiio_ext.bench.kernels.mpi_io_test import MpiIoTestNToN, MpiIoTestSegmented, MpiIoTestStrided
from mpiio_ext.bench.kernels.nas_btio import NasBtio, NasBtioSimple
from mpiio_ext.bench.kernels.program import Kernel
from mpiio_ext.bench.kernels.s3asim import S3aSim, S3aSimCollective
from mpiio_ext.bench.kernels.s3d import S3d
from mpiio_ext.bench.kernels.vpic import BdCats, Vpic
from mpiio_ext.errors import ArgumentError

__all__ = ["REGISTRY", "Kernel", "create"]

#: Kernel name -> class, in the order in which the bench runs them.
REGISTRY: dict[str, type[Kernel]] = {
    kernel.name: kernel
    for kernel in (
        IorShared, IorFilePerProcess, IorHard, IorRandom,
        MpiIoTestStrided, MpiIoTestSegmented, MpiIoTestNToN,
        CollPerf,
        Vpic, BdCats,
        Hacc, HaccShared,
        S3aSim, S3aSimCollective,
        S3d, Flash, NasBtio, NasBtioSimple, Madbench, Ipic3d,
    )
}


def create(
    name: str, ranks: int, *, preset: str = "laptop", parameters: Mapping[str, Any] | None = None, scale: float = 1.0
) -> Kernel:
    """Return a kernel in one of its sizes, with `parameters` on top, its volume per rank multiplied by `scale`.

    Raises
    ------
    ArgumentError
        The kernel has no such preset or parameter, or they do not fit.
    """
    kind = REGISTRY[name]
    if preset not in kind.presets:
        raise ArgumentError(f"{name}: no preset '{preset}' (there are: {', '.join(kind.presets)})")
    return kind.create(ranks, {**kind.presets[preset], **(parameters or {})}, scale=scale)
