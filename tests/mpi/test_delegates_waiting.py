"""Ranks that wait for a delegate which is alive and does not answer: they say so, the status shows them, they go on."""

from __future__ import annotations

import mmap
import os
import pathlib
import re
import signal
import struct
import time
from collections.abc import Callable

import pytest

from mpiio_ext import delegates
from support.cbuild import failed_checks, mpi_program
from support.launch import launcher, library_path, python_run
from support.marks import slow
from support.processes import Job, job

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]
LIMIT_S = 240.0
RANKS = 3
WAITING, USING = 2, 3  # phases of the program
HINTS = "mpiox_delegates=1:mpiox_delegate_mode=spawn:mpiox_delegate_page=64k:mpiox_delegate_cache=4m"


def wait_until(running: Job, seen: Callable[[], bool]) -> None:
    """Return when something is seen."""
    deadline_s = time.monotonic() + LIMIT_S
    while not seen():
        assert running.process.poll() is None and time.monotonic() < deadline_s, running.text()
        time.sleep(0.02)


def waiters(running: Job) -> list[delegates.DelegateWaiter]:
    """Return who waits for a delegate of this job, as the status says."""
    pids = set(running.delegates())
    return [waiter for item in delegates.status() if item.pid in pids for waiter in item.waiting]


def lines(running: Job) -> list[str]:
    return [line for line in running.text().splitlines() if "has waited" in line]


@pytest.mark.parametrize(("per_node", "report"), [*slow((0, 2)), (1, 2), (0, 0)])
def test_a_stopped_delegate(tmp_path: pathlib.Path, per_node: int, report: int) -> None:
    """Every rank says it once, if it is to; continued, the delegate serves on, and every byte is right."""
    progress = tmp_path / "progress"
    progress.write_bytes(bytes(4096))
    program = [mpi_program("delegates_random"), tmp_path / "file", progress, "1", "600", "997", "200", "0"]
    command = [str(launcher()), "-n", str(RANKS), "env", f"LD_PRELOAD={library_path()}", *map(str, program)]
    env = {"MPIOX_HINTS": f"*:{HINTS}:mpiox_delegate_report={report}", "MPIOX_RANKS_PER_NODE": str(per_node)}
    with (
        progress.open("r+b") as file,
        mmap.mmap(file.fileno(), 4096) as held,
        job(command, tmp_path / "log", env) as running,
    ):
        wait_until(running, lambda: struct.unpack_from("I", held, 4 * RANKS)[0] >= WAITING)
        (delegate,) = running.delegates()
        os.kill(delegate, signal.SIGSTOP)
        struct.pack_into("I", held, 4 * (RANKS + 1), 1)
        begun_s = time.time()
        if per_node == 0:
            wait_until(running, lambda: {waiter.rank for waiter in waiters(running)} == set(range(RANKS)))
            for waiter in waiters(running):
                assert abs(waiter.since_unix_s - begun_s) < LIMIT_S and waiter.request, waiter
                assert waiter.path in ("", str(tmp_path / "file")), waiter
        if report > 0:
            wait_until(running, lambda: len(lines(running)) >= (RANKS if per_node == 0 else RANKS - 1))
        os.kill(delegate, signal.SIGCONT)
        assert running.status(LIMIT_S) == 0, running.text()
        text = running.text()
    assert not failed_checks(text, 2) and text.splitlines().count("end") == 1, text
    said = [
        re.search(r"rank (\d) has waited \d+ s for .*I/O delegate .*\(process (\d+) on ", line)
        for line in lines(running)
    ]
    ranks = [int(found[1]) for found in said if found]
    assert len(ranks) == len(said) and sorted(ranks) == sorted(set(ranks)), text
    assert {int(found[2]) for found in said if found} <= {delegate}, text
    assert (len(ranks) > 0) == (report > 0), text
    if report > 0 and per_node == 0:
        assert all("does not run" in line for line in lines(running)), text


@pytest.mark.slow
def test_a_slow_file_system(tmp_path: pathlib.Path) -> None:
    """The delegate runs, and has no room until a write has ended: that is what the ranks say."""
    progress = tmp_path / "progress"
    progress.write_bytes(struct.pack("I", 0) * (RANKS + 1) + struct.pack("I", 1) + bytes(4000))
    program = [mpi_program("delegates_random"), tmp_path / "file", progress, "1", "2000", "997", "1000", "0"]
    command = [str(launcher()), "-n", str(RANKS), "env", f"LD_PRELOAD={library_path()}", *map(str, program)]
    env = {
        "MPIOX_HINTS": f"*:{HINTS}:mpiox_delegate_cache=400k:mpiox_delegate_report=1",
        "MPIOX_FAULT": f"op=write,path={tmp_path}/file,delay_ms=10000,after=1,times=1",
    }
    with job(command, tmp_path / "log", env) as running:
        assert running.status(LIMIT_S) == 0, running.text()
        said = lines(running)
        text = running.text()
    assert said and all("runs, but has not answered" in line for line in said), text
    assert not failed_checks(text, 2) and text.splitlines().count("end") == 1, text


def test_a_transfer_that_goes_on_is_no_wait(tmp_path: pathlib.Path) -> None:
    """Accesses of another node's delegate that take long, and move bytes all the time: nobody says that he waits."""
    program = (
        "import sys, numpy, mpiio_ext; from mpi4py import MPI\n"
        "file = MPI.File.Open(MPI.COMM_WORLD, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)\n"
        "piece = MPI.BYTE.Create_contiguous(4096).Create_resized(0, 8192).Commit()\n"
        "file.Set_view(4096 * MPI.COMM_WORLD.rank, MPI.BYTE, piece)\n"
        "data = numpy.full(48 << 20, 1 + MPI.COMM_WORLD.rank, numpy.uint8)\n"
        "begun = MPI.Wtime()\n"
        "file.Write_at(0, data)\n"
        "took = MPI.COMM_WORLD.allreduce(MPI.Wtime() - begun, MPI.MAX)\n"
        "file.Close()\n"
        "print(f'took {took}') if MPI.COMM_WORLD.rank == 0 else None\n"
    )
    env = {
        "MPIOX_HINTS": f"*:{HINTS}:mpiox_delegate_bypass=0:mpiox_delegate_report=4",
        "MPIOX_RANKS_PER_NODE": "1",
        "MPIOX_NETWORK_FAULT": "delay_ms=1000",
    }
    launch = python_run(["-c", program, tmp_path / "file"], 2, env=env, timeout_s=LIMIT_S)
    found = re.search(r"took (\d+\.\d+)", launch.stdout)
    assert found and float(found[1]) > 5, launch.describe()  # else there was nothing to be seen
    assert "has waited" not in launch.stderr, launch.describe()
    assert (tmp_path / "file").read_bytes() == (bytes([1]) * 4096 + bytes([2]) * 4096) * (12 << 10)
