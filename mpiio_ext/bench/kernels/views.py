"""How an MPI-IO program sees an access: one file view, explicit offsets in it, and memory, as MPI datatypes.

Accesses are described by slabs of arrays (`mpiio_ext.bench.kernels.layout`), from which every interface makes what it
needs. A pattern is about the datatypes themselves: its plan names the constructors, and MPI-IO uses their types
unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mpiio_ext.bench.kernels.shapes import Contiguous, Element, Offsets, Shape, coalesce


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One rank's part of one collective call.

    Attributes
    ----------
    offset_elements : explicit offset inside the view, in elements of the view's data
    memory : where the bytes are in the memory of the call
    """

    offset_elements: int
    memory: Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One file view and the collective calls of one rank under it; every rank has the same number of calls.

    Attributes
    ----------
    element : elementary type of the view
    displacement_bytes : where the view begins in the file
    file : file type, repeated at its extent
    calls : the collective calls, each with memory of its own
    """

    element: Element
    displacement_bytes: int
    file: Shape
    calls: tuple[Call, ...]

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
        """Return the same accesses with contiguous memory."""
        calls = []
        for call in self.calls:
            memory = Contiguous(element=self.element, count=call.memory.size_bytes // self.element.size_bytes)
            calls.append(Call(offset_elements=call.offset_elements, memory=memory))
        return Plan(
            element=self.element, displacement_bytes=self.displacement_bytes, file=self.file, calls=tuple(calls)
        )


def idle_plan(element: Element, calls: int) -> Plan:
    """Return the plan of a rank that has no data and takes part in every call with zero bytes."""
    nothing = Call(offset_elements=0, memory=Contiguous(element=element, count=0))
    view = Contiguous(element=element, count=1)
    return Plan(element=element, displacement_bytes=0, file=view, calls=(nothing,) * calls)
