"""Makes one plain file of a file that is stored as several.

Problem. The plain file must never be seen in part; a merge in place must not lose a byte, whenever it is killed; and it
is not to begin anew.

Algorithm. The bytes go to ``.NAME.merging`` beside the target, a sparse file of the whole size. When they are there,
and index and subfiles are what they were at the start, that file takes the target's name. In place, the target is the
index: before the name is taken the bytes are brought to the disk, and then subfiles, their folder and the journal go. A
journal that is found with a target that is its file says that only removing is left to do.

Guarantees. Under the target's name there is what was there before, or the whole file; after an error or a kill too. A
merge that is started again goes on. Without ``--in-place`` nothing of the subfiles is touched.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from mpiio_ext.common import files
from mpiio_ext.common.files import check_target, put_in_place, sync_folder
from mpiio_ext.common.progress import Advance
from mpiio_ext.errors import FileSystemError
from mpiio_ext.subfiles import index
from mpiio_ext.subfiles.copying import Copy, processors, writers
from mpiio_ext.subfiles.folders import resolved
from mpiio_ext.subfiles.hdf5 import files_of, has_inode
from mpiio_ext.subfiles.index import WHOLE, SubfilesError
from mpiio_ext.subfiles.journal import (
    Journal,
    beside,
    boot,
    cannot_write,
    check_own,
    give_owner,
    keeping,
    lock,
    signature,
)
from mpiio_ext.subfiles.openers import alone, opened, reading
from mpiio_ext.subfiles.remove import goes, refuse_kept, remove_subfiles
from mpiio_ext.subfiles.sharing import refuse_shared, usable
from mpiio_ext.subfiles.stored import Stored, find

#: How the temporary name of the file ends, and that of the journal.
PART, JOURNAL = ".merging", ".merging.journal"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What a merge has done.

    Attributes
    ----------
    target : the plain file.
    size : its bytes.
    method : how they were copied, in words.
    resumed : whether an earlier one was gone on with.
    unfinished : whether the file was not whole.
    left : files in the folder of the subfiles that are none of them.
    """

    target: Path
    size: int
    method: str
    resumed: bool
    unfinished: bool
    left: tuple[Path, ...] = ()


def merge(
    path: Path, target: Path | None, *, layout: str = "own", unfinished: bool = False, verified: bool = False,
    threads: int | None = None, advance: Callable[[float], Advance],
) -> Merged:  # fmt: skip
    """Make one plain file of the subfiles of an index.

    Parameters
    ----------
    path : of the index; with the layout "hdf5", of the stub or of the configuration.
    target : of the plain file; None: it takes the place of the index, and the subfiles are removed.
    layout : "own" or "hdf5".
    unfinished : take what is there of a file that was not closed.
    verified : compare all bytes before the target gets its name.
    threads : that copy; None: as many as the file system has a use for.
    advance : returns what moves a bar of so many bytes.

    Raises
    ------
    SubfilesError
        The file cannot be merged; the message has a line for each subfile that is wrong.
    FileSystemError
        The target cannot be written; what was there before still is.
    """
    in_place = target is None
    if in_place and (found := _ended(path, layout)) is not None:
        return found
    stored = find(path, layout)
    final = resolved(stored.path if target is None else target)
    if target is None:
        _refuse_in_place(stored)
        refuse_kept([final, resolved(stored.index_path), *filter(goes, stored.subfiles)])
    else:
        check_target(target, [stored.index_path, stored.path, *stored.subfiles])
        _refuse_index(target)
    lengths, size = usable(stored, unfinished=unfinished)
    work = _Work(stored, final, size, in_place=in_place)
    begun = False
    try:
        work.open()
        begun = True
        bar = advance(_data_bytes(stored, lengths))
        copy = Copy(striping=stored.striping, size=size, plain=work.part, subfiles=stored.subfiles, out=True,
                    journal=work.journal, done=work.done, advance=bar,
                    threads=threads or writers(final.parent))  # fmt: skip
        copy.run()
        if verified:
            from mpiio_ext.subfiles.verify import verify

            verify(work.part, stored.subfiles, stored.striping, size, threads or processors())
        with alone(stored) if in_place else contextlib.nullcontext():
            left = work.finish()
    except OSError as error:
        told = cannot_write(final, error)
        raise (keeping(told, work.part, work.journal.path) if begun and work.part.exists() else told) from error
    finally:
        work.close()
    return Merged(target=final if target is None else target, size=size, method=copy.copier.method,
                  resumed=work.resumed, unfinished=stored.state != WHOLE, left=left)  # fmt: skip


def _data_bytes(stored: Stored, lengths: list[int]) -> int:
    """Return the bytes that are about to be copied: those that have blocks, for the bar."""
    found = sum(min(path.stat().st_blocks * 512, length) for path, length in zip(stored.subfiles, lengths, strict=True))
    return max(found, 1)


class _Work:
    """The temporary file of a merge, and its journal."""

    def __init__(self, stored: Stored, final: Path, size: int, *, in_place: bool) -> None:
        self.stored, self.final, self.size, self._in_place = stored, final, size, in_place
        self.part, self.journal = beside(final, PART), Journal(beside(final, JOURNAL))
        self.done: set[str] = set()
        self.resumed = False
        self._descriptor, self._held = -1, contextlib.ExitStack()
        self._sources = signature(stored.subfiles)
        self._removed = (*stored.subfiles, *([] if stored.index_path == stored.path else [stored.index_path]))

    def _head(self, part: os.stat_result) -> dict[str, object]:
        return {
            "mpiio_ext merging": 1, "boot": boot(), "index": self.stored.index_text.decode("utf-8", "surrogateescape"),
            "sources": self._sources, "size": self.size, "in place": self._in_place,
            "remove": [str(path) for path in self._removed], "file": [part.st_dev, part.st_ino],
        }  # fmt: skip

    def open(self) -> None:
        """Open the temporary file: that of an earlier merge, where that was of the same files, or a new one."""
        if not self._in_place:
            self._held.enter_context(reading(self.stored))
        status = check_own(self.part, self.final.stat().st_uid if self._in_place else -1)
        known, done = self.journal.read()
        if status is not None and known == self._head(status):
            with contextlib.suppress(OSError), opened(self.part) as descriptor:  # its permissions may be the index's
                os.fchmod(descriptor, 0o600)
            self._descriptor = os.open(self.part, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            lock(self._descriptor, self.part)
            self.done, self.resumed = done, True
        else:
            if status is not None:
                self._remove_stale()
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            self._descriptor = os.open(self.part, flags, 0o600)
            lock(self._descriptor, self.part)
        files.step("merge: opened")
        try:
            os.ftruncate(self._descriptor, self.size)
            self.journal.begin(self._head(os.fstat(self._descriptor)), self.done)
        except OSError:
            if not self.resumed:
                self.part.unlink()
            raise
        files.step("merge: journal")

    def _remove_stale(self) -> None:
        """Remove the file of an earlier merge that was about something else, unless that is still at work."""
        descriptor = os.open(self.part, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            lock(descriptor, self.part)
            self.part.unlink()
        finally:
            os.close(descriptor)

    def finish(self) -> tuple[Path, ...]:
        """Give the file its name; in place, remove the rest. Returns what is left in the folder of the subfiles."""
        same = self.stored.index_path.read_bytes() == self.stored.index_text
        if not same or signature(self.stored.subfiles) != self._sources:
            self._give_up()
            raise SubfilesError(f"{self.stored.path}: has changed while it was merged: merge it again")
        if self._in_place:
            give_owner(self._descriptor, self.final.stat())
            os.fsync(self._descriptor)
        else:
            os.fchmod(self._descriptor, self.stored.index_path.stat().st_mode & 0o777)
        files.step("merge: copied")
        if not self._in_place:
            try:
                _refuse_index(self.final)  # it may have come to be since
            except SubfilesError:
                self._give_up()
                raise
        put_in_place(self.part, self.final)
        files.step("merge: renamed")
        if not self._in_place:
            self.journal.remove()
            return ()
        return _end(self.final, self._removed, self.journal)

    def _give_up(self) -> None:
        self.part.unlink()
        self.journal.remove()

    def close(self) -> None:
        """Close both."""
        self.journal.close()
        self._held.close()
        if self._descriptor >= 0:
            os.close(self._descriptor)


def _refuse_index(target: Path) -> None:
    if index.is_index(target):
        raise SubfilesError(f"{target}: is an index; its subfiles would be lost: `mpiio-ext subfiles rm` it first")


def _refuse_in_place(stored: Stored) -> None:
    """Raise `SubfilesError` where the subfiles are others', too, before anything is copied.

    Those of HDF5 are where they lie beside the stub, or where this is the stub that they were made for, and no copy.
    """
    refuse_shared(stored)
    beside_it = stored.subfiles[0].parent == stored.path.parent and stored.path.exists()
    if stored.layout == "hdf5" and not beside_it and not has_inode(stored.path, stored.ident):
        raise SubfilesError(f"{stored.path}: is not the file whose subfiles are in {stored.subfiles[0].parent}, but a "
                            "copy, or is not there: merge them to another name (-o)")  # fmt: skip
    with alone(stored):
        pass


def _ended(path: Path, layout: str) -> Merged | None:
    """End a merge in place that was killed after the file had got its name; None: there is none."""
    for one in files_of(path) if layout == "hdf5" else (path,):
        if (found := _placed(one)) is not None:
            return found
    return None


def _placed(path: Path) -> Merged | None:
    """End it where this is the file. What a program has written to it since stays."""
    final = resolved(path)
    journal = Journal(beside(final, JOURNAL))
    try:
        status = final.stat()
        known, _ = journal.read()
    except FileSystemError:
        raise
    except OSError as error:
        raise FileSystemError(error.errno, f"cannot be read: {error.strerror or error}", str(path)) from error
    removed, size, in_place = known.get("remove"), known.get("size"), known.get("in place")
    if known.get("file") != [status.st_dev, status.st_ino] or in_place is not True or index.is_index(path):
        return None
    if not isinstance(removed, list) or not isinstance(size, int) or status.st_size < size:
        return None
    paths = [Path(str(one)) for one in removed]
    if not all(one.is_absolute() for one in paths):
        return None
    left = _end(final, paths, journal)
    return Merged(target=path, size=size, method="nothing to copy", resumed=True, unfinished=False, left=left)


def _end(final: Path, removed: Sequence[Path], journal: Journal) -> tuple[Path, ...]:
    """Remove what a merge in place leaves when the file has its name; return what stays in the folder of the subfiles.

    Raises
    ------
    FileSystemError
        Something cannot be removed; the file is whole all the same.
    """
    try:
        sync_folder(final.parent)
        left = remove_subfiles(removed)
        files.step("merge: removed")
        journal.remove()
    except OSError as error:
        words = (f"is one plain file now, and whole; to remove its subfiles is left, which the same command does: "
                 f"{error.filename or 'one of them'}: {error.strerror or error}")  # fmt: skip
        raise FileSystemError(error.errno, words, str(final)) from error
    return left
