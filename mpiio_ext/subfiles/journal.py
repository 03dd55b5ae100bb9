"""What a copy has done so far, so that one that was killed goes on where it was.

Problem. A merge of terabytes takes hours, and jobs have time limits. What a killed one has left behind must not be
taken for a whole file, nor by the next one for parts of a file that has changed meanwhile.

Algorithm. The journal is a text beside the target, ``.NAME.merging.journal`` or ``.NAME.splitting.journal``. A line of
JSON says of which files, with their lengths and times, into what, and since which start of the system. Then comes a
line for each part that is copied. What a killed process has written the system keeps, unless it is started anew. A
journal whose first line is not what it would be now is of no use: what it was about is removed, and the copy begins
again.

Guarantees. Nothing is taken over that is no plain file of this user's with one name: in a folder of many users, names
that can be guessed may be made by others.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import stat
import threading
import zlib
from collections.abc import Collection, Sequence
from pathlib import Path

from mpiio_ext.common.files import put_in_place, read_plain
from mpiio_ext.errors import FileSystemError

#: Bytes that a name has at most.
_MOST_NAME = 255
_MOST_BYTES = 256 << 20
#: Indexes that are about to get their name: of the library, and of commands (`files.replacing`).
_PART = re.compile(r"\..+(\.index-[0-9a-f]{16}|\.[0-9a-f]{16}\.tmp)", re.DOTALL)
#: What says that another process has a lock; that there are none, or, over NFS, none of a file that is only read.
_HELD = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES)
_NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK, errno.EBADF)


def beside(path: Path, ending: str) -> Path:
    """Return the name of a helper of a file, in its folder; of a long name, a part and a checksum."""
    name = f".{path.name}{ending}"
    if len(os.fsencode(name)) > _MOST_NAME:
        kept = os.fsdecode(os.fsencode(path.name)[:128])
        name = f".{kept}.{zlib.crc32(os.fsencode(path.name)):08x}{ending}"
    return path.with_name(name)


def is_part(name: str) -> bool:
    """Return whether a file is called as an index is until it gets its name; a killed process leaves it."""
    return _PART.fullmatch(name) is not None


def boot() -> str:
    """Return what tells one start of this system from another, "" where nothing does."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def signature(paths: Sequence[Path]) -> list[list[int]]:
    """Return device, inode, length and times of files: other values after each change."""
    found = (path.stat() for path in paths)
    return [[one.st_dev, one.st_ino, one.st_size, one.st_mtime_ns] for one in found]


def is_same(path: Path, status: os.stat_result) -> bool:
    """Return whether a path still is of the file that has this state; a link is not followed."""
    with contextlib.suppress(OSError):
        return os.path.samestat(path.lstat(), status)
    return False


def is_own(status: os.stat_result, owner: int = -1) -> bool:
    """Return whether a helper is as this command leaves it: a plain file of one name, of this user, or of `owner`."""
    return stat.S_ISREG(status.st_mode) and status.st_uid in (os.geteuid(), owner) and status.st_nlink == 1


def check_own(path: Path, owner: int = -1) -> os.stat_result | None:
    """Return the state of a helper that an earlier process has left; None: there is none.

    It is of this user, or of `owner`, to whom that process may have given it.

    Raises
    ------
    FileSystemError
        Something else is there.
    """
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    if not is_own(status, owner):
        raise in_the_way(path)
    return status


def in_the_way(path: Path) -> FileSystemError:
    """Return the error of what is none of this command's helpers."""
    words = "is in the way, and not a file that this command has left: remove it"
    return FileSystemError(errno.EEXIST, words, str(path))


class Journal:
    """The journal of one copy; methods may be called by several threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._descriptor = -1

    def read(self) -> tuple[dict[str, object], set[str]]:
        """Return what its first line says, and the parts that are done; both are empty where it is of no use."""
        if check_own(self.path) is None:
            return {}, set()
        lines = (read_plain(self.path, _MOST_BYTES) or b"").split(b"\n")
        with contextlib.suppress(ValueError):
            head = json.loads(lines[0])
            if isinstance(head, dict) and len(lines) > 1:
                return head, {line.decode("ascii") for line in lines[1:-1]}
        return {}, set()

    def begin(self, head: dict[str, object], done: Collection[str]) -> None:
        """Open it, with this first line and the parts that are done.

        Raises
        ------
        FileSystemError
            It cannot be written.
        """
        part = self.path.with_name(self.path.name + ".new")
        try:
            if check_own(part) is not None:
                part.unlink()
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_APPEND | os.O_CLOEXEC
            self._descriptor = os.open(part, flags, 0o600)
            os.write(self._descriptor, "".join(f"{line}\n" for line in (json.dumps(head), *sorted(done))).encode())
            put_in_place(part, self.path)
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def add(self, part: str) -> None:
        """Tell that a part is done."""
        with self._lock:
            os.write(self._descriptor, f"{part}\n".encode())

    def remove(self) -> None:
        """Remove it; one that another command has put in its place stays."""
        own = self._descriptor < 0 or is_same(self.path, os.fstat(self._descriptor))
        self.close()
        if own:
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close it; it stays."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def cannot_write(path: Path, error: OSError) -> FileSystemError:
    """Return the error of a file that cannot be written."""
    if isinstance(error, FileSystemError):
        return error
    return FileSystemError(error.errno, f"cannot be written: {error.strerror or error}", str(path))


def keeping(error: FileSystemError, what: Path, journal: Path, parts: Sequence[Path] = ()) -> FileSystemError:
    """Return the error of a copy that goes on when it is started again, with what stays until then.

    `what` is a file, or says which `parts` stay: a pattern.
    """
    held = 0
    for part in parts or [what]:
        with contextlib.suppress(OSError):  # somebody has removed it
            held += part.lstat().st_blocks * 512
    words = (f"{error.strerror}. What was copied stays, {held:,} B in {what}: the same command goes on. To give it up, "
             f"remove that and {journal}")  # fmt: skip
    return FileSystemError(error.errno, words, error.filename)


def give_owner(descriptor: int, status: os.stat_result) -> None:
    """Give a file owner, group and permissions of another one, as far as this user can.

    Without the group its permissions are left out, too: they would be those of another group. The owner comes first,
    since nobody may read meanwhile who must not: make the file for its owner alone (0o600).
    """
    for owner in (status.st_uid, -1):  # any user may give the groups that he is in
        now = os.fstat(descriptor)
        if now.st_gid != status.st_gid or owner not in (now.st_uid, -1):
            with contextlib.suppress(OSError):
                os.fchown(descriptor, owner, status.st_gid)
    kept = os.fstat(descriptor).st_gid == status.st_gid
    os.fchmod(descriptor, status.st_mode & (0o777 if kept else 0o707))


def lock(descriptor: int, path: Path) -> None:
    """Hold a file until it is closed; a file system without locks does without.

    Raises
    ------
    FileSystemError
        Another process holds it, or it cannot be locked for another reason.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return
        held = error.errno in _HELD
        words = "another command is at work on it" if held else f"cannot be locked: {error.strerror or error}"
        raise FileSystemError(error.errno, words, str(path)) from error
