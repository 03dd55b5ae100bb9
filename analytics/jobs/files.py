"""Files of job tables: CSV, Parquet, SQLite, HDF5, written and read back.

Forms, by the name of the file that is written
----------------------------------------------
- ``.parquet``: the table; units and meanings are metadata of its fields, the notes (as JSON) of the file.
- ``.csv``, ``.csv.gz``: the table with its first line of names. NULL is nothing, an empty text ``""``.
- ``.sqlite``, ``.sqlite3``, ``.db``: tables ``summary`` (of summaries with the key ``_log_id``; rows are found by job,
  and by file system and motif, through indexes), ``notes``, and ``columns`` with units and meanings.
- ``.h5``, ``.hdf5``: the table, notes and slices (:mod:`.hdf5`).

What a file is that is read is found out from its first bytes. Tables of others are read as well. Published summaries
are CSV written by pandas: their rows begin with their number, for which the header has no name. In SQLite the table is
the one that has a column of job IDs. CSV, Parquet and SQLite are asked for the columns that are wanted alone.

Guarantees. A file is there completely or not at all: it is written under another name beside it, and renamed. Of
several processes that add to one file at a time each waits for the others, and no row is lost. Every form gives back
the values of summaries, NULL included; what a form does not have (slices, or in CSV the notes) is empty. Notes of logs
with a row are in its column ``_notes`` in every form. What depends on which other rows a table has is not written. A
file that is no table, or is damaged, is an error of one line that names it; the order of rows is that of the file.

Source: TOKIO, Section "Data integration": a row of a database or CSV, time series in HDF5.
"""

from __future__ import annotations

import contextlib
import csv
import errno
import gzip
import itertools
import json
import sqlite3
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from mpiio_ext.analytics.errors import AnalyticsError, HistoryError
from mpiio_ext.analytics.jobs.columns import SUMMARY
from mpiio_ext.analytics.jobs.derived import RELATIVE
from mpiio_ext.analytics.jobs.merging import merged
from mpiio_ext.analytics.jobs.table import ID, LOG_ID, MOTIF, PERFORMANCE, START, SYSTEM, Jobs, Slice, completed, typed
from mpiio_ext.analytics.readerprocess import is_hdf5
from mpiio_ext.analytics.sources.opener import open_log
from mpiio_ext.analytics.sources.records import SourceError
from mpiio_ext.common import files
from mpiio_ext.common.locks import alone

__all__ = ["FORMS", "check_target", "form_of", "read", "slices_of", "update", "write"]

_NOTES_KEY = b"mpiio_ext.notes"
_SQLITE, _PARQUET = b"SQLite format 3\0", b"PAR1"
#: Forms of a missing value in CSV of others.
_MISSING = ["", "NaN", "nan", "None", "NULL", "null", "<NA>"]
#: Errors that libraries raise for damaged files.
_DAMAGE = (
    OSError,
    EOFError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    IndexError,
    RuntimeError,
    OverflowError,
    MemoryError,
    pa.ArrowException,
    sqlite3.Error,
    zlib.error,
)


# ---- Parquet ---------------------------------------------------------------------------------------------------------


def _write_parquet(jobs: Jobs, path: Path) -> None:
    import pyarrow.parquet as pq

    notes = json.dumps(jobs.notes.to_pylist(), ensure_ascii=False).encode()
    pq.write_table(jobs.table.replace_schema_metadata({_NOTES_KEY: notes}), path)


def _read_parquet(path: Path, wanted: Collection[str] | None) -> Jobs:
    import pyarrow.parquet as pq

    # One file, not a data set: that would import what file systems and partitions need.
    with pq.ParquetFile(path) as file:
        names = file.schema_arrow.names
        table = file.read(columns=None if wanted is None else [name for name in names if name in wanted])
    notes = json.loads((table.schema.metadata or {}).get(_NOTES_KEY, b"[]"))
    return Jobs(table.replace_schema_metadata(), notes=notes)


# ---- CSV -------------------------------------------------------------------------------------------------------------


def _write_csv(jobs: Jobs, path: Path) -> None:
    import pyarrow.csv

    with gzip.GzipFile(path, "wb", mtime=0) if path.suffix == ".gz" else path.open("wb") as stream:
        pyarrow.csv.write_csv(jobs.table, stream)


def _read_csv(path: Path, wanted: Collection[str] | None) -> Jobs:
    import pyarrow.csv

    with open_log(path) as log:
        rows = list(csv.reader(line.decode("utf-8") for line in itertools.islice(log.lines(), 2)))
    if not rows or not any(name.strip() for name in rows[0]):
        raise HistoryError("it is empty")
    names, first = rows[0], rows[1] if len(rows) > 1 else rows[0]
    own = LOG_ID in names
    numbered = len(first) == len(names) + 1 and not own
    every = ["", *names] if numbered else names
    known = every[1:] if numbered or names[0] in ("", "Unnamed: 0") else every
    twice = next((name for name in known if known.count(name) > 1), None) if len(set(known)) < len(known) else None
    if twice is not None:
        raise HistoryError(f"there are two columns {twice!r}")
    if ID not in known:
        raise HistoryError(f"there is no column {ID}")
    texts = {column.name: column.arrow for column in SUMMARY.columns if column.type == "string"} if own else {}
    with open_log(path) as log:
        found = Jobs(
            pyarrow.csv.read_csv(
                log,
                pyarrow.csv.ReadOptions(column_names=every, skip_rows=1),
                pyarrow.csv.ParseOptions(newlines_in_values=own),
                pyarrow.csv.ConvertOptions(
                    include_columns=[name for name in known if wanted is None or name in wanted],
                    column_types=texts,
                    null_values=[""] if own else _MISSING,
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=not own,
                ),
            )
        )
    if log.wrong:
        raise HistoryError(log.wrong)
    return found


# ---- SQLite ----------------------------------------------------------------------------------------------------------


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _kind(kind: pa.DataType) -> str:
    return "INTEGER" if pa.types.is_integer(kind) else "REAL" if pa.types.is_floating(kind) else "TEXT"


def _put_table(base: sqlite3.Connection, name: str, table: pa.Table) -> None:
    key = table[LOG_ID] if LOG_ID in table.column_names and name == "summary" else pa.chunked_array([[None]])
    unique = not key.null_count and len(key.unique()) == len(key)
    keys = {LOG_ID: " PRIMARY KEY"} if unique else {}
    columns = ", ".join(f"{_quoted(each.name)} {_kind(each.type)}{keys.get(each.name, '')}" for each in table.schema)
    base.execute(f"CREATE TABLE {name} ({columns})")
    base.executemany(
        f"INSERT INTO {name} VALUES ({', '.join('?' * table.num_columns)})",
        zip(*(column.to_pylist() for column in table.columns), strict=True),
    )
    for index, over in (("by_job", (ID,)), ("by_motif", (SYSTEM, MOTIF))):
        if set(over) <= set(table.column_names):
            base.execute(f"CREATE INDEX {name}_{index} ON {name} ({', '.join(over)})")


def _write_sqlite(jobs: Jobs, path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as base, base:
        base.execute("PRAGMA synchronous = OFF")  # the file is new, and gets its name when it is whole
        base.execute('CREATE TABLE "columns" ("table" TEXT, "name" TEXT, "type" TEXT, "unit" TEXT, "meaning" TEXT)')
        for name, table in (("summary", jobs.table), ("notes", jobs.notes)):
            _put_table(base, name, table)
            described = [(field, field.metadata or {}) for field in table.schema]
            base.executemany(
                'INSERT INTO "columns" VALUES (?, ?, ?, ?, ?)',
                [
                    (
                        name,
                        field.name,
                        str(field.type).replace("double", "float64"),
                        *(words.get(each, b"").decode() for each in (b"unit", b"meaning")),
                    )
                    for field, words in described
                ],
            )


def _read_sqlite(path: Path, wanted: Collection[str] | None) -> Jobs:
    with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as base:
        there = base.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name").fetchall()
        columns = {name: [row[1] for row in base.execute(f"PRAGMA table_info({_quoted(name)})")] for (name,) in there}
        found = [name for name in columns if ID in columns[name]]
        if len(found) > 1:  # beside the table there may be notes about its rows
            found = [name for name in found if PERFORMANCE in columns[name]] or found
        if len(found) != 1:
            count = "no table" if not found else f"{len(found)} tables ({', '.join(found)})"
            raise HistoryError(f"{count} with a column {ID}; a table of jobs is one of them")
        taken = [name for name in columns[found[0]] if wanted is None or name in wanted]
        query = f"SELECT {', '.join(map(_quoted, taken))} FROM {_quoted(found[0])}"
        # The key of summaries is SQLite's row ID.
        order = f"{START} IS NULL, {START}, {LOG_ID}" if {START, LOG_ID} <= {*columns[found[0]]} else "rowid"
        try:
            rows = base.execute(f"{query} ORDER BY {order}").fetchall()
        except sqlite3.OperationalError:  # a view has no row IDs
            rows = base.execute(query).fetchall()
        notes: list[dict[str, Any]] = []
        if wanted is None and LOG_ID in columns.get("notes", ()):
            notes = [dict(zip(columns["notes"], row, strict=True)) for row in base.execute("SELECT * FROM notes")]
    values = list(zip(*rows, strict=True)) if rows else [() for _ in taken]
    return Jobs(dict(zip(taken, values, strict=True)), notes=notes)


# ---- all forms -------------------------------------------------------------------------------------------------------


def _write_hdf5(jobs: Jobs, path: Path) -> None:
    from mpiio_ext.analytics.jobs import hdf5

    hdf5.write(jobs, path)


#: Ending of a file's name -> how it is written.
#:
#: :meta hide-value:
FORMS: Mapping[str, Callable[[Jobs, Path], None]] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".csv.gz": _write_csv,
    ".sqlite": _write_sqlite,
    ".sqlite3": _write_sqlite,
    ".db": _write_sqlite,
    ".h5": _write_hdf5,
    ".hdf5": _write_hdf5,
}


def form_of(path: str | Path) -> str:
    """Return the ending of a file's name that gives its form.

    Raises
    ------
    HistoryError
        The name has none of the endings.
    """
    name = Path(path).name.lower()
    found = [ending for ending in FORMS if name.endswith(ending)]
    if not found:
        raise HistoryError(f"{path}: name a table that ends in {', '.join(FORMS)}")
    return max(found, key=len)


def check_target(path: str | Path) -> None:
    """Refuse a file to which jobs cannot be added, before the work that makes them.

    Raises
    ------
    HistoryError
        The file's name has no ending of a form.
    FileSystemError
        The path is a folder or the like, or the folder of the file is missing or cannot be written.
    """
    form_of(path)
    files.check_target(Path(path))


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Turn errors from damaged files into an error of one line that names the file."""
    try:
        yield
    except SourceError as error:
        raise HistoryError(str(error)) from error
    except AnalyticsError as error:
        raise HistoryError(f"{path}: not a table of jobs: {error}") from error
    except _DAMAGE as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise HistoryError(f"{path}: cannot be read as a table of jobs: {reason[0][:200]}") from error


def read(path: str | Path, columns: Collection[str] | None = None, *, slices: bool = True) -> Jobs:
    """Read a table with a row per job.

    Parameters
    ----------
    path : str or Path
        CSV, ``.csv.gz``, Parquet, SQLite or HDF5; the first bytes show the kind.
    columns : collection of str, optional
        Columns to read; those that are not there are passed over. Default: all, of summaries also those that are not
        there, as NULL.
    slices : bool
        Read the slices of HDF5, too.

    Raises
    ------
    HistoryError
        The file does not exist, has another form, is damaged, or has no column ``_jobid``.
    """
    path = Path(path)
    try:
        with path.open("rb") as stream:
            head = stream.read(16)
    except OSError as error:
        raise HistoryError(f"{path}: cannot be read: {error.strerror}") from error
    wanted = None if columns is None else {ID, *columns}
    with _named(path):
        if is_hdf5(path):
            from mpiio_ext.analytics.jobs import hdf5

            found = hdf5.read(path, slices)
        else:
            reader = _read_sqlite if head == _SQLITE else _read_parquet if head[:4] == _PARQUET else _read_csv
            found = reader(path, wanted)
        if ID not in found:
            raise HistoryError(f"there is no column {ID}")
        table = completed(found.table) if columns is None else typed(found.table)
        return Jobs(table, str(path), notes=found.notes.to_pylist(), slices=found.slices)


def slices_of(path: str | Path, job_id: int) -> dict[int, Slice]:
    """Return the slices of one job out of an HDF5 file, without reading others.

    Parameters
    ----------
    path : path
    job_id : int

    Returns
    -------
    dict of int to Slice
        By ``_log_id``; empty if the file has none of the job.

    Raises
    ------
    HistoryError
        The file cannot be read, or is damaged.
    """
    from mpiio_ext.analytics.jobs import hdf5

    with _named(Path(path)):
        return hdf5.slices_of(Path(path), job_id)


def write(jobs: Jobs, path: str | Path) -> int:
    """Write a table but for the columns of `derived.RELATIVE` into a file, which is replaced, and return its bytes.

    Raises
    ------
    HistoryError
        The file's name has no ending of a form, or the table cannot be written in this form.
    FileSystemError
        The file cannot be written.
    """
    path = Path(path)
    check_target(path)
    stored = Jobs(
        jobs.table.drop_columns([name for name in jobs.names if name in RELATIVE]),
        jobs.source,
        notes=jobs.notes.to_pylist(),
        slices=jobs.slices,
    )
    with _replaced(path) as beside:
        FORMS[form_of(path)](stored, beside)
    return path.stat().st_size


@contextlib.contextmanager
def _replaced(path: Path) -> Iterator[Path]:
    """Give the name of a file to write to; behind the block the file stands in place of another."""
    try:
        with files.replacing(path, ending="".join(path.suffixes[-2:])) as beside:
            yield beside
    except (sqlite3.Error, pa.ArrowException) as error:
        raise HistoryError(f"{path}: cannot be written: {str(error).replace(str(beside), path.name)}") from error


def _added(jobs: Jobs, path: Path) -> Jobs:
    """Add jobs to a file of HDF5."""
    from mpiio_ext.analytics.jobs import hdf5

    with _replaced(path) as beside:
        try:
            whole = hdf5.add(jobs, path, beside)
        except (AnalyticsError, *_DAMAGE) as error:
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise  # no damage of the input
            with _named(path):
                raise
    return whole


def update(jobs: Jobs, path: str | Path) -> Jobs:
    """Add summaries to a file, which is made if it is missing; rows of the same log are replaced.

    Waits while another process adds to the same file.

    Returns
    -------
    Jobs
        Everything that the file has now, but for slices that HDF5 had before, which are not read.

    Raises
    ------
    HistoryError
        The file is there and cannot be read, or has no key ``_log_id``.
    FileSystemError
        The file cannot be written, or its file system has no locks.
    """
    path = Path(path)
    check_target(path)
    with alone(path):
        if path.exists() and FORMS[form_of(path)] is _write_hdf5:
            return _added(jobs, path)
        whole = jobs
        if path.exists():
            before = read(path)
            if LOG_ID not in before:
                raise HistoryError(f"{path}: no summaries: there is no column {LOG_ID}")
            whole = merged(before, jobs)
        write(whole, path)
    return whole
