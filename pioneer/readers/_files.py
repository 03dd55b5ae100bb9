"""Files of raw traces: their bytes, plain or compressed, piece by piece, and numbers in their names.

Problem.    A trace ends in the middle when its program died: also a compressed one, whose last block is then missing.
Algorithm.  Files that begin as gzip does are inflated member by member, so that everything before the damage is read;
            the damage is counted in the source's Loss. By python-isal where it is installed, which takes a third of the
            time that zlib takes: inflating is then no longer most of reading.
Guarantee.  Memory does not depend on the size of a file, except of lists, which have the limit of logs.
"""

from __future__ import annotations

import itertools
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from mpiio_ext.common.limits import limit_text, most_bytes
from mpiio_ext.pioneer.table import Source

inflate: Any  # zlib, or what has its interface
try:
    from isal import isal_zlib as inflate
except ImportError:
    inflate = zlib

#: Fits into a core's cache together with what is made of it: inflating into pieces of 4 MiB takes twice as long.
CHUNK_BYTES = 1 << 19
_GZIP = b"\x1f\x8b"


def files_of(paths: Sequence[Path], suffixes: Sequence[str] = ()) -> list[Path]:
    """Return the files of paths, of folders those inside, by name; `suffixes`: of folders only files that end so."""
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        inside = sorted(item for item in path.iterdir() if item.is_file())
        found += [item for item in inside if not suffixes or item.name.endswith(tuple(suffixes))]
    return found


def _inflate(pieces: Iterator[bytes], source: Source, file_bytes: int) -> Iterator[bytes]:
    inflater = inflate.decompressobj(wbits=31)
    begun = False
    place = 0  # in the compressed file, of what comes behind `piece`
    for read in pieces:
        piece = read
        place += len(read)
        while piece:
            if inflater.eof:
                if not piece.strip(b"\0"):  # padding
                    break
                inflater = inflate.decompressobj(wbits=31)
            begun = True
            try:
                out = inflater.decompress(piece, CHUNK_BYTES)
            except inflate.error as error:
                source.loss.truncated = True
                begin = place - len(piece)
                source.loss.unread_bytes += file_bytes - begin
                source.loss.add(
                    source.lines,
                    f"not gzip from here on: {error}; behind byte {begin:,} of the "
                    f"compressed file, {file_bytes - begin:,} bytes were not read",
                    count=0,
                )
                return
            if out:
                yield out
            piece = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
    if begun and not inflater.eof:
        source.loss.truncated = True
        source.loss.add(
            source.lines,
            f"truncated: the compressed file ends at byte {place:,} and its end is missing; how much is missing is "
            "unknown",
            count=0,
        )


def _raw(path: Path, chunk_bytes: int) -> Iterator[bytes]:
    with path.open("rb", buffering=0) as file:
        while piece := file.read(chunk_bytes):
            yield piece


def chunks_of(path: Path, source: Source, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
    """Yield the contents of a file, decompressed if it is gzip; the source's Loss counts damage.

    Raises
    ------
    OSError
        The file cannot be read.
    """
    with path.open("rb") as file:
        compressed = file.read(2) == _GZIP
        file_bytes = os.fstat(file.fileno()).st_size
    pieces = _raw(path, chunk_bytes // 4 if compressed else chunk_bytes)
    yield from _inflate(pieces, source, file_bytes) if compressed else pieces


def content_of(path: Path) -> bytes:
    """Return the contents of a file that lists something, which its reader needs at once.

    Raises
    ------
    OSError
        The file cannot be read.
    ValueError
        The file is larger than the limit of logs.
    """
    found, count, most = [], 0, most_bytes(path.stat().st_size)
    for piece in chunks_of(path, Source(path=str(path))):
        found.append(piece)
        count += len(piece)
        if count > most:
            raise ValueError(f"{path}: {limit_text(most, path.stat().st_size)}")
    return b"".join(found)


def parquet_of(path: Path, **options: bool) -> pq.ParquetFile:
    """Return a Parquet file whose row groups are read on demand.

    By default PyArrow reads ahead, and has in memory the bytes read from all parts of a file until the last part is
    processed. With a buffer (`buffer_size`) PyArrow would not even have a row group in memory. But then PyArrow trusts
    the sizes of pages in a damaged file, and allocates gigabytes.

    Parameters
    ----------
    path : the file.
    options : further ones of `pyarrow.parquet.ParquetFile`.

    Raises
    ------
    OSError, pyarrow.ArrowInvalid
        The file cannot be read, or is no complete Parquet file.
    """
    return pq.ParquetFile(path, pre_buffer=False, **options)


def begin_of(path: Path, count: int = 4096) -> bytes:
    """Return the first bytes of a file, decompressed; nothing if it cannot be read."""
    try:
        if not path.is_file():
            return b""
        for piece in chunks_of(path, Source(path=str(path)), 4 * count):
            return piece[:count]
    except OSError:
        return b""
    return b""


def samples(files: Sequence[Path], count: int = 1) -> list[Path]:
    """Return the first `count` files that have something in them: a process may leave one with a bracket alone."""
    return list(itertools.islice((item for item in files if begin_of(item).strip(b"[] \t\r\n")), count))


def number_rank(numbers: Sequence[int]) -> list[int] | None:
    """Return numbers as ranks when they are 0, 1, ... n - 1, each once, or from 1 on; else None."""
    for first in (0, 1):
        if sorted(numbers) == list(range(first, first + len(numbers))):
            return [number - first for number in numbers]
    return None


def ranks_by_name(names: Sequence[str]) -> list[int] | None:
    """Return the ranks in the names of files, a number in the same place of all, 0 to n - 1; None: there are none."""
    if len(names) < 2:
        return None
    parts = [re.split(r"(\d+)", name) for name in names]
    if len({len(part) for part in parts}) != 1:
        return None
    for place in range(1, len(parts[0]), 2):
        others = {tuple(part[:place:2]) for part in parts}
        if len(others) != 1:
            return None
        ranks = number_rank([int(part[place]) for part in parts])
        if ranks is not None:
            return ranks
    return None
