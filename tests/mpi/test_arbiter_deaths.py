"""Delegates and ranks that are killed while page ranges change hands: no byte is lost, old, or out of anybody's reach.

A delegate that is killed leaves ranges that it was giving, or taking; ranks that ask it where a range has gone are sent
on by nobody. A rank that is killed leaves ranges that are moving, for which all others wait.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from mpiio_ext.delegates.arbiter import announcements, mapfile
from mpiio_ext.delegates.arbiter.mapfile import Map
from support import strangers
from support.launch import launcher, mpi_family
from support.marks import slow
from support.processes import Job, job

pytestmark = pytest.mark.mpi

PROGRAMS = pathlib.Path(__file__).parents[1] / "programs"
POOL = 4
#: Units of a page: else all that the programs write lies in two or three page ranges.
SMALL = "mpiox_delegate_page=4k:mpiox_delegate_cache=600k:striping_unit=4096:mpiox_delegate_timeout=120"
LIMIT_S = 240.0


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """The arbiter's folder."""
    (tmp_path / "arbiter" / "jobs").mkdir(parents=True)
    return tmp_path / "arbiter"


def environment(folder: pathlib.Path, per_node: int = 0) -> dict[str, str]:
    hints = f"*:mpiox_delegates={POOL}:mpiox_delegate_mode=spawn:{SMALL}:mpiox_arbiter={folder}"
    return {"MPIOX_HINTS": hints, "MPIOX_RANKS_PER_NODE": str(per_node)}


def move_all_the_time(folder: pathlib.Path, over: threading.Event) -> None:
    """Give the job other I/O nodes, again and again."""
    generation = 0
    while not over.wait(0.02):
        generation += 1
        names = [entry.name for entry in (folder / "jobs").iterdir() if not entry.name.startswith(".")]
        nodes = [(0,), (0, 1, 2, 3), (3,), (1, 2), (2, 0), (1, 3)][generation % 6]
        mapfile.write(folder, Map(generation, dict.fromkeys(names, nodes)))


def wait_until(running: Job, reached: object, what: str) -> None:
    assert callable(reached)
    deadline_s = time.monotonic() + LIMIT_S
    while not reached():
        assert running.process.poll() is None, f"{what}: the job has ended\n{running.text()}"
        assert time.monotonic() < deadline_s, f"{what}\n{running.text()}"
        time.sleep(0.01)


@pytest.mark.parametrize(("ranks", "per_node"), [*slow((3, 0)), (3, 1), *slow((1, 0))])
def test_killed_delegates(extension: str, folder: pathlib.Path, ranks: int, per_node: int) -> None:
    """Two of four, one after the other, while ranges move from and to them."""
    kill_delegates(folder, ranks, per_node, lambda _: contextlib.nullcontext())


@pytest.mark.slow
def test_a_flood(extension: str, folder: pathlib.Path) -> None:
    """The same with three nodes, while another user holds all the connections that he can to every port of the job.

    They are there when delegates call rank 0, when ranks connect, when pages move, and when delegates die.
    """
    strangers.need()
    floods: list[strangers.Flood] = []

    @contextlib.contextmanager
    def flooded(running: Job) -> Iterator[None]:
        with strangers.flood(running, POOL) as flood:
            floods.append(flood)
            yield

    kill_delegates(folder, 3, 1, flooded)
    assert len(floods[0].full) >= 1 + 2 * POOL, floods[0].ports  # rank 0's; a link and a watch for each delegate


def kill_delegates(
    folder: pathlib.Path, ranks: int, per_node: int, beside: Callable[[Job], contextlib.AbstractContextManager[None]]
) -> None:
    """Run a program while ranges move, and kill two delegates; `beside`: what is done to the job meanwhile.

    The first is killed once many ranges have moved: what a dead delegate had lies in the file for good, maybe all.
    """
    rng = random.Random(f"{ranks} {per_node}")
    file, killed = folder.parent / "file", folder.parent / "killed"
    program = [sys.executable, PROGRAMS / "delegates_remapped.py", file, "6", "200", killed]
    command = [str(launcher()), "-n", str(ranks), *map(str, program)]
    over = threading.Event()
    mover = threading.Thread(target=move_all_the_time, args=(folder, over))
    with job(command, folder.parent / "log", environment(folder, per_node)) as running, beside(running):
        try:
            mover.start()
            wait_until(running, lambda: any((folder / "jobs").iterdir()), "no announcement")
            wait_until(running, lambda: "often enough" in running.text(), "page ranges do not move")
            victims = rng.sample(running.delegates(), 2)
            for victim in victims:
                time.sleep(1.5 + rng.random())
                os.kill(victim, signal.SIGKILL)
            time.sleep(1.0)
            killed.touch()
            status = running.status(LIMIT_S)
        finally:
            over.set()
            mover.join()
        assert status == 0, running.text()
        found = json.loads(next(line for line in running.text().splitlines() if line.startswith("{")))
    assert found["wrong_reads"] == 0 and found["same"], found
    assert found["remapped_ranges"] >= 200, found


@pytest.mark.parametrize("seed", [0, *slow(1, 2)])
def test_killed_ranks(request: pytest.FixtureRequest, extension: str, folder: pathlib.Path, seed: int) -> None:
    """Two of four, each of which moves page ranges; the others go on, and end."""
    goes_on = "--enable-recovery"
    if mpi_family() == "mpich":
        goes_on = "-disable-auto-cleanup"
        why = f"MPICH's mpiexec ends a job with spawned processes when a rank dies, {goes_on} or not"
        request.applymarker(pytest.mark.xfail(reason=why, raises=AssertionError, strict=True))
    rng = random.Random(seed)
    file = folder.parent / "file"
    program = [sys.executable, PROGRAMS / "delegates_remapped_deaths.py", file, "6"]
    victims = (0, 2)
    command = [str(launcher()), goes_on, "-n", "4", *map(str, program)]
    over = threading.Event()
    mover = threading.Thread(target=move_all_the_time, args=(folder, over))
    with job(command, folder.parent / "log", environment(folder)) as running:

        def lines() -> list[dict[str, object]]:
            return [json.loads(line) for line in running.text().splitlines() if line.startswith("{")]

        try:
            mover.start()
            wait_until(running, lambda: all(pathlib.Path(f"{file}.{rank}").exists() for rank in range(4)), "no ranks")
            for victim in victims:
                time.sleep(1 + rng.random())
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pathlib.Path(f"{file}.{victim}").read_text()), signal.SIGKILL)
            deadline_s = time.monotonic() + 120
            while len(lines()) < 4 - len(victims) and time.monotonic() < deadline_s:
                if running.process.poll() is not None:
                    break
                time.sleep(0.1)
        finally:
            over.set()
            mover.join()
        found = lines()
        assert sorted(line["rank"] for line in found) == sorted({0, 1, 2, 3} - {*victims}), running.text()
    assert all(line["wrong_reads"] == 0 and line["same"] for line in found), found
    assert any(line["remapped_ranges"] for line in found), found


@pytest.mark.parametrize("per_node", [*slow(0), 1])
def test_old_owners_die(extension: str, folder: pathlib.Path, per_node: int) -> None:
    """A rank that was not told of a move asks a dead delegate: it must find the new owner, and not go to the file."""
    file = folder.parent / "file"
    command = [str(launcher()), "-n", "2", sys.executable, str(PROGRAMS / "delegates_remapped_owners.py"), str(file)]
    with job(command, folder.parent / "log", environment(folder, per_node)) as running:
        wait_until(running, pathlib.Path(f"{file}.written").exists, "nothing is written")
        pids = json.loads(pathlib.Path(f"{file}.written").read_text())
        (announced,) = announcements.read_all(folder)[0]
        mapfile.write(folder, Map(1, {announced.job: (0,)}))
        wait_until(running, lambda: announcements.read_all(folder)[0][0].applied == 1, "the map is not followed")
        pathlib.Path(f"{file}.moved").touch()
        wait_until(running, pathlib.Path(f"{file}.known").exists, "nothing is read")
        for index in range(1, POOL):
            os.kill(pids[str(index)], signal.SIGKILL)
        pathlib.Path(f"{file}.killed").touch()
        assert running.status(LIMIT_S) == 0, running.text()
        found = json.loads(next(line for line in running.text().splitlines() if line.startswith("{")))
    assert found["right"] == [[True] * 3] * 2, found
