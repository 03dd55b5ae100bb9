"""Transposed: ranks exchange their blocks by MPI_Alltoallv until each has long contiguous parts, and write these alone.

Problem.   What people do in their programs where collective I/O of blocks is slow; a method of this library has to be
           as good as that.
Algorithm. Report 7935 of github.com/pmodels/mpich. The k fastest directions are made whole: ranks whose blocks differ
           in these directions alone are a row; together they have extents of the file that are contiguous. k is the
           smallest with extents of EXTENT_BYTES, or all directions that are cut. The extents of a row are dealt to its
           ranks; since they are ordered as every rank's memory is, one MPI_Alltoallv of memory as it lies brings them
           there. Then they are written with pwrite. Reading goes the other way.
Guarantee. For accesses that every rank makes with one block of one array, all of which fill the array. Another access
           is refused, since the program of the report could not make it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mpiio_ext.bench.interfaces.base import Request
from mpiio_ext.bench.interfaces.posix import Posix, PosixFile
from mpiio_ext.bench.kernels.layout import Slab
from mpiio_ext.bench.kernels.program import Open
from mpiio_ext.errors import ArgumentError

if TYPE_CHECKING:
    from mpi4py import MPI

    from mpiio_ext.bench.kernels.shapes import Bytes

#: Time that the report counts as long enough.
EXTENT_BYTES = 4_000_000


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Row:
    """The ranks whose blocks make whole extents together.

    Attributes
    ----------
    comm : of them, in the order of their blocks
    split : directions in front of this one number the extents; it and those behind it are within one
    slabs : of its ranks
    shape : of the array; the directions from `split` + 1 on are whole in a row
    item_bytes : of an element
    """

    comm: MPI.Comm
    split: int
    slabs: list[Slab]
    shape: tuple[int, ...]
    item_bytes: int

    @property
    def extents(self) -> int:
        """How many the row has."""
        return math.prod(self.slabs[0][1][: self.split])

    def dealt(self, rank: int) -> range:
        """Return the extents that a rank of the row writes and reads."""
        return range(self.extents * rank // self.comm.size, self.extents * (rank + 1) // self.comm.size)

    def part_bytes(self, rank: int) -> int:
        """Return the bytes that a rank's block has of each extent."""
        return math.prod(self.slabs[rank][1][self.split :]) * self.item_bytes

    def counts(self) -> tuple[list[int], list[int]]:
        """Return the bytes of this rank's block for each rank, and of each rank's block for this one."""
        mine, ranks = self.comm.rank, range(self.comm.size)
        return (
            [len(self.dealt(other)) * self.part_bytes(mine) for other in ranks],
            [len(self.dealt(mine)) * self.part_bytes(other) for other in ranks],
        )

    def extent_shape(self) -> tuple[int, ...]:
        """Return the elements of one extent per direction."""
        return (self.slabs[0][1][self.split], *self.shape[self.split + 1 :])

    def window(self, rank: int) -> tuple[slice, ...]:
        """Return the place of a rank's part in an array of extents (extents, *extent_shape, item_bytes)."""
        start, count = self.slabs[rank]
        fast = zip(start[self.split + 1 :], count[self.split + 1 :], strict=True)
        return (slice(None), slice(None), *(slice(first, first + size) for first, size in fast))

    def offset(self, extent: int) -> int:
        """Return where an extent begins in the array, in bytes."""
        start, count = self.slabs[0]
        place = np.unravel_index(extent, count[: self.split]) if self.split else ()
        index = [first + int(at) for first, at in zip(start, place, strict=False)]
        index += [start[self.split], *(0 for _ in self.shape[self.split + 1 :])]
        return int(np.ravel_multi_index(index, self.shape)) * self.item_bytes


def _split(shape: tuple[int, ...], count: tuple[int, ...], item_bytes: int) -> int:
    """Return the direction behind which all are made whole."""
    cut = [at for at, (whole, own) in enumerate(zip(shape, count, strict=True)) if whole != own]
    extent = item_bytes
    for at in reversed(range(len(shape))):
        if not [place for place in cut if place <= at] or extent * count[at] >= EXTENT_BYTES:
            return at
        extent *= shape[at]
    return 0


def _row(comm: MPI.Intracomm, request: Request) -> _Row:
    """Return this rank's row; collective over `comm`."""
    access, variable = request.access, request.variable
    slabs = comm.allgather(access.slabs[0] if len(access.slabs) == 1 and access.boxes is None else None)
    if None in slabs or sum(math.prod(count) for _, count in slabs) != math.prod(variable.shape):
        raise ArgumentError(f"transposed: the ranks' accesses of '{variable.name}' are not blocks that fill it")
    split = max(comm.allgather(_split(variable.shape, access.slabs[0][1], variable.item_bytes)))
    fixed = [tuple(zip(start[: split + 1], count[: split + 1], strict=True)) for start, count in slabs]
    row = [rank for rank in range(comm.size) if fixed[rank] == fixed[comm.rank]]
    return _Row(
        comm=comm.Split(row[0], comm.rank),
        split=split,
        slabs=[slabs[rank] for rank in row],
        shape=variable.shape,
        item_bytes=variable.item_bytes,
    )


class TransposedFile(PosixFile):
    """A descriptor per rank, behind an exchange."""

    def access(self, request: Request) -> None:
        """Exchange and write the extents dealt to this rank, or read and exchange them."""
        row: _Row = request.arranged
        mine = row.dealt(row.comm.rank)
        extents = np.empty((len(mine), *row.extent_shape(), row.item_bytes), np.uint8)
        to_others, from_others = row.counts()
        passed = np.empty(sum(from_others), np.uint8)
        if request.access.write:
            row.comm.Alltoallv([request.memory, to_others], [passed, from_others])
            self._place(row, extents, passed, inward=True)
        for at, extent in enumerate(mine):
            offset = request.variable.offset_bytes + row.offset(extent)
            self._move(request.access.write, extents[at].reshape(-1), offset)
        if not request.access.write:
            self._place(row, extents, passed, inward=False)
            row.comm.Alltoallv([passed, from_others], [request.memory, to_others])

    @staticmethod
    def _place(row: _Row, extents: Any, passed: Bytes, *, inward: bool) -> None:
        """Copy the bytes that ranks passed to their places in the extents, or from there."""
        begin = 0
        for rank, (_, count) in enumerate(row.slabs):
            shape = (len(extents), *count[row.split :], row.item_bytes)
            part = passed[begin : begin + math.prod(shape)].reshape(shape)
            begin += part.size
            if inward:
                extents[row.window(rank)] = part
            else:
                part[...] = extents[row.window(rank)]


class Transposed(Posix):
    """An exchange in the program, and plain reads and writes."""

    name: ClassVar[str] = "transposed"
    title: ClassVar[str] = "MPI_Alltoallv and POSIX"
    file: ClassVar[type[PosixFile]] = TransposedFile

    def arrange(self, comm: MPI.Intracomm, items: Sequence[Open | Request]) -> None:
        """Find the rows of every access; collective over `comm`.

        Raises
        ------
        ArgumentError
            An access is not one block of each rank, which together fill the array; on every rank.
        """
        for item in items:
            if isinstance(item, Request):
                item.arranged = _row(comm, item)
