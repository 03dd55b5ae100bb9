"""Variables, places in them, and memory: from NumPy to the arguments of the C interface, checked.

PnetCDF reads as many start and count values as the variable has dimensions and as many items as they make, wherever the
pointers lead; a mistake of the caller would be read or written memory. So lengths and sizes are checked here, and the
message names the variable.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mpiio_ext.errors import ArgumentError

if TYPE_CHECKING:
    from cffi import FFI
    from mpi4py import MPI

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A variable of an open file.

    Attributes
    ----------
    id : its number in the file.
    name : its name.
    dtype : NumPy type of its values, in native byte order (the file is big-endian).
    shape : length of each dimension, None for the unlimited one.
    """

    id: int
    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | None, ...]


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Memory:
    """The memory of an access.

    Attributes
    ----------
    address : cffi pointer to the first byte.
    count : number of items.
    datatype : mpi4py's type of an item.
    data : the array, which must stay alive as long as the address is used.
    """

    address: Any
    count: int
    datatype: MPI.Datatype
    data: npt.NDArray[Any]


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
        There is none.
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
    shape = (len(variable.shape),)
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


def subarrays(pnetcdf: Pnetcdf, variable: Variable, starts: npt.ArrayLike, counts: npt.ArrayLike | None) -> Place:
    """Return the place of a list of n subarrays: ``starts`` and ``counts`` have the shape (n, number of dimensions).

    Without ``counts`` each of them is one value. n may be 0.
    """
    dimensions = len(variable.shape)
    number = len(np.asarray(starts))
    firsts = _offsets(starts, (number, dimensions), f"{variable.name}: starts")
    first_rows, first_memory = _rows(pnetcdf, firsts)
    if counts is None:
        null = pnetcdf.ffi.cast("MPI_Offset *const *", 0)
        return Place(arguments=(number, first_rows, null), elements=number, keep=(firsts, first_memory))
    lengths = _offsets(counts, (number, dimensions), f"{variable.name}: counts")
    length_rows, length_memory = _rows(pnetcdf, lengths)
    return Place(
        arguments=(number, first_rows, length_rows),
        elements=int(lengths.prod(axis=1).sum()),
        keep=(firsts, first_memory, lengths, length_memory),
    )


def _flexible(data: npt.NDArray[Any], bufcount: int, buftype: MPI.Datatype, where: str) -> None:
    """Check that ``bufcount`` items of a type lie inside an array."""
    if bufcount == 0:
        return
    _, extent = buftype.Get_extent()
    true_start, true_extent = buftype.Get_true_extent()
    last = max(0, (bufcount - 1) * extent) + true_start + true_extent
    first = true_start + min(0, (bufcount - 1) * extent)
    if first < 0 or last > data.nbytes:
        raise ArgumentError(
            f"{where}: {bufcount} items of buftype cover the bytes [{first}, {last}) of an array of {data.nbytes} bytes"
        )


def memory(
    pnetcdf: Pnetcdf,
    variable: Variable,
    place: Place,
    data: npt.NDArray[Any],
    *,
    bufcount: int | None,
    buftype: MPI.Datatype | None,
    changed: bool,
) -> Memory:
    """Return the memory arguments of a call.

    Parameters
    ----------
    pnetcdf : the library.
    variable, place : where in the file.
    data : array, contiguous in C order. Without ``buftype`` its size is that of the place.
    bufcount, buftype : instead of all values of ``data``: that many items (default 1) of a committed MPI type,
        beginning at the first byte of ``data``.
    changed : whether the call changes the memory, if only for a while.

    Raises
    ------
    ArgumentError
        The array does not fit the place, is not contiguous, or is read-only and would be changed.
    """
    from mpi4py import MPI

    where = f"{variable.name}: data"
    if not data.flags.c_contiguous:
        raise ArgumentError(f"{where}: the array is not contiguous in C order")
    if changed and data.size and not data.flags.writeable:
        raise ArgumentError(f"{where}: the array is read-only, and PnetCDF swaps bytes in place; pass a copy")
    if buftype is None:
        if bufcount is not None:
            raise ArgumentError(f"{where}: bufcount without buftype")
        if data.size != place.elements:
            raise ArgumentError(f"{where}: {data.size} values for a place of {place.elements}")
        bufcount, buftype = data.size, getattr(MPI, TYPES[_code(data.dtype)][1])
    else:
        bufcount = 1 if bufcount is None else bufcount
        _flexible(data, bufcount, buftype, where)
    return Memory(address=_address(pnetcdf, "void *", data), count=bufcount, datatype=buftype, data=data)
