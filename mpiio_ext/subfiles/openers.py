"""The openers of a file that is stored as several: locks on bytes of its first subfile, far behind all data.

Problem. A command that removes a file must not take it from a program that reads or writes it.

Algorithm. An opener that writes owns a shared lock on the first of three bytes, a delegate that writes behind a close
on the second one, and a reader of the file on the third one. A process that removes the file locks all three bytes.

Guarantees. As far as locks reach: on one host, or over hosts where the file system has such locks.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mpiio_ext.subfiles.index import SubfilesError

if TYPE_CHECKING:
    from mpiio_ext.subfiles.index import Stored

READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
WRITE = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
#: The first byte that writers lock; the requests that ask for a lock of an open file, and take one; its description.
_WRITERS_BYTE, _OFD_GETLK, _OFD_SETLK, _FLOCK = 2**62 + 1, 36, 37, "@hhqqi4x"


def is_written(stored: Stored) -> bool:
    """Return whether a program has the file open for writing: on this host, or where locks go over hosts."""
    return _is_guarded(stored.subfiles[0], 2)


def _is_guarded(path: Path, count: int) -> bool:
    """Return whether a process has locked the first bytes: two are for writers, three for readers, too."""
    try:
        with opened(path) as descriptor:
            found = fcntl.fcntl(descriptor, _OFD_GETLK, _flock(count))
            return bool(struct.unpack(_FLOCK, found)[0] != fcntl.F_UNLCK)
    except OSError:
        return False


def _flock(count: int) -> bytes:
    return struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, _WRITERS_BYTE, count, 0)


@contextlib.contextmanager
def alone(stored: Stored) -> Iterator[None]:
    """Keep programs from opening the file, for the block and as far as locks go: they wait.

    Raises
    ------
    SubfilesError
        A program has the file open.
    """
    first, free = stored.subfiles[0], False
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # without the right to write, or without locks, only a query is possible
            descriptor = stack.enter_context(opened(first, WRITE))
            free = bool(fcntl.fcntl(descriptor, _OFD_SETLK, _flock(3)))
        if not free and _is_guarded(first, 3):
            words = state_words(stored) if is_written(stored) else "a program has it open: try again after that"
            raise SubfilesError(f"{stored.path}: {words}")
        yield


def state_words(stored: Stored) -> str:
    """Return the state of a file whose index does not say that it is complete."""
    if is_written(stored):
        return "is being written: a program has it open"
    return (
        "is not whole: the index says 'state writing', so its program ended before it closed the file, or "
        "runs on another host. To merge the bytes that are there: mpiio-ext subfiles merge --unfinished"
    )


class NotPlainError(OSError):
    """A subfile is a link, a folder or a device."""


@contextlib.contextmanager
def opened(path: Path, flags: int = READ) -> Iterator[int]:
    """Open a plain file for the block; raises as `open_plain`."""
    descriptor = open_plain(path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_plain(path: Path, flags: int = READ) -> int:
    """Return the descriptor of a plain file; no link is followed.

    Raises
    ------
    NotPlainError
        The path is a link, a folder or a device.
    OSError
        The file does not exist, or cannot be opened.
    """
    if stat.S_ISREG(path.lstat().st_mode):
        descriptor = os.open(path, flags)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
    raise NotPlainError(None, "is a link, a folder or a device, and no plain file", str(path))
