"""Objects of JSON documents as rows of a table: values of its columns' types, whatever else there is in ``others``."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from mpiio_ext.analytics.tables.schema import Table

__all__ = ["object_of", "row_of"]


def _integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _integers(value: Any) -> bool:
    return isinstance(value, list) and all(_integer(item) and abs(item) < 2**31 for item in value)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _text(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


#: Type of a column -> whether it takes a value, and what it wants.
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "int32": (lambda value: _integer(value) and abs(value) < 2**31, "a whole number"),
    "int64": (_integer, "a whole number"),
    "float64": (_number, "a number"),
    "string": (_text, "a text"),
    "bool": (lambda value: isinstance(value, bool), "true or false"),
    "list<int32>": (_integers, "a list of whole numbers"),
}  # fmt: skip


def row_of(item: Any, table: Table) -> dict[str, Any]:
    """Return an object as a row of a table; what is no column of it goes to its column ``others`` as JSON.

    Raises
    ------
    ValueError
        It is no object, or a value has another type than its column.
    """
    if not isinstance(item, Mapping):
        raise ValueError("it is no object")
    types = {column.name: column.type for column in table.columns if column.name != "others"}
    row: dict[str, Any] = {}
    for name, kind in types.items():
        value = item.get(name)
        fits, wanted = _KINDS[kind]
        if value is not None and not fits(value):
            raise ValueError(f"{name} is {json.dumps(value)[:40]}, and {wanted} is wanted")
        row[name] = value
    others = {name: value for name, value in item.items() if name not in types}
    row["others"] = json.dumps(others) if others else None
    return row


def object_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object of a row of :func:`row_of`; columns that are NULL are null."""
    others: dict[str, Any] = json.loads(row.get("others") or "{}")
    return {name: value for name, value in row.items() if name != "others"} | others
