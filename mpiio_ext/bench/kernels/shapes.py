"""Byte layouts as small descriptions, each known twice: enumerated with NumPy, and built as an MPI datatype.

A pattern describes file views and memory with these. `pieces` enumerates a layout by its formula, without MPI;
`datatype` builds the same layout with the MPI constructor that the original code uses. The unit tests compare the two.
All functions here count in elements (`Element`), because MPI's constructors do so, and because counts then stay below
2^31 for large files.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from mpi4py import MPI

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """The elementary type: `count` bytes or doubles.

    Attributes
    ----------
    basic_bytes : 1 (MPI_BYTE) or 8 (MPI_DOUBLE)
    count : basic values per element, e.g. the 5 solution components of a grid point
    """

    basic_bytes: int = 1
    count: int = 1

    @property
    def size_bytes(self) -> int:
        """Bytes of one element; its extent too."""
        return self.basic_bytes * self.count

    def datatype(self) -> MPI.Datatype:
        """Return a committed MPI datatype, the predefined one if there is one; `free` it after use.

        Not a derived type of one double, because Open MPI's I/O treats a view of a predefined type as contiguous and a
        view of any derived type element by element.
        """
        from mpi4py import MPI

        basic = {1: MPI.BYTE, 8: MPI.DOUBLE}[self.basic_bytes]
        return basic if self.count == 1 else basic.Create_contiguous(self.count).Commit()


def free(datatype: MPI.Datatype) -> None:
    """Free an MPI datatype unless it is predefined."""
    if not datatype.is_predefined:
        datatype.Free()


BYTE = Element()
DOUBLE = Element(basic_bytes=8)


def coalesce(offsets: Offsets, lengths: Offsets) -> tuple[Offsets, Offsets]:
    """Join pieces that follow each other without a gap, in the given order; drop empty ones."""
    keep = lengths > 0
    offsets, lengths = offsets[keep], lengths[keep]
    if offsets.size == 0:
        return offsets, lengths
    first = np.concatenate(([True], offsets[1:] != offsets[:-1] + lengths[:-1]))
    starts = np.flatnonzero(first)
    return offsets[starts], np.add.reduceat(lengths, starts)


class Shape(ABC):
    """Layout of some bytes in a file or in memory, relative to its own origin."""

    __slots__ = ()

    @property
    @abstractmethod
    def size_bytes(self) -> int:
        """Bytes of data."""

    @property
    @abstractmethod
    def extent_bytes(self) -> int:
        """Distance from one repetition of the layout to the next."""

    @abstractmethod
    def pieces(self) -> tuple[Offsets, Offsets]:
        """Return (offsets, lengths) in bytes, shape (pieces,), in the order of the data, neighbours joined."""

    @abstractmethod
    def datatype(self) -> MPI.Datatype:
        """Return a committed MPI datatype with the same bytes, order and extent; `free` it after use."""

    def scatter(self, memory: Bytes, packed: Bytes) -> None:
        """Copy `packed`, shape (size_bytes,), to the places of this layout in `memory`, shape (>= extent_bytes,)."""
        position = 0
        for offset, length in zip(*self.pieces(), strict=True):
            memory[offset : offset + length] = packed[position : position + length]
            position += int(length)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contiguous(Shape):
    """`count` elements without a gap (MPI_Type_contiguous)."""

    element: Element
    count: int

    @property
    def size_bytes(self) -> int:  # noqa: D102
        return self.count * self.element.size_bytes

    @property
    def extent_bytes(self) -> int:  # noqa: D102
        return self.size_bytes

    def pieces(self) -> tuple[Offsets, Offsets]:  # noqa: D102
        return coalesce(np.zeros(1, np.int64), np.array([self.size_bytes], np.int64))

    def datatype(self) -> MPI.Datatype:  # noqa: D102
        element = self.element.datatype()
        if self.count == 1:
            return element
        built = element.Create_contiguous(self.count).Commit()
        free(element)
        return built


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector(Shape):
    """`count` blocks of `block` elements, `stride` elements apart, extent count·stride (MPI_Type_vector, resized)."""

    element: Element
    count: int
    block: int
    stride: int

    @property
    def size_bytes(self) -> int:  # noqa: D102
        return self.count * self.block * self.element.size_bytes

    @property
    def extent_bytes(self) -> int:  # noqa: D102
        return self.count * self.stride * self.element.size_bytes

    def pieces(self) -> tuple[Offsets, Offsets]:  # noqa: D102
        unit = self.element.size_bytes
        offsets = np.arange(self.count, dtype=np.int64) * (self.stride * unit)
        return coalesce(offsets, np.full(self.count, self.block * unit, np.int64))

    def datatype(self) -> MPI.Datatype:  # noqa: D102
        element = self.element.datatype()
        vector = element.Create_vector(self.count, self.block, self.stride)
        built = vector.Create_resized(0, self.extent_bytes).Commit()
        vector.Free()
        free(element)
        return built


@dataclass(frozen=True, slots=True, kw_only=True)
class Block(Shape):
    """The block [starts, starts + subsizes) of a row-major array of `sizes` elements (MPI_Type_create_subarray)."""

    element: Element
    sizes: tuple[int, ...]
    subsizes: tuple[int, ...]
    starts: tuple[int, ...]

    @property
    def size_bytes(self) -> int:  # noqa: D102
        return math.prod(self.subsizes) * self.element.size_bytes

    @property
    def extent_bytes(self) -> int:  # noqa: D102
        return math.prod(self.sizes) * self.element.size_bytes

    def pieces(self) -> tuple[Offsets, Offsets]:  # noqa: D102
        unit = self.element.size_bytes
        offsets = np.zeros(1, np.int64)
        for size, subsize, start in zip(self.sizes[:-1], self.subsizes[:-1], self.starts[:-1], strict=True):
            offsets = (offsets[:, None] * size + np.arange(start, start + subsize, dtype=np.int64)).reshape(-1)
        offsets = (offsets * self.sizes[-1] + self.starts[-1]) * unit
        return coalesce(offsets, np.full(offsets.size, self.subsizes[-1] * unit, np.int64))

    def datatype(self) -> MPI.Datatype:  # noqa: D102
        from mpi4py import MPI

        element = self.element.datatype()
        built = element.Create_subarray(self.sizes, self.subsizes, self.starts, order=MPI.ORDER_C).Commit()
        free(element)
        return built

    def scatter(self, memory: Bytes, packed: Bytes) -> None:  # noqa: D102
        unit = self.element.size_bytes
        array = memory[: self.extent_bytes].reshape(*self.sizes, unit)
        window = tuple(slice(start, start + count) for start, count in zip(self.starts, self.subsizes, strict=True))
        array[window] = packed.reshape(*self.subsizes, unit)


def darray_range(size: int, parts: int, coordinate: int) -> tuple[int, int]:
    """Return (start, count) of MPI_DISTRIBUTE_BLOCK: blocks of ceil(size/parts), the last ones short or empty."""
    block = -(-size // parts)
    start = min(size, coordinate * block)
    return start, min(size, start + block) - start


@dataclass(frozen=True, slots=True, kw_only=True)
class Darray(Shape):
    """Block distribution of a row-major array over a row-major grid of processes (MPI_Type_create_darray)."""

    element: Element
    sizes: tuple[int, ...]
    grid: tuple[int, ...]
    rank: int

    def as_block(self) -> Block:
        """Return the same layout as a subarray."""
        ranges = [
            darray_range(size, parts, int(coordinate))
            for size, parts, coordinate in zip(
                self.sizes, self.grid, np.unravel_index(self.rank, self.grid), strict=True
            )
        ]
        return Block(
            element=self.element,
            sizes=self.sizes,
            starts=tuple(start for start, _ in ranges),
            subsizes=tuple(count for _, count in ranges),
        )

    @property
    def size_bytes(self) -> int:  # noqa: D102
        return self.as_block().size_bytes

    @property
    def extent_bytes(self) -> int:  # noqa: D102
        return math.prod(self.sizes) * self.element.size_bytes

    def pieces(self) -> tuple[Offsets, Offsets]:  # noqa: D102
        return self.as_block().pieces()

    def datatype(self) -> MPI.Datatype:  # noqa: D102
        from mpi4py import MPI

        dimensions = len(self.sizes)
        element = self.element.datatype()
        built = element.Create_darray(
            math.prod(self.grid),
            self.rank,
            self.sizes,
            [MPI.DISTRIBUTE_BLOCK] * dimensions,
            [MPI.DISTRIBUTE_DFLT_DARG] * dimensions,
            self.grid,
            order=MPI.ORDER_C,
        ).Commit()
        free(element)
        return built


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Indexed(Shape):
    """Pieces at any offsets, ascending and without overlap (MPI_Type_create_hindexed).

    Attributes
    ----------
    offsets_bytes, lengths_bytes : ndarray of int64, shape (pieces,)
    whole_bytes : extent
    """

    offsets_bytes: Offsets
    lengths_bytes: Offsets
    whole_bytes: int

    @property
    def size_bytes(self) -> int:  # noqa: D102
        return int(self.lengths_bytes.sum())

    @property
    def extent_bytes(self) -> int:  # noqa: D102
        return self.whole_bytes

    def pieces(self) -> tuple[Offsets, Offsets]:  # noqa: D102
        return coalesce(self.offsets_bytes, self.lengths_bytes)

    def datatype(self) -> MPI.Datatype:  # noqa: D102
        from mpi4py import MPI

        indexed = MPI.BYTE.Create_hindexed(self.lengths_bytes.tolist(), self.offsets_bytes.tolist())
        built = indexed.Create_resized(0, self.whole_bytes).Commit()
        indexed.Free()
        return built


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequence(Shape):
    """Several layouts over the same origin, one after the other in the data (MPI_Type_create_struct)."""

    parts: tuple[Shape, ...]

    @property
    def size_bytes(self) -> int:  # noqa: D102
        return sum(part.size_bytes for part in self.parts)

    @property
    def extent_bytes(self) -> int:  # noqa: D102
        return max(part.extent_bytes for part in self.parts)

    def pieces(self) -> tuple[Offsets, Offsets]:  # noqa: D102
        every = [part.pieces() for part in self.parts]
        return coalesce(np.concatenate([o for o, _ in every]), np.concatenate([n for _, n in every]))

    def datatype(self) -> MPI.Datatype:  # noqa: D102
        from mpi4py import MPI

        parts = [part.datatype() for part in self.parts]
        count = len(parts)
        built = MPI.Datatype.Create_struct([1] * count, [0] * count, parts).Commit()
        for part in parts:
            free(part)
        return built

    def scatter(self, memory: Bytes, packed: Bytes) -> None:  # noqa: D102
        position = 0
        for part in self.parts:
            part.scatter(memory, packed[position : position + part.size_bytes])
            position += part.size_bytes
