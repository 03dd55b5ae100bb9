"""Accesses that moved less than they asked for: of reads the path says both; bytes and files are of what was moved."""

from __future__ import annotations

import pyarrow as pa

from mpiio_ext.pioneer.compare.activity import activity_of_path, activity_of_tables
from mpiio_ext.pioneer.path.short import moved_in_extra
from mpiio_ext.pioneer.table import SCHEMA, TraceInfo
from mpiio_ext.pioneer.traces import path_of

ROW = {
    "timestamp": 0,
    "operation": "read",
    "file": "/f",
    "offset": 0,
    "size": 1 << 20,
    "duration": 1,
    "rank": 0,
    "thread": 0,
    "layer": "posix",
    "depth": 0,
    "result": 6,
    "line": 1,
}


def table_of(*rows: dict[str, object]) -> pa.Table:
    whole = [ROW | {"timestamp": 10 * number, "line": number + 1} | row for number, row in enumerate(rows)]
    return pa.Table.from_pylist(whole, SCHEMA)


def test_what_reads_have_moved() -> None:
    """Short reads, one at the end, a whole one, one that failed, one that is not known; writes have what they moved."""
    rows: list[dict[str, object]] = [
        {"operation": "open", "size": None, "result": 3},
        {},
        {"offset": 6, "result": 0, "extra": "?"},
        {"size": 6},
        {"result": -1},
        {"result": None},
        {"operation": "write", "result": 2},
        {"operation": "pwrite", "result": -1},
        {"operation": "write", "result": None, "size": 7},
        {"layer": "stdio", "operation": "fread", "size": 800, "result": 100, "extra": '{"count":100}'},
        {"layer": "stdio", "operation": "fread", "size": 800, "result": 10, "extra": '{"count":100}'},
        {"layer": "stdio", "operation": "fread", "size": 800, "result": 10},
        {"layer": "mpiio", "operation": "MPI_File_read", "result": 0},
    ]
    tables = {0: table_of(*rows)}
    path = path_of(tables, TraceInfo(format="test"))
    assert moved_in_extra(path.table["extra"]).tolist() == [-1, 6, 0, *[-1] * 7, 80, -1, -1]
    assert path.table["size_0"].to_pylist()[1:3] == [1 << 20, 1 << 20]
    assert path.table["size_0"].to_pylist()[6:9] == [2, 0, 7]
    asked = 3 * (1 << 20) + 12  # of one that failed, one that is not known, one of MPI-IO; whole and short ones
    for activity in (activity_of_tables(tables), activity_of_path(path)):
        assert activity.total_bytes(writes=False) == asked - 6 + 6 + 800 + 80 + 800
        assert activity.total_bytes(writes=True) == 2 + 0 + 7
