"""A logical file that is stored as several: its subfiles, what is wrong with them, and its bytes.

Problem. Who reads, merges or removes such a file has to know first that each subfile is there, whole, and of this file
and not of another. A folder of subfiles can have been copied in part, and an index can name anything.

Algorithm. Each subfile is opened without following a link, and has to be a plain file that is named after the id of
the index and its number. The size of the logical file follows from the lengths of the subfiles; the size that the
index has is compared with it. Bytes are read by one vectored read of each subfile, which puts them in their places;
units below `_FEW` bytes are put there by strides.

Guarantees. A hole, and what is behind the end of a subfile, reads as zeros. What is wrong names the subfile.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import errno
import os
import re
import resource
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from mpiio_ext.errors import FileSystemError
from mpiio_ext.subfiles import index
from mpiio_ext.subfiles.findings import Finding
from mpiio_ext.subfiles.index import FOLDER, WHOLE, Index, Striping
from mpiio_ext.subfiles.openers import READ, NotPlainError, open_plain, opened

#: Units below so many bytes are moved by strides.
_FEW = 256
#: Buffers of one vectored read, and descriptors that are left to others.
_MOST_PARTS, _OTHERS = 1024, 128


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A file that is stored as several, as its index has it.

    Attributes
    ----------
    path : the logical name; the index is there.
    index_path : the file that names the subfiles.
    index_text : its content.
    layout : whose: "own" or "hdf5".
    state : `WHOLE` or `WRITING`.
    striping : unit and count.
    size : bytes of the logical file; None where the index does not have it.
    ident : what all subfiles have in their names.
    subfiles : their paths, in their order.
    """

    path: Path
    index_path: Path
    index_text: bytes
    layout: str
    state: str
    striping: Striping
    size: int | None
    ident: str
    subfiles: tuple[Path, ...]

    def name_of(self, number: int) -> str:
        """Return what the last part of a subfile's path has to be, or begins with."""
        if self.layout == "hdf5":
            from mpiio_ext.subfiles import hdf5

            return hdf5.subfile_name(self.index_path.name, self.ident, number, self.striping.count)
        return f"{self.ident}.{number}"

    def is_named(self, number: int) -> bool:
        """Return whether a subfile has its name; a trial may be behind it, by which the library chooses a server."""
        rest = self.subfiles[number].name.removeprefix(name := self.name_of(number))
        whole = self.subfiles[number].name == name
        return whole or (self.layout == "own" and re.fullmatch(r"\.[1-9][0-9]?", rest) is not None)


def find(path: Path, layout: str = "own") -> Stored:
    """Return the file that has an index at a path.

    Raises
    ------
    SubfilesError, FileSystemError
        There is no index, it is damaged, or it cannot be read.
    """
    if layout == "hdf5":
        from mpiio_ext.subfiles import hdf5

        config = hdf5.find(path)
        return Stored(path=config.file, index_path=config.path, index_text=config.text, layout=layout, state=WHOLE,
                      striping=config.striping, size=None, ident=config.inode, subfiles=config.subfiles)  # fmt: skip
    found, text = index.read(path)
    target = path.resolve()
    return Stored(path=path, index_path=path, index_text=text, layout=layout, state=found.state,
                  striping=found.striping, size=found.size, ident=found.ident,
                  subfiles=_places(target, found.subfiles))  # fmt: skip


def _places(target: Path, names: Sequence[str]) -> tuple[Path, ...]:
    """Return where subfiles are: in the folder that is called after the index, if the first is there; else as named.

    Who has renamed index and folder has not changed the text of the index.
    """
    named, own = tuple(target.parent / name for name in names), target.with_name(target.name + FOLDER)
    if named[0].parent == own or not os.path.lexists(own / named[0].name):
        return named
    return tuple(own / path.name for path in named)


def index_of(stored: Stored, folder: Path | None) -> Index:
    """Return the index of a file whose subfiles are where they are; paths in `folder` are relative to it."""
    names = [path.relative_to(folder) if folder is not None and path.is_relative_to(folder) else path
             for path in stored.subfiles]  # fmt: skip
    return dataclasses.replace(index.parse(stored.index_text), subfiles=tuple(map(str, names)))


def examine(stored: Stored) -> tuple[list[int], list[Finding]]:
    """Return the lengths of the subfiles, and all that is wrong but the state; a missing one has length 0."""
    lengths, wrong, seen = [], [], dict[tuple[int, int], Path]()
    for number, path in enumerate(stored.subfiles):
        length = 0
        if not stored.is_named(number):
            wrong.append(Finding("foreign", path, f"is a subfile of another file, or another one of this: subfile "
                                 f"{number} is called {stored.name_of(number)}"))  # fmt: skip
        try:
            with opened(path) as descriptor:
                status = os.fstat(descriptor)
            length = status.st_size
            other = seen.setdefault((status.st_dev, status.st_ino), path)
            if other is not path:
                wrong.append(Finding("foreign", path, f"is the same file as {other}"))
        except FileNotFoundError:
            wrong.append(Finding("missing", path, "is missing"))
        except OSError as error:
            kind = "foreign" if isinstance(error, NotPlainError) else "unreadable"
            wrong.append(Finding(kind, path, f"{'' if kind == 'foreign' else 'cannot be read: '}{error.strerror}"))
        lengths.append(length)
    return lengths, [*wrong, *_wrong_lengths(stored, lengths, {finding.path for finding in wrong})]


def size_of(stored: Stored, lengths: Sequence[int]) -> int:
    """Return the bytes of the logical file by the lengths of its subfiles."""
    return max(stored.striping.end(number, length) for number, length in enumerate(lengths))


def _wrong_lengths(stored: Stored, lengths: Sequence[int], known: set[Path]) -> Iterator[Finding]:
    """Yield the subfiles that have not exactly their share of the size."""
    if stored.size is None:
        return
    for number, (path, length) in enumerate(zip(stored.subfiles, lengths, strict=True)):
        share = stored.striping.length(number, stored.size)
        if length != share and path not in known:
            kind = "short" if length < share else "too long"
            said = f"{_bytes(length)}; its share of {_bytes(stored.size)} is {_bytes(share)}"
            words = f"is too {kind.split()[-1]}: {said}"
            yield Finding(kind, path, words)


def _bytes(count: int) -> str:
    return f"{count:,} B"


class Files:
    """Descriptors of subfiles: opened when they are needed, and no more at a time than the system permits."""

    def __init__(self, paths: Sequence[Path], flags: int = READ) -> None:
        self._paths, self._flags, self._lock = paths, flags, threading.Lock()
        self._most = max(8, _descriptors() - _OTHERS)
        self._open: collections.OrderedDict[int, int] = collections.OrderedDict()
        self._used: collections.Counter[int] = collections.Counter()

    @contextlib.contextmanager
    def use(self, number: int) -> Iterator[int]:
        """Give the descriptor of a subfile to the block."""
        with self._lock:
            if number not in self._open:
                try:
                    self._open[number] = open_plain(self._paths[number], self._flags)
                except OSError as error:
                    words = f"cannot be opened: {error.strerror}"
                    raise FileSystemError(error.errno, words, str(self._paths[number])) from error
            self._open.move_to_end(number)
            self._used[number] += 1
            descriptor = self._open[number]
        try:
            yield descriptor
        finally:
            with self._lock:
                self._used[number] -= 1
                idle = [one for one in self._open if not self._used[one]] if len(self._open) > self._most else []
                for one in idle[: len(self._open) - self._most]:
                    os.close(self._open.pop(one))

    def close(self) -> None:
        """Close them."""
        with self._lock:
            for descriptor in self._open.values():
                os.close(descriptor)
            self._open.clear()

    def __enter__(self) -> Files:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _descriptors() -> int:
    """Return how many descriptors this process may have, after it has asked for all that it can get."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(hard if hard > 0 else 1 << 16, 1 << 16)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(wanted, soft), hard))
        soft = max(wanted, soft)
    return soft if soft > 0 else 1 << 16


def read_rows(files: Files, striping: Striping, row: int, rows: int) -> bytearray:
    """Return rows of the logical file; a row is one unit of each subfile."""
    unit, count = striping.unit, striping.count
    buffer = bytearray(rows * unit * count)
    for number in range(count):
        with files.use(number) as descriptor:
            if unit >= _FEW:
                _read_parts(descriptor, _parts(buffer, striping, number, rows), row * unit)
                continue
            data = read_at(descriptor, row * unit, rows * unit)
        for byte in range(unit):
            buffer[number * unit + byte :: unit * count] = data[byte::unit]
    return buffer


def of_rows(striping: Striping, number: int, buffer: bytearray) -> bytearray:
    """Return what a subfile has of rows of the logical file."""
    unit, count = striping.unit, striping.count
    rows = len(buffer) // (unit * count)
    if unit >= _FEW:
        return bytearray().join(_parts(buffer, striping, number, rows))
    data = bytearray(rows * unit)
    for byte in range(unit):
        data[byte::unit] = buffer[number * unit + byte :: unit * count]
    return data


def _parts(buffer: bytearray, striping: Striping, number: int, rows: int) -> list[memoryview]:
    view, unit = memoryview(buffer), striping.unit
    step = unit * striping.count
    return [view[row * step + number * unit : row * step + (number + 1) * unit] for row in range(rows)]


def _read_parts(descriptor: int, parts: list[memoryview], place: int) -> None:
    """Fill buffers from a place on; behind the end of the file they stay as they are."""
    parts = parts[::-1]
    while parts:
        some = parts[: -_MOST_PARTS - 1 : -1]
        done = os.preadv(descriptor, some, place)
        if done == 0:
            return
        place += done
        _leave(parts, done)


def _leave(parts: list[memoryview], done: int) -> None:
    """Take bytes that are done off the end of buffers in reverse order."""
    while done:
        if len(parts[-1]) <= done:
            done -= len(parts.pop())
        else:
            parts[-1] = parts[-1][done:]
            done = 0


def read_at(descriptor: int, place: int, length: int) -> bytearray:
    """Return bytes of a file; behind its end they are zeros."""
    buffer = bytearray(length)
    _read_parts(descriptor, [memoryview(buffer)], place)
    return buffer


def write_at(descriptor: int, data: memoryview, place: int) -> None:
    """Write bytes to a place, all of them."""
    while data:
        done = os.pwrite(descriptor, data, place)
        data, place = data[done:], place + done


def read_range(files: Files, striping: Striping, offset: int, length: int) -> bytearray:
    """Return bytes of the logical file; where nothing was written they are zeros."""
    unit, count = striping.unit, striping.count
    if length <= 0:
        return bytearray()
    first, last = offset // unit, (offset + length - 1) // unit
    if last - first >= count and unit * count <= length:
        row = first // count
        begin = row * unit * count
        return read_rows(files, striping, row, last // count - row + 1)[offset - begin : offset - begin + length]
    buffer = bytearray(length)
    view = memoryview(buffer)
    for one in range(first, last + 1):
        begin, end = max(offset, one * unit), min(offset + length, (one + 1) * unit)
        number, place = striping.place(begin)
        with files.use(number) as descriptor:
            _read_parts(descriptor, [view[begin - offset : end - offset]], place)
    return buffer


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
