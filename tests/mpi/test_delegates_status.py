"""Delegates of running jobs as they are seen from outside, and in the statistics of the run; the bench with them."""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any

import pytest

from mpiio_ext import delegates
from support.launch import PROGRAMS, json_lines, library_path, python_run
from support.marks import slow

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]

BYTES = 512 * 300 * 3  # of each rank of watched.py
MODES = ("thread", "spawn")


def watched(
    folder: pathlib.Path, ranks: int, count: int, mode: str, **environment: str
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Run the program; return what it saw, and the lines of the statistics by their kind."""
    assert library_path() is not None
    statistics = folder / "stats"
    env = {
        "MPIOX_HINTS": f"*:mpiox_delegates={count}:mpiox_delegate_mode={mode}",
        "MPIOX_STATS": "1",
        "MPIOX_STATS_FILE": str(statistics),
        **environment,
    }
    python_run([PROGRAMS / "watched.py", folder / "data", folder / "result"], ranks, env=env, timeout_s=120)
    seen = json.loads((folder / "result").read_text(encoding="utf-8"))
    lines = json_lines(statistics)
    assert [line["kind"] for line in lines] == ["file", "run"]
    return seen, {line["kind"]: line for line in lines}


def written_as_it_should_be(path: pathlib.Path, ranks: int) -> bool:
    data = path.read_bytes()
    pieces = [data[at : at + 512] for at in range(0, len(data), 512)]
    return len(data) == BYTES * ranks and all(
        piece == bytes([number % ranks + 1]) * 512 for number, piece in enumerate(pieces)
    )


@pytest.mark.both_with("4-2-spawn")
@pytest.mark.slow_with("1-1-spawn", "4-2-thread")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("ranks", "count"), [(1, 1), (4, 2), *slow((2, 2), (3, 1), (7, 3))])
def test_a_running_job_is_seen(tmp_path: pathlib.Path, ranks: int, count: int, mode: str) -> None:
    seen, lines = watched(tmp_path, ranks, count, mode)
    assert written_as_it_should_be(tmp_path / "data", ranks)
    group = seen["ranks"][0]["own"][0]["group"]
    ours = [item for item in seen["status"]["delegates"] if item["group"] == group]
    assert [(item["delegate"], item["delegates"]) for item in ours] == [(index, count) for index in range(count)]
    assert {(item["mode"], item["state"], item["answers"]) for item in ours} == {(mode, "serving", True)}
    assert sum(item["counters"]["bytes_written"] for item in ours) == BYTES * ranks
    for item in ours:
        assert [file["path"] for file in item["files"]] == [str(tmp_path / "data")]
        assert item["clients"] == ranks
        assert item["pages_used"] + item["pages_free"] == item["pages"] > 0
    for rank in seen["ranks"]:
        assert [item["delegate"] for item in rank["own"]] == list(range(count))
        assert sum(item["bytes_written"] for item in rank["own"]) == BYTES * ranks
        assert rank["delegation"].startswith(f"{count} delegate")
    assert group not in {item.group for item in delegates.status()}
    assert lines["file"]["delegation"] == lines["run"]["delegation"] == seen["ranks"][0]["delegation"]
    assert "delegates" not in lines["file"]


@pytest.mark.slow_except("2-environment0-thread", "4-environment1-spawn")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("ranks", "environment"), [(2, {}), (4, {"MPIOX_RANKS_PER_NODE": "2"}), (5, {})])
def test_the_run_says_what_its_delegates_have_counted(
    tmp_path: pathlib.Path, ranks: int, environment: dict[str, str], mode: str
) -> None:
    """Also where each rank sees the delegates of its own node only."""
    _, lines = watched(tmp_path, ranks, 2, mode, **environment)
    file, run = lines["file"], lines["run"]
    totals = run["delegates"]
    names = [counter.name for counter in delegates.counters()]
    assert [name for name in totals if name not in ("delegates", "known", "died", "flush_size_log2")] == names
    assert (totals["delegates"], totals["known"], totals["died"]) == (2, 2, 0)
    assert totals["bytes_written"] == BYTES * ranks
    assert totals["flush_bytes"] >= BYTES * ranks
    assert sum(totals["flush_size_log2"]) == totals["flush_requests"] > 0
    assert totals["errors"] == 0
    assert file["delegated_writes"] == 3 * ranks == file["independent_writes"]
    assert file["delegated_bytes_written"] == BYTES * ranks
    assert file["delegated_flush_barriers"] >= 1
    assert (file["dead_delegate_accesses"], file["deferred_errors"], file["flush_barrier_s"] > 0) == (0, 0, True)


COLLECTIVE = """
import json, sys
import mpiio_ext.delegates
from mpi4py import MPI
file = MPI.File.Open(MPI.COMM_WORLD, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)
def count():
    MPI.COMM_WORLD.Barrier()
    return sum(open_.collectives for item in mpiio_ext.delegates.own() for open_ in item.files)
seen = [count()]
for call in (file.Write_at_all, file.Write_at_all, file.Write_at, file.Write_at_all):  # the last one finds pages cached
    call(100 * MPI.COMM_WORLD.rank, bytes(100))
    seen.append(count())
if MPI.COMM_WORLD.rank == 0:
    print("SEEN", json.dumps(seen))
file.Close()
"""


@pytest.mark.slow_with("spawn")
@pytest.mark.parametrize("mode", MODES)
def test_collectives_past_the_delegates_are_counted(tmp_path: pathlib.Path, mode: str) -> None:
    env = {"MPIOX_HINTS": f"*:mpiox_delegates=2:mpiox_delegate_mode={mode}"}
    launch = python_run(["-c", COLLECTIVE, tmp_path / "data"], 3, env=env, timeout_s=120)
    (line,) = (line for line in launch.stdout.splitlines() if line.startswith("SEEN "))
    assert json.loads(line[5:]) == [0, 3, 6, 6, 6], launch.describe()


def test_a_run_without_delegates_says_nothing_of_them(tmp_path: pathlib.Path) -> None:
    seen, lines = watched(tmp_path, 2, 0, "thread")
    assert [rank["own"] for rank in seen["ranks"]] == [[], []]
    assert lines["file"]["delegation"] == ""
    assert "delegates" not in lines["run"]
    assert lines["run"]["delegated_writes"] == 0


def test_the_table_has_the_totals(tmp_path: pathlib.Path) -> None:
    env = {"MPIOX_HINTS": "*:mpiox_delegates=1:mpiox_delegate_mode=thread", "MPIOX_STATS": "1"}
    launch = python_run([PROGRAMS / "watched.py", tmp_path / "data", tmp_path / "result"], 2, env=env, timeout_s=120)
    text = launch.stderr + launch.stdout
    assert "mpiio_ext: what the delegates counted, summed over 1 of 1" in text
    assert re.search(r"^  delegates +1 delegate, thread", text, re.MULTILINE)
    assert "write request sizes" in text


# ---- the bench -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [3, *slow(1, 2, 5)])
def test_bench_with_delegates(tmp_path: pathlib.Path, ranks: int) -> None:
    """A pattern, and a kernel that fewer ranks run or that has a file for each rank."""
    words = [
        "-w",
        "interleaved",
        "-k",
        "hacc",
        "--preset",
        "quick",
        "-i",
        "mpiio",
        "--size",
        "1MiB",
        "--block",
        "512",
        "-r",
        "1",
        "-m",
        "native,delegates+independent",
        "--delegates",
        "1",
        "--delegate-mode",
        "thread",
        "--no-figures",
        "--output",
        tmp_path / "results",
        "--path",
        tmp_path,
    ]
    launch = python_run(["-m", "mpiio_ext.bench", *words], ranks, timeout_s=180, cwd=tmp_path)
    assert "delegates: 1 delegate, thread" in launch.stdout, launch.describe()
    document = json.loads((tmp_path / "results" / "results.json").read_text())
    rows = [row for row in document["runs"] if row["strategy"] == "delegates+independent"]
    assert {row["operation"] for row in rows if row["kind"] == "pattern"} == {"write", "read"}
    for row in rows:
        if row["kind"] != "pattern":
            continue
        assert row["delegates"] == 1
        assert row["delegated_accesses"] == ranks
        assert row["delegated_bytes"] + row["bypass_bytes"] == row["data_bytes"]
        assert row["requests_source"] == "extension"
        seconds = row["view_s"] + row["data_s"] + row["close_s"]
        assert row["bandwidth_mb_per_s"] == pytest.approx(row["data_bytes"] / 1e6 / seconds)
    assert all(row["delegated_accesses"] is None for row in document["runs"] if row["strategy"] == "native")
    assert document["configuration"]["delegates"] == "1"
    assert (tmp_path / "results" / "report.html").exists()


def test_bench_on_the_ranks_that_are_no_delegates(tmp_path: pathlib.Path) -> None:
    """Mode split: two of four ranks measure; methods without delegates do without, though the job has some."""
    words = [
        "-w",
        "interleaved",
        "--size",
        "1MiB",
        "--block",
        "512",
        "-r",
        "1",
        "-i",
        "mpiio",
        "-m",
        "native+independent,auto+independent,delegates+independent",
        "--delegates",
        "2",
        "--delegate-mode",
        "split",
        "--no-figures",
        "--no-page",
        "--output",
        tmp_path / "results",
        "--path",
        tmp_path,
    ]
    launch = python_run(["-m", "mpiio_ext.bench", *words], 4, timeout_s=180, cwd=tmp_path)
    assert "delegates: 2 delegates, split" in launch.stdout, launch.describe()
    rows = json.loads((tmp_path / "results" / "results.json").read_text())["runs"]
    assert {row["ranks"] for row in rows} == {2}
    through = {row["strategy"]: row["delegated_accesses"] for row in rows}
    assert through == {"native+independent": None, "auto+independent": None, "delegates+independent": 2}
    assert all(row["requests"] > 0 for row in rows if row["strategy"] == "auto+independent")


@pytest.mark.parametrize(("count", "words"), [("2", "leave none"), ("50%", "must be a number of ranks")])
def test_bench_needs_ranks_that_measure(tmp_path: pathlib.Path, count: str, words: str) -> None:
    arguments = ["-w", "interleaved", "--delegates", count, "--delegate-mode", "split", "--path", tmp_path]
    launch = python_run(["-m", "mpiio_ext.bench", *arguments], 2, timeout_s=120, cwd=tmp_path, check=False)
    assert launch.returncode != 0
    assert not launch.timed_out
    said = [line for line in (launch.stdout + launch.stderr).splitlines() if "mpiio-ext: " in line]
    assert len(said) == 1
    assert words in said[0]


def test_bench_says_why_there_are_no_delegates(tmp_path: pathlib.Path) -> None:
    """MPIOX_HINTS is stronger than what the bench asks for."""
    words = [
        "-w",
        "interleaved",
        "--size",
        "1MiB",
        "-r",
        "1",
        "-m",
        "native,delegates",
        "--path",
        tmp_path,
        "--output",
        tmp_path / "results",
    ]
    launch = python_run(
        ["-m", "mpiio_ext.bench", *words],
        2,
        timeout_s=120,
        cwd=tmp_path,
        check=False,
        env={"MPIOX_HINTS": "*:mpiox_delegates=0"},
    )
    assert launch.returncode != 0
    assert not launch.timed_out
    said = [line for line in (launch.stdout + launch.stderr).splitlines() if "mpiio-ext: " in line]
    assert len(said) == 1
    assert "--method delegates" in said[0]
    assert list(tmp_path.iterdir()) == []
