"""MPI datatypes in the form that PnetCDF can take apart.

PnetCDF looks into the memory types it is given with MPI_Type_get_envelope. mpi4py makes types by the large-count
constructors of MPI 4 wherever the MPI library has them, and of such a type MPI 4 forbids that call: MPICH ends the
program. So under MPI 4 a derived type is made once more, by the constructors that PnetCDF knows, and freed after the
call; PnetCDF keeps its own duplicate as long as it needs one. Under older MPIs the type is passed on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mpiio_ext.errors import ArgumentError

if TYPE_CHECKING:
    from cffi import FFI
    from mpi4py import MPI

    from mpiio_ext.bench.pnetcdf.library import Pnetcdf

#: The constructors; they are found in the MPI library that PnetCDF is linked to.
DECLARATIONS = """
int MPI_Type_commit(MPI_Datatype *type);
int MPI_Type_free(MPI_Datatype *type);
int MPI_Type_dup(MPI_Datatype old, MPI_Datatype *type);
int MPI_Type_contiguous(int count, MPI_Datatype old, MPI_Datatype *type);
int MPI_Type_vector(int count, int length, int stride, MPI_Datatype old, MPI_Datatype *type);
int MPI_Type_create_hvector(int count, int length, intptr_t stride, MPI_Datatype old, MPI_Datatype *type);
int MPI_Type_indexed(int count, const int *lengths, const int *places, MPI_Datatype old, MPI_Datatype *type);
int MPI_Type_create_hindexed(int count, const int *lengths, const intptr_t *places, MPI_Datatype old,
                             MPI_Datatype *type);
int MPI_Type_create_indexed_block(int count, int length, const int *places, MPI_Datatype old, MPI_Datatype *type);
int MPI_Type_create_hindexed_block(int count, int length, const intptr_t *places, MPI_Datatype old,
                                   MPI_Datatype *type);
int MPI_Type_create_struct(int count, const int *lengths, const intptr_t *places, const MPI_Datatype *olds,
                           MPI_Datatype *type);
int MPI_Type_create_subarray(int dimensions, const int *sizes, const int *subsizes, const int *starts, int order,
                             MPI_Datatype old, MPI_Datatype *type);
int MPI_Type_create_darray(int size, int rank, int dimensions, const int *gsizes, const int *distribs, const int *dargs,
                           const int *psizes, int order, MPI_Datatype old, MPI_Datatype *type);
int MPI_Type_create_resized(MPI_Datatype old, intptr_t lower, intptr_t extent, MPI_Datatype *type);
"""


def _arguments(ffi: FFI, combiner: str, values: dict[str, Any]) -> tuple[str, tuple[Any, ...]]:
    """Return the constructor of a type, and its arguments in front of the old type."""

    def ints(name: str) -> FFI.CData:
        return ffi.new("int[]", values[name])

    def addresses(name: str) -> FFI.CData:
        return ffi.new("intptr_t[]", values[name])

    count = values.get("count", len(values.get("displacements", ())))
    if combiner == "DUP":
        return "MPI_Type_dup", ()
    if combiner == "CONTIGUOUS":
        return "MPI_Type_contiguous", (count,)
    if combiner in ("VECTOR", "HVECTOR"):
        function = "MPI_Type_vector" if combiner == "VECTOR" else "MPI_Type_create_hvector"
        return function, (count, values["blocklength"], values["stride"])
    if combiner == "INDEXED":
        return "MPI_Type_indexed", (count, ints("blocklengths"), ints("displacements"))
    if combiner in ("HINDEXED", "STRUCT"):
        function = f"MPI_Type_create_{combiner.lower()}"
        return function, (count, ints("blocklengths"), addresses("displacements"))
    if combiner == "INDEXED_BLOCK":
        return "MPI_Type_create_indexed_block", (count, values["blocklength"], ints("displacements"))
    if combiner == "HINDEXED_BLOCK":
        return "MPI_Type_create_hindexed_block", (count, values["blocklength"], addresses("displacements"))
    if combiner == "SUBARRAY":
        shape = (ints("sizes"), ints("subsizes"), ints("starts"))
        return "MPI_Type_create_subarray", (len(values["sizes"]), *shape, values["order"])
    if combiner == "DARRAY":
        grid = tuple(ints(name) for name in ("gsizes", "distribs", "dargs", "psizes"))
        leading = (values["size"], values["rank"], len(values["gsizes"]))
        return "MPI_Type_create_darray", (*leading, *grid, values["order"])
    raise ArgumentError(f"buftype: a {combiner.lower()} type cannot be passed to PnetCDF")


def _make(pnetcdf: Pnetcdf, datatype: MPI.Datatype) -> tuple[Any, bool]:
    """Return the handle of an equal type made by the classic constructors, and whether it is to be freed."""
    from mpi4py import MPI

    ffi, lib = pnetcdf.ffi, pnetcdf.lib
    old, combiner, values = datatype.decode()
    if combiner == "NAMED":
        return ffi.cast("MPI_Datatype", MPI._handleof(datatype)), False
    olds = values["datatypes"] if combiner == "STRUCT" else [old]
    made = []
    try:
        for one in olds:
            made.append(_make(pnetcdf, one))
            if not one.is_predefined:
                one.Free()
        handle = ffi.new("MPI_Datatype *")
        if combiner == "RESIZED":
            status = lib.MPI_Type_create_resized(made[0][0], values["lb"], values["extent"], handle)
        else:
            function, arguments = _arguments(ffi, combiner, values)
            last = ffi.new("MPI_Datatype[]", [one for one, _ in made]) if combiner == "STRUCT" else made[0][0]
            status = getattr(lib, function)(*arguments, last, handle)
    except OverflowError as error:
        raise ArgumentError(f"buftype: a count beyond int cannot be passed to PnetCDF ({error})") from error
    finally:
        for one, own in made:
            if own:
                lib.MPI_Type_free(ffi.new("MPI_Datatype *", one))
    if status:
        raise MPI.Exception(status)
    return handle[0], True


@contextlib.contextmanager
def classic(pnetcdf: Pnetcdf, datatype: MPI.Datatype) -> Iterator[Any]:
    """Hand out the C handle of a committed type, in a form that PnetCDF understands. Local.

    Raises
    ------
    ArgumentError
        The type has a count beyond int, or is one of Fortran's parametric types. (PnetCDF 1.12 itself refuses types of
        hindexed_block by NC_EIOMISMATCH.)
    """
    from mpi4py import MPI

    if datatype.is_predefined or MPI.Get_version() < (4, 0):
        yield pnetcdf.ffi.cast("MPI_Datatype", MPI._handleof(datatype))
        return
    made, own = _make(pnetcdf, datatype)
    if not own:
        yield made
        return
    handle = pnetcdf.ffi.new("MPI_Datatype *", made)
    pnetcdf.lib.MPI_Type_commit(handle)
    try:
        yield handle[0]
    finally:
        pnetcdf.lib.MPI_Type_free(handle)
