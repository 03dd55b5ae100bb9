"""MPI_THREAD_MULTIPLE: an unchanged C program whose threads share handles, or do not, with every kind of access."""

from __future__ import annotations

import os
import pathlib

import pytest

from support.cbuild import failed_checks, mpi_program
from support.launch import Launch, mpi_run
from support.marks import slow

pytestmark = [pytest.mark.mpi, pytest.mark.both]

#: Cases of tests/programs/threads.c -> number of checks.
CASES = {"one_handle": 2, "one_view": 2, "pointer": 3, "shared_pointer": 2, "open_close": 2, "mixed": 2}
NONBLOCKING = {"nonblocking": 2, "waitall": 5, "icollectives": 8}
#: Its list of operations is not guarded: now and then malloc finds its own data overwritten.
UNGUARDED = "OMPIO's nonblocking calls are not thread-safe: about one run in ten crashes"
COLLECTIVES = 1 + 1 + 4 + 4  # known cases, bytes in memory, four closes, four files
#: ROMIO keeps one lock of the process in a collective, while it waits for other ranks, whose threads may have taken
#: theirs in another order.
DEADLOCK = "ROMIO's lock is kept in collectives: threads in collectives on different files wait for each other for ever"


def run(
    tmp_path: pathlib.Path, ranks: int, cases: list[str], *, preload: bool, env: dict[str, str] | None = None
) -> Launch:
    """Run cases of threads.c; its exit status, the number of failures, is left to the caller."""
    program: list[str | os.PathLike[str]] = [mpi_program("threads"), tmp_path / "file", *cases]
    launch = mpi_run(program, ranks, preload=preload, env=env, timeout_s=60, check=False)
    assert not launch.timed_out, launch.describe()
    if "no threads" in launch.stdout:
        pytest.skip("this MPI library has no MPI_THREAD_MULTIPLE")
    return launch


def check(tmp_path: pathlib.Path, ranks: int, cases: dict[str, int], *, preload: bool) -> None:
    launch = run(tmp_path, ranks, list(cases), preload=preload)
    assert not failed_checks(launch.stdout, 1 + sum(cases.values())), launch.describe()


def test_native(family: str, tmp_path: pathlib.Path) -> None:
    """The control of the program."""
    check(tmp_path, 3, CASES, preload=False)


@pytest.mark.parametrize("ranks", [*slow(1), 4, *slow(2, 7)])
def test_preloaded(extension: str, tmp_path: pathlib.Path, ranks: int) -> None:
    check(tmp_path, ranks, CASES, preload=True)


@pytest.mark.parametrize("per_node", [*slow(1), 2])
def test_on_pretended_nodes(extension: str, tmp_path: pathlib.Path, per_node: int) -> None:
    """With several nodes the shared pointer is in a file, and a lock of the process does not keep its threads apart."""
    cases = {name: CASES[name] for name in ("one_view", "shared_pointer", "open_close", "mixed")}
    for _ in range(3):
        launch = run(tmp_path, 4, list(cases), preload=True, env={"MPIOX_RANKS_PER_NODE": str(per_node)})
        assert not failed_checks(launch.stdout, 1 + sum(cases.values())), launch.describe()
        for path in tmp_path.iterdir():
            path.unlink()  # what the next round finds would hide what it has not written


@pytest.mark.parametrize(
    ("ranks", "per_node", "preload"), [(3, 0, False), *slow((1, 0, True), (3, 0, True)), (4, 1, True)]
)
def test_atomic_mode(
    extension: str, family: str, tmp_path: pathlib.Path, ranks: int, per_node: int, preload: bool
) -> None:
    """Threads and ranks write and read the same pieces: every read sees the whole of one write."""
    if family == "openmpi" and not preload:
        pytest.skip("OMPIO's atomic mode does not hold for pieces")
    launch = run(tmp_path, ranks, ["atomic"] * 4, preload=preload, env={"MPIOX_RANKS_PER_NODE": str(per_node)})
    assert not failed_checks(launch.stdout, 1 + 4), launch.describe()


@pytest.mark.parametrize(("ranks", "preload"), [(3, False), *slow((1, True), (3, True)), (4, True)])
def test_nonblocking(extension: str, family: str, tmp_path: pathlib.Path, ranks: int, preload: bool) -> None:
    """Started in one thread, completed in another: by MPI_Wait, by polling, by MPI_Waitall, in reverse."""
    if family == "openmpi" and not preload:
        pytest.skip(UNGUARDED)
    check(tmp_path, ranks, NONBLOCKING, preload=preload)


def test_collectives_native(family: str, tmp_path: pathlib.Path) -> None:
    if family == "mpich":
        pytest.skip(DEADLOCK)
    launch = run(tmp_path, 3, ["collectives"], preload=False)
    assert not failed_checks(launch.stdout, COLLECTIVES), launch.describe()


@pytest.mark.parametrize("hints", ["", "mpiox_exchange=two_phase", "mpiox_exchange=direct"])
@pytest.mark.parametrize(("ranks", "per_node"), [*slow((1, 0), (3, 0)), (4, 2)])
def test_collectives_on_different_files(
    extension: str, tmp_path: pathlib.Path, ranks: int, per_node: int, hints: str
) -> None:
    """Four threads of each rank in collectives at once, also where the MPI library's own would wait for ever."""
    env = {"MPIOX_HINTS": hints, "MPIOX_RANKS_PER_NODE": str(per_node)}
    launch = run(tmp_path, ranks, ["collectives"], preload=True, env=env)
    assert not failed_checks(launch.stdout, COLLECTIVES), launch.describe()


@pytest.mark.parametrize("ranks", [*slow(1), 3])
def test_collective_opens(extension: str, family: str, tmp_path: pathlib.Path, ranks: int) -> None:
    """Threads also open, set views and close, each on its own communicator of all ranks."""
    if family == "mpich" and ranks > 1:
        pytest.skip(DEADLOCK + ", and opening is the MPI library's")
    launch = run(tmp_path, ranks, ["collective_opens"], preload=True)
    assert not failed_checks(launch.stdout, 6), launch.describe()
