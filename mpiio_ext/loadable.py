"""Whether a program can have this library under it, and what has to be loaded before: read from its file, not tried.

Problem. A program of another C library (musl) ends with a line for every function that it lacks. The run-time library
of the address sanitizer refuses to work where another library was loaded before it.

Algorithm. Behind a launcher, its options and ``env`` the first word that is an ELF program is the program. Its dynamic
linker names its C library, its list of libraries the sanitizer's. A script hides its program: that is left alone.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from mpiio_ext.elf import Elf, ElfError, read
from mpiio_ext.errors import LoadError

#: Run-time libraries that have to be the first ones of a process.
FIRST = re.compile(r"lib(hw)?asan\.so(\.\d+)*|libclang_rt\.(hw)?asan\b.*\.so")
_MUSL = "ld-musl"


def _elf(path: str) -> Elf | None:
    try:
        return read(path)
    except (ElfError, OSError):
        return None


def _program(words: Sequence[str]) -> tuple[str, Elf] | None:
    for word in words:
        path = None if word.startswith("-") or Path(word).name == "env" else shutil.which(word)
        elf = _elf(path) if path else None
        if elf is not None:
            return word, elf
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
    found = _program(command[1:] if launched else command)
    if found is None:
        return ()
    word, elf = found
    if Path(elf.interpreter).name.startswith(_MUSL):
        own = _elf(sys.executable)
        if own is not None and _MUSL not in own.interpreter:
            raise LoadError(
                f"{word} is built with the C library musl ({elf.interpreter}), and this library with glibc:"
                " build the program with glibc, or start it without `mpiio-ext run`"
            )
    return tuple(name for name in elf.needed if FIRST.fullmatch(name))
