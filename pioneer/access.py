"""What an open allows: reading, writing, or both, by the flags that traces have of it.

Content.   Flags of `open` as numbers or names, modes of `fopen`, modes of MPI-IO as names or numbers of MPICH and
           Open MPI. What is not told allows everything.
"""

from __future__ import annotations

import json
import os

from mpiio_ext.pioneer.operations import Operation

__all__ = ["allowed"]

_RDONLY, _WRONLY = 2, 4  # MPI_MODE_* of MPICH and Open MPI


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
    if not isinstance(mode, str) or mode[:1] not in ("r", "w", "a") or "+" in mode:
        return True, True
    return mode[0] == "r", mode[0] != "r"


def allowed(operation: Operation, extra: str | None) -> tuple[bool, bool]:
    """Return whether an open allows to read, and to write.

    Parameters
    ----------
    operation : the open.
    extra : JSON object with its arguments.
    """
    try:
        found = json.loads(extra) if extra else {}
    except json.JSONDecodeError:
        found = {}
    if not isinstance(found, dict):
        return True, True
    if operation.layer == "stdio":
        return _stdio(found.get("mode", found.get("flags")))
    flags = found.get("amode" if operation.layer == "mpiio" else "flags")
    if flags is None:
        return True, True
    return _mpiio(flags) if operation.layer == "mpiio" else _posix(flags)
