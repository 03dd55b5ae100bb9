"""Copies the bytes of a logical file: out of its subfiles, or into them; in threads, holes left out.

Problem. A merge is to take no longer than a copy of the same bytes, and no time where a file system can share blocks.
Files of a petabyte have few bytes in them. A copy that is killed has to know what was done.

Algorithm. Parts are done by threads, and told to the journal. A row is one unit of each subfile; a part is rows, in the
order of the logical file, or `PART` bytes of one subfile where a row is larger. Of each run of data the pieces of a
unit are copied within the system. Blocks are shared (FICLONERANGE) where the file system can and places fit its blocks,
else copied by copy_file_range, else read and written. What a system refuses once is not tried again. Where a unit is
small, windows of rows are put together in memory; zeros of a whole `HOLE` become holes.

Guarantees. Only parts that are done are in the journal. What one end has no data for is a hole at the other, or zeros.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import os
import struct
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

from mpiio_ext.common.progress import Advance
from mpiio_ext.errors import FileSystemError
from mpiio_ext.subfiles.index import Striping
from mpiio_ext.subfiles.journal import Journal
from mpiio_ext.subfiles.openers import READ, WRITE
from mpiio_ext.subfiles.stored import Files, extents, of_rows, read_at, read_rows, write_at

#: Bytes of a part of a copy, of a window in memory, and of zeros that become a hole.
PART, WINDOW, HOLE = 16 << 20, 4 << 20, 64 << 10
#: Units from so many bytes on are copied one by one.
_LARGE = 64 << 10
#: Rows above so many bytes are not put together in memory; above so many they are in several parts.
_MOST_ROW, _MOST_IN_PART = 16 << 20, 256 << 20
#: ioctl FICLONERANGE: source, its place, bytes, place in the target.
_CLONE, _RANGE = 0x4020940D, struct.Struct("=qQQQ")
#: What says that a system call cannot be used between these files.
_CANNOT = {errno.EXDEV, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.EPERM, errno.ENOTTY, errno.ETXTBSY}
#: Threads at most where nobody says how many; file systems of one kernel, where one thread at a time writes to a file.
_MOST_THREADS, _LOCAL = 8, {"btrfs", "ext2", "ext3", "ext4", "f2fs", "tmpfs", "xfs"}
METHODS = ("reflink", "copy_file_range", "read and write")


def processors() -> int:
    """Return how many threads work where nobody says how many."""
    return min(len(os.sched_getaffinity(0)), _MOST_THREADS)


def writers(folder: Path) -> int:
    """Return how many threads write to one file of a folder where nobody says how many."""
    device = folder.stat().st_dev
    name = f"{os.major(device)}:{os.minor(device)}"
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            words = line.split()
            if words[2] == name:
                return 1 if words[words.index("-") + 1] in _LOCAL else processors()
    return processors()


class StoppedError(Exception):
    """Another thread has failed."""


class Copier:
    """Copies ranges between files by the best way that works."""

    def __init__(self, block: int, unit: int) -> None:
        self._block = block
        self._method = 0 if unit % block == 0 else 1
        self.used: set[int] = set()

    @property
    def method(self) -> str:
        """How bytes were copied, in words."""
        return " and ".join(METHODS[one] for one in sorted(self.used)) or "nothing to copy"

    def copy(self, source: int, place: int, target: int, to: int, length: int) -> None:
        """Copy bytes of one file to another.

        Raises
        ------
        OSError
            They cannot be copied, or the source has become shorter.
        """
        while length:
            method = self._method
            try:
                done = (self._clone, self._within, self._through)[method](source, place, target, to, length)
            except OSError as error:
                if method == 2 or error.errno not in _CANNOT:
                    raise
                self._method = max(self._method, method + 1)
                continue
            place, to, length = place + done, to + done, length - done

    def _clone(self, source: int, place: int, target: int, to: int, length: int) -> int:
        """Share blocks; what is no whole block is copied."""
        whole = length - length % self._block
        if place % self._block or to % self._block or not whole:
            return self._within(source, place, target, to, min(length, self._block - place % self._block))
        fcntl.ioctl(target, _CLONE, _RANGE.pack(source, place, whole, to))
        self.used.add(0)
        return whole

    def _within(self, source: int, place: int, target: int, to: int, length: int) -> int:
        done = os.copy_file_range(source, target, length, place, to)
        if not done:
            raise OSError(errno.EIO, "has become shorter while it was read")
        self.used.add(1)
        return done

    def _through(self, source: int, place: int, target: int, to: int, length: int) -> int:
        data = os.pread(source, min(length, 1 << 20), place)
        if not data:
            raise OSError(errno.EIO, "has become shorter while it was read")
        write_at(target, memoryview(data), to)
        self.used.add(2)
        return len(data)


@dataclasses.dataclass(slots=True, kw_only=True)
class Copy:
    """A copy between a plain file and subfiles.

    Attributes
    ----------
    striping, size : of the logical file.
    plain : path of the plain file.
    subfiles : their paths.
    out : the plain file is written; else the subfiles are.
    journal : what is done.
    done : parts that were done before.
    advance : moves the bar, by bytes.
    threads : how many.
    stop : is set when a thread has failed.
    seen : of each source, where it was last asked for data, and where that begins and ends.
    """

    striping: Striping
    size: int
    plain: Path
    subfiles: tuple[Path, ...]
    out: bool
    journal: Journal
    done: set[str]
    advance: Advance
    threads: int
    copier: Copier = dataclasses.field(init=False)
    stop: threading.Event = dataclasses.field(default_factory=threading.Event)
    lock: threading.Lock = dataclasses.field(default_factory=threading.Lock)
    seen: dict[int, tuple[int, int, int]] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        block = os.statvfs(self.plain.parent).f_bsize
        self.copier = Copier(block, self.striping.unit if self.striping.count > 1 else block)

    @property
    def by_rows(self) -> bool:
        """Whether units are so small that rows are put together in memory."""
        row = self.striping.unit * self.striping.count
        return self.striping.count > 1 and self.striping.unit < _LARGE and row <= _MOST_ROW

    @property
    def has_rows(self) -> bool:
        """Whether a part is rows of all subfiles."""
        row = self.striping.unit * self.striping.count
        return self.by_rows or (self.striping.count > 1 and row <= _MOST_IN_PART)

    @property
    def part(self) -> int:
        """Bytes of a subfile in a part."""
        if not self.has_rows:
            return PART
        return max(PART // (self.striping.unit * self.striping.count), 1) * self.striping.unit

    def run(self) -> None:
        """Copy what is not done.

        Raises
        ------
        FileSystemError
            Bytes cannot be copied; the journal knows those that are.
        """
        if not self.has_rows:
            self._in_threads(self._parts(), self._pieces)
            return
        rows = self._rows if self.by_rows else self._units
        with Files(self.subfiles, READ if self.out else WRITE) as files:
            self._in_threads(self._parts(), lambda part: rows(files, part))

    def _in_threads(self, parts: Generator[tuple[int, int]], work: Callable[[tuple[int, int]], None]) -> None:
        """Do parts by this thread and others, each of which takes the next one when it is done with one."""
        errors: list[BaseException] = []

        def some() -> None:
            try:
                while not self.stop.is_set():
                    with self.lock:
                        part = next(parts, None)
                    if part is None:
                        return
                    if (name := f"{part[0]} {part[1]}") not in self.done:
                        work(part)
                        self.journal.add(name)
            except BaseException as error:
                errors.append(error)
                self.stop.set()

        others = [threading.Thread(target=some) for _ in range(self.threads - 1)]
        with contextlib.closing(parts):
            for thread in others:
                thread.start()
            some()
            for thread in others:
                thread.join()
        for error in errors:
            if not isinstance(error, StoppedError):
                raise error

    def _parts(self) -> Generator[tuple[int, int]]:
        """Yield the parts in which there is data: number of the subfile, or 0 for rows of all, and of the part."""
        known = {(0 if self.has_rows else number, part) for number, begin, end in self._data()
                 for part in range(begin // self.part, (end - 1) // self.part + 1)}  # fmt: skip
        yield from sorted(known, key=lambda found: (found[1], found[0]))  # about in the order of the logical file

    def _data(self) -> Iterator[tuple[int, int, int]]:
        """Yield where data is: number of a subfile, and two places there; also where there may be none between."""
        if self.out:
            for number, path in enumerate(self.subfiles):
                with _opened(path) as descriptor:
                    for begin, end in extents(descriptor, 0, os.fstat(descriptor).st_size):
                        yield number, begin, end
            return
        unit, count = self.striping.unit, self.striping.count
        with _opened(self.plain) as descriptor:
            for begin, end in extents(descriptor, 0, self.size):
                first, last = begin // unit, (end - 1) // unit
                if last - first >= count:  # each subfile has some of it
                    low, high = first // count * unit, (last // count + 1) * unit
                    for number in range(count):
                        yield number, low, min(high, self.striping.length(number, self.size))
                    continue
                for one in range(first, last + 1):
                    number, place = self.striping.place(max(begin, one * unit))
                    yield number, place, place + min(end, (one + 1) * unit) - max(begin, one * unit)

    def _pieces(self, part: tuple[int, int]) -> None:
        """Copy a part of a subfile."""
        number, begin = part[0], part[1] * self.part
        source, target = (self.subfiles[number], self.plain) if self.out else (self.plain, self.subfiles[number])
        with _opened(source) as reads, _opened(target, WRITE) as writes:
            end = min(begin + self.part, self.striping.length(number, self.size))
            self._copy_runs(reads, writes, number, begin, end)

    def _units(self, files: Files, part: tuple[int, int]) -> None:
        """Copy the units of rows, in the order of the logical file; what is done for each of them alone is little."""
        moved = 0
        with _opened(self.plain, WRITE if self.out else READ) as plain:
            for logical, number, place, length in self._planned(files, plain, part[1] * self.part):
                if self.stop.is_set():
                    raise StoppedError
                with files.use(number) as subfile:
                    try:
                        if self.out:
                            self.copier.copy(subfile, place, plain, logical, length)
                        else:
                            self.copier.copy(plain, logical, subfile, place, length)
                    except OSError as error:
                        ends = self.subfiles[number], self.plain
                        raise _of(error, *(ends if self.out else ends[::-1])) from error
                moved += length
                if moved >= PART:
                    self._advance(moved)
                    moved = 0
        self._advance(moved)

    def _advance(self, length: int) -> None:
        with self.lock:
            self.advance(by=length)

    def _planned(self, files: Files, plain: int, first: int) -> list[tuple[int, int, int, int]]:
        """Return the data of a part of rows: place in the logical file, subfile, place there and bytes; by units."""
        unit, count, found = self.striping.unit, self.striping.count, list[tuple[int, int, int, int]]()
        if not self.out:
            for low, high in self._known(-1, plain, first * count, min((first + self.part) * count, self.size)):
                begin = low
                while begin < high:
                    length = min(high, (begin // unit + 1) * unit) - begin
                    found.append((begin, *self.striping.place(begin), length))
                    begin += length
            return found
        for number in range(count):
            end = min(first + self.part, self.striping.length(number, self.size))
            with files.use(number) if first < end else contextlib.nullcontext(-1) as subfile:
                for low, high in self._known(number, subfile, first, end):
                    begin = low
                    while begin < high:
                        length = min(high, (begin // unit + 1) * unit) - begin
                        found.append((self.striping.logical(number, begin), number, begin, length))
                        begin += length
        return sorted(found)

    def _copy_runs(self, reads: int, writes: int, number: int, begin: int, end: int) -> None:
        """Copy the runs of data of a range of a subfile."""
        files = self.subfiles[number], self.plain
        for place, to, length in self._runs(reads, number, begin, end):
            if self.stop.is_set():
                raise StoppedError
            with _told(*(files if self.out else files[::-1])):
                self.copier.copy(reads, place, writes, to, length)
            with self.lock:
                self.advance(by=length)

    def _runs(self, reads: int, number: int, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Yield place in the source, place in the target and bytes of each run of data in a unit."""
        unit = self.striping.unit if self.striping.count > 1 else 1 << 62
        if self.out:
            for low, high in self._known(number, reads, begin, end):
                while low < high:
                    length = min(high, (low // unit + 1) * unit) - low
                    yield low, self.striping.logical(number, low), length
                    low += length
            return
        while begin < end:
            length = min(end, (begin // unit + 1) * unit) - begin
            logical = self.striping.logical(number, begin)
            for low, high in self._known(-1, reads, logical, logical + length):
                yield low, begin + low - logical, high - low
            begin += length

    def _known(self, source: int, descriptor: int, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """As `extents`, but each run of data is asked for once: tmpfs, for one, looks at each page up to its end."""
        most = self.size if source < 0 else self.striping.length(source, self.size)
        while begin < end:
            asked, low, high = self.seen.get(source, (0, 0, 0))
            if not asked <= begin < high:
                low, high = next(extents(descriptor, begin, most), (most, most))
                self.seen[source] = begin, low, high
            if low >= end:
                return
            yield max(low, begin), min(high, end)
            begin = high

    def _rows(self, files: Files, part: tuple[int, int]) -> None:
        """Copy rows of all subfiles."""
        row_bytes = self.striping.unit * self.striping.count
        rows = max(WINDOW // row_bytes, 1)
        first = part[1] * self.part // self.striping.unit
        last = min(first + self.part // self.striping.unit, -(-self.size // row_bytes))
        with _opened(self.plain, WRITE if self.out else READ) as plain:
            for row in range(first, last, rows):
                if self.stop.is_set():
                    raise StoppedError
                some = min(rows, last - row)
                begin = row * row_bytes
                with _told(self.subfiles[0], self.plain):
                    if self.out:
                        length = min(some * row_bytes, self.size - begin)
                        _write_data(plain, read_rows(files, self.striping, row, some), begin, length)
                    elif any(self._known(-1, plain, begin, min(begin + some * row_bytes, self.size))):
                        self._scatter(files, row, read_at(plain, begin, some * row_bytes))
                self.copier.used.add(2)
                with self.lock:
                    self.advance(by=min(some * row_bytes, self.size - begin))

    def _scatter(self, files: Files, row: int, buffer: bytearray) -> None:
        """Write rows to the subfiles."""
        place = row * self.striping.unit
        for number in range(self.striping.count):
            data = of_rows(self.striping, number, buffer)
            length = min(len(data), self.striping.length(number, self.size) - place)
            with files.use(number) as descriptor:
                _write_data(descriptor, data, place, length)


def _write_data(descriptor: int, data: bytearray, place: int, length: int) -> None:
    """Write the first `length` bytes of data, but for zeros of whole holes."""
    view, begin = memoryview(data), 0
    zeros = bytes(HOLE)
    while begin < length:
        end = begin
        while end < length and data[end : min(end + HOLE, length)] != zeros[: min(HOLE, length - end)]:
            end = min(end + HOLE, length)
        if end > begin:
            write_at(descriptor, view[begin:end], place + begin)
        begin = end + HOLE if end < length else end


@contextlib.contextmanager
def _opened(path: Path, flags: int = READ) -> Iterator[int]:
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        raise FileSystemError(error.errno, f"cannot be opened: {error.strerror}", str(path)) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _told(source: Path, target: Path) -> Iterator[None]:
    """Let an error of a copy name the file that it is about."""
    try:
        yield
    except FileSystemError:
        raise
    except OSError as error:
        raise _of(error, source, target) from error


def _of(error: OSError, source: Path, target: Path) -> FileSystemError:
    """Return the error of a copy."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    words = f"cannot be {'written' if full else 'copied'}: {error.strerror}"
    return FileSystemError(error.errno, words, str(target if full else source))
