"""Histories by the number of processes, and tables of several platforms in one command."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from mpiio_ext.analytics.jobs import Filter, Jobs, histories, published, read, select
from mpiio_ext.analytics.jobs.files import write
from mpiio_ext.analytics.jobs.merging import stack
from mpiio_ext.analytics.jobs.statistics.correlation import NORMALISED, correlation_table
from mpiio_ext.analytics.jobs.table import SCALE
from mpiio_ext.analytics.jobs.umami import history_of, other_scales, umami
from mpiio_ext.cli import main
from support.html_page import Page
from support.job_histories import PERFORMANCE, history, steps

#: A day of the published year, in s since 1970: 2017-06-01.
YEAR = 1496275200.0


def _run(command: str, *arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["analyze", command, *map(str, arguments)])


def _at(processes: list[float], performance: list[float] | None = None) -> Jobs:
    """Return jobs of these processes, each of which writes as many files."""
    return history(
        performance or [1.0] * len(processes),
        {"darshan_nprocs": processes, "darshan_biggest_write_api_files": np.nan_to_num(processes, nan=64)},
    )


def _two_scales(small: int = 60, large: int = 60) -> Jobs:
    """Return jobs of 512 and of 4,096 processes by turns, the large ones eight times as fast; these fall by 40 %."""
    fast = steps([(large * 3 // 4, 800.0), (large - large * 3 // 4, 480.0)])
    slow = steps([(small, 100.0)], seed=2)
    both = np.empty(small + large)
    both[::2], both[1::2] = slow, fast
    return _at([512.0, 4096.0] * small, both.tolist())


# ---- which jobs are of one history -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("within", "names"),
    [
        (1.0, {"64": 2, "128": 1, "129": 1, "1024": 1}),
        (2.0, {"64 to 128": 3, "129": 1, "1024": 1}),
        (3.0, {"64 to 129": 4, "1024": 1}),
        (math.inf, {"": 5}),
    ],
)
def test_jobs_are_compared_up_to_a_factor_of_processes(within: float, names: dict[str, int]) -> None:
    table, _ = select(_at([1024, 64, 128, 64, 129]), Filter(within=within))
    assert {one.scale: len(one.jobs) for one in histories(table)} == names
    assert list(names) == [one.scale for one in histories(table)]
    assert sum(names.values()) == len(table)


def test_a_scale_has_a_name_only_where_it_tells_apart_and_an_unknown_one_is_of_no_history() -> None:
    assert [one.name for one in histories(select(_at([64, 64]))[0])] == ["ior_fpp_write on scratch1"]
    (one,) = histories(select(_at([math.nan, math.nan]).joined({"_benchmark_id": ["m", "m"]}))[0])
    assert one.scale == "" and len(one.jobs) == 2
    table = select(_at([64, math.nan, 512]).joined({"_benchmark_id": ["m"] * 3}))[0]
    names = ["m (64 processes) on scratch1", "m (512 processes) on scratch1"]
    assert [one.name for one in histories(table)] == names
    assert math.isnan(table.numbers(NORMALISED)[1])
    assert history_of(table, 1, later=True)[0].texts("_jobid").tolist() == ["1001"]


def test_a_job_whose_processes_are_not_known_has_no_layout() -> None:
    """Files are a multiple of the processes, or not: of 64 files nobody knows. It is of no history of its own."""
    table = select(_at([64, 64, math.nan, math.nan, math.nan]))[0]
    assert [(one.name, len(one.jobs)) for one in histories(table)] == [("ior_fpp_write on scratch1", 2)]
    assert set(table.texts("_benchmark_id")[2:].tolist()) == {""} and np.isnan(table.numbers(NORMALISED)[2:]).all()


def test_performance_is_normalised_and_correlated_within_a_scale() -> None:
    apart, together = (select(_two_scales(), Filter(within=within))[0] for within in (1.0, math.inf))
    large = apart.numbers("darshan_nprocs") == 4096
    assert apart.numbers(NORMALISED)[~large].max() == 1.0 > together.numbers(NORMALISED)[~large].max()
    apart = apart.joined({"fs_ave_oss_cpu": np.where(large, 50.0, 5.0) + np.arange(len(apart)) % 7})
    (first, _) = correlation_table(apart, ["fs_ave_oss_cpu"], target=PERFORMANCE)
    assert first.coefficient > 0.8 and abs(first.within) < 0.3  # what correlates is the scale


def test_a_scale_is_neither_stored_nor_believed(tmp_path: Path) -> None:
    table = select(_two_scales())[0]
    assert set(table.texts(SCALE).tolist()) == {"512", "4096"}
    write(table, tmp_path / "t.parquet")
    assert SCALE not in read(tmp_path / "t.parquet")


# ---- what is told ----------------------------------------------------------------------------------------------------


def test_a_job_is_shown_against_its_own_scale_and_the_others_are_counted(tmp_path: Path) -> None:
    table = select(_two_scales())[0]
    jobs, place = history_of(table, len(table) - 2)
    assert set(jobs.numbers("darshan_nprocs").tolist()) == {512.0} and umami(jobs, place).scale == "512"
    assert other_scales(table, len(table) - 2) == {"4096": 60}
    write(table, tmp_path / "t.parquet")
    told = _run("umami", "--history", tmp_path / "t.parquet", "--above", "1GiB")
    assert "ior_fpp_write (4096 processes) on scratch1" in told.stdout and "against 59 other jobs" in told.stdout
    assert "Not compared: jobs of the same motif on the same file system, 60 of 512 processes." in told.stdout
    found = json.loads(_run("umami", "--history", tmp_path / "t.parquet", "--json").stdout)
    assert found["processes"] == "4096" and found["other_processes"] == {"512": 60} and found["history_jobs"] == 59
    mine = table.numbers(PERFORMANCE)[table.numbers("darshan_nprocs") == 4096][:-1]
    box = found["metrics"][0]["history"]
    assert [box["q1"], box["median"], box["q3"]] == pytest.approx(np.percentile(mine, (25, 50, 75)).tolist())
    every = json.loads(_run("umami", "--history", tmp_path / "t.parquet", "--processes-within", "8", "--json").stdout)
    assert every["processes"] is None and every["history_jobs"] == 119 and every["other_processes"] == {}


def test_rows_that_were_left_out_are_told_with_why(tmp_path: Path) -> None:
    write(_at([64] * 8, [1.0] * 7 + [math.nan]), tmp_path / "t.csv")
    assert "1 of 8 rows left out: no performance." in _run("umami", "--history", tmp_path / "t.csv").stdout
    found = json.loads(_run("umami", "--history", tmp_path / "t.csv", "--json").stdout)
    assert [(step["dropped"], step["why"]) for step in found["filters"]] == [(1, "no performance")]


def test_a_fall_of_one_scale_is_told_of_that_scale(tmp_path: Path) -> None:
    pytest.importorskip("ruptures", reason="needs ruptures")
    write(_two_scales(), tmp_path / "t.parquet")
    done = _run("climate", tmp_path / "t.parquet", "-o", tmp_path / "t.html")
    assert done.exit_code == 1
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("regression: ")]
    assert "ior_fpp_write (4096 processes) on scratch1" in line and "-40 %" in line
    found = json.loads(_run("climate", tmp_path / "t.parquet", "--json").stdout)
    assert {one["processes"]: one["jobs"] for one in found["histories"]} == {"512": 60, "4096": 60}
    assert [one["processes"] for one in found["regimes"]] == ["512", "4096"]
    page = Page((tmp_path / "t.html").read_text())
    assert "ior_fpp_write (512 processes)" in page.text and "ior_fpp_write (4096 processes)" in page.text


# ---- several platforms -----------------------------------------------------------------------------------------------


def _platform(path: Path, system: str, columns: dict[str, Any], processes: list[float]) -> Path:
    """Write jobs of a platform, the last of which lacks a column of its own."""
    more = {name: [*np.full(len(processes) - 1, value), math.nan] for name, value in columns.items()}
    table = _at(processes, [100.0] * len(processes)).joined(
        {
            **more,
            "_datetime_start": YEAR + 86400.0 * np.arange(len(processes)),
            "_jobid": np.arange(len(processes)),
            "_file_system": [system] * len(processes),
        }
    )
    write(table, path)
    return path


@pytest.fixture
def platforms(tmp_path: Path) -> list[Path]:
    """Return the tables of Lustre, of GPFS, and of Lustre at two scales: 5, 4, and 7 jobs, 3 of these large."""
    return [
        _platform(tmp_path / "edison.csv", "scratch1", {"fs_tot_open_ops": 9e9, "fs_ave_mds_cpu": 3.0}, [64] * 5),
        _platform(tmp_path / "mira.csv", "mira-fs1", {"fs_tot_read_ops": 9e9}, [64] * 4),
        _platform(
            tmp_path / "cori.csv",
            "cscratch",
            {"jobsdb_concurrent_nodes": 5.0},
            [1024, 4096, 512, 4096, 512, 4096, 4096],
        ),
    ]


def test_a_column_is_missing_where_other_rows_of_the_same_file_have_it(platforms: list[Path], tmp_path: Path) -> None:
    alone = {path.name: len(published(read(path))[0]) for path in platforms}
    assert alone == {"edison.csv": 4, "mira.csv": 3, "cori.csv": 3}
    table, twice = stack([read(path) for path in platforms], "all")
    kept, filters = published(table)
    assert twice == 0 and len(kept) == sum(alone.values())
    assert {step.name: step.dropped for step in filters if step.dropped} == {
        "no column missing": 3,
        "without 1,024 processes or fewer on cscratch": 3,
    }
    write(select(table)[0], tmp_path / "all.parquet")
    assert len(published(read(tmp_path / "all.parquet"))[0]) == len(kept)


def test_the_published_rows_of_all_platforms_come_from_one_command(platforms: list[Path], tmp_path: Path) -> None:
    pytest.importorskip("ruptures", reason="needs ruptures")
    done = _run("climate", *platforms, "--published", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    counts = {(one["file"], one["system"]): one["rows"] for one in found["completeness"]}
    assert counts == {("edison.csv", "scratch1"): 4, ("mira.csv", "mira-fs1"): 3, ("cori.csv", "cscratch"): 3}
    page = tmp_path / "t.html"
    assert _run("climate", *platforms, "--published", "-o", page).exit_code == 0
    text = Page(page.read_text()).text
    assert "edison.csv" in text and "a column missing" in text and "1,024 processes or fewer on cscratch" in text


def test_rows_of_an_earlier_stacking_keep_their_file(platforms: list[Path], tmp_path: Path) -> None:
    write(select(stack([read(path) for path in platforms[:2]], "both")[0])[0], tmp_path / "both.parquet")
    table, _ = stack([read(tmp_path / "both.parquet"), read(platforms[2])], "all")
    assert set(table.texts("_file").tolist()) == {"edison.csv", "mira.csv", "cori.csv"}
    assert len(published(table)[0]) == 10


def test_files_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        _platform(tmp_path / folder / "t.csv", folder, {"fs_tot_open_ops": 9e9}, [64] * 3)
    table, _ = stack([read(tmp_path / folder / "t.csv") for folder in ("a", "b")], "both")
    assert len(set(table.texts("_file").tolist())) == 2
