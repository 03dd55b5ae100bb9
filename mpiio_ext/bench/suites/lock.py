"""One suite at a time: rank 0 locks a file in the archive for as long as the suite runs.

`flock` is used, which the operating system takes back when the process ends, however it ends: the file of a suite that
crashed is no obstacle. On a file system without `flock` (Lustre mounted with ``noflock``), the existence of the file is
the lock (O_EXCL). After a crash the user has to remove the file by the command in the message. The file contains the
name of its owner.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import fcntl
import os
import platform
from collections.abc import Iterator
from pathlib import Path

from mpiio_ext.bench.errors import EXIT_USAGE, BenchError

_FILE = ".suite.lock"
_EXCLUSIVE_FILE = ".suite.lock.exclusive"
_NO_FLOCK = {errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL}


class LockedError(BenchError):
    """Another suite is running."""

    exit_status = EXIT_USAGE


def _who(suite: str) -> str:
    job = os.environ.get("SLURM_JOB_ID")
    started = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    return f"suite {suite} on {platform.node()}, process {os.getpid()}{f', job {job}' if job else ''}, since {started}"


def _holder(path: Path) -> str:
    """Return the writer of the file, in words; the file may be empty for a moment."""
    try:
        return path.read_text(encoding="utf-8").strip() or "another suite"
    except (OSError, UnicodeDecodeError):
        return "another suite"


@contextlib.contextmanager
def hold(archive: Path, suite: str) -> Iterator[None]:
    """Hold the lock of an archive, an existing folder, while the context lasts; local.

    Raises ------ LockedError Another process has locked it.
    OSError
        The lock file cannot be made.
    """
    path = archive / _FILE
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LockedError(f"one suite at a time: {_holder(path)} is running (lock {path})") from None
        except OSError as error:
            if error.errno not in _NO_FLOCK:
                raise
            with _hold_exclusive(archive, suite):
                yield
            return
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, (_who(suite) + "\n").encode(), 0)
        yield
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _hold_exclusive(archive: Path, suite: str) -> Iterator[None]:
    path = archive / _EXCLUSIVE_FILE
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        raise LockedError(
            f"one suite at a time: {_holder(path)} is running (this file system has no flock: if that "
            f"one is gone, remove {path})"
        ) from None
    try:
        os.write(descriptor, (_who(suite) + "\n").encode())
        yield
    finally:
        os.close(descriptor)
        path.unlink(missing_ok=True)
