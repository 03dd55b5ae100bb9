"""Other indexes of the same subfiles: copies of an index, hard links to it, and what they say of its state.

Problem. Who opens a file for writing puts a new index in the place of the old one. A copy, and the old file that a hard
link still names, go on to say that all is whole while the bytes change, and after the program was killed.

Algorithm. All files of the folders of index and subfiles are looked at; those that lead to the same first subfile share
them all. The one that the folder is called after is the original, and its state counts; else one does that says later
that the file is written. A program that writes now is asked for by its lock.

Guarantees. As far as these two folders reach. A folder that has not changed for two seconds is read once.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
import time
from pathlib import Path

from mpiio_ext.common.files import read_plain
from mpiio_ext.errors import MpiioExtError
from mpiio_ext.subfiles import index
from mpiio_ext.subfiles.findings import Finding, in_lines, named
from mpiio_ext.subfiles.folders import is_subfile_name, others_in
from mpiio_ext.subfiles.index import FOLDER, MOST_BYTES, MOST_SIZE, WRITING, SubfilesError
from mpiio_ext.subfiles.journal import is_part
from mpiio_ext.subfiles.openers import is_written, state_words
from mpiio_ext.subfiles.stored import Stored, examine, find, size_of

_SETTLED_NS = 2_000_000_000
#: Lines of a refusal.
_MOST_SAID = 10


def original(stored: Stored) -> Path | None:
    """Return the file of whose index this one is a copy or hard link, if that is still there: it has the subfiles."""
    folder = stored.subfiles[0].parent
    if stored.layout != "own" or not folder.name.endswith(FOLDER):
        return None
    first = folder.with_name(folder.name.removesuffix(FOLDER))
    if not index.is_index(first):
        return None
    if first.resolve() == stored.index_path.resolve():
        return None
    with contextlib.suppress(MpiioExtError):
        return first if index.read(first)[0].ident == stored.ident else None
    return None


def others(stored: Stored) -> list[Path]:
    """Return the other indexes that have the subfiles of a file; links by name (symbolic ones) are none."""
    own = stored.index_path.resolve()
    if stored.layout != "own":
        return []
    folders = dict.fromkeys((own.parent, stored.subfiles[0].parent.parent))
    found = [path for folder in folders for path in _read(folder).get(_first(stored), ())]
    return [path for path in found if path not in (own, own.with_name(f".{own.name}.staging"))]


def refuse_shared(stored: Stored) -> None:
    """Raise `SubfilesError` where another index has the subfiles, too: it would be left without them."""
    if (first := original(stored)) is not None:
        what = "hard link to" if first.samefile(stored.index_path) else "copy of"
        raise SubfilesError(f"{stored.path}: is a {what} the index of {first}, whose subfiles these are: remove the "
                            f"{what.rpartition(' ')[0]} by itself, or merge it to another name (-o)")  # fmt: skip
    if more := others(stored):
        raise SubfilesError(f"{stored.path}: its subfiles are those of {named(list(map(str, more)))}, too, by a copy "
                            "of its index or a hard link: remove that by itself before (rm)")  # fmt: skip


def not_whole(stored: Stored) -> str | None:
    """Return why a file is not whole although its index says so: by what another index says; None: nothing is wrong."""
    if stored.state == WRITING:
        return None
    first, more = original(stored), others(stored)
    if first is None and not more:
        return None
    with contextlib.suppress(MpiioExtError, OSError):  # it has gone meanwhile
        since_ns = stored.index_path.stat().st_mtime_ns
        for path in dict.fromkeys([first] if first is not None else more):
            other = find(path)
            if other.state == WRITING and (path == first or path.stat().st_mtime_ns >= since_ns):
                return f"has the subfiles of {path}, which {state_words(other)}"
    is_first = stored.subfiles[0].parent.name == stored.index_path.resolve().name + FOLDER
    if not is_first and is_written(stored):
        return f"has the subfiles of {first or more[0]}, which {state_words(stored)}"
    return None


def foreign_in(stored: Stored) -> list[Path]:
    """Return what is in the folder of a file's subfiles and of no index beside it."""
    first = _first(stored)
    known = {one.name.partition(".")[0] for one in _read(first.parent.parent) if one.parent == first.parent}
    return [path for path in others_in(stored) if not is_subfile_name(path.name)
            or path.name.partition(".")[0] not in known - {stored.ident}]  # fmt: skip


def problems(stored: Stored) -> tuple[list[int], list[Finding]]:
    """Return the lengths of the subfiles, and all that is wrong: state and subfiles."""
    lengths, wrong = examine(stored)
    words = state_words(stored) if stored.state == WRITING else not_whole(stored)
    if words is not None:
        wrong.insert(0, Finding("writing", stored.path, words))
    return lengths, wrong


def usable(stored: Stored, *, unfinished: bool = False) -> tuple[list[int], int]:
    """Return the lengths of the subfiles, and the size of the logical file.

    Raises
    ------
    SubfilesError
        A subfile is missing, short, too long or foreign, or the file is still written, as an index of it says.
    """
    if stored.state == WRITING and (not unfinished or is_written(stored)):
        raise SubfilesError(f"{stored.path}: {state_words(stored)}")
    if (words := not_whole(stored)) is not None:
        raise SubfilesError(f"{stored.path}: {words}")
    lengths, wrong = examine(stored)
    if wrong:
        lines = in_lines(stored, wrong)
        more = [] if len(lines) <= _MOST_SAID else [f"{stored.path}: and {len(lines) - _MOST_SAID} more; "
                                                    "`mpiio-ext subfiles check` names them all"]  # fmt: skip
        raise SubfilesError("\n".join([*lines[:_MOST_SAID], *more]))
    size = size_of(stored, lengths)
    if size > MOST_SIZE:
        raise SubfilesError(f"{stored.path}: has bytes at {size:,}, which is more than a file can have")
    return lengths, size


def speaking_of(folder: Path, ident: str) -> tuple[list[Path], list[Path], list[Path]]:
    """Return what in a folder has an id: indexes, and those that have not got their name; and what may be an index.

    Damaged ones are among the first. The last cannot be read, and a process of this user may have made them.

    Raises
    ------
    OSError
        The folder cannot be read.
    """
    found, parts, unread = list[Path](), list[Path](), list[Path]()
    for path in sorted(folder.iterdir()):
        try:
            text = read_plain(path.resolve(), MOST_BYTES) if index.is_index(path, missing_ok=False) else None
            if ident.encode() in (text or b""):
                (parts if is_part(path.name) else found).append(path)
        except OSError:
            if not is_part(path.name) and _may_be_own(path):
                unread.append(path)
    return found, parts, unread


def _may_be_own(path: Path) -> bool:
    """Return whether a file that cannot be read may be an index that a process of this user has made."""
    with contextlib.suppress(OSError):  # it has gone
        status = path.lstat()
        return (stat.S_ISREG(status.st_mode) and status.st_size <= MOST_BYTES
                and os.geteuid() in (status.st_uid, 0))  # fmt: skip
    return False


def _first(stored: Stored) -> Path:
    """Return the path of the first subfile, by which a file is known."""
    return stored.subfiles[0].parent.resolve() / stored.subfiles[0].name


def _read(folder: Path) -> dict[Path, list[Path]]:
    """Return the indexes in a folder by their first subfiles; none, if it cannot be read."""
    try:
        changed_ns = folder.stat().st_mtime_ns
        settled = time.time_ns() - changed_ns > _SETTLED_NS
        return _settled(folder, changed_ns) if settled else _by_first(folder)
    except OSError:
        return {}


@functools.lru_cache(maxsize=4)
def _settled(folder: Path, changed_ns: int) -> dict[Path, list[Path]]:  # noqa: ARG001 # it is of the key
    return _by_first(folder)


def _by_first(folder: Path) -> dict[Path, list[Path]]:
    found = dict[Path, list[Path]]()
    for path in sorted(folder.iterdir()):
        with contextlib.suppress(MpiioExtError, OSError):
            if stat.S_ISREG(path.lstat().st_mode) and not is_part(path.name) and index.is_index(path):
                found.setdefault(_first(find(path)), []).append(path)
    return found
