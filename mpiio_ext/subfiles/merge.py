"""Makes one plain file of a file that is stored as several.

Problem. The plain file must never be seen in part, and a merge in place must not lose a byte, whenever it is killed.

Algorithm. The bytes go to ``.NAME.merging`` beside the target, a sparse file of the whole size. When they are there,
and index and subfiles are what they were at the start, that file takes the target's name. In place, the target is the
index: the bytes are brought to the disk before, and then subfiles and their folder go.

Guarantees. Under the target's name there is what was there before, or the whole file; after an error or a kill too.
Without ``--in-place`` the merge does not change the subfiles. If a killed merge has left ``.NAME.merging`` or a part of
the subfiles beside the plain file, the next merge refuses to run, and names them.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from mpiio_ext.common import files
from mpiio_ext.common.files import check_target, put_in_place, sync_folder
from mpiio_ext.errors import FileSystemError
from mpiio_ext.subfiles import index
from mpiio_ext.subfiles.copying import copy_out
from mpiio_ext.subfiles.index import FOLDER, NoIndexError, Stored, SubfilesError
from mpiio_ext.subfiles.openers import alone
from mpiio_ext.subfiles.remove import remove_subfiles
from mpiio_ext.subfiles.stored import find, usable


class Merged(NamedTuple):
    """The result of a merge: its file, how many bytes it has, and how they were copied, in words."""

    stored: Stored
    size: int
    method: str


def merge(
    path: Path, target: Path | None, *, unfinished: bool = False, advance: Callable[[int], Callable[[int], None]]
) -> Merged:
    """Make one plain file of the subfiles of an index.

    Parameters
    ----------
    path : of the index.
    target : of the plain file; None: it takes the place of the index, and the subfiles are removed.
    unfinished : take what is there of a file that was not closed.
    advance : returns what moves a bar of so many bytes.

    Raises
    ------
    SubfilesError
        The file cannot be merged; the message has a line for each subfile that is wrong.
    FileSystemError
        The target cannot be written; what was there before still is.
    """
    stored, in_place = _find(path), target is None
    if target is None:
        with alone(stored):
            pass  # a program that has it open is reported before anything is copied
    else:
        check_target(target, [path, *stored.subfiles])
        _refuse_index(target)
    size = usable(stored, unfinished=unfinished)
    final = (path if target is None else target).resolve()
    try:
        with _part(final) as (part, descriptor):
            os.ftruncate(descriptor, size)
            before = _signature(stored)
            method = copy_out(stored, size, part, descriptor, advance(_data_bytes(stored)))
            with alone(stored) if in_place else contextlib.nullcontext():
                if stored.path.read_bytes() != stored.text or _signature(stored) != before:
                    raise SubfilesError(f"{path}: has changed while it was merged: merge it again")
                _give_name(stored, part, descriptor, final, in_place=in_place)
    except FileSystemError:
        raise
    except OSError as error:
        raise FileSystemError(error.errno, f"cannot be written: {error.strerror or error}", str(final)) from error
    return Merged(stored, size, method)


def _find(path: Path) -> Stored:
    """Return the file of an index; the error names the place where a killed merge may have left subfiles."""
    try:
        return find(path)
    except NoIndexError as error:
        folder = path.with_name(path.name + FOLDER)
        if not folder.is_dir():
            raise
        raise NoIndexError(
            f"{error}. If a merge in place was killed, the file is complete, and the merge left {folder}: check the "
            f"file, then rm -r {folder}"
        ) from error


def _refuse_index(target: Path) -> None:
    if index.is_index(target):
        raise SubfilesError(f"{target}: is an index; its subfiles would be lost: `mpiio-ext subfiles rm` it first")


@contextlib.contextmanager
def _part(final: Path) -> Iterator[tuple[Path, int]]:
    """Yield a new file beside the target, and its descriptor; if it has no other name at the end, it is removed."""
    part = final.with_name(f".{final.name}.merging")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileExistsError as error:
        words = "is in the way: another merge is at work on it, or was killed and has left it: then remove it"
        raise FileSystemError(errno.EEXIST, words, str(part)) from error
    try:
        files.step("merge: opened")
        yield part, descriptor
    finally:
        with contextlib.suppress(OSError):
            if os.path.samestat(part.lstat(), os.fstat(descriptor)):
                part.unlink()
        os.close(descriptor)


def _signature(stored: Stored) -> list[tuple[int, ...]]:
    """Return device, inode, length and time of the subfiles: other values after each change."""
    found = (path.stat() for path in stored.subfiles)
    return [(one.st_dev, one.st_ino, one.st_size, one.st_mtime_ns) for one in found]


def _data_bytes(stored: Stored) -> int:
    """Return the bytes that are about to be copied, for the bar: those that have blocks."""
    found = (path.stat() for path in stored.subfiles)
    return max(1, sum(min(one.st_blocks * 512, one.st_size) for one in found))


def _give_name(stored: Stored, part: Path, descriptor: int, final: Path, *, in_place: bool) -> None:
    """Give the file its name; in place, remove the subfiles."""
    status = stored.path.stat()
    if in_place:
        _give_owner(descriptor, status)
        os.fsync(descriptor)
    else:
        os.fchmod(descriptor, status.st_mode & 0o777)
    files.step("merge: copied")
    if not in_place:
        _refuse_index(final)  # it may have come to be since
    put_in_place(part, final)
    files.step("merge: renamed")
    if in_place:
        try:
            sync_folder(final.parent)
            remove_subfiles(stored)
        except OSError as error:
            words = (
                f"is one plain file now, and whole; its subfiles could not be removed, {error.strerror}: "
                f"rm -r {stored.folder}"
            )
            raise FileSystemError(error.errno, words, str(final)) from error


def _give_owner(descriptor: int, status: os.stat_result) -> None:
    """Give a file owner, group and permissions of another one, as far as this user can.

    Without the group its permissions are left out, too: they would be those of another group. The owner is set first,
    since meanwhile nobody without the right to do so may read the file.
    """
    for owner in (status.st_uid, -1):  # any user may give the groups that he is in
        now = os.fstat(descriptor)
        if now.st_gid != status.st_gid or owner not in (now.st_uid, -1):
            with contextlib.suppress(OSError):
                os.fchown(descriptor, owner, status.st_gid)
    kept = os.fstat(descriptor).st_gid == status.st_gid
    os.fchmod(descriptor, status.st_mode & (0o777 if kept else 0o707))
