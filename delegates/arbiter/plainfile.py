"""The arbiter's own files: read only where they are plain ones, replaced whole, never written through a link.

Problem. Somebody else may have put a link, a pipe or an endless file where the arbiter reads, or writes its draft.
Guarantees. Reading never waits, never follows a link and never takes more than it may. A draft is a new file, on stable
storage before it has its name; what lay in its place is removed, not written.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

__all__ = ["read_plain", "replace_whole"]


def read_plain(path: Path, most_bytes: int) -> bytes | None:
    """Return a file's content; None: it is no plain file, or a larger one.

    Raises
    ------
    OSError
        It is not there, or cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            return None
        raise
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > most_bytes:
            return None
        return file.read(most_bytes)


def replace_whole(path: Path, content: bytes) -> None:
    """Give a file a new content. Whoever reads it sees the old one or the new one.

    Raises
    ------
    OSError
        The folder is not writable, or full; the old file is still there.
    """
    draft = path.with_name(f".{path.name}")
    if draft.is_symlink() or draft.exists():
        draft.unlink()
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, 0o644)  # whatever the umask: the jobs are other users'
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
