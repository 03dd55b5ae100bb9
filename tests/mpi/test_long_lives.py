"""Programs that open very many files, on very many communicators, with few descriptors, and run for long.

The C program tests/programs/lives.c, unchanged, natively (the control) and preloaded. Cases of tests/differential
compare bytes; these tests compare memory, descriptors and numbers of openings.
"""

from __future__ import annotations

import pathlib
import re

import pytest

from support.cbuild import mpi_program
from support.launch import Launch, json_lines, mpi_run

pytestmark = pytest.mark.mpi

RANKS = 4


def lives(
    tmp_path: pathlib.Path, ranks: int, *words: object, preload: bool, descriptors: int = 0, **environment: str
) -> dict[str, int]:
    """Run a case of lives.c; return the numbers that it printed. ``descriptors``: the soft limit, 0 as it is.

    Ten thousand communicators take minutes where waiting spins, with and without the library.
    """
    program = [str(mpi_program("lives")), str(tmp_path / "file"), *map(str, words)]
    if descriptors:
        program = ["sh", "-c", f'ulimit -S -n {descriptors}; exec "$@"', "sh", *program]
    launch = mpi_run(program, ranks, preload=preload, env=environment, timeout_s=900 if 10_000 in words else 120)
    return numbers(launch)


def numbers(launch: Launch) -> dict[str, int]:
    """Return the words NAME=NUMBER of the one line that the program printed."""
    lines = [line for line in launch.stdout.splitlines() if "=" in line]
    assert len(lines) == 1, launch.describe()
    return {name: int(number) for name, number in (word.split("=") for word in lines[0].split())}


def statistics(path: pathlib.Path) -> list[dict[str, object]]:
    """Return the rows about files."""
    rows = json_lines(path)
    return [row for row in rows if row["kind"] == "file"]


# ---- communicators ---------------------------------------------------------------------------------------------------


@pytest.mark.both
@pytest.mark.parametrize("count", [120, pytest.param(10_000, marks=pytest.mark.slow)])
def test_one_communicator_after_the_other(extension: str, tmp_path: pathlib.Path, count: int) -> None:
    """Memory is bounded: nine tenths of the communicators add less than 4 MiB to what the MPI library adds."""
    native = lives(tmp_path, RANKS, "successive", count, preload=False)
    for node in (0, 2):  # one node, two nodes
        ours = lives(tmp_path, RANKS, "successive", count, preload=True, MPIOX_RANKS_PER_NODE=str(node))
        grown, native_grown = (found["late_kib"] - found["early_kib"] for found in (ours, native))
        assert grown <= max(native_grown, 0) + 4096, node
        assert ours["descriptors"] <= native["descriptors"] + 4, node
        written = (tmp_path / "file").read_bytes()
        assert written == b"".join(bytes([97 + rank]) * 64 for rank in range(RANKS)), node


@pytest.mark.both
@pytest.mark.parametrize("count", [60, pytest.param(600, marks=pytest.mark.slow)])
def test_many_communicators_together(extension: str, tmp_path: pathlib.Path, count: int) -> None:
    """All of them taken over, with few descriptors more than the MPI library has, and little memory."""
    native = lives(tmp_path, 2, "together", count, preload=False)
    stats = {"MPIOX_STATS": "1", "MPIOX_STATS_FILE": str(tmp_path / "stats")}
    lives(tmp_path, 2, "together", count // 10, preload=True, **stats)
    rows = statistics(tmp_path / "stats")
    assert [(row["collective_writes"], row["native_calls"]) for row in rows] == [(2, 0)] * (count // 10)
    ours = lives(tmp_path, 2, "together", count, preload=True)
    assert ours["late_kib"] - native["late_kib"] <= 256 * count + 16384


@pytest.mark.both
@pytest.mark.slow
@pytest.mark.parametrize("case", [{}, {"MPIOX_STATS": "1"}, {"MPIOX_RANKS_PER_NODE": "1"}], ids=["", "stats", "nodes"])
def test_as_many_communicators_as_natively(
    extension: str, family: str, tmp_path: pathlib.Path, case: dict[str, str]
) -> None:
    """Those of one node cost none; where the library needs some, it takes few, and leaves other files alone."""
    if family == "openmpi":
        pytest.skip("Open MPI 4.1 has more communicators than a process has descriptors")
    native = lives(tmp_path, 2, "contexts", preload=False)
    stats = {"MPIOX_STATS_FILE": str(tmp_path / "stats")} if "MPIOX_STATS" in case else {}
    ours = lives(tmp_path, 2, "contexts", preload=True, **case, **stats)
    taken = 256 if case else 0
    assert ours["opened"] >= native["opened"] - taken
    assert ours["made"] >= native["made"] - taken


# ---- many ranks ------------------------------------------------------------------------------------------------------


@pytest.mark.both
@pytest.mark.slow
@pytest.mark.parametrize("node", [0, 8], ids=["one_node", "nodes_of_8"])
@pytest.mark.parametrize("ranks", [32, 64])
def test_opening_with_many_ranks(extension: str, tmp_path: pathlib.Path, ranks: int, node: int) -> None:
    """Every rank's bytes are there; the seconds are printed beside the MPI library's (``pytest -s``), not judged."""
    program = [str(mpi_program("lives")), str(tmp_path / "file"), "opens", "4"]
    stats = {"MPIOX_STATS": "1", "MPIOX_STATS_FILE": str(tmp_path / "stats"), "MPIOX_RANKS_PER_NODE": str(node)}
    for preload in (False, True):
        launch = mpi_run(program, ranks, preload=preload, env=stats if preload else None, timeout_s=120)
        found = re.search(r"^first_s=.*$", launch.stdout, re.M)
        assert found, launch.describe()
        print(f"{ranks} ranks, {'preloaded' if preload else 'native'}: {found[0]}")
        written = (tmp_path / "file").read_bytes()
        assert written == b"".join(bytes([97 + rank]) * 64 for rank in range(ranks))
        (tmp_path / "file").unlink()
    rows = statistics(tmp_path / "stats")
    assert [(row["collective_writes"], row["native_calls"]) for row in rows] == [(1, 0)] * 4


# ---- descriptors -----------------------------------------------------------------------------------------------------


@pytest.mark.both
@pytest.mark.parametrize(("ranks", "count"), [(1, 0), (2, 80)])
def test_as_many_files_as_natively(extension: str, tmp_path: pathlib.Path, ranks: int, count: int) -> None:
    """Few files fewer under `ulimit -n 128`; each works, also one whose name is gone or changed or another file's.

    And none may be opened again: the program, started by root, has given up its rights, or the file's are gone.

    Several ranks of Open MPI hang natively where the last descriptor is gone: they open less.
    """
    native = lives(tmp_path, ranks, "descriptors", count, preload=False, descriptors=128)
    ours = lives(tmp_path, ranks, "descriptors", count, preload=True, descriptors=128)
    assert native["opened"] > 70
    assert ours["opened"] >= native["opened"] - (0 if count else 8)
    for number in range(ours["opened"]):
        if number not in (1, 2, 3):
            expected = b"".join(bytes([97 + (number + rank) % 26]) * 64 for rank in range(ranks))
            assert (tmp_path / f"file.{number}").read_bytes() == expected, number
    assert not (tmp_path / "file.1").exists()
    assert (tmp_path / "file.3").read_bytes() == bytes(64)
    assert not (tmp_path / "file.2").exists()
    moved = b"".join(bytes([97 + (2 + rank) % 26]) * 64 for rank in range(ranks))
    assert (tmp_path / "file.2.new").read_bytes() == moved


@pytest.mark.both_with("all-")
@pytest.mark.slow_with("first-*", "last-*:mpiox_delegates=*")
@pytest.mark.parametrize("hints", ["*:mpiox_delegates=1:mpiox_delegate_cache=8m:mpiox_close=staged", ""])
@pytest.mark.parametrize("who", [-1, 0, 1], ids=["all", "first", "last"])
def test_the_last_descriptors(extension: str, tmp_path: pathlib.Path, who: int, hints: str) -> None:
    """Where the MPI library has too few on some rank, the open is an error on all of them, and none waits for another.

    No control: Open MPI alone hangs where one rank has fewer than the others.
    """
    ours = lives(tmp_path, 2, "left", who, preload=True, descriptors=128, MPIOX_HINTS=hints)
    assert ours["opened"] + ours["refused"] == 41
    assert 1 <= ours["refused"] <= 6
