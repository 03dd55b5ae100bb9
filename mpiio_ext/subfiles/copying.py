"""Copies the bytes of a logical file out of its subfiles into one plain file; in threads, holes left out.

Problem. A merge is to take no longer than a copy of the same bytes, and no time where a file system can share blocks.
Files of a petabyte have few bytes in them.

Algorithm. Threads take runs of data of the subfiles, about in the order of the logical file, and copy them by units
within the system: blocks are shared (FICLONERANGE) where the file system can and units are whole blocks; where it
cannot, all is copied by copy_file_range. Where no file system does that, or units are small, windows of the logical
file are put together in memory; zeros of a whole `_HOLE` become holes.

Guarantees. What has no data in a subfile is a hole, or zeros.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import errno
import fcntl
import itertools
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from mpiio_ext.errors import FileSystemError
from mpiio_ext.subfiles.index import Stored, Striping
from mpiio_ext.subfiles.stored import close_all, extents, open_all, read_range

#: Bytes of a part of a copy, of a window in memory, and of zeros that become a hole.
_PART, _WINDOW, _HOLE = 16 << 20, 4 << 20, 64 << 10
#: Units from so many bytes on are copied one by one.
_LARGE = 64 << 10
#: ioctl FICLONERANGE: source, its place, bytes, place in the target.
_CLONE, _RANGE = 0x4020940D, struct.Struct("=qQQQ")
#: What says that a system call cannot be used between these files.
_CANNOT = {errno.EXDEV, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.EPERM, errno.ENOTTY, errno.ETXTBSY}
_MOST_THREADS = 8

#: A part of a copy: number of the subfile, and two places there; or of the logical file.
Part = tuple[int, int, int]


def copy_out(stored: Stored, size: int, plain: Path, target: int, advance: Callable[[int], None]) -> str:
    """Copy the bytes of a logical file to a plain one of its size, which is open; return how, in words.

    Raises
    ------
    OSError
        Bytes cannot be copied.
    """
    sources = open_all(stored.subfiles)
    try:
        for method, block in _ways(stored.striping, os.fstatvfs(target).f_bsize):

            def piece(part: Part, block: int = block) -> int:
                number, begin, end = part
                with _about(stored.subfiles[number], plain):
                    _copy_run(stored.striping, number, sources[number], target, (begin, end), block)
                return end - begin

            try:
                _in_threads(_pieces(stored, sources, size), piece, advance)
            except OSError as error:
                if error.errno not in _CANNOT:
                    raise
            else:
                return method

        def window(part: Part) -> int:
            _, begin, end = part
            with _about(stored.folder, plain):
                _write_data(target, read_range(sources, stored.striping, begin, end - begin), begin)
            return end - begin

        _in_threads(_windows(stored, sources, size), window, advance)
        return "read and write"
    finally:
        close_all(sources)


def _ways(striping: Striping, block: int) -> Iterator[tuple[str, int]]:
    """Yield how the pieces of units can be copied within the system, and the bytes of the blocks that are shared."""
    if striping.count == 1 or striping.unit >= _LARGE:
        if striping.count == 1 or striping.unit % block == 0:
            yield "reflink", block
        yield "copy_file_range", 0


def _in_threads(parts: Iterator[Part], work: Callable[[Part], int], advance: Callable[[int], None]) -> None:
    """Do parts by threads, few at a time, so that an error ends all soon."""
    threads = min(len(os.sched_getaffinity(0)), _MOST_THREADS)
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        while batch := list(itertools.islice(parts, 8 * threads)):
            for length in pool.map(work, batch):
                advance(length)


def _runs(stored: Stored, sources: Sequence[int], size: int) -> Iterator[Part]:
    """Yield where data is: number of a subfile, and two places there."""
    for number, descriptor in enumerate(sources):
        for begin, end in extents(descriptor, 0, stored.striping.length(number, size)):
            yield number, begin, end


def _pieces(stored: Stored, sources: Sequence[int], size: int) -> Iterator[Part]:
    """Return runs of data by parts, about in the order of the logical file."""
    found = []
    for number, begin, end in _runs(stored, sources, size):
        while begin < end:
            stop = min(end, (begin // _PART + 1) * _PART)
            found.append((number, begin, stop))
            begin = stop
    return iter(sorted(found, key=lambda part: (part[1] // _PART, part)))


def _windows(stored: Stored, sources: Sequence[int], size: int) -> Iterator[Part]:
    """Return the windows of the logical file in which a subfile has data."""
    known, striping = set[int](), stored.striping
    for number, begin, end in _runs(stored, sources, size):
        while begin < end:  # of a longer row each unit may be in another window
            short = striping.unit * striping.count <= _WINDOW
            stop = end if short else min(end, (begin // striping.unit + 1) * striping.unit)
            low, high = striping.logical(number, begin), striping.logical(number, stop - 1)
            known.update(range(low // _WINDOW, high // _WINDOW + 1))
            begin = stop
    return ((0, one * _WINDOW, min((one + 1) * _WINDOW, size)) for one in sorted(known))


def _copy_run(striping: Striping, number: int, source: int, target: int, run: tuple[int, int], block: int) -> None:
    """Copy a run of data of a subfile, unit by unit; if `block` is not 0, whole blocks of so many bytes are shared."""
    (begin, end), unit = run, striping.unit if striping.count > 1 else run[1]
    while begin < end:
        to, length = striping.logical(number, begin), min(end, (begin // unit + 1) * unit) - begin
        rest = begin % block if block else 0
        if block and not rest and length >= block:
            length -= length % block
            fcntl.ioctl(target, _CLONE, _RANGE.pack(source, begin, length, to))
        else:
            length = os.copy_file_range(source, target, min(length, block - rest) if block else length, begin, to)
            if not length:
                raise OSError(errno.EIO, "has become shorter while it was read")
        begin += length


def _write_data(target: int, data: bytearray, place: int) -> None:
    """Write data, but for zeros of whole holes."""
    view, zeros = memoryview(data), bytes(_HOLE)
    for begin in range(0, len(data), _HOLE):
        some = view[begin : begin + _HOLE]
        while some and some != zeros[: len(some)]:
            done = os.pwrite(target, some, place + begin)
            some, begin = some[done:], begin + done


@contextlib.contextmanager
def _about(source: Path, target: Path) -> Iterator[None]:
    """Let an error of a copy name the file that it is about."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        words = f"cannot be {'written' if full else 'copied'}: {error.strerror}"
        raise FileSystemError(error.errno, words, str(target if full else source)) from error
