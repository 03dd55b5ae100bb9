"""The workloads, one module each. A new one is one module and one line here."""

from __future__ import annotations

from mpiio_ext.bench.workloads.base import Call, Plan, Sizes, Workload
from mpiio_ext.bench.workloads.block3d import Block3D
from mpiio_ext.bench.workloads.btio import BTIO
from mpiio_ext.bench.workloads.contiguous import ContiguousSegments
from mpiio_ext.bench.workloads.interleaved import InterleavedBlocks
from mpiio_ext.bench.workloads.random_pieces import RandomPieces
from mpiio_ext.bench.workloads.tiles2d import Tiles2D

__all__ = ["REGISTRY", "Call", "Plan", "Sizes", "Workload", "create"]

#: Workload name -> class, in the order in which the bench runs them.
REGISTRY: dict[str, type[Workload]] = {
    workload.name: workload
    for workload in (ContiguousSegments, InterleavedBlocks, Block3D, Tiles2D, BTIO, RandomPieces)
}


def create(names: tuple[str, ...], sizes: Sizes, ranks: int) -> list[Workload]:
    """Return every variant of the named workloads for `ranks` ranks.

    Raises
    ------
    ArgumentError
        The sizes do not fit the number of ranks.
    """
    return [variant for name in names for variant in REGISTRY[name].create(sizes, ranks)]
