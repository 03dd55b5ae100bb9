"""Removes a file that is stored as several: subfiles, folder, index.

Problem. An index can name any file, and a command that is killed half-way must not leave an index that says whole.

Algorithm. Plain files that are named after the id of the index and their number are removed, and nothing else. Before,
the index is replaced by one that says that the file is written; it goes last. Folders go where they are empty.

Guarantees. A file that is no index is refused, a link to one, and one whose subfiles this user cannot remove. Where
nothing could be removed the index says what it said. Started again after a kill, it removes the rest.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import re
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from mpiio_ext.common import files
from mpiio_ext.common.files import read_plain, replacing, write_whole
from mpiio_ext.errors import FileSystemError
from mpiio_ext.subfiles import index
from mpiio_ext.subfiles.index import FOLDER, MOST_BYTES, MOVING, WRITING, SubfilesError
from mpiio_ext.subfiles.journal import cannot_write, give_owner
from mpiio_ext.subfiles.openers import WRITE, alone, is_written, opened, state_words
from mpiio_ext.subfiles.sharing import refuse_shared
from mpiio_ext.subfiles.stored import Stored, find, index_of

_OWN = re.compile(r"[0-9a-f]{16}\.[0-9]{1,4}(\.[1-9][0-9]?)?|.+\.subfile_[0-9]+(_[0-9]+_of_[0-9]+|\.config)", re.DOTALL)


def goes(path: Path) -> bool:
    """Return whether a file is removed with the index that names it."""
    return bool(_OWN.fullmatch(path.name)) and path.is_file() and not path.is_symlink()


def remove_subfiles(subfiles: Sequence[Path]) -> tuple[Path, ...]:
    """Remove subfiles, and their folders where these are empty then; return what is left in those.

    Raises
    ------
    OSError
        One cannot be removed.
    """
    for path in subfiles:
        if goes(path):
            path.unlink()
            files.step("subfile removed")
    left: list[Path] = []
    for folder in dict.fromkeys(path.parent for path in subfiles):
        if folder.name.endswith(FOLDER) and folder.is_dir():
            (folder / MOVING).unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                folder.rmdir()
                continue
            left += sorted(folder.iterdir())
    return tuple(left)


def refuse_kept(paths: Iterable[Path]) -> None:
    """Refuse, before anything has changed, files that this user cannot remove or replace; access lists count.

    Raises
    ------
    FileSystemError
        A folder is not writable, or is sticky (as /tmp), and folder and file are others'.
    """
    user = os.geteuid()
    for path in paths:
        if not os.path.lexists(path):
            continue
        folder = path.parent
        if not os.access(folder, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
            raise FileSystemError(errno.EACCES, f"is not writable, so {path.name} in it cannot be removed", str(folder))
        owners = 0, folder.stat().st_uid, path.lstat().st_uid
        if folder.stat().st_mode & stat.S_ISVTX and user not in owners:
            raise FileSystemError(errno.EPERM, "belongs to another user, in a sticky folder", str(path))


def remove(path: Path) -> tuple[int, tuple[Path, ...]]:
    """Remove a file that is stored as several; return how many subfiles it had, and what is left in their folder.

    Raises
    ------
    SubfilesError
        It is no index, or a link to one, or damaged, or a program has the file open.
    FileSystemError
        Something cannot be removed; the index is still there.
    """
    stored = find(path)
    if path.is_symlink():
        raise SubfilesError(f"{path}: is a link: rm the index {path.resolve()}, or the link itself by plain rm")
    if is_written(stored):
        raise SubfilesError(f"{path}: {state_words(stored)}")
    refuse_shared(stored)
    with alone(stored):
        return len(stored.subfiles), _remove(path, stored)


def _remove(path: Path, stored: Stored) -> tuple[Path, ...]:
    target = path.parent.resolve() / path.name
    now = index_of(stored, target.parent)
    own = [one for number, one in enumerate(stored.subfiles) if stored.is_named(number)]
    there, status, marked = [one for one in own if os.path.lexists(one)], None, b""
    try:
        refuse_kept([target, *there])
        if stored.state != WRITING or now.subfiles != index.parse(stored.index_text).subfiles:
            status, marked = target.stat(), dataclasses.replace(now, state=WRITING, size=None).render(target.name)
            _mark(target, marked)
        files.step("rm: marked")
        left = remove_subfiles(own)
        target.unlink(missing_ok=True)
    except OSError as error:
        if status is not None and all(map(os.path.lexists, there)):
            _unmark(target, marked, stored.index_text, status)
        raise cannot_write(path, error) from error
    return left


def _unmark(target: Path, marked: bytes, text: bytes, status: os.stat_result) -> None:
    """Let an index say what it said, as nothing was removed; one that another command has written meanwhile stays."""
    with contextlib.suppress(OSError):
        if os.path.lexists(target) and read_plain(target, MOST_BYTES) != marked:
            return
        with replacing(target, follow=False) as part:
            part.write_bytes(text)
            with opened(part, WRITE) as descriptor:
                give_owner(descriptor, status)


def _mark(target: Path, text: bytes) -> None:
    """Let an index say that its file is written; where a full disk has no room for another one, it goes first."""
    try:
        write_whole(target, text)
    except FileSystemError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        target.unlink()
