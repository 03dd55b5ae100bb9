"""Stores a plain file as several: the inverse of a merge.

Algorithm. Subfiles of a new id are made in the folder NAME.subfiles, each of its whole length and sparse; then the
bytes are copied, and the index takes its name last. A journal beside the index knows id and parts. In place, the index
takes the name of the plain file, whose bytes were brought to the disk before.

Guarantees. A file that a program has open for writing is not replaced, as far as this host can tell. Under the name
there is what was there before, or an index of subfiles that are whole. A split that is started again goes on, where the
file is what it was and unit and count are, or removes what the earlier one has left.
"""

from __future__ import annotations

import dataclasses
import errno
import fcntl
import os
import signal
from collections.abc import Callable
from pathlib import Path

from mpiio_ext.common import files
from mpiio_ext.common.files import check_target, sync_folder, write_whole
from mpiio_ext.common.progress import Advance
from mpiio_ext.errors import FileSystemError
from mpiio_ext.subfiles import index
from mpiio_ext.subfiles.copying import Copy, processors
from mpiio_ext.subfiles.index import FOLDER, WHOLE, Index, Striping, SubfilesError
from mpiio_ext.subfiles.journal import Journal, beside, boot, cannot_write, check_own, keeping, lock, signature
from mpiio_ext.subfiles.openers import READ, WRITE, open_plain, opened
from mpiio_ext.subfiles.remove import remove_subfiles
from mpiio_ext.subfiles.stored import find
from mpiio_ext.subfiles.verify import verify

JOURNAL = ".splitting.journal"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """What a split has done.

    Attributes
    ----------
    target : the index.
    size : bytes of the logical file.
    method : how they were copied, in words.
    resumed : whether an earlier one was gone on with.
    """

    target: Path
    size: int
    method: str
    resumed: bool


def split(
    path: Path, target: Path | None, striping: Striping, *, verified: bool = False, threads: int | None = None,
    advance: Callable[[float], Advance],
) -> Split:  # fmt: skip
    """Store a plain file as subfiles with an index.

    Parameters
    ----------
    path : of the plain file.
    target : of the index; None: it takes the place of the file.
    striping : unit and count.
    verified : compare all bytes before the index is written.
    threads : that copy; None: as many as there are processors.
    advance : returns what moves a bar of so many bytes.

    Raises
    ------
    SubfilesError
        The file is an index itself, or has changed meanwhile.
    FileSystemError
        Something cannot be written; what was there before still is.
    """
    if target is not None and index.is_index(path):
        raise SubfilesError(f"{path}: is an index of subfiles already")
    if index.is_index(target or path):
        return _named(target or path)
    if target is not None:
        check_target(target, [path])
    work = _Work(path, (target or path).resolve(), striping)
    begun = False
    try:
        if target is None:
            work.refuse_writers()
        work.open()
        begun = True
        bar = advance(max(min(work.status.st_blocks * 512, work.size), 1))
        copy = Copy(striping=striping, size=work.size, plain=work.path, subfiles=work.subfiles, out=False,
                    journal=work.journal, done=work.done, advance=bar, threads=threads or processors())  # fmt: skip
        copy.run()
        if verified:
            verify(work.path, work.subfiles, striping, work.size, threads or processors())
        work.finish(durable=target is None)
    except OSError as error:
        told = cannot_write(work.final, error)
        raise (keeping(told, work.folder, work.journal.path) if begun else told) from error
    finally:
        work.close()
    return Split(target=target or path, size=work.size, method=copy.copier.method, resumed=work.resumed)


def _named(target: Path) -> Split:
    """End a split that was killed after the index had got its name.

    Raises
    ------
    SubfilesError
        There is none: the target is an index for another reason.
    """
    journal = Journal(beside(target.resolve(), JOURNAL))
    known, _ = journal.read()
    stored = find(target)
    if known.get("id") != stored.ident:
        raise SubfilesError(f"{target}: is an index of subfiles already")
    journal.remove()
    return Split(target=target, size=stored.size or 0, method="nothing to copy", resumed=True)


class _Work:
    """The subfiles of a split, and its journal."""

    def __init__(self, path: Path, final: Path, striping: Striping) -> None:
        self.path, self.final, self._striping = path.resolve(), final, striping
        self.journal = Journal(beside(final, JOURNAL))
        self.folder = final.with_name(final.name + FOLDER)
        self.done: set[str] = set()
        self.resumed = False
        self.subfiles: tuple[Path, ...] = ()
        try:
            self._descriptor = open_plain(self.path, READ)
        except OSError as error:
            raise FileSystemError(error.errno, f"cannot be read: {error.strerror or error}", str(path)) from error
        lock(self._descriptor, self.path)
        self.status = os.fstat(self._descriptor)
        self.size = self.status.st_size
        self._ident = os.urandom(8).hex()

    def _head(self, ident: str) -> dict[str, object]:
        return {"mpiio_ext splitting": 1, "boot": boot(), "source": signature([self.path]), "id": ident,
                "unit": self._striping.unit, "count": self._striping.count}  # fmt: skip

    def _paths(self, ident: str, count: int) -> tuple[Path, ...]:
        return tuple(self.folder / f"{ident}.{number}" for number in range(count))

    def open(self) -> None:
        """Make the subfiles, or find those of an earlier split of the same file."""
        known, done = self.journal.read()
        ident, count = known.get("id"), known.get("count")
        if isinstance(ident, str) and isinstance(count, int):
            if known == self._head(ident) and all(map(check_own, self._paths(ident, count))):
                self._ident, self.done, self.resumed = ident, done, True
            else:
                remove_subfiles(self._paths(ident, count))
        self.subfiles = self._paths(self._ident, self._striping.count)
        self._make_folder()
        self.journal.begin(self._head(self._ident), self.done)
        files.step("split: journal")
        try:
            self._make()
        except OSError:
            if not self.resumed:
                remove_subfiles(self.subfiles)
                self.journal.remove()
            raise
        files.step("split: made")

    def _make(self) -> None:
        """Make the subfiles, unless an earlier split has, and give them their lengths."""
        new = 0 if self.resumed else os.O_CREAT | os.O_EXCL
        for number, path in enumerate(self.subfiles):
            descriptor = os.open(path, WRITE | new, self.status.st_mode & 0o666)
            try:
                os.ftruncate(descriptor, self._striping.length(number, self.size))
            finally:
                os.close(descriptor)

    def _make_folder(self) -> None:
        """Make the folder of the subfiles; a link in its place is refused."""
        try:
            self.folder.mkdir()
        except FileExistsError:
            if self.folder.is_symlink() or not self.folder.is_dir():
                raise OSError(errno.EEXIST, f"{self.folder} is in the way: it is no folder") from None

    def refuse_writers(self) -> None:
        """Raise `SubfilesError` where a program has the plain file open: what it writes would be lost.

        Known on this host, of file systems with leases: none is granted while a program can write to the file.
        """
        try:
            fcntl.fcntl(self._descriptor, fcntl.F_SETSIG, signal.SIGURG)  # in place of SIGIO, which ends a process
            fcntl.fcntl(self._descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            fcntl.fcntl(self._descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        except OSError as error:
            if error.errno == errno.EAGAIN:
                raise SubfilesError(f"{self.path}: a program has it open for writing: split it after that") from None

    def finish(self, *, durable: bool) -> None:
        """Write the index; with `durable`, when the bytes are on the disk."""
        for path in self.subfiles if durable else ():
            with opened(path, WRITE) as descriptor:
                os.fsync(descriptor)
        if durable:
            sync_folder(self.folder)
        if durable:
            self.refuse_writers()
        now = self.path.stat()
        if (now.st_ino, now.st_size, now.st_mtime_ns) != (self.status.st_ino, self.size, self.status.st_mtime_ns):
            remove_subfiles(self.subfiles)
            self.journal.remove()
            raise SubfilesError(f"{self.path}: has changed while it was split: split it again")
        files.step("split: copied")
        made = Index(state=WHOLE, striping=self._striping, size=self.size, ident=self._ident,
                     subfiles=tuple(f"{self.folder.name}/{path.name}" for path in self.subfiles))  # fmt: skip
        write_whole(self.final, made.render(self.final.name), mode=self.status.st_mode & 0o777, durable=durable)
        files.step("split: index")
        self.journal.remove()

    def close(self) -> None:
        """Close what is open."""
        self.journal.close()
        os.close(self._descriptor)
