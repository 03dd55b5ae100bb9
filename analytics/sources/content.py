"""Contents of files that may be compressed, cut or damaged: the readable part, and the mistakes of the rest.

Problem. A file of a monitoring tool may be gzip that ends early, and a copy may have damaged its middle. Its last line
may be cut in the middle of a number that is then still a number.

Algorithm. gzip is unpacked piece by piece, so that everything before the damage is kept. A line with bytes that are no
text is not given to a parser, and neither is a last line without an end, where the tool ends every line.

Guarantees. Every line that is left out is noted with its number. No more than `MOST_BYTES` are unpacked.
"""

from __future__ import annotations

import contextlib
import csv
import json
import sqlite3
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mpiio_ext.analytics.sources.base import Head
from mpiio_ext.analytics.sources.records import Problems, SourceError

#: Unpacked contents of one file, at most: a day of a large site is some 100 MB.
MOST_BYTES = 4 << 30
_HEAD_BYTES = 64 << 10
_PIECE = 1 << 20
_GZIP, _SQLITE = b"\x1f\x8b", b"SQLite format 3\0"
_SHOWN_MEMBERS = 16
_TAR_BLOCK = 512


def _member(view: memoryview, at: int, most: int) -> tuple[bytes, int, str]:
    """Unpack one member of gzip up to so many bytes; return it, its end, and its mistake."""
    one = zlib.decompressobj(wbits=31)
    out: list[bytes] = []
    size = 0
    fed: Any = b""
    while not one.eof and size < most:
        if not len(fed):
            fed = view[at : at + _PIECE]
            at += len(fed)
        try:
            found = one.decompress(fed, min(_PIECE, most - size))
        except zlib.error as error:
            return b"".join(out), at, f"damaged gzip: {error}"
        if not len(fed) and not found and not one.eof:
            return b"".join(out), at, "gzip that ends early"
        fed = one.unconsumed_tail
        out.append(found)
        size += len(found)
    return b"".join(out), at - len(one.unused_data), ""


def _unpacked(data: bytes, most: int) -> tuple[bytes, str]:
    """Return the unpacked bytes of gzip (of several members), up to so many, and the mistake of the rest."""
    view = memoryview(data)
    out: list[bytes] = []
    size = at = 0
    while at < len(view):
        if bytes(view[at : at + len(_GZIP)]) != _GZIP:
            left = bytes(view[at:])
            zeros = not left.strip(b"\0")  # tapes and some copies fill up with them
            return b"".join(out), "" if zeros else f"{len(left):,} bytes behind the end of the gzip data"
        found, at, wrong = _member(view, at, most - size)
        out.append(found)
        size += len(found)
        if wrong or size >= most:
            return b"".join(out), wrong
    return b"".join(out), ""


def unpack(data: bytes, problems: Problems, most: int = MOST_BYTES) -> bytes:
    """Return `data`, unpacked if it is gzip; mistakes are noted.

    Raises
    ------
    SourceError
        Nothing of it can be unpacked, or it is larger than `most`.
    """
    if not data.startswith(_GZIP):
        return data
    out, wrong = _unpacked(data, most)
    if wrong and not out:
        raise SourceError(problems.file, 0, wrong)
    if len(out) >= most:
        raise SourceError(problems.file, 0, f"more than {most:,} bytes unpacked; split it")
    if wrong:
        problems.add(0, f"{wrong}; what stands before is read")
    return out


def read_bytes(path: Path, problems: Problems) -> bytes:
    """Return the content of a file, unpacked if it is gzip.

    Raises
    ------
    SourceError
        It cannot be read, or is empty.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SourceError(str(path), 0, f"cannot be read: {error.strerror}") from error
    if not data:
        raise SourceError(str(path), 0, "empty")
    return unpack(data, problems)


def lines_of(data: bytes, problems: Problems, *, ended: bool = True) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text with their numbers, from 1; those that are no text are noted and left out.

    Parameters
    ----------
    ended : the tool ends every line, so that a last one without an end has been cut and is left out.
    """
    lines = data.split(b"\n")
    last = lines.pop()
    for number, line in enumerate(lines, 1):
        yield from _text(number, line, problems)
    if last:
        if ended:
            problems.add(len(lines) + 1, "cut: the line has no end")
        else:
            problems.add(len(lines) + 1, "the last line has no end: it may be cut", 0)
            yield from _text(len(lines) + 1, last, problems)


def _text(number: int, line: bytes, problems: Problems) -> Iterator[tuple[int, str]]:
    try:
        text = line.decode("utf-8").removesuffix("\r")
    except UnicodeDecodeError as error:
        problems.add(number, f"bytes that are no text, from column {error.start + 1}")
        return
    if text.isprintable() or text.replace("\t", "").isprintable():
        yield number, text
    else:
        problems.add(number, "control characters, which no tool prints")


def members_of(path: Path, data: bytes, problems: Problems) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the files in a tar archive; a damaged end is noted.

    Parameters
    ----------
    path : of the archive, for messages.
    data : the archive, unpacked.
    """
    import io

    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for member in archive:
                if not member.isreg():
                    continue
                if member.size > MOST_BYTES:
                    problems.add(0, f"{member.name}: {member.size:,} bytes are too many")
                    continue
                file = archive.extractfile(member)
                content = b"" if file is None else file.read()
                if len(content) < member.size:
                    problems.add(0, f"the archive ends inside {member.name}")
                yield member.name, content
            end = archive.offset
    except (tarfile.TarError, EOFError, OSError, ValueError, OverflowError, UnicodeError) as error:
        problems.add(0, f"{path.name}: damaged archive: {error}")
        return
    if data[end : end + _TAR_BLOCK] != bytes(_TAR_BLOCK):  # an archive ends with blocks of zeros
        problems.add(0, f"{path.name}: cut, or damaged: no file of the archive can be read from byte {end:,}")


# ---- recognising -----------------------------------------------------------------------------------------------------


def read_only(path: Path) -> sqlite3.Connection:
    """Open an SQLite database for reading, without leaving anything beside it."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)


@contextlib.contextmanager
def database(path: Path) -> Iterator[sqlite3.Connection]:
    """Open an SQLite database for reading; bytes that are no text become backslashes.

    Raises
    ------
    SourceError
        It is none, or damaged.
    """
    try:
        with contextlib.closing(read_only(path)) as base:
            base.text_factory = lambda data: data.decode("utf-8", "backslashreplace")
            yield base
    except (sqlite3.Error, UnicodeDecodeError) as error:  # a message of SQLite may have damaged names in it
        raise SourceError(str(path), 0, f"a damaged database, or none: {error}") from error


def _tables(path: Path) -> frozenset[str]:
    try:
        with database(path) as base:
            return frozenset(str(row[0]) for row in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'"))
    except SourceError:
        return frozenset()


def _members(data: bytes) -> tuple[str, ...]:
    names = []
    for name, _ in members_of(Path("head"), data, Problems("head")):
        names.append(name)
        if len(names) == _SHOWN_MEMBERS:
            break
    return tuple(names)


def head_of(path: Path) -> Head:
    """Return the beginning of a file, unpacked, with the tables of a database and the first files of an archive.

    Raises
    ------
    SourceError
        It cannot be read, or is empty.
    """
    if path.is_dir():
        return Head(path, b"")
    try:
        with path.open("rb") as file:
            data = file.read(_HEAD_BYTES)
    except OSError as error:
        raise SourceError(str(path), 0, f"cannot be read: {error.strerror or error}") from error
    if not data:
        raise SourceError(str(path), 0, "empty")
    if data.startswith(_GZIP):
        data = _unpacked(data, _HEAD_BYTES)[0]
    members = _members(data) if data[257:262] == b"ustar" else ()
    return Head(path, data, _tables(path) if data.startswith(_SQLITE) else frozenset(), members)


def read_json(path: Path, problems: Problems) -> object:
    """Return the JSON document in a file.

    Raises
    ------
    SourceError
        It is none: with the line at which it stops being one.
    """
    data = read_bytes(path, problems)
    try:
        found: object = json.loads(data.decode("utf-8"))
    except json.JSONDecodeError as error:
        text = f"is not JSON from column {error.colno}, or cut: {error.msg}"
        raise SourceError(str(path), error.lineno, text) from error
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise SourceError(str(path), line, "bytes that are no text") from error
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits; a thousand brackets
        raise SourceError(str(path), 1, f"is not JSON: {error}") from error
    return found


def first_lines(text: str, most: int = 20) -> Sequence[str]:
    """Return the first lines of a text that are not empty."""
    return [line for line in text.splitlines() if line.strip()][:most]


def csv_values(text: str, separator: str = ",") -> list[str]:
    """Return the values of a line of CSV.

    Raises
    ------
    ValueError
        Its quotes do not match.
    """
    try:
        return next(csv.reader([text], delimiter=separator, strict=True), [])
    except csv.Error as error:
        raise ValueError(f"no CSV: {error}") from error
