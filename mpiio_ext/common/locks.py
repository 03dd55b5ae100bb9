"""One change of a file at a time.

Problem.    Two processes, or threads, that read a file, change it and replace it would lose what one of them has added.
Algorithm.  `flock` on a file beside it, which the holder removes. Who has waited for a file that is gone by then locks
            the new one, so that two never hold locks of one name.
Guarantees. A symbolic link in the place of that file is refused. A lock ends with the process that holds it. Changes
            take moments: who comes second waits.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from mpiio_ext.errors import FileSystemError


def is_at(stream: IO[str], path: Path) -> bool:
    """Return whether an open file is the one that has this name now."""
    try:
        return os.path.samestat(os.fstat(stream.fileno()), path.lstat())
    except FileNotFoundError:
        return False


def opened(path: Path) -> IO[str]:
    """Open a file to be locked: its name can be guessed, and a link of somebody else would make a file elsewhere."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o666), "a+", encoding="utf-8")


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """Lock a file for a change that reads and replaces it; wait while another process or thread has the lock.

    Raises
    ------
    FileSystemError
        The folder cannot be written, its file system has no locks, or the lock's name is a symbolic link.
    """
    beside = path.with_name(f".{path.name[:200]}.lock")
    while True:
        try:
            stream = opened(beside)
        except OSError as error:
            raise FileSystemError(error.errno, f"cannot be written: {error.strerror}", str(path)) from error
        with stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX)
            except OSError as error:
                why = (
                    f"the file system has no locks ({error.strerror}), so that two writers could lose changes; "
                    "mount Lustre with -o flock, or choose a folder elsewhere"
                )
                raise FileSystemError(error.errno, why, str(path)) from error
            if not is_at(stream, beside):
                continue  # its holder has removed it after it was opened here
            try:
                yield
            finally:
                with contextlib.suppress(OSError):
                    beside.unlink(missing_ok=True)  # still locked: a process that waits sees that the file is gone
            return
