"""The dynamic linker's view of a program: the kind of its file, its libraries, and the bindings of its symbols.

Algorithm. The header of the file (`mpiio_ext.elf`) separates a static program from a dynamic one and names its dynamic
linker. That linker is then run in its tracing mode, as ``ldd -r`` does. It loads the program and all libraries with the
search paths, LD_LIBRARY_PATH and LD_PRELOAD that count, and carries out every relocation. It reports each binding, and
ends before the first instruction of the program.

Guarantee. No instruction of the program runs: only linkers of glibc are started, which know this mode; other linkers
(musl) are recognised by their names.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mpiio_ext import abi, elf
from mpiio_ext.common.children import run

#: The last form is Cray's: libmpi_gnu_123.so.12.
_ABI_NAME = re.compile(r"libmpi(ch|_abi|_(gnu|intel|cray|aocc|amd|nvidia|pgi)\w*)?\.so(\.\d+)*")
_BY_ABI = {"openmpi": "Open MPI", "mpich": "MPICH", "mpiabi": "MPI ABI"}
_GLIBC = re.compile(r"ld(-linux.*|64)?\.so(\.\d+)*|ld-linux.*")
_LOADED = re.compile(r"^\s+(\S+) => (not found|\S+)(?: \(0x[0-9a-f]+\))?$", re.MULTILINE)
_PLAIN = re.compile(r"^\s+(/\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)
_BOUND = re.compile(r"binding file (.+?) \[\d+\] to (.+?) \[\d+\]: normal symbol `(\w+)'")
_IGNORED = re.compile(r"object '([^']*)' from LD_PRELOAD cannot be preloaded \(([^)]*)\)")
#: Functions on files, in C and in Fortran.
_OF_FILES = re.compile(r"o?mpi_file_\w+", re.IGNORECASE)  # ompi_file_*_f: what Open MPI's mpi_f08 calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The dynamic linker's results for a program.

    Attributes
    ----------
    libraries : name -> path of everything that is loaded; path "" where it was not found.
    bindings : (file that calls, file that is called, symbol) of all functions on MPI files, and of MPI_Init.
    ignored : (object, reason) of every LD_PRELOAD that had no effect.
    trouble : "" or why there is no trace.
    """

    libraries: dict[str, str]
    bindings: tuple[tuple[str, str, str], ...] = ()
    ignored: tuple[tuple[str, str], ...] = ()
    trouble: str = ""

    def mpi(self) -> dict[str, str]:
        """Return name -> path of the MPI libraries among them."""
        return {name: path for name, path in self.libraries.items() if is_mpi(name)}

    def missing(self) -> list[str]:
        """Return the names of libraries that were not found."""
        return [name for name, path in self.libraries.items() if not path]


def is_mpi(name: str) -> bool:
    """Return whether a file name is that of an MPI library."""
    return _ABI_NAME.fullmatch(name) is not None


def abi_of(name: str) -> str:
    """Return the MPI family of a library's name; the name itself if the family is not known."""
    return _BY_ABI.get(abi.of_library(name) or "", name) if is_mpi(name) else name


def loaded_mpi() -> list[str]:
    """Return the files of the MPI libraries that are in this process, links resolved as the kernel does."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    paths = {words[5] for line in lines if len(words := line.split(maxsplit=5)) == 6}
    return sorted(path for path in paths if path.startswith("/") and is_mpi(Path(path).name))


def header_of(path: Path) -> elf.Elf | None:
    """Return the contents of a file's header; None if it is no ELF file; raises OSError if it cannot be read."""
    try:
        return elf.read(path)
    except elf.ElfError:
        return None


def privileges(path: Path) -> str:
    """Return by what a program runs with other rights than its user's, "" if it does not.

    The dynamic linker then ignores LD_PRELOAD with a path in it, and LD_LIBRARY_PATH.
    """
    mode = path.stat().st_mode
    found = [name for bit, name in ((stat.S_ISUID, "setuid"), (stat.S_ISGID, "setgid")) if mode & bit]
    try:
        if os.getxattr(path, "security.capability"):
            found.append("file capabilities")
    except OSError:
        pass
    return " and ".join(found)


def trace(path: Path, linker: str, environment: Mapping[str, str], limit_s: float = 20.0) -> Trace:
    """Let the dynamic linker load a program or a library, without running it.

    Parameters
    ----------
    path : program or library.
    linker : path of the dynamic linker that the program names.
    environment : with the LD_PRELOAD and LD_LIBRARY_PATH that shall count.
    limit_s : seconds that it may take.
    """
    if not _GLIBC.fullmatch(Path(linker).name):
        return Trace(libraries={}, trouble=f"its dynamic linker {linker} is not that of glibc, and cannot be queried")
    asked = {"LD_TRACE_LOADED_OBJECTS": "1", "LD_WARN": "yes", "LD_BIND_NOW": "yes", "LD_DEBUG": "bindings"}
    kept = {name: value for name, value in environment.items() if name != "LD_DEBUG_OUTPUT"}
    ended = run([linker, str(path)], environment=kept | asked, limit_s=limit_s, errors="output")
    trouble, text = ended.trouble, ended.output
    libraries = {name: "" if found == "not found" else found for name, found in _LOADED.findall(text)}
    libraries |= {Path(found).name: found for found in _PLAIN.findall(text)}
    if trouble and not libraries:
        return Trace(libraries={}, trouble=f"the dynamic linker {linker} does not load it ({trouble})")
    bindings = [found for found in _BOUND.findall(text) if _OF_FILES.fullmatch(found[2]) or found[2] == "MPI_Init"]
    ignored = tuple(dict.fromkeys(_IGNORED.findall(text)))
    return Trace(libraries=libraries, bindings=tuple(bindings), ignored=ignored)
