"""Flags of an open in a plan: those of the trace if it has them, else those that its session needs.

Exclusive creation is left out, since the file of an earlier run may be there.
"""

from __future__ import annotations

import os
import re
from typing import Any

from mpiio_ext.pioneer.operations import Operation

_READS, _WRITES, _TRUNCATES, _APPENDS = 1, 2, 4, 8  # of fopen, as in mpiox_engine_stdio.c
#: The flags of open(2) whose numbers depend on the processor, as traces have them: x86-64's.
TRACED = {"O_DIRECT": 1 << 14, "O_LARGEFILE": 1 << 15, "O_DIRECTORY": 1 << 16, "O_NOFOLLOW": 1 << 17}
_AMODES = {"CREATE": 1, "RDONLY": 2, "WRONLY": 4, "RDWR": 8, "DELETE_ON_CLOSE": 16, "EXCL": 64, "APPEND": 128}


def _posix_flags(extra: dict[str, Any], name: str, reads: bool, writes: bool) -> int:
    given = extra.get("flags")
    if isinstance(given, int):
        here: int = sum(getattr(os, flag) for flag, bit in TRACED.items() if given & bit)
        return given & ~sum(TRACED.values()) & ~os.O_EXCL | here
    if name == "creat":
        return os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    if isinstance(given, str):
        words = set(re.findall(r"\bO_[A-Z]+\b", given))  # of openat2 in the text of a struct
        return sum(getattr(os, word) for word in words if hasattr(os, word) and word != "O_EXCL")
    mode = os.O_RDWR if reads and writes else os.O_WRONLY if writes else os.O_RDONLY
    return mode | (os.O_CREAT if writes else 0)


def _stdio_flags(extra: dict[str, Any], name: str, reads: bool, writes: bool) -> int:
    mode = extra.get("mode", extra.get("flags"))
    if name == "fdopen":  # truncates nothing, and its file is there
        return (_READS if reads else 0) | (_WRITES if writes else 0) or _READS
    if isinstance(mode, int):  # the flags of its `open`, as our tracer has them
        access = mode & os.O_ACCMODE
        return (
            _READS * (access != os.O_WRONLY)
            | _WRITES * (access != os.O_RDONLY)
            | _TRUNCATES * bool(mode & os.O_TRUNC)
            | _APPENDS * bool(mode & os.O_APPEND)
        )
    if not isinstance(mode, str):
        return (_READS if reads else 0) | (_WRITES | _TRUNCATES if writes and not reads else _WRITES if writes else 0)
    plus = _READS | _WRITES if "+" in mode else 0
    return plus | {"r": _READS, "w": _WRITES | _TRUNCATES, "a": _APPENDS}.get(mode[:1], _READS)


def _amode(extra: dict[str, Any], reads: bool, writes: bool) -> int:
    """Return a mode in Open MPI's and MPICH's numbers of MPI_MODE_*; `run` turns it into those of the MPI library."""
    given = extra.get("amode")
    if isinstance(given, int):  # Open MPI and MPICH have the same numbers
        return given & ~_AMODES["EXCL"]
    if isinstance(given, str):
        words = {word.strip().removeprefix("MPI_MODE_") for word in given.split("|")}
        return sum(_AMODES[word] for word in words - {"EXCL"} if word in _AMODES)
    mode = "RDWR" if reads and writes else "WRONLY" if writes else "RDONLY"
    return _AMODES[mode] | (_AMODES["CREATE"] if writes else 0)


def open_flags(operation: Operation, extra: dict[str, Any], *, reads: bool, writes: bool) -> int:
    """Return the flags of an open: those of the trace if it has them, else those that its session needs.

    Exclusive creation is left out, since the file of an earlier run may be there.
    """
    if operation.layer == "stdio":
        return _stdio_flags(extra, operation.name, reads, writes)
    if operation.layer == "mpiio":
        return _amode(extra, reads, writes)
    return _posix_flags(extra, operation.name, reads, writes)
