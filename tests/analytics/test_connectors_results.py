"""Our own runs: results of the bench and statistics of the library as tables."""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any

import pytest

from mpiio_ext.analytics.sources.base import Outcome
from mpiio_ext.analytics.sources.results import convert
from mpiio_ext.analytics.tables.schema import TABLES
from mpiio_ext.bench.results.files import write_document
from mpiio_ext.common.results import Row
from support import report_results
from support.expected import Expected, in_words

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


def told(outcome: Outcome, tables: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return what was read as an expected text, without numbers made of names, and empty classes of sizes but one."""

    def kept(name: str, value: Any) -> bool:
        return name not in ("job_id", "log_id", "file_id") and (value != 0 or not re.search("_size_(?!0_100)", name))

    rows = {
        table: [in_words({name: value for name, value in row.items() if kept(name, value)}) for row in tables[table]]
        for table in outcome.rows
    }
    return {"outcome": f"{outcome.status} {outcome.reason}".rstrip(), **rows}


def test_results_of_the_bench(tmp_path: pathlib.Path, expected: Expected) -> None:
    results(tmp_path / "a")
    (outcome,), tables = read(tmp_path, "a/results.json")
    expected(told(outcome, tables))
    ids = [[row["job_id"] for row in tables[name]] for name in ("darshan_job", "darshan_file", "runs")]
    assert ids[0] == ids[1] and len(set(ids[0])) == 2 and set(ids[2]) == set(ids[0]) and min(ids[0]) > 1 << 61


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


def test_statistics_of_the_library(tmp_path: pathlib.Path, expected: Expected) -> None:
    (tmp_path / "s.jsonl").write_text(statistics("/a") + statistics("/b") + statistics("") + statistics("/c"))
    (outcome,), tables = read(tmp_path, "s.jsonl")
    expected(told(outcome, tables))
    assert len({job["job_id"] for job in tables["darshan_job"]}) == 2


def test_lines_of_several_runs_are_told_apart(tmp_path: pathlib.Path, expected: Expected) -> None:
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
    expected(told(outcome, tables))
    assert [job["job_id"] for job in tables["darshan_job"][:2]] == [4711] * 2 and tables["runs"][2]["job_id"] > 1 << 61
    first, second, third = (job["log_id"] for job in tables["darshan_job"])
    assert len({first, second, third}) == 3 and [row["log_id"] for row in tables["darshan_file"][:2]] == [first] * 2
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
