"""The table of jobs: an Arrow table with a row per job, its columns as arrays, and facts beside the rows.

Problem. A history of jobs is small (thousands of rows) and wide (hundreds of columns), and each view needs other
columns of it. A file may hold a number as a text, or a text where a number should be. Summaries have notes, and series
of the servers, that belong to their rows.

Algorithm. Columns stay Arrow, and become an array of floats or of texts at their first use. Columns of chosen rows do
the same: a study uses hundreds of sets of rows, and a few columns of each. Columns of :data:`.columns.SUMMARY` have its
types and, as metadata, its units and meanings.

Guarantees. A missing value is NULL in the table, NaN or "" in an array, never 0. An impossible 0 is missing, too
(`NEVER_ZERO`), as are gaps of the servers' monitoring (:mod:`.coverage`). If a column holds a text and is read as
numbers, the error names the column and the text.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

from mpiio_ext.analytics.errors import HistoryError
from mpiio_ext.analytics.jobs.columns import NOTES, SUMMARY
from mpiio_ext.analytics.jobs.coverage import of_servers
from mpiio_ext.analytics.tables.arrays import Flags, Numbers, Texts, Whole
from mpiio_ext.analytics.tables.plain import column_of, column_of_array, flags_of, no_rows, numbers_of
from mpiio_ext.analytics.tables.schema import Table
from mpiio_ext.analytics.tools.series import Series

#: Series of a job by name: bytes_read, bytes_written, oss_cpu, open_ops …
Slice = Mapping[str, Series]
#: Columns that say which job a row is, when it began, where it did its I/O and what kind of I/O that was, as published.
ID, SYSTEM, MOTIF = "_jobid", "_file_system", "_benchmark_id"
#: Processes of the job, and those of its history as a text where the motif ran with several numbers of them.
PROCESSES, SCALE = "darshan_nprocs", "_scale"
#: Name of the file that a row is of, where several were put together.
FILE = "_file"
#: Name of the Darshan log that a row is of, where the table says it, and the key of summaries.
LOG, LOG_ID = "_log", "_log_id"
#: Start in s since 1970 as the published filters take it; :meth:`Jobs.times` says why that is not always UTC.
START = "_datetime_start"
#: The same as Darshan has it, in UTC.
TRUE_START = "darshan_start_time"
#: The estimate of a job's bandwidth, in MiB/s: bytes over the I/O time of the slowest process (Darshan).
PERFORMANCE = "darshan_agg_perf_by_slowest_posix"
#: Of the jobs that ran meanwhile: the job itself ran, so that 0 says that the scheduler's records were not there.
NEVER_ZERO = frozenset({"jobsdb_concurrent_jobs", "jobsdb_concurrent_nodes", "jobsdb_concurrent_nodehrs"})
#: Starts of jobs, in s since 1970: 1980-01-01 and 2100-01-01 UTC. Milliseconds, days and clocks that were never set are
#: far outside.
_EARLIEST, _LATEST = 315_532_800, 4_102_444_800


def _schema(table: Table) -> pa.Schema:
    """Return the Arrow schema of a table; each field has its unit and meaning in its metadata."""
    return pa.schema(
        [
            pa.field(column.name, column.arrow, metadata={"unit": column.unit, "meaning": column.meaning})
            for column in table.columns
        ]
    )


_SUMMARY, _NOTES = _schema(SUMMARY), _schema(NOTES)


class Jobs:
    """A table with a row per job.

    Parameters
    ----------
    columns : pyarrow.Table or mapping of str to array_like
        Values of all rows. None and NaN are missing values; a column of numbers and texts becomes one of texts.
    source : str
        Name of the table in messages.
    notes : iterable of mapping of str to value, optional
        Rows of :data:`.columns.NOTES`: what was missing or damaged; of a log without a row ``_log_id`` is NULL.
    slices : mapping of int to Slice, optional
        By ``_log_id``: what the servers did in each step of the job.

    Raises
    ------
    HistoryError
        Columns are not equally long.
    """

    def __init__(
        self,
        columns: pa.Table | Mapping[str, Any],
        source: str = "table",
        *,
        notes: Iterable[Mapping[str, Any]] = (),
        slices: Mapping[int, Slice] | None = None,
    ) -> None:
        self.source = source
        found = list(notes)
        self.notes = pa.Table.from_pylist(found, _NOTES) if found else no_rows(_NOTES)
        self.slices: Mapping[int, Slice] = slices or {}
        self._table = columns if isinstance(columns, pa.Table) else _table(columns, source)
        self._names = dict.fromkeys(self._table.column_names)
        self._whole: Jobs | None = None
        self._rows = np.zeros(0, dtype=np.int64)
        self._arrays: dict[tuple[str, str], npt.NDArray[Any]] = {}

    @classmethod
    def of_rows(
        cls,
        rows: Iterable[Mapping[str, Any]],
        notes: Iterable[Mapping[str, Any]] = (),
        slices: Mapping[int, Slice] | None = None,
    ) -> Jobs:
        """Return summaries of rows by column, ordered by start and log; other columns are left out."""
        table = pa.Table.from_pylist(list(rows), _SUMMARY).sort_by([(START, "ascending"), (LOG_ID, "ascending")])
        return cls(table, notes=notes, slices=slices)

    @property
    def table(self) -> pa.Table:
        """The Arrow table."""
        if self._table is None:
            assert self._whole is not None
            self._table = self._whole.table.take(column_of_array(self._rows))
        return self._table

    def __len__(self) -> int:
        return len(self._rows) if self._whole is not None else int(self._table.num_rows)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    @property
    def names(self) -> list[str]:
        """Names of the columns, in their order."""
        return list(self._names)

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows by column, None if a value is missing."""
        found: list[dict[str, Any]] = self.table.to_pylist()
        return found

    def need(self, *names: str) -> None:
        """Raise a HistoryError that names the columns which are not there."""
        missing = [name for name in names if name not in self]
        if missing:
            raise HistoryError(f"{self.source}: there is no column {', '.join(missing)}")

    def numbers(self, name: str) -> Numbers:
        """Return a column as float64, NaN where missing, a gap or an impossible 0; all NaN without such a column.

        Raises
        ------
        HistoryError
            A value is a text that is no number.
        """
        return self._array("numbers", name) if name in self else np.full(len(self), np.nan)

    def stored(self, name: str) -> Numbers:
        """Return a column as :meth:`numbers` does, with the values of servers in gaps of monitoring as stored."""
        return self._array("stored", name) if name in self else np.full(len(self), np.nan)

    def by_system(self) -> list[Flags]:
        """Return the rows of each file system of each file that was put into this table."""
        keys = [*zip(self.texts(FILE).tolist(), self.texts(SYSTEM).tolist(), strict=True)]
        places = {key: at for at, key in enumerate(dict.fromkeys(keys))}
        number = np.array([places[key] for key in keys], dtype=np.int64)
        return [number == at for at in range(len(places))]

    def own_rows(self) -> Flags:
        """Return the rows that ``summarize-job`` has made, by their key."""
        return ~self.missing(LOG_ID) if LOG_ID in self else np.zeros(len(self), dtype=np.bool_)

    def texts(self, name: str) -> Texts:
        """Return a column as texts, "" for missing values; all "" without such a column. IDs have no decimals."""
        return self._array("texts", name) if name in self else np.full(len(self), "", dtype=np.str_)

    def missing(self, name: str) -> Flags:
        """Return which rows have no value in a column."""
        self.need(name)
        return self._array("missing", name)

    def _array(self, kind: str, name: str) -> npt.NDArray[Any]:
        """Return an array of a column, made once; the array of chosen rows is taken from the whole table's."""
        key = kind, name
        if key not in self._arrays:
            if self._whole is not None:
                self._arrays[key] = self._whole._array(kind, name)[self._rows]
            elif kind == "numbers":
                self._arrays[key] = of_servers(self, name, self._array("stored", name))
            else:
                make = {"stored": _numbers, "texts": _texts, "missing": _missing}[kind]
                self._arrays[key] = make(self._table[name], name, self.source)
        return self._arrays[key]

    def times(self) -> Numbers:
        """Return the start of each job in s since 1970 UTC.

        The published ``_datetime_start`` has local time of the site as if it were UTC (the errata of the data set call
        ``darshan_start_time`` the ground truth), so that ``darshan_start_time`` goes first.

        Raises
        ------
        HistoryError
            A start is no time between the years 1980 and 2100.
        """
        for name in (START, TRUE_START):
            starts = self.numbers(name)
            wrong = np.flatnonzero((starts < _EARLIEST) | (starts >= _LATEST))  # not where it is NaN
            if len(wrong):
                where = f"{self.source}: column {name} holds {starts[wrong[0]]:.15g} in row {wrong[0] + 1}"
                raise HistoryError(f"{where}; starts are seconds since 1970 UTC, of the years 1980 to 2099")
        true = self.numbers(TRUE_START)
        return np.where(np.isnan(true), self.numbers(START), true)

    def take(self, rows: Flags | Whole) -> Jobs:
        """Return the rows of a mask, or those at the places given, in their order; without notes and slices."""
        taken = Jobs({}, self.source)
        taken._table, taken._names, taken._whole = None, self._names, self
        taken._rows = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows.astype(np.int64)
        return taken

    def joined(self, columns: Mapping[str, Any]) -> Jobs:
        """Return the table with more columns; one that is there already is replaced."""
        return Jobs({**{name: self.table[name] for name in self.names}, **columns}, self.source)

    @classmethod
    def stacked(cls, tables: Iterable[Jobs], source: str) -> Jobs:
        """Return the rows of several tables; a column that one of them lacks is missing in its rows."""
        every = [one.table for one in tables]
        names = dict.fromkeys(name for table in every for name in table.column_names)
        return cls(
            {
                name: _stacked(
                    [
                        table[name] if name in table.column_names else pa.chunked_array([pa.nulls(table.num_rows)])
                        for table in every
                    ]
                )
                for name in names
            },
            source,
        )


# ---- Arrow columns ---------------------------------------------------------------------------------------------------


def typed(table: pa.Table) -> pa.Table:
    """Return a table whose columns have the types, units and meanings of summaries if their values allow it.

    Times of Arrow become s since 1970, dictionaries what they stand for; other columns stay as they are.
    """
    arrays, fields = [], []
    for name in table.column_names:
        column, number = _decoded(table[name]), _SUMMARY.get_field_index(name)
        field = pa.field(name, column.type)
        if number >= 0:
            wanted = _SUMMARY.field(number)
            alike = _is_number(column.type) and _is_number(wanted.type)
            if alike or types.is_null(column.type) or column.type == wanted.type:
                with contextlib.suppress(pa.ArrowInvalid):  # a part of a whole number
                    column = column.cast(wanted.type, safe=types.is_integer(wanted.type))
                    field = wanted
        arrays.append(column)
        fields.append(field)
    return pa.table(arrays, pa.schema(fields, table.schema.metadata))


def completed(table: pa.Table) -> pa.Table:
    """Return a table with all columns of summaries, in their order, in front of others; missing ones are NULL.

    A table without the key of summaries is no table of summaries, and stays unchanged except for its types.
    """
    table = typed(table)
    if LOG_ID not in table.column_names:
        return table
    lacking = {
        field.name: pa.nulls(table.num_rows, field.type) for field in _SUMMARY if field.name not in table.column_names
    }
    for name, nulls in lacking.items():
        table = table.append_column(_SUMMARY.field(name), nulls)
    return table.select([*_SUMMARY.names, *(name for name in table.column_names if name not in _SUMMARY.names)])


def _table(columns: Mapping[str, Any], source: str) -> pa.Table:
    arrays = {name: _column(values) for name, values in columns.items()}
    lengths = {len(values) for values in arrays.values()}
    if len(lengths) > 1:
        raise HistoryError(f"{source}: columns of {min(lengths)} and of {max(lengths)} rows are no table")
    return typed(pa.table(arrays))


def _column(values: Any) -> pa.Array | pa.ChunkedArray:
    """Return values as an Arrow column, NULL if they are None or NaN."""
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
        return column_of_array(values)
    found = [None if value is None or value != value else value for value in values]
    try:
        return column_of(found)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):  # numbers and texts
        return column_of([None if value is None else _plain(value) for value in found])


def _stacked(parts: Sequence[pa.ChunkedArray]) -> pa.Array | pa.ChunkedArray:
    """Return one column of those of several tables."""
    kinds = {part.type for part in parts if not types.is_null(part.type)} or {pa.null()}
    if len(kinds) > 1:
        return _column([value for part in parts for value in part.to_pylist()])
    (kind,) = kinds
    return pa.chunked_array([chunk for part in parts for chunk in part.cast(kind).chunks], kind)


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    if types.is_large_string(column.type) or types.is_string_view(column.type):
        return column.cast(pa.string())
    if types.is_timestamp(column.type):
        unit = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[column.type.unit]
        found = [None if value is None else value / unit for value in column.cast(pa.int64()).to_pylist()]
        return pa.chunked_array([pa.array(found, pa.float64())])
    return column


def _is_number(kind: pa.DataType) -> bool:
    return bool(types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind))


# ---- columns as arrays -----------------------------------------------------------------------------------------------


def _numbers(column: pa.ChunkedArray, name: str, source: str) -> Numbers:
    if _is_number(column.type):
        out = numbers_of(column)
    else:
        out = np.full(len(column), np.nan)
        for row, value in enumerate(column.to_pylist()):
            if value is None or value == "":
                continue
            try:
                out[row] = float(value)
            except (TypeError, ValueError) as error:
                where = f"{source}: column {name} holds {str(value)[:40]!r} in row {row + 1}"
                raise HistoryError(f"{where}, which is no number") from error
    return np.where(out == 0, np.nan, out) if name in NEVER_ZERO else out


def _texts(column: pa.ChunkedArray, _name: str, _source: str) -> Texts:
    if types.is_string(column.type):
        return np.array([value or "" for value in column.to_pylist()], dtype=np.str_)
    return np.array(["" if value is None else _plain(value) for value in column.to_pylist()], dtype=np.str_)


def _missing(column: pa.ChunkedArray, _name: str, _source: str) -> Flags:
    found = flags_of(column.is_null(nan_is_null=True))
    if types.is_string(column.type):
        found = found | np.array([value == "" for value in column.to_pylist()], dtype=np.bool_)
    return found


def _plain(value: object) -> str:
    """Return a value as text: an ID that was read as a float because others are missing is a whole number."""
    if isinstance(value, float):
        return "" if value != value else str(int(value)) if value.is_integer() else str(value)
    return str(value)
