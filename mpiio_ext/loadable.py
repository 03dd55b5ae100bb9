"""Whether a program can have this library under it, and what must be loaded before, found without running it.

Problem. A program of another C library (musl) ends with a line for every function that it lacks. The run-time library
of the address sanitizer refuses to work where another library was loaded before it.

Algorithm. Behind a launcher, its options and ``env`` the first word that is an ELF program is the program. glibc's
dynamic linker lists its libraries, the sanitizer's among them. If the dynamic linker cannot list them, the file names a
dynamic linker, whose name shows the C library. A script hides its program: that is left alone.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from mpiio_ext.common.programs import path_of
from mpiio_ext.elf import Elf, ElfError, listed, read
from mpiio_ext.errors import LoadError

#: Run-time libraries that have to be the first ones of a process.
FIRST = re.compile(r"lib(hw)?asan\.so(\.\d+)*|libclang_rt\.(hw)?asan\b.*\.so")
_MUSL = "ld-musl"


def _elf(path: str) -> Elf | None:
    try:
        return read(path)
    except (ElfError, OSError):
        return None


def first_libraries(command: Sequence[str], launched: bool) -> tuple[str, ...]:
    """Return the names of the libraries that have to be loaded before this one under a command's program.

    Parameters
    ----------
    command : program or launcher, with arguments.
    launched : whether its first word is a launcher.

    Raises
    ------
    LoadError
        The program is of another C library.
    """
    for word in command[1:] if launched else command:
        path = None if word.startswith("-") or Path(word).name == "env" else path_of(word)
        names = _libraries(word, path) if path else None
        if names is not None:
            return tuple(name for name in names if FIRST.fullmatch(name))
    return ()


def _libraries(word: str, path: str) -> Sequence[str] | None:
    """Return the names of a program's libraries; None if it is no ELF program. `LoadError`: of another C library."""
    names = listed(path)
    elf = _elf(path) if names is None else None
    if elf is not None and Path(elf.interpreter).name.startswith(_MUSL):
        own = _elf(sys.executable)
        if own is not None and _MUSL not in own.interpreter:
            raise LoadError(
                f"{word} is built with the C library musl ({elf.interpreter}), and this library with glibc:"
                " build the program with glibc, or start it without `mpiio-ext run`"
            )
    return names if elf is None else elf.needed
