"""Our own runs: results of the bench and statistics of the library as tables."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest

from mpiio_ext.analytics.sources.results import convert
from mpiio_ext.analytics.tables.schema import TABLES
from mpiio_ext.bench.results.files import write_document
from mpiio_ext.common.results import Row
from support import report_results

ENVIRONMENT = {
    "started": "2026-11-01T12:00:00+00:00",
    "hosts": ["n1"],
    "command_line": "python -m mpiio_ext.bench",
    "mpi_library": "Open MPI",
    "file_system_mount": "/scratch",
    "file_system_type": "lustre",
}


def row(strategy: str, operation: str, repetition: int, data_s: float, **others: Any) -> Row:
    others |= {"repetition": repetition, "open_s": 1.0, "close_s": 1.0, "data_s": data_s}
    others |= {"bandwidth_mb_per_s": 1e-3 / data_s, "bandwidth_total_mb_per_s": 0.1}
    return report_results.row("block", strategy, operation, **others)


def results(folder: pathlib.Path, failure: str | None = None) -> None:
    runs = [
        row(
            method,
            operation,
            k,
            seconds,
            rounds=3,
            requests=5,
            collectives_taken_over=8,
            exchange_s=0.5,
            request_size_log2=(0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4),
            compared="bytes",
        )
        for method, seconds in (("even", 4.0), ("group_cyclic", 2.0))
        for k in range(3)
        for operation in ("write", "read")
    ]
    folder.mkdir()
    write_document(
        folder,
        environment=ENVIRONMENT,
        configuration={"hints": {"cb_nodes": "2"}, "strategies": {"even": {"mpiox_method": "even"}}},
        rows=runs,
        absent=[],
        failure=failure,
    )


def read(folder: pathlib.Path, *names: str) -> tuple[Any, dict[str, list[dict[str, Any]]]]:
    found = convert(names, str(folder))
    for name, table in found.tables.items():
        assert table.schema == TABLES[name].schema()
    return found.outcomes, {name: table.to_pylist() for name, table in found.tables.items()}


def test_results_of_the_bench(tmp_path: pathlib.Path) -> None:
    results(tmp_path / "a")
    (outcome,), tables = read(tmp_path, "a/results.json")
    assert (outcome.status, outcome.rows) == ("whole", {"runs": 4, "darshan_job": 2, "darshan_file": 2})
    even = next(item for item in tables["runs"] if item["method"] == "even" and item["operation"] == "write")
    assert (even["seconds"], even["bandwidth"], even["bytes"], even["ranks"], even["verified"]) == (
        4.0,
        250.0,
        1000,
        4,
        True,
    )
    assert json.loads(even["hints"]) == {"all": {"cb_nodes": "2"}, "method": {"mpiox_method": "even"}}
    statistics = json.loads(even["statistics"])
    assert (statistics["rounds"], statistics["exchange_s"], statistics["requests"]) == (3, 0.5, 5)
    spread = [statistics[name] for name in ("repetitions", "bandwidth_low", "bandwidth_high")]
    assert spread[0] >= 1 and spread[1] <= even["bandwidth"] <= spread[2]
    job = next(item for item in tables["darshan_job"] if item["method"] == "even")
    file = next(item for item in tables["darshan_file"] if item["method"] == "even")
    assert job["job_id"] == file["job_id"] == even["job_id"] > 1 << 61
    assert (job["bytes_written"], job["bytes_read"], job["writes"], job["run_time"]) == (1000, 1000, 5, 12.0)
    start = 1793534400.0
    assert (file["write_start"], file["write_end"], file["read_start"], file["read_end"]) == (
        start,
        start + 4,
        start + 4,
        start + 8,
    )
    assert (file["mpiio_coll_writes"], file["rounds"], file["exchange_time"], file["opens"]) == (8, 6, None, None)
    sizes = {name: value for name, value in file.items() if name.startswith("write_size_") and value}
    assert sizes == {"write_size_0_100": 1, "write_size_1k_10k": 2, "write_size_1m_4m": 4}
    assert len({item["job_id"] for item in tables["darshan_job"]}) == 2


def test_times_are_those_of_the_first_repetition_where_they_are_known(tmp_path: pathlib.Path) -> None:
    results(tmp_path / "a")
    path = tmp_path / "a" / "results.json"
    document = json.loads(path.read_text())
    start = 1793534400.0
    for number, run in enumerate(document["runs"]):  # read before write, and both after the others
        later = 1000.0 - 10 * number + (500.0 if run["repetition"] else 0.0)
        run |= {"begin_unix_s": start + later, "end_unix_s": start + later + 5}
    path.write_text(json.dumps(document))
    _, tables = read(tmp_path, "a/results.json")
    firsts = {
        (run["strategy"], run["operation"]): run["begin_unix_s"] for run in document["runs"] if run["repetition"] == 0
    }
    for row in tables["runs"]:
        assert row["time"] == firsts[row["method"], row["operation"]]
    for job, file in zip(tables["darshan_job"], tables["darshan_file"], strict=True):
        own = {operation: begin for (method, operation), begin in firsts.items() if method == job["method"]}
        assert job["start_time"] == min(own.values()) and file["write_start"] == own["write"]
        seconds = {"even": 4, "group_cyclic": 2}[job["method"]]
        assert file["write_end"] == own["write"] + seconds and file["read_start"] == own["read"]


def test_a_run_of_the_bench_that_failed_is_partial(tmp_path: pathlib.Path) -> None:
    results(tmp_path / "a", failure="the disk is full")
    (outcome,), tables = read(tmp_path, "a/results.json")
    assert (outcome.status, outcome.reason) == ("partial", "the bench ended early: the disk is full")
    assert all(item["partial"] for item in tables["darshan_job"])


def statistics(path: str, **numbers: Any) -> str:
    return (
        json.dumps(
            {
                "kind": "file" if path else "run",
                "path": path,
                "ranks": 4,
                "collective_writes": 2,
                "bytes_written": 500,
                "bytes_read": 0,
                "independent_bytes_written": 20,
                "write_requests": 7,
                "read_requests": 0,
                "exchange_s": 0.25,
                "io_s": 1.5,
                "rounds": 3,
                "partition": "even",
                "request_size_log2": [0, 7],
                **numbers,
            }
        )
        + "\n"
    )


def test_statistics_of_the_library(tmp_path: pathlib.Path) -> None:
    (tmp_path / "s.jsonl").write_text(statistics("/a") + statistics("/b") + statistics("") + statistics("/c"))
    (outcome,), tables = read(tmp_path, "s.jsonl")
    assert outcome.status == "partial"
    assert "has no end" in outcome.reason
    assert [item["file"] for item in tables["darshan_file"]] == ["/a", "/b", "/c"]
    file = tables["darshan_file"][0]
    assert (file["bytes_written"], file["writes"], file["mpiio_coll_writes"]) == (520, 7, 8)
    assert file["exchange_time"] == 0.25
    assert (file["write_size_0_100"], file["read_size_0_100"], file["opens"], file["write_time"]) == (7, 0, None, None)
    assert [(job["files"], job["bytes_written"], job["partial"]) for job in tables["darshan_job"]] == [
        (2, 1040, False),
        (1, 520, True),
    ]
    assert len({job["job_id"] for job in tables["darshan_job"]}) == 2


def test_lines_of_several_runs_are_told_apart(tmp_path: pathlib.Path) -> None:
    """Two runs of one job of the scheduler that wrote at the same time, and a third without a scheduler."""
    mine = {
        "scheduler_job": "4711.server",
        "program": "app",
        "command": "app in",
        "uid": 7,
        "start": 100.0,
        "bytes_read": 0,
        "plan_s": 2.0,
        "hints": {"cb_nodes": {"value": "4", "source": "MPI_Info"}},
    }
    one, two = {**mine, "run": "u1", "time": 130.0}, {**mine, "run": "u2", "partition": "group_cyclic", "time": 120.0}
    use = {"write_start": 105.0, "write_end": 109.0}
    lines = [
        statistics("/a", **one, **use),
        statistics("/a", **two, write_start=104.0, write_end=106.0),
        statistics("/b", **one, write_start=107.0, write_end=113.0),
        statistics("", **two),
        statistics("", **one),
        statistics("/c", run="u3", **use),
    ]
    (tmp_path / "s.jsonl").write_text("".join(lines))
    (outcome,), tables = read(tmp_path, "s.jsonl")
    assert (outcome.status, "a run of 3 has no end" in outcome.reason) == ("partial", True)
    first, second, third = tables["darshan_job"]
    known = [first[name] for name in ("job_id", "app", "exe", "uid", "run_time")]
    assert known == [4711, "app", "app in", 7, 30.0]
    assert (first["files"], first["write_start"], first["write_end"], first["partial"]) == (2, 105.0, 113.0, False)
    assert (second["job_id"], second["files"], second["end_time"], second["read_start"]) == (4711, 1, 120.0, None)
    assert third["job_id"] > 1 << 61 and third["partial"] and third["app"] is None
    assert len({job["log_id"] for job in tables["darshan_job"]}) == 3
    assert [row["log_id"] for row in tables["darshan_file"][:2]] == [first["log_id"]] * 2
    row, other, _ = tables["runs"]
    assert (row["method"], row["operation"], row["bytes"], row["seconds"]) == ("even", "write", 1040, 8.0)
    assert (row["pattern"], row["ranks"], row["bandwidth"], other["bandwidth"]) == ("app", 4, 130.0, 260.0)
    assert json.loads(row["hints"]) == {"all": {"cb_nodes": "4"}}
    measured = json.loads(row["statistics"])
    assert (measured["plan_s"], measured["exchange_s"], measured["rounds"]) == (1.0, 0.125, 6), "sums, of the mean rank"
    (tmp_path / "moved").mkdir()
    (tmp_path / "s.jsonl").rename(tmp_path / "moved" / "s.jsonl")
    again = read(tmp_path / "moved", "s.jsonl")[1]["darshan_job"]
    assert [job["job_id"] for job in again] == [job["job_id"] for job in tables["darshan_job"]]


@pytest.mark.parametrize(
    ("numbers", "moved"), [({"direct_bytes_written": 500}, 520), ({"direct_bytes_written": 0}, 1020), ({}, 1020)]
)
def test_bytes_of_direct_collectives_count_once(tmp_path: pathlib.Path, numbers: dict[str, int], moved: int) -> None:
    counts = {"bytes_written": 500, "independent_bytes_written": 520, "collective_reads": 0}
    (tmp_path / "s.jsonl").write_text(statistics("/a", **counts, **numbers) + statistics(""))
    assert read(tmp_path, "s.jsonl")[1]["darshan_file"][0]["bytes_written"] == moved


def test_what_the_mpi_library_did_has_no_seconds(tmp_path: pathlib.Path) -> None:
    line = {"partition": "", "native_calls": 4, "bytes_read": 0, "write_start": 1.0, "write_end": None}
    (tmp_path / "s.jsonl").write_text(statistics("/a", **line) + statistics(""))
    tables = read(tmp_path, "s.jsonl")[1]
    [row] = tables["runs"]
    assert (row["method"], row["seconds"], row["bandwidth"]) == ("native", None, None)
    assert tables["darshan_file"][0]["write_start"] is None


def test_other_files_are_skipped(tmp_path: pathlib.Path) -> None:
    contents = {
        "results.json": "{}",
        "cut.json": '{"schema_version": 2, "ru',
        "empty.json": "",
        "empty.jsonl": "",
        "bad.jsonl": "[1]\n{",
        "count.jsonl": statistics("/a", rounds=-1),
        "newer.json": '{"schema_version": 99, "runs": []}',
        "bytes.jsonl": "\x00\x01",
    }
    for name, text in contents.items():
        (tmp_path / name).write_text(text)
    outcomes, tables = read(tmp_path, *contents, "none.json")
    assert [outcome.status for outcome in outcomes] == ["skipped"] * 9
    assert all(outcome.reason for outcome in outcomes)
    assert not any(tables.values())
