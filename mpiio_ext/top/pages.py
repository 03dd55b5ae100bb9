"""The page of a rank: counters of a process of a running job, read while it continues.

Problem. The page changes while it is read, may be cut off, or may be a page of another version. Its process may be
stopped in the middle of a change.

Layout. ``csrc/core/live/mpiox_live.h``: a head of 4096 bytes, then an entry of 256 bytes for each open file. Numbers
have 8 bytes and are read whole. ``change`` is odd while files are opened or closed.

Guarantees. If the `change` of a page was even, and the same before and after the reading, its totals belong to one set
of files. If `change` stays odd (the process was stopped within a change), or changes for too long, the numbers are read
as they are, and a file that is being closed may count twice or not at all. Nothing is written, and the descriptor is
closed again. The size of a page is sealed, so that it cannot shrink under the reader.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import time
from dataclasses import dataclass
from pathlib import Path

from mpiio_ext._tools import lib
from mpiio_ext.errors import MpiioExtError

#: The result of readlink() for a page begins so.
NAME = "/memfd:mpiio_ext.live"
#: Of `mpiox_live.h`.
VERSION = 1
HEAD_BYTES = 4096
FILE_BYTES = 256
RUNNING, FINALIZED = 1, 2
_MAGIC = b"MPIOXLIV"
_MOST_FILES = 1 << 20
_FILE_WORDS = FILE_BYTES // 8
_COLUMNS = 5  # of an entry: counts, and when the file was opened
#: Time to wait for a change that does not end, or for changes that follow each other without a pause.
_STUCK_S, _PATIENCE_S = 0.01, 0.2
_F_GET_SEALS, _F_SEAL_SHRINK = 1034, 2
# Words of 8 bytes from the start.
_PID, _START_TICKS, _STARTED_NS = 3, 4, 5
_CHANGE, _OPENED, _OPEN, _UNLISTED, _REST = 8, 9, 10, 11, 12
# Words of 4 bytes.
_VERSION, _HEAD, _FILE, _FILES, _RANK, _RANKS, _STATE, _FILES_END = 2, 3, 4, 5, 12, 13, 14, 15
#: Texts: first byte and size.
_TEXTS = {
    "host": (128, 64),
    "program": (192, 64),
    "scheduler_job": (256, 64),
    "world": (320, 128),
    "command": (448, 512),
    "service": (960, 64),
    "arbiter": (1024, 256),
}
_PATH = 48


class PageError(MpiioExtError, ValueError):
    """Memory is no page of a rank that can be read; the message names the reason."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Bytes that were read and written, and the calls that did it."""

    read_bytes: int = 0
    written_bytes: int = 0
    reads: int = 0
    writes: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.read_bytes + other.read_bytes,
            self.written_bytes + other.written_bytes,
            self.reads + other.reads,
            self.writes + other.writes,
        )


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file that a rank has open: its path (the end of a long one, behind ``...``), since when, its calls."""

    path: str
    opened_unix_s: float
    counts: Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The contents of a rank's page.

    Attributes
    ----------
    pid, start_ticks : the process, in its own namespace, and when it was started (as ``/proc/PID/stat`` has it).
    started_unix_s : when the library was loaded; seconds of the Unix epoch.
    rank, ranks : in MPI_COMM_WORLD.
    finalized : MPI_Finalize is done.
    opened, open, unlisted : files so far, now, and of those the ones that `files` has no room for.
    total : of all files, also of closed ones.
    files : open ones.
    host, program, command : where and what it is.
    scheduler_job, world : the scheduler's and the launcher's name of the job; "": none.
    service, arbiter : the job's delegates, and the folder of the arbiter that it follows; "": none.
    """

    pid: int
    start_ticks: int
    started_unix_s: float
    rank: int
    ranks: int
    finalized: bool
    opened: int
    open: int
    unlisted: int
    total: Counts
    files: tuple[OpenFile, ...]
    host: str
    program: str
    command: str
    scheduler_job: str
    world: str
    service: str
    arbiter: str


def _text(content: bytes, first: int, size: int) -> str:
    """Return a text that can be shown: bytes that are no text must not reach a terminal."""
    raw = content[first : first + size].split(b"\0", 1)[0].decode("utf-8", "replace")
    return raw if raw.isprintable() else "".join(each if each.isprintable() else "?" for each in raw)


def _check(content: memoryview, halves: memoryview) -> None:
    """Refuse memory that is no page, or a page of an unknown version."""
    complete = halves[_STATE] in (RUNNING, FINALIZED)
    lib.mpiio_ext_fence()
    if bytes(content[:8]) != _MAGIC or not complete:
        raise PageError("it is no page of a rank, or not complete yet")
    if (halves[_VERSION], halves[_HEAD], halves[_FILE]) != (VERSION, HEAD_BYTES, FILE_BYTES):
        raise PageError(f"another version of the library made it (page {halves[_VERSION]}, this is {VERSION})")
    if not 0 <= halves[_FILES_END] <= halves[_FILES] <= _MOST_FILES:
        raise PageError("its numbers of files cannot be")
    if HEAD_BYTES + halves[_FILES] * FILE_BYTES != len(content):
        raise PageError("it is cut off")
    if not 0 <= halves[_RANK] < halves[_RANKS]:
        raise PageError("its rank cannot be")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copy:
    """A copy of a page at one moment: numbers, those of files by column, and texts, which are not decoded yet."""

    numbers: list[int]
    state: int
    columns: list[list[int]]
    content: bytes


def _copy(content: memoryview, words: memoryview, halves: memoryview) -> _Copy:
    """Return a copy, quickly: the page may change meanwhile. Numbers are copied whole."""
    end = HEAD_BYTES + min(halves[_FILES_END], halves[_FILES]) * FILE_BYTES
    columns = [words[HEAD_BYTES // 8 + column : end // 8 : _FILE_WORDS].tolist() for column in range(_COLUMNS)]
    return _Copy(
        numbers=words[: _REST + 4].tolist(), state=halves[_STATE], columns=columns, content=bytes(content[:end])
    )


def _calm(content: memoryview, words: memoryview, halves: memoryview) -> _Copy:
    """Return a copy that was made while no file was opened or closed, or the last one of some tries."""
    began_s, first = time.monotonic(), words[_CHANGE]
    while True:
        before = words[_CHANGE]
        lib.mpiio_ext_fence()
        found = _copy(content, words, halves)
        lib.mpiio_ext_fence()
        if before % 2 == 0 and words[_CHANGE] == before:
            return found
        waited_s = time.monotonic() - began_s
        if waited_s > (_STUCK_S if words[_CHANGE] == first else _PATIENCE_S):
            return found
        time.sleep(0.0)  # the process that changes it may have to run here


def _page(found: _Copy, rank: int, ranks: int) -> Page:
    files = tuple(
        OpenFile(
            _text(found.content, HEAD_BYTES + index * FILE_BYTES + _PATH, FILE_BYTES - _PATH),
            opened_ns / 1e9,
            Counts(*counts),
        )
        for index, (*counts, opened_ns) in enumerate(zip(*found.columns, strict=True))
        if opened_ns
    )
    numbers = found.numbers
    return Page(
        pid=numbers[_PID],
        start_ticks=numbers[_START_TICKS],
        started_unix_s=numbers[_STARTED_NS] / 1e9,
        rank=rank,
        ranks=ranks,
        finalized=found.state == FINALIZED,
        opened=numbers[_OPENED],
        open=numbers[_OPEN],
        unlisted=numbers[_UNLISTED],
        total=_sum(found),
        files=files,
        **{name: _text(found.content, first, size) for name, (first, size) in _TEXTS.items()},
    )


def _sum(found: _Copy) -> Counts:
    """Return the counters of all files together; free entries are 0."""
    rest = found.numbers[_REST : _REST + 4]
    return Counts(*(of_closed + sum(column) for of_closed, column in zip(rest, found.columns[:4], strict=True)))


def decode(content: memoryview) -> Page:
    """Return the contents of a page, once no write is in progress, or after some tries.

    Raises
    ------
    PageError
        The content is no page, is cut off, or is a page of another version.
    """
    if len(content) < HEAD_BYTES or len(content) % 8:
        raise PageError("it is cut off")
    words, halves = content.cast("q"), content.cast("i")
    with words, halves:
        _check(content, halves)
        return _page(_calm(content, words, halves), halves[_RANK], halves[_RANKS])


def read(path: Path | str, identity: tuple[int, int] | None = None) -> Page:
    """Return the page behind a descriptor of another process.

    Parameters
    ----------
    path : ``/proc/PID/fd/N``
    identity : device and inode that it must be; None: any.

    Raises
    ------
    PageError
        The file is no page, is cut off, or is a page of another version.
    OSError
        The file cannot be opened, for example because its process has ended.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        status = os.fstat(descriptor)
        if identity is not None and (status.st_dev, status.st_ino) != identity:
            raise PageError("it is another file now")
        seals = 0
        with contextlib.suppress(OSError):  # no memfd
            seals = fcntl.fcntl(descriptor, _F_GET_SEALS)
        if not seals & _F_SEAL_SHRINK:
            raise PageError("its size is not sealed")
        if status.st_size < HEAD_BYTES:
            raise PageError("it is cut off")
        mapping = mmap.mmap(descriptor, status.st_size, mmap.MAP_SHARED, mmap.PROT_READ)
    finally:
        os.close(descriptor)
    with mapping, memoryview(mapping) as content:
        return decode(content)
