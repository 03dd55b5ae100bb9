"""Logs without names, IDs of people and jobs, or times of day, so that findings can be shown to others.

Problem. A name leaks by many ways: an executable, a path, a sentence of a diagnosis, a column of JSON.

Algorithm. Names are removed from the tables before any result is computed, so that no result can leak them. A column
passes only if a list of harmless columns has it: numbers that the schema counts or measures, and few texts. A column
that the schema gains, or that a query computes, is dropped until the list has it. Logs, jobs and files keep numbers of
their own, in order of appearance; times count from the beginning of the first job's 5-s step, so that they still meet
the steps of LMT. Applications become science areas with a number.

Guarantees. No value of a column that is not on the list appears in a result. Numbers stay: a reader who knows the exact
bytes of a job will find it again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mpiio_ext.analytics.tables.schema import SLURM, TABLES

if TYPE_CHECKING:
    import pyarrow as pa

#: Texts that name no one.
COUNTED_TEXTS = frozenset(
    (
        "source",
        "fs_type",
        "state",
        "log_version",
        "modules",
        "method",
        "pattern",
        "interface",
        "operation",
        "kind",
        "family",
    )
)
_TIME = "s since 1970 UTC"
#: Columns that get a number in order of appearance; the same value gets the same number in every table.
_NUMBERED = ("job_id", "log_id", "source_log", "file_id")
#: Numbers that stand for someone or something.
_SECRET_NUMBERS = frozenset(("uid", "exit_code"))
_STEP = 5.0


def _columns() -> dict[str, str]:
    """Return the unit of every column of the schema that may pass, by name."""
    passing = {}
    for table in TABLES.values():
        for column in table.columns:
            number = column.type in ("int32", "int64", "float64", "bool", "list<int32>")
            if column.name in COUNTED_TEXTS or (number and column.name not in _SECRET_NUMBERS):
                passing[column.name] = column.unit
    return passing


class _Numbers:
    """A number for each value of a column, from 1, in order of appearance."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[Any, int]] = {}

    def of(self, kind: str, values: list[Any]) -> list[int | None]:
        seen = self._seen.setdefault(kind, {})
        return [None if value is None else seen.setdefault(value, len(seen) + 1) for value in values]


def anonymous_tables(tables: Mapping[str, pa.Table], areas: Mapping[str, str] | None = None) -> dict[str, pa.Table]:
    """Return tables of the unified schema without names, IDs and times of day; they have the same columns.

    Parameters
    ----------
    tables : by name; those of one job, or of a few.
    areas : application (or pattern) -> science area.
    """
    from mpiio_ext.analytics.analyses.applications import labels

    numbers = _Numbers()
    apps = [app for app in tables["darshan_job"]["app"].to_pylist() if app] if "darshan_job" in tables else []
    names = labels(list(dict.fromkeys(apps)), areas or {})
    base = _base(tables)
    return {name: _anonymous(table, numbers, names, base) for name, table in tables.items()}


def _base(tables: Mapping[str, pa.Table]) -> float:
    """Return the beginning of the 5-s step in which the first job began."""
    import pyarrow.compute as pc

    for name in ("darshan_job", "runs", SLURM.name):
        column = "time" if name == "runs" else "start_time"
        if name in tables and (first := pc.min(tables[name][column]).as_py()) is not None:
            return math.floor(float(first) / _STEP) * _STEP
    return 0.0


def _anonymous(table: pa.Table, numbers: _Numbers, apps: Mapping[str, str], base: float) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    units = _columns()
    out = []
    for field in table.schema:
        column: Any = table[field.name]
        if field.name in _NUMBERED:
            column = pa.array(numbers.of(field.name, column.to_pylist()), field.type)
        elif field.name == "app":
            column = pa.array([apps.get(app) for app in column.to_pylist()], field.type)
        elif field.name == "file":
            names = [_file_name(name, numbers) for name in column.to_pylist()]
            column = pa.array(names, field.type)
        elif field.name.startswith("ost_word_"):
            pass
        elif field.name not in units:
            column = pa.nulls(table.num_rows, field.type)
        elif units[field.name] == _TIME:
            column = pc.subtract(column, base)
        out.append(column)
    return pa.table(out, schema=table.schema)


def _file_name(name: str | None, numbers: _Numbers) -> str | None:
    """Return "file 7"; the standard streams are the same for everyone."""
    if name is None or name in ("<STDIN>", "<STDOUT>", "<STDERR>"):
        return name
    return f"file {numbers.of('file', [name])[0]}"


def without_secrets(table: pa.Table) -> pa.Table:
    """Return the columns of a query's result that name no one, no job and no time of day."""
    units = _columns()
    kept = [name for name in table.column_names if name in units and name not in _NUMBERED and units[name] != _TIME]
    return table.select(kept)
