"""Files that are opened again while delegates write them, or when delegates have died: each is found, and is whole."""

from __future__ import annotations

import os
import pathlib
import signal
import sys
import textwrap
import time

import pytest

from support.launch import launcher, marked_processes
from support.marks import slow
from support.processes import job
from support.staged import PARTS, asked, hints, kill_at_once, names, whole

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]
LIMIT_S, GRACE_S = 60.0, 60.0

START = """
import os, sys, time
from mpi4py import MPI

comm, folder, n = MPI.COMM_WORLD, sys.argv[1], 200000
path = folder + "/file"
def say(*words):
    comm.Barrier()
    if comm.rank == 0:
        print(*words, flush=True)
def await_(name):
    while not os.path.exists(folder + "/../" + name):
        time.sleep(0.01)
    comm.Barrier()
def make(path=path):
    fh = MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_RDWR)
    fh.Write_at_all(comm.rank * n, bytes([65 + comm.rank]) * n)
    return fh
def opened(mode=MPI.MODE_RDONLY, comm=comm):
    fh, found = MPI.File.Open(comm, path, mode), bytearray(n)
    for rank in range(MPI.COMM_WORLD.size):
        fh.Read_at(rank * n, found)
        assert found == bytes([65 + rank]) * n, (comm.rank, rank, found[0], found[-1])
    return fh
"""
CONTENT = b"A" * 200000 + b"B" * 200000


def program(code: str, folder: pathlib.Path) -> list[str]:
    """Return how two ranks are started that go on from START, with files in a folder."""
    folder.mkdir(exist_ok=True)
    return [str(launcher()), "-n", "2", sys.executable, "-c", START + textwrap.dedent(code), str(folder)]


@pytest.mark.parametrize("parts", [PARTS[0], *slow(PARTS[1])])
def test_a_delegate_dies_while_ranks_open_what_it_writes(tmp_path: pathlib.Path, parts: dict[str, int]) -> None:
    """The ranks wait for the other delegate, which was stopped, and find the file by its name."""
    code = """
        make().Close()
        say("closed")
        await_("go")
        say("opens")
        opened().Close()
        opened().Close()
        say("found", sorted(name for name in os.listdir(folder) if "staging" in name))
    """
    files = tmp_path / "files"
    with job(program(code, files), tmp_path / "log", hints(mpiox_drain_rate="100k", **parts)) as running:
        running.wait_for("closed", LIMIT_S)
        stopped, killed = running.delegates()
        os.kill(stopped, signal.SIGSTOP)
        (tmp_path / "go").touch()
        running.wait_for("opens", LIMIT_S)
        time.sleep(0.3)
        os.kill(killed, signal.SIGKILL)
        time.sleep(0.3)
        os.kill(stopped, signal.SIGCONT)
        assert running.status(LIMIT_S) == 0 and not running.left(GRACE_S), running.text()
        assert "found []" in running.text(), running.text()
    assert whole(files / "file") == CONTENT


@pytest.mark.parametrize("parts", PARTS)
def test_a_job_is_killed_that_has_opened_what_it_had_closed(tmp_path: pathlib.Path, parts: dict[str, int]) -> None:
    """To read it: by then it has its name."""
    files = tmp_path / "files"
    code = """
        make().Close()
        fh = opened()
        say("open")
        time.sleep(600)
    """
    with job(program(code, files), tmp_path / "log", hints(mpiox_drain_rate=1, **parts)) as running:
        running.wait_for("open", LIMIT_S)
        kill_at_once(marked_processes(running.marker))
        assert not running.left(GRACE_S), running.text()
    assert asked("wait", files / "file") == (0, "")
    assert names(files) == {"file"} and whole(files / "file") == CONTENT


@pytest.mark.both
def test_each_rank_makes_the_same_file(tmp_path: pathlib.Path) -> None:
    """Alone and at once: one makes it, and the others open it."""
    code = """
        comm.Barrier()
        fh = MPI.File.Open(MPI.COMM_SELF, path, MPI.MODE_CREATE | MPI.MODE_WRONLY)
        fh.Write_at(comm.rank * n, bytes([65 + comm.rank]) * n)
        fh.Close()
    """
    files = tmp_path / "files"
    with job(program(code, files), tmp_path / "log", hints()) as running:
        assert running.status(LIMIT_S) == 0 and not running.left(GRACE_S), running.text()
        assert "mpiio_ext" not in running.text(), running.text()
    assert names(files) == {"file"} and whole(files / "file") == CONTENT


@pytest.mark.both
def test_a_file_is_opened_twice_and_the_only_delegate_dies_between(tmp_path: pathlib.Path) -> None:
    """It has no name yet, and is found."""
    files = tmp_path / "files"
    code = """
        first = make()
        first.Sync()
        say("open")
        await_("go")
        second = opened(comm=MPI.COMM_SELF, mode=MPI.MODE_CREATE | MPI.MODE_RDWR)
        comm.Barrier()
        first.Close()
        second.Close()
        opened().Close()
    """
    with job(program(code, files), tmp_path / "log", hints(mpiox_delegates=1)) as running:
        running.wait_for("open", LIMIT_S)
        os.kill(running.delegates()[0], signal.SIGKILL)
        (tmp_path / "go").touch()
        assert running.status(LIMIT_S) == 0 and not running.left(GRACE_S), running.text()
    assert names(files) == {"file"} and whole(files / "file") == CONTENT
