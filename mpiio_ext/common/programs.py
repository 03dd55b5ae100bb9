"""The program of a command line whose first word is an interpreter: the script or the module.

The one rule by which `mpiio-ext top` and pages of runs name programs, and arbitration finds the curve of one. The
library announces its own program by the same rule (csrc/iod/arbiter/mpiox_program.h).
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

#: Names of Python's executable.
PYTHON = re.compile(r"python[\d.]*t?")
_INTERPRETER = re.compile(rf"{PYTHON.pattern}|(pypy|perl|ruby|julia|Rscript|lua|(ba|da|z)?sh)[\d.]*")
#: Options of interpreters behind which a word stands that is no script.
_WITH_WORD = ("-W", "-X", "--check-hash-based-pycs")
#: Modules that run a script.
_RUNNERS = ("mpi4py", "mpi4py.run")


def base_name(word: str) -> str:
    """Return a word without its folder."""
    return word.rstrip("/").rpartition("/")[2] or word


def path_of(program: str) -> str | None:
    """Return where the shell finds a program, as `shutil.which` does, whose module loads three compressors."""
    for folder in ("",) if "/" in program else os.get_exec_path():
        path = os.path.join(folder, program)  # noqa: PTH118  (each rank, each folder)
        if os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113
            return path
    return None


def script_of(words: Sequence[str]) -> list[str]:
    """Return the file or module that an interpreter runs, and its arguments; nothing if it is neither.

    Parameters
    ----------
    words : behind the interpreter's name.
    """
    rest = list(words)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in ("-c", "-"):
            return []
        if option == "-m" and rest and rest[0] not in _RUNNERS:
            break
        if option in ("-m", *_WITH_WORD):
            rest = rest[1:]
    return rest


def without_interpreter(words: Sequence[str]) -> Sequence[str]:
    """Return a command line, its executable first, without an interpreter that runs a script or module."""
    return (_INTERPRETER.fullmatch(base_name(words[0])) and script_of(words[1:])) or words
