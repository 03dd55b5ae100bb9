"""Summaries in files: Parquet, CSV, SQLite (scalars) and HDF5 (scalars and slices), and back.

Forms, by the name of the file
------------------------------
- ``.parquet``: the table; units and meanings are metadata of its fields, the notes (as JSON) of the file.
- ``.csv``, ``.csv.gz``: the table with its first line of names. NULL is nothing, an empty text ``""``.
- ``.sqlite``, ``.sqlite3``, ``.db``: tables ``summary`` (key ``_log_id``, an index on ``_jobid``), ``notes``, and
  ``columns`` with units and meanings.
- ``.h5``, ``.hdf5``: a dataset a column in ``/summary`` and ``/notes``, whose attributes say unit, meaning, and which
  value stands for NULL; and ``/slices/JOB/LOG/SERIES``, steps × servers, with unit, step and begin as attributes. Its
  attribute ``servers`` names the dataset in ``/servers`` with their names, one for all series of the same servers.
  In front (HDF5's user block) stands the checksum of all that follows. It is compared before the HDF5 library, which a
  damaged file can crash, sees the file.

Where rows are added to HDF5 the slices of other logs are copied as they lie there, and neither read nor compressed.

Guarantees. A file is there whole or not at all: it is written beside, and renamed. Of several processes that add to one
file at a time each waits for the others, and no row is lost. Every form gives back the values
that were written, NULL included; what a form does not have (slices, or in CSV the notes) is empty. Notes of logs with
a row are in its column ``_notes`` in every form.

Source: TOKIO, Section "Data integration": a row of a database or CSV, time series in HDF5.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import gzip
import hashlib
import io
import json
import os
import sqlite3
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.jobs.columns import NOTES, SUMMARY
from mpiio_ext.analytics.jobs.model import Slice, Summaries, arrow_schema, table_of
from mpiio_ext.analytics.store.lock import alone
from mpiio_ext.analytics.tables.schema import Table
from mpiio_ext.analytics.tools.series import Series
from mpiio_ext.common.files import replacing
from mpiio_ext.errors import FileSystemError

__all__ = ["FORMS", "check_target", "form_of", "read", "slices_of", "update", "write"]

Made = TypeVar("Made")

_NO_INT = np.iinfo(np.int64).min
_NO_TEXT = "\\N"
_NOTES_KEY = b"mpiio_ext.notes"
#: What damaged files raise in the libraries that read them.
_DAMAGE = (OSError, EOFError, ValueError, TypeError, KeyError, AttributeError, IndexError, RuntimeError, OverflowError,
           MemoryError, pa.ArrowException, sqlite3.Error, zlib.error)  # fmt: skip


# ---- Parquet ---------------------------------------------------------------------------------------------------------


def _write_parquet(summaries: Summaries, path: Path) -> None:
    import pyarrow.parquet as pq

    notes = json.dumps(summaries.notes.to_pylist(), ensure_ascii=False).encode()
    pq.write_table(summaries.table.replace_schema_metadata({_NOTES_KEY: notes}), path)


def _read_parquet(path: Path) -> Summaries:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    notes = json.loads((table.schema.metadata or {}).get(_NOTES_KEY, b"[]"))
    return Summaries(_shaped(table, SUMMARY), table_of(NOTES, notes))


def _shaped(table: Any, form: Table) -> Any:
    """Return a table with all columns of a form in their order and type; one that is not there is NULL."""
    if "_log_id" not in table.column_names:
        raise AnalyticsError("it has no column _log_id")
    schema = arrow_schema(form)
    arrays = [
        table[field.name].cast(field.type) if field.name in table.column_names else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


# ---- CSV -------------------------------------------------------------------------------------------------------------


def _write_csv(summaries: Summaries, path: Path) -> None:
    import pyarrow.csv

    out = io.BytesIO()
    pyarrow.csv.write_csv(summaries.table, out)
    data = out.getvalue()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def _read_csv(path: Path) -> Summaries:
    import pyarrow.csv

    data = path.read_bytes()
    if data.startswith(b"\x1f\x8b"):
        data = gzip.decompress(data)
    table = pyarrow.csv.read_csv(
        io.BytesIO(data),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types={field.name: field.type for field in arrow_schema(SUMMARY)},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    return Summaries(_shaped(table, SUMMARY), table_of(NOTES, []))


# ---- SQLite ----------------------------------------------------------------------------------------------------------

_SQL = {"int64": "INTEGER", "float64": "REAL", "string": "TEXT"}


def _write_sqlite(summaries: Summaries, path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as base, base:
        base.execute("PRAGMA synchronous = OFF")  # the file is new, and gets its name when it is whole
        for form, table, key in ((SUMMARY, summaries.table, "_log_id"), (NOTES, summaries.notes, "")):
            columns = ", ".join(
                f'"{column.name}" {_SQL[column.type]}{" PRIMARY KEY" if column.name == key else ""}'
                for column in form.columns
            )
            base.execute(f'CREATE TABLE "{form.name}" ({columns})')
            places = ", ".join("?" * len(form.columns))
            base.executemany(f'INSERT INTO "{form.name}" VALUES ({places})',
                             [tuple(row.values()) for row in table.to_pylist()])  # fmt: skip
            base.execute(f'CREATE INDEX "{form.name}_by_job" ON "{form.name}" ("_jobid")')
        base.execute('CREATE TABLE "columns" ("table" TEXT, "name" TEXT, "type" TEXT, "unit" TEXT, "meaning" TEXT)')
        base.executemany('INSERT INTO "columns" VALUES (?, ?, ?, ?, ?)', [
            (form.name, column.name, column.type, column.unit, column.meaning)
            for form in (SUMMARY, NOTES) for column in form.columns
        ])  # fmt: skip


def _read_sqlite(path: Path) -> Summaries:
    with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as base:
        base.row_factory = sqlite3.Row
        rows, notes = (
            [dict(row) for row in base.execute(f'SELECT * FROM "{form.name}"').fetchall()] for form in (SUMMARY, NOTES)
        )
    if rows and "_log_id" not in rows[0]:
        raise AnalyticsError("its table summary has no column _log_id")
    return Summaries.of(rows, notes)


# ---- HDF5 ------------------------------------------------------------------------------------------------------------


#: Values that a dataset may have; a damaged shape asks for more than memory has.
_MOST_VALUES = 100_000_000


def _checked(dataset: Any) -> Any:
    """Return a dataset whose shape can be true."""
    if dataset.size > _MOST_VALUES:
        raise AnalyticsError(f"{dataset.name} has a shape of {dataset.shape}, which is damaged")
    return dataset


def _put_table(group: Any, table: Any, form: Table) -> None:
    import h5py

    for column in form.columns:
        values = table[column.name].to_pylist()
        if column.type == "string":
            null: Any = _NO_TEXT
            data: Any = np.array([null if value is None else value for value in values], dtype=object)
            kind: Any = h5py.string_dtype()
        elif column.type == "int64":
            null, kind = _NO_INT, np.int64
            data = np.array([null if value is None else value for value in values], dtype=np.int64)
        else:
            null, kind = np.nan, np.float64
            data = np.array([null if value is None else value for value in values], dtype=np.float64)
        dataset = group.create_dataset(column.name, data=data, dtype=kind)
        dataset.attrs["unit"], dataset.attrs["meaning"] = column.unit, column.meaning
        dataset.attrs["null"] = null


def _get_table(group: Any, form: Table) -> Any:
    columns: dict[str, list[Any]] = {}
    for column in form.columns:
        if column.name not in group:
            continue
        dataset = _checked(group[column.name])
        values = dataset.asstr()[()].tolist() if column.type == "string" else dataset[()].tolist()
        # Not the attribute, which is for others: of a text it lies where a damaged file can crash HDF5.
        null = {"string": _NO_TEXT, "int64": _NO_INT}.get(column.type)
        columns[column.name] = [None if value == null or value != value else value for value in values]
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1:
        raise AnalyticsError(f"its columns of {form.name} have different lengths")
    count = lengths.pop() if lengths else 0
    return table_of(form, [{name: values[k] for name, values in columns.items()} for k in range(count)])


def _put_series(file: Any, group: Any, name: str, series: Series) -> None:
    data = group.create_dataset(name, data=series.values, compression="gzip", shuffle=True) if series.values.size else (
        group.create_dataset(name, data=series.values))  # fmt: skip
    data.attrs["quantity"], data.attrs["unit"], data.attrs["level"] = series.quantity, series.unit, series.level
    data.attrs["step_s"], data.attrs["first"] = series.step_s, series.first
    data.attrs["servers"] = _put_names(file.require_group("servers"), series.names)


def _put_names(group: Any, names: Sequence[str]) -> str:
    """Return the name of the dataset with these names, which is made if it is missing."""
    import h5py

    key = hashlib.sha256(json.dumps(names).encode()).hexdigest()[:32]
    if key not in group:
        group.create_dataset(key, data=np.array(names, dtype=object), dtype=h5py.string_dtype())
    return key


def _get_names(data: Any) -> list[str]:
    found: list[str] = _checked(data.file["servers"][data.attrs["servers"]]).asstr()[()].tolist()
    return found


def _get_series(data: Any) -> Series:
    names = _get_names(data)
    return Series(
        quantity=str(data.attrs["quantity"]), unit=str(data.attrs["unit"]), level=bool(data.attrs["level"]),
        step_s=float(data.attrs["step_s"]), first=float(data.attrs["first"]), names=tuple(names),
        values=np.asarray(_checked(data)[()], dtype=np.float64),
    )  # fmt: skip


def _put_slices(file: Any, summaries: Summaries) -> None:
    jobs = dict(zip(summaries.table["_log_id"].to_pylist(), summaries.table["_jobid"].to_pylist(), strict=True))
    slices = file.require_group("slices")
    for log, found in summaries.slices.items():
        group = slices.require_group(str(jobs[log])).create_group(str(log))
        for name, series in found.items():
            _put_series(file, group, name, series)


#: Bytes of the user block, and what it begins with.
_BLOCK, _SIGNED = 512, b"mpiio_ext summaries, SHA-256 of what follows 512 bytes: "


def _digest(path: Path) -> bytes:
    """Return the checksum of a file behind its user block."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        stream.seek(_BLOCK)
        while part := stream.read(1 << 20):
            digest.update(part)
    return digest.hexdigest().encode()


@contextlib.contextmanager
def _made(path: Path) -> Iterator[Any]:
    """Give a new HDF5 file, which gets its checksum when it is closed."""
    import h5py

    with h5py.File(path, "w", userblock_size=_BLOCK) as file:
        yield file
    digest = _digest(path)
    with path.open("r+b") as stream:
        stream.write(_SIGNED + digest + b"\n")


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Give an HDF5 file whose checksum is right."""
    import h5py

    with path.open("rb") as stream:
        block = stream.read(_BLOCK)
    if not block.startswith(_SIGNED):
        raise AnalyticsError("it has no checksum in front: summarize-job has not written it, or it is damaged")
    if block[len(_SIGNED) :].split(b"\n")[0] != _digest(path):
        raise AnalyticsError("its checksum is wrong: it is damaged, or another program has changed it")
    with h5py.File(path, "r") as file:
        yield file


def _write_hdf5(summaries: Summaries, path: Path) -> None:
    with _made(path) as file:
        _put_table(file.create_group("summary"), summaries.table, SUMMARY)
        _put_table(file.create_group("notes"), summaries.notes, NOTES)
        _put_slices(file, summaries)


#: Stands for a slice that stays in the file.
_STORED: Slice = {}


def _add_hdf5(summaries: Summaries, path: Path, target: Path) -> Summaries:
    """Write what a file has, and more summaries, into another, and return it without the slices that were there before.

    These are copied as they lie in the file, compressed. A new file, since HDF5 does not use all space again.
    """
    with _opened(path) as before, _made(target) as file:
        stored = {int(log): job for job, logs in before["slices"].items() for log in logs}
        merged = _get_tables(before, dict.fromkeys(stored, _STORED)).merged(summaries)
        whole = dataclasses.replace(
            merged, slices={log: found for log, found in merged.slices.items() if found is not _STORED}
        )
        _put_table(file.create_group("summary"), whole.table, SUMMARY)
        _put_table(file.create_group("notes"), whole.notes, NOTES)
        if "servers" in before:
            before.copy("servers", file)
        slices = file.create_group("slices")
        for log, job in stored.items():
            if merged.slices.get(log) is _STORED:
                before.copy(before["slices"][job][str(log)], slices.require_group(job))
        _put_slices(file, whole)
    return whole


def _slices(file: Any, job_id: int | None) -> dict[int, Slice]:
    groups = file["slices"]
    jobs = list(groups) if job_id is None else [name for name in (str(job_id),) if name in groups]
    return {
        int(log): {name: _get_series(data) for name, data in group.items()}
        for job in jobs
        for log, group in groups[job].items()
    }


def _get_tables(file: Any, slices: Mapping[int, Slice]) -> Summaries:
    if "_log_id" not in file["summary"]:
        raise AnalyticsError("its summary has no column _log_id")
    return Summaries(_get_table(file["summary"], SUMMARY), _get_table(file["notes"], NOTES), slices)


def _read_hdf5(path: Path, slices: bool = True) -> Summaries:
    with _opened(path) as file:
        return _get_tables(file, _slices(file, None) if slices else {})


def slices_of(path: str | Path, job_id: int) -> dict[int, Slice]:
    """Return the slices of one job out of an HDF5 file, without reading others.

    Parameters
    ----------
    path : path
    job_id : int

    Returns
    -------
    dict of int to Slice
        By ``_log_id``; empty where the file has none of the job.

    Raises
    ------
    AnalyticsError
        The file cannot be read, or is damaged.
    """
    with _named(Path(path)), _opened(Path(path)) as file:
        return _slices(file, job_id)


# ---- all forms -------------------------------------------------------------------------------------------------------

Writer = Callable[[Summaries, Path], None]
Reader = Callable[[Path], Summaries]
_PARQUET, _CSV = (_write_parquet, _read_parquet), (_write_csv, _read_csv)
_SQLITE, _HDF5 = (_write_sqlite, _read_sqlite), (_write_hdf5, _read_hdf5)
#: Ending of a file's name -> how it is written and read.
#:
#: :meta hide-value:
FORMS: Mapping[str, tuple[Writer, Reader]] = {
    ".parquet": _PARQUET, ".csv": _CSV, ".csv.gz": _CSV, ".sqlite": _SQLITE, ".sqlite3": _SQLITE, ".db": _SQLITE,
    ".h5": _HDF5, ".hdf5": _HDF5,
}  # fmt: skip


def form_of(path: str | Path) -> str:
    """Return the ending of a file's name that says its form.

    Raises
    ------
    AnalyticsError
        It has none of them.
    """
    name = Path(path).name.lower()
    found = [ending for ending in FORMS if name.endswith(ending)]
    if not found:
        raise AnalyticsError(f"{path}: summaries are written to files that end in {', '.join(FORMS)}")
    return max(found, key=len)


def check_target(path: str | Path) -> None:
    """Refuse a file to which summaries cannot be added, before the work that makes them.

    Raises
    ------
    AnalyticsError
        Its name says no form, it is a folder or the like, or its folder is missing or cannot be written.
    """
    path = Path(path)
    form_of(path)
    try:
        there = path.stat()
    except FileNotFoundError:
        there = None
    except OSError as error:
        raise AnalyticsError(f"{path}: cannot be written: {error.strerror}") from error
    if there is not None and not stat.S_ISREG(there.st_mode):
        raise AnalyticsError(f"{path}: cannot be written: it is no regular file")
    if not path.parent.is_dir():
        raise AnalyticsError(f"{path}: cannot be written: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise AnalyticsError(f"{path}: cannot be written: the folder {path.parent} is not writable")


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Turn what damaged files raise into an error that names the file."""
    try:
        yield
    except AnalyticsError as error:
        raise AnalyticsError(f"{path}: no summaries: {error}") from error
    except _DAMAGE as error:
        raise AnalyticsError(
            f"{path}: cannot be read as summaries: {str(error)[:200] or type(error).__name__}"
        ) from error


def read(path: str | Path, *, slices: bool = True) -> Summaries:
    """Return the summaries in a file; of HDF5, where nobody wants the slices, the tables alone.

    Raises
    ------
    AnalyticsError
        The file cannot be read, is damaged, or has no summaries.
    """
    path = Path(path)
    reader = FORMS[form_of(path)][1]
    with _named(path):
        return reader(path) if slices or reader is not _read_hdf5 else _read_hdf5(path, slices=False)


def write(summaries: Summaries, path: str | Path) -> None:
    """Write summaries into a file, which is replaced.

    Raises
    ------
    AnalyticsError
        The file cannot be written, or its name says no form.
    """
    path = Path(path)
    check_target(path)
    writer = FORMS[form_of(path)][0]
    _replaced(path, lambda beside: writer(summaries, beside))


def _replaced(path: Path, make: Callable[[Path], Made]) -> Made:
    """Make a file beside another, put it in its place, and return what making it has returned."""
    try:
        with replacing(path, ending="".join(path.suffixes[-2:])) as beside:
            return make(beside)
    except FileSystemError as error:
        raise AnalyticsError(str(error)) from error
    except (sqlite3.Error, pa.ArrowException) as error:
        raise AnalyticsError(f"{path}: cannot be written: {str(error).replace(str(beside), path.name)}") from error


def _added(summaries: Summaries, path: Path) -> Summaries:
    """Add summaries to a file of HDF5."""

    def make(beside: Path) -> Summaries:
        try:
            return _add_hdf5(summaries, path, beside)
        except (AnalyticsError, *_DAMAGE) as error:
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise  # no damage of what is read
            with _named(path):
                raise

    return _replaced(path, make)


def update(summaries: Summaries, path: str | Path) -> Summaries:
    """Add summaries to a file, which is made if it is missing; rows of the same log are replaced.

    Waits while another process adds to the same file.

    Returns
    -------
    Summaries
        Everything that the file has now, but for slices that HDF5 had before, which are not read.

    Raises
    ------
    AnalyticsError
        The file is there and cannot be read, cannot be written, or its file system has no locks.
    """
    path = Path(path)
    check_target(path)
    with alone(path):
        if path.exists() and FORMS[form_of(path)] is _HDF5:
            return _added(summaries, path)
        whole = read(path).merged(summaries) if path.exists() else summaries
        write(whole, path)
    return whole
