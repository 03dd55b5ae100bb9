"""A replay that makes no progress: each rank says where it stands."""

from __future__ import annotations

import os
import pathlib
import re
import sys
import time

import pytest

from support import pioneer_paths
from support.launch import launcher
from support.pioneer_paths import row
from support.processes import job

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]

#: The root opens a pipe that nobody reads; the child is in the open that both make.
ROWS = [
    row("open", "pipe", "root", groups=1, extra={"flags": 65}),
    row("MPI_File_open", "all", "shared", "mpiio"),
    row("MPI_File_close", "all", "shared", "mpiio"),
]


def test_each_rank_says_where_it_stands(tmp_path: pathlib.Path) -> None:
    pioneer_paths.save(ROWS, tmp_path / "path.parquet")
    (tmp_path / "out").mkdir()
    os.mkfifo(tmp_path / "out" / "pipe")
    command = [
        launcher(),
        "-n",
        "2",
        sys.executable,
        "-m",
        "mpiio_ext",
        "pioneer",
        "replay",
        str(tmp_path / "path.parquet"),
        str(tmp_path / "out"),
        "--existing",
        "--stuck-after",
        "0.5",
    ]
    said: dict[str, str] = {}
    with job([word for word in command if word], tmp_path / "log") as run:
        until = time.monotonic() + 120
        while len(said) < 2 and run.process.poll() is None and time.monotonic() < until:
            time.sleep(0.1)
            said = dict(re.findall(r"replay: rank (\d): no progress for [\d.]+ s: (.+)", run.text()))
        assert said == {
            "0": f"in operation 0 of the path, open of {tmp_path}/out/pipe; 0 of 3 are behind it",
            "1": f"in operation 1 of the path, MPI_File_open of {tmp_path}/out/all; 0 of 2 are behind it",
        }, run.text()
