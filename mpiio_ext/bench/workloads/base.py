"""What a workload is: who writes and reads which bytes, in which calls, and which bytes nobody writes.

A `Workload` is geometry only: it knows neither MPI, nor a file, nor time. Its `write_plan` and `read_plan` say what one
rank does, as `Plan`: one file view and a sequence of collective calls. Independently of the plans, `mask` says by its
own formula which bytes of the file are written at all; the verification uses only `mask` and the pattern, and the unit
tests compare `mask` with the union of all ranks' plans.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mpiio_ext.bench.pattern import POISON, Bytes, Offsets, fill_pieces
from mpiio_ext.bench.shapes import Contiguous, Element, Shape, coalesce

__all__ = ["Call", "Mask", "Plan", "Sizes", "Slab", "Workload", "balanced_grid", "bytes_text", "idle_plan"]

Mask = npt.NDArray[np.bool_]

#: (start, count) of a rectangular part of a dataset, in elements of 8 bytes.
Slab = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """What the command line says about sizes; every workload derives its geometry from it.

    Attributes
    ----------
    file_bytes : size aimed at; the workloads round down to what their geometry allows
    blocks_bytes : block sizes of the interleaved workload, one variant each
    transfer_bytes : bytes per rank and call of the contiguous workload; 0 = the whole segment in one call
    piece_bytes : longest piece of the random workload
    ghost : width of the ghost cells of the 2-D tiles, in elements
    steps : time steps that BT-IO writes
    seed : of the random workload
    """

    file_bytes: int = 64 << 20
    blocks_bytes: tuple[int, ...] = (64 << 10, 512)
    transfer_bytes: int = 0
    piece_bytes: int = 4 << 10
    ghost: int = 2
    steps: int = 5
    seed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One rank's part of one collective call.

    Attributes
    ----------
    offset_elements : explicit offset inside the view, in elements of the view's data
    memory : where the bytes are in memory
    memory_start_bytes : where `memory` begins in the rank's buffer
    """

    offset_elements: int
    memory: Shape
    memory_start_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One file view and the collective calls of one rank under it; every rank has the same number of calls.

    Attributes
    ----------
    element : elementary type of the view
    displacement_bytes : where the view begins in the file
    file : file type, repeated at its extent
    calls : the collective calls
    buffer_bytes : size of the rank's buffer
    """

    element: Element
    displacement_bytes: int
    file: Shape
    calls: tuple[Call, ...]
    buffer_bytes: int

    @property
    def data_bytes(self) -> int:
        """Bytes that this rank transfers in all calls."""
        return sum(call.memory.size_bytes for call in self.calls)

    def file_pieces(self, call: Call) -> tuple[Offsets, Offsets]:
        """Return (offsets, lengths) of a call's file bytes, in bytes, shape (pieces,), in the order of the data."""
        begin = call.offset_elements * self.element.size_bytes
        end = begin + call.memory.size_bytes
        offsets, lengths = self.file.pieces()
        if begin == end or offsets.size == 0:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        tile_bytes = int(lengths.sum())
        tiles = np.arange(begin // tile_bytes, -(-end // tile_bytes), dtype=np.int64)
        all_offsets = (tiles[:, None] * self.file.extent_bytes + offsets + self.displacement_bytes).reshape(-1)
        all_lengths = np.broadcast_to(lengths, (tiles.size, lengths.size)).reshape(-1)
        data_end = np.cumsum(all_lengths) + int(tiles[0]) * tile_bytes
        data_start = data_end - all_lengths
        cut = np.clip(begin - data_start, 0, all_lengths)
        kept = np.clip(end - data_start, 0, all_lengths) - cut
        return coalesce(all_offsets + cut, kept)

    def packed(self) -> Plan:
        """Return the same accesses with contiguous memory, one call's data after the other's."""
        calls, start = [], 0
        for call in self.calls:
            size = call.memory.size_bytes
            memory = Contiguous(element=self.element, count=size // self.element.size_bytes)
            calls.append(Call(offset_elements=call.offset_elements, memory=memory, memory_start_bytes=start))
            start += size
        return Plan(
            element=self.element,
            displacement_bytes=self.displacement_bytes,
            file=self.file,
            calls=tuple(calls),
            buffer_bytes=start,
        )

    def image(self) -> Bytes:
        """Return the buffer, shape (buffer_bytes,), with salt 0: the pattern where data is, poison everywhere else."""
        image = np.full(self.buffer_bytes, POISON, np.uint8)
        for call in self.calls:
            offsets, lengths = self.file_pieces(call)
            memory = image[call.memory_start_bytes :]
            if isinstance(call.memory, Contiguous):
                fill_pieces(memory[: call.memory.size_bytes], offsets, lengths)
                continue
            packed = np.empty(call.memory.size_bytes, np.uint8)
            fill_pieces(packed, offsets, lengths)
            call.memory.scatter(memory, packed)
        return image

    def locate(self, index: int) -> int | None:
        """Return the file offset of the buffer's byte `index`, or None where no call transfers that byte."""
        for call in self.calls:
            memory_offsets, memory_lengths = call.memory.pieces()
            memory_offsets = memory_offsets + call.memory_start_bytes
            inside = np.flatnonzero((memory_offsets <= index) & (index < memory_offsets + memory_lengths))
            if inside.size == 0:
                continue
            k = int(inside[0])
            position = int(memory_lengths[:k].sum()) + index - int(memory_offsets[k])
            offsets, lengths = self.file_pieces(call)
            ends = np.cumsum(lengths)
            piece = int(np.searchsorted(ends, position, side="right"))
            return int(offsets[piece] + position - (ends[piece] - lengths[piece]))
        return None


def idle_plan(element: Element, calls: int) -> Plan:
    """Return the plan of a rank that has no data and takes part in every call with zero bytes."""
    nothing = Call(offset_elements=0, memory=Contiguous(element=element, count=0))
    view = Contiguous(element=element, count=1)
    return Plan(element=element, displacement_bytes=0, file=view, calls=(nothing,) * calls, buffer_bytes=0)


class Workload(ABC):
    """One access pattern with its geometry fixed, for a fixed number of ranks.

    Subclasses are frozen dataclasses whose fields are the geometry; `create` derives it from `Sizes`.
    """

    __slots__ = ()

    name: ClassVar[str]
    title: ClassVar[str]
    ranks: int

    @classmethod
    @abstractmethod
    def create(cls, sizes: Sizes, ranks: int) -> list[Workload]:
        """Return the variants that `sizes` asks for; `ranks` is what is there, a variant may use fewer."""

    @property
    def key(self) -> str:
        """Name of this variant, fit for a file name and stable between sizes."""
        return self.name

    @property
    def label(self) -> str:
        """Name of this variant for people."""
        return self.title

    @property
    def note(self) -> str:
        """One line on anything unusual, e.g. idle ranks; empty when there is nothing to say."""
        return ""

    @property
    @abstractmethod
    def extent_bytes(self) -> int:
        """End of the file as the data layout defines it; bytes after the last written one may be absent."""

    @abstractmethod
    def write_plan(self, rank: int) -> Plan:
        """Return what `rank` writes."""

    def read_plan(self, rank: int) -> Plan:
        """Return what `rank` reads; what it writes unless the workload says otherwise."""
        return self.write_plan(rank)

    def mask(self, begin: int, end: int) -> Mask | None:
        """Return which file bytes of [begin, end) are written, shape (end - begin,); None = all of them."""
        del begin, end
        return None

    @property
    def array_shape(self) -> tuple[int, ...] | None:
        """Shape of the dataset of doubles that self-describing formats hold, or None where there is none.

        Its row-major bytes are the bytes [0, extent_bytes) of the MPI-IO file.
        """
        return None

    def array_slabs(self, rank: int) -> list[list[Slab]]:
        """Return the disjoint parts of the dataset of `rank`, one list per call, in the order of the data."""
        raise NotImplementedError(f"{self.name} has no dataset (rank {rank})")

    @property
    def written_end_bytes(self) -> int:
        """Offset just after the last written byte."""
        end = self.extent_bytes
        while end > 0:
            begin = max(0, end - (1 << 20))
            mask = self.mask(begin, end)
            if mask is None:
                return end
            written = np.flatnonzero(mask)
            if written.size:
                return begin + int(written[-1]) + 1
            end = begin
        return 0


def balanced_grid(ranks: int, dimensions: int) -> tuple[int, ...]:
    """Return the factors of `ranks`, as equal as possible and descending (the purpose of MPI_Dims_create)."""
    if dimensions == 1:
        return (ranks,)
    best: tuple[int, ...] | None = None
    for first in range(ranks, 0, -1):
        if ranks % first:
            continue
        rest = balanced_grid(ranks // first, dimensions - 1)
        if rest[0] > first:
            continue
        candidate = (first, *rest)
        if best is None or candidate[0] - candidate[-1] < best[0] - best[-1]:
            best = candidate
    return best if best is not None else (ranks,) + (1,) * (dimensions - 1)


def bytes_text(count: int) -> str:
    """Return a byte count for people, exact: ``"64 KiB"``, ``"8 B"``, ``"1000 B"``."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count and count % size == 0:
            return f"{count // size} {unit}"
    return f"{count} B"
