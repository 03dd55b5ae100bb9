"""Tables of Arrow as words: counts with separators, shares in percent, times as dates, units behind the names."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow.types as types

from mpiio_ext.analytics.analyses.counting import share_words
from mpiio_ext.analytics.tables.schema import TABLES
from mpiio_ext.common.page import Grid, Number
from mpiio_ext.common.units import digits_text

#: Rows of a table on a page; the whole table comes from the command line.
MOST_ROWS = 25


def cell_words(value: Any) -> str:
    """Return a value of a table in words; what is not known is a dash."""
    if value is None or value != value:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return digits_text(value, 4)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, datetime.datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, (list, tuple)):
        return ", ".join(cell_words(item) for item in value)
    return str(value)


_COLUMNS = [column for table in TABLES.values() for column in table.columns]
#: How columns of the schema are written: ``plain`` (numbers that name something), ``time`` (a date).
_FORMS = {column.name: "time" for column in _COLUMNS if column.unit == "s since 1970 UTC"} | {
    column.name: "plain" for column in _COLUMNS if column.type.startswith("int") and not column.unit
}
#: Units of columns of the schema, and of those that analyses make.
_UNITS = {column.name: column.unit for column in _COLUMNS if column.unit in ("B", "s", "B/s")} | {
    "bandwidth": "B/s",
    "seconds": "s",
    "of_best": "share",
    "plan_time": "s",
    "exchange_time": "s",
    "storage_time": "s",
    "wait_time": "s",
    "open_time": "s",
    "close_time": "s",
    "independent_time": "s",
    "message_bytes": "B",
    "request_mean_bytes": "B",
    "bytes": "B",
    "own": "B",
    "traffic": "B",
    "others": "B",
    "small": "share",
    "non_consecutive": "share",
    "collective": "share",
    "percent": "%",
}


def _heading(field: Any) -> str:
    """Return the name of a column as it was given for people, or made of the column's own."""
    given = (field.metadata or {}).get(b"heading")
    return str(field.name).replace("_", " ") if given is None else given.decode()


def _unit_of(field: Any) -> str:
    """Return the unit of a column: its own, or that of columns of this name."""
    own = (field.metadata or {}).get(b"unit", b"").decode()
    return {"1": "share"}.get(own, own) or _UNITS.get(field.name, "")


def _unit(field: Any, form: str) -> str:
    """Return what stands behind the name of a column of numbers; shares have their sign with each value."""
    if form == "time":
        return " [UTC]"
    unit = _unit_of(field)
    return f" [{unit}]" if unit and unit != "share" and not form else ""


def _formed(values: list[Any], form: str) -> list[str]:
    if form == "share":
        return [cell_words(None) if value is None or value != value else share_words(100 * value) for value in values]
    if form == "plain":
        return [cell_words(None) if value is None else str(value) for value in values]
    if form == "time":
        zone = datetime.timezone.utc
        values = [
            datetime.datetime.fromtimestamp(value, zone) if value is not None and abs(value) < 2e11 else value
            for value in values
        ]
    return [cell_words(value) for value in values]


def grid(table: Any, *, most: int = MOST_ROWS, folded: bool = True) -> Grid:
    """Return the first rows of an Arrow table as words: counts with separators, IDs plain, times as dates (UTC)."""
    numbers = [types.is_integer(field.type) or types.is_floating(field.type) for field in table.schema]
    forms = [
        "" if not number else _FORMS.get(field.name, "share" if _unit_of(field) == "share" else "")
        for field, number in zip(table.schema, numbers, strict=True)
    ]
    shown = table.slice(0, most)
    columns = [_formed(column.to_pylist(), form) for column, form in zip(shown.columns, forms, strict=True)]
    rows = [list(row) for row in zip(*columns, strict=True)]
    left = table.num_rows - shown.num_rows
    names = [
        Number(_heading(field) + _unit(field, form)) if number else _heading(field)
        for field, form, number in zip(table.schema, forms, numbers, strict=True)
    ]
    return Grid(columns=names, rows=rows, note=f"{left:,} more rows are not shown." if left > 0 else "", folded=folded)
