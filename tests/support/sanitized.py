"""Rows of a raw trace, and what phase A of PIONEER makes of them."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from mpiio_ext.pioneer.sanitize import sanitize
from mpiio_ext.pioneer.table import SCHEMA

Row = dict[str, Any]


def call(operation: str, layer: str = "posix", **values: Any) -> Row:
    """Return a row; `extra` may be an object."""
    extra = values.pop("extra", None)
    return {"operation": operation, "layer": layer, "depth": 0, "thread": 0, "rank": 0, **values,
            "extra": None if extra is None else json.dumps(extra)}  # fmt: skip


def batch_of(rows: list[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"timestamp": i, "line": i + 1, **row} for i, row in enumerate(rows)], SCHEMA)


def run(rows: list[Row], size: int = 0) -> list[Row]:
    """Return the sanitized rows, fed in batches of a size (0: one)."""
    whole = batch_of(rows)
    parts = [whole.slice(at, size) for at in range(0, len(rows), size)] if size else [whole]
    return pa.Table.from_batches(list(sanitize(parts))).to_pylist() if rows else []


def seen(rows: list[Row], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in run(rows)]
