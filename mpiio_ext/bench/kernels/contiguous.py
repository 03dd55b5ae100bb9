"""Contiguous segments: each rank writes one contiguous part of the shared file.

Source: the "segmented" access of IOR (H. Shan, J. Shalf, "Using IOR to analyze the I/O performance for HPC platforms",
CUG 2007), one segment.

Layout: the file is ``ranks`` segments of equal size; rank r owns bytes [r·segment, (r+1)·segment) and transfers them in
calls of ``transfer_bytes``, all in one by default.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mpiio_ext.bench.kernels.pattern import MicroForm, Pattern, Sizes
from mpiio_ext.bench.kernels.shapes import DOUBLE, Contiguous
from mpiio_ext.bench.kernels.views import Call, Plan
from mpiio_ext.errors import ArgumentError


@dataclass(frozen=True, slots=True, kw_only=True)
class ContiguousSegments(Pattern):
    """Geometry: doubles per rank and doubles per call."""

    name: ClassVar[str] = "contiguous"
    title: ClassVar[str] = "contiguous segments"
    noncontiguous: ClassVar[bool] = False
    micro_forms: ClassVar[tuple[MicroForm, ...]] = (
        MicroForm(name="contiguous", title="contiguous", pattern="contiguous"),
    )

    segment: int
    transfer: int

    @classmethod
    def create(cls, sizes: Sizes, ranks: int) -> list[Pattern]:  # noqa: D102
        segment = sizes.file_bytes // (8 * ranks)
        if segment < 1:
            raise ArgumentError(
                f"contiguous: {sizes.file_bytes} bytes are too few for {ranks} ranks, give at least {8 * ranks}"
            )
        transfer = min(segment, max(1, sizes.transfer_bytes // 8)) if sizes.transfer_bytes else segment
        return [cls(ranks=ranks, segment=segment, transfer=transfer)]

    def words(self, sizes: Sizes) -> list[str]:  # noqa: D102
        return ["--transfer", str(sizes.transfer_bytes)]

    @property
    def extent_bytes(self) -> int:  # noqa: D102
        return self.ranks * self.segment * 8

    def write_plan(self, rank: int) -> Plan:  # noqa: D102
        calls = []
        for start in range(0, self.segment, self.transfer):
            memory = Contiguous(element=DOUBLE, count=min(self.transfer, self.segment - start))
            calls.append(Call(offset_elements=start, memory=memory))
        return Plan(
            element=DOUBLE,
            displacement_bytes=rank * self.segment * 8,
            file=Contiguous(element=DOUBLE, count=1),
            calls=tuple(calls),
        )
