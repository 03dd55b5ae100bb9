"""Files that are there whole or not at all, and files of others that are read only where they are plain ones.

Problem. A full disk, a signal or a lost connection must neither leave half a file under the requested name, nor damage
an older file of that name. In a folder that others may write to, a name that can be guessed may be a link of theirs.

Algorithm. A function writes a new file beside the target, with a name that nobody can guess (O_EXCL, O_NOFOLLOW), syncs
it, renames it to the target, and syncs the folder. Names that end in `TEMPORARY` are leftovers of killed processes.
:func:`step` marks each point between two changes of the disk; tests end the process there.

Guarantees. Readers see the old content or the new one. After an error no new file is left, and the old file is
unchanged; the error names the file and the reason.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from mpiio_ext.errors import FileSystemError

#: How names of files end that are not whole yet.
TEMPORARY = ".tmp"
#: Of the target's name, in that of the file beside it: names have 255 bytes at most.
_MOST_NAME = 40


def step(name: str) -> None:
    """Mark a point between two changes of the disk; `name` identifies it. Does nothing: tests put an end there."""


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk; file systems that cannot are let be."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def cannot_read(path: object, error: OSError) -> str:
    """Return the sentence about a file that is not there, or cannot be read."""
    return f"{path}: cannot be read: {error.strerror or error}"


def missing() -> OSError:
    """Return the error of a file that is not there."""
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


def put_in_place(part: Path, target: Path) -> None:
    """Let a whole file take the place of `target`, in the same folder."""
    part.replace(target)


@contextlib.contextmanager
def replacing(
    path: Path, *, follow: bool = True, mode: int | None = None, ending: str = TEMPORARY, durable: bool = True
) -> Iterator[Path]:
    """Give the name of an empty file to write to; behind the block the file stands under `path`, whole.

    Parameters
    ----------
    path : what is asked for. Its folder is there.
    follow : a link in its place keeps pointing to the file; otherwise the link is replaced.
    mode : permissions, whatever the umask.
    ending : of the temporary name, for writers that look at it.
    durable : wait until the disk has it; otherwise it is whole after the end of any process, but not of the system.

    Raises
    ------
    FileSystemError
        The file cannot be written. Then no part of the new file exists, and the old file is unchanged.
    """
    target = path.resolve() if follow else path
    part = target.with_name(f".{target.name[:_MOST_NAME]}.{os.urandom(8).hex()}{ending}")
    step(f"before {path.name}")
    try:
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666))
        yield part
        step(f"written {path.name}")
        with part.open("rb") as stream:
            if mode is not None:
                os.fchmod(stream.fileno(), mode)
            if durable:
                os.fsync(stream.fileno())
        put_in_place(part, target)
        step(f"renamed {path.name}")
        if durable:
            sync_folder(target.parent)
    except FileSystemError:
        raise
    except OSError as error:
        raise FileSystemError(error.errno, f"cannot be written: {error.strerror or error}", str(path)) from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def write_whole(
    path: Path,
    content: str | bytes,
    *,
    errors: str = "replace",
    follow: bool = True,
    mode: int | None = None,
    durable: bool = True,
) -> int:
    """Write a file and return its bytes; texts in UTF-8.

    Parameters
    ----------
    path, follow, mode, durable : as of `replacing`
    content : str or bytes
    errors : what becomes of lone surrogates: a question mark, since a label must not end a report; ``surrogateescape``
        where they are bytes of somebody's own text.

    Raises
    ------
    FileSystemError
        As of `replacing`.
    """
    data = content.encode("utf-8", errors) if isinstance(content, str) else content
    with replacing(path, follow=follow, mode=mode, durable=durable) as part:
        part.write_bytes(data)
    return len(data)


def check_target(path: Path, inputs: Iterable[Path] = (), *, example: str = "") -> None:
    """Refuse a target that is an input, a folder, a device, or in no folder, or in one that cannot be written.

    `example` is a name that a file in a folder could have.

    Raises
    ------
    FileSystemError
        The fault of the target.
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):  # its folder is reported below
        pass
    except OSError as error:
        raise FileSystemError(error.errno, f"cannot be written: {error.strerror}", str(path)) from error
    if path.is_dir():
        wrong = errno.EISDIR, f"is a folder; name a file in it{f', for example {path / example}' if example else ''}"
    elif path.exists() and not path.is_file():
        wrong = errno.EINVAL, "is not a regular file, so nothing can be put in its place"
    elif not path.parent.is_dir():
        wrong = errno.ENOENT, f"cannot be written: there is no folder {path.parent}"
    elif path.resolve() in {item.resolve() for item in inputs}:
        wrong = errno.EINVAL, "is one of the inputs; name another file"
    elif not os.access(path.parent, os.W_OK | os.X_OK):
        wrong = errno.EACCES, f"cannot be written: the folder {path.parent} is not writable"
    else:
        return
    raise FileSystemError(*wrong, str(path))


def read_plain(path: Path, most_bytes: int) -> bytes | None:
    """Return a file's content; None if it is not a plain file, or too large. Neither waits nor follows a link.

    Raises
    ------
    OSError
        The file does not exist, or cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            return None
        raise
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > most_bytes:
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(most_bytes)
    finally:
        os.close(descriptor)


def in_any_folder(glob: str) -> str:
    """Return a pattern for absolute names: one that begins with neither / nor * is for files in any folder."""
    return glob if glob[:1] in ("/", "*") else f"*/{glob}"
