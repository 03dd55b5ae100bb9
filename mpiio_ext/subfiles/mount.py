"""A read-only file system that shows files stored as several as one file each, to every program.

Problem. h5dump, ncdump and a script in Python cannot read subfiles, and a merge of terabytes is expensive if a user
only wants to inspect the file.

Algorithm. A folder is shown at a mount point, by FUSE. Each index appears as the logical file, and the folder
NAME.subfiles beside it is hidden; all other files are passed through. An index is read once, and again when it changes.
Subfiles are opened with the file, and read by as many threads as FUSE has. Bytes that were read stay in the page cache
until the index changes (auto_cache).

Guarantees. Nothing can be changed through it. Opening a file that is not whole, whose index is damaged, or whose
subfiles are missing or short is an error (EIO), so nothing looks whole and is not; the system's log says why.
"""

from __future__ import annotations

import ctypes.util
import errno
import functools
import os
import stat
import syslog
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mpiio_ext.common.extras import needing
from mpiio_ext.common.printing import echo
from mpiio_ext.errors import ArgumentError, MpiioExtError
from mpiio_ext.subfiles import index
from mpiio_ext.subfiles.index import FOLDER, Stored
from mpiio_ext.subfiles.stored import close_all, find, open_all, read_range, usable

if ctypes.util.find_library("fuse3"):  # requests of up to 1 MiB; libfuse 2 has 128 KiB at most
    os.environ.setdefault("FUSE_LIBRARY_NAME", "fuse3")
with needing("mount", "`subfiles mount`"):
    try:
        import mfusepy
    except OSError as error:
        raise ArgumentError(f"`subfiles mount` needs libfuse ({error}): Debian's package fuse3") from error

_TIMES = ("st_atime", "st_mtime", "st_ctime")
_ATTRIBUTES = (
    *_TIMES,
    *(f"st_{one}" for one in ("mode", "nlink", "uid", "gid", "size", "ino", "blocks", "blksize", "rdev")),
)
_WRITES = 0o222


class Shown(mfusepy.Operations):  # type: ignore[misc] # it has no types
    """The answers of the file system, for the folder `root`."""

    use_ns = True

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock, self._next = threading.Lock(), 1
        self._open: dict[int, tuple[list[int], Stored | None]] = {}

    def _path(self, path: str) -> Path:
        """Return the path of an entry that is shown; an error for others."""
        found = self._root
        for name in path.split("/"):
            found /= name
            if _is_hidden(found):
                raise mfusepy.FuseOSError(errno.ENOENT)
        return found

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:  # noqa: ARG002
        """Return the attributes: those of an index with the size of the file that it stands for."""
        found = self._path(path)
        status = found.lstat()
        shown: dict[str, Any] = {name: getattr(status, name) for name in _ATTRIBUTES}
        shown |= {name: getattr(status, f"{name}_ns") for name in _TIMES}
        stored = _stored(found) if stat.S_ISREG(status.st_mode) else None
        if isinstance(stored, Stored) and stored.size is not None:
            shown["st_size"], shown["st_blocks"] = stored.size, -(-stored.size // 512)
        if not stat.S_ISLNK(status.st_mode):
            shown["st_mode"] = status.st_mode & ~_WRITES
        return shown

    def readdir(self, path: str, fh: int) -> Iterable[str]:  # noqa: ARG002
        """Return the names in a folder."""
        found = self._path(path)
        return [".", "..", *(name for name in os.listdir(found) if not _is_hidden(found / name))]  # noqa: PTH208

    def readlink(self, path: str) -> str:
        """Return where a link points to."""
        return os.readlink(self._path(path))  # noqa: PTH115

    def open(self, path: str, flags: int) -> int:
        """Open a file; of one that is stored as several each subfile has to be right."""
        found = self._path(path)
        if flags & (os.O_ACCMODE | os.O_TRUNC):
            raise mfusepy.FuseOSError(errno.EROFS)
        stored = _stored(found)
        try:
            one = _opened(found, stored)
        except MpiioExtError as error:
            _report(str(error))
            raise mfusepy.FuseOSError(errno.EIO) from error
        with self._lock:
            number, self._next = self._next, self._next + 1
            self._open[number] = one
        return number

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:  # noqa: ARG002
        """Return bytes of an open file."""
        descriptors, stored = self._open[fh]
        if stored is None or stored.size is None:
            return os.pread(descriptors[0], size, offset)
        return bytes(read_range(descriptors, stored.striping, offset, min(size, stored.size - offset)))

    def release(self, path: str, fh: int) -> int:  # noqa: ARG002
        """Close a file."""
        with self._lock:
            descriptors, _ = self._open.pop(fh)
        close_all(descriptors)
        return 0


def _is_hidden(path: Path) -> bool:
    """Return whether it is the folder of subfiles of a file that is shown."""
    if not path.name.endswith(FOLDER) or path.name == FOLDER:
        return False
    return _stored(path.with_name(path.name.removesuffix(FOLDER))) is not None


def _stored(path: Path) -> Stored | MpiioExtError | None:
    """Return the file that an index stands for, or its mistake; None if it is no index."""
    try:
        status = path.stat()
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return _read(path, (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))


@functools.lru_cache(maxsize=4096)
def _read(path: Path, key: tuple[int, ...]) -> Stored | MpiioExtError | None:  # noqa: ARG001 # a change is another key
    try:
        return find(path) if index.is_index(path) else None
    except MpiioExtError as error:
        return error


def _opened(path: Path, stored: Stored | MpiioExtError | None) -> tuple[list[int], Stored | None]:
    """Return descriptors of a file, one, or those of the subfiles; raise what is wrong with these."""
    if stored is None:
        return [os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)], None
    if isinstance(stored, MpiioExtError):
        raise stored
    usable(stored)
    return open_all(stored.subfiles), stored


def _report(words: str) -> None:
    """Print a problem on standard error, which is not visible in the background, and write it to the system's log."""
    line = f"mpiio-ext: {words}".encode("utf-8", "backslashreplace").decode()
    echo(line, err=True)
    syslog.syslog(syslog.LOG_ERR, line)


def mount(path: Path, mountpoint: Path, *, foreground: bool) -> None:
    """Show a folder at a mount point; return when it is mounted, or, with `foreground`, when it is unmounted.

    Raises
    ------
    ArgumentError
        The mount point cannot be used.
    """
    root = path.resolve()
    if mountpoint.resolve() == root or root in mountpoint.resolve().parents:
        raise ArgumentError(f"{mountpoint}: is inside the folder that it would show; choose a folder elsewhere")
    try:
        mfusepy.FUSE(
            Shown(root),
            str(mountpoint.resolve()),
            foreground=foreground,
            ro=True,
            fsname="mpiio_ext",
            default_permissions=True,
            auto_cache=True,
        )
    except RuntimeError as error:
        raise ArgumentError(f"{mountpoint}: cannot be mounted: FUSE ended with status {error}") from error
