"""Algorithm 1 of the paper, line by line in its Python spelling, on both engines."""

from __future__ import annotations

import math
import pathlib
import sys
import types
from typing import Any

import pytest

from mpiio_ext.analytics.query import ExpressionError, Tuples, load
from mpiio_ext.errors import ArgumentError
from support import analytics_query
from support.analytics_query import ENGINES, Store
from support.marks import slow
from support.parts import require

require("ibis")

GB = 10**9
#: Job 3 has two logs, and only one of them writes more than 10 GB.
JOBS = [
    {"job_id": job, "log_id": log, "bytes_written": size, "bytes_read": job}
    for job, log, size in [
        (1, 10, GB // 2),
        (2, 20, 5 * GB),
        (3, 30, 12 * GB),
        (3, 31, 11),
        (4, 40, 40 * GB),
        (5, 50, None),
    ]
]
FILES = [
    {
        "job_id": job["job_id"],
        "log_id": job["log_id"],
        "file_id": number,
        "bytes_written": (job["bytes_written"] or 0) // 2,
        # Job 5 has no Lustre.
        "osts": None if job["job_id"] == 5 else [number, 7],
        "ost_word_0": None if job["job_id"] == 5 else 1 << number | 1 << 7,
        "write_start": 5.0,
    }
    for job in JOBS
    for number in range(2)
]
SLURM = [{"job_id": job, "node_count": 10 * job} for job in (1, 2, 3)]


class Miner:
    """What Algorithm 1 needs of an IOMiner."""

    def __init__(self, engine: Any, store: Store) -> None:
        self.engine, self.store = engine, store

    def load(self, table: str) -> Tuples:
        return load(self.engine, self.store, table)


@pytest.fixture(scope="module", params=ENGINES)
def miner(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Miner:
    store = Store(tmp_path_factory.mktemp("store"), osts=10)
    store.add("darshan_job", JOBS)
    store.add("darshan_file", FILES, osts=10)
    store.add("slurm", SLURM)
    return Miner(analytics_query.engine(request.param), store)


def classify_workload(bytes_written: int) -> int:
    return 0 if bytes_written < GB else 1 if bytes_written < 10 * GB else 2


def calculate_ost_count(files: Any) -> int | None:
    known = files["osts"].dropna()  # files that are not on Lustre have none
    return len({ost for osts in known for ost in osts}) if len(known) else None


def test_algorithm_1(miner: Miner, monkeypatch: pytest.MonkeyPatch) -> None:
    job_tuples = miner.load("darshan_job")
    file_tuples = miner.load("darshan_file")
    slurm_tuples = miner.load("slurm")
    lmt_tuples = miner.load("lmt")
    assert not lmt_tuples

    selected_tuples = job_tuples.project("job_id", "bytes_written").filter("bytes_written < 1GB")
    assert sorted(selected_tuples.rows(), key=str) == [
        {"job_id": 1, "bytes_written": GB // 2},
        {"job_id": 3, "bytes_written": 11},
    ]

    binned_tuples = job_tuples.bin("workload", classify_workload, "bytes_written")
    workloads = {row["log_id"]: row["workload"] for row in binned_tuples}
    assert workloads == {10: 0, 20: 1, 30: 2, 31: 0, 40: 2, 50: None}

    grouped_tuples = file_tuples.group("job_id", calculate_ost_count)
    counts = {row["job_id"]: row["calculate_ost_count"] for row in grouped_tuples}
    assert counts == {1: 3, 2: 3, 3: 3, 4: 3, 5: None}
    engine = file_tuples.group("job_id", osts="ost_count()")
    assert {row["job_id"]: row["osts"] for row in engine} == counts

    percents = job_tuples.percentile("bytes_written")
    sizes = {row["percentile"]: row["bytes_written"] for row in percents}
    assert (sizes[0], sizes[50], sizes[100]) == (11, 5 * GB, 40 * GB) and math.isclose(sizes[75], 12 * GB)

    joined_tuples = job_tuples.join(slurm_tuples, "job_id").project(
        "job_id", "node_count", "bytes_read", "bytes_written"
    )
    assert {(row["job_id"], row["node_count"]) for row in joined_tuples} == {(1, 10), (2, 20), (3, 30)}
    assert joined_tuples.count() == 4

    low_bw_tuples = job_tuples.filter("bytes_written > 10GB").join(file_tuples, "job_id")

    factors = types.ModuleType("factors")
    asked: list[Any] = []
    factors.extract = lambda files, low, high, direction, **more: (  # type: ignore[attr-defined]
        asked.append((low, high, direction, more)) or files
    )
    monkeypatch.setitem(sys.modules, "mpiio_ext.analytics.factors", factors)
    perf_factors = low_bw_tuples.extract_perf_factors("0", "1GB", "write")
    assert asked == [(0.0, 1e9, "write", {})]
    # The files of the logs that passed the filter, each once, with their own sizes and not the job's.
    found = {(row["log_id"], row["file_id"]): row["bytes_written"] for row in perf_factors}
    assert found == {(30, 0): 6 * GB, (30, 1): 6 * GB, (40, 0): 20 * GB, (40, 1): 20 * GB}
    assert perf_factors.count() == 4
    assert {"osts", "write_start", "ost_word_0"} <= set(perf_factors.columns)


@pytest.mark.slow_with("spark")
def test_files_of_any_join(miner: Miner) -> None:
    """The files come out of a join whichever side they were on, and once where log IDs were projected away."""
    files, jobs = miner.load("darshan_file"), miner.load("darshan_job")
    few = files.project("job_id", "log_id", "file_id", "bytes_written")
    turned = few.join(jobs.filter("bytes_written > 10GB"), "job_id").files()
    assert turned.columns == few.columns  # and no column of the job, such as reads
    assert sorted(row["bytes_written"] for row in turned) == [6 * GB, 6 * GB, 20 * GB, 20 * GB]
    outer = jobs.rename(log="log_id").join(few.bin("x", ["1GB"], "bytes_written"), "job_id", "outer").files()
    assert outer.count() == few.count()
    unlogged = jobs.project("job_id").join(few.filter("job_id = 3"), "job_id").files()
    assert unlogged.count() == 4
    with pytest.raises(ExpressionError, match="made of the tuples of darshan_file, and darshan_job has none of them"):
        jobs.files()
    with pytest.raises(ExpressionError, match="need file_id of darshan_file, which these tuples no longer have"):
        files.project("job_id", "bytes_written").files()


@pytest.mark.parametrize("engine", ["duckdb", *slow("spark")])
def test_factors_of_a_join_know_what_only_the_log_knows(engine: str, tmp_path: pathlib.Path) -> None:
    """Run time, application and whether MPI-IO was used reach the factors, each of its own log."""
    store = Store(tmp_path, osts=10)
    known = {"uses_mpiio": False, "partial": False, "app": "vasp"}
    logs = [(10, 1, 10.0), (20, 2, 4.0), (21, 2, 16.0)]
    store.add(
        "darshan_job",
        [{"log_id": log, "job_id": job, "run_time": time, "bytes_written": GB, **known} for log, job, time in logs],
    )
    store.add(
        "darshan_file",
        [
            {
                "log_id": log,
                "job_id": job,
                "file_id": 1,
                "bytes_written": GB,
                "bytes_read": 0,
                "opens": 1,
                "write_time": 2.0,
                "write_start": 10.0 * log,
                "write_end": 10.0 * log + 2,
            }
            for log, job, _ in logs
        ],
    )
    store.add("slurm", [{"job_id": job, "run_time": 999.0} for job in (1, 2)])
    miner = Miner(analytics_query.engine(engine), store)
    jobs, files = miner.load("darshan_job"), miner.load("darshan_file")

    def found(tuples: Tuples) -> list[tuple[Any, ...]]:
        factors = tuples.extract_perf_factors("0", "1TB", "write", by="job_id")
        rows = sorted(factors.rows(), key=lambda row: row["job_id"])
        return [tuple(row[name] for name in ("app", "idle", "collective", "no_collective")) for row in rows]

    # Job 2 has two logs: 2 s of 4 s and 2 s of 16 s in files.
    right = [("vasp", pytest.approx(0.8), 0.0, 1.0), ("vasp", pytest.approx(0.8), 0.0, 1.0)]
    assert found(jobs.join(files, "job_id")) == right
    assert found(files.join(jobs, ["job_id", "log_id"])) == right
    assert found(jobs.join(files, "job_id").join(miner.load("slurm"), "job_id")) == right
    assert found(jobs.rename(log="log_id", took="run_time").join(files, "job_id")) == right
    everything = jobs.join(files, "job_id").extract_perf_factors(None, None, "write", by="job_id")
    assert everything.count() == 2
    with pytest.raises(ArgumentError, match="small_bytes is 5000"):
        files.extract_perf_factors(None, None, "write", small_bytes="5kB")
    with pytest.raises(ArgumentError, match="is not a bandwidth such as"):
        files.extract_perf_factors([], None, "write")  # type: ignore[arg-type]
    # Without the log's ID nobody knows which of a job's logs a file is of.
    unknown = [(None, None, None, None)] * 2
    assert found(files) == found(jobs.project("job_id", "run_time").join(files, "job_id")) == unknown


@pytest.mark.slow_with("spark")
def test_factors_are_computed_when_they_are_looked_at(miner: Miner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read before; the plan of the input and the factors are told before and after."""
    read: list[Any] = []
    by_key = type(miner.engine).by_key
    monkeypatch.setattr(
        type(miner.engine), "by_key", lambda *given, **more: read.append(given) or by_key(*given, **more)
    )
    big = miner.load("darshan_job").filter("bytes_written > 10GB").join(miner.load("darshan_file"), "job_id")
    factors = big.extract_perf_factors("0", "1GB", "write", names=["small", "osts"])
    few = factors.filter("osts > 1").project("job_id", "osts").sort("job_id")
    for tuples in (factors, few):
        assert "not run yet" in repr(tuples)
        text = tuples.explain()
        assert "10000000000" in text
        assert "factors small, osts (write) of jobs with a bandwidth from 0 B/s below 1 GB/s" in text
        assert "not run yet" in text
    assert not read
    assert few.rows() == []  # the files were opened, but nothing says when they were written
    assert len(read) == 1
    assert few.rows() == [] and factors.count() == 0 and len(read) == 1, "computed once"
    text = few.explain()
    assert "10000000000" in text and "factors small, osts (write)" in text and "not run yet" not in text
