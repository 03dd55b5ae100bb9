"""GPFS: bytes and requests of clusters, as ggiostat stores the output of ``mmpmon``, to ``node_io``.

Problem. A daemon asks ``mmpmon`` every 5 s for the counters of each node's file systems and stores them in a database,
a schema for each cluster of nodes. What leaves the site is an export of it.

Forms. SQLite with the table ``NODE_FILESYSTEM_IO``; CSV whose first line has its columns. Columns may be in any order
and case; further ones are ignored.

Guarantees. Values are as stored: counters since the file system was mounted, or what the site's daemon makes of them.
Time is ``SECONDS`` and ``MICROSECONDS``. Rows with a value of another kind are left out and named.

Source: TOKIO, Section "Storage system traffic" (ggiostat); the table's columns are those of pytokio's ggiostatdb.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mpiio_ext.analytics.sources.base import File, Head, Parsed, Source
from mpiio_ext.analytics.sources.content import csv_values, database, first_lines, lines_of
from mpiio_ext.analytics.sources.numbers import count
from mpiio_ext.analytics.sources.records import Problems, Row, SourceError
from mpiio_ext.analytics.tables.schema import Column, Table

_TEXTS = {"cluster_name": "cluster of the node", "node_name": "", "filesystem_name": ""}
_COUNTS = {
    "seconds": ("s", "whole seconds of the stamp"),
    "microseconds": ("us", "the rest of it"),
    "bytes_read": ("B", ""),
    "bytes_written": ("B", ""),
    "open_count": ("count", ""),
    "close_count": ("count", ""),
    "read_requests": ("count", ""),
    "write_requests": ("count", ""),
    "read_directory": ("count", "requests"),
    "inode_updates": ("count", ""),
}
NODE_IO = Table(
    "node_io",
    "one row a stamp, a node and a file system",
    (
        Column("time", "float64", "s since 1970 UTC", "of the stamp"),
        *(Column(name, "string", "", meaning) for name, meaning in _TEXTS.items()),
        *(Column(name, "int64", unit, meaning) for name, (unit, meaning) in _COUNTS.items()),
    ),
)
_TABLE = "NODE_FILESYSTEM_IO"
_NEEDED = ("filesystem_name", "seconds", "bytes_read", "bytes_written")
_LATEST = 2**33


def _row(found: Mapping[str, object]) -> Row:
    """Return a row of the table; values of the source by column in lower case.

    Raises
    ------
    ValueError
        A value is of another kind.
    """
    row: Row = {}
    for name in _TEXTS:
        value = found.get(name)
        if value is not None and not isinstance(value, str):
            raise ValueError(f"{name} is {str(value)[:40]!r}, which is no text")
        row[name] = value or None
    for name in _COUNTS:
        value = found.get(name)
        if value is None or value == "":
            row[name] = None
        elif isinstance(value, bool) or not isinstance(value, (int, str)):
            raise ValueError(f"{name} is {str(value)[:40]!r}, which is no count")
        else:
            try:
                row[name] = count(str(value).strip())
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
    if row["seconds"] is None or row["seconds"] >= _LATEST or (row["microseconds"] or 0) >= 10**6:
        raise ValueError(f"{found.get('seconds')!s:.20} s and {found.get('microseconds')!s:.20} us are no time")
    row["time"] = row["seconds"] + (row["microseconds"] or 0) / 1e6
    return row


def _from_database(path: Path, problems: Problems) -> Iterator[tuple[int, dict[str, Any]]]:
    with database(path) as base:
        try:
            names = [str(row[0]) for row in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            mine = [name for name in names if name.upper().endswith(_TABLE)]
            if not mine:
                raise SourceError(str(path), 0, f"no table {_TABLE} in the database")
            for name in mine:
                quoted = name.replace('"', '""')
                rows = base.execute(f'SELECT rowid, * FROM "{quoted}"')
                columns = [str(column[0]).lower() for column in rows.description]
                for row in rows:
                    yield int(row[0]), dict(zip(columns[1:], row[1:], strict=True))
        except (sqlite3.Error, UnicodeDecodeError) as error:  # a message of SQLite may have damaged names in it
            problems.add(0, f"the database cannot be read further: {error}")


def _from_text(path: Path, problems: Problems) -> Iterator[tuple[int, dict[str, Any]]]:
    lines = lines_of(path, problems, ended=False)
    names: list[str] | None = None
    for number, text in lines:
        if not text.strip():
            continue
        try:
            values = csv_values(text)
        except ValueError as error:
            problems.add(number, str(error))
            continue
        if names is None:
            names = [name.strip().lower() for name in values]
            missing = [name for name in _NEEDED if name not in names]
            if missing or len(set(names)) < len(names):
                raise SourceError(str(path), number, f"no export of ggiostat: without {', '.join(missing) or 'names'}")
        elif len(values) != len(names):
            problems.add(number, f"{len(values)} values, and the first line has {len(names)}")
        else:
            yield number, dict(zip(names, values, strict=True))
    if names is None:
        raise SourceError(str(path), 0, "no line that names the columns")


class Ggiostat(Source):
    """An export of ggiostat's database."""

    NAME = "ggiostat"
    MEANING = "GPFS: bytes and requests of each node, an export of ggiostat's database (SQLite, CSV)"
    ROLE = "traffic"
    PATTERNS = ("*ggiostat*.sqlite3", "*ggiostat*.csv", "*ggiostat*.csv.gz")
    TABLES = (NODE_IO,)

    def recognizes(self, head: Head) -> bool:
        if any(name.upper().endswith(_TABLE) for name in head.tables):
            return True
        lines = first_lines(head.text, 1)
        names = [name.strip().strip('"').lower() for name in lines[0].split(",")] if lines else []
        return all(name in names for name in _NEEDED)

    def parse(self, file: File) -> Parsed:
        path, problems = file.path, file.problems
        try:
            with path.open("rb") as stream:
                is_database = stream.read(16) == b"SQLite format 3\0"
        except OSError as error:
            raise SourceError(str(path), 0, f"cannot be read: {error.strerror}") from error
        rows: list[Row] = []
        for number, found in (_from_database if is_database else _from_text)(path, problems):
            try:
                rows.append(_row(found))
            except ValueError as error:
                problems.add(number, str(error))
        if problems.first is not None and not rows:
            raise SourceError(str(path), problems.first.line, problems.first.what)
        return {"node_io": rows}, {}


SOURCE = Ggiostat()
