"""Delegates that live long: thousands of files through the same ones, and nothing grows, nothing stays.

tests/programs/delegates_soak.py uses files of many sizes in many ways; whenever it has closed all of them it waits
until this test has looked at its processes. ``--soak-seconds`` sets how long the long tier plays (600).
"""

from __future__ import annotations

import dataclasses
import mmap
import pathlib
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Iterator

import pytest

from support.launch import MEMORY, PROGRAMS, launcher
from support.marks import slow
from support.processes import Held, Job, held, is_delegate, job, marked_processes, shared_memory, words

pytestmark = pytest.mark.mpi

SOAK = PROGRAMS / "delegates_soak.py"
LIMIT_S = 300.0  # beyond what was asked for
FEWEST_LOOKS = 12  # LOOKS of the program
GRACE_S = 60.0
MEBI = 1 << 20
CACHE = "mpiox_delegate_cache=8m:mpiox_delegate_timeout=120"
HINTS = {
    "spawn": f"*:mpiox_delegates=2:mpiox_delegate_mode=spawn:{CACHE}",
    "thread": f"*:mpiox_delegates=2:mpiox_delegate_mode=thread:{CACHE}:mpiox_delegate_page=64k",
    "replica": f"*:mpiox_delegates=2:mpiox_delegate_mode=spawn:{CACHE}:mpiox_delegate_ack=replica",
}
Look = dict[int, Held]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """How much more a process may hold at the end than after the first looks."""

    private_bytes: int
    virtual_bytes: int


#: A delegate's memory is reserved from the start; a rank's Python and MPI library grow a little for a while.
OF_DELEGATES = Limits(private_bytes=2 * MEBI, virtual_bytes=2 * MEBI)
OF_RANKS = Limits(private_bytes=6 * MEBI, virtual_bytes=32 * MEBI)

#: glibc gives freed memory back at once; by default it keeps tens of MiB, more or less by chance.
MALLOC = {"MALLOC_ARENA_MAX": "1", "MALLOC_TRIM_THRESHOLD_": "131072", "MALLOC_MMAP_THRESHOLD_": "131072"}


@pytest.fixture()
def folder() -> Iterator[pathlib.Path]:
    """Return a folder in memory where there is one."""
    with tempfile.TemporaryDirectory(prefix="mpiox_soak_", dir=MEMORY) as path:
        yield pathlib.Path(path)


def interesting(running: Job) -> list[int]:
    """Return the ranks, the delegates and those who look after them."""
    found = []
    for pid in marked_processes(running.marker):
        parts = words(pid).split(" ")
        if is_delegate(pid) or (parts[0] == sys.executable and parts[1:2] == [str(SOAK)]):
            found.append(pid)
    return found


def look(running: Job) -> Look:
    """Return what every process holds now."""
    found = {pid: held(pid) for pid in interesting(running)}
    return {pid: state for pid, state in found.items() if state is not None}


def play(
    folder: pathlib.Path, ranks: int, seconds: float, environment: dict[str, str]
) -> tuple[list[Look], str, set[int]]:
    """Run the program; what was seen whenever all files were closed, its output, and which processes are delegates'."""
    progress = folder / "progress"
    progress.write_bytes(bytes(4096))
    command = [str(launcher()), "-n", str(ranks), sys.executable, str(SOAK)]
    command += [str(folder), str(progress), str(seconds)]
    looks: list[Look] = []
    delegates: set[int] = set()
    with (
        progress.open("r+b") as file,
        mmap.mmap(file.fileno(), 4096) as shared,
        job(command, folder / "log", environment) as running,
    ):
        deadline_s = time.monotonic() + seconds + LIMIT_S
        while running.process.poll() is None and time.monotonic() < deadline_s:
            asked, answered = struct.unpack_from("QQ", shared)
            if asked > answered:
                looks.append(look(running))
                delegates |= {pid for pid in looks[-1] if is_delegate(pid)}
                struct.pack_into("Q", shared, 8, asked)
            time.sleep(0.002)
        status = running.status(LIMIT_S)
        text = running.text()
        assert status == 0, f"status {status}\n{text[-6000:]}"
        assert not (left := running.left(GRACE_S)), f"{left}\n{text[-6000:]}"
    assert "end after" in text, text[-6000:]
    return looks, text, delegates


def check_flat(looks: list[Look], delegates: set[int], ranks: int) -> None:
    """Nothing may grow from the first third of the looks to the last, and no process may come or go.

    The first look is left out: processes may still start then.
    """
    assert len(looks) >= FEWEST_LOOKS, len(looks)
    steady, part = looks[1:], max(len(looks) // 3, 2)
    assert len(steady[0].keys() - delegates) >= ranks, f"{ranks} ranks run, and of these were seen {steady[0]}"
    for seen in steady:
        assert seen.keys() == steady[0].keys(), "a process came or went"
    for pid in steady[0]:
        early = [seen[pid] for seen in steady[:part]]
        late = [seen[pid] for seen in steady[-part:]]
        limits = OF_DELEGATES if pid in delegates else OF_RANKS
        for name in ("descriptors", "threads", "shared_mappings"):
            before, after = (max(getattr(state, name) for state in states) for states in (early, late))
            assert after <= before, f"{name} of process {pid}: {before}, then {after}"
        for name, most in dataclasses.asdict(limits).items():
            before, after = (statistics.median(getattr(state, name) for state in states) for states in (early, late))
            assert after <= before + most, (
                f"{name} of process {pid}: {before / MEBI:.1f} MiB, then {after / MEBI:.1f} MiB"
            )


def check(folder: pathlib.Path, mode: str, ranks: int, seconds: float, **environment: str) -> None:
    """Play; nothing grows, nothing stays."""
    before = shared_memory()
    looks, text, delegates = play(folder, ranks, seconds, {"MPIOX_HINTS": HINTS[mode], **MALLOC, **environment})
    print(text.splitlines()[-1], f"{len(looks)} looks", looks[1], looks[-1], sep="\n")
    assert bool(delegates) == (mode != "thread"), text[-3000:]
    check_flat(looks, delegates, ranks)
    assert not shared_memory() - before


@pytest.mark.parametrize("mode", ["spawn", *slow("thread")])
def test_short(extension: str, folder: pathlib.Path, mode: str) -> None:
    """Some seconds."""
    check(folder, mode, 3, 6.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "ranks", "per_node"), [("spawn", 4, 0), ("thread", 4, 0), ("replica", 4, 2), ("spawn", 5, 2)]
)
def test_long(
    extension: str, folder: pathlib.Path, pytestconfig: pytest.Config, mode: str, ranks: int, per_node: int
) -> None:
    """Ten minutes, all in all."""
    seconds = pytestconfig.getoption("--soak-seconds") / 4
    check(folder, mode, ranks, seconds, MPIOX_RANKS_PER_NODE=str(per_node))
