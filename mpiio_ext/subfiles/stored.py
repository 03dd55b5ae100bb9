"""A logical file that is stored as several: its subfiles, their problems, and its bytes.

Problem. Before a process reads, merges or removes such a file, it has to know that each subfile exists, complete, and
belongs to this file. A folder of subfiles can have been copied in part, and an index can name anything. An opener that
writes puts a new index in the place of the old one. A copy of the file, and the old file that a hard link still names,
continue to state that all is complete while the bytes change. And if one of them is removed, the other has lost its
subfiles.

Algorithm. Each subfile is opened without following a link, and has to be a plain file that is named after the id of
the index and its number. Where the index has a size, each subfile has exactly its share of that; else the size of the
logical file follows from the lengths of the subfiles. The indexes in the folders of index and subfiles are read; while
two of them have one id and one folder of subfiles, the file is refused.

Guarantees. A hole, and what is behind the end of a subfile, reads as zeros. An error names the subfile.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import re
import resource
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from mpiio_ext.common.files import read_plain
from mpiio_ext.errors import FileSystemError, MpiioExtError
from mpiio_ext.subfiles import index
from mpiio_ext.subfiles.index import FOLDER, MOST_BYTES, MOST_SIZE, WRITING, Stored, Striping, SubfilesError
from mpiio_ext.subfiles.openers import NotPlainError, is_written, open_plain, opened, state_words

#: Indexes that have not got their name yet: that the library makes, and of a file that is staged.
_PART = re.compile(r"\..+(\.index-[0-9a-f]{16}|\.staging)", re.DOTALL)
#: Lines of a refusal.
_MOST_LINES = 10


class Finding(NamedTuple):
    """A problem: "missing", "unreadable", "short", "too long", "foreign", "shared", "writing"; its place; words."""

    kind: str
    path: Path
    words: str

    def __str__(self) -> str:
        return f"{self.path}: {self.words}"


def find(path: Path) -> Stored:
    """Return the file that has an index at a path.

    Raises
    ------
    SubfilesError, FileSystemError
        There is no index, it is damaged, or it cannot be read.
    """
    found = index.read(path)
    return dataclasses.replace(found, subfiles=_places(path.resolve(), found.subfiles))


def _places(target: Path, names: Sequence[Path]) -> tuple[Path, ...]:
    """Return where subfiles are: in the folder that is called after the index, if the first is there; else as named.

    A user who has renamed index and folder has not changed the text of the index.
    """
    named, own = tuple(target.parent / name for name in names), target.with_name(target.name + FOLDER)
    if named[0].parent == own or not os.path.lexists(own / named[0].name):
        return named
    return tuple(own / path.name for path in named)


def _examine(stored: Stored) -> tuple[list[int], list[Finding]]:
    """Return the lengths of the subfiles, and all that is wrong but the state; a missing one has length 0."""
    if not os.path.lexists(stored.folder):
        words = (
            f"the folder {stored.folder} that this index names is missing: was one of the two moved or renamed? "
            "Put it back: beside the index, called after it"
        )
        return [0] * len(stored.subfiles), [Finding("missing", stored.path, words)]
    lengths, wrong, seen = list[int](), list[Finding](), dict[tuple[int, int], Path]()
    for number, path in enumerate(stored.subfiles):
        length = 0
        if not stored.is_named(number):
            words = f"is a subfile of another file: subfile {number} is called {stored.ident}.{number}"
            wrong.append(Finding("foreign", path, words))
        try:
            with opened(path) as descriptor:
                status = os.fstat(descriptor)
            length = status.st_size
            other = seen.setdefault((status.st_dev, status.st_ino), path)
            if other is not path:
                wrong.append(Finding("foreign", path, f"is the same file as {other}"))
            elif stored.size is not None:
                wrong += _wrong_length(path, length, stored.striping.length(number, stored.size), stored.size)
        except FileNotFoundError:
            wrong.append(Finding("missing", path, "is missing"))
        except NotPlainError as error:
            wrong.append(Finding("foreign", path, str(error.strerror)))
        except OSError as error:
            wrong.append(Finding("unreadable", path, f"cannot be read: {error.strerror}"))
        lengths.append(length)
    return lengths, wrong


def _wrong_length(path: Path, length: int, share: int, size: int) -> list[Finding]:
    """Return the problem with the length of a subfile: it has to be exactly its share of the size."""
    kind, word = ("short", "short") if length < share else ("too long", "long")
    words = f"is too {word}: {length:,} B; its share of {size:,} B is {share:,} B"
    return [] if length == share else [Finding(kind, path, words)]


def size_of(stored: Stored, lengths: Sequence[int]) -> int:
    """Return the bytes of the logical file, by the lengths of its subfiles where the index does not have them."""
    if stored.size is not None:
        return stored.size
    return max(stored.striping.end(number, length) for number, length in enumerate(lengths))


def refuse_shared(stored: Stored) -> None:
    """Raise `SubfilesError` where another index in the folders of index and subfiles has the subfiles, too."""
    own, place = stored.path.resolve(), stored.folder.resolve()
    for folder in dict.fromkeys((own.parent, place.parent)):
        with contextlib.suppress(OSError):  # a user who cannot read it cannot list others
            for path in sorted(folder.iterdir()):
                if path != own and _has(path, stored.ident, place):
                    raise SubfilesError(
                        f"{stored.path}: its subfiles are those of {path}, too, a copy of its index or "
                        "a hard link: remove the one that is not the file (plain rm)"
                    )


def _has(path: Path, ident: str, place: Path) -> bool:
    """Return whether a file is an index with this id and folder of subfiles; symbolic links are none."""
    with contextlib.suppress(MpiioExtError, OSError):  # damaged, or it has gone
        if not stat.S_ISREG(path.lstat().st_mode) or _PART.fullmatch(path.name) or not index.is_index(path):
            return False
        return ident.encode() in (read_plain(path, MOST_BYTES) or b"") and find(path).folder.resolve() == place
    return False


def problems(stored: Stored) -> tuple[list[int], list[Finding]]:
    """Return the lengths of the subfiles, and all that is wrong: state, other indexes and subfiles."""
    lengths, wrong = _examine(stored)
    if stored.state == WRITING:
        wrong.insert(0, Finding("writing", stored.path, state_words(stored)))
    try:
        refuse_shared(stored)
    except SubfilesError as error:
        wrong.insert(0, Finding("shared", stored.path, str(error).removeprefix(f"{stored.path}: ")))
    return lengths, wrong


def usable(stored: Stored, *, unfinished: bool = False) -> int:
    """Return the size of the logical file.

    Raises
    ------
    SubfilesError
        A subfile is missing, short, too long or foreign, the file is still written, or another index has its subfiles.
    """
    lengths, wrong = problems(stored)
    if unfinished and not is_written(stored):
        wrong = [one for one in wrong if one.kind != "writing"]
    if wrong:
        lines = [str(one) for one in wrong[:_MOST_LINES]]
        if (more := len(wrong) - _MOST_LINES) > 0:
            lines.append(f"{stored.path}: and {more} more; `mpiio-ext subfiles check` names them all")
        raise SubfilesError("\n".join(lines))
    size = size_of(stored, lengths)
    if size > MOST_SIZE:
        raise SubfilesError(f"{stored.path}: has bytes at {size:,}, which is more than a file can have")
    return size


def foreign_in(stored: Stored) -> list[str]:
    """Return the names in the folder of a file's subfiles that are no subfiles."""
    known = {path.name for path in stored.subfiles}
    with contextlib.suppress(OSError):
        if stored.folder.name.endswith(FOLDER):
            return sorted({path.name for path in stored.folder.iterdir()} - known)
    return []


def open_all(paths: Sequence[Path]) -> list[int]:
    """Return descriptors of subfiles, after a request for as many as the system permits.

    Raises
    ------
    FileSystemError
        A subfile cannot be opened; then all of them are closed.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 1 << 20)) if hard > 0 else soft, hard))
    found = list[int]()
    for path in paths:
        try:
            found.append(open_plain(path))
        except OSError as error:
            close_all(found)
            raise FileSystemError(error.errno, f"cannot be opened: {error.strerror}", str(path)) from error
    return found


def close_all(descriptors: Sequence[int]) -> None:
    """Close them."""
    for descriptor in descriptors:
        os.close(descriptor)


def read_range(descriptors: Sequence[int], striping: Striping, offset: int, length: int) -> bytearray:
    """Return bytes of the logical file; bytes that were never written are zeros."""
    found, end = bytearray(), offset + max(length, 0)
    while offset < end:
        number, place = striping.place(offset)
        some = end - offset if striping.count == 1 else min(end - offset, striping.unit - offset % striping.unit)
        found += _read_at(descriptors[number], place, some)
        offset += some
    return found


def _read_at(descriptor: int, place: int, length: int) -> bytearray:
    """Return bytes of a file; behind its end they are zeros."""
    found, done = bytearray(length), 0
    view = memoryview(found)
    while done < length and (some := os.preadv(descriptor, [view[done:]], place + done)):
        done += some
    return found


def extents(descriptor: int, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield where data is between two places of a file; a file system that knows no holes has data everywhere."""
    while begin < end:
        try:
            start = os.lseek(descriptor, begin, os.SEEK_DATA)
            stop = os.lseek(descriptor, start, os.SEEK_HOLE)
        except OSError as error:
            if error.errno != errno.ENXIO:  # there is no more
                yield begin, min(end, os.fstat(descriptor).st_size)
            return
        if start >= end:
            return
        yield start, min(stop, end)
        begin = stop
