"""What is ended from outside ends on all ranks, wherever they are; the results until then stay, and nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import random
import signal
import sys
import time
from collections.abc import Iterator

import pytest

from support.launch import launcher, marked_processes
from support.marks import slow
from support.processes import Job, job, words

pytestmark = pytest.mark.mpi
LIMIT_S = 240


@pytest.fixture(autouse=True)
def _interruptible() -> Iterator[None]:
    """Launches ignore SIGINT where we do, as in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def _ranks(bench: Job) -> list[int]:
    return [
        pid
        for pid in marked_processes(bench.marker)
        if "-m mpiio_ext.bench --quick" in words(pid) and "python" in words(pid).split(" ")[0]
    ]


def _segments(bench: Job) -> set[pathlib.Path]:
    """Return the shared memory of MPICH that ranks have; other launchers remove theirs."""
    lines: list[str] = []
    for pid in _ranks(bench):
        with contextlib.suppress(OSError):
            lines += pathlib.Path(f"/proc/{pid}/maps").read_text("utf-8").splitlines()
    return {pathlib.Path(line.split(maxsplit=5)[5]) for line in lines if "/dev/shm/mpich_shm_" in line}


def _holds_the_launcher(bench: Job) -> list[int]:
    """Return the processes beside a rank that have its output: a launcher does not end before they do."""
    beside = [pid for pid in marked_processes(bench.marker) if "/interrupted.py " in words(pid)]
    assert beside, bench.text()
    return [
        pid
        for pid in beside
        for number in (1, 2)
        if pathlib.Path(f"/proc/{pid}/fd/{number}").readlink().name.startswith("pipe:")
    ]


def _alive(bench: Job) -> str:
    """Return a line for each process that is left: what it is, its state, its signals, where it waits."""
    lines = []
    for pid in marked_processes(bench.marker):
        with contextlib.suppress(OSError):
            status = pathlib.Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
            about = [
                line for line in status if line.startswith(("PPid", "State", "SigPnd", "ShdPnd", "SigBlk", "SigCgt"))
            ]
            where = pathlib.Path(f"/proc/{pid}/wchan").read_text("utf-8")
            lines.append(f"{pid} {words(pid)[:200]} {' '.join(about)} {where}")
    return "\n".join(lines)


def _reached(moment: str, bench: Job, data: pathlib.Path, output: pathlib.Path) -> bool:
    if moment == "started":
        return len(_ranks(bench)) == 4
    return any(data.glob("*/*")) if moment == "measuring" else (output / "results.json").exists()


def _end(way: str, bench: Job) -> None:
    if way == "Ctrl-C":
        os.killpg(bench.process.pid, signal.SIGINT)
    elif way == "SIGTERM":
        os.killpg(bench.process.pid, signal.SIGTERM)
    elif way == "launcher":
        bench.process.send_signal(signal.SIGINT)
    else:
        os.kill(_ranks(bench)[int(way.removeprefix("kill "))], signal.SIGKILL)


def _moments(seeds: range) -> Iterator[tuple[str, float, str]]:
    """Yield moments at random: since when, how long after that in seconds, and how the job is ended."""
    for seed in seeds:
        chance = random.Random(seed)
        way = chance.choice(["Ctrl-C", "Ctrl-C", "Ctrl-C", "SIGTERM", "launcher", "kill 0", "kill 3"])
        yield chance.choice(["started", "measuring", "kept"]), round(chance.uniform(0, 5), 3), way


@pytest.mark.both_with("started-*")
@pytest.mark.parametrize(
    ("moment", "delay", "way"),
    [
        ("started", 0.0, "Ctrl-C"),
        *slow(("measuring", 0.07, "SIGTERM")),
        ("kept", 0.31, "Ctrl-C"),
        *slow(("kept", 1.3, "kill 0"), *_moments(range(36))),
    ],
)
def test_a_job_is_ended(extension: str, tmp_path: pathlib.Path, moment: str, delay: float, way: str) -> None:
    """No process of the launch is left, no file of the bench, and no folder of results without any."""
    data, output = tmp_path / "data", tmp_path / "results"
    data.mkdir()
    command = [
        str(launcher()),
        "-n",
        "4",
        sys.executable,
        "-m",
        "mpiio_ext.bench",
        "--quick",
        "--repeats",
        "500",
        "--workload",
        "interleaved,block3d",
        "--kernel",
        "vpic,flash",
        "--path",
        str(data),
        "--output",
        str(output),
    ]
    with job(command, tmp_path / "log") as bench:
        until = time.monotonic() + LIMIT_S
        while not _reached(moment, bench, data, output) and bench.process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        time.sleep(delay)
        assert bench.process.poll() is None, bench.text()
        segments = _segments(bench) if moment == "kept" else set()
        assert moment != "kept" or not _holds_the_launcher(bench)
        _end(way, bench)
        status = bench.status(60)
        assert status not in (None, 0), f"{bench.text()[-3000:]}\n{_alive(bench)}"
        left = bench.left(60)
        assert not left, (left, bench.text()[-3000:])
        text = bench.text()
    assert not any(data.iterdir()), text[-3000:]
    assert not any(path.exists() for path in segments), segments
    assert moment != "kept" or output.exists(), text[-3000:]
    if output.exists():
        document = json.loads((output / "results.json").read_text())
        assert document["failure"] and document["runs"] and document["summary"]
        assert "mpiio-ext: ended early; " in text and (output / "report.html").exists(), text[-3000:]
    assert moment == "started" or "Traceback" not in text, text[-3000:]  # Python itself may just begin
