"""Files that a part of the ranks have opened together are told, since a path cannot keep all of them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner

from mpiio_ext.cli import main
from mpiio_ext.pioneer.path.communicators import opened_by_a_part, partly_words
from mpiio_ext.pioneer.sanitize import SANITIZED
from mpiio_ext.pioneer.table import SCHEMA, Source, TraceInfo, with_info


def opened(rank: int, name: str, size: int | None) -> dict[str, object]:
    extra = None if size is None else json.dumps({"comm_size": size})
    return {"timestamp": 10 * rank, "operation": "MPI_File_open", "file": name, "duration": 1, "rank": rank,
            "thread": 0, "layer": "mpiio", "depth": 0, "result": 0, "handle": 7, "line": 1, "extra": extra}  # fmt: skip


TABLES = {rank: pa.Table.from_pylist([opened(rank, "/all", 4), opened(rank, f"/half.{rank // 2}", 2),
                                      opened(rank, "/own", 1), opened(rank, "/unknown", None)], SCHEMA)
          for rank in range(4)}  # fmt: skip


def test_only_files_of_a_part_are_found() -> None:
    found = opened_by_a_part(TABLES, 4)
    assert found == {"/half.0": 2, "/half.1": 2}
    said = partly_words(found, 4)
    assert said.startswith("2 files were opened on communicators of a part of the ranks, as '/half.0' by 2 of 4: ")
    assert partly_words(opened_by_a_part(TABLES, 2), 2) == ""


def test_the_command_says_it(tmp_path: Path) -> None:
    info = TraceInfo(format="test", ranks=4, sources=[Source(path="x")])
    table = pa.concat_tables(list(TABLES.values()))
    missing = [name for name in SANITIZED.names if name not in table.schema.names]
    for name in missing:
        table = table.append_column(SANITIZED.field(name), pa.nulls(len(table), SANITIZED.field(name).type))
    table = table.select(SANITIZED.names).cast(SANITIZED)
    pq.write_table(table.cast(with_info(SANITIZED, info)), tmp_path / "trace.parquet")
    words = ["pioneer", "path", str(tmp_path / "trace.parquet"), "-o", str(tmp_path / "path.parquet")]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert "2 files were opened on communicators of a part of the ranks" in done.stderr
