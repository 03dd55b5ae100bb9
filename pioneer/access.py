"""Effect of an open, by the flags in traces: reading, writing, or both, and whether it creates the file.

Content.   Flags of `open` as numbers or names, modes of `fopen` as texts or as the flags that its `open` has, modes of
           MPI-IO as names or numbers of MPICH and Open MPI. An unknown value allows everything.
"""

from __future__ import annotations

import json
import os
from typing import Any

from mpiio_ext.pioneer.operations import Operation

_CREATE, _RDONLY, _WRONLY = 1, 2, 4  # MPI_MODE_* of MPICH and Open MPI


def _mpiio(flags: object) -> tuple[bool, bool]:
    words = flags if isinstance(flags, str) else ""
    number = flags if isinstance(flags, int) else 0
    return "WRONLY" not in words and not number & _WRONLY, "RDONLY" not in words and not number & _RDONLY


def _posix(flags: object) -> tuple[bool, bool]:
    if isinstance(flags, int):
        mode = flags & os.O_ACCMODE
        return mode != os.O_WRONLY, mode != os.O_RDONLY
    return "O_WRONLY" not in str(flags), "O_WRONLY" in str(flags) or "O_RDWR" in str(flags)


def _stdio(mode: object) -> tuple[bool, bool]:
    if isinstance(mode, int):  # as our tracer has it
        return _posix(mode)
    if not isinstance(mode, str) or mode[:1] not in ("r", "w", "a") or "+" in mode:
        return True, True
    return mode[0] == "r", mode[0] != "r"


def parsed(extra: str | None) -> dict[str, Any]:
    """Return the JSON object in the column `extra` of an operation; an empty one without it."""
    try:
        found = json.loads(extra) if extra else {}
    except (ValueError, RecursionError):
        found = {}
    return found if isinstance(found, dict) else {}


def allowed(operation: Operation, extra: str | None) -> tuple[bool, bool]:
    """Return whether an open allows to read, and to write.

    Parameters
    ----------
    operation : the open.
    extra : JSON object with its arguments.
    """
    found = parsed(extra)
    if operation.layer == "stdio":
        return _stdio(found.get("mode", found.get("flags")))
    flags = found.get("amode" if operation.layer == "mpiio" else "flags")
    if flags is None:
        return True, True
    return _mpiio(flags) if operation.layer == "mpiio" else _posix(flags)


def creates(operation: Operation, extra: str | None) -> bool:
    """Return whether an open creates a missing file; False if its flags are unknown.

    Parameters
    ----------
    operation, extra : as of `allowed`.
    """
    if operation.name == "creat":
        return True
    found = parsed(extra)
    if operation.layer == "stdio":
        mode = found.get("mode", found.get("flags"))
        if operation.name == "fdopen":
            return False
        return bool(mode & os.O_CREAT) if isinstance(mode, int) else isinstance(mode, str) and mode[:1] in ("w", "a")
    flags, bit = found.get("amode" if operation.layer == "mpiio" else "flags"), os.O_CREAT
    if isinstance(flags, int):
        return bool(flags & (_CREATE if operation.layer == "mpiio" else bit))
    return isinstance(flags, str) and "CREAT" in flags
