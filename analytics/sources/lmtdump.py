"""The text of ``mysqldump`` of an LMT database, put into SQLite so that it is read as the database itself.

Only the three tables that ``lmt`` needs are taken. The rows go to a temporary file of SQLite, not to memory.
"""

from __future__ import annotations

import gzip
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import IO

#: Table -> the columns that are needed, with MySQL's order in LMT's schema 1.1 where a dump does not say it.
_TABLES: dict[str, tuple[str, ...]] = {
    "OST_INFO": ("OST_ID", "OSS_ID", "OST_NAME"),
    "TIMESTAMP_INFO": ("TS_ID", "TIMESTAMP"),
    "OST_DATA": ("OST_ID", "TS_ID", "READ_BYTES", "WRITE_BYTES"),
}
_CREATE = re.compile(r"^\s*CREATE TABLE (?:IF NOT EXISTS )?`?(\w+)`?\s*\(", re.IGNORECASE)
_COLUMN = re.compile(r"^\s*`(\w+)`\s")
_INSERT = re.compile(r"^\s*INSERT (?:IGNORE )?INTO `?(\w+)`?\s*(?:\(([^)]*)\)\s*)?VALUES\s*", re.IGNORECASE)
_USE = re.compile(r"^\s*USE `?(\w+)`?\s*;", re.IGNORECASE)
_ROW = re.compile(r"\(((?:[^()'\\]|'(?:[^'\\]|\\.|'')*')*)\)\s*[,;]?\s*", re.DOTALL)
_VALUE = re.compile(r"\s*(?:'((?:[^'\\]|\\.|'')*)'|([^,']*?))\s*(?:,|$)", re.DOTALL)


class DumpError(Exception):
    """A text that is no dump of an LMT database."""


def _new_base() -> sqlite3.Connection:
    base = sqlite3.connect("")
    for name, columns in _TABLES.items():
        base.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
    base.execute("CREATE INDEX by_ost ON OST_DATA (OST_ID, TS_ID)")
    return base


def _values(text: str) -> list[str | int | float | None]:
    out: list[str | int | float | None] = []
    at = 0
    while at < len(text):
        match = _VALUE.match(text, at)
        if match is None:
            raise DumpError(f"a row cannot be read: ({text[:40]!r}…)")
        if match[1] is not None:
            out.append(match[1].replace("''", "'").replace("\\'", "'"))
        else:
            out.append(_number(match[2]))
        at = match.end()
    return out


def _number(text: str) -> str | int | float | None:
    if text.upper() == "NULL":
        return None
    try:
        number = int(text)
        return number if abs(number) < 2**63 else float(number)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


class _Loader:
    """Reads lines of a dump."""

    def __init__(self) -> None:
        self.bases = [_new_base()]
        self.columns: dict[str, list[str]] = {}
        self.problem = ""
        self.rows = 0
        self._inside: str | None = None

    def line(self, text: str) -> None:
        """Take one line; mysqldump never breaks a statement of rows within a line."""
        if self._inside is not None:
            if match := _COLUMN.match(text):
                self.columns[self._inside].append(match[1].upper())
            elif text.lstrip().startswith(")"):
                self._inside = None
            return
        if match := _CREATE.match(text):
            self._inside = match[1].upper()
            self.columns[self._inside] = []
        elif (match := _USE.match(text)) and self.rows:
            self.bases.append(_new_base())
        elif match := _INSERT.match(text):
            self._insert(match, text)

    def _insert(self, match: re.Match[str], text: str) -> None:
        table = match[1].upper()
        if table not in _TABLES:
            return
        given = [name.strip(" `").upper() for name in match[2].split(",")] if match[2] else self.columns.get(table)
        names = given or list(_TABLES[table])
        missing = [name for name in _TABLES[table] if name not in names and name != "OSS_ID"]
        if missing:
            raise DumpError(f"the table {table} has no column {missing[0]}")
        places = [names.index(name) if name in names else -1 for name in _TABLES[table]]
        marks = ", ".join("?" * len(places))
        rows = list(self._rows(text, match.end(), places, len(names)))
        self.bases[-1].executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
        self.rows += len(rows)

    def _rows(self, text: str, at: int, places: list[int], count: int) -> Iterator[list[str | int | float | None]]:
        while match := _ROW.match(text, at):
            values = _values(match[1])
            if len(values) >= count or len(values) > max(places):
                yield [values[place] if place >= 0 else None for place in places]
            else:
                self.problem = self.problem or f"a row has {len(values)} values, not {count}"
            at = match.end()
        if text[at:].strip() not in ("", ";") or not text.rstrip().endswith(";"):
            self.problem = self.problem or "the dump is cut off or damaged in a statement; what stands before is there"


def _open(path: Path) -> IO[str]:
    with path.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    if packed:
        return gzip.open(path, "rt", encoding="utf-8", errors="replace")
    return path.open(encoding="utf-8", errors="replace")


def load_dump(path: Path) -> tuple[list[sqlite3.Connection], str]:
    """Read a dump, which may be compressed with gzip.

    Returns
    -------
    bases : list of sqlite3.Connection
        One for each database of the dump; to be closed.
    problem : str
        What is wrong with part of it; empty when all was read.

    Raises
    ------
    DumpError
        No rows of LMT's tables are in it.
    """
    loader = _Loader()
    with _open(path) as lines:
        try:
            for text in lines:
                loader.line(text)
        except (EOFError, OSError) as error:
            loader.problem = f"the dump is cut off: {error}"
    if not loader.rows:
        raise DumpError("no SQLite, no HDF5, and no dump of an LMT database: it has no rows of " + ", ".join(_TABLES))
    return loader.bases, loader.problem
