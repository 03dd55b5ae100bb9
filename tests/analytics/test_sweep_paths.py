"""Critical paths of tables: from memory and from Parquet, in pieces of whole jobs, whatever the order of the rows."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.sweep import critical_files, critical_paths, job_ranges, sweep
from mpiio_ext.errors import ArgumentError


def table(jobs: int, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 12, jobs)
    sizes[jobs // 2] = 500  # a job that is larger than a piece
    job = np.repeat(np.arange(jobs) * 3 + 10, sizes)
    start = rng.integers(0, 50, len(job)).astype(float)
    end = start + rng.integers(-1, 12, len(job))
    unknown = rng.random(len(job)) < 0.1
    return pa.table(
        {
            "job_id": job,
            "log_id": job * 2 + rng.integers(0, 2, len(job)),
            "file_id": np.arange(len(job)),
            "write_start": pa.array(start, mask=unknown),
            "write_end": pa.array(end, mask=unknown),
        }
    )


def parquet(folder: pathlib.Path, rows: pa.Table, *, shuffled: bool = False, statistics: bool = True) -> pathlib.Path:
    """Write a table as three Parquet files with many row groups; jobs continue from one file into the next."""
    if shuffled:
        rows = rows.take(np.random.default_rng(5).permutation(rows.num_rows))
    third = rows.num_rows // 3
    for k in range(3):
        part = rows.slice(k * third, third if k < 2 else None)
        pq.write_table(part, folder / f"part{k}.parquet", row_group_size=97, write_statistics=statistics)
    return folder


def expected(rows: pa.Table, by: str) -> dict[int, tuple[int, float]]:
    """Critical files and critical time of each job, each job by itself."""
    out = {}
    for job in np.unique(rows[by].to_numpy()):
        mine = rows.filter(pa.compute.equal(rows[by], int(job)))
        found = sweep(*(mine[name].to_numpy().astype(float) for name in ("write_start", "write_end")))
        out[int(job)] = (int(found.critical.sum()), float(found.exclusive.sum()))
    return out


def answer(found: pa.Table, by: str) -> dict[int, tuple[int, float]]:
    return {row[by]: (row["critical_files"], row["critical_time"] or 0.0) for row in found.to_pylist()}


@pytest.mark.parametrize("by", ["job_id", "log_id"])
@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_memory_and_parquet_agree(tmp_path: pathlib.Path, by: str, shuffled: bool, threads: int) -> None:
    rows = table(120)
    folder = parquet(tmp_path, rows, shuffled=shuffled)
    expect = expected(rows, by)
    sources: list[Any] = [rows, folder, sorted(folder.glob("*.parquet"))]
    for source in sources:
        found = critical_paths(source, by=by, threads=threads, rows=100)
        assert answer(found, by) == expect
        assert found["files"].to_numpy().sum() == rows.num_rows


@pytest.mark.parametrize("statistics", [True, False])
def test_pieces_hold_whole_jobs(tmp_path: pathlib.Path, statistics: bool) -> None:
    rows = table(300)
    folder = parquet(tmp_path, rows, statistics=statistics)
    pieces = [piece() for piece in job_ranges(str(folder), ["file_id"], rows=200)]
    jobs = [set(piece["job_id"].to_pylist()) for piece in pieces]
    assert sum(len(each) for each in jobs) == len(set().union(*jobs)) == 300
    assert sorted(pa.concat_tables(pieces)["file_id"].to_pylist()) == list(range(rows.num_rows))
    if statistics:
        assert len(pieces) > 5
        assert all(piece.num_rows <= 200 + 500 + 2 * 97 for piece in pieces)


def test_rows_of_no_job_are_a_piece_of_their_own() -> None:
    rows = pa.table({"job_id": pa.array([4, None, 2, 4]), "x": [0, 1, 2, 3]})
    pieces = [piece()["x"].to_pylist() for piece in job_ranges(rows, rows=1)]
    assert pieces == [[2], [0, 3], [1]]
    times = rows.append_column("write_start", pa.array([0.0, 0, 0, 1])).append_column("write_end", pa.array([2.0] * 4))
    assert answer(critical_paths(times), "job_id") == {2: (1, 2.0), 4: (1, 2.0)}


def test_row_of_a_job() -> None:
    """Figure 3, and a job whose files have no times."""
    rows = pa.table(
        {
            "job_id": [1, 1, 1, 1, 1, 2],
            "write_start": [0.0, 6, 4, 16, None, None],
            "write_end": [10.0, 12, 8, 18, None, None],
        }
    )
    first, second = critical_paths(rows).to_pylist()
    assert first == {
        "job_id": 1,
        "files": 5,
        "counted": 4,
        "critical_files": 3,
        "start": 0.0,
        "end": 18.0,
        "critical_time": 14.0,
        "longest_time": 10.0,
        "not_counted": 1,
    }
    assert (second["counted"], second["critical_time"], second["start"]) == (0, None, None)


def test_critical_files_are_in_order() -> None:
    rows = pa.table(
        {"job_id": [1] * 4, "file": list("abcd"), "read_start": [16.0, 6, 4, 0], "read_end": [18.0, 12, 8, 10]}
    )
    found = critical_files(rows, "read", ["file"])
    assert found["file"].to_pylist() == ["d", "b", "a"]
    assert found["since"].to_pylist() == [0, 10, 16]
    assert found["exclusive"].to_pylist() == [10, 2, 2]
    np.testing.assert_allclose(found["share"].to_numpy(), [10 / 14, 2 / 14, 2 / 14])


def test_no_rows() -> None:
    rows = table(3).slice(0, 0)
    assert critical_paths(rows).num_rows == 0
    assert critical_files(rows).num_rows == 0


def test_sources_that_are_none() -> None:
    with pytest.raises(AnalyticsError, match="no column job_id"):
        critical_paths(pa.table({"x": [1]}))
    with pytest.raises(AnalyticsError, match="int is no table of files"):
        critical_paths(3)
    with pytest.raises(ArgumentError, match="'sideways'"):
        critical_paths(table(3), "sideways")  # type: ignore[arg-type]
