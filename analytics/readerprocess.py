"""Starting the process that reads files which may crash their library (:mod:`mpiio_ext.analytics.reader`).

It imports what it needs while its owner imports what that needs: a command starts it before anything else. Therefore
this module imports nothing of the package.
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
#: What files of HDF5 begin with, and bytes of another kind that may stand in front (a user block).
_HDF5, _IN_FRONT = b"\x89HDF\r\n\x1a\n", (0, 512, 1024, 2048, 4096)
#: Endings of their names, as site facts have them.
_ENDINGS = ('.hdf5"', '.h5"', '.h5lmt"')
#: Seconds that the process has to end after the request to do so.
_END_S = 5.0


@dataclasses.dataclass(eq=False)
class Started:
    """A process, and the owner's end of the socket to it; it ends with this object at the latest."""

    process: subprocess.Popen[bytes]
    socket: Connection
    end: Any = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.end = weakref.finalize(self, _end, self.process, self.socket)


def _end(process: subprocess.Popen[bytes], socket: Connection) -> None:
    """End a process: it leaves when its socket is closed."""
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
        The system gives none.
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
