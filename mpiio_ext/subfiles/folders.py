"""Folders of subfiles: what in them is of no file, and folders whose index is gone.

Problem. Who removes an index as any other file leaves terabytes that no command speaks of. A folder may also have what
a killed job, or a person, has put there.

Algorithm. All indexes of a folder are read, hidden ones of files that are staged included; a folder NAME.subfiles that
none of them speaks of is an orphan. It is removed if each file in it is called as subfiles are, nothing has changed in
it for a minute, no program writes it, and no command that was killed is to go on with it.

Guarantees. Of an orphan with anything else in it nothing is removed. A folder without subfiles is none.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import stat
import time
from pathlib import Path

from mpiio_ext.common.units import count_text
from mpiio_ext.errors import FileSystemError, MpiioExtError
from mpiio_ext.subfiles import index
from mpiio_ext.subfiles.findings import Finding, named
from mpiio_ext.subfiles.index import FOLDER, MOVING, WRITING, SubfilesError
from mpiio_ext.subfiles.journal import beside, cannot_write
from mpiio_ext.subfiles.stored import Stored, examine, find, is_guarded, state_words

#: How the journals of commands end, which go on with a folder that has no index (yet, or any more).
_JOURNALS = {".merging.journal": "merge --in-place", ".splitting.journal": "split"}
#: Seconds for which a folder that was changed is left alone: its subfiles are made before their index.
YOUNG_S = 60
_NAME = re.compile(r"[0-9a-f]{16}\.(0|[1-9][0-9]{0,3})(\.[1-9][0-9]?)?")


def is_subfile_name(name: str) -> bool:
    """Return whether subfiles are called so."""
    return _NAME.fullmatch(name) is not None


def others_in(stored: Stored) -> tuple[Path, ...]:
    """Return what is in the folder of a file's subfiles and none of them."""
    folder = stored.subfiles[0].parent
    if stored.layout != "own" or not folder.name.endswith(FOLDER) or not folder.is_dir():
        return ()
    known = {path.name for path in stored.subfiles}
    return tuple(path for path in sorted(folder.iterdir()) if path.name not in known)


def problems(stored: Stored) -> tuple[list[int], list[Finding]]:
    """Return the lengths of the subfiles, and all that is wrong: state and subfiles."""
    lengths, wrong = examine(stored)
    if stored.state == WRITING:
        wrong.insert(0, Finding("writing", stored.path, state_words(stored)))
    return lengths, wrong


def indexes(folder: Path) -> list[Path]:
    """Return the indexes in a folder.

    Raises
    ------
    FileSystemError
        It cannot be read.
    """
    return [path for path in _in(folder) if index.is_index(path)]


def _in(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise FileSystemError(error.errno, f"cannot be read: {error.strerror or error}", str(folder)) from error


@dataclasses.dataclass(frozen=True, slots=True)
class Orphan:
    """A folder of subfiles that no index speaks of.

    Attributes
    ----------
    folder : its path.
    subfiles : what is called as subfiles are.
    size : their bytes.
    kept : why it is not removed; "": it can be.
    """

    folder: Path
    subfiles: tuple[Path, ...]
    size: int
    kept: str

    def __str__(self) -> str:
        many = count_text(len(self.subfiles), "subfile")
        if self.kept:
            return f"{self.folder}: {many}, {self.size:,} B, without an index; {self.kept}"
        return (f"{self.folder}: {many}, {self.size:,} B, without an index: put it back if it was moved or renamed, or "
                "`mpiio-ext subfiles rm --orphans`")  # fmt: skip


def orphans(path: Path) -> list[Orphan]:
    """Return the orphans in a folder, or the one that a folder of subfiles is.

    Raises
    ------
    FileSystemError
        It cannot be read.
    """
    path = path.resolve()
    folders = [path] if path.name.endswith(FOLDER) else [one for one in _in(path) if one.name.endswith(FOLDER)]
    folders = [one for one in folders if one.is_dir() and not one.is_symlink()]
    spoken_of = {_folder_of(one) for one in indexes(folders[0].parent)} if folders else set[Path]()
    found = (_examined(one) for one in folders if one not in spoken_of)
    return [one for one in found if one is not None]


def _folder_of(path: Path) -> Path:
    """Return the folder of subfiles that an index speaks of; a damaged one has its own."""
    with contextlib.suppress(MpiioExtError):
        return find(path).subfiles[0].parent.resolve()
    return path.with_name(path.name + FOLDER)


def _examined(folder: Path) -> Orphan | None:
    """Return what a folder without an index is; None: none of subfiles."""
    entries = _in(folder)
    status = {path: path.lstat() for path in entries}
    own = tuple(path for path in entries if is_subfile_name(path.name) and stat.S_ISREG(status[path].st_mode))
    foreign = [path for path in entries if path not in own and path.name != MOVING]
    if foreign and not own:
        return None
    return Orphan(folder, own, sum(status[path].st_size for path in own), _why_kept(folder, own, foreign))


def _why_kept(folder: Path, own: tuple[Path, ...], foreign: list[Path]) -> str:
    """Return why an orphan is not removed; "": it can be."""
    if foreign:
        return f"kept: {named([path.name for path in foreign])} in it {'is' if len(foreign) == 1 else 'are'} no subfile"
    if (folder / MOVING).exists():
        words = (folder / MOVING).read_text(encoding="utf-8", errors="replace").strip()
        return f"kept: a command was killed; start it again: {words}"
    for ending, command in _JOURNALS.items():
        file = folder.with_name(folder.name.removesuffix(FOLDER))
        if beside(file, ending).exists():
            return f"kept: `{command}` was killed, or is at work; start it again"
    if any(is_guarded(path) for path in own if path.name.split(".")[1] == "0"):
        return "kept: a program writes it"
    if time.time() - folder.stat().st_mtime < YOUNG_S:
        return "kept: it was changed in the last minute, and a program may just be making it"
    return ""


def remove_orphan(orphan: Orphan) -> None:
    """Remove the subfiles of an orphan, and the folder.

    Raises
    ------
    SubfilesError
        Something else is in it, or somebody is at work on it.
    FileSystemError
        Something cannot be removed.
    """
    if orphan.kept:
        raise SubfilesError(str(orphan))
    if orphan not in orphans(orphan.folder):
        raise SubfilesError(f"{orphan.folder}: kept: something has changed in it, or it has an index by now")
    try:
        for path in orphan.subfiles:
            path.unlink()
        orphan.folder.rmdir()
    except OSError as error:
        raise cannot_write(orphan.folder, error) from error
