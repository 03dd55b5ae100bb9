"""Stores a plain file as several: the inverse of a merge.

Algorithm. Subfiles of a new id are made in the folder NAME.subfiles, each of its whole length and sparse; then the
bytes are copied, and the index takes its name last. A journal beside the index knows id and parts. In place, the index
takes the name of the plain file, whose bytes were brought to the disk before. The folder is locked from before the
journal is read to the end: two splits to one target would remove each other's subfiles.

Guarantees. A file that a program has open for writing is not replaced, as far as this host can tell. Nothing is made or
removed where a folder or link leads that somebody puts in the place of the locked folder meanwhile (without /proc the
copy goes by names, and where it was is looked at afterwards). Under the name there is what was there before, or an
index of subfiles that are whole. A split that is started again goes on, where the file is what it was and unit and
count are, or removes what the earlier one has left. In place, the new files have owner, group and permissions of the
old one; where the group cannot be given, no other group may do what it might.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import os
import signal
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from mpiio_ext.common import files
from mpiio_ext.common.files import check_target, replacing
from mpiio_ext.common.progress import Advance
from mpiio_ext.errors import FileSystemError
from mpiio_ext.subfiles import index
from mpiio_ext.subfiles.copying import Copy, processors
from mpiio_ext.subfiles.folders import check_folder, is_subfile_name, resolved
from mpiio_ext.subfiles.index import FOLDER, WHOLE, Index, Striping, SubfilesError
from mpiio_ext.subfiles.journal import (
    Journal,
    beside,
    boot,
    cannot_write,
    check_own,
    give_owner,
    in_the_way,
    is_own,
    is_same,
    keeping,
    lock,
    signature,
)
from mpiio_ext.subfiles.openers import READ, WRITE, open_plain, opened
from mpiio_ext.subfiles.sharing import speaking_of
from mpiio_ext.subfiles.stored import find
from mpiio_ext.subfiles.verify import verify

JOURNAL = ".splitting.journal"
#: So often a folder that others remove is made anew; file systems with changing inode numbers do without looking.
_MOST_TRIES = 1000
#: Descriptors of this process, as paths.
_DESCRIPTORS = "/proc/self/fd/"


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
        return _named(path, target, striping)
    if target is not None:
        check_target(target, [resolved(path)])
    work = _Work(path, resolved(target or path), striping, in_place=target is None)
    begun = False
    try:
        if target is None:
            work.refuse_writers()
        work.open()
        begun = True
        bar = advance(max(min(work.status.st_blocks * 512, work.size), 1))
        copy = Copy(striping=striping, size=work.size, plain=work.path, subfiles=work.places(), out=False,
                    journal=work.journal, done=work.done, advance=bar, threads=threads or processors())  # fmt: skip
        copy.run()
        if verified:
            verify(work.path, work.subfiles, striping, work.size, threads or processors())
        work.finish()
    except OSError as error:
        told = work.told(error)
        raise (work.keeping(told) if begun and not work.lost() else told) from error
    finally:
        work.close()
    return Split(target=target or path, size=work.size, method=copy.copier.method, resumed=work.resumed)


def _already(path: Path) -> SubfilesError:
    return SubfilesError(f"{path}: is an index of subfiles already")


def _named(path: Path, target: Path | None, striping: Striping) -> Split:
    """End a split that was killed after the index had got its name.

    Raises
    ------
    SubfilesError
        There is none, or it was of something else: the target is an index for another reason.
    """
    final = target or path
    journal = Journal(beside(final.resolve(), JOURNAL))
    known, _ = journal.read()
    stored = find(final)
    if known.get("id") != stored.ident:
        raise _already(final)
    journal.remove()  # there is an index: nothing is left to be done
    source = None
    with contextlib.suppress(OSError):
        source = signature([path.resolve()])
    asked = stored.state == WHOLE and stored.striping == striping and known.get("in place") == (target is None)
    if not asked or (target is not None and source != known.get("source")):
        raise _already(final)
    return Split(target=final, size=stored.size or 0, method="nothing to copy", resumed=True)


class _Work:
    """The subfiles of a split, and its journal."""

    def __init__(self, path: Path, final: Path, striping: Striping, *, in_place: bool) -> None:
        self.path, self.final, self._striping, self._in_place = resolved(path), final, striping, in_place
        self.journal = Journal(beside(final, JOURNAL))
        self.folder = final.with_name(final.name + FOLDER)
        self.done: set[str] = set()
        self.resumed = False
        self.subfiles: tuple[Path, ...] = ()
        self._made: list[os.stat_result] = []
        self._held = -1
        try:
            self._descriptor = open_plain(self.path, READ)
        except OSError as error:
            raise FileSystemError(error.errno, f"cannot be read: {error.strerror or error}", str(path)) from error
        lock(self._descriptor, self.path)
        self.status = os.fstat(self._descriptor)
        self.size = self.status.st_size
        self._ident = os.urandom(8).hex()
        self._owner = self.status.st_uid if in_place else -1  # who may have been given what a killed split has made

    def _head(self, ident: str) -> dict[str, object]:
        return {"mpiio_ext splitting": 1, "boot": boot(), "source": signature([self.path]), "id": ident,
                "unit": self._striping.unit, "count": self._striping.count, "in place": self._in_place}  # fmt: skip

    def _paths(self, ident: str, count: int) -> tuple[Path, ...]:
        return tuple(self.folder / f"{ident}.{number}" for number in range(count))

    def open(self) -> None:
        """Make the subfiles, or find those of an earlier split of the same file."""
        self._hold()
        try:
            self._refuse_index()
            while not self._read():
                self._hold()  # the folder may have gone with what was in it
                self._refuse_index()
            self.subfiles = self._paths(self._ident, self._striping.count)
            self.journal.begin(self._head(self._ident), self.done)
        except (OSError, SubfilesError):
            if self._held >= 0:
                with contextlib.suppress(OSError):
                    self.folder.rmdir()
            raise
        files.step("split: journal")
        try:
            self._make()
        except OSError:
            if not self.resumed:
                self._remove_made()
            raise
        files.step("split: made")
        self._look_again()

    def _read(self) -> bool:
        """Take over what the journal knows; False: that was of something else, and has been removed."""
        known, done = self.journal.read()
        ident, count = known.get("id"), known.get("count")
        if not isinstance(ident, str) or not isinstance(count, int):
            return True
        paths = self._paths(ident, count)
        if self._is_of_another(ident):
            self.journal.remove()
            return False
        if known == self._head(ident) and all(check_own(path, self._owner) for path in paths):
            self._ident, self.done, self.resumed = ident, done, True
            return True
        self._remove(paths)
        self.journal.remove()
        return False

    def _is_of_another(self, ident: str) -> bool:
        """Return whether an index has the subfiles that a journal tells of: it was renamed after the split was killed.

        Else what was to be this target's index goes: nobody else makes one with this id while the folder is locked.

        Raises
        ------
        SubfilesError
            What cannot be read may be that index.
        """
        found, parts, unread = speaking_of(self.final.parent, ident)
        own = [one for one in parts if self.final.name.startswith(one.name[1 : -len(f".{ident}{files.TEMPORARY}")])]
        if found or len(own) < len(parts):
            return True
        if unread:
            raise SubfilesError(f"{unread[0]}: cannot be read, and may be the index of {self.folder}/{ident}.*, which "
                                f"an earlier split has made: make it readable, or remove {self.journal.path} to keep "
                                "them as they are")  # fmt: skip
        for part in own:
            with contextlib.suppress(FileSystemError):  # another user's
                if check_own(part, self._owner) is not None:
                    part.unlink()
        return False

    def _make(self) -> None:
        """Make the subfiles, unless an earlier split has, and give them their lengths."""
        new = 0 if self.resumed else os.O_CREAT | os.O_EXCL
        mode = 0o600 if self._in_place else self.status.st_mode & 0o666 | 0o600
        for number, path in enumerate(self.subfiles):
            if self.resumed and self._in_place:  # it may have got the permissions of a file that is only read
                with contextlib.suppress(OSError), self._opened(path, READ) as descriptor:
                    os.fchmod(descriptor, mode)
            with self._opened(path, WRITE | new, mode) as descriptor:
                self._made.append(os.fstat(descriptor))
                os.ftruncate(descriptor, self._striping.length(number, self.size))

    @contextlib.contextmanager
    def _opened(self, path: Path, flags: int, mode: int = 0o600) -> Iterator[int]:
        """Open a subfile in the folder that is held, whose name may lead elsewhere by now.

        Raises
        ------
        OSError
            It cannot be opened, or is none that an earlier split has left.
        """
        descriptor = os.open(path.name, flags, mode, dir_fd=self._held)
        try:
            if self.resumed and not is_own(os.fstat(descriptor), self._owner):
                raise in_the_way(path)
            yield descriptor
        finally:
            os.close(descriptor)

    def places(self) -> tuple[Path, ...]:
        """Return paths of the subfiles by the folder that is held; by its name, where the system has no /proc."""
        held = Path(f"{_DESCRIPTORS}{self._held}")
        there = os.path.exists(held)  # noqa: PTH110 # Path.exists() fails where /proc is closed
        return tuple(held / path.name for path in self.subfiles) if there else self.subfiles

    def told(self, error: OSError) -> FileSystemError:
        """Return the error of a split, with the names that the subfiles have."""
        told = cannot_write(self.final, error)
        if told.filename is not None:
            told.filename = str(told.filename).replace(f"{_DESCRIPTORS}{self._held}/", f"{self.folder}/")
        return told

    def _remove(self, paths: Sequence[Path]) -> None:
        """Remove subfiles from the folder that is held, and that, where it is empty then and still has its name."""
        for path in paths:
            status = self._status(path)
            if status is not None and stat.S_ISREG(status.st_mode) and is_subfile_name(path.name):
                os.unlink(path.name, dir_fd=self._held)
                files.step("subfile removed")
        if self._is_held():
            with contextlib.suppress(OSError):
                self.folder.rmdir()

    def _status(self, path: Path) -> os.stat_result | None:
        """Return the state of a subfile in the folder that is held; None: there is none."""
        with contextlib.suppress(FileNotFoundError):
            return os.stat(path.name, dir_fd=self._held, follow_symlinks=False)
        return None

    def _remove_made(self) -> None:
        """Remove what this split has made, or gone on with."""
        self._remove(self._own())
        self.journal.remove()

    def _own(self) -> list[Path]:
        """Return the subfiles that are what this split has made."""
        made = zip(self.subfiles, self._made, strict=False)  # there may be fewer
        return [path for path, status in made if (now := self._status(path)) and os.path.samestat(now, status)]

    def _is_held(self) -> bool:
        """Return whether the folder that is held still has its name."""
        return self._held >= 0 and is_same(self.folder, os.fstat(self._held))

    def lost(self) -> bool:
        """Return whether the folder has another name by now, or has been removed; what was made in it goes then."""
        if self._is_held():
            return False
        with contextlib.suppress(OSError):
            if not index.is_index(self.final):
                self._remove_made()
        return True

    def _hold(self) -> None:
        """Make the folder of the subfiles, and lock it: other commands keep from the target until the end."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        for _ in range(_MOST_TRIES):  # another one may have removed it
            if self._is_held():
                return
            self._let_go()
            self._make_folder()
            files.step("split: folder")
            try:
                self._held = os.open(self.folder, flags)
                lock(self._held, self.final)
            except FileNotFoundError:
                continue
            except OSError:
                self._let_go()
                raise

    def _let_go(self) -> None:
        if self._held >= 0:
            os.close(self._held)
            self._held = -1

    def _make_folder(self) -> None:
        """Make the folder of the subfiles; a link is refused, and another user's that he could swap.

        An earlier split may have given it to the owner of the file.
        """
        try:
            self.folder.mkdir()
        except FileExistsError:
            if self.folder.is_symlink() or (os.path.lexists(self.folder) and not self.folder.is_dir()):
                raise OSError(errno.EEXIST, f"{self.folder} is in the way: it is no folder") from None
            with contextlib.suppress(FileNotFoundError):  # it has gone: it is made again
                if not self._in_place or self.folder.lstat().st_uid != self.status.st_uid:
                    check_folder(self.folder)

    def _refuse_index(self) -> None:
        """Raise `SubfilesError` where source or target is an index: by another command or a program, meanwhile."""
        for path in (self.path, self.final):
            if index.is_index(path):
                raise _already(path)

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

    def finish(self) -> None:
        """Write the index; in place, when the bytes are on the disk."""
        self._look_again()
        status = os.fstat(self._descriptor)
        for path, known in zip(self.subfiles, self._made, strict=True) if self._in_place else ():
            with self._opened(path, WRITE) as descriptor:
                if os.path.samestat(os.fstat(descriptor), known):  # else the second look says so
                    give_owner(descriptor, status)
                    os.fsync(descriptor)
        if self._in_place:
            self._give_folder(status)
            with contextlib.suppress(OSError):  # as `sync_folder`
                os.fsync(self._held)
            self.refuse_writers()
        files.step("split: copied")
        self._look_again()
        made = Index(state=WHOLE, striping=self._striping, size=self.size, ident=self._ident,
                     subfiles=tuple(f"{self.folder.name}/{path.name}" for path in self.subfiles))  # fmt: skip
        mode = None if self._in_place else status.st_mode & 0o777
        with replacing(self.final, mode=mode, durable=self._in_place) as part:
            part.write_bytes(made.render(self.final.name))
            if self._in_place:
                with opened(part, WRITE) as descriptor:
                    give_owner(descriptor, status)
        files.step("split: index")
        self.journal.remove()

    def _give_folder(self, status: os.stat_result) -> None:
        """Give the folder to the owner of the file, who is to remove the subfiles, unless something else is in it."""
        names = {*os.listdir(self._held)}  # noqa: PTH208 # a descriptor is no Path
        if names == {path.name for path in self.subfiles}:
            with contextlib.suppress(OSError):
                os.fchown(self._held, status.st_uid, -1)

    def _look_again(self) -> None:
        """Raise `SubfilesError` where an index would be wrong by now, and remove what this split has made."""
        try:
            now = self.path.stat()
            if (now.st_ino, now.st_size, now.st_mtime_ns) != (self.status.st_ino, self.size, self.status.st_mtime_ns):
                raise SubfilesError(f"{self.path}: has changed while it was split: split it again")
            self._refuse_index()
            own = {*self._own()}
            gone = [self.folder] if not self._is_held() else [path for path in self.subfiles if path not in own]
            if gone:
                raise SubfilesError(f"{gone[0]}: was removed or replaced while {self.path} was split: split it again")
        except SubfilesError:
            self._remove_made()
            raise

    def keeping(self, error: FileSystemError) -> FileSystemError:
        """Return the error of a split that goes on when it is started again; other files may be in the folder."""
        alone = {*self.folder.iterdir()} == {*self.subfiles}
        what = self.folder if alone else self.folder / f"{self._ident}.*"
        return keeping(error, what, self.journal.path, self.subfiles)

    def close(self) -> None:
        """Close what is open."""
        self.journal.close()
        self._let_go()
        os.close(self._descriptor)
