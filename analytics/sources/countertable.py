"""Tables of Darshan's counters, Parquet or CSV, to arrays by column: the input of :mod:`.counters`.

Problem. Such a table has some 480 columns, most of which no query needs; pandas made the whole numbers of a module that
is not everywhere decimal ones, and CSV has them as texts.

Guarantees. Only the wanted columns are read. A value that is no number costs its line of CSV; a column of Parquet that
holds none is an error with its name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from mpiio_ext.analytics.sources.content import csv_values, lines_of
from mpiio_ext.analytics.sources.numbers import decimal
from mpiio_ext.analytics.sources.records import Problems, SourceError
from mpiio_ext.analytics.tables.arrays import Numbers, Whole

#: What Parquet files begin with.
PARQUET = b"PAR1"
#: Prefix of counters that are added up over a log.
TOTAL = "total_"
#: Columns of whole numbers up to 64 bits, and of texts.
IDS = ("recordid", "jobid")
TEXTS = ("uid", "exe", "filename", "fstype", "mountpt", "darshan_log_version")
_NOTHING = frozenset({"", "nan", "na", "null", "none"})
_LOG = {"jobid", "start_time", "end_time"}


@dataclasses.dataclass(frozen=True)
class Counters:
    """A table of counters.

    Attributes
    ----------
    form : {"records", "totals"}
        A row a record, or a row a log; names are without ``total_``.
    numbers : mapping of str to (rows,) array of float64
        NaN where there is none.
    ids : mapping of str to (rows,) array of int64
        ``jobid``, ``recordid`` (as a signed number).
    texts : mapping of str to list of (str or None)
    """

    form: Literal["records", "totals"]
    rows: int
    numbers: dict[str, Numbers]
    ids: dict[str, Whole]
    texts: dict[str, list[str | None]]


def form_of(names: Collection[str]) -> Literal["records", "totals"] | None:
    """Return the meaning of a row in a table with these columns; None if it is no table of counters."""
    there = set(names)
    if not there >= _LOG:
        return None
    if {"recordid", "rank"} <= there:
        return "records"
    return "totals" if "nprocs" in there and any(name.startswith(TOTAL) for name in there) else None


def _integer(value: object) -> int:
    """Return an ID of 64 bits as a signed number.

    Raises
    ------
    ValueError
        It is none.
    """
    text = str(value).removesuffix(".0")
    if not text.removeprefix("-").isdecimal() or not text.isascii() or not -(2**63) <= int(text) < 2**64:
        raise ValueError(f"{text[:40]!r} is no ID")
    number = int(text)
    return number - 2**64 if number >= 2**63 else number


def _number(text: str) -> float:
    return float("nan") if text.strip().lower() in _NOTHING else decimal(text.strip())


# ---- Parquet ---------------------------------------------------------------------------------------------------------


def _numbers(column: pa.ChunkedArray, name: str) -> Numbers:
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise ValueError(f"column {name} is of {kind}, and no numbers")
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    found: list[str | None] = [None if value is None else str(value) for value in column.to_pylist()]
    return found


def _parquet(path: Path, wanted: Collection[str]) -> Counters:
    import pyarrow.parquet as pq

    try:
        names = pq.read_schema(path).names
        form = form_of(names)
        if form is None:
            raise ValueError("Parquet, but no table of Darshan's counters")
        prefix = TOTAL if form == "totals" else ""
        plain = {name.removeprefix(prefix) if name.startswith(prefix) else name: name for name in names}
        table = pq.read_table(path, columns=[plain[name] for name in plain if name in wanted])
        columns = {name: table[theirs] for name, theirs in plain.items() if name in wanted}
        ids = {
            name: np.array([_integer(value) for value in columns[name].to_pylist()], np.int64)
            for name in IDS
            if name in columns
        }
        numbers = {name: _numbers(column, name) for name, column in columns.items() if name not in (*IDS, *TEXTS)}
    except (pa.ArrowException, OSError, ValueError, OverflowError, KeyError) as error:
        raise SourceError(str(path), 0, f"cannot be read: {str(error)[:200]}") from error
    return Counters(
        form, table.num_rows, numbers, ids, {name: _texts(columns[name]) for name in TEXTS if name in columns}
    )


# ---- CSV -------------------------------------------------------------------------------------------------------------


class _Csv:
    """Gathers the wanted columns of lines."""

    def __init__(self, path: Path, names: Sequence[str], wanted: Collection[str]) -> None:
        form = form_of(names)
        if form is None or len(set(names)) < len(names):
            raise SourceError(
                str(path),
                1,
                "the first line does not name jobid, start_time, end_time, and recordid "
                "and rank, or nprocs and total_…, each once",
            )
        self.form = form
        self._width = len(names)
        prefix = TOTAL if form == "totals" else ""
        plain = [name.removeprefix(prefix) if name.startswith(prefix) else name for name in names]
        self._places = {name: place for place, name in enumerate(plain) if name in wanted}
        self._columns: dict[str, list[Any]] = {name: [] for name in self._places}

    def add(self, values: Sequence[str]) -> None:
        """Add a line.

        Raises
        ------
        ValueError
            It has another number of values than the first one, or one that is none.
        """
        if len(values) != self._width:
            raise ValueError(f"{len(values)} values, and the first line names {self._width}")
        row: dict[str, Any] = {}
        for name, place in self._places.items():
            text = values[place]
            try:
                row[name] = _integer(text) if name in IDS else text if name in TEXTS else _number(text)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
        for name, value in row.items():
            self._columns[name].append(value)

    def counters(self) -> Counters:
        """Return the gathered columns."""
        columns = self._columns
        return Counters(
            self.form,
            len(columns["jobid"]),
            {name: np.array(values, np.float64) for name, values in columns.items() if name not in (*IDS, *TEXTS)},
            {name: np.array(columns[name], np.int64) for name in IDS if name in columns},
            {name: [text or None for text in columns[name]] for name in TEXTS if name in columns},
        )


def read_counters(path: Path, wanted: Collection[str], problems: Problems) -> Counters:
    """Read the wanted columns of a table.

    Parameters
    ----------
    path : Parquet, or CSV, compressed by gzip or not.
    wanted : names, without ``total_``.
    problems : lines of CSV that cannot be read are added.

    Raises
    ------
    SourceError
        It is none, or nothing of it can be read.
    """
    try:
        with path.open("rb") as file:
            parquet = file.read(len(PARQUET)) == PARQUET
    except OSError as error:
        raise SourceError(str(path), 0, f"cannot be read: {error.strerror or error}") from error
    if parquet:
        return _parquet(path, wanted)
    table: _Csv | None = None
    for number, text in lines_of(path, problems, ended=False):
        if not text.strip():
            continue
        try:
            values = csv_values(text)
            if table is None:
                table = _Csv(path, values, wanted)
            else:
                table.add(values)
        except SourceError:
            raise
        except ValueError as error:
            problems.add(number, str(error))
    if table is None:
        raise SourceError(str(path), 0, "no table of counters: there is no line")
    return table.counters()
