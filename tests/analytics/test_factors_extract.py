"""Extraction of factors: bounds of the bandwidth, many jobs in pieces, queries, and factors of third parties."""

from __future__ import annotations

import importlib.metadata
import itertools
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.factors import Files, catalogue, extract, factor, factors, register, unregister
from mpiio_ext.analytics.factors.extract import resolve
from mpiio_ext.analytics.sweep.ranges import job_batches
from mpiio_ext.analytics.tables.schema import DARSHAN_FILE
from mpiio_ext.errors import ArgumentError


def jobs_of(bandwidths: list[float]) -> pa.Table:
    """One job for each bandwidth: a file of that many bytes in a second."""
    n = len(bandwidths)
    times = {"write_start": [5.0] * n, "write_end": [6.0] * n}
    return pa.table({"job_id": range(n), **times, "bytes_written": pa.array(bandwidths, pa.float64())})


def test_bounds_are_half_open() -> None:
    table = jobs_of([0, 99, 100, 199, 200, float("nan")])
    assert extract(table, 0, 100)["job_id"].to_pylist() == [0, 1]
    assert extract(table, 100, 200)["job_id"].to_pylist() == [2, 3]
    assert extract(table, 200)["job_id"].to_pylist() == [4]
    assert extract(table, "0.1kB/s", "200B")["job_id"].to_pylist() == [2, 3]
    assert extract(table).num_rows == 6
    nothing = extract(table, 1000, 2000)
    assert nothing.num_rows == 0
    assert nothing.schema.names == extract(table).schema.names


def test_bandwidth_is_that_of_the_critical_path_unless_asked_otherwise() -> None:
    """100 B in 1 s, a pause of 8 s, 100 B in 1 s: 20 B/s by Equation 1, 100 B/s without the pause."""
    table = pa.table(
        {"job_id": [1, 1], "write_start": [0.0, 9.0], "write_end": [1.0, 10.0], "bytes_written": [100, 100]}
    )
    assert extract(table, 0, 50).num_rows == 0
    assert extract(table, 100, 101).num_rows == 1
    assert extract(table, 0, 50, time="span").num_rows == 1
    with pytest.raises(ArgumentError, match="time is 'wall'"):
        extract(table, time="wall")  # type: ignore[arg-type]


def test_the_papers_figure_3_is_not_slow_for_its_pause() -> None:
    """Files of 10, 2 and 2 s, 14 s in all, within 18 s: 14 GB are 1 GB/s, which Equation 1 calls 0.78 GB/s."""
    times = {"write_start": [0.0, 12.0, 16.0], "write_end": [10.0, 14.0, 18.0]}
    table = pa.table({"job_id": [1] * 3, **times, "bytes_written": [10 * 10**9, 2 * 10**9, 2 * 10**9]})
    (row,) = extract(table).to_pylist()
    assert (row["critical_time"], row["critical_bandwidth"]) == (14, 1e9)
    assert row["bandwidth"] == pytest.approx(14e9 / 18)
    assert extract(table, 0, "0.9GB/s").num_rows == 0
    assert extract(table, 0, "0.9GB/s", time="span").num_rows == 1


def test_standard_output_makes_no_job_slow() -> None:
    """10 GB in 2 s, and a log that is written to for an hour."""
    table = pa.table(
        {
            "job_id": [1, 1],
            "write_start": [10.0, 0.0],
            "write_end": [12.0, 3600.0],
            "write_time": [2.0, 0.01],
            "bytes_written": [10**10, 1000],
        }
    )
    (row,) = extract(table, time="span").to_pylist()
    assert row["bandwidth"] == pytest.approx(5e9, rel=1e-6) == row["critical_bandwidth"]
    assert extract(table, 0, "1GB/s", time="span").num_rows == 0
    assert extract(table, 0, "1GB/s", time="span", background=0).num_rows == 1, "as in the paper"


def test_two_runs_of_a_job_are_two_unless_asked_otherwise(tmp_path: pathlib.Path) -> None:
    """5 GB in 1 s each, an hour apart; the logs' IDs are in another order than the jobs'."""
    table = pa.table(
        {
            "job_id": [1, 1, 2],
            "log_id": [9, 7, 3],
            "write_start": [0.0, 3600.0, 0.0],
            "write_end": [1.0, 3601.0, 1.0],
            "bytes_written": [5 * 10**9] * 3,
        }
    )
    pq.write_table(table, tmp_path / "files.parquet")
    for files in (table, tmp_path):
        found = extract(files, "1GB/s", time="span")
        assert [(row["job_id"], row["log_id"]) for row in found.to_pylist()] == [(1, 7), (1, 9), (2, 3)]
    (row, _) = extract(table, time="span", by="job_id").to_pylist()
    assert "log_id" not in row and row["bandwidth"] == pytest.approx(1e10 / 3601)


def test_files_that_were_only_looked_at_do_not_count() -> None:
    """Equation 5 is about files that are accessed; what is unknown counts."""
    times = {"write_start": [0.0, None, None], "write_end": [1.0, None, None]}
    counts = {"opens": [2, 0, None], "bytes_read": [0, 0, None], "bytes_written": [9, 0, None]}
    (row,) = extract(pa.table({"job_id": [1] * 3, "processes": [4] * 3, **times, **counts})).to_pylist()
    assert (row["files"], row["files_per_process"]) == (2, 0.5)


def random_files(jobs: int, seed: int = 2) -> pa.Table:
    """Rows of every number column of darshan_file, one in ten unknown."""
    rng = np.random.default_rng(seed)
    job = np.repeat(np.arange(jobs), rng.integers(1, 30, jobs))
    n = len(job)
    columns: dict[str, Any] = {"job_id": job, "log_id": job * 2 + 1, "file_id": np.arange(n)}
    for column in DARSHAN_FILE.columns:
        if column.name in columns or column.type not in ("int32", "int64", "float64"):
            continue
        values = rng.integers(0, 1000, n).astype(float)
        columns[column.name] = pa.array(values, mask=rng.random(n) < 0.1)
    columns["osts"] = pa.array(
        [None if rng.random() < 0.1 else rng.choice(30, 3, replace=False).tolist() for _ in range(n)],
        pa.list_(pa.int32()),
    )
    return pa.table(columns)


@pytest.mark.parametrize("direction", ["read", "write"])
def test_pieces_threads_and_order_do_not_matter(tmp_path: pathlib.Path, direction: Any) -> None:
    """All jobs at once, in pieces, shuffled, from Parquet, and each job by itself: the same numbers."""
    table = random_files(40)
    whole = extract(table, direction=direction, threads=1)
    shuffled = table.take(np.random.default_rng(1).permutation(table.num_rows))
    pq.write_table(shuffled, tmp_path / "files.parquet", row_group_size=100)
    alone = pa.concat_tables(
        [extract(table.filter(pa.compute.equal(table["job_id"], k)), direction=direction) for k in range(40)]
    )
    for other in (extract(shuffled, direction=direction, rows=100), extract(tmp_path, direction=direction), alone):
        assert other.schema.names == whole.schema.names
        for name in set(whole.schema.names) - {"app"}:
            left, right = (each[name].to_numpy().astype(float) for each in (whole, other))
            np.testing.assert_allclose(left, right, rtol=1e-9, err_msg=name)


def test_a_query_of_two_joined_tables() -> None:
    """Columns of files that clash are renamed by a join, and a job with two logs has each file once for each log."""
    ibis = pytest.importorskip("ibis")
    pytest.importorskip("pyarrow_hotfix")  # Ibis needs it for tables in memory, and does not install it by itself
    files = random_files(40).drop_columns(["osts"])
    jobs = pa.table(
        {
            "job_id": list(range(40)) * 2,
            "log_id": [2 * k + 1 for k in range(40)] + [2 * k + 2 for k in range(40)],
            "run_time": [1e4] * 40 + [7.0] * 40,
            "bytes_written": [1] * 80,
            "processes": [3] * 80,
        }
    )
    left, right = ibis.memtable(jobs), ibis.memtable(files)
    other = right.rename({f"{name}_darshan_file": name for name in ("log_id", "bytes_written", "processes")})

    class Tuples:
        expression = left.join(other, "job_id")

    found = extract(Tuples(), rows=50)
    expected = extract(files, jobs=jobs)
    assert found.num_rows == expected.num_rows > 30
    for name in ("bandwidth", "processes", "small", "idle", "root_writes", "straggler"):
        np.testing.assert_allclose(found[name].to_numpy(), expected[name].to_numpy(), err_msg=name)

    asked = []

    class Engine:
        def sendable(self, function: Any) -> None:
            assert callable(function)

        def by_key(self, expression: Any, keys: list[str], work: Any, schema: pa.Schema, rows: int) -> Any:
            asked.append(rows)
            batches = expression.order_by(keys).to_pyarrow().to_batches(max_chunksize=7)
            return pa.concat_tables(table.cast(schema) for table in work(batches))

    class Query:
        def __init__(
            self, engine: Engine, expression: Any, name: str, waits_for: str = "", inputs: Any = (), units: Any = None
        ) -> None:
            self.units = units
            self.engine, self.expression, self.name = engine, expression, name
            self.waits_for, self.inputs = waits_for, inputs

    given = Query(Engine(), Tuples.expression, "joined")
    query = extract(given, "1kB/s", names=["small", "gaps"], rows=50)
    assert isinstance(query, Query)
    assert (query.name, query.inputs, asked) == ("perf_factors", (given,), [])
    assert query.waits_for == "factors small, gaps (write) of jobs with a bandwidth from 1 kB/s"
    assert extract(given, rows=50).expression().equals(found)
    assert asked == [50]

    class NoJobs:
        expression = right.drop("job_id", "log_id")

    with pytest.raises(AnalyticsError, match="no column job_id"):
        extract(NoJobs())


def test_columns_of_a_join() -> None:
    names = ["bytes_written", "bytes_written_darshan_file", "run_time", "app", "app_darshan_job"]
    assert resolve(names, "bytes_written") == "bytes_written_darshan_file"
    assert resolve(names, "run_time") == "run_time"
    assert resolve(names, "app") == "app_darshan_job"
    assert resolve(names, "ranks") is None


def test_batches_are_cut_where_a_job_ends() -> None:
    job = [1, 1, 2, 3, 3, 3, 3, 3, 3, 4, 5, 5]
    for size in range(1, 13):
        batches = pa.table({"job_id": job}).to_batches(max_chunksize=size)
        for rows in range(1, 13):
            tables = [table["job_id"].to_pylist() for table in job_batches(batches, "job_id", rows)]
            assert list(itertools.chain(*tables)) == job
            assert all(a[-1] != b[0] for a, b in itertools.pairwise(tables))
            if size == rows == 2:
                assert len(tables) >= 3
    with pytest.raises(AnalyticsError, match="not ordered by job_id"):
        list(job_batches(pa.table({"job_id": [2, 1]}).to_batches(), "job_id"))


@pytest.fixture
def clean() -> Iterator[None]:
    factors()
    yield
    for name in ("theirs", "per_job"):
        unregister(name)


@pytest.mark.usefixtures("clean")
def test_a_factor_of_ones_own() -> None:
    @factor("theirs", "bytes above a limit", columns=("{bytes}",), directions=("write",))
    def theirs(files: Files, *, limit: float = 50) -> Any:
        return (files["{bytes}"] > limit).astype(float)

    table = jobs_of([10, 60, 100])
    assert extract(table)["theirs"].to_pylist() == [0, 1, 1]
    assert extract(table, limit=80)["theirs"].to_pylist() == [0, 0, 1]
    assert "theirs" not in factors("read")
    assert next(iter(factors())) == "small"  # the paper's come first
    with pytest.raises(ArgumentError, match="theirs exists"):
        register(theirs)
    register(theirs, replace=True)
    with pytest.raises(ArgumentError, match="threshold limit has another default in theirs"):
        factor("per_job", "x")(lambda files, limit=3: None)
    with pytest.raises(ArgumentError, match="threshold x needs a default"):
        factor("per_job", "x")(lambda files, x: None)
    with pytest.raises(ArgumentError, match="identifier"):
        factor("not a name", "x")(lambda files: None)


@pytest.mark.usefixtures("clean")
def test_a_factor_that_returns_something_else() -> None:
    factor("per_job", "x", weighting="job")(lambda files: np.zeros(7))
    with pytest.raises(ArgumentError, match=r"factor per_job: \(7,\) values for 3, one a job"):
        extract(jobs_of([1, 2, 3]))


@pytest.mark.usefixtures("clean")
def test_entry_points(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """An installed distribution offers one factor, and one that cannot be imported: a warning names it."""
    (tmp_path / "their_package.py").write_text(
        "from mpiio_ext.analytics.factors import factor\n\n\n"
        "@factor('theirs', 'always a half')\ndef theirs(files):\n    return files.job * 0 + 0.5\n"
    )
    info = tmp_path / "their_package-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        f"[{catalogue.ENTRY_POINTS}]\ntheirs = their_package:theirs\nbroken = their_package:missing\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert importlib.metadata.entry_points(group=catalogue.ENTRY_POINTS)
    catalogue._load_entry_points.cache_clear()
    with pytest.warns(RuntimeWarning, match=r"factor broken \(their_package:missing\) is left out"):
        assert "theirs" in factors()
    assert extract(jobs_of([1, 2]))["theirs"].to_pylist() == [0.5, 0.5]
