"""Renames a file that is stored as several: its index and its folder.

Problem. They are two names, and no file system renames two at once. Whoever looks meanwhile, and after a kill, has to
find the file, under one name.

Algorithm. An index is good with the folder that it names, and with the one that is called after it. So the index is
renamed, then the folder, then the text of the index follows. To another folder, the text names the folder of the
subfiles by an absolute path before that, and a file `MOVING` in that says that it is in use. Nothing is ever replaced.
While it lasts no program can begin to write the file.

Guarantees. At each moment, and after a kill, the file is whole under one of the names. Started again, it ends.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from mpiio_ext.common import files
from mpiio_ext.common.files import give_name, replacing, sync_folder
from mpiio_ext.errors import FileSystemError
from mpiio_ext.subfiles import index
from mpiio_ext.subfiles.findings import missing_folder
from mpiio_ext.subfiles.folders import is_subfile_name, others_in
from mpiio_ext.subfiles.index import FOLDER, MOVING, SubfilesError
from mpiio_ext.subfiles.journal import lock
from mpiio_ext.subfiles.openers import alone
from mpiio_ext.subfiles.sharing import refuse_shared
from mpiio_ext.subfiles.stored import Stored, find, index_of


def move(path: Path, target: Path) -> Path:
    """Rename a file that is stored as several; return its new path.

    Parameters
    ----------
    path : of its index.
    target : its new path, or a folder that it goes to.

    Raises
    ------
    SubfilesError
        It is no index, or a copy of one, or a program writes it; or its folder cannot go along.
    FileSystemError
        The new name is there already, on another file system, or cannot be given.
    """
    old = path.parent.resolve() / path.name
    new = (target / path.name if target.is_dir() else target).absolute()
    new = new.parent.resolve() / new.name
    try:
        begun = _begun(old, new)
        with _held(begun or find(old)):
            stored = begun or _rename_index(old, new)
            _rename_folder(old, new, stored, undo=begun is None)
            _write(new, find(new), new.parent)
        for folder in {old.parent, new.parent}:
            sync_folder(folder)
    except FileSystemError:
        raise
    except OSError as error:
        words = f"cannot be renamed to {new}: {error.strerror or error}"
        raise FileSystemError(error.errno, words, str(path)) from error
    return new


def _begun(old: Path, new: Path) -> Stored | None:
    """Return the file if the index is renamed already: by a command that was killed, or by hand; None: it is not."""
    if os.path.lexists(old) or not index.is_index(new):
        return None
    stored, folder = find(new), old.with_name(old.name + FOLDER)
    if os.path.lexists(folder / stored.subfiles[0].name):
        return dataclasses.replace(stored, subfiles=tuple(folder / path.name for path in stored.subfiles))
    return stored if new.parent / Path(index.parse(stored.index_text).subfiles[0]).parent == folder else None


def _folder_of(stored: Stored) -> Path:
    return stored.subfiles[0].parent


@contextlib.contextmanager
def _held(stored: Stored) -> Iterator[None]:
    """Keep programs that would write the file, and other commands, from it for the block."""
    if (words := missing_folder(stored)) is not None:
        raise SubfilesError(words)
    descriptor = os.open(_folder_of(stored), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        lock(descriptor, _folder_of(stored))
        with alone(stored):
            yield
    finally:
        os.close(descriptor)


def _check(stored: Stored, old: Path, new: Path) -> None:
    """Raise `MpiioExtError` where the file, or its folder, cannot get the new name."""
    refuse_shared(stored)
    folder, to = _folder_of(stored), new.with_name(new.name + FOLDER)
    if old.is_symlink():
        raise SubfilesError(f"{old}: is a link: rename the index {old.resolve()}, or the link itself by mv")
    for one in (new, to):
        if os.path.lexists(one):
            raise FileSystemError(errno.EEXIST, "is there already, and is not replaced: name another one", str(one))
    if not new.parent.is_dir():
        raise FileSystemError(errno.ENOENT, f"cannot be written: there is no folder {new.parent}", str(new))
    if len({one.stat().st_dev for one in (old.parent, new.parent, folder)}) > 1:
        words = f"is on another file system: copy {old} and {folder} there, `mpiio-ext subfiles check`, then `rm`"
        raise FileSystemError(errno.EXDEV, words, str(new.parent))
    if foreign := [one for one in others_in(stored) if is_subfile_name(one.name)]:
        raise SubfilesError(f"{folder}: has subfiles of other files, which would go along: {foreign[0].name} and "
                            f"{len(foreign) - 1:,} more; `rm --orphans {folder}` lists those that no index has, merge "
                            "the others")  # fmt: skip


def _rename_index(old: Path, new: Path) -> Stored:
    """Rename the index; where it goes to another folder it names its subfiles by absolute paths before."""
    stored = find(old)
    _check(stored, old, new)
    if old.parent != new.parent:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(_folder_of(stored) / MOVING, flags, 0o644)
        os.write(descriptor, b"mpiio-ext subfiles mv %s %s\n" % (os.fsencode(old), os.fsencode(new)))
        os.close(descriptor)
        files.step("mv: said")
        _write(old, stored, None)
    files.step("mv: index")
    try:
        give_name(old, new)
    except OSError:
        _undo(old, stored)
        raise
    return stored


def _rename_folder(old: Path, new: Path, stored: Stored, *, undo: bool) -> None:
    """Rename the folder of the subfiles; if that fails, with `undo` the index gets its old name again."""
    files.step("mv: folder")
    folder, to = _folder_of(stored), new.with_name(new.name + FOLDER)
    if folder != to:
        try:
            give_name(folder, to)
        except OSError:
            if undo:
                give_name(new, old)
                _undo(old, stored)
            raise
    files.step("mv: text")
    (to / MOVING).unlink(missing_ok=True)


def _undo(old: Path, stored: Stored) -> None:
    """Let an index that has its old name be what it was."""
    with contextlib.suppress(OSError):
        _write(old, stored, old.parent)
        (_folder_of(stored) / MOVING).unlink(missing_ok=True)


def _write(path: Path, stored: Stored, folder: Path | None) -> None:
    """Let an index say where the subfiles are, by paths that are relative to a folder, or absolute."""
    text = index_of(stored, folder).render(path.name)
    status = path.stat()
    with replacing(path, mode=stat.S_IMODE(status.st_mode)) as part:
        part.write_bytes(text)
        with contextlib.suppress(OSError):
            os.chown(part, status.st_uid, status.st_gid)
