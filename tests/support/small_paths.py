"""Small workload paths for tests of PIONEER."""

from __future__ import annotations

import json
from typing import Any

from mpiio_ext.pioneer.path.workload_path import WorkloadPath
from support import pioneer_paths


def row(operation: str, file: str | None, owner: str | None, layer: str = "posix", **values: Any) -> dict[str, Any]:
    """Return an operation of both groups; `step` is how far the child is from the root."""
    at, step, groups = values.get("at"), values.get("step", 0), values.get("groups", 3)
    found = {
        "operation": operation,
        "file": file,
        "owner": owner,
        "layer": layer,
        "groups": groups,
        "extra": json.dumps(values["extra"]) if "extra" in values else None,
    }
    for group in range(2):
        if groups >> group & 1:
            found |= {
                f"offset_{group}": None if at is None else at + group * step,
                f"size_{group}": values.get("size"),
                f"slack_{group}": values.get("slack", 2500),
                f"duration_{group}": 1000,
            }
    return found


def path_of(rows: list[dict[str, Any]], members: tuple[tuple[int, ...], ...] = ((0,), (1, 2, 3))) -> WorkloadPath:
    return pioneer_paths.path_of(rows, members=members, ranks=4)


def grouped(rows: list[dict[str, Any]], members: tuple[tuple[int, ...], ...] = ((0,), (1, 2, 3))) -> WorkloadPath:
    """Return a path; `g0`, `g1` of a row are (offset, size, slack) of the groups, `extra` an object."""
    filled = []
    for item in rows:
        values = {
            f"{name}_{group}": value
            for group in range(len(members))
            for name, value in zip(("offset", "size", "slack"), item.get(f"g{group}", ()), strict=False)
        }
        extra = json.dumps(item["extra"]) if "extra" in item else None
        filled.append({"layer": "posix", "groups": (1 << len(members)) - 1, **item, **values, "extra": extra})
    return pioneer_paths.path_of(filled, members=members, ranks=0)


KERNEL = [
    row("open", "/d/log", "root", groups=1, extra={"flags": 577, "mode": 438}),
    row("write", "/d/log", "root", groups=1, at=0, size=5),
    row("close", "/d/log", "root", groups=1),
    row("MPI_File_open", "/d/all.dat", "shared", "mpiio", extra={"amode": 9, "comm": "world"}),
    *(
        row("MPI_File_write_at_all", "/d/all.dat", "shared", "mpiio", at=4000 * at, size=1000, step=1000)
        for at in range(5)
    ),
    row("MPI_File_close", "/d/all.dat", "shared", "mpiio"),
    row("open", "/d/own.{rank:03}", "private"),
    row("pwrite", "/d/own.{rank:03}", "private", at=8, size=7, step=1),
    row("close", "/d/own.{rank:03}", "private"),
    row("stat", "/d/else", "child", groups=2),
]
