"""Folders of subfiles: what in them is of no file, and folders whose index is gone.

Problem. Who removes an index as any other file leaves terabytes that no command speaks of. A folder may also have what
a killed job, or a person, has put there, and subfiles of several files, where indexes were renamed.

Algorithm. All indexes of a folder are read, hidden ones of files that are staged included. A folder NAME.subfiles that
none of them speaks of is an orphan, and so are, in one that some speak of, the subfiles of each ID that none has. It is
removed if each file in it is called as subfiles are, nothing has changed in it for a minute, and no command that was
killed is to go on with it. No program may have the lock that it holds from its first subfile on, or get it meanwhile.

Guarantees. Of an orphan with anything else in it nothing is removed. Beside an index that nobody can read nothing is.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import re
import stat
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from mpiio_ext.common.files import read_plain
from mpiio_ext.common.units import count_text
from mpiio_ext.errors import FileSystemError, MpiioExtError
from mpiio_ext.subfiles import index
from mpiio_ext.subfiles.findings import named
from mpiio_ext.subfiles.index import FOLDER, MOVING, SubfilesError
from mpiio_ext.subfiles.journal import beside, cannot_write, is_part
from mpiio_ext.subfiles.openers import is_guarded, taken
from mpiio_ext.subfiles.stored import Stored, find

#: How the journals of commands end, which go on with a folder that has no index (yet, or any more).
_JOURNALS = {".merging.journal": "merge --in-place", ".splitting.journal": "split"}
#: Seconds for which a folder that was changed is left alone: its subfiles are made before their index.
YOUNG_S = 60
#: Bytes of a file `MOVING`: two paths.
_MOST_MOVING = 1 << 16
_NAME = re.compile(r"[0-9a-f]{16}\.(0|[1-9][0-9]{0,3})(\.[1-9][0-9]?)?")


def is_subfile_name(name: str) -> bool:
    """Return whether subfiles are called so."""
    return _NAME.fullmatch(name) is not None


def others_in(stored: Stored) -> tuple[Path, ...]:
    """Return what is in the folder of a file's subfiles and none of them."""
    folder = stored.subfiles[0].parent
    if stored.layout != "own" or not folder.name.endswith(FOLDER) or not is_folder(folder):
        return ()
    known = {path.name for path in stored.subfiles}
    return tuple(path for path in _in(folder) if path.name not in known)


def is_folder(path: Path) -> bool:
    """Return whether a path leads to a folder; where nobody may look it does not."""
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except OSError:
        return False


def check_folder(folder: Path) -> None:
    """Refuse the folder of another user for new subfiles, in a sticky folder as /tmp: its owner could swap them.

    Where others may write and nothing is sticky, they could do so anyway; groups work in such folders.

    Raises
    ------
    OSError
        EPERM: it is such a folder.
    """
    if folder.lstat().st_uid not in (os.geteuid(), 0) and folder.parent.stat().st_mode & stat.S_ISVTX:
        raise OSError(errno.EPERM, f"{folder} belongs to another user: have it removed, or take another name")


def resolved(path: Path) -> Path:
    """Return a path without links.

    Raises
    ------
    FileSystemError
        ELOOP: its links lead in a circle.
    """
    try:
        return path.resolve()
    except RuntimeError as error:  # later releases of Python return a path, and fail where it is used
        words = f"leads in a circle: {os.strerror(errno.ELOOP)}"
        raise FileSystemError(errno.ELOOP, words, str(path)) from error


def indexes(folder: Path) -> list[Path]:
    """Return the indexes in a folder, and what may be one, cannot be read, and has a folder of subfiles beside it.

    Raises
    ------
    FileSystemError
        It cannot be read.
    """
    return [path for path in _in(folder) if not is_part(path.name) and _is_index(path)]


def _is_index(path: Path) -> bool:
    try:
        return index.is_index(path, missing_ok=False)
    except OSError:
        return _may_be_index(path) and is_folder(path.with_name(path.name + FOLDER))


def _in(folder: Path) -> list[Path]:
    """Return what is in a folder; one that can be listed and not entered is none that can be read."""
    try:
        os.stat(f"{folder}/.")  # noqa: PTH116 # a Path has no dot at its end
        return sorted(folder.iterdir())
    except OSError as error:
        raise FileSystemError(error.errno, f"cannot be read: {error.strerror or error}", str(folder)) from error


@dataclasses.dataclass(frozen=True, slots=True)
class Orphan:
    """Subfiles that no index speaks of: all of a folder, or those of one file in a folder that others use, too.

    Attributes
    ----------
    folder : its path.
    subfiles : what is called as subfiles are.
    size : their bytes.
    shared : subfiles of other files are in the folder.
    kept : why it is not removed; "": it can be.
    """

    folder: Path
    subfiles: tuple[Path, ...]
    size: int
    shared: bool
    kept: str

    @property
    def place(self) -> str:
        """Return what the subfiles are called together."""
        return str(self.folder / f"{_ident(self.subfiles[0])}.*" if self.shared else self.folder)

    def __str__(self) -> str:
        many = count_text(len(self.subfiles), "subfile")
        if self.kept:
            return f"{self.place}: {many}, {self.size:,} B, without an index; {self.kept}"
        moved = f" (grep -rlF {_ident(self.subfiles[0])} FOLDER finds it)" if self.subfiles else ""
        return (f"{self.place}: {many}, {self.size:,} B, without an index: put it back if it was moved or "
                f"renamed{moved}, or `mpiio-ext subfiles rm --orphans --yes`")  # fmt: skip


def orphans(path: Path, *, held: bool = False) -> list[Orphan]:
    """Return the orphans in a folder, or in the one that a folder of subfiles is; `held`: this process has them.

    Raises
    ------
    FileSystemError
        It cannot be read.
    """
    path = resolved(path)
    within = _in(path)
    folders = [path] if path.name.endswith(FOLDER) else [
        one for one in within if one.name.endswith(FOLDER) and is_folder(one) and not one.is_symlink()]  # fmt: skip
    if not folders:
        return []
    spoken_of, damaged = _spoken_of(folders[0].parent)
    found = [_examined(one, damaged, held=held) if one not in spoken_of else
             _others(one, spoken_of[one], damaged, held=held) for one in folders]  # fmt: skip
    return [orphan for some in found for orphan in some]


def _spoken_of(parent: Path) -> tuple[dict[Path, set[str] | None], list[Path]]:
    """Return the folders that the indexes in a folder speak of, and of which files; and those that nobody can read.

    A damaged index has at least the folder that is called after it, and all in that (None).
    """
    found, damaged = dict[Path, set[str] | None](), list[Path]()
    for path in _in(parent):
        try:
            if is_part(path.name) or not path.is_file() or not index.is_index(path, missing_ok=False):
                continue
            stored = find(path)
            places = {resolved(one.parent) for one in stored.subfiles}
        except (MpiioExtError, OSError):
            if _may_be_index(path):
                damaged.append(path)
                found[path.with_name(path.name + FOLDER)] = None
            continue
        for place in places:
            if (names := found.setdefault(place, set())) is not None:
                names.add(stored.ident)
    return found, damaged


def _may_be_index(path: Path) -> bool:
    """Return whether what cannot be read may be an index; a link that leads where nobody may look is none of here."""
    try:
        return stat.S_ISREG((status := path.stat()).st_mode) and status.st_size <= index.MOST_BYTES
    except FileNotFoundError:
        return False
    except OSError:
        try:
            path.readlink()
        except OSError:
            return True
        return False


def _ident(path: Path) -> str:
    return path.name.partition(".")[0]


def _subfiles(folder: Path) -> tuple[dict[Path, os.stat_result], list[Path]]:
    """Return what in a folder is called as subfiles are, and what else is in it."""
    entries = {path: path.lstat() for path in _in(folder)}
    own = {path: status for path, status in entries.items()
           if is_subfile_name(path.name) and stat.S_ISREG(status.st_mode)}  # fmt: skip
    return own, [path for path in entries if path not in own and path.name != MOVING]


def _examined(folder: Path, damaged: list[Path], *, held: bool) -> list[Orphan]:
    """Return what a folder without an index is; nothing, where it is none of subfiles."""
    own, foreign = _subfiles(folder)
    if foreign and not own:
        return []
    why = f"{named([path.name for path in foreign])} in it {'is' if len(foreign) == 1 else 'are'} no subfile"
    kept = f"kept: {why}" if foreign else _why_kept(folder, own, [*own.values(), folder.stat()], damaged, held=held)
    return [Orphan(folder, tuple(own), _bytes(own), shared=False, kept=kept)]


def _others(folder: Path, known: set[str] | None, damaged: list[Path], *, held: bool) -> list[Orphan]:
    """Return what is of no index in a folder that indexes speak of; `known`: their IDs."""
    found = dict[str, dict[Path, os.stat_result]]()
    if known is None:
        return []
    for path, status in _subfiles(folder)[0].items():
        if _ident(path) not in known:
            found.setdefault(_ident(path), {})[path] = status
    return [Orphan(folder, tuple(own), _bytes(own), shared=True,
                   kept=_why_kept(folder, own, [*own.values()], damaged, held=held))
            for own in found.values()]  # fmt: skip


def _bytes(own: dict[Path, os.stat_result]) -> int:
    return sum(status.st_size for status in own.values())


def _first(own: Iterable[Path]) -> list[Path]:
    """Return the first ones of subfiles, which carry the locks."""
    return [path for path in own if path.name.split(".")[1] == "0"]


def _why_kept(
    folder: Path, own: Iterable[Path], changed: Sequence[os.stat_result], damaged: list[Path], *, held: bool
) -> str:
    """Return why an orphan is not removed; "": it can be."""
    if os.path.lexists(moving := folder / MOVING):
        text = None
        with contextlib.suppress(OSError):
            text = read_plain(moving, _MOST_MOVING)
        words = text.decode("utf-8", "replace").strip() if text else f"{moving} says which one"
        return f"kept: a command was killed; start it again: {words}"
    for ending, command in _JOURNALS.items():
        file = folder.with_name(folder.name.removesuffix(FOLDER))
        if os.path.lexists(journal := beside(file, ending)):
            return f"kept: `{command}` was killed, or is at work; start it again, or remove {journal} to give it up"
    if damaged:
        return (f"kept: they may be of {damaged[0]}, which is a damaged index, or cannot be read: mend it, or move it "
                "elsewhere")  # fmt: skip
    if not held and any(is_guarded(path, readers=True) for path in _first(own)):
        return "kept: a program writes or reads it"
    if time.time() - max(max(status.st_mtime, status.st_ctime) for status in changed) < YOUNG_S:
        return "kept: it was changed in the last minute, and a program may just be making it"
    return ""


def remove_orphan(orphan: Orphan) -> None:
    """Remove the subfiles of an orphan, and the folder, if nothing else is in it.

    Raises
    ------
    SubfilesError
        Something else is in it, or somebody is at work on it.
    FileSystemError
        Something cannot be removed.
    """
    if orphan.kept:
        raise SubfilesError(str(orphan))
    with contextlib.ExitStack() as stack:
        free = [stack.enter_context(taken(path)) for path in _first(orphan.subfiles)]
        if not all(free) or orphan not in orphans(orphan.folder, held=True):
            raise SubfilesError(f"{orphan.place}: kept: something has changed in it, or it has an index by now")
        try:
            for path in orphan.subfiles:
                path.unlink()
            if not orphan.shared:
                orphan.folder.rmdir()
        except OSError as error:
            raise cannot_write(orphan.folder, error) from error
