"""NERSC's job database: SQLite with one row a job step, to ``summary`` and to rows of the store's table ``slurm``.

Problem. Which jobs ran beside a job of interest is a question to all jobs of a machine. Centres keep those of years in
a database of a few columns.

Guarantees. ``summary`` has every row of the database, unmodified; a row whose values have another type than its column
is left out and named by its rowid (in ``line``). ``slurm`` is what :mod:`mpiio_ext.analytics.sources.slurm` makes of
it.

Source: TOKIO, Section "Job scheduling".
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from mpiio_ext.analytics.sources import slurm
from mpiio_ext.analytics.sources.base import File, Head, Parsed, Source, taken
from mpiio_ext.analytics.sources.content import database
from mpiio_ext.analytics.sources.records import Problems, Row, SourceError
from mpiio_ext.analytics.tables.schema import SLURM, Column, Table

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
_TYPES = {"string": str, "int64": int}


def _rows(path: Path, problems: Problems) -> list[Row]:
    found: list[Row] = []
    wanted = [(column.name, _TYPES[column.type]) for column in SUMMARY.columns]
    with database(path) as base:
        rows = base.execute(f"SELECT rowid, {', '.join(SUMMARY.names())} FROM summary")
        while True:
            try:
                row = rows.fetchone()
            except (sqlite3.Error, UnicodeDecodeError) as error:
                problems.add(0, f"the database cannot be read further: {error}")
                return found
            if row is None:
                return found
            number, *values = row
            wrong = [
                f"{name} is {str(value)[:40]!r}"
                for (name, kind), value in zip(wanted, values, strict=True)
                if value is not None and not isinstance(value, kind)
            ]
            if wrong:
                problems.add(int(number), ", ".join(wrong))
                continue
            found.append(dict(zip(SUMMARY.names(), values, strict=True)))


class JobsDatabase(Source):
    """A job database."""

    NAME = "jobsdb"
    MEANING = "jobs of a machine: NERSC's job database (SQLite)"
    ROLE = "jobs"
    PATTERNS = ("*jobsdb*.sqlite3", "*jobsdb*.sqlite")
    TABLES = (SUMMARY, SLURM)

    def recognizes(self, head: Head) -> bool:
        return "summary" in head.tables and "OST_INFO" not in head.tables

    def parse(self, file: File) -> Parsed:
        path, problems = file.path, file.problems
        try:
            summary = _rows(path, problems)
        except (sqlite3.Error, UnicodeDecodeError) as error:  # a message of SQLite may have damaged names in it
            raise SourceError(str(path), 0, f"no job database as NERSC's (table summary): {error}") from error
        tables: dict[str, Any] = {"summary": summary}
        try:
            tables |= taken(slurm.convert([path.name], str(path.parent), file.time_zone), file)
        except SourceError as error:
            problems.add(0, f"its rows are no jobs: {error.what}", 0)
        return tables, {}


SOURCE = JobsDatabase()
