"""Lines of ``MPIOX_STATS_FILE``: whose run they are, when files were in use, and what the analytics make of them."""

from __future__ import annotations

import pathlib
import re
import time
from typing import Any

import pytest

from mpiio_ext.analytics import IOMiner
from mpiio_ext.analytics.analyses.methods import methods
from support.launch import PROGRAMS, json_lines, python_run

pytestmark = pytest.mark.mpi

RANKS, BYTES = 2, 1 << 18


def run(folder: pathlib.Path, **variables: str) -> list[dict[str, Any]]:
    env = {"MPIOX_STATS_FILE": str(folder / "stats.jsonl"), **variables}
    words = [str(PROGRAMS / "two_files.py"), str(folder / "data"), str(BYTES)]
    launch = python_run(words, RANKS, timeout_s=120, env=env)
    assert launch.returncode == 0, launch.describe()
    path = folder / "stats.jsonl"
    return json_lines(path) if path.exists() else []


def test_every_line_says_whose_it_is_and_when(tmp_path: pathlib.Path) -> None:
    """A file for statistics is enough; files of some ranks alone belong to the run, too."""
    before = time.time()
    first = run(tmp_path, SLURM_JOB_ID="4711")
    lines = run(tmp_path)
    after = time.time()
    assert [sorted(line["kind"] for line in part) for part in (first, lines[len(first) :])] == [
        ["file"] * (1 + RANKS) + ["run"]
    ] * 2
    assert len({line["run"] for line in first}) == 1
    assert len({line["run"] for line in lines}) == 2
    assert {line["scheduler_job"] for line in first} == {"4711"}
    assert all("two_files.py" in line["command"] and line["program"].startswith("python") for line in lines)
    for line in lines:
        assert before - 60 < line["start"] <= line["time"] <= after + 1
        if line["kind"] == "run":
            continue
        reads = line["path"].endswith("data")
        times = [line[name] for name in ("opened", "write_start", "write_end", *(["read_end"] * reads), "closed")]
        assert times == sorted(times)
        assert (line["read_start"] is not None) == reads


def test_statistics_may_be_refused_for_all_that(tmp_path: pathlib.Path) -> None:
    assert run(tmp_path, MPIOX_STATS="0") == []


@pytest.mark.both
@pytest.mark.parametrize(
    "hints",
    [
        "romio_cb_write=disable:romio_cb_read=disable",
        "mpiox_partition=even",
        "romio_cb_read=disable:mpiox_partition=even",
    ],
)
def test_bytes_of_direct_collectives_are_told(tmp_path: pathlib.Path, hints: str) -> None:
    line = next(line for line in run(tmp_path, MPIOX_HINTS=hints) if line["path"].endswith("data"))
    for past, hint in (("written", "romio_cb_write"), ("read", "romio_cb_read")):
        direct = RANKS * BYTES if hint in hints else 0
        assert (line[f"bytes_{past}"], line[f"direct_bytes_{past}"]) == (RANKS * BYTES, direct)
        assert line[f"independent_bytes_{past}"] == direct


@pytest.mark.both
def test_accesses_of_the_mpi_library_have_no_end(tmp_path: pathlib.Path) -> None:
    line = next(line for line in run(tmp_path, MPIOX_HINTS="mpiox_enable=false") if line["path"].endswith("data"))
    assert line["native_calls"] > 0
    assert line["write_start"] >= line["opened"]
    assert line["write_end"] is None


def test_why_one_method_was_slower_is_asked_of_a_program(tmp_path: pathlib.Path) -> None:
    for method in ("even", "group_cyclic"):
        run(tmp_path, MPIOX_HINTS=f"mpiox_partition={method}", SLURM_JOB_ID="4712")
    miner = IOMiner({"store": str(tmp_path / "store"), "inputs": {"results": [str(tmp_path)]}, "workers": 0})
    assert "1 whole" in str(miner.init_stores(quiet=True))
    jobs = miner.load("darshan_job").arrow().to_pylist()
    moved = RANKS * BYTES
    assert [
        (job["job_id"], job["processes"], job["files"], job["bytes_written"], job["bytes_read"], job["partial"])
        for job in jobs
    ] == [(4712, RANKS, 1 + RANKS, 2 * moved, moved, False)] * 2
    assert all(job["run_time"] > 0 and job["write_end"] > job["write_start"] >= job["start_time"] for job in jobs)
    rows = methods(miner).table.to_pylist()
    assert {row["method"] for row in rows} == {"even", "group_cyclic", "independent"}
    assert all(row["bandwidth"] > 0 for row in rows)
    caption = methods(miner, slower="even", faster="group_cyclic").caption
    assert "both: even" in caption
    assert "phases are those of the mean rank" in caption


INTERLEAVED = """
import sys
import mpiio_ext
from mpi4py import MPI
comm, blocks, length = MPI.COMM_WORLD, 1024, 512
view = MPI.BYTE.Create_vector(blocks, length, comm.size * length).Create_resized(0, blocks * comm.size * length)
view.Commit()
file = MPI.File.Open(comm, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)
file.Set_view(comm.rank * length, MPI.BYTE, view)
file.Write_all(bytes(2 * blocks * length))
file.Set_view(0, MPI.BYTE, MPI.BYTE)
file.Write_at(comm.rank * length, bytes(length))
file.Close()
"""


def test_values_stand_in_one_column_and_whole_tiles_are_counted(tmp_path: pathlib.Path) -> None:
    words = ["-c", INTERLEAVED, str(tmp_path / "data")]
    text = python_run(words, RANKS, env={"MPIOX_STATS": "1", "MPIOX_HINTS": "mpiox_exchange=two_phase"}).stderr
    counters = [line for line in text.splitlines() if re.match(r"  [a-z_]+ +[0-9]+ [a-z]+ +[a-z]", line)]
    assert {"pieces", "independent_bytes_written", "bytes_written"} <= {line.split()[0] for line in counters}
    assert len({re.match(r"  [a-z_]+ +[0-9]+", line).end() for line in counters}) == 1  # type: ignore[union-attr]
    pieces = [line.split()[1] for line in counters if line.split()[0] == "pieces"]
    assert pieces == [str(RANKS * 2 * 1024)]
