"""GPFS: bytes and requests of clusters, as ggiostat stores what ``mmpmon`` says, to ``node_io``.

Problem. A daemon asks ``mmpmon`` every 5 s for the counters of each node's file systems and stores them in a database,
a schema for each cluster of nodes. What leaves the site is an export of it.

Forms. SQLite with the table ``NODE_FILESYSTEM_IO``; CSV whose first line has its columns. Columns may be in any order
and case; further ones are ignored.

Guarantees. Values are as stored: counters since the file system was mounted, or what the site's daemon makes of them.
Time is ``SECONDS`` and ``MICROSECONDS``. Rows with a value of another kind are left out and named.

Source: TOKIO, Section "Storage system traffic" (ggiostat); the table's columns are those of pytokio's ggiostatdb.
"""

from __future__ import annotations

import contextlib
import csv
import io
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpiio_ext.analytics.connectors.sources.content import (
    csv_values,
    database,
    first_lines,
    lines_of,
    read_bytes,
    write_bytes,
)
from mpiio_ext.analytics.connectors.sources.numbers import count
from mpiio_ext.analytics.connectors.sources.records import Problems, Records, SourceError, make_table
from mpiio_ext.analytics.tables.schema import Column, Table

if TYPE_CHECKING:
    from mpiio_ext.analytics.connectors.sources.registry import Head, Role

__all__ = ["MEANING", "NAME", "PATTERNS", "ROLE", "TABLES", "read", "recognizes", "write"]

NAME = "ggiostat"
MEANING = "GPFS: bytes and requests of each node, an export of ggiostat's database (SQLite, CSV)"
ROLE: Role = "traffic"
PATTERNS = ("*ggiostat*.sqlite3", "*ggiostat*.csv", "*ggiostat*.csv.gz")

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
TABLES = (NODE_IO,)
_TABLE = "NODE_FILESYSTEM_IO"
_NEEDED = ("filesystem_name", "seconds", "bytes_read", "bytes_written")
_LATEST = 2**33


def recognizes(head: Head) -> bool:
    """Return whether a database has the table of ggiostat, or a CSV its columns."""
    if any(name.upper().endswith(_TABLE) for name in head.tables):
        return True
    lines = first_lines(head.text, 1)
    names = [name.strip().strip('"').lower() for name in lines[0].split(",")] if lines else []
    return all(name in names for name in _NEEDED)


def _row(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of the table; values of the source by column in lower case.

    Raises
    ------
    ValueError
        A value is of another kind.
    """
    row: dict[str, Any] = {}
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
    lines = lines_of(read_bytes(path, problems), problems, ended=False)
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
                raise SourceError(str(path), number, f"no export of ggiostat: it lacks {', '.join(missing) or 'names'}")
        elif len(values) != len(names):
            problems.add(number, f"{len(values)} values, and the first line has {len(names)}")
        else:
            yield number, dict(zip(names, values, strict=True))
    if names is None:
        raise SourceError(str(path), 0, "no line that names the columns")


def read(path: Path, time_zone: str = "UTC") -> Records:  # noqa: ARG001  (its times are seconds since 1970)
    """Read an export of ggiostat's database.

    Parameters
    ----------
    path : Path
    time_zone : str
        Not used.

    Raises
    ------
    SourceError
        It has no such table, or none of its columns.
    """
    problems = Problems(str(path))
    try:
        with path.open("rb") as file:
            is_database = file.read(16) == b"SQLite format 3\0"
    except OSError as error:
        raise SourceError(str(path), 0, f"cannot be read: {error.strerror}") from error
    columns: dict[str, list[Any]] = {name: [] for name in NODE_IO.names()}
    for number, found in (_from_database if is_database else _from_text)(path, problems):
        try:
            row = _row(found)
        except ValueError as error:
            problems.add(number, str(error))
            continue
        for name, values in columns.items():
            values.append(row[name])
    if problems.first is not None and not columns["time"]:
        raise SourceError(str(path), problems.first.line, problems.first.what)
    tables = {"node_io": make_table(NODE_IO, columns)}
    return Records(source=NAME, path=str(path), tables=tables, problems=problems.all())


def write(records: Records, path: Path) -> None:
    """Write the rows: SQLite where the name ends so, else CSV.

    Raises
    ------
    SourceError
        The database exists, or the file cannot be written.
    """
    rows = records.tables["node_io"].to_pylist()
    names = [*_TEXTS, *_COUNTS]
    if path.suffix not in (".sqlite", ".sqlite3", ".db"):
        out = io.StringIO()
        writer = csv.DictWriter(out, [name.upper() for name in names], lineterminator="\n")
        writer.writeheader()
        writer.writerows({name.upper(): row[name] for name in names} for row in rows)
        write_bytes(path, out.getvalue().encode())
        return
    if path.exists():
        raise SourceError(str(path), 0, "exists; a database is not overwritten")
    try:
        with contextlib.closing(sqlite3.connect(path)) as base, base:
            base.execute(f"CREATE TABLE {_TABLE} ({', '.join(name.upper() for name in names)})")
            base.executemany(f"INSERT INTO {_TABLE} VALUES ({', '.join(f':{name}' for name in names)})", rows)
    except sqlite3.Error as error:
        raise SourceError(str(path), 0, f"cannot be written: {error}") from error
