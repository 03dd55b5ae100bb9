"""Raw traces for the tests of the readers: reading one as rows, and where real ones lie."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import pyarrow as pa
import pytest

from mpiio_ext.pioneer.readers import Reader, find_reader
from mpiio_ext.pioneer.table import SCHEMA, TraceInfo
from support.expected import in_words

#: Real measurements beside the repository, see `shared_data`.
DATA = pathlib.Path(
    os.environ.get("MPIOX_TEST_DATA", pathlib.Path(__file__).resolve().parents[2] / ".." / "shared" / "data")
)


def shared_data(name: str) -> pathlib.Path:
    """Return a folder of real measurements, or skip the test."""
    path = (DATA / name).resolve()
    if not path.exists():
        pytest.skip(f"no {name}: real traces are not part of the repository (MPIOX_TEST_DATA names their folder)")
    return path


def table_of(reader: Reader, *paths: pathlib.Path) -> tuple[TraceInfo, pa.Table]:
    """Return a trace as one table, of which every rule that holds for all readers has been checked."""
    info, batches = reader.read(list(paths))
    table = pa.Table.from_batches(list(batches), SCHEMA)
    table.validate(full=True)
    assert table.schema == SCHEMA
    assert sum(source.rows for source in info.sources) == len(table)
    assert all(source.lines >= 0 and source.loss.skipped >= 0 for source in info.sources)
    again = pa.Table.from_batches(list(reader.read(list(paths))[1]), SCHEMA)
    assert again.to_pylist() == table.to_pylist()
    return info, table


def rows_of(reader: Reader, *paths: pathlib.Path) -> list[dict[str, Any]]:
    """Return the rows of a trace, without the columns that are null."""
    _, table = table_of(reader, *paths)
    return [{name: value for name, value in row.items() if value is not None} for row in table.to_pylist()]


def told(reader: Reader, *paths: pathlib.Path) -> dict[str, Any]:
    """Return a trace as an expected text: a line for each call, without its nulls, one for each source, and losses."""
    info, table = table_of(reader, *paths)
    calls = []
    for row in table.to_pylist():
        begin = f"{row.pop('line')}: {row.pop('layer')} {row.pop('operation')}"
        calls.append(f"{begin} {in_words(row)}")
    sources = [
        f"{path_of.name}: rank {each.rank} of {each.host or 'a host'}: {each.rows} rows of {each.lines} lines"
        for each in info.sources
        if (path_of := pathlib.Path(each.path))
    ]
    lost = [
        f"{problem.line}: {problem.why}: {problem.text}".rstrip(": ")
        for each in info.sources
        for problem in each.loss.problems
    ]
    return {
        "format": f"{find_reader(paths[0]).NAME}, {info.ranks} ranks, time: {info.clock}, {info.skipped} lines skipped",
        "calls": calls,
        "sources": sources,
        "lost": lost,
    }


def is_sorted(table: pa.Table) -> bool:
    """Return whether the rows of each rank come in the order in which the calls began."""
    last: dict[int, int] = {}
    for rank, time in zip(table["rank"].to_pylist(), table["timestamp"].to_pylist(), strict=True):
        if time < last.get(rank, time):
            return False
        last[rank] = time
    return True
