"""What connectors of monitoring sources return, made by hand for tests."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from mpiio_ext.analytics import sources
from mpiio_ext.analytics.sources import Records
from mpiio_ext.analytics.tables.schema import LMT, SLURM
from support.expected import in_words

#: Types of columns that are no floats.
TEXTS = (
    "ost_name",
    "file_system",
    "server",
    "kind",
    "quantity",
    "operation",
    "target",
    "type",
    "nid",
    "host",
    "metric",
    "unit",
    "component",
    "labels",
    "node",
    "node_name",
    "filesystem_name",
    "mount",
)
INTEGERS = ("index", "ost", "x_coord", "y_coord", "z_coord", "total", "used")


def table(columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Return an Arrow table of columns by name."""
    kinds = {
        name: pa.string() if name in TEXTS else pa.int64() if name in INTEGERS else pa.float64() for name in columns
    }
    return pa.table({name: pa.array(list(values), kinds[name]) for name, values in columns.items()})


def records(source: str, path: str = "made", header: Mapping[str, Any] | None = None, **tables: pa.Table) -> Records:
    """Return records of a source."""
    return Records(source=source, path=path, tables=tables, header=dict(header or {}))


def lmt_table(rows: Sequence[tuple[float, str, Any, Any]], file_system: str = "snx11025") -> pa.Table:
    """Return rows of LMT: (time, OST, bytes read, bytes written)."""
    return pa.Table.from_pylist(
        [
            {
                "time": time,
                "ost": 0,
                "ost_name": name,
                "file_system": file_system,
                "bytes_read": read,
                "bytes_written": wrote,
            }
            for time, name, read, wrote in rows
        ],
        schema=LMT.schema(),
    )


def slurm_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return jobs of the scheduler by column."""
    return pa.Table.from_pylist([dict(row) for row in rows], schema=SLURM.schema())


def read(folder: pathlib.Path, text: str | bytes, source: str | None = None, zone: str = "UTC") -> Records:
    """Return what a connector reads of a text, whose tables have been checked."""
    path = folder / "input"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    found = sources.read(path, source, time_zone=zone)
    for each in found.tables.values():
        each.validate(full=True)
    return found


def said(found: Records) -> list[str]:
    """Return the problems of what :func:`read` has read."""
    return [str(problem).replace(found.path, "input") for problem in found.problems]


def told(found: Records) -> dict[str, Any]:
    """Return what was read as an expected text: the columns of each table, and a line for each row."""
    state = f"{found.source}, {found.status}, {found.lost} lost, {json.dumps(found.header)}"
    columns = {name: " ".join(each.column_names) for name, each in found.tables.items()}
    rows = {name: [in_words(row) for row in each.to_pylist()] for name, each in found.tables.items()}
    return {"read": state, "problems": said(found), "columns": columns, **rows}
