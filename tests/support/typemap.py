"""Typemaps of the public C API (mpiio_ext_typemap_*), for tests: what an MPI datatype means in bytes.

A typemap is the compact tree from which the library copies and plans (csrc/core/typemap/mpiox_typemap.h). Its data
bytes in type-map order form a stream, numbered by *positions*; the typemap is tiled without end at its extent, as a
file view is, so positions beyond the first tile are valid. *Offsets* are addresses relative to the origin of the first
tile.

`describe` turns an mpi4py datatype into a typemap. The constructors (`block`, `vector`, `indexed`, `struct`,
`resized`, `subarray`) build one without MPI.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from mpiio_ext._binding import ffi, lib
from mpiio_ext.errors import ArgumentError, MpiioExtError

if TYPE_CHECKING:
    from cffi import FFI
    from mpi4py import MPI

_ENDLESS = 2**63 - 1
_E_NOMEM, _E_ARG, _E_UNSUPPORTED, _E_CORRUPT = -1, -2, -5, -6

Int64Array = npt.NDArray[np.int64]


class UnsupportedDatatypeError(MpiioExtError, ValueError):
    """The datatype is one that the library leaves to the MPI library."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Typemap:
    """The bytes of one tile of a datatype, and of its endless tiling.

    Attributes
    ----------
    size_bytes : data bytes of one tile.
    lb_bytes, extent_bytes : lower bound of a tile, and the step from tile to tile.
    true_lb_bytes, true_ub_bytes : first data byte of a tile and one past the last.
    depth : levels of nesting after normalisation (0 when there are no data).
    piece_count : contiguous pieces of one tile, as far as touching pieces were recognised.
    granule_bytes : largest number that divides every offset, every length and the extent (0 when there are no data).
    contiguous : whether the endless tiling is one run of bytes.
    monotonic : whether stream order is address order and no byte occurs twice, as a file view requires.
    """

    size_bytes: int
    lb_bytes: int
    extent_bytes: int
    true_lb_bytes: int
    true_ub_bytes: int
    depth: int
    piece_count: int
    granule_bytes: int
    contiguous: bool
    monotonic: bool
    _handle: Any = field(repr=False)

    def offset(self, position: int) -> int:
        """Return the offset in bytes of stream position `position` (>= 0)."""
        self._check_range(position, position)
        if self.size_bytes == 0:
            raise ArgumentError("a typemap without data has no positions")
        return int(lib.mpiio_ext_typemap_offset(self._handle, position))

    def position(self, offset: int) -> int:
        """Return how many data bytes of the endless tiling have an offset below `offset`; monotonic ones only."""
        if not self.monotonic:
            raise ArgumentError("only a monotonic typemap has a position for every offset")
        return int(lib.mpiio_ext_typemap_position(self._handle, offset))

    def pieces(self, lo: int = 0, hi: int | None = None) -> tuple[Int64Array, Int64Array]:
        """List the contiguous pieces of the stream bytes [lo, hi), in stream order.

        Parameters
        ----------
        lo, hi
            Stream positions in bytes; hi defaults to the end of the first tile.

        Returns
        -------
        offsets, lengths
            int64 arrays of one shape (n,), in bytes. Neighbours may touch.
        """
        hi = max(lo, self.size_bytes) if hi is None else hi
        self._check_range(lo, hi)
        n = int(lib.mpiio_ext_typemap_pieces(self._handle, lo, hi, 0, ffi.NULL, ffi.NULL))
        offsets, lengths = np.empty(n, np.int64), np.empty(n, np.int64)
        lib.mpiio_ext_typemap_pieces(self._handle, lo, hi, n, _words(offsets), _words(lengths))
        return offsets, lengths

    def run_count(self, lo: int = 0, hi: int | None = None) -> int:
        """Return in how many strided runs the library works off the stream bytes [lo, hi) (default: one tile)."""
        hi = max(lo, self.size_bytes) if hi is None else hi
        self._check_range(lo, hi)
        return int(lib.mpiio_ext_typemap_runs(self._handle, lo, hi))

    def pack(self, memory: npt.NDArray[Any], lo: int = 0, hi: int | None = None, *, origin: int = 0) -> bytes:
        """Return the stream bytes [lo, hi) (default: one tile) of `memory`, whose byte `origin` has offset 0."""
        hi = max(lo, self.size_bytes) if hi is None else hi
        base = self._base(memory, lo, hi, origin)
        packed = bytearray(hi - lo)
        if packed:
            lib.mpiio_ext_typemap_pack(self._handle, base, lo, hi, ffi.from_buffer(packed))
        return bytes(packed)

    def unpack(self, memory: npt.NDArray[Any], packed: bytes, lo: int = 0, *, origin: int = 0) -> None:
        """Write `packed` to the stream bytes from `lo` on of `memory`, whose byte `origin` has offset 0."""
        if not memory.flags.writeable:
            raise ArgumentError("memory is read-only")
        base = self._base(memory, lo, lo + len(packed), origin)
        if packed:
            lib.mpiio_ext_typemap_unpack(self._handle, base, lo, lo + len(packed), ffi.from_buffer(packed))

    def mark(self, cells: npt.NDArray[np.uint8], lo: int, hi: int, *, start: int, granule_bytes: int) -> None:
        """Set cells[(offset - start) // granule_bytes] = 1 for every byte of the stream bytes [lo, hi).

        Parameters
        ----------
        cells
            uint8 array of shape (n,), C-contiguous, that covers all offsets of the range.
        start
            Offset in bytes of the first byte of cells[0].
        granule_bytes
            Divides every offset (relative to `start`) and every length of the range.
        """
        if cells.dtype != np.uint8 or not cells.flags.c_contiguous or not cells.flags.writeable:
            raise ArgumentError("cells must be a writable C-contiguous uint8 array")
        self._check_range(lo, hi)
        if self.size_bytes == 0 or lo == hi:
            return
        offsets, lengths = self.pieces(lo, hi)
        if granule_bytes < 1 or np.any((offsets - start) % granule_bytes) or np.any(lengths % granule_bytes):
            raise ArgumentError(f"granule_bytes = {granule_bytes} does not divide every offset and length")
        if offsets.min() < start or (offsets + lengths).max() > start + cells.size * granule_bytes:
            raise ArgumentError("cells do not cover the range")
        lib.mpiio_ext_typemap_mark(self._handle, lo, hi, start, granule_bytes, ffi.from_buffer(cells))

    @property
    def blob(self) -> bytes:
        """The typemap in its serialized form, for `from_blob` on a machine of the same byte order."""
        data = bytearray(int(lib.mpiio_ext_typemap_blob_bytes(self._handle)))
        _check(lib.mpiio_ext_typemap_to_blob(self._handle, ffi.from_buffer(data), len(data)))
        return bytes(data)

    def __eq__(self, other: object) -> bool:
        """Compare structures: equal typemaps mean the same bytes, but not all that mean the same are equal."""
        if not isinstance(other, Typemap):
            return NotImplemented
        return bool(lib.mpiio_ext_typemap_equal(self._handle, other._handle))

    def __hash__(self) -> int:
        return hash((self.size_bytes, self.lb_bytes, self.extent_bytes, self.true_lb_bytes, self.piece_count))

    def __reduce__(self) -> tuple[Any, ...]:
        return from_blob, (self.blob,)

    def _check_range(self, lo: int, hi: int) -> None:
        if not 0 <= lo <= hi < _ENDLESS:
            raise ArgumentError(f"stream positions must satisfy 0 <= lo <= hi, not lo = {lo}, hi = {hi}")
        if hi > lo and self.size_bytes == 0:
            raise ArgumentError("a typemap without data has no positions")

    def _base(self, memory: npt.NDArray[Any], lo: int, hi: int, origin: int) -> FFI.CData:
        """Return the address of offset 0, having checked that the range lies inside `memory`."""
        self._check_range(lo, hi)
        if not memory.flags.c_contiguous:
            raise ArgumentError("memory must be C-contiguous")
        if hi > lo:  # a tile's data lie within its true bounds; whole tiles are a bound for parts of them
            first, last = lo // self.size_bytes * self.extent_bytes, (hi - 1) // self.size_bytes * self.extent_bytes
            low, high = min(first, last) + self.true_lb_bytes, max(first, last) + self.true_ub_bytes
            if origin + low < 0 or origin + high > memory.nbytes:
                raise ArgumentError(
                    f"the tiles of stream bytes [{lo}, {hi}) reach from byte {origin + low} to {origin + high}, "
                    f"outside the {memory.nbytes} bytes of memory"
                )
        return ffi.cast("char *", memory.ctypes.data) + origin


def describe(datatype: MPI.Datatype) -> Typemap:
    """Describe an mpi4py datatype, predefined or derived; MPI must be initialised.

    Raises
    ------
    UnsupportedDatatypeError
        The type is built in a way that the library leaves to the MPI library.
    ArgumentError
        It is MPI_DATATYPE_NULL, or spans more than 2^62 bytes.
    """
    from mpi4py import MPI

    pointer = ffi.new("mpiio_ext_typemap **")
    return _wrap(lib.mpiio_ext_typemap_from_datatype(ffi.cast("void *", MPI._addressof(datatype)), pointer), pointer)


def from_blob(blob: bytes) -> Typemap:
    """Rebuild a typemap from `Typemap.blob`; anything else raises `ArgumentError`."""
    words = np.frombuffer(blob + bytes(-len(blob) % 8), np.int64)  # aligned
    pointer = ffi.new("mpiio_ext_typemap **")
    return _wrap(lib.mpiio_ext_typemap_from_blob(ffi.cast("void *", words.ctypes.data), len(blob), pointer), pointer)


def block(length: int) -> Typemap:
    """Describe `length` contiguous bytes."""
    return _build("block", length)


def vector(count: int, stride: int, part: Typemap) -> Typemap:
    """Describe `count` copies of part, `stride` bytes apart (any sign)."""
    return _build("vector", count, stride, part._handle)


def indexed(counts: Sequence[int], displacements: Sequence[int], part: Typemap) -> Typemap:
    """Describe items of counts[i] tiles of part at displacements[i] bytes."""
    n, words = _pairs(counts, displacements)
    return _build("indexed", n, *map(_words, words), part._handle)


def struct(counts: Sequence[int], displacements: Sequence[int], parts: Sequence[Typemap]) -> Typemap:
    """Describe members of counts[i] tiles of parts[i] at displacements[i] bytes."""
    n, words = _pairs(counts, displacements)
    if len(parts) != n:
        raise ArgumentError("counts, displacements and parts must have one length")
    return _build("struct", n, *map(_words, words), ffi.new("mpiio_ext_typemap *[]", [p._handle for p in parts]))


def resized(lb: int, extent: int, part: Typemap) -> Typemap:
    """Describe the data of part with another lower bound and extent, in bytes."""
    return _build("resized", lb, extent, part._handle)


def subarray(
    sizes: Sequence[int],
    subsizes: Sequence[int],
    starts: Sequence[int],
    part: Typemap,
    *,
    order: Literal["C", "F"] = "C",
) -> Typemap:
    """Describe a box of an array of part; the extent is that of the whole array.

    Parameters
    ----------
    sizes, subsizes, starts
        Items of the array, items of the box, first item of the box, per dimension.
    part
        One item.
    order
        "C": the last dimension varies fastest; "F": the first one.
    """
    if not len(sizes) == len(subsizes) == len(starts):
        raise ArgumentError("sizes, subsizes and starts must have one length")
    words = [_int64(values) for values in (sizes, subsizes, starts)]
    return _build("subarray", len(sizes), *map(_words, words), order == "F", part._handle)


def disjoint(
    a: Typemap,
    b: Typemap,
    *,
    origins: tuple[int, int] = (0, 0),
    ranges: tuple[tuple[int, int] | None, tuple[int, int] | None] = (None, None),
) -> bool:
    """Return whether it is proven that two accesses share no byte.

    Parameters
    ----------
    a, b
        Monotonic typemaps.
    origins
        Bytes by which each of them is displaced.
    ranges
        Stream bytes [lo, hi) of each that are looked at; None stands for the endless tiling.

    Returns
    -------
    bool
        True is a proof; False means only that none was found with bounded work.
    """
    accessed: list[Any] = []
    for typemap, origin, part in zip((a, b), origins, ranges, strict=True):
        lo, hi = (0, _ENDLESS) if part is None else part
        if part is not None:
            typemap._check_range(lo, hi)
        fields = {
            "typemap": typemap._handle,
            "origin": origin,
            "position": lo,
            "length": _ENDLESS if part is None else hi - lo,
        }
        accessed.append(ffi.new("mpiio_ext_typemap_range *", fields))
    return bool(lib.mpiio_ext_typemap_disjoint(*accessed))


def _int64(values: Sequence[int]) -> Int64Array:
    return np.ascontiguousarray(values, dtype=np.int64).reshape(-1)


def _words(array: Int64Array) -> FFI.CData:
    return ffi.from_buffer("int64_t[]", array)


def _pairs(counts: Sequence[int], displacements: Sequence[int]) -> tuple[int, list[Int64Array]]:
    if len(counts) != len(displacements):
        raise ArgumentError("counts and displacements must have one length")
    return len(counts), [_int64(counts), _int64(displacements)]


def _check(code: int) -> None:
    if code == 0:
        return
    if code == _E_NOMEM:
        raise MemoryError("no memory for an typemaps")
    if code == _E_UNSUPPORTED:
        raise UnsupportedDatatypeError("the library does not take this datatype over")
    if code == _E_CORRUPT:
        raise ArgumentError("not a serialized typemaps")
    name = ffi.string(lib.mpiio_ext_error_name(code)).decode()
    raise ArgumentError(f"cannot describe this access ({name}): negative or null argument, or beyond 2^62 bytes")


def _build(constructor: str, *arguments: Any) -> Typemap:
    pointer = ffi.new("mpiio_ext_typemap **")
    try:
        code = getattr(lib, f"mpiio_ext_typemap_{constructor}")(*arguments, pointer)
    except OverflowError as error:
        raise ArgumentError(f"an argument does not fit in 64 bits: {error}") from error
    return _wrap(code, pointer)


def _wrap(code: int, pointer: Any) -> Typemap:
    _check(code)
    handle = ffi.gc(pointer[0], lib.mpiio_ext_typemap_free)
    numbers = ffi.new("int64_t[10]")
    lib.mpiio_ext_typemap_summary(handle, numbers)
    size, lb, extent, true_lb, true_ub, depth, pieces, granule, contiguous, monotonic = numbers
    return Typemap(
        size_bytes=size,
        lb_bytes=lb,
        extent_bytes=extent,
        true_lb_bytes=true_lb,
        true_ub_bytes=true_ub,
        depth=depth,
        piece_count=pieces,
        granule_bytes=granule,
        contiguous=bool(contiguous),
        monotonic=bool(monotonic),
        _handle=handle,
    )
