"""Who has a file that is stored as several open: locks on bytes of its first subfile, far behind all data.

Problem. A command that removes or renames a file must not take it from a program that reads or writes it.

Algorithm. Who writes holds a shared lock on the first of three bytes, a delegate that writes behind a close one on the
next, who reads the file one on the third. Who removes takes all three. Where that is refused, the processes of this
host that have the subfile open are looked up in /proc.

Guarantees. As far as locks reach: on one host, or over hosts where the file system has such locks.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mpiio_ext.subfiles.findings import named
from mpiio_ext.subfiles.index import SubfilesError

if TYPE_CHECKING:
    from mpiio_ext.subfiles.stored import Stored

READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
WRITE = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
#: The first byte that writers lock; the requests that ask for a lock of an open file, and take one; its description.
_WRITERS_BYTE, _OFD_GETLK, _OFD_SETLK, _FLOCK = 2**62 + 1, 36, 37, "@hhqqi4x"
#: Seconds that readers have to be gone.
_MOMENT_S = 1.0


def is_written(stored: Stored) -> bool:
    """Return whether a program has the file open for writing: on this host, or where locks go over hosts."""
    return is_guarded(stored.subfiles[0])


def is_guarded(path: Path, *, readers: bool = False) -> bool:
    """Return whether a program holds the lock of writers on a subfile, or that of readers."""
    try:
        with opened(path) as descriptor:
            found = fcntl.fcntl(descriptor, _OFD_GETLK, _flock(2 + readers))
            return bool(struct.unpack(_FLOCK, found)[0] != fcntl.F_UNLCK)
    except OSError:
        return False


def _flock(count: int, kind: int = fcntl.F_WRLCK, byte: int = 0) -> bytes:
    return struct.pack(_FLOCK, kind, os.SEEK_SET, _WRITERS_BYTE + byte, count, 0)


@contextlib.contextmanager
def alone(stored: Stored) -> Iterator[None]:
    """Keep programs from opening the file, for the block and as far as locks go: they wait.

    Raises
    ------
    SubfilesError
        One has it open.
    """
    with taken(stored.subfiles[0]) as free:
        if not free:
            words = state_words(stored) if is_written(stored) else "a program has it open: try again after that"
            raise SubfilesError(f"{stored.path}: {words}{holders(stored.subfiles[0])}")
        yield


@contextlib.contextmanager
def taken(first: Path) -> Iterator[bool]:
    """Take a first subfile for the block, as `alone`; give the block whether nobody has the file open.

    The kernel tells the mount of a close a moment later, so readers have one.
    """
    descriptor, deadline_s = -1, time.monotonic() + _MOMENT_S
    try:
        with contextlib.suppress(OSError):  # without the right to write, or without locks, only asking is left
            descriptor = open_plain(first, WRITE)
        while not (free := _lock(descriptor, fcntl.F_WRLCK, 0, 3) or not is_guarded(first, readers=True)):
            if is_guarded(first) or time.monotonic() > deadline_s:
                break
            time.sleep(_MOMENT_S / 20)
        yield free
    finally:
        if descriptor >= 0:
            os.close(descriptor)


@contextlib.contextmanager
def reading(stored: Stored) -> Iterator[None]:
    """Keep others from removing the file, for the block and as far as locks go, as programs do that read it.

    Raises
    ------
    SubfilesError
        Somebody removes it just now.
    FileSystemError
        Its first subfile cannot be read.
    """
    first = stored.subfiles[0]
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # what is wrong with it is told by who examines it
            descriptor = stack.enter_context(opened(first))
            if not _lock(descriptor, fcntl.F_RDLCK, 2, 1) and is_guarded(first, readers=True):
                raise SubfilesError(f"{stored.path}: is just being removed or renamed, or made one file: try again"
                                    f"{holders(first)}")  # fmt: skip
        yield


def _lock(descriptor: int, kind: int, byte: int, count: int) -> bool:
    """Take a lock on bytes from the first one of writers on; False: it cannot be had."""
    with contextlib.suppress(OSError, ValueError):  # there is no descriptor
        return bool(fcntl.fcntl(descriptor, _OFD_SETLK, _flock(count, kind, byte)))
    return False


def holders(first: Path) -> str:
    """Return which other processes of this host have a first subfile open, as far as this user may know."""
    found = list[str]()
    with contextlib.suppress(OSError):
        status = first.stat()
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                own = process.name == str(os.getpid())
                if not own and any(_is_file(one, status) for one in (process / "fd").iterdir()):
                    found.append(f"process {process.name}, {(process / 'comm').read_text(encoding='utf-8').strip()}")
    return f" ({named(found)})" if found else ""


def _is_file(path: Path, status: os.stat_result) -> bool:
    with contextlib.suppress(OSError):
        return os.path.samestat(path.stat(), status)
    return False


def state_words(stored: Stored) -> str:
    """Return what a file is whose index does not say that it is whole."""
    if is_written(stored):
        return "is being written: a program has it open"
    return ("is not whole: the index says 'state writing', so its program ended before it closed the file, or "
            "runs on another host. To take what is there: mpiio-ext subfiles merge --unfinished")  # fmt: skip


class NotPlainError(OSError):
    """A subfile is a link, a folder or a device."""


@contextlib.contextmanager
def opened(path: Path, flags: int = READ) -> Iterator[int]:
    """Open a plain file; no link is followed.

    Raises
    ------
    NotPlainError
        It is none.
    OSError
        It is not there, or cannot be opened.
    """
    descriptor = open_plain(path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_plain(path: Path, flags: int = READ) -> int:
    """Return the descriptor of a plain file; raises as `opened`."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise NotPlainError(None, "is a link, a folder or a device, and no plain file")
        descriptor = os.open(path, flags)
    except OSError as error:
        error.filename = str(path)
        raise
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise NotPlainError(None, "is no plain file", str(path))
