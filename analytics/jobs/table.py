"""Rows of jobs as columns: one array per column, numbers with NaN and texts with "" where a value is missing.

Problem. A history of jobs is small (thousands of rows) and wide (hundreds of columns), and each view needs other
columns of it. A file may hold a number as a text, or a text where a number should be.

Algorithm. Columns are kept as they were read, and become an array of floats or of texts when they are first asked for.
Those of chosen rows are taken when they are asked for: a study takes hundreds of sets of rows, and a few columns each.

Guarantees. What is missing is NaN or "", never 0, and a 0 that cannot be is missing too (`NEVER_ZERO`); `column` and
`missing` give what was read. A column that is asked for as numbers and holds a text is an error
that names the column and the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mpiio_ext.analytics.jobs.errors import HistoryError

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Flags = npt.NDArray[np.bool_]
    Places = npt.NDArray[np.int64]

__all__ = ["ID", "LOG", "MOTIF", "NEVER_ZERO", "PERFORMANCE", "START", "SYSTEM", "TRUE_START", "Jobs"]

#: Columns that say which job a row is, when it began, where it did its I/O and what kind of I/O that was, as published.
ID, SYSTEM, MOTIF = "_jobid", "_file_system", "_benchmark_id"
#: Name of the Darshan log that a row is of, where the table says it.
LOG = "_log"
#: Start in s since 1970 as the published filters take it; :meth:`Jobs.times` says why that is not always UTC.
START = "_datetime_start"
#: The same as Darshan has it, in UTC.
TRUE_START = "darshan_start_time"
#: The estimate of a job's bandwidth, in MiB/s: bytes over the I/O time of the slowest process (Darshan).
PERFORMANCE = "darshan_agg_perf_by_slowest_posix"
#: Of the jobs that ran meanwhile: the job itself ran, so that 0 says that the scheduler's records were not there.
NEVER_ZERO = frozenset({"jobsdb_concurrent_jobs", "jobsdb_concurrent_nodes", "jobsdb_concurrent_nodehrs"})


class Jobs:
    """A table with a row per job.

    Parameters
    ----------
    columns : mapping of str to array_like
        Name -> values of all rows. None, NaN and "" are missing values.
    source : str
        Name of the table in messages.

    Raises
    ------
    HistoryError
        Columns are not equally long.
    """

    def __init__(self, columns: Mapping[str, Any], source: str = "table") -> None:
        self.source = source
        self._columns: Mapping[str, npt.NDArray[Any]] = {name: _array(values) for name, values in columns.items()}
        lengths = {len(values) for values in self._columns.values()}
        if len(lengths) > 1:
            raise HistoryError(f"{source}: columns of {min(lengths)} and of {max(lengths)} rows are no table")
        self._rows = lengths.pop() if lengths else 0
        self._numbers: dict[str, Floats] = {}
        self._texts: dict[str, npt.NDArray[np.str_]] = {}

    def __len__(self) -> int:
        return self._rows

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    @property
    def names(self) -> list[str]:
        """Names of the columns, in their order."""
        return list(self._columns)

    def need(self, *names: str) -> None:
        """Raise a HistoryError that names the columns which are not there."""
        missing = [name for name in names if name not in self._columns]
        if missing:
            raise HistoryError(f"{self.source}: there is no column {', '.join(missing)}")

    def numbers(self, name: str) -> Floats:
        """Return a column as float64, NaN where missing or an impossible 0; all NaN where there is no such column.

        Raises
        ------
        HistoryError
            A value is a text that is no number.
        """
        if name not in self._columns:
            return np.full(self._rows, np.nan)
        if name not in self._numbers:
            found = _floats(self._columns[name], f"{self.source}: column {name}")
            self._numbers[name] = np.where(found == 0, np.nan, found) if name in NEVER_ZERO else found
        return self._numbers[name]

    def texts(self, name: str) -> npt.NDArray[np.str_]:
        """Return a column as texts, "" where missing; all "" where there is no such column. IDs have no decimals."""
        if name not in self._columns:
            return np.full(self._rows, "", dtype=np.str_)
        if name not in self._texts:
            self._texts[name] = _words(self._columns[name])
        return self._texts[name]

    def times(self) -> Floats:
        """Return the start of each job in s since 1970 UTC.

        The published ``_datetime_start`` holds the clock of the wall in the site's time zone as if it were UTC (the
        errata of the data set call ``darshan_start_time`` the ground truth), so that the latter goes first.
        """
        true = self.numbers(TRUE_START)
        return np.where(np.isnan(true), self.numbers(START), true)

    def missing(self, name: str) -> Flags:
        """Return which rows have no value in a column."""
        values = self._columns[name]
        if values.dtype.kind == "f":
            return np.isnan(values.astype(np.float64, copy=False))
        if values.dtype.kind in "iub":
            return np.zeros(self._rows, dtype=np.bool_)
        out: Flags = np.array([value is None or value != value or value == "" for value in values], dtype=np.bool_)
        return out

    def take(self, rows: Flags | Places) -> Jobs:
        """Return the rows of a mask, or those at the places given, in their order."""
        taken = Jobs({}, self.source)
        taken._columns = _Taken(self._columns, rows.copy())
        taken._rows = int(np.count_nonzero(rows)) if rows.dtype == np.bool_ else len(rows)
        return taken

    def joined(self, columns: Mapping[str, Any]) -> Jobs:
        """Return the table with more columns; one that is there already is replaced."""
        return Jobs({**self._columns, **columns}, self.source)

    def column(self, name: str) -> Any:
        """Return a column as it was read."""
        self.need(name)
        return self._columns[name]

    @classmethod
    def stacked(cls, tables: Iterable[Jobs], source: str) -> Jobs:
        """Return the rows of several tables; a column that one of them lacks is missing in its rows."""
        every = list(tables)
        names = list(dict.fromkeys(name for table in every for name in table.names))
        return cls({name: _stacked([table._columns.get(name) for table in every], [len(table) for table in every])
                    for name in names}, source)  # fmt: skip


class _Taken(Mapping[str, "npt.NDArray[Any]"]):
    """Columns of chosen rows, each taken when it is first asked for."""

    def __init__(self, whole: Mapping[str, npt.NDArray[Any]], rows: Flags | Places) -> None:
        self._whole, self._rows = whole, rows
        self._taken: dict[str, npt.NDArray[Any]] = {}

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        if name not in self._taken:
            self._taken[name] = self._whole[name][self._rows]
        return self._taken[name]

    def __contains__(self, name: object) -> bool:
        return name in self._whole

    def __iter__(self) -> Iterator[str]:
        return iter(self._whole)

    def __len__(self) -> int:
        return len(self._whole)


def _words(values: npt.NDArray[Any]) -> npt.NDArray[np.str_]:
    if values.dtype.kind in "fiub":
        return np.array([_plain(value) for value in values.tolist()], dtype=np.str_)
    return np.array(["" if value is None or value != value else _plain(value) for value in values], dtype=np.str_)


def _stacked(parts: Sequence[npt.NDArray[Any] | None], lengths: Sequence[int]) -> npt.NDArray[Any]:
    """Return one column of those of several tables, None where a table lacks it; floats stay floats."""
    floats = all(part is None or part.dtype.kind == "f" for part in parts)
    return np.concatenate([
        np.full(length, np.nan if floats else None, dtype=np.float64 if floats else object) if part is None
        else part.astype(np.float64 if floats else object)
        for part, length in zip(parts, lengths, strict=True)])  # fmt: skip


def _array(values: Any) -> npt.NDArray[Any]:
    array = values if isinstance(values, np.ndarray) else np.asarray(values)
    if array.ndim != 1:  # e.g. texts of different lengths in a list of lists
        raise HistoryError("a column is a list of values")
    return array.astype(object) if array.dtype.kind in "US" else array


def _floats(values: npt.NDArray[Any], where: str) -> Floats:
    if values.dtype.kind in "fiub":
        return values.astype(np.float64)
    out = np.full(len(values), np.nan)
    for row, value in enumerate(values):
        if value is None or value == "":
            continue
        try:
            out[row] = float(value)
        except (TypeError, ValueError) as error:
            raise HistoryError(f"{where} holds {str(value)[:40]!r} in row {row + 1}, which is no number") from error
    return out


def _plain(value: Any) -> str:
    """Return a value as text: an ID that was read as a float because others are missing is a whole number."""
    if isinstance(value, float):
        return "" if value != value else str(int(value)) if value.is_integer() else str(value)
    return str(value)
