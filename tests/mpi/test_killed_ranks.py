"""A rank that dies in MPI-IO: mpirun ends by itself with a status; no process and no shared memory stays."""

from __future__ import annotations

import os
import pathlib
import signal
import sys
import time

import numpy as np
import pytest

from support.cbuild import mpi_program
from support.launch import PROGRAMS, launcher, library_path, marked_processes
from support.marks import slow
from support.processes import job, shared_memory, words

pytestmark = [pytest.mark.mpi, pytest.mark.both]

LIMIT_S = 160.0
#: How long processes may take to be gone after mpirun: both MPIs end the other ranks by signals.
GRACE_S = 40.0


def run_until_it_ends(command: list[str], env: dict[str, str], log: pathlib.Path) -> None:
    """Run a job that is to end by itself, not well, with no process that stays."""
    with job(command, log, env) as running:
        assert (status := running.status(LIMIT_S)) is not None, f"the job went on for {LIMIT_S} s\n{running.text()}"
        assert status != 0, running.text()
        assert not (left := running.left(GRACE_S)), f"processes {left} stayed\n{running.text()}"


#: How it dies, when, which rank of how many, ranks of a pretended node, whether requests are slow.
DEATHS = [
    ("kill", "between", 1, 3, 0, False),
    *slow(("kill", "inside", 0, 3, 0, False)),
    ("kill", "inside", 2, 4, 2, False),
    *slow(("exit", "inside", 3, 4, 1, False)),
    ("kill", "inside", 1, 3, 0, True),
    ("exit", "inside", 0, 2, 0, True),
    ("kill", "opening", 1, 3, 0, False),
    *slow(("exit", "opening", 0, 4, 2, False)),
    ("kill", "reading", 0, 4, 2, False),
    ("exit", "independent", 2, 3, 0, False),
    *slow(("kill", "inside", 6, 7, 3, False)),
]


@pytest.mark.parametrize(("way", "when", "victim", "ranks", "per_node", "slow"), DEATHS)
def test_a_dead_rank_ends_the_job(
    extension: str, tmp_path: pathlib.Path, way: str, when: str, victim: int, ranks: int, per_node: int, slow: bool
) -> None:
    """SIGKILL or _exit between collectives, in the middle of one, or while files are opened; on one node or several."""
    before = shared_memory()
    env = {
        "MPIOX_HINTS": "mpiox_exchange=two_phase:cb_buffer_size=16384",
        "MPIOX_RANKS_PER_NODE": str(per_node),
        "MPIOX_FAULT": "op=any,delay_ms=20" if slow else "",  # most of the time is then spent inside a request
    }
    program = [os.fspath(mpi_program("killed")), str(tmp_path / "file"), way, when, str(victim)]
    command = [str(launcher()), "-n", str(ranks), "env", f"LD_PRELOAD={library_path()}", *program]
    log = tmp_path / "log"
    run_until_it_ends(command, env, log)
    text = log.read_text(encoding="utf-8", errors="replace")
    assert "ok ready" in text, text  # it died where it was meant to
    assert not shared_memory() - before


#: Of left_early.c: bytes of a piece; the call, by its number, in which the rank dies.
PIECE_BYTES, DEADLY = 1 << 16, 3
#: Where it dies, what the other ranks do next, which rank of how many, ranks of a pretended node.
EARLY = [
    ("before", "write", 1, 3, 1),
    ("before", "write", 3, 4, 2),
    ("agreed", "write", 0, 4, 2),
    ("agreed", "sync", 1, 3, 1),
    ("agreed", "close", 3, 4, 2),
    ("inside", "write", 1, 2, 1),
    ("inside", "read", 2, 4, 2),
]


def pieces(ranks: int, call: int) -> np.ndarray:
    """Return what all ranks write in the calls up to this one, shape (calls, ranks, PIECE_BYTES)."""
    at = np.arange((call + 1) * ranks * PIECE_BYTES, dtype=np.uint64)
    mixed = (at + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(7919)
    return (1 + (mixed >> np.uint64(40)) % np.uint64(255)).astype(np.uint8).reshape(call + 1, ranks, PIECE_BYTES)


@pytest.mark.parametrize(("place", "then", "victim", "ranks", "per_node"), EARLY)
def test_a_rank_dies_in_a_call_that_others_leave(
    extension: str, tmp_path: pathlib.Path, place: str, then: str, victim: int, ranks: int, per_node: int
) -> None:
    """Between nodes: no rank accesses before all have begun the call; what the others have written is there."""
    before = shared_memory()
    program = [os.fspath(mpi_program("left_early", "-rdynamic")), str(tmp_path / "file"), str(tmp_path / "notes")]
    preload = ["env", f"LD_PRELOAD={library_path()}"]
    command = [str(launcher()), "-n", str(ranks), *preload, *program, place, str(victim), then]
    run_until_it_ends(command, {"MPIOX_RANKS_PER_NODE": str(per_node)}, tmp_path / "log")
    left = place != "before"
    expected = np.full((ranks, 4), [DEADLY + 1, DEADLY + left, DEADLY + left, left])
    expected[victim] = [DEADLY + left, DEADLY + left, DEADLY, 0]
    notes = np.fromfile(tmp_path / "notes", np.int32).reshape(ranks, 4)
    notes[:, 0] = np.minimum(notes[:, 0], DEADLY + 1)  # some may have begun the next call
    assert np.array_equal(notes, expected), notes
    content = pieces(ranks, DEADLY)
    content[DEADLY, victim, PIECE_BYTES // 2 if place == "inside" else 0 :] = 0
    content[DEADLY] *= left
    found = np.fromfile(tmp_path / "file", np.uint8)
    assert np.array_equal(found, content.ravel()[: len(found)])
    assert not content.ravel()[len(found) :].any()
    assert not shared_memory() - before


@pytest.mark.parametrize("per_node", [0, 2])
def test_a_rank_that_hangs_ends_the_job(extension: str, tmp_path: pathlib.Path, per_node: int) -> None:
    """A rank is stopped amid collectives: with mpiox_wait_limit the others say so and end the job, and it with them."""
    before = shared_memory()
    env = {
        "MPIOX_HINTS": "mpiox_exchange=two_phase:cb_buffer_size=16384:mpiox_wait_limit=4",
        "MPIOX_RANKS_PER_NODE": str(per_node),
    }
    program = [sys.executable, str(PROGRAMS / "endless.py"), str(tmp_path / "file")]
    command = [str(launcher()), "-n", "4", "env", f"LD_PRELOAD={library_path()}", *program]
    with job(command, tmp_path / "log", env) as running:
        deadline_s = time.monotonic() + LIMIT_S
        while running.text().count("turn") < 3:
            assert running.process.poll() is None and time.monotonic() < deadline_s, running.text()
            time.sleep(0.05)
        victims = [pid for pid in marked_processes(running.marker) if words(pid) == " ".join(program)]
        assert len(victims) == 4, victims
        os.kill(victims[0], signal.SIGSTOP)
        assert running.status(LIMIT_S) not in {None, 0}, running.text()
        assert not running.left(GRACE_S), running.text()
        assert "because of mpiox_wait_limit=4" in running.text(), running.text()
        assert "are wrong" not in running.text()
    assert not shared_memory() - before


@pytest.mark.parametrize("hints", ["", ":mpiox_delegates=2:mpiox_delegate_mode=spawn"])
def test_a_dead_rank_without_a_launcher(extension: str, family: str, tmp_path: pathlib.Path, hints: str) -> None:
    """The launcher is killed, then a delegate, then a rank: no process stays, and one line names the dead rank."""
    if family != "mpich":
        pytest.skip("ranks of Open MPI end with their launcher")
    before = shared_memory()
    log = tmp_path / "ranks"
    program = [os.fspath(mpi_program("killed")), str(tmp_path / "file"), "kill", "inside", "-1"]
    words_of_rank = ["sh", "-c", 'exec "$@" >>"$0" 2>&1', str(log), "env", f"LD_PRELOAD={library_path()}", *program]
    env = {"MPIOX_HINTS": f"*:mpiox_exchange=two_phase:cb_buffer_size=16384{hints}"}
    with job([str(launcher()), "-n", "3", *words_of_rank], tmp_path / "log", env) as running:
        deadline_s = time.monotonic() + LIMIT_S
        while not log.exists() or "ok ready" not in log.read_text():
            assert running.process.poll() is None and time.monotonic() < deadline_s, running.text()
            time.sleep(0.05)
        ranks = [pid for pid in marked_processes(running.marker) if words(pid) == " ".join(program)]
        assert len(ranks) == 3
        victims = [*running.delegates()[:1], ranks[1]]
        launchers = [
            pid for pid in marked_processes(running.marker) if "hydra" in words(pid) or "mpiexec" in words(pid)
        ]
        for number in (signal.SIGSTOP, signal.SIGKILL):  # one that runs ends the ranks when another has died
            for pid in launchers:
                os.kill(pid, number)
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        running.status(GRACE_S)  # of the launcher, so that it is no zombie
        assert not (left := running.left(GRACE_S)), f"{left} stayed\n{log.read_text()}"
    assert log.read_text().count("has died; the job ends") == 1, log.read_text()
    assert not shared_memory() - before


@pytest.mark.parametrize("way", ["kill", "exit"])
def test_the_mpi_library_alone(family: str, tmp_path: pathlib.Path, way: str) -> None:
    """The control: without this library the job ends, too."""
    program = [os.fspath(mpi_program("killed")), str(tmp_path / "file"), way, "inside", "0"]
    run_until_it_ends([str(launcher()), "-n", "3", *program], {}, tmp_path / "log")
