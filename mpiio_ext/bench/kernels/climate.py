"""A climate model's flush through MPI-IO: hundreds of variables as one indexed type.

Source: PnetCDF's nonblocking calls (iput_varn and wait_all, as the E3SM model uses them:
`mpiio_ext.bench.kernels.decomposition`) make one file type of all that was posted, and one of the memory, when it is
waited for. Here that type and that call are made directly.

Layout: the variables follow each other in the file, each [levels, cells], or [cells, levels] in the case ``long``.
Every rank sees its pieces of all of them through one MPI_Type_create_hindexed and moves them in one call. In memory its
parts of the variables are one piece, or lie 64 bytes apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from mpiio_ext.bench.kernels.decomposition import CASES, MOST_CELLS, Case, Group, deal
from mpiio_ext.bench.kernels.pattern import MicroForm, Pattern, Sizes
from mpiio_ext.bench.kernels.shapes import BYTE, Contiguous, Indexed, Offsets, Shape
from mpiio_ext.bench.kernels.views import Call, Plan, idle_plan
from mpiio_ext.errors import ArgumentError

_APART_BYTES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ClimateFlush(Pattern):
    """Geometry: the case, its variables in part, the cells of its grid, whether memory has gaps, the seed."""

    name: ClassVar[str] = "climate"
    title: ClassVar[str] = "flush of a climate model"
    micro_forms: ClassVar[tuple[MicroForm, ...]] = tuple(
        MicroForm(
            name=f"climate_{case}{'_apart' if apart else ''}",
            pattern=f"climate_{case}",
            title=f"climate flush, {CASES[case].title}{', memory apart' if apart else ''}",
            more=("--apart", str(_APART_BYTES)) if apart else (),
        )
        for case, apart in (("tiny", False), ("long", False), ("mixed", False), ("mixed", True))
    )

    case: str
    divisor: int
    cells: int
    apart: bool
    seed: int

    @classmethod
    def create(cls, sizes: Sizes, ranks: int) -> list[Pattern]:  # noqa: D102
        made: list[Pattern] = []
        for name, case in CASES.items():
            divisor, cells = 1, 0
            while divisor <= 1024:  # small files have fewer variables
                cells = sizes.file_bytes // sum(group.number * group.cell_bytes for group in case.reduced(divisor))
                if cells >= 4 * ranks:
                    break
                divisor *= 2
            if cells < 1:
                raise ArgumentError(
                    f"climate: the file size of {sizes.file_bytes} bytes is less than one cell of each "
                    f"variable of the case '{name}'"
                )
            if cells > MOST_CELLS:
                raise ArgumentError(
                    f"climate: {cells:,} cells in a file of {sizes.file_bytes} bytes make more than "
                    f"{MOST_CELLS:,} runs, all in the memory of every rank: give a smaller --size"
                )
            made += [
                cls(ranks=ranks, case=name, divisor=divisor, cells=cells, apart=apart, seed=sizes.seed)
                for apart in ((False, True) if name == "mixed" else (False,))
            ]
        return made

    @property
    def label(self) -> str:  # noqa: D102
        return f"{self.title}, {CASES[self.case].title}{', memory apart' if self.apart else ''}"

    @property
    def key(self) -> str:  # noqa: D102
        return f"climate-{self.case}{'-apart' if self.apart else ''}"

    def words(self, sizes: Sizes) -> list[str]:  # noqa: D102
        return ["--seed", str(sizes.seed)]

    @property
    def _case(self) -> Case:
        return CASES[self.case]

    @property
    def extent_bytes(self) -> int:  # noqa: D102
        return self.cells * sum(group.number * group.cell_bytes for group in self._case.reduced(self.divisor))

    def write_plan(self, rank: int) -> Plan:  # noqa: D102
        offsets, lengths, parts = _pieces(self, rank)
        if offsets.size == 0:
            return idle_plan(BYTE, calls=1)
        file = Indexed(offsets_bytes=offsets, lengths_bytes=lengths, whole_bytes=self.extent_bytes)
        memory: Shape = Contiguous(element=BYTE, count=file.size_bytes)
        if self.apart:
            begins = np.cumsum(parts) - parts + np.arange(parts.size, dtype=np.int64) * _APART_BYTES
            memory = Indexed(offsets_bytes=begins, lengths_bytes=parts, whole_bytes=int(begins[-1] + parts[-1]))
        return Plan(element=BYTE, displacement_bytes=0, file=file, calls=(Call(offset_elements=0, memory=memory),))


def _part(group: Group, cells: int, runs: tuple[Offsets, Offsets]) -> tuple[Offsets, Offsets]:
    """Return (offsets, lengths) in bytes of a rank's pieces of one variable."""
    item = group.cell_bytes // group.levels // group.cells
    starts, lengths = runs
    if group.inner:
        return starts * group.levels * item, lengths * group.levels * item
    level = np.arange(group.levels, dtype=np.int64)[:, None] * cells
    return ((level + starts) * item).reshape(-1), np.tile(lengths * item, group.levels)


@lru_cache(maxsize=4)
def _pieces(pattern: ClimateFlush, rank: int) -> tuple[Offsets, Offsets, Offsets]:
    """Return (offsets, lengths) of a rank's pieces in the file, and the bytes of its part of each variable."""
    case = CASES[pattern.case]
    offsets, lengths, parts, base = [], [], [], 0
    for group in case.reduced(pattern.divisor):
        cells = pattern.cells * group.cells
        runs = deal(cells, pattern.ranks, case.longest, pattern.seed + group.cells)[rank]
        at, bytes_ = _part(group, cells, runs)
        for _ in range(group.number):
            offsets.append(at + base)
            lengths.append(bytes_)
            parts.append(int(bytes_.sum()))
            base += pattern.cells * group.cell_bytes
    kept = np.array(parts, np.int64)
    return np.concatenate(offsets), np.concatenate(lengths), kept[kept > 0]
