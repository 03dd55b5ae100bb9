"""Contents of files that may be compressed, cut or damaged: the readable part, and the mistakes of the rest.

Problem. A copy may have damaged a file of a monitoring tool. Its last line may be cut in the middle of a number that is
then still a number.

Algorithm. The opener unpacks what stands before a damage. A line with bytes that are no text is not given to a parser,
and neither is a last line without an end, where the tool ends every line.

Guarantees. Every line that is left out is noted with its number. The limits are those of the opener.
"""

from __future__ import annotations

import contextlib
import csv
import json
import sqlite3
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from mpiio_ext.analytics.sources.base import Head
from mpiio_ext.analytics.sources.opener import Log, open_log
from mpiio_ext.analytics.sources.records import Problems, Records, SourceError
from mpiio_ext.common.limits import most_bytes

_HEAD_BYTES = 64 << 10
_SQLITE = b"SQLite format 3\0"
_SHOWN_MEMBERS = 16
_TAR_BLOCK = 512


def read_log(log: Log, problems: Problems) -> bytes:
    """Return all bytes of a log; mistakes of gzip are noted.

    Raises
    ------
    SourceError
        No byte of the log can be unpacked, or the log is larger than the limit of the opener.
    """
    data = log.read()
    _note(log, problems, nothing=not data)
    return data


def _note(log: Log, problems: Problems, *, nothing: bool) -> None:
    if log.wrong and nothing:
        raise SourceError(problems.file, 0, log.wrong)
    if log.wrong:
        problems.add(0, f"{log.wrong}; what stands before is read")


def read_bytes(path: Path, problems: Problems) -> bytes:
    """Return the content of a file, unpacked if it is gzip; errors are those of `open_log` and `read_log`."""
    with open_log(path) as log:
        return read_log(log, problems)


def lines_of(path: Path, problems: Problems, *, ended: bool = True) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text with their numbers, from 1; those that are no text are noted and left out.

    Parameters
    ----------
    ended : the tool ends every line, so that a last one without an end has been cut and is left out.

    Raises
    ------
    SourceError
        The file cannot be read or unpacked, or the file or a line is larger than the limit of the opener.
    """
    with open_log(path) as log:
        yield from lines_of_log(log, problems, ended=ended)


def lines_of_log(log: Log, problems: Problems, *, ended: bool = True) -> Iterator[tuple[int, str]]:
    """Yield the lines of a log, as `lines_of` does."""
    number = 0
    for number, line in enumerate(log.lines(), 1):
        if line.endswith(b"\n"):
            yield from _text(number, line[:-1], problems)
        elif ended:
            problems.add(number, "cut: the line has no end")
        else:
            problems.add(number, "the last line has no end: it may be cut", 0)
            yield from _text(number, line, problems)
    _note(log, problems, nothing=not number)


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
                if member.size > most_bytes():  # of a sparse file more than the archive has
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
        The file is no SQLite database, or is damaged.
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
        The file cannot be read, or is empty.
    """
    if path.is_dir():
        return Head(path, b"")
    with open_log(path) as log:
        data = log.read(_HEAD_BYTES)
    members = _members(data) if data[257:262] == b"ustar" else ()
    return Head(path, data, _tables(path) if data.startswith(_SQLITE) else frozenset(), members)


def read_json(path: Path, problems: Problems) -> object:
    """Return the JSON document in a file.

    Raises
    ------
    SourceError
        The file is not JSON; the error has the line of the first mistake.
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
        The quotes of the line do not match.
    """
    try:
        return next(csv.reader([text], delimiter=separator, strict=True), [])
    except csv.Error as error:
        raise ValueError(f"no CSV: {error}") from error


def load(path: str | Path) -> Records:
    """Return the records in a file that :meth:`~.records.Records.save` has written.

    Raises
    ------
    SourceError
        The file cannot be read, or `Records.save` has not written it.
    """
    problems = Problems(str(path))
    data = read_bytes(Path(path), problems)
    for problem in problems.all():
        raise SourceError(problem.file, 0, f"cannot be read: {problem.what}")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SourceError(str(path), 0, f"cannot be read: {error}") from error
    return Records.from_json(text, str(path))
