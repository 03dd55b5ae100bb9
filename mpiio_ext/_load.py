"""Put libmpiio_ext.so where the dynamic linker finds its MPI_File_* functions before those of the MPI library.

An extension module such as mpi4py.MPI, or the HDF5 library under h5py, is bound to MPI_File_* when it is loaded. The
linker searches the global scope first, in this order: the program, the libraries of LD_PRELOAD, and the libraries that
were opened with RTLD_GLOBAL. So a process that opens the library with RTLD_GLOBAL, before any MPI library is loaded,
needs no LD_PRELOAD. Afterwards it is too late, because the symbols are bound already. Loading does not initialise MPI
and needs no MPI launch. The library for calls past MPI is opened before it: in front of PnetCDF, not of the C library,
which is in the process already.

A wheel holds the library once per MPI ABI, and one binding for all of them. The binding finds the library by its name
among those in the process. So one is loaded in every process that imports the package. `mpiio_ext.abi` says which. An
installation from source holds one, which the binding finds by itself.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpiio_ext import abi
from mpiio_ext.errors import LoadError, MpiioExtWarning

#: An MPI library, by the names under which the linker knows it.
_MPI_SONAMES = ("libmpi.so.40", "libmpi.so.12", "libmpich.so.12", "libmpi_abi.so.1", "libmpi_abi.so.0")
#: The library that `mpiio-ext` uses if it finds no MPI library: it calls none.
_ANY = "mpich"

_selected: str | None = None
#: Why the library is not under MPI_File_*, if an MPI library was loaded first; else "".
_late = ""

_RTLD_NOLOAD = 0x4  # <dlfcn.h> of Linux; the os module has it only where the platform's headers define it


def _folder() -> Path:
    """Return the folder into which the compiled part of the package was installed.

    In an editable installation it is not the folder of this file, so the import system is asked.
    """
    spec = importlib.util.find_spec("mpiio_ext._binding")
    if spec is None or spec.origin is None:
        raise LoadError(
            "the compiled part of mpiio_ext (mpiio_ext._binding) is not installed for this Python: run `make build` in "
            "the source tree and use the Python of build/openmpi/venv or build/mpich/venv, or `pip install` the package"
        )
    return Path(spec.origin).parent


def _in_process() -> str | None:
    """Return the ABI of the library that is in the global scope of this process already, or None."""
    process = ctypes.CDLL(None)
    try:
        function = process.mpiio_ext_mpi_family
    except AttributeError:
        return None
    function.restype = ctypes.c_char_p
    return str(function().decode())


def select(command: Sequence[str]) -> str:
    """Choose the library for a command, which `get_library`, `get_tracer` and `family` then return.

    Parameters
    ----------
    command : program or launcher, with arguments; empty for what `import mpiio_ext` takes.

    Returns
    -------
    str
        By what it was chosen, in words; "" if unknown, and for an installation from source.

    Raises
    ------
    LoadError
        The program uses an MPI library that the wheel has no library for.
    """
    global _selected
    from mpiio_ext.launchers import launcher_family

    if not abi.installed(_folder()):
        return ""
    launcher = launcher_family(command[0], "unknown") if command else None
    found, why = abi.chosen(command, launcher, os.environ)
    _selected = found or _ANY
    return why if found else ""


def _parts() -> Path:
    """Return the folder that holds lib and bin: the package's, in a wheel the one of the ABI."""
    folders = abi.installed(_folder())
    if not folders:
        return _folder()
    chosen = _selected or _in_process() or abi.of_mpi4py() or _ANY
    if chosen not in folders:
        raise LoadError(
            f"{abi.VARIABLE}={chosen}: this wheel of mpiio_ext has libraries for {', '.join(folders)}; for another MPI "
            f"{abi.FROM_SOURCE}"
        )
    return folders[chosen]


def family() -> str:
    """Return the MPI family, or in a wheel the ABI, of `get_library`: "openmpi", "mpich" or "mpiabi"."""
    parts = _parts()
    if parts != _folder():
        return parts.name
    ffi, lib = _binding()
    return str(ffi.string(lib.mpiio_ext_mpi_family()).decode())


def _binding() -> tuple[Any, Any]:
    try:
        from mpiio_ext._binding import ffi, lib
    except ImportError as error:  # the library is older, or its MPI library is gone
        raise LoadError(f"{get_library()} cannot be loaded: {error}; build or install mpiio_ext again") from error
    return ffi, lib


def misfit(library: Path, version: str, package: str) -> str:
    """Return that a library does not fit the package, by the versions of both; "" if it does."""
    return "" if version == package else f"{library} is {version}, the Python package {package}"


def misfit_here(package: str) -> str:
    """Return the same of `get_library`; of a wheel "", whose parts come together."""
    if _parts() != _folder():
        return ""
    ffi, lib = _binding()
    return misfit(get_library(), ffi.string(lib.mpiio_ext_version()).decode(), package)


def get_library() -> Path:
    """Return the path of libmpiio_ext.so, for LD_PRELOAD or the link line of a program.

    In a wheel it is the one for the MPI library that mpi4py of this environment uses, or for the program of
    ``mpiio-ext run``.
    """
    return _parts() / "lib" / abi.LIBRARY


def get_tracer() -> Path:
    """Return the path of libmpiio_ext_trace.so, which records the calls of a program (``mpiio-ext trace``)."""
    return _parts() / "lib" / "libmpiio_ext_trace.so"


def get_include() -> Path:
    """Return the folder that holds mpiio_ext.h, for the compiler's -I."""
    return _folder() / "include"


def interposed() -> bool:
    """Return whether this process resolves MPI_File_* to libmpiio_ext.so."""
    process = ctypes.CDLL(None)
    try:
        function = process.mpiio_ext_interposed
    except AttributeError:
        return False
    return bool(function())


def _is_global() -> bool:
    """Return whether libmpiio_ext.so is in the global scope already (LD_PRELOAD, link order, an earlier load)."""
    return hasattr(ctypes.CDLL(None), "mpiio_ext_version")


def _loaded_mpi() -> str | None:
    """Return the name of an MPI library that this process has loaded already; None if it has loaded none."""
    for name in _MPI_SONAMES:
        try:
            ctypes.CDLL(name, mode=_RTLD_NOLOAD | os.RTLD_LAZY)
        except OSError:
            continue
        return name
    return None


def _too_late(mpi: str) -> str:
    culprits = [name for name in ("mpi4py.MPI", "h5py", "netCDF4", "petsc4py") if name in sys.modules]
    cause = f"after {' and '.join(culprits)}" if culprits else f"after {mpi} was loaded"
    return (
        f"mpiio_ext is imported {cause}, too late to wrap MPI_File_* in this process. Either write "
        "`import mpiio_ext` before the first import of mpi4py.MPI, h5py or netCDF4, or start the program with "
        f"`mpiio-ext run -- PROGRAM` or LD_PRELOAD={get_library()}"
    )


def load(asked: bool = True) -> None:
    """Load libmpiio_ext.so into the global scope, unless it is loaded already.

    Parameters
    ----------
    asked : whether a program may need the library under MPI_File_* of this process: if an MPI library was loaded before
        it, so that they do not reach it, a warning reports that. `check_in_time` makes an error of it.

    Raises
    ------
    LoadError
        The library is not built or cannot be loaded.
    """
    global _late
    there = _is_global()
    mpi = ("an MPI library" if "mpi4py.MPI" in sys.modules and not interposed() else None) if there else _loaded_mpi()
    _late = "" if mpi is None else _too_late(mpi)
    if not _late:
        for library in () if there else (get_library().with_name(abi.POSIX), get_library()):
            _open(library, os.RTLD_GLOBAL)
    else:
        load_for_tools()
        if asked:
            warnings.warn(_late, MpiioExtWarning, stacklevel=3)


def check_in_time() -> None:
    """Raise an error if the library is not under MPI_File_* because an MPI library was loaded before it.

    Raises
    ------
    LoadError
        The library is not under MPI_File_*; the message has the remedy.
    """
    if _late:
        raise LoadError(_late)


def load_for_tools() -> None:
    """Make the functions of libmpiio_ext.so usable, under no MPI call of this process.

    Raises
    ------
    LoadError
        The library is not built or cannot be loaded.
    """
    if abi.installed(_folder()) and not _is_global():
        _open(get_library(), os.RTLD_LOCAL)


def _open(library: Path, scope: int) -> None:
    try:
        ctypes.CDLL(str(library), mode=os.RTLD_LAZY | scope)
    except OSError as error:
        raise LoadError(f"cannot load {library}: {error}") from error
