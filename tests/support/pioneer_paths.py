"""Workload paths of PIONEER that tests write themselves: rows for a root and a child, and one path with all sorts."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pyarrow as pa

from mpiio_ext.pioneer.path.document import PathInfo
from mpiio_ext.pioneer.path.workload_path import WorkloadPath

BLOCK = 3000
SLACK_NS = 2_000_000


def row(operation: str, file: str | None, owner: str | None, layer: str = "posix", **values: Any) -> dict[str, Any]:
    """Return a row: `at` and `size` of both groups; `step` is how far the child's offset is from the root's."""
    at, size, step = values.get("at"), values.get("size"), values.get("step", 0)
    groups = values.get("groups", 3)
    found = {
        "operation": operation,
        "file": file,
        "owner": owner,
        "layer": layer,
        "groups": groups,
        "session": values.get("session"),
        "extra": json.dumps(values["extra"]) if "extra" in values else None,
        "size_0": size,
        "size_1": size,
        "offset_0": at,
        "offset_1": None if at is None else at + step,
        "slack_0": values.get("slack", 0),
        "slack_1": values.get("slack", 0),
    }
    return {
        name: None if name[-2:] in ("_0", "_1") and not groups >> int(name[-1]) & 1 else value
        for name, value in found.items()
    }


def path_of(
    rows: list[dict[str, Any]],
    groups: int = 2,
    members: tuple[tuple[int, ...], ...] | None = None,
    ranks: int | None = None,
) -> WorkloadPath:
    """Return the path of rows, of a root and one child, or of a root alone; `members` if there are several.

    The ID of a row that has none is its place; what else it does not say is null. `ranks`: if not those of `members`.
    """
    members = members or tuple((rank,) for rank in range(groups))
    table = pa.Table.from_pylist([{"id": i, **item} for i, item in enumerate(rows)], WorkloadPath.schema(len(members)))
    ranks = sum(map(len, members)) if ranks is None else ranks
    info = PathInfo(representatives=tuple(group[0] for group in members), members=members, ranks=ranks)
    return WorkloadPath(table, info)


def save(rows: list[dict[str, Any]], path: pathlib.Path, members: tuple[tuple[int, ...], ...] | None = None) -> None:
    path_of(rows, members=members).save(path)


EVERYTHING = [
    row("mkdir", "out", "shared"),
    row("stat", "nothing", "shared"),
    row("open", "out/cfg", "root", groups=1),
    row("write", "out/cfg", "root", groups=1, size=100),
    row("close", "out/cfg", "root", groups=1),
    row("fopen", "in.txt", "shared", "stdio", extra={"mode": "r"}),
    row("fread", "in.txt", "shared", "stdio", size=500),
    row("fseek", "in.txt", "shared", "stdio", at=10, extra={"whence": 0}),
    row("fread", "in.txt", "shared", "stdio", size=20),
    row("fclose", "in.txt", "shared", "stdio"),
    row("open", "out/p.{rank:04}", "private"),
    row("pwrite", "out/p.{rank:04}", "private", at=50, size=10),
    row("lseek", "out/p.{rank:04}", "private", at=0, extra={"whence": "SEEK_SET"}),
    row("write", "out/p.{rank:04}", "private", size=50),
    row("fstat", "out/p.{rank:04}", "private"),
    row("ftruncate", "out/p.{rank:04}", "private", at=55),
    row("fsync", "out/p.{rank:04}", "private"),
    row("MPI_File_open", "all", "shared", "mpiio", slack=SLACK_NS),
    row("MPI_File_write_at_all", "all", "shared", "mpiio", at=0, size=BLOCK, step=BLOCK),
    row("MPI_File_sync", "all", "shared", "mpiio"),
    row("MPI_File_iread_at", "all", "shared", "mpiio", at=0, size=BLOCK, step=BLOCK),
    row("MPI_Waitall", None, None, "mpi"),
    row("MPI_File_seek", "all", "shared", "mpiio", at=0, extra={"whence": 600}),
    row("MPI_File_read", "all", "shared", "mpiio", size=BLOCK),
    row("close", "out/p.{rank:04}", "private", slack=SLACK_NS),
    row("MPI_File_close", "all", "shared", "mpiio"),
    row("MPI_File_open", "own.{rank}", "private", "mpiio"),
    row("MPI_File_write", "own.{rank}", "private", "mpiio", size=7),
    row("MPI_File_close", "own.{rank}", "private", "mpiio"),
    row("no such operation", "all", "shared"),
]
