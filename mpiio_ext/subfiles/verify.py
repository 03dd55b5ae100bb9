"""Compares a plain file with subfiles, byte by byte; where neither has data nothing is read."""

from __future__ import annotations

import concurrent.futures
import os
from collections.abc import Iterator
from pathlib import Path

from mpiio_ext.subfiles.copying import WINDOW
from mpiio_ext.subfiles.index import Striping, SubfilesError
from mpiio_ext.subfiles.openers import opened
from mpiio_ext.subfiles.stored import Files, extents, read_at, read_range


def verify(plain: Path, subfiles: tuple[Path, ...], striping: Striping, size: int, threads: int) -> None:
    """Compare a plain file with what the subfiles have.

    Raises
    ------
    SubfilesError
        They differ; the message has the first place that was seen.
    """
    if (length := plain.stat().st_size) != size:
        raise SubfilesError(f"{plain}: has {length:,} B, and the subfiles {size:,} B")
    windows = sorted({*_of_plain(plain, size), *_of_subfiles(subfiles, striping)})
    with Files(subfiles) as files, opened(plain) as descriptor, concurrent.futures.ThreadPoolExecutor(threads) as pool:

        def compare(window: int) -> None:
            begin = window * WINDOW
            length = min(WINDOW, size - begin)
            ours, theirs = read_at(descriptor, begin, length), read_range(files, striping, begin, length)
            if ours != theirs:
                at = begin + next(place for place in range(length) if ours[place] != theirs[place])
                raise SubfilesError(f"{plain}: byte {at:,} is not that of {subfiles[striping.place(at)[0]]}")

        for begin in range(0, len(windows), 1024):
            for _ in pool.map(compare, windows[begin : begin + 1024]):
                pass


def _of_plain(plain: Path, size: int) -> Iterator[int]:
    with opened(plain) as descriptor:
        for begin, end in extents(descriptor, 0, size):
            yield from range(begin // WINDOW, (end - 1) // WINDOW + 1)


def _of_subfiles(subfiles: tuple[Path, ...], striping: Striping) -> Iterator[int]:
    """Yield the windows of the logical file in which a subfile has data, often more than once."""
    for number, path in enumerate(subfiles):
        with opened(path) as descriptor:
            for begin, end in extents(descriptor, 0, os.fstat(descriptor).st_size):
                low, high = striping.logical(number, begin), striping.logical(number, end - 1)
                if striping.unit * striping.count <= WINDOW:
                    yield from range(low // WINDOW, high // WINDOW + 1)
                    continue
                while begin < end:
                    stop = min(end, (begin // striping.unit + 1) * striping.unit)
                    low, high = striping.logical(number, begin), striping.logical(number, stop - 1)
                    yield from range(low // WINDOW, high // WINDOW + 1)
                    begin = stop
