"""The start of the reader process, in which :mod:`mpiio_ext.analytics.reader` reads files that may crash their library.

A command starts the process before anything else. The process then imports its packages while the command imports its
own. So this module imports nothing of the package, and the process starts at once.
"""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import weakref
from collections.abc import Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

_MODULE = "mpiio_ext.analytics.reader"
#: The first bytes of a file of HDF5, and the offsets at which they may stand: a user block may precede them.
_HDF5, _IN_FRONT = b"\x89HDF\r\n\x1a\n", (0, 512, 1024, 2048, 4096)
#: Endings of the names of such files, as a file of site facts contains them.
_ENDINGS = ('.hdf5"', '.h5"', '.h5lmt"')
#: How long (s) the owner waits for the end of the process, before it kills the process.
_END_S = 5.0


@dataclasses.dataclass(eq=False)
class Started:
    """A process, and the owner's end of the socket to the process, which ends with this object at the latest."""

    process: subprocess.Popen[bytes]
    socket: Connection
    end: Any = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.end = weakref.finalize(self, _end, self.process, self.socket)


def _end(process: subprocess.Popen[bytes], socket: Connection) -> None:
    """End a process: close its socket, and kill the process if it does not end."""
    socket.close()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def start() -> Started:
    """Start a process.

    Raises
    ------
    OSError
        The system cannot start a process.
    """
    mine, theirs = Pipe()
    words = [sys.executable, "-P"] if sys.version_info >= (3, 11) else [sys.executable]
    words += ["-m", _MODULE, str(theirs.fileno())]
    nowhere = subprocess.DEVNULL
    with theirs:
        try:
            process = subprocess.Popen(words, pass_fds=[theirs.fileno()], stdin=nowhere, stdout=nowhere, stderr=nowhere)
        except OSError:
            mine.close()
            raise
    return Started(process, mine)


def is_hdf5(path: str | Path) -> bool:
    """Return whether a file is HDF5, whose library damaged files may crash."""
    try:
        with Path(path).open("rb") as stream:
            head = stream.read(_IN_FRONT[-1] + len(_HDF5))
        return any(head.startswith(_HDF5, at) for at in _IN_FRONT)
    except OSError:  # the reader reports it
        return False


def may_crash(files: Sequence[Path], site: Path | None) -> bool:
    """Return whether there is such a file among some, or the facts of a site name any; quickly, and not for sure."""
    if any(is_hdf5(path) for path in files):
        return True
    try:
        text = site.read_text(encoding="utf-8", errors="replace") if site is not None else ""
    except OSError:
        return False
    return any(ending in text for ending in _ENDINGS)
