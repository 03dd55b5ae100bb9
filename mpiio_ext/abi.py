"""Which of the libraries in a wheel fits a program: the choice by MPI ABI.

Problem. A wheel holds libmpiio_ext.so once per ABI of MPI libraries, in ``abis/NAME``. The one of another ABI than the
program's takes handles for something else, so the choice must be right before the program starts. Where
it is not, because a script hides the program, the library exchanges itself or ends the process
(csrc/core/abi/mpiox_other_abi.h).

Algorithm. For a command (``mpiio-ext run``), in this order:

1. the variable ``MPIIO_EXT_ABI``;
2. the first word of the command that is an executable which needs an MPI library, itself or through others; for
   the Python of this environment, what mpi4py will use;
3. the launcher, if its family is certain (``mpirun.openmpi``, Hydra), or what started this process;
4. what mpi4py of this environment uses.

For ``import mpiio_ext``: the variable, then mpi4py. mpi4py's wheels look for a library themselves when they are
imported, and are asked; other builds need one, and their file is read.

Guarantees. Nothing is executed but a dynamic linker in its listing mode, the program's own one last. An installation
from source has only one library, so this module chooses nothing.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from mpiio_ext.common.programs import PYTHON, path_of
from mpiio_ext.elf import ElfError, listed, read
from mpiio_ext.errors import LoadError

#: Names of the library, and of that in which calls past MPI wait for files that are written behind their close. They
#: lie in one folder; the second knows nothing of MPI, and is the same for every ABI.
LIBRARY, POSIX = "libmpiio_ext.so", "libmpiio_ext_posix.so"
#: ABI -> whose it is.
NAMES = {
    "openmpi": "Open MPI 4 and 5 (libmpi.so.40)",
    "mpich": "MPICH, Intel MPI, MVAPICH, Cray MPICH (libmpi.so.12)",
    "mpiabi": "the standard ABI of MPI 5 (libmpi_abi.so)",
}
VARIABLE = "MPIIO_EXT_ABI"
#: What to do where no library of a wheel fits.
FROM_SOURCE = (
    "install it from source for that MPI, by `MPICC=mpicc pip install .` in the source tree, or with the path of "
    "mpiio_ext-VERSION.tar.gz in place of `.`"
)
_PATTERNS = (
    ("mpiabi", re.compile(r"libmpi\w*_abi\.so(\.\d+)*")),
    ("openmpi", re.compile(r"libmpi\w*\.so\.40(\.\d+)*")),
    ("mpich", re.compile(r"libmpi\w*\.so\.12(\.\d+)*")),
)
_OTHER = re.compile(r"lib(mpi|mpich)\.so\.\d+")
_LINE = 512  # bytes of a script's first line


def of_library(name: str) -> str | None:
    """Return the ABI of an MPI library by its file name, or None: of no ABI that is known."""
    return next((abi for abi, pattern in _PATTERNS if pattern.fullmatch(Path(name).name)), None)


def installed(folder: Path) -> dict[str, Path]:
    """Return {ABI: folder of its lib and bin} of a wheel; empty for an installation from source."""
    each = ((abi, folder / "abis" / abi) for abi in NAMES)
    return {abi: path for abi, path in each if (path / "lib" / LIBRARY).is_file()}


def of_part(library: Path) -> str:
    """Return the ABI of a wheel's library by its place; "" for that of an installation from source."""
    folder = library.parent.parent
    return folder.name if folder.parent.name == "abis" and folder.name in NAMES else ""


def _misfit(what: str, mpi: str) -> LoadError:
    serves = "; ".join(NAMES.values())
    return LoadError(
        f"{what} uses {mpi}, which this wheel of mpiio_ext has no library for (it serves {serves}): {FROM_SOURCE}"
    )


# ---- programs --------------------------------------------------------------------------------------------------------


def of_file(path: str) -> str | None:
    """Return the ABI of the MPI library that an executable or a shared library needs, itself or through others.

    None if it is no ELF file or needs no MPI library. Raises `LoadError` when it needs one of an unknown ABI. Where
    this process's linker cannot list it, the one that it names is executed: ask only of programs that are to run.
    """
    names = listed(path)
    if names is None:
        try:
            elf = read(path)
        except (ElfError, OSError):
            return None
        others = listed(path, elf.interpreter) if elf.interpreter and elf.dynamic else None
        names = [*elf.needed, *(others or [])]
    return _of_names(path, names)


def _of_names(path: str, names: Sequence[str]) -> str | None:
    for name in names:
        abi = of_library(name)
        if abi is not None:
            return abi
    for name in names:
        if _OTHER.fullmatch(Path(name).name):
            raise _misfit(Path(path).name, Path(name).name)
    return None


def _is_this_python(path: str) -> bool:
    """Return whether an executable is the Python of this environment (a link to another environment's is not)."""
    here = Path(sys.executable)
    return PYTHON.fullmatch(Path(path).name) is not None and (
        Path(path).absolute().parent == here.absolute().parent or Path(path).resolve() == Path(path).absolute() == here
    )


def _of_word(word: str) -> str | None:
    """Return the ABI of one word of a command, when it names a program that has one."""
    path = path_of(word)
    if path is None:
        return None
    if PYTHON.fullmatch(Path(path).name):
        return of_mpi4py() if _is_this_python(path) else None
    script = _interpreter(path)
    if script and PYTHON.fullmatch(Path(script).name):
        return of_mpi4py() if _is_this_python(script) else None
    return of_file(path)


def _interpreter(path: str) -> str:
    """Return the interpreter of a script, or an empty string."""
    try:
        with Path(path).open("rb") as file:
            line = file.readline(_LINE).decode("utf-8", "replace")
    except OSError:
        return ""
    words = line[2:].split() if line.startswith("#!") else []
    if words and Path(words[0]).name == "env":
        return path_of(words[-1]) or ""
    return words[0] if words else ""


def chosen(command: Sequence[str], launcher: str | None, environment: Mapping[str, str]) -> tuple[str | None, str]:
    """Return the ABI for a program or launcher with its arguments, and by what it was chosen, in words.

    Parameters
    ----------
    command : program or launcher, with arguments; empty for what `import mpiio_ext` takes.
    launcher : what its first word is: "openmpi", "hydra", "slurm", "unknown" (mpirun, of either), or None: a program.
    environment : of this process; a launcher of ranks leaves its marks there.

    Raises
    ------
    LoadError
        The program needs an MPI library that no ABI of the wheel fits.
    """
    asked = environment.get(VARIABLE)
    if asked:
        return asked, f"{VARIABLE} says so"
    own = None if command else of_mpi4py()
    if own is not None:
        return own, "mpi4py uses it"
    for word in command if launcher is None else command[1:]:
        abi = None if word.startswith("-") else _of_word(word)
        if abi is not None:
            return abi, f"{word} uses it"
    by_launcher = "the launcher is of it"
    if launcher == "openmpi" or (launcher is None and "OMPI_COMM_WORLD_SIZE" in environment):
        return "openmpi", by_launcher
    if launcher == "hydra" or (launcher is None and "HYDI_CONTROL_FD" in environment):
        own = of_mpi4py()
        return (own if own in ("mpich", "mpiabi") else "mpich"), by_launcher
    return of_mpi4py(), "mpi4py uses it"


# ---- mpi4py ----------------------------------------------------------------------------------------------------------


def of_mpi4py(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the ABI of the MPI library that mpi4py of this environment uses or will use.

    None if there is no mpi4py, or it finds no MPI library. MPI is not initialised, mpi4py.MPI not imported.
    """
    asked = environment.get(VARIABLE)
    if asked:
        return asked
    spec = importlib.util.find_spec("mpi4py")
    if spec is None or not spec.submodule_search_locations:
        return None
    for folder in spec.submodule_search_locations:
        for path in sorted(Path(folder).glob("MPI.*.so")):
            if path.name.startswith(("MPI.cpython-", "MPI.abi3.")):  # built for one MPI library
                return of_file(str(path))
    return _of_wheel()


def _of_wheel() -> str | None:
    """Query mpi4py's wheel, which then opens the MPI library that it is going to use."""
    try:
        from mpi4py import _mpiabi
    except ImportError:
        return None
    try:
        found = str(getattr(_mpiabi, "_get_mpiabi")())  # noqa: B009  (mpi4py 4.1 has no public name, nor declares it)
    except RuntimeError:  # no MPI library
        return None
    if found not in NAMES:
        raise _misfit("mpi4py", f"an MPI library of the ABI {found!r}")
    return found
