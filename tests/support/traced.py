"""Programs run alone under PIONEER's tracer, and the rows of their traces."""

from __future__ import annotations

import json
import pathlib
import subprocess
from typing import Any

import pyarrow as pa

from mpiio_ext._load import get_tracer
from mpiio_ext.pioneer.readers import own
from mpiio_ext.pioneer.table import SCHEMA, TraceInfo
from support.launch import base_environment

Row = dict[str, Any]


def tracing(folder: pathlib.Path, *libraries: pathlib.Path) -> dict[str, str]:
    """Return the variables under which a program leaves its trace in a folder; and libraries behind the tracer."""
    preload = ":".join(str(each) for each in (get_tracer(), *libraries))
    return {"MPIOX_TRACE_DIR": str(folder), "LD_PRELOAD": preload}


def traced(program: pathlib.Path, folder: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program alone under the tracer; the trace is in FOLDER/trace."""
    variables = base_environment() | tracing(folder / "trace")
    command = [str(program), arguments[0], str(folder), *arguments[1:]]
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120)


def read(folder: pathlib.Path) -> tuple[TraceInfo, list[Row]]:
    """Return a trace that the tracer has left; `extra` of a row is an object."""
    info, batches = own.read([folder])
    rows = pa.Table.from_batches(list(batches), SCHEMA).to_pylist()
    for row in rows:
        row["extra"] = json.loads(row["extra"]) if row["extra"] else {}
    return info, rows


def of(rows: list[Row], path: pathlib.Path | str, rank: int = 0, depth: int | None = 0) -> list[Row]:
    """Return the rows of a rank about a file, made by the program itself (or at any depth)."""
    return [
        row
        for row in rows
        if row["rank"] == rank and row["file"] == str(path) and (depth is None or row["depth"] == depth)
    ]
