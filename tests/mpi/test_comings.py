"""Files, types and communicators that come and go while others stay, between (pretended) nodes; every byte checked.

The C program tests/programs/comings.c, natively (the control) and preloaded.
"""

from __future__ import annotations

import pathlib

import pytest

from support.cbuild import mpi_program
from support.launch import Launch, json_lines, mpi_run

pytestmark = [pytest.mark.mpi, pytest.mark.both]

RANKS = 5
#: Ranks of a node, arguments.
RUNS = [
    pytest.param(1, (), id="1 a node", marks=pytest.mark.slow),
    pytest.param(2, ("multiple",), id="2 a node, multiple"),
    pytest.param(3, (), id="3 a node", marks=pytest.mark.slow),
    pytest.param(1, ("multiple",), id="1 a node, multiple", marks=pytest.mark.slow),
    pytest.param(2, (), id="2 a node", marks=pytest.mark.slow),
    pytest.param(3, ("multiple",), id="3 a node, multiple", marks=pytest.mark.slow),
]


def failed(launch: Launch) -> set[str]:
    """Return the checks that failed in a launch that has come to its end."""
    assert not launch.timed_out, launch.describe()
    lines = launch.stdout.splitlines()
    assert lines[-1].startswith("end "), launch.describe()
    assert sum(line.startswith("ok ") for line in lines) > 30, launch.describe()
    return {line.split("FAILED ")[1].split(" (")[0] for line in lines if line.startswith("FAILED ")}


@pytest.mark.slow
def test_native(family: str, tmp_path: pathlib.Path) -> None:
    launch = mpi_run([mpi_program("comings"), tmp_path / "file"], RANKS, timeout_s=60, check=False)
    assert not failed(launch), launch.describe()


@pytest.mark.parametrize(("per_node", "threads"), RUNS)
def test_preloaded(extension: str, tmp_path: pathlib.Path, per_node: int, threads: tuple[str, ...]) -> None:
    environment = {
        "MPIOX_HINTS": "*:mpiox_exchange=two_phase",
        "MPIOX_RANKS_PER_NODE": str(per_node),
        "MPIOX_STATS": "1",
        "MPIOX_STATS_FILE": str(tmp_path / "stats"),
    }
    program = [mpi_program("comings"), tmp_path / "file", *threads]
    launch = mpi_run(program, RANKS, preload=True, env=environment, timeout_s=60, check=False)
    assert not failed(launch), launch.describe()
    rows = json_lines(tmp_path / "stats")
    files = [row for row in rows if row["kind"] == "file"]
    # without MPI_THREAD_MULTIPLE views after small nonblocking collectives are the MPI
    # library's (docs/explanation/limitations.md)
    assert not any(row["native_calls"] for row in files if threads or not row["nonblocking_calls"])
    assert sum(row["messages"] > 0 for row in files) > len(files) // 2
