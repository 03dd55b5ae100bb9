"""Patterns: one array in one file, written and read once through one view.

A `Pattern` is geometry only: it knows neither MPI, nor a file, nor time. Its `write_plan` and `read_plan` return a
rank's accesses as `Plan`: one file view and a sequence of collective calls. Independently of the plans, `mask` computes
by a formula of its own the bytes of the file that are written at all. The verification uses only `mask` and the value
of every byte. The unit tests compare `mask` with the union of all ranks' plans. Out of that come the files, phases and
steps that make it a program like any kernel.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mpiio_ext.bench.kernels.layout import FileLayout, Slab, Variable
from mpiio_ext.bench.kernels.program import Access, Close, Open, Phase, Program, Step
from mpiio_ext.bench.kernels.shapes import Mask
from mpiio_ext.bench.kernels.views import Plan

_ARRAY = "data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Sizes from the command line; every pattern derives its geometry from them.

    Attributes
    ----------
    file_bytes : size aimed at; the patterns round down to what their geometry allows
    blocks_bytes : block sizes of the interleaved blocks, one variant each
    transfer_bytes : bytes per rank and call of the contiguous segments; 0 = the whole segment in one call
    piece_bytes : longest piece of the random pieces
    ghost : width of the ghost cells of the 2-D tiles, in elements
    steps : time steps that BT-IO writes
    seed : of the random pieces
    """

    file_bytes: int = 64 << 20
    blocks_bytes: tuple[int, ...] = (64 << 10, 512)
    transfer_bytes: int = 0
    piece_bytes: int = 4 << 10
    ghost: int = 2
    steps: int = 5
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroForm:
    """The form of a pattern in which the micro-benchmark has it and `compare` runs it.

    Attributes
    ----------
    name : in the results of `compare`
    title : for people
    pattern : its --pattern
    block_bytes : its --block; 0 = not given
    gaps : it leaves gaps in the file
    more : other options
    """

    name: str
    title: str
    pattern: str
    block_bytes: int = 0
    gaps: bool = False
    more: tuple[str, ...] = ()

    @property
    def arguments(self) -> list[str]:
        """Options of the micro-benchmark."""
        block = ["--block", str(self.block_bytes)] if self.block_bytes else []
        return ["--pattern", self.pattern, *block, *self.more]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern(Program):
    """One access pattern with its geometry fixed, for a fixed number of ranks.

    The fields of subclasses are the geometry; `create` derives it from `Sizes`. `ranks` take part.
    """

    kind: ClassVar[str] = "pattern"
    noncontiguous: ClassVar[bool] = True
    interfaces: ClassVar[tuple[str, ...]] = ("mpiio",)
    #: The variants that `compare` runs.
    micro_forms: ClassVar[tuple[MicroForm, ...]] = ()

    @classmethod
    @abstractmethod
    def create(cls, sizes: Sizes, ranks: int) -> list[Pattern]:
        """Return the variants for `sizes`; there are `ranks` ranks, and a variant may use fewer.

        Raises
        ------
        ArgumentError
            The sizes do not fit the number of ranks.
        """

    @property
    @abstractmethod
    def extent_bytes(self) -> int:
        """End of the file as the data layout defines it; bytes after the last written one may be absent."""

    @abstractmethod
    def write_plan(self, rank: int) -> Plan:
        """Return the accesses with which `rank` writes."""

    def read_plan(self, rank: int) -> Plan:
        """Return the accesses with which `rank` reads; by default the accesses with which it writes."""
        return self.write_plan(rank)

    def mask(self, begin: int, end: int) -> Mask | None:
        """Return a mask of the written bytes of [begin, end), shape (end - begin,); None: all are written."""
        del begin, end
        return None

    @property
    def array_shape(self) -> tuple[int, ...] | None:
        """Shape of the array of doubles in self-describing formats, or None without such an array.

        Its row-major bytes are the bytes [0, extent_bytes) of the MPI-IO file.
        """
        return None

    def array_slabs(self, rank: int) -> list[tuple[Slab, ...]]:
        """Return the disjoint parts of the array of `rank`, for each call, in the order of the data."""
        raise NotImplementedError(f"{self.name} has no array (rank {rank})")

    def geometry(self) -> dict[str, Any]:
        """Return the fields as they are recorded with the results."""
        return dataclasses.asdict(self)

    def words(self, sizes: Sizes) -> list[str]:
        """Return the options of the command line, beside its name and --size, that select this variant."""
        del sizes
        return []

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

    # ---- the program that it is ----

    def files(self) -> tuple[FileLayout, ...]:  # noqa: D102
        shape = self.array_shape
        array = (
            Variable(name=_ARRAY, dtype="|u1", shape=(self.extent_bytes,))
            if shape is None
            else Variable(name=_ARRAY, dtype="<f8", shape=shape)
        )
        return (FileLayout(name=self.key, variables=(array,), written_end_bytes=self.written_end_bytes, exact=True),)

    def phases(self) -> tuple[Phase, ...]:  # noqa: D102
        return tuple(Phase(name=operation, operation=operation, parts=True) for operation in ("write", "read"))

    def steps(self, phase: str, rank: int, interface: str) -> Iterator[Step]:
        """Yield one open, the calls of the plan, one close; memory is contiguous without datatypes."""
        write = phase == "write"
        plan = self.write_plan(rank) if write else self.read_plan(rank)
        if interface != "mpiio":
            plan = plan.packed()
        slabs: list[tuple[Slab, ...]] = [()] * len(plan.calls)
        if self.array_shape is not None:
            slabs = self.array_slabs(rank)
        yield Open(file=0, mode="write" if write else "read")
        for call, parts in zip(plan.calls, slabs, strict=True):
            yield Access(file=0, variable=_ARRAY, write=write, slabs=parts, view=plan, call=call)
        yield Close(file=0)

    def written(self, file: int, variable: str, begin: int, end: int) -> Mask | None:  # noqa: D102
        del file, variable
        return self.mask(begin, end)

    def versions(self, phase: str, interface: str) -> dict[tuple[int, str], int]:  # noqa: D102
        del interface
        return {(0, _ARRAY): 0} if phase == "write" else {}
