"""Shows files that are stored as several as what they are, one file each, to every program: a read-only file system.

Problem. h5dump, ncdump and a script in Python know nothing of subfiles, and a merge of terabytes for one look is dear.

Algorithm. A folder is shown at a mount point, by FUSE. Each index is shown as the logical file, and the folder
NAME.subfiles beside it is not shown; all else is passed through. What an index says is kept until it changes. Subfiles
are opened with the file and read by as many threads as FUSE has. What was read stays in the page cache until the index
changes (auto_cache).

Guarantees. Nothing can be changed through it. Opening a file that is not whole, whose index is damaged, or whose
subfiles are missing or short is an error (EIO), so nothing looks whole and is not; the system's log says why.
"""

from __future__ import annotations

import contextlib
import ctypes.util
import dataclasses
import errno
import os
import stat
import syslog
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from mpiio_ext.common.extras import needing
from mpiio_ext.common.printing import echo
from mpiio_ext.errors import ArgumentError, MpiioExtError
from mpiio_ext.subfiles import index
from mpiio_ext.subfiles.findings import in_lines
from mpiio_ext.subfiles.index import FOLDER, WHOLE, SubfilesError
from mpiio_ext.subfiles.openers import reading, state_words
from mpiio_ext.subfiles.sharing import not_whole
from mpiio_ext.subfiles.stored import Files, Stored, examine, find, read_range

if ctypes.util.find_library("fuse3"):  # requests of up to 1 MiB; libfuse 2 has 128 KiB at most
    os.environ.setdefault("FUSE_LIBRARY_NAME", "fuse3")
with needing("mount", "`subfiles mount`"):
    try:
        import mfusepy
    except OSError as error:
        raise ArgumentError(f"`subfiles mount` needs libfuse ({error}): Debian's package fuse3") from error

_ATTRIBUTES = ("st_mode", "st_nlink", "st_uid", "st_gid", "st_size", "st_atime", "st_mtime", "st_ctime", "st_ino",
               "st_blocks", "st_blksize", "st_rdev")  # fmt: skip
_STATE = ("f_bavail", "f_bfree", "f_blocks", "f_bsize", "f_favail", "f_ffree", "f_files", "f_flag", "f_frsize",
          "f_namemax")  # fmt: skip
_WRITES = 0o222


@dataclasses.dataclass(slots=True)
class _Open:
    """An open file: a descriptor, or the subfiles."""

    descriptor: int = -1
    stored: Stored | None = None
    files: Files | None = None
    held: contextlib.ExitStack = dataclasses.field(default_factory=contextlib.ExitStack)

    def close(self) -> None:
        self.held.close()
        if self.files is not None:
            self.files.close()
        else:
            os.close(self.descriptor)


class Shown(mfusepy.Operations):  # type: ignore[misc] # it has no types
    """What the file system answers.

    Parameters
    ----------
    root : the folder that is shown.
    only : the one name in it that is shown; None: all.
    tell : is called with the reason of each error of a file that is stored as several.
    """

    use_ns = True

    def __init__(self, root: Path, only: str | None, tell: Callable[[str], object]) -> None:
        self._root, self._only, self._tell = root, only, tell
        self._lock, self._next = threading.Lock(), 1
        self._open: dict[int, _Open] = {}
        self._known: dict[Path, tuple[tuple[int, ...], Stored | str | None]] = {}

    def _path(self, path: str) -> Path:
        """Return the path of what is shown; an error for what is not."""
        names = [name for name in path.split("/") if name]
        if names and self._only not in (None, names[0]):
            raise mfusepy.FuseOSError(errno.ENOENT)
        found = self._root.joinpath(*names)
        if any(self._is_hidden(self._root.joinpath(*names[:end])) for end in range(1, len(names) + 1)):
            raise mfusepy.FuseOSError(errno.ENOENT)
        return found

    def _is_hidden(self, path: Path) -> bool:
        """Return whether it is the folder of subfiles of a file that is shown."""
        if not path.name.endswith(FOLDER) or path.name == FOLDER:
            return False
        return self._stored(path.with_name(path.name.removesuffix(FOLDER))) is not None

    def _stored(self, path: Path) -> Stored | str | None:
        """Return the file that an index stands for, or what is wrong with it; None: it is no index."""
        try:
            status = path.stat()
        except OSError:
            return None
        if not stat.S_ISREG(status.st_mode):
            return None
        key = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        with self._lock:
            known = self._known.get(path)
        if known is not None and known[0] == key:
            return known[1]
        found = _found(path) if index.is_index(path) else None
        with self._lock:
            self._known[path] = key, found
        return found

    def access(self, path: str, amode: int) -> int:
        """Refuse to write; else ask for the file."""
        found = self._path(path)
        if amode & os.W_OK:
            raise mfusepy.FuseOSError(errno.EROFS)
        if not os.access(found, amode):
            raise mfusepy.FuseOSError(errno.EACCES)
        return 0

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:  # noqa: ARG002
        """Return the attributes: those of an index with the size of the file that it stands for."""
        found = self._path(path)
        status = found.lstat()
        shown: dict[str, Any] = {name: getattr(status, name) for name in _ATTRIBUTES}
        shown |= {name: getattr(status, f"{name}_ns") for name in ("st_atime", "st_mtime", "st_ctime")}
        stored = self._stored(found) if stat.S_ISREG(status.st_mode) else None
        if isinstance(stored, Stored):
            assert stored.size is not None
            shown["st_size"], shown["st_blocks"] = stored.size, -(-stored.size // 512)
        if not stat.S_ISLNK(status.st_mode):
            shown["st_mode"] = status.st_mode & ~_WRITES
        return shown

    def readdir(self, path: str, fh: int) -> Iterable[str]:  # noqa: ARG002
        """Return the names in a folder."""
        found = self._path(path)
        names = [self._only] if self._only is not None and found == self._root else os.listdir(found)  # noqa: PTH208
        return [".", "..", *(name for name in names if not self._is_hidden(found / name))]

    def readlink(self, path: str) -> str:
        """Return where a link points to."""
        return os.readlink(self._path(path))  # noqa: PTH115

    def statfs(self, path: str) -> dict[str, int]:
        """Return the state of the file system below."""
        status = os.statvfs(self._path(path))
        return {name: getattr(status, name) for name in _STATE}

    def open(self, path: str, flags: int) -> int:
        """Open a file; of one that is stored as several each subfile has to be right."""
        found = self._path(path)
        if flags & (os.O_ACCMODE | os.O_TRUNC):
            raise mfusepy.FuseOSError(errno.EROFS)
        stored = self._stored(found)
        if stored is None:
            one = _Open(os.open(found, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
        else:
            one = self._open_stored(stored)
        with self._lock:
            number, self._next = self._next, self._next + 1
            self._open[number] = one
        return number

    def _open_stored(self, stored: Stored | str) -> _Open:
        with contextlib.ExitStack() as held:
            try:
                if not isinstance(stored, str):
                    held.enter_context(reading(stored))
                wrong = stored if isinstance(stored, str) else _wrong(stored)
            except MpiioExtError as error:
                wrong = str(error)
            if isinstance(stored, str) or wrong:
                self._tell(wrong)
                raise mfusepy.FuseOSError(errno.EIO)
            return _Open(stored=stored, files=Files(stored.subfiles), held=held.pop_all())

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:  # noqa: ARG002
        """Return bytes of an open file."""
        one = self._open[fh]
        if one.files is None or one.stored is None:
            return os.pread(one.descriptor, size, offset)
        assert one.stored.size is not None
        length = min(size, one.stored.size - offset)
        return bytes(read_range(one.files, one.stored.striping, offset, length))

    def release(self, path: str, fh: int) -> int:  # noqa: ARG002
        """Close a file."""
        with self._lock:
            one = self._open.pop(fh)
        one.close()
        return 0


def _found(path: Path) -> Stored | str:
    """Return the file that an index stands for, or what is wrong with it."""
    try:
        stored = find(path)
    except MpiioExtError as error:
        return str(error)
    return stored if stored.state == WHOLE else f"{path}: {state_words(stored)}"


def _wrong(stored: Stored) -> str:
    """Return what is wrong with a file whose index says that it is whole; "": nothing."""
    words = not_whole(stored)
    return "; ".join(in_lines(stored, examine(stored)[1])) if words is None else f"{stored.path}: {words}"


def _tell(words: str) -> None:
    """Say what is wrong on standard error, which in the background nobody has, and in the system's log."""
    line = f"mpiio-ext: {words}".encode("utf-8", "backslashreplace").decode()
    echo(line, err=True)
    syslog.syslog(syslog.LOG_ERR, line)


def mount(path: Path, mountpoint: Path, *, foreground: bool) -> None:
    """Show a folder, or one file, at a mount point; returns when it is shown, or with `foreground` when it is no more.

    Raises
    ------
    ArgumentError, SubfilesError
        The path or the mount point cannot be used.
    """
    root = path.resolve()
    if not mountpoint.is_dir():
        raise ArgumentError(f"{mountpoint}: is no folder to mount at: make it first")
    if mountpoint.resolve() == root or root in mountpoint.resolve().parents:
        raise ArgumentError(f"{mountpoint}: is in what is to be shown; take a folder elsewhere")
    if root.is_file() and isinstance(wrong := _found(path), str):
        raise SubfilesError(wrong)
    shown = Shown(root, None, _tell) if root.is_dir() else Shown(root.parent, root.name, _tell)
    try:
        mfusepy.FUSE(shown, str(mountpoint.resolve()), foreground=foreground, ro=True, fsname="mpiio_ext",
                     default_permissions=True, auto_cache=True)  # fmt: skip
    except RuntimeError as error:
        raise ArgumentError(f"{mountpoint}: cannot be mounted: FUSE ended with status {error}") from error
