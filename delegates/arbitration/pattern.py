"""Access patterns: the properties of a job's I/O that decide how its bandwidth depends on I/O nodes.

Source. Section 2 of the arbitration paper (the 189 scenarios: compute nodes, processes, file layout, spatiality,
        request size) and its Section 3.1 (base patterns).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from mpiio_ext.errors import ArgumentError

Layout = Literal["file-per-process", "shared"]
Spatiality = Literal["contiguous", "strided"]

#: Weight of a difference, in doublings of the request size: another layout changes bandwidth more than anything
#: else that was varied (Figure 1: A and C), then spatiality, then size of the job.
_LAYOUT_DOUBLINGS = 8.0
_SPATIALITY_DOUBLINGS = 4.0
_OPERATION_DOUBLINGS = 4.0


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Pattern:
    """One access pattern.

    Attributes
    ----------
    layout : a file of its own for each process, or one shared by all
    spatiality : a process's requests follow each other in the file, or are a constant stride apart
    request_bytes : of one request
    compute_nodes, processes : that issue requests
    operation : "write" or "read"
    direct : past the page cache (O_DIRECT)
    """

    layout: Layout
    spatiality: Spatiality
    request_bytes: int
    compute_nodes: int
    processes: int
    operation: str = "write"
    direct: bool = False

    def __post_init__(self) -> None:
        if self.layout not in ("file-per-process", "shared"):
            raise ArgumentError(f"layout must be file-per-process or shared, not {self.layout!r}")
        if self.spatiality not in ("contiguous", "strided"):
            raise ArgumentError(f"spatiality must be contiguous or strided, not {self.spatiality!r}")
        if min(self.request_bytes, self.compute_nodes, self.processes) < 1:
            raise ArgumentError("request_bytes, compute_nodes and processes must be 1 or more")

    @property
    def name(self) -> str:
        """A short name, unique among patterns."""
        kib = self.request_bytes / 1024
        size = f"{kib:g}KiB" if kib >= 1 else f"{self.request_bytes}B"
        direct = "-direct" if self.direct else ""
        kind = "fpp" if self.layout == "file-per-process" else "shared"
        return f"{kind}-{self.spatiality}-{size}-{self.compute_nodes}x{self.processes}-{self.operation}{direct}"


def distance(a: Pattern, b: Pattern) -> float:
    """Return the distance of two patterns, in doublings of the request size; 0 for equal patterns.

    Whether accesses go past the page cache is not in it: see :mod:`mpiio_ext.delegates.arbitration.estimate`.
    """
    return (
        _LAYOUT_DOUBLINGS * (a.layout != b.layout)
        + _SPATIALITY_DOUBLINGS * (a.spatiality != b.spatiality)
        + _OPERATION_DOUBLINGS * (a.operation != b.operation)
        + abs(math.log2(a.request_bytes / b.request_bytes))
        + abs(math.log2(a.processes / b.processes))
        + abs(math.log2(a.compute_nodes / b.compute_nodes))
    )
