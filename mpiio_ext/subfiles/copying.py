"""Copies the bytes of a logical file out of its subfiles into one plain file; in threads, holes left out.

Problem. A merge is to take no longer than a copy of the same bytes, and no time where a file system can share blocks.
Files of a petabyte have few bytes in them.

Algorithm. Threads take runs of data of the subfiles, about in the order of the logical file, and copy them unit by
unit: blocks are shared (FICLONERANGE) where the file system can and units are whole blocks; where it cannot, bytes are
copied by copy_file_range, and where that cannot, they are read and written.

Guarantees. A part of a subfile without data is a hole, or zeros.
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
from mpiio_ext.subfiles.stored import close_all, extents, open_all

#: Bytes of a part of a copy.
_PART = 16 << 20
#: ioctl FICLONERANGE: source, its place, bytes, place in the target.
_CLONE, _RANGE = 0x4020940D, struct.Struct("=qQQQ")
#: Errors by which a system call refuses to work between these files.
_CANNOT = {errno.EXDEV, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.EPERM, errno.ENOTTY, errno.ETXTBSY}
_MOST_THREADS = 8

#: A part of a copy: number of the subfile, and two places there.
Part = tuple[int, int, int]
#: Copies bytes: from, to, how many, place there, place here; returns how many it has copied.
Copy = Callable[[int, int, int, int, int], int]


def copy_out(stored: Stored, size: int, plain: Path, target: int, advance: Callable[[int], None]) -> str:
    """Copy the bytes of a logical file to a plain one of its size, which is open; return how, in words.

    Raises
    ------
    OSError
        Bytes cannot be copied.
    """
    sources, shared = open_all(stored.subfiles), os.fstatvfs(target).f_bsize
    ways: list[tuple[str, Copy, int]] = [
        ("reflink", os.copy_file_range, shared),
        ("copy_file_range", os.copy_file_range, 0),
        ("read and write", _read_and_write, 0),
    ]
    if stored.striping.count > 1 and stored.striping.unit % shared:
        del ways[0]
    try:
        for method, copy, block in ways:

            def piece(part: Part, copy: Copy = copy, block: int = block) -> int:
                number, begin, end = part
                with _about(stored.subfiles[number], plain):
                    _copy_run(stored.striping, number, (sources[number], target), (begin, end), copy, block)
                return end - begin

            try:
                _in_threads(_pieces(stored, sources, size), piece, advance)
            except OSError as error:
                if method == ways[-1][0] or error.errno not in _CANNOT:
                    raise
            else:
                break
        return method
    finally:
        close_all(sources)


def _read_and_write(source: int, target: int, count: int, begin: int, to: int) -> int:
    return os.pwrite(target, os.pread(source, count, begin), to)


def _in_threads(parts: Iterator[Part], work: Callable[[Part], int], advance: Callable[[int], None]) -> None:
    """Do parts by threads, few at a time, so that an error ends all soon."""
    threads = min(len(os.sched_getaffinity(0)), _MOST_THREADS)
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        while batch := list(itertools.islice(parts, 8 * threads)):
            for length in pool.map(work, batch):
                advance(length)


def _pieces(stored: Stored, sources: Sequence[int], size: int) -> Iterator[Part]:
    """Return runs of data by parts, about in the order of the logical file."""
    found = []
    for number, descriptor in enumerate(sources):
        for begin, end in extents(descriptor, 0, stored.striping.length(number, size)):
            cuts = [begin, *range((begin // _PART + 1) * _PART, end, _PART), end]
            found += [(number, *cut) for cut in itertools.pairwise(cuts)]
    return iter(sorted(found, key=lambda part: (part[1] // _PART, part)))


def _copy_run(
    striping: Striping, number: int, files: tuple[int, int], run: tuple[int, int], copy: Copy, block: int
) -> None:
    """Copy a run of data of a subfile, unit by unit; if `block` is not 0, whole blocks of so many bytes are shared."""
    (source, target), (begin, end), unit = files, run, striping.unit if striping.count > 1 else run[1]
    while begin < end:
        to, length = striping.logical(number, begin), min(end, (begin // unit + 1) * unit) - begin
        rest = begin % block if block else 0
        if block and not rest and length >= block:
            length -= length % block
            fcntl.ioctl(target, _CLONE, _RANGE.pack(source, begin, length, to))
        else:
            length = copy(source, target, min(length, block - rest) if block else length, begin, to)
            if not length:
                raise OSError(errno.EIO, "has become shorter while it was read")
        begin += length


@contextlib.contextmanager
def _about(source: Path, target: Path) -> Iterator[None]:
    """Let an error of a copy name the file that it is about."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        words = f"cannot be {'written' if full else 'copied'}: {error.strerror}"
        raise FileSystemError(error.errno, words, str(target if full else source)) from error
