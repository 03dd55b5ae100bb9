"""Ctrl-C ends the bench on all ranks, wherever they are, and leaves the results until then and no bench files."""

from __future__ import annotations

import itertools
import json
import os
import pathlib
import signal
import sys
import time
from collections.abc import Iterator

import pytest

from support.launch import launcher, marked_processes
from support.processes import Job, job
from support.tiers import slow

pytestmark = pytest.mark.mpi
LIMIT_S = 240


@pytest.fixture(autouse=True)
def _interruptible() -> Iterator[None]:
    """Launches ignore SIGINT where we do, as in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def _reached(moment: str, bench: Job, data: pathlib.Path) -> bool:
    if moment == "started":
        return len(marked_processes(bench.marker)) >= 5
    return any(data.glob("*/*"))


#: Ranks are in another call after each delay.
FIRST = [("started", 0.0, signal.SIGINT), ("started", 0.31, signal.SIGTERM),
         ("measuring", 0.07, signal.SIGTERM), ("measuring", 1.3, signal.SIGINT)]  # fmt: skip
REST = set(itertools.product(("started", "measuring"), (0.0, 0.07, 0.31, 1.3), (signal.SIGINT, signal.SIGTERM)))


@pytest.mark.parametrize(("moment", "delay", "number"), [*FIRST, *slow(*sorted(REST - {*FIRST}))])
def test_all_ranks_end(extension: str, tmp_path: pathlib.Path, moment: str, delay: float, number: int) -> None:
    """The group of the launcher gets the signal, as from a terminal; then no process of the launch is left."""
    data, output = tmp_path / "data", tmp_path / "results"
    data.mkdir()
    command = [str(launcher()), "-n", "4", sys.executable, "-m", "mpiio_ext.bench", "--quick", "--repetitions", "500",
               "--workload", "interleaved,block3d", "--path", str(data), "--output", str(output)]
    with job(command, tmp_path / "log") as bench:
        until = time.monotonic() + LIMIT_S
        while not _reached(moment, bench, data) and bench.process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        time.sleep(delay)
        assert bench.process.poll() is None, bench.text()
        os.killpg(bench.process.pid, number)
        status = bench.status(60)
        left = bench.left(60)
        assert not left, (left, bench.text()[-3000:])
        assert status not in (None, 0), bench.text()[-3000:]
        said = [line for line in bench.text().splitlines() if line.startswith("mpiio-ext bench: ")]
    if (output / "results.json").exists():
        assert json.loads((output / "results.json").read_text())["failure"]
    if any("results until then" in line for line in said):
        assert (output / "results.json").exists()
    if any("results" in line for line in said):  # rank 0 has had the time
        assert not any(data.iterdir()), bench.text()[-3000:]
