"""JSON documents of sources: reading one, and its objects as rows of a table with whatever else in ``others``."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeGuard

from mpiio_ext.analytics.sources.content import read_bytes
from mpiio_ext.analytics.sources.records import Problems, Row, SourceError
from mpiio_ext.analytics.tables.schema import Table


def read_json(path: Path, problems: Problems) -> object:
    """Return the JSON document in a file.

    Raises
    ------
    SourceError
        It is none: with the line at which it stops being one.
    """
    data = read_bytes(path, problems)
    try:
        found: object = json.loads(data.decode("utf-8"))
    except json.JSONDecodeError as error:
        text = f"is not JSON from column {error.colno}, or cut: {error.msg}"
        raise SourceError(str(path), error.lineno, text) from error
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise SourceError(str(path), line, "bytes that are no text") from error
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits; a thousand brackets
        raise SourceError(str(path), 1, f"is not JSON: {error}") from error
    return found


def _integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _integers(value: object) -> bool:
    return isinstance(value, list) and all(_integer(item) and abs(item) < 2**31 for item in value)


def _number(value: object) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number of 400 digits
        return False


def _text(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


#: Type of a column -> whether it takes a value, and what it wants.
_KINDS: dict[str, tuple[Callable[[object], bool], str]] = {
    "int32": (lambda value: _integer(value) and abs(value) < 2**31, "a whole number"),
    "int64": (_integer, "a whole number"),
    "float64": (_number, "a number"),
    "string": (_text, "a text"),
    "bool": (lambda value: isinstance(value, bool), "true or false"),
    "list<int32>": (_integers, "a list of whole numbers"),
}


def row_of(item: object, table: Table) -> Row:
    """Return an object as a row of a table; names without a column go to its column ``others`` as JSON.

    Raises
    ------
    ValueError
        It is no object, or a value has another type than its column.
    """
    if not isinstance(item, Mapping):
        raise ValueError("it is no object")
    types = {column.name: column.type for column in table.columns if column.name != "others"}
    row: Row = {}
    for name, kind in types.items():
        value = item.get(name)
        fits, wanted = _KINDS[kind]
        if value is not None and not fits(value):
            raise ValueError(f"{name} is {json.dumps(value)[:40]}, and {wanted} is wanted")
        row[name] = float(value) if kind == "float64" and value is not None else value  # Arrow rounds no whole number
    others = {name: value for name, value in item.items() if name not in types}
    row["others"] = json.dumps(others) if others else None
    return row
