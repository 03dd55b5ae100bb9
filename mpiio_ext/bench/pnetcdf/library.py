"""Find, check and load the PnetCDF library that belongs to the MPI of this process.

Debian's library is built for Open MPI; loaded into a process of another MPI it would bring a second MPI library, and
its calls would go to the one that was never initialised. So before a candidate is loaded, the names of the MPI
libraries that it asks for are read from the file and must be in the process already.

The C interface consists of integers, pointers and handles; cffi's ABI mode calls it without a compiler. The only types
that differ between MPI libraries are the handles: pointers in Open MPI, int in MPICH; mpi4py knows their size.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpiio_ext.errors import LoadError

_RTLD_NOLOAD = 0x4  # <dlfcn.h> of Linux

_MPI_NAME = re.compile(rb"\0(lib(?:mpi|mpich)\.so\.\d+)(?=\0)")

#: PnetCDF's C interface, as far as the bench calls it (pnetcdf.h of 1.12; unchanged in later releases), and the
#: constructor of memory types, which is found in the MPI library that PnetCDF is linked to.
_DECLARATIONS = """
typedef {handle} MPI_Comm;
typedef {handle} MPI_Info;
typedef {handle} MPI_Datatype;
typedef long long MPI_Offset;

const char *ncmpi_inq_libvers(void);
const char *ncmpi_strerror(int err);
const char *ncmpi_strerrno(int err);
int ncmpi_create(MPI_Comm comm, const char *path, int cmode, MPI_Info info, int *ncidp);
int ncmpi_open(MPI_Comm comm, const char *path, int omode, MPI_Info info, int *ncidp);
int ncmpi_close(int ncid);
int ncmpi_enddef(int ncid);
int ncmpi_sync(int ncid);
int ncmpi_begin_indep_data(int ncid);
int ncmpi_end_indep_data(int ncid);
int ncmpi_def_dim(int ncid, const char *name, MPI_Offset len, int *idp);
int ncmpi_def_var(int ncid, const char *name, int xtype, int ndims, const int *dimidsp, int *varidp);
int ncmpi_inq_varid(int ncid, const char *name, int *varidp);
int ncmpi_inq_varndims(int ncid, int varid, int *ndimsp);
int ncmpi_inq_varoffset(int ncid, int varid, MPI_Offset *offset);
int ncmpi_wait(int ncid, int count, int array_of_requests[], int array_of_statuses[]);
int ncmpi_wait_all(int ncid, int count, int array_of_requests[], int array_of_statuses[]);
int ncmpi_put_vara(int ncid, int varid, const MPI_Offset *start, const MPI_Offset *count, const void *buf,
                   MPI_Offset bufcount, MPI_Datatype buftype);
int ncmpi_get_vara(int ncid, int varid, const MPI_Offset *start, const MPI_Offset *count, void *buf,
                   MPI_Offset bufcount, MPI_Datatype buftype);
int ncmpi_put_vara_all(int ncid, int varid, const MPI_Offset *start, const MPI_Offset *count, const void *buf,
                       MPI_Offset bufcount, MPI_Datatype buftype);
int ncmpi_get_vara_all(int ncid, int varid, const MPI_Offset *start, const MPI_Offset *count, void *buf,
                       MPI_Offset bufcount, MPI_Datatype buftype);
int ncmpi_iput_vara(int ncid, int varid, const MPI_Offset *start, const MPI_Offset *count, const void *buf,
                    MPI_Offset bufcount, MPI_Datatype buftype, int *req);
int ncmpi_iget_vara(int ncid, int varid, const MPI_Offset *start, const MPI_Offset *count, void *buf,
                    MPI_Offset bufcount, MPI_Datatype buftype, int *req);
int ncmpi_iput_varn(int ncid, int varid, int num, MPI_Offset *const *starts, MPI_Offset *const *counts,
                    const void *buf, MPI_Offset bufcount, MPI_Datatype buftype, int *req);
int ncmpi_iget_varn(int ncid, int varid, int num, MPI_Offset *const *starts, MPI_Offset *const *counts, void *buf,
                    MPI_Offset bufcount, MPI_Datatype buftype, int *req);

int MPI_Type_create_subarray(int dimensions, const int *sizes, const int *subsizes, const int *starts, int order,
                             MPI_Datatype old, MPI_Datatype *type);
int MPI_Type_commit(MPI_Datatype *type);
int MPI_Type_free(MPI_Datatype *type);
"""


def declarations(handle: str) -> str:
    """Return the declarations for cffi; ``handle`` is the C type of MPI's handles."""
    return _DECLARATIONS.replace("{handle}", handle)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pnetcdf:
    """The loaded library.

    Attributes
    ----------
    ffi, lib : cffi's view of it.
    path : the file it was loaded from.
    """

    ffi: Any
    lib: Any
    path: Path


def candidates() -> list[Path]:
    """Return the files that may be the library, the environment's own first, each once. Local, loads nothing.

    ``MPIIO_EXT_PNETCDF`` names the library itself; then no other place is searched.
    """
    named = os.environ.get("MPIIO_EXT_PNETCDF")
    if named:
        return [Path(named)]
    folders = [Path(sys.prefix, "lib")]
    folders += [Path(folder) for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    multiarch = sysconfig.get_config_var("MULTIARCH") or f"{os.uname().machine}-linux-gnu"
    folders += [Path("/usr/local/lib"), Path("/usr/lib", multiarch), Path("/usr/lib64"), Path("/usr/lib")]
    found: dict[Path, None] = {}
    for folder in folders:
        for path in sorted(folder.glob("libpnetcdf.so*")):
            found.setdefault(path.resolve())
    return list(found)


def mpi_names(library: Path) -> list[str]:
    """Return the names of the MPI libraries that a shared library needs ("libmpi.so.40"), from its string table.

    Raises
    ------
    OSError
        The file cannot be read.
    """
    return sorted({name.decode() for name in _MPI_NAME.findall(library.read_bytes())})


def _in_process(name: str) -> bool:
    try:
        ctypes.CDLL(name, mode=_RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return False
    return True


def _objection(library: Path) -> str | None:
    """Return why a candidate is not for this process, or None."""
    try:
        names = mpi_names(library)
    except OSError as error:
        return f"{library} cannot be read ({error.strerror})"
    foreign = [name for name in names if not _in_process(name)]
    if foreign:
        return f"{library} is built for another MPI ({', '.join(foreign)}) than this process uses"
    if not names:
        return f"{library} is not linked to an MPI library"
    return None


@functools.cache
def load() -> Pnetcdf:
    """Return the library, loaded on the first call. Local; imports mpi4py.MPI.

    Raises
    ------
    LoadError
        No library that was found fits the MPI of this process; the message lists each library and its defect.
    """
    import cffi
    from mpi4py import MPI

    objections = []
    for path in candidates():
        objection = _objection(path)
        if objection is None:
            ffi = cffi.FFI()
            handle = "int" if MPI._sizeof(MPI.COMM_NULL) == ffi.sizeof("int") else "void *"
            ffi.cdef(declarations(handle))
            try:
                return Pnetcdf(ffi=ffi, lib=ffi.dlopen(str(path), ffi.RTLD_NOW), path=path)
            except OSError as error:
                objection = f"{path} cannot be loaded ({error})"
        objections.append(objection)
    advice = "run `make build`, or name the library by MPIIO_EXT_PNETCDF=/path/to/libpnetcdf.so"
    raise LoadError(f"no PnetCDF for this MPI: {'; '.join(objections) or 'libpnetcdf.so is not installed'}; {advice}")


def absent_reason() -> str | None:
    """Return why PnetCDF cannot be used in this process, or None when it can. Local; imports mpi4py.MPI."""
    try:
        load()
    except ImportError as error:
        return str(error)
    return None


def library_path() -> Path:
    """Return the file that the library was loaded from. Local; raises as `load` does."""
    return load().path


def version() -> str:
    """Return PnetCDF's version, "1.12.3". Local; raises as `load` does."""
    pnetcdf = load()
    text: str = pnetcdf.ffi.string(pnetcdf.lib.ncmpi_inq_libvers()).decode()
    return text.split()[0]
