"""Interleaved blocks: the ranks' blocks alternate through the whole file.

Source: the "strided" access of IOR and of the LANL MPI-IO test (N-1 strided), with one collective call under a strided
file view, as an MPI-IO program expresses it. The noncontiguous test of ROMIO (noncontig.c) has the same layout.

Layout: block i of rank r is at byte (i·ranks + r)·block. Memory is contiguous. The file type is one block with the
extent of a whole row of blocks, so that the view repeats it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mpiio_ext.bench.kernels.pattern import MicroForm, Pattern, Sizes
from mpiio_ext.bench.kernels.shapes import BYTE, DOUBLE, Contiguous, Element, Vector
from mpiio_ext.bench.kernels.views import Call, Plan
from mpiio_ext.common.units import size_text
from mpiio_ext.errors import ArgumentError


@dataclass(frozen=True, slots=True, kw_only=True)
class InterleavedBlocks(Pattern):
    """Geometry: bytes per block, blocks per rank."""

    name: ClassVar[str] = "interleaved"
    title: ClassVar[str] = "interleaved blocks"
    micro_forms: ClassVar[tuple[MicroForm, ...]] = (
        MicroForm(name="inter8", title="interleaved 8 B", pattern="inter", block_bytes=8),
        MicroForm(name="inter64", title="interleaved 64 B", pattern="inter", block_bytes=64),
        MicroForm(name="inter4096", title="interleaved 4 KiB", pattern="inter", block_bytes=4096),
        MicroForm(name="inter65536", title="interleaved 64 KiB", pattern="inter", block_bytes=65536),
        MicroForm(name="inter1048576", title="interleaved 1 MiB", pattern="inter", block_bytes=1 << 20),
        MicroForm(name="tiny", title="a call for each 4 B", pattern="tiny", block_bytes=4),
        MicroForm(name="tiny4096", title="a call for each 4 KiB", pattern="tiny", block_bytes=4096),
        MicroForm(name="tiny65536", title="a call for each 64 KiB", pattern="tiny", block_bytes=65536),
        MicroForm(name="gaps64", title="interleaved 64 B with gaps", pattern="gaps", block_bytes=64, gaps=True),
    )

    block_bytes: int
    blocks: int

    @classmethod
    def create(cls, sizes: Sizes, ranks: int) -> list[Pattern]:  # noqa: D102
        variants: list[Pattern] = []
        for block_bytes in sizes.blocks_bytes:
            blocks = sizes.file_bytes // (block_bytes * ranks)
            if blocks < 1:
                block, whole = (size_text(count, exact=True) for count in (block_bytes, sizes.file_bytes))
                raise ArgumentError(
                    f"interleaved: one block of {block} for each of {ranks} ranks is more than the file size of {whole}"
                )
            variants.append(cls(ranks=ranks, block_bytes=block_bytes, blocks=blocks))
        return variants

    @property
    def key(self) -> str:  # noqa: D102
        return f"{self.name}_{self.block_bytes}"

    @property
    def label(self) -> str:  # noqa: D102
        return f"{self.title} of {size_text(self.block_bytes, exact=True)}"

    def words(self, sizes: Sizes) -> list[str]:  # noqa: D102
        del sizes
        return ["--block", str(self.block_bytes)]

    @property
    def extent_bytes(self) -> int:  # noqa: D102
        return self.ranks * self.blocks * self.block_bytes

    @property
    def _element(self) -> Element:
        return DOUBLE if self.block_bytes % 8 == 0 else BYTE

    def write_plan(self, rank: int) -> Plan:  # noqa: D102
        element = self._element
        block = self.block_bytes // element.size_bytes
        memory = Contiguous(element=element, count=self.blocks * block)
        return Plan(
            element=element,
            displacement_bytes=rank * self.block_bytes,
            file=Vector(element=element, count=1, block=block, stride=self.ranks * block),
            calls=(Call(offset_elements=0, memory=memory),),
        )
