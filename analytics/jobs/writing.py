"""Writing a table of summaries: Parquet, SQLite with an index, or CSV, by the name of the file.

A file is written under another name and renamed, so that a table that was there stays until the new one is whole. In
SQLite rows are found by job, and by file system and motif, through indexes. What depends on which other rows a table
has is not written: readers compute it of the rows that count for them.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpiio_ext.analytics.jobs.derived import RELATIVE
from mpiio_ext.analytics.jobs.errors import HistoryError
from mpiio_ext.analytics.jobs.table import ID, MOTIF, SYSTEM, Jobs
from mpiio_ext.common.files import replacing
from mpiio_ext.errors import FileSystemError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["SUFFIXES", "write"]

#: Endings of files, and what they mean.
SUFFIXES = {".parquet": "parquet", ".sqlite": "sqlite", ".sqlite3": "sqlite", ".csv": "csv"}


def write(table: Jobs, path: Path) -> int:
    """Write a table but for the columns of `derived.RELATIVE`, and return the bytes of the file.

    Raises
    ------
    HistoryError
        The name does not end in one of `SUFFIXES`, or the file cannot be written.
    """
    kind = SUFFIXES.get(path.suffix.lower())
    if kind is None:
        raise HistoryError(f"{path}: name a table that ends in {', '.join(SUFFIXES)}")
    table = Jobs({name: table.column(name) for name in table.names if name not in RELATIVE}, table.source)
    try:
        with replacing(path) as temporary:
            if kind == "sqlite":
                _sqlite(table, temporary)
            else:
                _arrow(table, temporary, kind)
    except FileSystemError as error:
        raise HistoryError(str(error)) from error
    except sqlite3.Error as error:
        raise HistoryError(f"{path}: cannot be written: {error}") from error
    return path.stat().st_size


def _plain(values: Any) -> list[Any]:
    """Return a column as Python values, None where missing; a column of numbers and texts becomes texts."""
    found = [None if value is None or value != value or value == "" else value for value in values.tolist()]
    kinds = {isinstance(value, (int, float, np.number)) for value in found if value is not None}
    return [value if value is None else str(value) for value in found] if kinds == {True, False} else found


def _table(table: Jobs) -> pa.Table:
    import pyarrow as pa

    return pa.table({name: pa.array(_plain(table.column(name))) for name in table.names})


def _arrow(table: Jobs, path: Path, kind: str) -> None:
    if kind == "csv":
        import pyarrow.csv

        pyarrow.csv.write_csv(_table(table), path)
        return
    import pyarrow.parquet

    pyarrow.parquet.write_table(_table(table), path)


def _sqlite(table: Jobs, path: Path) -> None:
    path.unlink(missing_ok=True)
    names = ['"' + name.replace('"', '""') + '"' for name in table.names]
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE summaries ({', '.join(names)})")
        rows = zip(*(_plain(table.column(name)) for name in table.names), strict=True)
        connection.executemany(f"INSERT INTO summaries VALUES ({', '.join('?' * len(names))})", rows)
        for columns in ((ID,), (SYSTEM, MOTIF)):
            if all(name in table for name in columns):
                index = "".join(columns)
                connection.execute(f"CREATE INDEX by{index} ON summaries ({', '.join(columns)})")
