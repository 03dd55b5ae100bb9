"""NERSC's job database: SQLite with one row a job step, to ``summary`` and to rows of the store's table ``slurm``.

Problem. Which jobs ran beside a job of interest is a question to all jobs of a machine. Centres keep those of years in
a database of a few columns.

Guarantees. ``summary`` has every row of the database, unmodified; a row whose values have another type than its column
is left out and named by its rowid (in ``line``). ``slurm`` is what :mod:`mpiio_ext.analytics.connectors.slurm` makes of
it.

Source: TOKIO, Section "Job scheduling".
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpiio_ext.analytics.connectors.sources.content import database
from mpiio_ext.analytics.connectors.sources.records import Problems, Records, SourceError, make_table
from mpiio_ext.analytics.connectors.sources.stored import converted
from mpiio_ext.analytics.tables.schema import SLURM, Column, Table

if TYPE_CHECKING:
    from mpiio_ext.analytics.connectors.sources.registry import Head, Role

__all__ = ["MEANING", "NAME", "PATTERNS", "ROLE", "TABLES", "read", "recognizes", "write"]

NAME = "jobsdb"
MEANING = "jobs of a machine: NERSC's job database (SQLite)"
ROLE: Role = "jobs"
PATTERNS = ("*jobsdb*.sqlite3", "*jobsdb*.sqlite")

SUMMARY = Table(
    "summary",
    "one row a job step",
    (
        Column("stepid", "string", "", "ID of the job or step in the scheduler, and its machine: 4472230.edison"),
        Column("hostname", "string", "", "machine"),
        Column("start", "int64", "s since 1970 UTC", ""),
        Column("completion", "int64", "s since 1970 UTC", ""),
        Column("numnodes", "int64", "count", "nodes"),
    ),
)
TABLES = (SUMMARY, SLURM)
_TYPES = {"string": str, "int64": int}


def recognizes(head: Head) -> bool:
    """Return whether an SQLite database has the table ``summary``, and none of LMT."""
    return "summary" in head.tables and "OST_INFO" not in head.tables


def _rows(path: Path, problems: Problems) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {name: [] for name in SUMMARY.names()}
    wanted = [(column.name, _TYPES[column.type]) for column in SUMMARY.columns]
    with database(path) as base:
        rows = base.execute(f"SELECT rowid, {', '.join(columns)} FROM summary")
        while True:
            try:
                row = rows.fetchone()
            except (sqlite3.Error, UnicodeDecodeError) as error:
                problems.add(0, f"the database cannot be read further: {error}")
                return columns
            if row is None:
                return columns
            number, *values = row
            wrong = [f"{name} is {str(value)[:40]!r}" for (name, kind), value in zip(wanted, values, strict=True)
                     if value is not None and not isinstance(value, kind)]  # fmt: skip
            if wrong:
                problems.add(int(number), ", ".join(wrong))
                continue
            for name, value in zip(columns, values, strict=True):
                columns[name].append(value)


def read(path: Path, time_zone: str = "UTC") -> Records:
    """Read a job database.

    Parameters
    ----------
    path : Path
    time_zone : str
        Not used: the times are seconds since 1970.

    Raises
    ------
    SourceError
        It is no such database.
    """
    problems = Problems(str(path))
    try:
        summary = make_table(SUMMARY, _rows(path, problems))
    except (sqlite3.Error, UnicodeDecodeError) as error:  # a message of SQLite may have damaged names in it
        raise SourceError(str(path), 0, f"no job database as NERSC's (table summary): {error}") from error
    tables = {"summary": summary}
    try:
        tables |= converted("slurm", path, time_zone, problems)
    except SourceError as error:
        problems.add(0, f"its rows are no jobs: {error.what}", 0)
    return Records(source=NAME, path=str(path), tables=tables, problems=problems.all())


def write(records: Records, path: Path) -> None:
    """Write ``summary`` into a new database.

    Raises
    ------
    SourceError
        The file exists, or cannot be written.
    """
    if path.exists():
        raise SourceError(str(path), 0, "exists; a database is not overwritten")
    rows = records.tables["summary"].to_pylist()
    try:
        with contextlib.closing(sqlite3.connect(path)) as base, base:
            base.execute("CREATE TABLE summary (stepid PRIMARY KEY, hostname, start INTEGER, completion INTEGER, "
                         "numnodes INTEGER)")  # fmt: skip
            base.executemany("INSERT INTO summary VALUES (:stepid, :hostname, :start, :completion, :numnodes)", rows)
    except sqlite3.Error as error:
        raise SourceError(str(path), 0, f"cannot be written: {error}") from error
