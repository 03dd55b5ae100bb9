"""Random pieces: pieces of random length at random places, with gaps between them.

Source: the access of particle and search codes whose output sizes depend on the data, as in S3aSim (A. Ching, W. Feng,
H. Lin, X. Ma, A. Choudhary, "Exploring I/O strategies for parallel sequence-search tools with S3aSim", HPDC 2006); made
collective here.

Layout: the file is a row of slots of ``slot_bytes``. A slot has no owner with probability 1/8 and otherwise a random
rank. Its piece begins at a random byte of the first quarter of the slot, and has a random length from one byte to the
rest of the slot. Nothing is aligned. Each rank sees its own pieces through one MPI_Type_create_hindexed and moves them
in one call. Every rank draws the same table from the same seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from mpiio_ext.bench.kernels.pattern import MicroForm, Pattern, Sizes
from mpiio_ext.bench.kernels.shapes import BYTE, Contiguous, Indexed, Mask, Offsets
from mpiio_ext.bench.kernels.views import Call, Plan, idle_plan
from mpiio_ext.errors import ArgumentError

_NOBODY = -1
#: Most slots of a table: every rank has three numbers of each in memory.
_MOST_SLOTS = 1 << 26


@lru_cache(maxsize=2)
def _table(seed: int, slots: int, slot_bytes: int, ranks: int) -> tuple[Offsets, Offsets, Offsets]:
    """Return (owner, offset, length) of every slot, shape (slots,); offsets and lengths in bytes."""
    generator = np.random.Generator(np.random.PCG64(seed))
    owner = generator.integers(0, ranks, slots)
    owner[generator.random(slots) < 1 / 8] = _NOBODY
    start = generator.integers(0, slot_bytes // 4 + 1, slots)
    length = 1 + (generator.random(slots) * (slot_bytes - start)).astype(np.int64)
    length[owner == _NOBODY] = 0
    offset = np.arange(slots, dtype=np.int64) * slot_bytes + start
    return owner, offset, np.minimum(length, slot_bytes - start)


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomPieces(Pattern):
    """Geometry: bytes of a slot, slots, seed."""

    name: ClassVar[str] = "random"
    title: ClassVar[str] = "random pieces with gaps"
    micro_forms: ClassVar[tuple[MicroForm, ...]] = (
        MicroForm(name="random64", title="random pieces of 64 B", pattern="random", block_bytes=64),
    )

    slot_bytes: int
    slots: int
    seed: int

    @classmethod
    def create(cls, sizes: Sizes, ranks: int) -> list[Pattern]:  # noqa: D102
        slots = sizes.file_bytes // sizes.piece_bytes
        if slots < 1:
            raise ArgumentError(
                f"random: the file size of {sizes.file_bytes} bytes is less than one piece of {sizes.piece_bytes} bytes"
            )
        if slots > _MOST_SLOTS:
            raise ArgumentError(
                f"random: a file of {sizes.file_bytes} bytes has {slots:,} pieces of "
                f"{sizes.piece_bytes} bytes, at most {_MOST_SLOTS:,} are drawn: give a larger --piece"
            )
        return [cls(ranks=ranks, slot_bytes=sizes.piece_bytes, slots=slots, seed=sizes.seed)]

    @property
    def _pieces(self) -> tuple[Offsets, Offsets, Offsets]:
        return _table(self.seed, self.slots, self.slot_bytes, self.ranks)

    def words(self, sizes: Sizes) -> list[str]:  # noqa: D102
        return ["--piece", str(sizes.piece_bytes), "--seed", str(sizes.seed)]

    @property
    def extent_bytes(self) -> int:  # noqa: D102
        return self.slots * self.slot_bytes

    def write_plan(self, rank: int) -> Plan:  # noqa: D102
        owner, offset, length = self._pieces
        mine = np.flatnonzero(owner == rank)
        if mine.size == 0:
            return idle_plan(BYTE, calls=1)
        file = Indexed(offsets_bytes=offset[mine], lengths_bytes=length[mine], whole_bytes=self.extent_bytes)
        memory = Contiguous(element=BYTE, count=file.size_bytes)
        return Plan(element=BYTE, displacement_bytes=0, file=file, calls=(Call(offset_elements=0, memory=memory),))

    def mask(self, begin: int, end: int) -> Mask:  # noqa: D102
        _, offset, length = self._pieces
        slots = slice(begin // self.slot_bytes, -(-end // self.slot_bytes))
        starts, ends = offset[slots], offset[slots] + length[slots]
        edges = np.zeros(end - begin + 1, np.int32)
        np.add.at(edges, np.clip(starts, begin, end) - begin, 1)
        np.add.at(edges, np.clip(ends, begin, end) - begin, -1)
        return np.cumsum(edges[:-1]) > 0
