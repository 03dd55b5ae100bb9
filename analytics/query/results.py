"""Arrow tables for people and their libraries: pandas, Polars, rows, a small table of text.

Problem. pandas turns whole numbers with a gap into floats: record IDs lose digits and "absent" looks like NaN among
numbers, or worse is filled with 0. Nullable types keep both.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["preview", "to_pandas"]

_WIDTH = 28
_COLUMNS = 8


@functools.cache
def _nullable() -> Mapping[Any, Any]:
    import pandas as pd
    import pyarrow as pa

    return {
        pa.int8(): pd.Int8Dtype(), pa.int16(): pd.Int16Dtype(), pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype(),
    }  # fmt: skip


def to_pandas(table: Any) -> Any:
    """Return an Arrow table as a pandas frame; whole numbers and booleans have nullable types, absent is ``<NA>``."""
    return table.to_pandas(types_mapper=_nullable().get, integer_object_nulls=True)


def preview(table: Any, title: str, more: bool) -> str:
    """Return the rows of a small Arrow table as text: `title`, a line of names, a line of types, the rows."""
    names = list(table.column_names)
    shown = names if len(names) <= _COLUMNS else [*names[: _COLUMNS - 1], "…"]
    types = ["" if name == "…" else str(table.schema.field(name).type) for name in shown]
    lines = [list(shown), types]
    for row in table.select([name for name in shown if name != "…"]).to_pylist():
        lines.append([_cell(row[name]) if name != "…" else "" for name in shown])
    widths = [max(len(line[at]) for line in lines) for at in range(len(shown))]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    if len(names) > len(shown):
        text.append(f"… {len(names) - len(shown) + 1} more columns: {_list(names[_COLUMNS - 1 :])}")
    if more:
        text.append("… more rows")
    return "\n".join([title, *text])


def _cell(value: object) -> str:
    if value is None:
        return "NULL"
    text = f"{value:.6g}" if isinstance(value, float) and abs(value) < 1e5 else str(value)
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"


def _list(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (" …" if len(names) > 12 else "")
