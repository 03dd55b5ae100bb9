"""Random runs through delegates, with random hints, and with delegates that are killed; all follows from a seed.

tests/programs/delegates_random.c makes the accesses and compares every byte. ``tests/random_delegates.py`` runs as many
as one likes, tests/mpi/test_delegates_random.py a few.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import pathlib
import random
import signal
import struct
import time
from dataclasses import dataclass, field

from support.cbuild import failed_checks, mpi_program
from support.launch import launcher, library_path
from support.processes import Job, job, shared_memory

WAITING, DONE = 2, 7  # phases of the program
CHECKS = 2
ROUNDS = 3
KIB = 1024
GRACE_S = 60.0
SCHEDULERS = ("elevator", "fifo", "sjf", "to_agg", "aioli", "mlf", "hbrr", "twins", "wfq")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run.

    Attributes
    ----------
    hints : without the pattern of names.
    cells, cell_bytes, accesses, collective : see the program; accesses of each rank and round.
    kill_at : part of all accesses after which a delegate is killed; None: nobody is.
    who : "one" delegate, "all" of them one after the other, its "supervisor", "both" (a supervisor and its delegate).
    """

    seed: int
    hints: tuple[str, ...]
    ranks: int = 4
    per_node: int = 0
    cells: int = 4000
    cell_bytes: int = 997
    accesses: int = 500
    collective: int = 0
    kill_at: float | None = None
    who: str = "one"
    environment: dict[str, str] = field(default_factory=dict)

    def variables(self) -> dict[str, str]:
        """Return the environment of the ranks."""
        hints = ":".join([*self.hints, "mpiox_delegate_timeout=120"])
        return {"MPIOX_HINTS": f"*:{hints}", "MPIOX_RANKS_PER_NODE": str(self.per_node), **self.environment}

    def arguments(self) -> list[str]:
        """Return what the program gets behind FILE and PROGRESS."""
        return [str(int(n)) for n in (self.seed, self.cells, self.cell_bytes, self.accesses, self.collective)]


def drawn(seed: int, *, kill: bool, ack: str = "") -> Run:
    """Return the run of a seed.

    Parameters
    ----------
    seed : any number.
    kill : delegates are killed on the way (these have an executable of their own, and there are at least two).
    ack : the level of acknowledgement; empty: any.
    """
    rng = random.Random(f"{'kill' if kill else 'run'} {seed}")
    page_kib = rng.choice([4, 4, 8, 12, 16, 64, 256, 1024])
    least_kib = max(300, 10 * page_kib)
    cache_kib = min(round(least_kib * (4 * KIB * KIB / least_kib) ** rng.random()), 4 * KIB * KIB)
    hints = [
        f"mpiox_delegates={rng.choice(['2', '2', '3', '4'] if kill else ['1', '2', '2', '3', '4', '100%'])}",
        f"mpiox_delegate_mode={'spawn' if kill else rng.choice(['spawn', 'thread', 'auto'])}",
        f"mpiox_delegate_page={page_kib}k",
        f"mpiox_delegate_cache={cache_kib}k",
        f"mpiox_delegate_threads={rng.choice([1, 1, 2, 4])}",
        f"mpiox_delegate_prefetch={rng.choice([0, 1, 4, 8])}",
        f"mpiox_delegate_bypass={rng.choice(['0', '0', '512', '4k', '64k'])}",
        f"mpiox_delegate_write_behind={rng.choice(['0', '100', '4k', '64k', '1m'])}",
        f"mpiox_delegate_ack={rng.choice([ack] * 5 if ack else ['memory', 'memory', 'memory', 'replica', 'disk'])}",
    ]
    if rng.random() < 0.5:
        hints += [f"striping_unit={rng.choice([4, 8, 12, 64, 1024])}k", f"striping_factor={rng.choice([1, 2, 3, 5])}"]
    if rng.random() < 0.4:
        hints += [f"mpiox_exchange={rng.choice(['direct', 'two_phase'])}"]
    if rng.random() < 0.6:
        hints += [f"mpiox_delegate_scheduler={rng.choice(SCHEDULERS)}"]
        hints += [f"mpiox_delegate_quantum={rng.choice(['1k', '8k', '64k', '4m'])}"]
        hints += [f"mpiox_delegate_time_slice={rng.choice([0, 100, 1000])}"]
        hints += [f"mpiox_delegate_patience={rng.choice([0, 1, 1000])}"]
    cell_bytes = rng.choice([1, 17, 100, 512, 997, 997, 4096, 5000, 65536])
    collectives = random.Random(f"collectives {seed}")  # a generator of its own: runs stay as they were without them
    way = collectives.choice(["auto", "auto", "two_phase", "cached", "cached"])
    hints += [f"mpiox_collective={way}"] if way != "auto" else []
    disk = "mpiox_delegate_ack=disk" in hints
    return Run(
        seed=seed,
        hints=tuple(hints),
        ranks=rng.choice([1, 2, 3, 4, 4, 5]),
        per_node=rng.choice([0, 0, 1, 2]),
        cells=min(rng.choice([100, 5000, 20_000, 60_000]), 48_000_000 // cell_bytes),
        cell_bytes=cell_bytes,
        accesses=rng.choice([50, 300, 1500]) // (8 if disk else 1),
        collective=(rng.random() < 0.5) * (1 if way == "auto" else collectives.choice([1, 10, 40])),
        kill_at=rng.random() if kill else None,
        who=rng.choice(["one", "one", "all", "supervisor", "both"]),
        environment={"MPIOX_STATS": "1"} if kill else {},
    )


def _progress(held: mmap.mmap, ranks: int) -> tuple[int, int]:
    counters = struct.unpack(f"{ranks + 1}I", held[: 4 * (ranks + 1)])
    return sum(counters[:-1]), counters[-1]


def _kill(running: Job, held: mmap.mmap, run: Run, limit_s: float) -> None:
    """Kill as the run says: when the file is open all delegates are there."""
    assert run.kill_at is not None
    deadline_s = time.monotonic() + limit_s
    while _progress(held, run.ranks)[1] < WAITING and time.monotonic() < deadline_s:
        if running.process.poll() is not None:
            return
        time.sleep(0.01)
    delegates, supervisors = running.delegates(), running.supervisors()
    held[4 * (run.ranks + 1)] = 1
    target = run.kill_at * ROUNDS * run.ranks * run.accesses
    while time.monotonic() < deadline_s and running.process.poll() is None:
        done, phase = _progress(held, run.ranks)
        if done >= target or phase == DONE:
            break
        time.sleep(0.0002)
    rng = random.Random(run.seed)
    victims = {
        "one": rng.sample(delegates, min(1, len(delegates))),
        "all": delegates,
        "supervisor": rng.sample(supervisors, min(1, len(supervisors))),
        "both": supervisors[:1] + delegates[:1],
    }
    for pid in victims[run.who]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            running.killed.append(pid)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a run: "" or what was wrong, who was killed, and whether ranks went on without them."""

    problem: str
    text: str
    killed: tuple[int, ...]

    @property
    def went_on(self) -> bool:
        """Ranks have accessed what a dead delegate had."""
        return bool(self.killed) and "dead_delegate_accesses" in self.text


def play(run: Run, folder: pathlib.Path, limit_s: float) -> Outcome:
    """Run it in an empty folder; whatever it does, nothing of it is alive afterwards."""
    progress = folder / "progress"
    content = bytearray(4096)
    if run.kill_at is None:
        content[4 * (run.ranks + 1)] = 1
    progress.write_bytes(content)
    program = [str(mpi_program("delegates_random")), str(folder / "file"), str(progress), *run.arguments()]
    command = [str(launcher()), "-n", str(run.ranks), "env", f"LD_PRELOAD={library_path()}", *program]
    before = shared_memory()
    with (
        progress.open("r+b") as file,
        mmap.mmap(file.fileno(), 4096) as held,
        job(command, folder / "log", run.variables()) as running,
    ):
        if run.kill_at is not None:
            _kill(running, held, run, limit_s)
        status = running.status(limit_s)
        text = running.text()
        if status is None:
            problem = f"hangs, phase and accesses {_progress(held, run.ranks)[::-1]}"
        elif status != 0:
            problem = f"exit status {status}"
        elif text.splitlines().count("end") != 1 or failed_checks(text, CHECKS):
            problem = "wrong"
        elif left := running.left(GRACE_S):
            problem = f"left: {left}"
        else:
            problem = ""
        killed = tuple(running.killed)
    if not problem and (stays := _staying(shared_memory() - before)):
        problem = f"shared memory stays: {sorted(stays)}"
    return Outcome(problem=problem, text=text, killed=killed)


def _staying(names: set[str]) -> set[str]:
    """Return those of the files that are still there after a while: other jobs of this machine have some, too."""
    deadline_s = time.monotonic() + GRACE_S
    while names and time.monotonic() < deadline_s:
        time.sleep(0.1)
        names &= shared_memory()
    return names
