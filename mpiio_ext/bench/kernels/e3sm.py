"""E3SM-IO: one history file of a climate model, hundreds of variables on an irregular grid, flushed at once.

Source: the E3SM I/O benchmark (github.com/Parallel-NetCDF/E3SM-IO, docs/variables.md), the I/O kernel of the Energy
Exascale Earth System Model: its cases F (atmosphere), G (ocean) and I (land), the variables that are partitioned. Every
rank posts its part of each variable by PnetCDF's iput_varn, a list of subarrays, and one wait_all writes them all. The
grids and how they are dealt to ranks: `mpiio_ext.bench.kernels.decomposition`. Left out are the small variables that
one rank writes, and the second, smaller file of cases F and I; fixed-size and record variables are alike.

Layout: F and I [levels, cells] of single precision, in case I cells are [latitude, longitude]; G [cells, levels] of
doubles.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from mpiio_ext.bench.kernels.decomposition import CASES, MOST_CELLS, Case, Group, deal
from mpiio_ext.bench.kernels.layout import FileLayout, Slab, packed_variables
from mpiio_ext.bench.kernels.program import Access, Close, Kernel, Open, Phase, Step, Wait
from mpiio_ext.errors import ArgumentError


@dataclass(frozen=True, slots=True, kw_only=True)
class _E3sm(Kernel):
    """Properties that the cases share.

    Attributes
    ----------
    cells : of the grid; of case I longitudes, half as many latitudes
    divisor : this many times fewer variables than the original has, at least one of each kind
    longest : cells of a run that goes to one rank; 0: the case's own
    seed : of the decomposition
    """

    noncontiguous: ClassVar[bool] = True
    interfaces: ClassVar[tuple[str, ...]] = ("pnetcdf",)
    case: ClassVar[str]

    cells: int = 0
    divisor: int = 1
    longest: int = 0
    seed: int = 1

    @property
    def _case(self) -> Case:
        return CASES[self.case]

    @property
    def key(self) -> str:
        return f"{self.name}-{self.cells}-{self.divisor}-{self.longest}-{self.seed}"

    def check(self) -> None:
        self.check_least(2, "cells")
        self.check_least(1, "divisor")
        self.check_least(0, "longest")
        if max(math.prod(self.grid(group)) for group in self.groups()) > MOST_CELLS:
            raise ArgumentError(
                f"{self.name}: {self.cells:,} cells make a decomposition of more than {MOST_CELLS:,} "
                "runs, all in the memory of every rank: fewer cells or a smaller --scale"
            )

    def scaling(self, factor: float) -> dict[str, Any]:
        cells = max(2, round(self.cells * factor))
        fewer = max(1, round(cells / (self.cells * factor)) if factor > 0 else 1)  # below that, fewer variables
        return {"cells": cells, "divisor": self.divisor * fewer}

    def grid(self, group: Group) -> tuple[int, ...]:
        """Return the horizontal dimensions of a group's variables."""
        return (self.cells * group.cells,)

    def shape(self, group: Group) -> tuple[int, ...]:
        """Return the dimensions of a group's variables."""
        levels = (group.levels,) if group.levels > 1 else ()
        return (*self.grid(group), *levels) if group.inner else (*levels, *self.grid(group))

    def groups(self) -> tuple[Group, ...]:
        """Return the groups of variables."""
        return self._case.reduced(self.divisor)

    def files(self) -> tuple[FileLayout, ...]:
        parts = (
            (f"{group.name}_{number}", group.dtype, self.shape(group))
            for group in self.groups()
            for number in range(group.number)
        )
        return (FileLayout(name=self.key, variables=packed_variables(*parts)),)

    def phases(self) -> tuple[Phase, ...]:
        return (Phase(name="history", operation="write"), Phase(name="restart", operation="read"))

    def steps(self, phase: str, rank: int, interface: str) -> Iterator[Step]:
        del interface
        write = phase == "history"
        yield Open(file=0, mode="create" if write else "read")
        for group in self.groups():
            slabs = _slabs(
                self.shape(group),
                self.grid(group),
                group.inner,
                self.ranks,
                self.longest or self._case.longest,
                self.seed + group.cells,
            )[rank]
            for number in range(group.number):
                yield Access(file=0, variable=f"{group.name}_{number}", write=write, slabs=slabs, nonblocking=True)
        yield Wait(file=0)
        yield Close(file=0)


@lru_cache(maxsize=32)
def _slabs(
    shape: tuple[int, ...], grid: tuple[int, ...], inner: bool, ranks: int, longest: int, seed: int
) -> tuple[tuple[Slab, ...], ...]:
    """Return for each rank its parts of a variable, in the order of the array; runs end with their row of the grid."""
    cells = 1
    for length in grid:
        cells *= length
    everyone = []
    for starts, lengths in deal(cells, ranks, longest, seed):
        runs: list[Slab] = []
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
            end = start + length
            while start < end:
                row, column = divmod(start, grid[-1])
                part = min(end - start, grid[-1] - column)
                runs.append(((row, column), (1, part)) if len(grid) == 2 else ((column,), (part,)))
                start += part
        levels = len(shape) - len(grid)
        if inner and levels:
            runs = [((*start, 0), (*count, shape[-1])) for start, count in runs]
        elif levels:
            runs = [((level, *start), (1, *count)) for level in range(shape[0]) for start, count in runs]
        everyone.append(tuple(runs))
    return tuple(everyone)


@dataclass(frozen=True, slots=True, kw_only=True)
class E3smF(_E3sm):
    """Case F, the atmosphere: columns of 72 levels, levels slowest; pieces of a few values."""

    name: ClassVar[str] = "e3sm_f"
    title: ClassVar[str] = "E3SM-IO F"
    case: ClassVar[str] = "tiny"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"cells": 866, "divisor": 4},
        "laptop": {"cells": 5402},
        "published": {},
    }

    cells: int = 777_602


@dataclass(frozen=True, slots=True, kw_only=True)
class E3smG(_E3sm):
    """Case G, the ocean: cells, edges and vertices with 80 levels, levels fastest; pieces of 640 bytes and more."""

    name: ClassVar[str] = "e3sm_g"
    title: ClassVar[str] = "E3SM-IO G"
    case: ClassVar[str] = "long"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"cells": 285},
        "laptop": {"cells": 4000},
        "published": {},
    }

    cells: int = 3_693_225


@dataclass(frozen=True, slots=True, kw_only=True)
class E3smI(_E3sm):
    """Case I, the land: a regular grid of 2-D and 3-D variables, whose cells are dealt in short runs."""

    name: ClassVar[str] = "e3sm_i"
    title: ClassVar[str] = "E3SM-IO I"
    case: ClassVar[str] = "mixed"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"cells": 72, "divisor": 4},
        "laptop": {"cells": 144},
        "published": {},
    }

    cells: int = 720

    def grid(self, group: Group) -> tuple[int, ...]:  # noqa: D102
        assert group.cells == 1
        return (max(1, self.cells // 2), self.cells)
