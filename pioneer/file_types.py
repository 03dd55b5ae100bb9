"""File types, as the tracer writes them: the facts of one, and how it is made again.

Problem.   A view says where the bytes of a data stream are. To make the accesses of a program again, by another program
           and another MPI library, its file type has to be made again.
Algorithm. The text (csrc/tools/trace/mpiox_trace_view.h) names the constructors of MPI and their arguments in bytes; it
           is parsed into a tree, of which size, extent and first byte are computed and the MPI datatype is built.
Guarantee. What `make` returns has the bytes of the type that was traced in the same order; a text that is no type is
           refused, and so are numbers that no MPI library takes.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from mpi4py import MPI

_NAMES = "CVBISADR"
_ITEM = re.compile(r"[CVBISADR]\(|[;)]|-?\d+(?:,-?\d+)*|$")
#: How many lists of numbers stand before the types inside.
_LISTS = {"C": 1, "V": 3, "B": 2, "I": 2, "S": 2, "A": 4, "D": 7, "R": 2}


class ViewError(ValueError):
    """A text is no file type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileType:
    """A node of the tree.

    Attributes
    ----------
    kind : letter of the constructor; "" of a predefined type.
    numbers : lists of its arguments; of a predefined type its bytes.
    inner : the types that it is made of.
    """

    kind: str
    numbers: tuple[tuple[int, ...], ...]
    inner: tuple[FileType, ...] = ()

    def _blocks(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return lengths and displacements of blocks."""
        first, second = self.numbers[:2]
        return (first * len(second) if self.kind == "B" else first), second

    @property
    def size(self) -> int:
        """Bytes of data."""
        numbers, inner = self.numbers, self.inner
        if not self.kind:
            return numbers[0][0]
        if self.kind == "S":
            return sum(length * part.size for length, part in zip(numbers[0], inner, strict=True))
        if self.kind == "D":
            return math.prod(_darray_counts(self)) * inner[0].size
        if self.kind == "R":
            return inner[0].size
        if self.kind == "C":
            return numbers[0][0] * inner[0].size
        if self.kind == "V":
            return numbers[0][0] * numbers[1][0] * inner[0].size
        return inner[0].size * (math.prod(numbers[1]) if self.kind == "A" else sum(self._blocks()[0]))

    @property
    def bounds(self) -> tuple[int, int]:
        """Lower and upper bound, as MPI has them."""
        numbers, inner = self.numbers, self.inner
        if not self.kind:
            return 0, numbers[0][0]
        if self.kind == "R":
            return numbers[0][0], numbers[0][0] + numbers[1][0]
        if self.kind in "AD":
            sizes = numbers[0] if self.kind == "A" else numbers[2]
            return 0, math.prod(sizes) * inner[0].extent
        if self.kind == "S":
            places = [
                (at + part.bounds[0], at + part.bounds[0] + length * part.extent)
                for length, at, part in zip(*numbers[:2], inner, strict=True)
                if length
            ]
        else:
            places = [
                (at + inner[0].bounds[0], at + inner[0].bounds[0] + length * inner[0].extent)
                for length, at in self._runs()
                if length
            ]
        return min((low for low, _ in places), default=0), max((high for _, high in places), default=0)

    @property
    def is_plain(self) -> bool:
        """Whether the stream is the file from the displacement on, for certain."""
        return not self.kind or (self.kind == "C" and self.inner[0].is_plain)

    @property
    def text(self) -> str:
        """The parts from which `parse` makes it."""
        if not self.kind:
            return str(self.numbers[0][0])
        lists = "".join(",".join(map(str, numbers)) + ";" for numbers in self.numbers)
        return f"{self.kind}({lists}{';'.join(part.text for part in self.inner)})"

    @property
    def extent(self) -> int:
        """Bytes from one to the next."""
        low, high = self.bounds
        return high - low

    def _runs(self) -> list[tuple[int, int]]:
        """Return (elements, displacement) of the blocks of one type, for a vector its ends only."""
        numbers = self.numbers
        if self.kind == "C":
            return [(numbers[0][0], 0)]
        if self.kind == "V":
            count, length, stride = (item[0] for item in numbers[:3])
            return [(length, 0), (length, (count - 1) * stride)] if count else []
        return list(zip(*self._blocks(), strict=True))

    @property
    def first(self) -> int:
        """Its lowest byte, counted from the begin of the type; 0 for an empty one."""
        numbers, inner = self.numbers, self.inner
        if not self.kind or self.size == 0:
            return 0
        if self.kind == "R":
            return inner[0].first
        if self.kind == "A":
            sizes, _, starts, order = numbers
            return _element(sizes, starts, order[0]) * inner[0].extent + inner[0].first
        if self.kind == "D":
            at = _element(numbers[2], _darray_starts(self), numbers[6][0])
            return at * inner[0].extent + inner[0].first
        if self.kind == "S":
            lengths, places = numbers
            return min(
                at + part.first for length, at, part in zip(lengths, places, inner, strict=True) if length * part.size
            )
        return min(at + inner[0].first for length, at in self._runs() if length)

    @property
    def end(self) -> int:
        """The byte behind its highest one, counted from the begin of the type; 0 for an empty one."""
        numbers, inner = self.numbers, self.inner
        if not self.kind or self.size == 0:
            return numbers[0][0] if not self.kind else 0
        if self.kind == "R":
            return inner[0].end
        if self.kind == "A":
            sizes, counts, starts, (order,) = numbers
            last = [start + count - 1 for start, count in zip(starts, counts, strict=True)]
            return _element(sizes, last, order) * inner[0].extent + inner[0].end
        if self.kind == "D":
            last = [int(_dealt(*place)[-1]) for place in _darray_places(self)]
            return _element(numbers[2], last, numbers[6][0]) * inner[0].extent + inner[0].end
        if self.kind == "S":
            lengths, places = numbers
            parts = zip(lengths, places, inner, strict=True)
            return max(at + (length - 1) * part.extent + part.end for length, at, part in parts if length * part.size)
        return max(at + (length - 1) * inner[0].extent + inner[0].end for length, at in self._runs() if length)

    @property
    def most_pieces(self) -> int:
        """As many pieces as `pieces` returns when they are joined, or more."""
        numbers, inner = self.numbers, self.inner
        if self.is_plain:
            return 1
        if self.kind == "R":
            return inner[0].most_pieces
        if self.kind == "S":
            return sum(length * part.most_pieces for length, part in zip(numbers[0], inner, strict=True))
        runs = self._plain_runs()
        if runs is not None:
            return runs[0]
        blocks = {
            "C": lambda: numbers[0][0],
            "V": lambda: numbers[0][0] * numbers[1][0],
            "A": lambda: math.prod(numbers[1]),
            "D": lambda: math.prod(_darray_counts(self)),
        }
        count = blocks[self.kind]() if self.kind in blocks else sum(self._blocks()[0])
        return count * inner[0].most_pieces

    def _plain_runs(self) -> tuple[int, int] | None:
        """Return number and elements of the blocks of a vector or subarray of elements without gaps; None: no such."""
        if self.kind not in ("V", "A") or not self.inner[0].is_plain:
            return None
        if self.kind == "V":
            return self.numbers[0][0], self.numbers[1][0]
        counts = self.numbers[1][::-1] if self.numbers[3][0] else self.numbers[1]
        return math.prod(counts[:-1]), counts[-1]

    def pieces(self, *, joined: bool = False) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return (offsets, lengths) of its bytes, in the order of the data.

        Parameters
        ----------
        joined : neighbouring elements of vectors and subarrays are one piece.
        """
        if not self.kind:
            return np.zeros(1, np.int64), np.array(self.numbers[0], np.int64)
        runs = self._plain_runs() if joined else None
        if runs is not None and runs[1] > 0:
            return self._run_starts(), np.full(runs[0], runs[1] * self.inner[0].size, np.int64)
        if self.kind == "R":
            return self.inner[0].pieces(joined=joined)
        if self.kind == "S":
            lengths, at = self.numbers
            parts = [
                _repeated(part, place + np.arange(length) * part.extent, joined)
                for length, place, part in zip(lengths, at, self.inner, strict=True)
            ]
            return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
        return _repeated(self.inner[0], self._starts(), joined)

    def _run_starts(self) -> NDArray[np.int64]:
        """Return where each block of `_plain_runs` begins."""
        if self.kind == "V":
            return np.arange(self.numbers[0][0], dtype=np.int64) * self.numbers[2][0]
        sizes, counts, starts, (order,) = self.numbers
        indices = [np.arange(a, a + n) for a, n in zip(starts, counts, strict=True)]
        fastest = 0 if order else len(indices) - 1
        indices[fastest] = indices[fastest][:1]
        return _grid(sizes, indices, order) * self.inner[0].extent

    def _starts(self) -> NDArray[np.int64]:
        """Return where each of the types inside begins, of all constructors with one type."""
        numbers, extent = self.numbers, self.inner[0].extent
        if self.kind == "C":
            return np.arange(numbers[0][0], dtype=np.int64) * extent
        if self.kind == "V":
            rows = np.arange(numbers[0][0], dtype=np.int64)[:, None] * numbers[2][0]
            return (rows + np.arange(numbers[1][0]) * extent).reshape(-1)
        if self.kind == "A":
            sizes, counts, starts, (order,) = numbers
            return _grid(sizes, [np.arange(a, a + n) for a, n in zip(starts, counts, strict=True)], order) * extent
        if self.kind == "D":
            indices = [_dealt(*place) for place in _darray_places(self)]
            return _grid(numbers[2], indices, numbers[6][0]) * extent
        return np.concatenate(
            [at + np.arange(length, dtype=np.int64) * extent for length, at in zip(*self._blocks(), strict=True)]
            or [np.zeros(0, np.int64)]
        )

    def make(self, mpi: ModuleType) -> MPI.Datatype:
        """Return the datatype, not committed; the caller frees it.

        Parameters
        ----------
        mpi : the module mpi4py.MPI.
        """
        numbers = self.numbers
        if not self.kind:
            byte: MPI.Datatype = mpi.BYTE
            return byte.Create_contiguous(numbers[0][0])
        inner = [part.make(mpi) for part in self.inner]
        try:
            return self._made(mpi, inner)
        finally:
            for part in inner:
                part.Free()

    def _made(self, mpi: ModuleType, inner: list[MPI.Datatype]) -> MPI.Datatype:
        numbers, first = self.numbers, inner[0]
        if self.kind == "C":
            return first.Create_contiguous(numbers[0][0])
        if self.kind == "V":
            return first.Create_hvector(numbers[0][0], numbers[1][0], numbers[2][0])
        if self.kind == "S":
            built: MPI.Datatype = mpi.Datatype.Create_struct(list(numbers[0]), list(numbers[1]), inner)
            return built
        if self.kind == "R":
            return first.Create_resized(numbers[0][0], numbers[1][0])
        orders = {0: mpi.ORDER_C, 1: mpi.ORDER_FORTRAN}
        if self.kind == "A":
            sizes, counts, starts = (list(item) for item in numbers[:3])
            return first.Create_subarray(sizes, counts, starts, order=orders[numbers[3][0]])
        if self.kind == "D":
            kinds = (mpi.DISTRIBUTE_NONE, mpi.DISTRIBUTE_BLOCK, mpi.DISTRIBUTE_CYCLIC)
            arguments = [mpi.DISTRIBUTE_DFLT_DARG if item < 0 else item for item in numbers[4]]
            return first.Create_darray(
                numbers[0][0],
                numbers[1][0],
                list(numbers[2]),
                [kinds[item] for item in numbers[3]],
                arguments,
                list(numbers[5]),
                order=orders[numbers[6][0]],
            )
        lengths, places = self._blocks()
        return first.Create_hindexed(list(lengths), list(places))


# ---- arrays ----------------------------------------------------------------------------------------------------------


def _element(sizes: Sequence[int], place: Sequence[int], order: int) -> int:
    """Return the number of an element of an array; order 0 of C, 1 of Fortran."""
    found = 0
    for size, at in zip(sizes[::-1], place[::-1], strict=True) if order else zip(sizes, place, strict=True):
        found = found * size + at
    return found


def _grid(sizes: Sequence[int], indices: Sequence[NDArray[np.int64]], order: int) -> NDArray[np.int64]:
    """Return the numbers of the elements with these indices in each dimension, in the order of the array."""
    if order:
        sizes, indices = sizes[::-1], indices[::-1]
    found = np.zeros(1, np.int64)
    for size, own in zip(sizes, indices, strict=True):
        found = (found[:, None] * size + own).reshape(-1)
    return found


def _dealt(size: int, block: int, processes: int, place: int) -> NDArray[np.int64]:
    """Return the indices of a process in one dimension of a distributed array."""
    index: NDArray[np.int64] = np.arange(size, dtype=np.int64)
    found: NDArray[np.int64] = index[index // block % processes == place]
    return found


def _repeated(kind: FileType, starts: NDArray[np.int64], joined: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    offsets, lengths = kind.pieces(joined=joined)
    return (starts[:, None] + offsets).reshape(-1), np.tile(lengths, starts.size)


def _darray_places(kind: FileType) -> list[tuple[int, int, int, int]]:
    """Return (size, block, processes, place) of each dimension; processes are numbered as in C."""
    _, (rank,), sizes, kinds, arguments, processes, _ = kind.numbers
    found, rest = [], rank
    for d in reversed(range(len(sizes))):
        place, rest = rest % processes[d], rest // processes[d]
        default = -(-sizes[d] // processes[d]) if kinds[d] == 1 else 1
        block = sizes[d] if kinds[d] == 0 else default if arguments[d] < 0 else arguments[d]
        found.append((sizes[d], block, processes[d], place))
    return found[::-1]


def _darray_counts(kind: FileType) -> list[int]:
    counts = []
    for size, block, processes, place in _darray_places(kind):
        starts = range(place * block, size, processes * block)
        counts.append(sum(min(block, size - start) for start in starts))
    return counts


def _darray_starts(kind: FileType) -> list[int]:
    return [place * block for _, block, _, place in _darray_places(kind)]


# ---- tiles -----------------------------------------------------------------------------------------------------------


def _tile(kind: FileType, root: FileType | None, other: int, rank: int) -> FileType | None:
    """Return the subarray or distributed array of a rank; see `next_tile`."""
    numbers = kind.numbers
    if kind.kind == "D":
        place = (numbers[1][0] + rank - other) % numbers[0][0]
        return FileType(kind="D", numbers=(numbers[0], (place,), *numbers[2:]), inner=kind.inner)
    sizes, counts, starts, (order,) = numbers
    like = root is not None and root.kind == "A" and (root.numbers[:2], root.numbers[3]) == (numbers[:2], numbers[3])
    begin = root.numbers[2] if root is not None and like else (0,) * len(starts)
    if any(
        count == 0 or size % count or at % count or first % count
        for size, count, at, first in zip(sizes, counts, starts, begin, strict=True)
    ):
        return None
    tiles = [size // count for size, count in zip(sizes, counts, strict=True)]
    own, first = (
        _element(tiles, [at // count for at, count in zip(place, counts, strict=True)], order)
        for place in (starts, begin)
    )
    if own == first or (own - first) % other:
        return None
    every, step = math.prod(tiles), (own - first) // other
    number = (first + step * rank + rank * math.gcd(step, every) // every) % every
    places = np.unravel_index(number, tiles, order="F" if order else "C")
    moved = tuple(int(place) * count for place, count in zip(places, counts, strict=True))
    return FileType(kind="A", numbers=(sizes, counts, moved, (order,)), inner=kind.inner)


def _has_array(kind: FileType) -> bool:
    return kind.kind in ("A", "D") or any(map(_has_array, kind.inner))


def _is_in_order(kind: FileType) -> bool:
    """Return whether no part of a structure begins before the one before it ends."""
    parts = [
        (at + part.first, at + (length - 1) * part.extent + part.end)
        for length, at, part in zip(*kind.numbers[:2], kind.inner, strict=True)
        if length * part.size
    ]
    return all(before[1] <= behind[0] for before, behind in itertools.pairwise(parts))


def next_tile(kind: FileType, root: FileType | None, other: int, rank: int) -> FileType | None:
    """Return the file type of a rank, computed from those of rank `other` and of rank 0, if it is tiles of arrays.

    The numbers of the tiles, in the order of the array, are a multiple of the rank apart from rank 0's. Where that
    comes back to rank 0's tile it goes on with the next one, so that each tile has one rank. A distributed array has
    the place of each process.

    Parameters
    ----------
    kind : of rank `other`.
    root : of rank 0; where it is another kind of type, or None, rank 0 has the first tile.
    other : not 0.
    rank : as many ranks as there are tiles have different ones.

    Returns
    -------
    None where there is no array, one is not in tiles that can be found, or where what comes out would not ascend as MPI
    demands, though `kind` does.
    """
    if kind.kind in ("A", "D"):
        return None if other <= 0 or any(map(_has_array, kind.inner)) else _tile(kind, root, other, rank)
    like = root is not None and (root.kind, len(root.inner)) == (kind.kind, len(kind.inner))
    roots = root.inner if root is not None and like else (None,) * len(kind.inner)
    found = [next_tile(part, above, other, rank) for part, above in zip(kind.inner, roots, strict=True)]
    if not any(found) or any(
        item is None and _has_array(part) and part != above
        for item, part, above in zip(found, kind.inner, roots, strict=True)
    ):
        return None
    inner = tuple(item or part for item, part in zip(found, kind.inner, strict=True))
    made = FileType(kind=kind.kind, numbers=kind.numbers, inner=inner)
    return None if kind.kind == "S" and _is_in_order(kind) and not _is_in_order(made) else made


# ---- texts -----------------------------------------------------------------------------------------------------------


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def _take(self, wanted: str | None = None) -> str:
        match = _ITEM.match(self._text, self._at)
        if match is None or (wanted is not None and match[0] != wanted):
            raise ViewError(f"no file type: {self._text[:80]!r}, at character {self._at}")
        self._at = match.end()
        return match[0]

    def _numbers(self) -> tuple[int, ...]:
        if self._text.startswith(";", self._at):
            return ()
        try:
            return tuple(int(item) for item in self._take().split(","))
        except ValueError as error:
            raise ViewError(f"no file type: {self._text[:80]!r}, at character {self._at}: {error}") from error

    def type(self) -> FileType:
        """Return the type that begins here."""
        if self._text[self._at : self._at + 1] not in set(_NAMES):
            numbers = self._numbers()
            if len(numbers) != 1 or numbers[0] < 0:
                raise ViewError(f"no file type: {self._text[:80]!r}, at character {self._at}")
            return FileType(kind="", numbers=(numbers,))
        kind = self._take()[:-1]
        lists = []
        for _ in range(_LISTS[kind]):
            lists.append(self._numbers())
            self._take(";")
        inner = [self.type()]
        while (behind := self._take()) == ";":
            inner.append(self.type())
        if behind != ")":
            raise ViewError(f"no file type: {self._text[:80]!r}, at character {self._at}")
        wanted = len(lists[0]) if kind == "S" else 1
        if len(inner) != wanted or (kind in "SI" and len(lists[0]) != len(lists[1])):
            raise ViewError(f"no file type: {self._text[:80]!r}: {len(inner)} types in {kind}")
        return FileType(kind=kind, numbers=tuple(lists), inner=tuple(inner))

    def end(self) -> None:
        """Refuse text behind the type."""
        if self._at != len(self._text):
            raise ViewError(f"no file type: {self._text[:80]!r}, at character {self._at}")


def parse(text: str) -> FileType:
    """Return the tree of a text.

    Raises
    ------
    ViewError
        The text is no file type.
    """
    parser = _Parser(text)
    found = parser.type()
    parser.end()
    return found
