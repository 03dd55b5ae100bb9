"""``pioneer all`` that is killed leaves no process of its replay behind."""

from __future__ import annotations

import os
import pathlib
import signal
import sys
import time

import pytest

from support.launch import marked_processes, python_run
from support.marks import slow
from support.processes import job, words

pytestmark = pytest.mark.mpi

PROGRAM = """
import sys, time
import mpiio_ext
from mpi4py import MPI
for number in range(2):
    with open(f"{sys.argv[1]}.{MPI.COMM_WORLD.rank}", "ab") as file:
        file.write(bytes(1000))
    time.sleep(1)
"""


@pytest.mark.parametrize("name", [*slow("TERM"), "KILL"])
def test_killed(extension: str, tmp_path: pathlib.Path, name: str) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    python_run(
        [
            "-m",
            "mpiio_ext",
            "trace",
            "-o",
            str(tmp_path / "trace"),
            "--",
            sys.executable,
            str(tmp_path / "program.py"),
            str(tmp_path / "file"),
        ],
        2,
    )
    command = [
        "timeout",
        "-s",
        name,
        "3600",
        sys.executable,
        "-m",
        "mpiio_ext",
        "pioneer",
        "all",
        str(tmp_path / "trace"),
        "-o",
        str(tmp_path / "out"),
        "--time-scale",
        "600",
    ]
    with job(command, tmp_path / "log") as run:
        until = time.monotonic() + 240
        replays: list[int] = []
        while len(replays) < 3 and run.process.poll() is None and time.monotonic() < until:
            replays = [pid for pid in marked_processes(run.marker) if "pioneer replay" in words(pid)]
            time.sleep(0.05)
        assert len(replays) >= 3, run.text()  # launcher and ranks
        for pid in marked_processes(run.marker):
            if "pioneer all" in words(pid) and not words(pid).startswith("timeout"):
                os.kill(pid, getattr(signal, f"SIG{name}"))
        assert not run.left(60), run.text()
