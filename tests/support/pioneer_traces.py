"""A small trace that tests write themselves: raw rows, and the sanitized table of them as a file."""

from __future__ import annotations

import pathlib
from typing import Any

import pyarrow as pa

from mpiio_ext.pioneer.table import SCHEMA, TraceInfo
from mpiio_ext.pioneer.traces import sanitized, save_sanitized

MS = 1_000_000


def trace_batches(ranks: int = 3, writes: int = 20, *, size: int = 1000, pause: int = MS) -> list[pa.RecordBatch]:
    """Return raw rows: each rank writes its file, the root a log as well."""
    rows: list[dict[str, Any]] = []
    for rank in range(ranks):
        files = ["/scratch/log", f"/scratch/own.{rank:03}"] if rank == 0 else [f"/scratch/own.{rank:03}"]
        now = 5 * MS
        for file in files:
            data = [("pwrite", at * size, size) for at in range(writes)]
            calls = [("open", None, None), *data, ("close", None, None)]
            for line, (name, offset, amount) in enumerate(calls, 1):
                rows.append(
                    {
                        "timestamp": now,
                        "operation": name,
                        "file": file,
                        "offset": offset,
                        "size": amount,
                        "duration": MS // 2,
                        "rank": rank,
                        "thread": 0,
                        "layer": "posix",
                        "depth": 0,
                        "result": 3 if name == "open" else amount or 0,
                        "handle": 3,
                        "line": line,
                    }
                )
                now += MS // 2 + pause
    return pa.Table.from_pylist(rows, SCHEMA).to_batches()


def saved_table(folder: pathlib.Path, name: str = "table.parquet", **values: Any) -> pathlib.Path:
    """Write a sanitized table."""
    save_sanitized(TraceInfo(format="test", ranks=3), sanitized(trace_batches(**values)), folder / name)
    return folder / name
