"""Reading a table of summaries: CSV (also compressed), Parquet, SQLite, or HDF5.

Problem. The published summaries are CSV written by pandas, whose rows begin with the number of the row, for which the
header has no name. Stores of one's own are Parquet or SQLite, of which a view needs a tenth of the columns.

Algorithm. PyArrow reads CSV and Parquet, the standard library SQLite; each is asked for the columns that are wanted
alone. A row number without a name is left out. In SQLite the table is the one that has a column of job IDs. HDF5 is
what ``mpiio-ext analyze summarize-job`` writes.

Guarantees. A file that is no table, is cut off, has no job IDs, or has starts that are no times in seconds (but in
milliseconds, say) is an error of one line that names it; what a value means is not guessed. The row order is that of
the file.
"""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.jobs.errors import HistoryError
from mpiio_ext.analytics.jobs.table import ID, PERFORMANCE, START, TRUE_START, Jobs
from mpiio_ext.analytics.readerprocess import is_hdf5

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["checked", "of_arrow", "read"]

#: What stands for a missing value in CSV.
_MISSING = ["", "NaN", "nan", "None", "NULL", "null", "<NA>"]
_SQLITE = b"SQLite format 3\0"
_PARQUET = b"PAR1"
#: Starts of jobs, in s since 1970: 1980-01-01 and 2100-01-01 UTC. Milliseconds, days and clocks that were never set are
#: far outside.
_EARLIEST, _LATEST = 315_532_800, 4_102_444_800


def read(path: str | Path, columns: Collection[str] | None = None) -> Jobs:
    """Read a table with a row per job.

    Parameters
    ----------
    path : str or Path
        CSV, ``.csv.gz``, Parquet, SQLite or HDF5; what it is, is found out from its first bytes.
    columns : collection of str, optional
        Columns to read; those that are not there are passed over. Default: all.

    Raises
    ------
    HistoryError
        There is no such file, it is none of these, it is damaged, it has no column ``_jobid``, or a start is no time of
        a job.
    """
    return checked(_read(Path(path), columns))


def checked(table: Jobs) -> Jobs:
    """Return the table; HistoryError where a start is no time between the years 1980 and 2100."""
    for name in (START, TRUE_START):
        starts = table.numbers(name)
        wrong = np.flatnonzero((starts < _EARLIEST) | (starts >= _LATEST))  # not where it is NaN
        if len(wrong):
            raise HistoryError(f"{table.source}: column {name} holds {starts[wrong[0]]:.15g} in row {wrong[0] + 1}; "
                               "starts are seconds since 1970 UTC, of the years 1980 to 2099")
    return table


def _read(path: Path, columns: Collection[str] | None) -> Jobs:
    try:
        with path.open("rb") as stream:
            head = stream.read(16)
    except OSError as error:
        raise HistoryError(f"{path}: cannot be read: {error.strerror}") from error
    wanted = None if columns is None else {ID, *columns}
    if is_hdf5(path):
        return _hdf5(path)
    try:
        if head == _SQLITE:
            return Jobs(_sqlite(path, wanted), str(path))
        table = _parquet(path, wanted) if head[:4] == _PARQUET else _csv(path, wanted)
    except (OSError, EOFError, ValueError, MemoryError, zlib.error, sqlite3.Error) as error:  # Arrow's are ValueErrors
        if isinstance(error, HistoryError):
            raise
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise HistoryError(f"{path}: cannot be read as a table of jobs: {reason[0][:200]}") from error
    if ID not in table.column_names:
        raise HistoryError(f"{path}: not a table of jobs: there is no column {ID}")
    return of_arrow(table, str(path))


def _hdf5(path: Path) -> Jobs:
    from mpiio_ext.analytics.jobs import files

    if path.suffix.lower() not in (".h5", ".hdf5"):  # their reader goes by the name
        raise HistoryError(f"{path}: cannot be read: HDF5 is read from files that end in .h5 or .hdf5")
    try:
        return of_arrow(files.read(path, slices=False).table, str(path))
    except AnalyticsError as error:
        raise HistoryError(str(error)) from error


def of_arrow(table: pa.Table, source: str) -> Jobs:
    """Return an Arrow table with a row per job as `Jobs`."""
    return Jobs({name: _values(table[name]) for name in table.column_names}, source)


def _values(column: pa.ChunkedArray) -> Any:
    """Return a column as an array: numbers as they are, floats where some are missing, other things as objects."""
    import pyarrow.types as types

    kind = column.type
    if types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind):
        return column.to_numpy(zero_copy_only=False) if not types.is_boolean(kind) or not column.null_count else (
            np.array(column.to_pylist(), dtype=object))  # fmt: skip
    if types.is_null(kind):
        return np.full(len(column), np.nan)
    if types.is_timestamp(kind):  # s since 1970
        unit = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        return np.array([None if value is None else value / unit for value in column.cast("int64").to_pylist()],
                        dtype=object)  # fmt: skip
    return np.array(column.to_pylist(), dtype=object)


# ---- CSV -------------------------------------------------------------------------------------------------------------


def _lines(path: Path) -> list[str]:
    """Return the first two lines of a file of text, which may be compressed by gzip."""
    import gzip

    with path.open("rb") as plain:
        packed = plain.read(2) == b"\x1f\x8b"
    with gzip.open(path, "rt", encoding="utf-8", newline="") if packed else path.open(encoding="utf-8") as stream:
        return [stream.readline(1 << 20), stream.readline(1 << 20)]


def _csv(path: Path, wanted: Collection[str] | None) -> pa.Table:
    import csv

    import pyarrow as pa
    import pyarrow.csv

    lines = _lines(path)
    rows = list(csv.reader(line for line in lines if line))
    if not rows or not any(name.strip() for name in rows[0]):
        raise HistoryError(f"{path}: not a table of jobs: it is empty")
    names, first = rows[0], rows[1] if len(rows) > 1 else rows[0]
    row_numbers = len(first) == len(names) + 1 or names[0] in ("", "Unnamed: 0")
    every = ["" if len(first) == len(names) + 1 else names[0], *(names if len(first) > len(names) else names[1:])]
    _distinct(path, every[1:] if row_numbers else every)
    if ID not in every:
        raise HistoryError(f"{path}: not a table of jobs: there is no column {ID}")
    taken = [name for name in (every[1:] if row_numbers else every) if wanted is None or name in wanted]
    # Compressed data are inflated by the stream; PyArrow would go by the file's name.
    with pa.OSFile(str(path)) as raw:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        source: Any = pa.CompressedInputStream(raw, "gzip") if packed else raw
        return pyarrow.csv.read_csv(
            source, pyarrow.csv.ReadOptions(column_names=every, skip_rows=1),
            convert_options=pyarrow.csv.ConvertOptions(include_columns=taken, null_values=_MISSING,
                                                       strings_can_be_null=True),
        )  # fmt: skip


def _distinct(path: Path, names: list[str]) -> None:
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        raise HistoryError(f"{path}: there are two columns {twice!r}")


# ---- Parquet and SQLite ----------------------------------------------------------------------------------------------


def _parquet(path: Path, wanted: Collection[str] | None) -> pa.Table:
    import pyarrow.parquet as pq

    # One file, not a data set: that would import what file systems and partitions need.
    with pq.ParquetFile(path) as file:
        names = file.schema_arrow.names
        return file.read(columns=None if wanted is None else [name for name in names if name in wanted])


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        yield connection
    finally:
        connection.close()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _sqlite(path: Path, wanted: Collection[str] | None) -> dict[str, Any]:
    with _opened(path) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name")
        tables = [name for (name,) in names]
        columns = {name: [row[1] for row in connection.execute(f"PRAGMA table_info({_quoted(name)})")]
                   for name in tables}  # fmt: skip
        found = [name for name in tables if ID in columns[name]]
        if len(found) > 1:  # beside the table there may be notes about its rows
            found = [name for name in found if PERFORMANCE in columns[name]] or found
        if len(found) != 1:
            count = "no table" if not found else f"{len(found)} tables ({', '.join(found)})"
            raise HistoryError(f"{path}: {count} with a column {ID}; a table of jobs is one of them")
        taken = [name for name in columns[found[0]] if wanted is None or name in wanted]
        query = f"SELECT {', '.join(map(_quoted, taken))} FROM {_quoted(found[0])} ORDER BY rowid"
        try:
            rows = connection.execute(query).fetchall()
        except sqlite3.OperationalError:  # a view has no row IDs
            rows = connection.execute(query.removesuffix(" ORDER BY rowid")).fetchall()
    values = list(zip(*rows, strict=True)) if rows else [() for _ in taken]
    return {name: np.array(column, dtype=object) for name, column in zip(taken, values, strict=True)}
