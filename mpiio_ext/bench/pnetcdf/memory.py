"""Variables, places in them, and memory: from NumPy to the arguments of the C interface, checked.

PnetCDF reads as many start and count values as the variable has dimensions and as many items as they make, wherever the
pointers lead; a mistake of the caller would be read or written memory. So lengths and sizes are checked here, and the
message names the variable.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mpiio_ext.errors import ArgumentError

if TYPE_CHECKING:
    from cffi import FFI

    from mpiio_ext.bench.pnetcdf.library import Pnetcdf

#: NumPy type -> number of the netCDF type (NC_CHAR, NC_BYTE, …) and name of the MPI type in mpi4py.
TYPES: dict[str, tuple[int, str]] = {
    "S1": (2, "CHAR"),
    "i1": (1, "SIGNED_CHAR"),
    "i2": (3, "SHORT"),
    "i4": (4, "INT"),
    "f4": (5, "FLOAT"),
    "f8": (6, "DOUBLE"),
    "u1": (7, "UNSIGNED_CHAR"),
    "u2": (8, "UNSIGNED_SHORT"),
    "u4": (9, "UNSIGNED"),
    "i8": (10, "LONG_LONG"),
    "u8": (11, "UNSIGNED_LONG_LONG"),
}
#: An array in memory of which a part is accessed: its sizes, where the part begins, and the sizes of the part.
Box = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A variable of an open file: its number there, its name, and how many dimensions it has."""

    id: int
    name: str
    dimensions: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Place:
    """Where in a variable: the arguments of the C call between the variable's number and the memory.

    Attributes
    ----------
    arguments : cffi values.
    elements : number of values that the place holds.
    keep : what must stay alive as long as the arguments are used.
    """

    arguments: tuple[Any, ...]
    elements: int
    keep: tuple[Any, ...]


def _code(dtype: np.dtype[Any]) -> str:
    code = f"{dtype.kind}{dtype.itemsize}"
    if code not in TYPES or not dtype.isnative:
        raise ArgumentError(f"dtype: {dtype} has no netCDF type; valid, in native byte order: {', '.join(TYPES)}")
    return code


def type_number(dtype: np.dtype[Any]) -> int:
    """Return the number of the netCDF type of a NumPy type.

    Raises
    ------
    ArgumentError
        netCDF has no such type.
    """
    return TYPES[_code(dtype)][0]


def _offsets(values: npt.ArrayLike, shape: tuple[int, ...], what: str) -> npt.NDArray[np.int64]:
    """Return integers as C reads them; an empty list is any shape without elements."""
    array = np.asarray(values)
    if array.size == 0 and 0 in shape:
        return np.zeros(shape, np.int64)
    if array.shape != shape or array.dtype.kind not in "iu":
        raise ArgumentError(f"{what}: {array.dtype} of shape {array.shape}, must be integers of shape {shape}")
    return np.ascontiguousarray(array, dtype=np.int64)


def _address(pnetcdf: Pnetcdf, kind: str, array: npt.NDArray[Any]) -> FFI.CData:
    return pnetcdf.ffi.cast(kind, array.ctypes.data)


def subarray(pnetcdf: Pnetcdf, variable: Variable, start: npt.ArrayLike, count: npt.ArrayLike) -> Place:
    """Return the place of one subarray: ``start`` and ``count`` have one element per dimension of the variable."""
    shape = (variable.dimensions,)
    first = _offsets(start, shape, f"{variable.name}: start")
    lengths = _offsets(count, shape, f"{variable.name}: count")
    pointers = (_address(pnetcdf, "MPI_Offset *", first), _address(pnetcdf, "MPI_Offset *", lengths))
    return Place(arguments=pointers, elements=math.prod(lengths.tolist()), keep=(first, lengths))


def _rows(pnetcdf: Pnetcdf, table: npt.NDArray[np.int64]) -> tuple[Any, npt.NDArray[np.uintp]]:
    """Return the C array of pointers to the rows of a table, and its memory."""
    rows = np.uintp(table.ctypes.data) + np.arange(len(table), dtype=np.uintp) * np.uintp(
        table.shape[1] * table.itemsize
    )
    return _address(pnetcdf, "MPI_Offset *const *", rows), rows


def subarrays(pnetcdf: Pnetcdf, variable: Variable, starts: npt.ArrayLike, counts: npt.ArrayLike) -> Place:
    """Return the place of a list of n subarrays: ``starts`` and ``counts`` have the shape (n, number of dimensions).

    n may be 0.
    """
    shape = (len(np.asarray(starts)), variable.dimensions)
    firsts = _offsets(starts, shape, f"{variable.name}: starts")
    lengths = _offsets(counts, shape, f"{variable.name}: counts")
    first_rows, first_memory = _rows(pnetcdf, firsts)
    length_rows, length_memory = _rows(pnetcdf, lengths)
    return Place(
        arguments=(shape[0], first_rows, length_rows),
        elements=int(lengths.prod(axis=1).sum()),
        keep=(firsts, first_memory, lengths, length_memory),
    )


@contextlib.contextmanager
def memory(
    pnetcdf: Pnetcdf, variable: Variable, place: Place, data: npt.NDArray[Any], box: Box | None
) -> Iterator[tuple[Any, int, Any]]:
    """Hand out the memory arguments of a call: address, number of items, and the C handle of their type.

    The type of a box is made by the constructor of MPI 2. PnetCDF decodes types by MPI_Type_get_envelope, and MPI 4
    forbids that call for types of large-count constructors, which mpi4py uses. PnetCDF keeps a duplicate of the type as
    long as it needs one.

    Parameters
    ----------
    data : array, contiguous in C order and writable (PnetCDF swaps bytes in place and back).
    box : the part of `data` that is accessed; None: all of it.

    Raises
    ------
    ArgumentError
        The array does not fit the place, is not contiguous, or is read-only.
    """
    from mpi4py import MPI

    where = f"{variable.name}: data"
    if not data.flags.c_contiguous:
        raise ArgumentError(f"{where}: the array is not contiguous in C order")
    if data.size and not data.flags.writeable:
        raise ArgumentError(f"{where}: the array is read-only, and PnetCDF swaps bytes in place; pass a copy")
    element = pnetcdf.ffi.cast("MPI_Datatype", MPI._handleof(getattr(MPI, TYPES[_code(data.dtype)][1])))
    address = _address(pnetcdf, "void *", data)
    sizes, starts, subsizes = box or ((data.size,), (0,), (data.size,))
    if math.prod(subsizes) != place.elements:
        raise ArgumentError(f"{where}: {math.prod(subsizes)} values for a place of {place.elements}")
    if math.prod(sizes) != data.size:
        raise ArgumentError(f"{where}: a box of {math.prod(sizes)} values for an array of {data.size}")
    if box is None:
        yield address, data.size, element
        return
    kind = pnetcdf.ffi.new("MPI_Datatype *")
    shape = (len(sizes), list(sizes), list(subsizes), list(starts))
    if status := pnetcdf.lib.MPI_Type_create_subarray(*shape, MPI.ORDER_C, element, kind):
        raise MPI.Exception(status)
    pnetcdf.lib.MPI_Type_commit(kind)
    try:
        yield address, 1, kind[0]
    finally:
        pnetcdf.lib.MPI_Type_free(kind)
