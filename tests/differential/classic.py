"""MPI functions in their classic form, whose counts are C ints. Imported by the workers only, after the library.

mpi4py calls the large-count form (MPI_..._c) of every function wherever the MPI library has it. The C symbols are the
way to the other form, which most programs call. They are looked up as a program's own calls would be: where the library
was loaded before MPI, its wrappers come first.
"""

from __future__ import annotations

import ctypes
from typing import Any

from mpi4py import MPI

from differential.typetree import BLOCK, CYCLIC, DEFAULT, NONE

ORDERS = {"C": MPI.ORDER_C, "F": MPI.ORDER_F}
DISTRIBUTIONS = {BLOCK: MPI.DISTRIBUTE_BLOCK, CYCLIC: MPI.DISTRIBUTE_CYCLIC, NONE: MPI.DISTRIBUTE_NONE}


def _symbols() -> ctypes.CDLL:
    everywhere = ctypes.CDLL(None)
    return everywhere if hasattr(everywhere, "MPI_Type_contiguous") else ctypes.CDLL(MPI.__file__)


SYMBOLS = _symbols()


def _handle(value: Any) -> Any:
    """Return an MPI handle as C passes it: MPICH's are ints, Open MPI's and all files pointers."""
    kind = ctypes.c_int if MPI._sizeof(value) == ctypes.sizeof(ctypes.c_int) else ctypes.c_void_p
    return kind(MPI._handleof(value))


def _place(value: Any) -> ctypes.c_void_p:
    """Return the address of a handle or status, which the function fills."""
    return ctypes.c_void_p(MPI._addressof(value))


def _ints(values: list[int]) -> Any:
    return (ctypes.c_int * len(values))(*values)


def _addresses(values: list[int]) -> Any:
    return (ctypes.c_ssize_t * len(values))(*values)


def _call(name: str, *arguments: Any) -> None:
    """Call an MPI function; Python ints are C ints."""
    code = getattr(SYMBOLS, name)(*arguments)
    if code != MPI.SUCCESS:
        raise MPI.Exception(code)


def _type_arguments(kind: str, values: list[Any]) -> tuple[str, list[Any]]:
    """Return the function that makes a datatype over one child, and its arguments before the child."""
    address = ctypes.c_ssize_t
    if kind == "contiguous":
        return "MPI_Type_contiguous", [values[0]]
    if kind == "vector":
        return "MPI_Type_vector", values
    if kind == "hvector":
        return "MPI_Type_create_hvector", [values[0], values[1], address(values[2])]
    if kind == "indexed":
        return "MPI_Type_indexed", [len(values[0]), _ints(values[0]), _ints(values[1])]
    if kind == "hindexed":
        return "MPI_Type_create_hindexed", [len(values[0]), _ints(values[0]), _addresses(values[1])]
    if kind == "indexed_block":
        return "MPI_Type_create_indexed_block", [len(values[1]), values[0], _ints(values[1])]
    if kind == "hindexed_block":
        return "MPI_Type_create_hindexed_block", [len(values[1]), values[0], _addresses(values[1])]
    if kind == "subarray":
        arrays = [_ints(v) for v in values[:3]]
        return "MPI_Type_create_subarray", [len(values[0]), *arrays, ORDERS[values[3]]]
    if kind == "darray":
        size, rank, sizes, ways, arguments, grid, order = values
        ways = [DISTRIBUTIONS[way] for way in ways]
        arguments = [MPI.DISTRIBUTE_DFLT_DARG if a == DEFAULT else a for a in arguments]
        arrays = [_ints(v) for v in (sizes, ways, arguments, grid)]
        return "MPI_Type_create_darray", [size, rank, len(sizes), *arrays, ORDERS[order]]
    if kind == "resized":
        return "MPI_Type_create_resized", [address(values[0]), address(values[1])]
    raise ValueError(f"unknown constructor {kind!r}")


def _new(name: str, arguments: list[Any], child: MPI.Datatype) -> MPI.Datatype:
    result = MPI.Datatype()
    if name == "MPI_Type_create_resized":  # the only one whose child comes first
        _call(name, _handle(child), *arguments, _place(result))
    else:
        _call(name, *arguments, _handle(child), _place(result))
    return result


def datatype(kind: str, values: list[Any], children: list[MPI.Datatype]) -> MPI.Datatype:
    """Make a datatype; ``values`` are the entries of its tree (typetree.py) between the name and the children."""
    if kind != "struct":
        return _new(*_type_arguments(kind, values), children[0])
    result, n = MPI.Datatype(), len(children)
    kinds = [_handle(child) for child in children]
    handles = (type(kinds[0]) * n)(*(child.value for child in kinds)) if kinds else None
    _call("MPI_Type_create_struct", n, _ints(values[0]), _addresses(values[1]), handles, _place(result))
    return result


def hindexed(length: int, address: int, child: MPI.Datatype) -> MPI.Datatype:
    """Make a datatype of one block at an address."""
    return datatype("hindexed", [[length], [address]], [child])


def open_file(comm: MPI.Intracomm, path: str | None, mode: int, info: MPI.Info) -> MPI.File:
    """Call MPI_File_open."""
    result = MPI.File()
    _call("MPI_File_open", _handle(comm), path and path.encode(), mode, _handle(info), _place(result))
    return result


def access(fh: MPI.File, name: str, at: list[int], message: list[Any], last: MPI.Status | MPI.Request | None) -> None:
    """Call ``MPI_File_NAME(fh, [offset], buffer, count, datatype, [status or request])``."""
    buffer, count, kind = message
    address = ctypes.c_void_p(0 if buffer is MPI.BOTTOM else buffer.address)
    offsets = [ctypes.c_longlong(offset) for offset in at]
    end = [] if last is None else [_place(last)]
    _call(f"MPI_File_{name}", _handle(fh), *offsets, address, count, _handle(kind), *end)


def count(status: MPI.Status, kind: MPI.Datatype) -> int:
    """Return MPI_Get_count."""
    found = ctypes.c_int()
    _call("MPI_Get_count", _place(status), _handle(kind), ctypes.byref(found))
    return found.value


def elements(status: MPI.Status, kind: MPI.Datatype) -> int:
    """Return MPI_Get_elements."""
    found = ctypes.c_int()
    _call("MPI_Get_elements", _place(status), _handle(kind), ctypes.byref(found))
    return found.value
