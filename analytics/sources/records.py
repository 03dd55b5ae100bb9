"""The contents of a source: tables of unmodified values, and everything in it that could not be read.

Problem. Monitoring tools write for people: their files are cut when a disk is full, damaged by copies, and mixed with
messages. An analysis must know what it has not seen.

Content. :class:`Records` are the tables of one source as Arrow, with the values as printed, and its :class:`Problem` s:
where, what, and how many lines or rows are lost by it. They become JSON and come back from it without loss.

Guarantees. The number of lost lines is exact; so many problems are named one by one, further ones are counted. A source
without any readable part raises :class:`SourceError` with its file and line.

Source: TOKIO, Section "Data integration"; the connectors of pytokio, which return data unmodified.
"""

from __future__ import annotations

import base64
import dataclasses
import gzip
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.tables.schema import Table

#: The name of the form of JSON, in its first field.
FORMAT = "mpiio_ext.records"
_VERSION = 1
#: Problems of one source that are named; the lines of further ones are counted.
MOST_NAMED = 1000
#: A row of a table, by column.
Row = dict[str, Any]
_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class SourceError(AnalyticsError, ValueError):
    """A source, or a line of it, that cannot be read.

    Parameters
    ----------
    file : str
        Its name; of a part of an archive ``archive.tgz:part``.
    line : int
        From 1; 0 if it is about the whole file.
    what : str
        The fault, and the remedy.
    """

    def __init__(self, file: str, line: int, what: str) -> None:
        super().__init__(f"{file}:{line}: {what}" if line else f"{file}: {what}")
        self.file = file
        self.line = line
        self.what = what

    def __reduce__(self) -> tuple[type[SourceError], tuple[str, int, str]]:
        return type(self), (self.file, self.line, self.what)


class LogError(Exception):
    """A log does not have its form; the message names the mistake. Code that knows the file makes a `SourceError`."""


@dataclasses.dataclass(frozen=True)
class Problem:
    """Something that could not be read.

    Attributes
    ----------
    file : str
        As in :class:`SourceError`.
    line : int
        From 1; 0 if it is about the whole file.
    lost : int
        Lines or rows that are left out because of it; 0: nothing is, but something is odd, or it is not known how many.
    """

    file: str
    line: int
    what: str
    lost: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}" if self.line else f"{self.file}: {self.what}"


class Problems:
    """Gathers the mistakes of a source.

    Parameters
    ----------
    file : str
        Name of the file that is read; may be changed while an archive is read.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self._named: list[Problem] = []
        self._more = 0
        self._more_lost = 0

    def add(self, line: int, what: str, lost: int = 1) -> None:
        """Note a problem of a line (0: of the whole file) by which so many lines are lost."""
        if len(self._named) < MOST_NAMED:
            self._named.append(Problem(self.file, line, what, lost))
        else:
            self._more += 1
            self._more_lost += lost

    def extend(self, problems: Sequence[Problem]) -> None:
        """Note problems that another reader has found."""
        for problem in problems:
            if len(self._named) < MOST_NAMED:
                self._named.append(problem)
            else:
                self._more += 1
                self._more_lost += problem.lost

    def all(self) -> tuple[Problem, ...]:
        """Return them in the order in which they were found."""
        if not self._more:
            return tuple(self._named)
        last = Problem(self.file, 0, f"{self._more:,} more problems, not named", self._more_lost)
        return (*self._named, last)

    @property
    def first(self) -> Problem | None:
        """The first problem."""
        return self._named[0] if self._named else None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Records:
    """The contents of one source.

    Attributes
    ----------
    source : str
        Name of the connector.
    path : str
        The file or folder.
    tables : mapping of str to pyarrow.Table
        By name; columns, units and meanings are in the connector's ``TABLES``. A value that a source does not have is
        NULL.
    header : mapping of str to JSON value
        Facts about all rows; its keys are in the connector's documentation.
    problems : tuple of Problem
    """

    source: str
    path: str
    tables: Mapping[str, pa.Table]
    header: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    @property
    def lost(self) -> int:
        """Lines or rows that could not be read, as far as they can be counted."""
        return sum(problem.lost for problem in self.problems)

    @property
    def status(self) -> Literal["whole", "partial"]:
        """Whether there is any problem; as of logs in the manifest of the store."""
        return "partial" if self.problems else "whole"

    def check(self) -> Records:
        """Return these records if there is nothing wrong with the source.

        Raises
        ------
        SourceError
            Something is: the first problem.
        """
        for problem in self.problems:
            more = f" ({self.lost:,} lines lost in all)" if self.lost > problem.lost else ""
            raise SourceError(problem.file, problem.line, problem.what + more)
        return self

    def equals(self, other: Records) -> bool:
        """Return whether the tables are the same, NaN being equal to itself."""
        return self.tables.keys() == other.tables.keys() and all(
            _columns(table) == _columns(other.tables[name]) for name, table in self.tables.items()
        )

    def to_json(self) -> str:
        """Return the records as JSON, from which :meth:`from_json` makes the same ones.

        Values of a column stand in one list. What is no number in JSON is a text: NaN, Infinity, -Infinity.
        """
        document = {
            "format": FORMAT,
            "version": _VERSION,
            "source": self.source,
            "path": self.path,
            "header": dict(self.header),
            "problems": [dataclasses.asdict(problem) for problem in self.problems],
            "tables": {name: _columns(table) for name, table in self.tables.items()},
        }
        return json.dumps(document, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str, name: str = "records") -> Records:
        """Return the records in JSON that :meth:`to_json` has made.

        Parameters
        ----------
        name : str
            Of the file, for errors.

        Raises
        ------
        SourceError
            The text is not JSON of :meth:`to_json`.
        """
        try:
            return _from_document(json.loads(text))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError, pa.ArrowException) as e:
            raise SourceError(name, 0, f"no records as this package writes them: {type(e).__name__}: {e}") from e

    def save(self, path: str | Path) -> None:
        """Write the JSON into a file, compressed where its name ends in ``.gz``.

        Raises
        ------
        SourceError
            The file cannot be written.
        """
        path = Path(path)
        data = self.to_json().encode()
        try:
            path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
        except OSError as error:
            raise SourceError(str(path), 0, f"cannot be written: {error.strerror}") from error


def make_table(table: Table, values: Mapping[str, Sequence[object]] | list[Row]) -> pa.Table:
    """Return an Arrow table of a documented form.

    Parameters
    ----------
    values : mapping of str to sequence, or list of mapping
        Values by column, or rows; what is not there is NULL.

    Raises
    ------
    pyarrow.ArrowException, OverflowError
        A value does not fit into its column: check numbers when they are read.
    """
    schema = table.schema()
    if isinstance(values, list):
        return pa.Table.from_pylist(values, schema=schema)
    rows = max((len(column) for column in values.values()), default=0)
    arrays = [
        pa.array(values[field.name], field.type) if field.name in values else pa.nulls(rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


# ---- JSON ------------------------------------------------------------------------------------------------------------


def _column(column: pa.ChunkedArray) -> dict[str, Any]:
    """Return a column as JSON: its Arrow type, and its values."""
    values = column.to_pylist()
    if pa.types.is_floating(column.type):
        values = [value if value is None or math.isfinite(value) else _word(value) for value in values]
    elif pa.types.is_binary(column.type):
        values = [None if value is None else base64.b64encode(value).decode() for value in values]
    return {"type": str(column.type), "values": values}


def _word(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _columns(table: pa.Table) -> dict[str, Any]:
    return {name: _column(table[name]) for name in table.column_names}


_TYPES = {
    str(kind): kind
    for kind in (
        pa.int32(),
        pa.int64(),
        pa.float64(),
        pa.string(),
        pa.bool_(),
        pa.binary(),
        pa.list_(pa.int32()),
        pa.list_(pa.string()),
    )
}


def _array(column: Mapping[str, Any]) -> pa.Array:
    kind, values = _TYPES[column["type"]], column["values"]
    if pa.types.is_floating(kind):
        values = [_WORDS[value] if isinstance(value, str) else value for value in values]
    elif pa.types.is_binary(kind):
        values = [None if value is None else base64.b64decode(value, validate=True) for value in values]
    return pa.array(values, kind)


def _from_document(document: Any) -> Records:
    if document["format"] != FORMAT or document["version"] != _VERSION:
        raise ValueError(f"format {document['format']!r}, version {document['version']!r}")
    texts = [document["source"], document["path"]]
    if not all(isinstance(text, str) for text in texts) or not isinstance(document["header"], dict):
        raise ValueError("source, path or header is of another type")
    tables = {
        str(name): pa.table({column: _array(values) for column, values in columns.items()})
        for name, columns in document["tables"].items()
    }
    problems = tuple(
        Problem(str(item["file"]), int(item["line"]), str(item["what"]), int(item["lost"]))
        for item in document["problems"]
    )
    return Records(source=texts[0], path=texts[1], tables=tables, header=document["header"], problems=problems)
