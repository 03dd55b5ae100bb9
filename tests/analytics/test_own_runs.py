"""Our own runs in a store: each job of a file of results counts as one, in every analysis, and is replaced with it."""

from __future__ import annotations

import json
import pathlib
import time
from typing import Any

import pytest

from mpiio_ext.analytics import IOMiner
from mpiio_ext.analytics.analyses import analysis
from mpiio_ext.analytics.analyses.methods import methods
from mpiio_ext.bench.results.files import write_document
from support import report_results
from support.expected import Expected

METHODS, PATTERNS = ("native", "even", "cyclic", "group", "group_cyclic"), ("block", "stripes")
MOVED, RANKS = 8_000_000, 4


def write_results(folder: pathlib.Path, methods: tuple[str, ...] = METHODS) -> None:
    of: dict[str, Any] = {"ranks": RANKS, "file_bytes": MOVED, "data_bytes": MOVED, "data_s": 2.0, "requests": 8}
    of |= {"bandwidth_mb_per_s": 4.0, "bandwidth_total_mb_per_s": 4.0, "collectives_taken_over": RANKS}
    of |= {"request_size_log2": (*[0] * 19, 8), "compared": "bytes"}
    rows = [
        report_results.row(pattern, method, operation, **of)
        for method in methods
        for pattern in PATTERNS
        for operation in ("write", "read")
    ]
    folder.mkdir(exist_ok=True)
    environment = {"started": "2026-11-01T12:00:00+00:00", "hosts": ["n1"], "mpi_library": "Open MPI"}
    write_document(folder, environment=environment, configuration={}, rows=rows, absent=[], failure=None)


@pytest.fixture
def miner(tmp_path: pathlib.Path) -> IOMiner:
    """Return a store of a bench run of ten jobs, and of two runs of a program in one file of statistics."""
    write_results(tmp_path / "run")
    line = {"ranks": RANKS, "bytes_written": 500, "bytes_read": 0, "write_requests": 1, "read_requests": 0}
    lines = [{"kind": kind, "path": "/a", **line} for kind in ("file", "run", "file", "run")]
    (tmp_path / "run" / "statistics.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    made = IOMiner({"store": str(tmp_path / "store"), "inputs": {"results": [str(tmp_path / "run")]}, "workers": 0})
    assert "2 whole" in str(made.init_stores())
    return made


def test_a_run_is_a_job_and_joins_with_its_own_files_alone(miner: IOMiner) -> None:
    jobs, files, runs = (miner.load(name) for name in ("darshan_job", "darshan_file", "runs"))
    assert jobs.join(files, "log_id").arrow().num_rows == jobs.arrow().num_rows == 12
    pairs = jobs.join(runs, "log_id").arrow()
    assert (pairs.num_rows, pairs["job_id"].equals(pairs["job_id_runs"])) == (20, True)
    sources = jobs.group("source_log", jobs="count()", runs="nunique(log_id)").sort("jobs").rows()
    assert [(row["jobs"], row["runs"]) for row in sources] == [(2, 2), (10, 10)]


def test_every_analysis_counts_the_jobs(miner: IOMiner, expected: Expected) -> None:
    """The bench counts no consecutive requests, and no file lies on Lustre."""
    found = {}
    for name in ("sharing", "read-ratio", "applications", "middleware", "sequential", "striping"):
        one = analysis(name)(miner, origin="bench")
        rows = [row for row in one.table.to_pylist() if row.get("jobs", 0)]
        found[name] = {"caption": one.caption, "rows": rows}
    slow = analysis("root-causes")(miner, origin="bench", processes=1, process_bytes=1e6, each_job=True).table
    assert len(set(slow["job_id"].to_pylist())) == len(METHODS) * len(PATTERNS)
    bandwidths = zip(slow["direction"].to_pylist(), slow["bandwidth"].to_pylist(), strict=True)
    assert {row["method"] for row in methods(miner).table.to_pylist()} == set(METHODS)
    expected({**found, "root causes": [f"{direction} {bandwidth:g}" for direction, bandwidth in bandwidths]})


def test_results_that_grew_replace_all_their_jobs(miner: IOMiner, tmp_path: pathlib.Path) -> None:
    before = {row["log_id"] for row in miner.load("darshan_job").filter("source = 'bench'").rows()}
    time.sleep(0.01)  # another time of the file's last change
    write_results(tmp_path / "run", METHODS[:3])
    assert "1 whole, 1 unchanged" in str(miner.init_stores())
    after = [row["log_id"] for row in miner.load("darshan_job").filter("source = 'bench'").rows()]
    assert len(after) == len(set(after)) == 6
    assert set(after) < before, "the ID of a run stays"
    assert miner.load("darshan_file").filter("source = 'bench'").arrow().num_rows == 6
