"""Running MPI programs as `mpiio-ext top` sees them, without any option at their start."""

from __future__ import annotations

import json
import pathlib
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from mpiio_ext.top import jobs, snapshot
from support.launch import PATIENCE, PROGRAMS, launcher
from support.marks import slow
from support.processes import Job, job

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]

#: Of watched_live.py: bytes of an access, accesses of a rank that write and read, files that it has had open.
BYTES, WRITES, READS, FILES = 3000, 7, 3, 3


def watched(folder: pathlib.Path, ranks: int) -> list[str]:
    """Return the command of the program."""
    return [str(launcher()), "-n", str(ranks), sys.executable, str(PROGRAMS / "watched_live.py"), str(folder)]


def wait_for(path: pathlib.Path, running: Job) -> None:
    deadline = time.monotonic() + 60 * PATIENCE
    while not path.exists():
        assert running.process.poll() is None and time.monotonic() < deadline, running.text()
        time.sleep(0.05)


def seen(running: Job, *words: str) -> list[dict[str, Any]]:
    """Return what the command prints of a job."""
    command = [
        sys.executable,
        "-m",
        "mpiio_ext",
        "top",
        str(running.process.pid),
        "--once",
        "--json",
        "--interval",
        "0.2s",
        *words,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60 * PATIENCE, check=False)
    found = list(json.loads(done.stdout)["jobs"])
    assert done.returncode == (0 if found else 1), done.stderr
    return found


@pytest.mark.both
@pytest.mark.slow_with("1-1", "4-0")
@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("ranks", [1, 4, *slow(7)])
def test_a_running_job_is_seen(tmp_path: pathlib.Path, ranks: int, count: int) -> None:
    """Numbers are what the program has read and written, whichever way: also through delegates."""
    env = {"MPIOX_HINTS": f"data:mpiox_delegates={count}"} if count else {}
    with job(watched(tmp_path, ranks), tmp_path / "log", env) as running:
        wait_for(tmp_path / "ready", running)
        (found,) = seen(running)
        assert (found["ranks"], found["ranks_here"]) == (ranks, ranks)
        assert [rank["rank"] for rank in found["ranks_seen"]] == list(range(ranks))
        for rank in found["ranks_seen"]:
            assert (rank["written_bytes"], rank["writes"]) == (BYTES * WRITES, WRITES)
            assert (rank["read_bytes"], rank["reads"]) == (BYTES * (READS - 1), READS)
            assert (rank["files_open"], rank["files_opened"], rank["state"] != "gone") == (FILES - 1, FILES, True)
        files = {pathlib.Path(file["path"]).name: file for file in found["files"]}
        assert set(files) == {"data", "native"}
        assert files["data"]["written_bytes"] == BYTES * (WRITES - 2) * ranks
        assert files["native"]["written_bytes"] == BYTES * ranks
        assert {file["ranks"] for file in files.values()} == {ranks}
        assert found["written_mb_per_s"] == 0
        assert [(item["delegate"], item["state"]) for item in found["delegates"]] == [(0, "serving")] * count
        assert all(item["queued"] == 0 for item in found["delegates"])
        follower = snapshot.Follower(snapshot.Watch(), str(running.process.pid))
        assert not follower.is_over(follower.look())
        (tmp_path / "go").touch()
        assert running.status(60 * PATIENCE) == 0
        assert seen(running) == []
        last = follower.look()
        assert follower.is_over(last) and last.jobs[0].job.called.startswith("watched_live.py ")
        assert last.jobs[0].job.total.written_bytes == ranks * BYTES * WRITES


def test_nothing_is_left_of_a_rank_that_is_killed(tmp_path: pathlib.Path) -> None:
    with job(watched(tmp_path, 2), tmp_path / "log") as running:
        wait_for(tmp_path / "ready", running)
        watch = jobs.Watch()
        name = str(running.process.pid)
        (found,) = (each for each in watch.look() if each.name == name)
        for rank in found.ranks:
            subprocess.run(["kill", f"-{signal.SIGKILL}", str(rank.pid)], check=False)
        running.status(60 * PATIENCE)
        gone = [rank for each in watch.look() if each.name == name for rank in each.ranks]
        assert [rank.state for rank in gone] == ["gone", "gone"]
        assert seen(running) == []


def test_a_job_that_does_not_want_it_is_not_seen(tmp_path: pathlib.Path) -> None:
    with job(watched(tmp_path, 2), tmp_path / "log", {"MPIOX_LIVE": "0"}) as running:
        wait_for(tmp_path / "ready", running)
        assert seen(running) == []
        (tmp_path / "go").touch()
        assert running.status(60 * PATIENCE) == 0
