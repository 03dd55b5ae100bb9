"""The text of ``mysqldump``, put into SQLite so that it is read as the database itself.

Only the requested tables and columns are read. The rows go to temporary files of SQLite, not to memory. Of a damaged or
truncated dump, the part before the damage is read.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mpiio_ext.analytics.sources.opener import open_log
from mpiio_ext.analytics.sources.records import LogError

_CREATE = re.compile(r"^\s*CREATE TABLE (?:IF NOT EXISTS )?`?(\w+)`?\s*\(", re.IGNORECASE)
_COLUMN = re.compile(r"^\s*`(\w+)`\s")
_INSERT = re.compile(r"^\s*INSERT (?:IGNORE )?INTO `?(\w+)`?\s*(?:\(([^)]*)\)\s*)?VALUES\s*", re.IGNORECASE)
_USE = re.compile(r"^\s*USE `?(\w+)`?\s*;", re.IGNORECASE)
_ROW = re.compile(r"\(((?:[^()'\\]|'(?:[^'\\]|\\.|'')*')*)\)\s*[,;]?\s*", re.DOTALL)
_VALUE = re.compile(r"\s*(?:'((?:[^'\\]|\\.|'')*)'|([^,']*?))\s*(?:,|$)", re.DOTALL)
_Value = str | int | float | None


def _values(text: str) -> list[_Value]:
    out: list[_Value] = []
    at = 0
    while at < len(text):
        match = _VALUE.match(text, at)
        if match is None:
            raise LogError(f"a row cannot be read: ({text[:40]!r}…)")
        quoted = match[1] is not None
        out.append(match[1].replace("''", "'").replace("\\'", "'") if quoted else _number(match[2]))
        at = match.end()
    return out


def _number(text: str) -> _Value:
    if text.upper() == "NULL":
        return None
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            number = kind(text)
            return number if isinstance(number, float) or abs(number) < 2**63 else float(number)
    return text


class _Dump:
    """Reads lines of a dump into databases."""

    def __init__(self, tables: Mapping[str, tuple[str, ...]], optional: Sequence[str]) -> None:
        self._tables, self._optional = tables, optional
        self.bases: list[sqlite3.Connection] = []
        self.problem = ""
        self.rows = 0
        self._columns: dict[str, list[str]] = {}
        self._inside: list[str] | None = None
        self._begin()

    def _begin(self) -> None:
        self.bases.append(sqlite3.connect(""))
        for name, columns in self._tables.items():
            self.bases[-1].execute(f"CREATE TABLE {name} ({', '.join(columns)})")

    def line(self, text: str) -> None:
        """Take one line; mysqldump never breaks a statement of rows within a line."""
        if self._inside is not None:
            if match := _COLUMN.match(text):
                self._inside.append(match[1].upper())
            elif text.lstrip().startswith(")"):
                self._inside = None
        elif match := _CREATE.match(text):
            self._inside = self._columns[match[1].upper()] = []
        elif _USE.match(text) and self.rows:
            self._begin()
        elif (match := _INSERT.match(text)) and match[1].upper() in self._tables:
            self._insert(match[1].upper(), match[2], text, match.end())

    def _insert(self, table: str, listed: str | None, text: str, at: int) -> None:
        given = [name.strip(" `").upper() for name in listed.split(",")] if listed else self._columns.get(table)
        names, wanted = given or list(self._tables[table]), self._tables[table]
        if missing := [name for name in wanted if name not in {*names, *self._optional}]:
            raise LogError(f"the table {table} has no column {missing[0]}")
        places = [names.index(name) if name in names else -1 for name in wanted]
        rows = list(self._rows(text, at, places, len(names)))
        self.bases[-1].executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(places))})", rows)
        self.rows += len(rows)

    def _rows(self, text: str, at: int, places: list[int], count: int) -> Iterator[list[_Value]]:
        while match := _ROW.match(text, at):
            values = _values(match[1])
            if len(values) >= count or len(values) > max(places):
                yield [values[place] if place >= 0 else None for place in places]
            else:
                self.problem = self.problem or f"a row has {len(values)} values, not {count}"
            at = match.end()
        if text[at:].strip() not in ("", ";") or not text.rstrip().endswith(";"):
            self.problem = self.problem or "the dump is cut off or damaged in a statement; what stands before is there"


def load(
    path: Path, tables: Mapping[str, tuple[str, ...]], optional: Sequence[str] = ()
) -> tuple[list[sqlite3.Connection], str]:
    """Read a dump, which may be compressed with gzip.

    Parameters
    ----------
    tables : mapping of str to tuple of str
        Table -> the columns that are wanted, in MySQL's order where a dump does not say it.
    optional : sequence of str
        Columns that may be missing; they are NULL then.

    Returns
    -------
    bases : list of sqlite3.Connection
        One for each database of the dump; to be closed. Empty: it has no rows of these tables.
    problem : str
        The fault of a part of the dump; empty if all was read.

    Raises
    ------
    LogError
        A table lacks a column, or rows are damaged beyond reading.
    SourceError
        The dump cannot be read, or the dump or a line is larger than the limit of the opener.
    """
    dump = _Dump(tables, optional)
    with open_log(path) as log:
        for line in log.lines():
            dump.line(line.decode("utf-8", "replace"))
    if log.wrong:
        dump.problem = f"the dump is cut off: {log.wrong}"
    return (dump.bases if dump.rows else []), dump.problem
