"""Delegates that are killed: the program goes on, nothing hangs, and no byte that a write has taken is lost.

tests/programs/delegates_crash.c writes, reads and syncs two files through delegates; this test kills one of these with
SIGKILL at a moment that is drawn from how far the ranks have come. The file must hold every byte when it is closed.
"""

from __future__ import annotations

import mmap
import os
import pathlib
import random
import signal
import struct
import sys
import time
from dataclasses import dataclass

import pytest

from support.cbuild import failed_checks, mpi_program
from support.launch import launcher, library_path, preload_environment
from support.processes import Job, job, shared_memory

pytestmark = pytest.mark.mpi

LIMIT_S = 240.0
GRACE_S = 60.0
CHECKS = 2 * 8
RECORDS = 6000
PAUSE_US = 20
WAITING, DONE = 2, 7  # phases of the program
LEVELS = ("memory", "replica", "disk")
QUICK, LONG = 3, 50
#: Records, so that all levels take about as long: "disk" syncs after every write.
WORK = {"memory": RECORDS, "replica": RECORDS // 2, "disk": RECORDS // 8}


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """Who dies and when.

    Attributes
    ----------
    at : part of all records that are written before, of both files.
    more_s : and then so long.
    who : "one" delegate, "all" of them one after the other, its "supervisor", "both" (a supervisor and its delegate).
    per_node : ranks of a pretended node, 0: one node.
    scheduler : in which order delegates serve, see mpiox_delegate_scheduler.
    """

    level: str
    at: float
    more_s: float
    who: str
    ranks: int
    delegates: int
    per_node: int
    scheduler: str = "elevator"

    def describe(self) -> str:
        """Return a name for the test."""
        return f"{self.level}-{self.at:.3f}-{self.who}-{self.ranks}r{self.delegates}d{self.per_node}n-{self.scheduler}"

    def hints(self) -> str:
        """Return MPIOX_HINTS."""
        cache = "mpiox_delegate_cache=2m:mpiox_delegate_page=64k:mpiox_delegate_timeout=120"
        order = f"mpiox_delegate_ack={self.level}:mpiox_delegate_scheduler={self.scheduler}"
        return f"*:mpiox_delegates={self.delegates}:mpiox_delegate_mode=spawn:{cache}:{order}"


def deaths(level: str, count: int, seed: int, scheduler: str = "elevator") -> list[Death]:
    """Return so many moments, spread over the run of the program."""
    rng = random.Random(f"{level} {seed}")
    found = []
    for i in range(count):
        found.append(
            Death(
                level=level,
                at=(i + rng.random()) / count,
                more_s=rng.choice([0.0, 0.0, 0.001, 0.01, 0.05]) * rng.random(),
                who=rng.choice(["one", "one", "one", "all", "supervisor", "both"]),
                ranks=rng.choice([1, 2, 3, 4, 4, 5]),
                delegates=rng.choice([2, 2, 3]),
                per_node=rng.choice([0, 0, 2]),
                scheduler=scheduler,
            )
        )
    return found


def progress_of(held: mmap.mmap, ranks: int) -> tuple[int, int]:
    """Return how many records are written and what rank 0 is doing."""
    counters = struct.unpack(f"{ranks + 1}I", held[: 4 * (ranks + 1)])
    return sum(counters[:-1]), counters[-1]


def victims_of(running: Job, held: mmap.mmap, death: Death, rng: random.Random) -> list[int]:
    """Return whom to kill: when the first file is open, all delegates are there. Then let the ranks go on."""
    deadline_s = time.monotonic() + LIMIT_S
    while progress_of(held, death.ranks)[1] < WAITING and time.monotonic() < deadline_s:
        assert running.process.poll() is None, running.text()
        time.sleep(0.01)
    delegates, supervisors = running.delegates(), running.supervisors()
    held[4 * (death.ranks + 1)] = 1
    assert len(delegates) == len(supervisors) == death.delegates, (delegates, supervisors, running.text())
    return {
        "one": rng.sample(delegates, 1),
        "all": delegates,
        "supervisor": rng.sample(supervisors, 1),
        "both": supervisors[:1] + delegates[:1],
    }[death.who]


def wait_for(running: Job, held: mmap.mmap, death: Death) -> None:
    """Return when the ranks have come as far as the death wants, or have ended."""
    target = 2 * WORK[death.level] * death.at
    deadline_s = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline_s and running.process.poll() is None:
        written, phase = progress_of(held, death.ranks)
        if written >= target or phase == DONE:
            break
        time.sleep(0.0002)
    time.sleep(death.more_s)


def kill(running: Job, victims: list[int]) -> None:
    """Kill processes."""
    for pid in victims:
        try:
            os.kill(pid, signal.SIGKILL)
            running.killed.append(pid)
        except ProcessLookupError:
            continue


def crash(folder: pathlib.Path, death: Death) -> tuple[str, list[int]]:
    """Run the program and kill; what it printed, and who was killed."""
    folder.mkdir(exist_ok=True)
    counters = folder / "progress"
    counters.write_bytes(bytes(4096))
    program = [mpi_program("delegates_crash"), folder / "file", counters, str(WORK[death.level]), str(PAUSE_US)]
    command = [str(launcher()), "-n", str(death.ranks), "env", f"LD_PRELOAD={library_path()}", *map(str, program)]
    env = {"MPIOX_HINTS": death.hints(), "MPIOX_RANKS_PER_NODE": str(death.per_node), "MPIOX_STATS": "1"}
    with (
        counters.open("r+b") as file,
        mmap.mmap(file.fileno(), 4096) as held,
        job(command, folder / "log", env) as running,
    ):
        victims = victims_of(running, held, death, random.Random(death.describe()))
        wait_for(running, held, death)
        kill(running, victims)
        status = running.status(LIMIT_S)
        text = f"{death}\n{running.text()}"
        assert status is not None, f"the job goes on, phase {progress_of(held, death.ranks)}\n{text}"
        assert status == 0, f"status {status}\n{text}"
        assert not (left := running.left(GRACE_S)), f"{left}\n{text}"
        return text, running.killed


def check(folder: pathlib.Path, death: Death) -> tuple[bool, bool]:
    """Run it; every byte must be there. Returns whether anybody was killed, and whether the ranks went on without."""
    before = shared_memory()
    text, killed = crash(folder, death)
    assert not failed_checks(text, CHECKS), text
    assert text.rstrip().splitlines().count("end") == 1, text
    assert not shared_memory() - before
    return bool(killed), "dead_delegate_accesses" in text


def check_all(folder: pathlib.Path, several: list[Death]) -> None:
    """Run it with all these deaths: most of them come before the end, and then the ranks go on without the delegate.

    Where too few did, since the machine was busy and the ranks had ended, they come again, three times in all.
    """
    seen: list[tuple[bool, bool]] = []
    for turn in range(3):
        seen += [check(folder / f"{death.describe()}-{turn}", death) for death in several]
        if sum(killed for killed, _ in seen) >= 0.7 * len(several) and sum(alone for _, alone in seen) >= 0.3 * len(
            several
        ):
            return
    pytest.fail(f"too few delegates were killed while ranks went on: {seen}")


@pytest.mark.slow_with("memory")
@pytest.mark.parametrize("level", LEVELS)
def test_killed_delegates(extension: str, tmp_path: pathlib.Path, level: str) -> None:
    """Three moments of each level of acknowledgement."""
    check_all(tmp_path, deaths(level, QUICK, 1))


@pytest.mark.slow
def test_killed_delegates_with_a_scheduler(extension: str, tmp_path: pathlib.Path) -> None:
    """Requests that wait in a queue, and frames that are given out by weight, die with the delegate."""
    check_all(tmp_path, deaths("memory", QUICK, 3, "wfq"))


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_many_killed_delegates(extension: str, tmp_path: pathlib.Path, level: str) -> None:
    """Fifty moments of each level."""
    check_all(tmp_path, deaths(level, LONG, 2))


APPENDING = """
import pathlib
import sys
import time

import numpy as np
from mpi4py import MPI

comm, path = MPI.COMM_WORLD, pathlib.Path(sys.argv[1])
file = MPI.File.Open(comm, str(path), MPI.MODE_RDWR | MPI.MODE_CREATE)
file.Write_at_all(comm.rank * 8192, np.full(8192, comm.rank + 1, "u1"))
comm.Barrier()
if comm.rank == 0:
    print("written", flush=True)
while not path.with_suffix(".go").exists():
    time.sleep(0.001)
size = file.Get_size()
file.Seek(0, MPI.SEEK_END)
end = file.Get_position()
comm.Barrier()
file.Seek(100 * comm.rank, MPI.SEEK_CUR)
file.Write(np.full(100, 99, "u1"))
file.Close()
assert size == end == 8192 * comm.size, (size, end)
"""


@pytest.mark.both_with("1")
@pytest.mark.parametrize("victim", [0, 1])
def test_the_end_of_the_file_waits_for_a_rescue(extension: str, tmp_path: pathlib.Path, victim: int) -> None:
    """Bytes of a delegate on another node that is dead, and not yet in the file, count; what is appended is behind."""
    path = tmp_path / "data"
    command = [str(launcher()), "-n", "2", sys.executable, "-c", APPENDING, str(path)]
    env = {
        "MPIOX_HINTS": "*:mpiox_delegates=2:mpiox_collective=cached:mpiox_delegate_page=4k",
        "MPIOX_RANKS_PER_NODE": "1",
        "MPIOX_FAULT": f"op=write,path={path},delay_ms=500",
    }
    with job(command, tmp_path / "log", preload_environment() | env) as running:
        running.wait_for("written", LIMIT_S)
        os.kill(running.delegates()[victim], signal.SIGKILL)
        path.with_suffix(".go").touch()
        assert running.status(LIMIT_S) == 0, running.text()
    assert path.read_bytes() == bytes([1] * 8192 + [2] * 8192 + [99] * 200), running.text()
