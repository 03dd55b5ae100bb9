"""Rows of a raw trace, and what phase A of PIONEER makes of them."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from mpiio_ext.pioneer.sanitize.sanitize import sanitize
from mpiio_ext.pioneer.table import SCHEMA

Row = dict[str, Any]

#: Names that look like files of the system and are not, and such files.
OF_PROGRAMS = (
    "/data/model.pth",
    "/home/u/checkpoints/last.pth",
    "/usr/workspace/u/a.h5",
    "/usr/local/data/a",
    "/var/tmp/u/a",
    "/var/scratch/a",
    "/var/lib/jenkins/workspace/a",
    "/opt/data/a",
    "/run/user/1000/a",
    "/run/media/u/disk/a",
    "/dev/shm/u/a",
    "/scratch/ompi.dat",
    "/data/bin/python_runs/a",
    "/data/x.so.old/a",
    "/data/a.locktest.b",
    "/data/notes.python",
    "/libraries/a",
    "/data/site-packages.h5",
)
OF_THE_SYSTEM = (
    "/venv/lib/python3.11/site-packages/distutils-precedence.pth",
    "/venv/lib/python3.11/site-packages",
    "/usr/share/a",
    "/usr/local/lib/a",
    "/opt/openmpi/etc/a.conf",
    "/opt/cray/pe/lib/a",
    "/var/lib/sss/mc/passwd",
    "/run/udev/data/a",
    "/var/run/a",
    "/etc/hosts",
    "/lib/x86_64-linux-gnu",
    "/data/libx.so",
    "/data/libx.so.1.2",
    "/data/a.py",
    "/usr",
    "/data/__pycache__/a",
    "/data/.f.locktest.12",
    "/tmp/pmix-12.h/a",
    "/dev/shm/sem.abc",
    "/venv/bin/python3.11",
)


def call(operation: str, layer: str = "posix", **values: Any) -> Row:
    """Return a row; `extra` may be an object."""
    extra = values.pop("extra", None)
    return {
        "operation": operation,
        "layer": layer,
        "depth": 0,
        "thread": 0,
        "rank": 0,
        **values,
        "extra": None if extra is None else json.dumps(extra),
    }


def batch_of(rows: list[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"timestamp": i, "line": i + 1, **row} for i, row in enumerate(rows)], SCHEMA)


def run(rows: list[Row], size: int = 0) -> list[Row]:
    """Return the sanitized rows, fed in batches of a size (0: one)."""
    whole = batch_of(rows)
    parts = [whole.slice(at, size) for at in range(0, len(rows), size)] if size else [whole]
    return pa.Table.from_batches(list(sanitize(parts))).to_pylist() if rows else []


def seen(rows: list[Row], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in run(rows)]
