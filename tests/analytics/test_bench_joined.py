"""Measurements of the bench joined with the system: rows, medians over repetitions, and the metric behind a change."""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from mpiio_ext.analytics.jobs import bench, files, select
from mpiio_ext.analytics.jobs.bench import bench_table
from mpiio_ext.analytics.jobs.joins import joined
from mpiio_ext.analytics.jobs.summarize import summarize
from mpiio_ext.analytics.jobs.table import Jobs
from mpiio_ext.analytics.miner import IOMiner
from mpiio_ext.analytics.site import load_site
from mpiio_ext.analytics.tools.system import System
from mpiio_ext.cli import main
from support import report_results as results
from support.expected import Expected
from support.job_histories import DAY, PERFORMANCE, START, history, steps

#: Of the servers' samples.
STEP = 5
#: Bytes of the bench's write, as `report_results.run` has it.
MOVED = 8_000_000
SITE = {
    "time_zone": "UTC",
    "file_systems": {"scratch": {"kind": "lustre", "mounts": ["/scratch"]}},
    "files": [{"source": "csv", "file_system": "scratch", "path": "servers/%Y-%m-%d.csv"}],
}


def site_at(folder: pathlib.Path) -> pathlib.Path:
    (folder / "site.json").write_text(json.dumps(SITE))
    return folder / "site.json"


def servers_at(path: pathlib.Path, begin: float, written: Sequence[float], load: Sequence[float]) -> None:
    """Write steps of 5 s of what all servers wrote, and of their load."""
    path.parent.mkdir(exist_ok=True, parents=True)
    lines = [f"{begin + STEP * k:.0f},{one},0,{two}" for k, (one, two) in enumerate(zip(written, load, strict=True))]
    path.write_text("\n".join(["time,bytes_written [B],bytes_read [B],cpu_percent [%]", *lines]) + "\n")


def results_at(folder: pathlib.Path, started: str, runs: list[dict[str, Any]], **environment: Any) -> pathlib.Path:
    document = results.document(runs)
    place = {"path": "/scratch/me", "file_system_mount": "/scratch"}
    document["environment"] = {**document["environment"], **place, "started": started, **environment}
    return results.write(folder / "results.json", document)


def run(command: str, *arguments: str | pathlib.Path) -> Result:
    return CliRunner().invoke(main, [command, *map(str, arguments)])


# ---- rows ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def once(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return results of a write and a read in three repetitions, 100 s apart, and the servers' samples beside."""
    runs = [
        results.run(
            "auto",
            operation,
            number,
            1000.0 + number,
            begin_unix_s=START + 100 * number + 20 * (way + 1),
            end_unix_s=START + 100 * number + 20 * (way + 1) + 9.5,
        )
        for number in range(3)
        for way, operation in enumerate(("write", "read"))
    ]
    written, load = np.zeros(60), np.full(60, 10.0)
    for number in range(3):  # 3 of the steps that begin in [20, 34.5) of each repetition
        first = (100 * number + 20) // STEP
        written[first : first + 3] = (number + 1) * MOVED / 3
        load[first : first + 3] = 20.0 * (number + 1)
    servers_at(tmp_path / "servers" / "2020-01-01.csv", START, written.tolist(), load.tolist())
    return results_at(tmp_path / "night", "2020-01-01T00:00:00+00:00", runs)


def test_a_measurement_is_a_row_with_the_medians_of_what_the_servers_did(once: pathlib.Path) -> None:
    found = summarize([once], System(load_site(site_at(once.parent.parent))))
    write, read = found.rows()
    expected = {
        "_log": "night/interleaved_512/mpiio/auto/write",
        "_file_system": "scratch",
        "_sources": "results,csv",
        "_benchmark_id": "interleaved_512_mpiio_auto_write_4x2MB",
        "_datetime_start": START + 20,
        "_datetime_end": START + 220 + 9.5 + 5,
        "bench_method": "auto",
        "bench_repetitions": 3,
        "bench_io_s": 0.002,
        "bench_requests": 16,
        "darshan_nprocs": 4,
        "darshan_tot_bytes_written_posix": None,
        "darshan_agg_perf_by_slowest_posix": 1001e6 / 2**20,
        "fs_tot_bytes_written": 2.0 * MOVED,
        "fs_ave_oss_cpu": 40.0,
        "fs_max_oss_cpu": 40.0,
        "fs_frac_missing": 0.0,
        "coverage_factor_write_bw": 0.5,
        "coverage_factor_bw": 0.5,
        "coverage_factor_read_bw": None,
    }
    assert {name: write[name] for name in expected} == pytest.approx(expected)
    assert (read["fs_tot_bytes_written"], read["fs_ave_oss_cpu"], read["coverage_factor_write_bw"]) == (0, 10, None)
    assert write["_jobid"] == read["_jobid"] and write["_log_id"] != read["_log_id"]
    assert "do not name the scheduler's job" in write["_notes"] and "fullness missing" in write["_notes"]
    slice_ = found.slices[write["_log_id"]]["bytes_written"]
    assert slice_.first == START + 20 and slice_.total() == pytest.approx(6 * MOVED), "from the first to the last"


def test_the_scheduler_is_asked_for_the_job_of_the_bench(once: pathlib.Path, tmp_path: pathlib.Path) -> None:
    sacct = tmp_path / "jobs.sacct"
    sacct.write_text(
        "JobIDRaw|Start|End|NNodes|NodeList\n42|2019-12-31T23:59:00Z|2020-01-01T01:00:00Z|2|n[1-2]\n"
        "43|2019-12-31T23:59:00Z|2020-01-01T01:00:00Z|5|n[3-7]\n"
    )
    document = json.loads(once.read_text())
    document["environment"]["job"] = "42.server"
    once.write_text(json.dumps(document))
    row, _ = summarize([once], System(load_site(site_at(tmp_path)), [sacct])).rows()
    assert (row["jobsdb_nodes"], row["jobsdb_concurrent_jobs"], row["jobsdb_concurrent_nodes"]) == (2, 2, 7)
    assert row["jobsdb_concurrent_nodehrs"] == pytest.approx(7 * 14.5 / 3600)
    assert "job of the scheduler" not in row["_notes"]


def test_old_results_have_no_columns_of_servers_and_say_why(tmp_path: pathlib.Path) -> None:
    servers_at(tmp_path / "servers" / "2020-01-01.csv", START, [1.0] * 60, [1.0] * 60)
    old = results_at(tmp_path / "old", "2020-01-01T00:00:00+00:00", [results.run("auto", "write", 0)])
    (row,) = summarize([old], System(load_site(site_at(tmp_path)))).rows()
    assert row["_datetime_start"] == START and row["_datetime_end"] is None and row["_file_system"] == "scratch"
    assert [name for name, value in row.items() if name.startswith(("fs_", "coverage")) and value is not None] == []
    assert "results missing: old/interleaved_512/mpiio/auto/write: the results have no time" in row["_notes"]


def test_the_command_adds_measurements_to_a_history(once: pathlib.Path, tmp_path: pathlib.Path) -> None:
    site = site_at(tmp_path)
    for name in ("jobs.parquet", "jobs.sqlite", "jobs.csv", "jobs.h5"):
        for number in range(2):  # the same results again replace their rows
            logs = once.parent if number else once
            done = run("analyze", "summarize-job", logs, "--site", site, "-o", tmp_path / name)
            assert done.exit_code == 0, done.output
            assert files.read(tmp_path / name).table.num_rows == 2
    table = files.read(tmp_path / "jobs.parquet").table
    assert table["bench_requests"].to_pylist() == [16, 16] and table["fs_max_oss_cpu"].to_pylist() == [40, 10]
    shown = run("analyze", "summarize-job", once, "--site", site)
    assert "night/interleaved_512/mpiio/auto/write: 2020-01-01 00:00:20Z to" in shown.stdout
    assert "Measurement (bench)" in shown.stdout and "Share of the job" in shown.stdout
    (job,) = files.slices_of(tmp_path / "jobs.h5", table["_jobid"].to_pylist()[0]).keys() & {
        table["_log_id"].to_pylist()[0]
    }
    assert job == table["_log_id"].to_pylist()[0]


def test_results_that_cannot_be_read_are_named_and_cost_themselves_only(
    once: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    cut = tmp_path / "cut" / "results.json"
    cut.parent.mkdir()
    cut.write_text(once.read_text()[:300])
    (tmp_path / "empty").mkdir()
    done = run("analyze", "summarize-job", cut, once, tmp_path / "empty", "--json")
    assert done.exit_code == 0 and len(json.loads(done.stdout)) == 2
    assert f"results skipped: {cut}: " in done.stderr and "empty: there is no results.json" in done.stderr
    failed = run("analyze", "summarize-job", cut)
    assert failed.exit_code == 2 and "none of the logs could be read" in failed.stderr


def test_measurements_join_the_stores_own_rows(once: pathlib.Path, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("ibis")
    setup = {"store": str(tmp_path / "store"), "workers": 0, "inputs": {"results": [str(once.parent)]}}
    found = summarize([once])
    with IOMiner(setup) as miner:
        miner.init_stores(quiet=True)
        runs = sorted(joined(found, miner, "runs").rows(), key=lambda row: row["operation"])
        assert [(row["_log"].rpartition("/")[2], row["bench_operation"], row["operation"]) for row in runs] == [
            ("read", "read", "read"),
            ("write", "write", "write"),
        ]
        assert [row["time"] for row in runs] == [START + 40, START + 20]
        assert [row["start_time"] for row in joined(found, miner).rows()] == [START + 20] * 2


def test_medians_leave_out_what_is_not_known() -> None:
    rows: list[dict[str, Any]] = [{"a": 1, "b": None, "c": "x"}, {"a": 4, "b": 2.0, "c": "y"}, {"a": 2, "d": 1.5}]
    assert bench._medians(rows) == {"a": 2, "b": 2.0, "c": "y", "d": 1.5}
    assert bench._medians(rows[:2])["a"] == 1, "a count stays a count"


# ---- the watch -------------------------------------------------------------------------------------------------------


@pytest.fixture
def archive(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return 40 nights of results; in the last 12 the servers had more load, and the bench was slow."""
    speeds, loads = steps([(28, 1000.0), (12, 600.0)]), steps([(28, 10.0), (12, 30.0)], seed=4)
    others = steps([(40, 5e6)], seed=5)
    for number in range(40):
        begin = START + number * DAY + 7200
        day = np.datetime64(int(begin), "s").astype("datetime64[D]")
        speed = float(speeds[number])
        runs = [
            results.run("auto", "write", k, speed * (1 + k / 1000), begin_unix_s=at, end_unix_s=at + 12)
            for k, at in enumerate((begin + 30, begin + 90, begin + 150))
        ]
        results_at(tmp_path / "archive" / str(day), f"{day}T02:00:00+00:00", runs)
        servers_at(
            tmp_path / "servers" / f"{day}.csv", begin, [float(others[number])] * 60, [float(loads[number])] * 60
        )
    return tmp_path / "archive"


def test_a_change_of_the_bench_names_the_metric_of_the_servers_that_moved(
    archive: pathlib.Path, tmp_path: pathlib.Path, expected: Expected
) -> None:
    """What the servers wrote has not moved."""
    pytest.importorskip("ruptures", reason="needs ruptures")
    site = site_at(tmp_path)
    done = run("analyze", "climate", archive, "--site", site)
    assert done.exit_code == 1, done.output
    found = json.loads(run("analyze", "climate", archive, "--site", site, "--json").stdout)
    ((change,),) = [one["changes"] for one in found["histories"]]
    assert {item["metric"] for item in change["moved"]} == {"fs_ave_oss_cpu", "fs_max_oss_cpu"}
    expected({"text": done.stdout, "errors": done.stderr})
    without = run("analyze", "climate", archive)
    assert without.exit_code == 1 and "OSS CPU" not in without.stdout and "on /scratch" in without.stdout


def test_a_history_of_summarize_job_tells_the_same(archive: pathlib.Path, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("ruptures", reason="needs ruptures")
    site, store = site_at(tmp_path), tmp_path / "history.parquet"
    made = run("analyze", "summarize-job", archive, "--site", site, "-o", store)
    assert made.exit_code == 0, made.output
    done, direct = run("analyze", "climate", store), run("analyze", "climate", archive, "--site", site)
    # In a table of summaries a job is a number, in an archive of the bench the time of its run.
    found, wanted = (re.sub(r"outlier: job \S+ of", "outlier: job of", one.stdout) for one in (done, direct))
    assert (done.exit_code, found) == (1, wanted)


def test_climate_needs_results_for_a_site(tmp_path: pathlib.Path) -> None:
    (tmp_path / "t.csv").write_text("_jobid\n")
    done = run("analyze", "climate", tmp_path / "t.csv", "--site", site_at(tmp_path))
    assert done.exit_code == 2 and "--site is for results of the bench" in done.stderr


def test_logs_and_measurements_in_one_table_are_told_apart(once: pathlib.Path) -> None:
    table, left_out, notes = bench_table([once])
    assert left_out == notes == []
    log = history([100.0])
    log = Jobs({name: log.table[name] for name in log.names if name != "_benchmark_id"}, "log").joined(
        {"darshan_app": ["/bin/ior"], "darshan_biggest_write_api_bytes": [5.0]}
    )
    both, _ = select(Jobs.stacked([table, log], "both"))
    motifs = both.texts("_benchmark_id").tolist()
    assert sorted(motifs)[:2] == ["interleaved_512_mpiio_auto_read_4x2MB", "interleaved_512_mpiio_auto_write_4x2MB"]
    assert sorted(motifs)[2].startswith("ior_") and np.isfinite(both.numbers(PERFORMANCE)).all()
