"""Aggregators of files on several nodes: as many as the network cards, which are counted in sysfs."""

from __future__ import annotations

import pathlib

import pytest

from support.launch import python_run

pytestmark = pytest.mark.mpi

PROGRAM = """
import os, re, sys
import mpiio_ext
from mpi4py import MPI
comm = MPI.COMM_WORLD
os.environ["MPIOX_NICS"] = sys.argv[2 + comm.rank // 4]
fh = MPI.File.Open(comm, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)
fh.Set_view(comm.rank * 100, MPI.BYTE, MPI.BYTE.Create_vector(1, 100, 1).Create_resized(0, 100 * comm.size).Commit())
fh.Write_all(bytearray(100_000))
found = comm.gather(re.search(r"of ([0-9]+) aggregators", mpiio_ext.stats.of(fh).reason)[1])
fh.Close()
if comm.rank == 0:
    print(*found)
"""


def sysfs(folder: pathlib.Path, slingshot: int, infiniband: list[str]) -> pathlib.Path:
    """Make what Linux shows: cards of Slingshot, and cards of InfiniBand with the states of their ports."""
    for card in range(slingshot):
        (folder / "cxi" / f"cxi{card}").mkdir(parents=True)
    for card, states in enumerate(infiniband):
        for port, state in enumerate(states.split(","), 1):
            place = folder / "infiniband" / f"mlx5_{card}" / "ports" / str(port)
            place.mkdir(parents=True)
            (place / "state").write_text(f"{state}\n")
    return folder


DOWN, UP = "1: DOWN", "4: ACTIVE"


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([(0, [])], 4),  # none is known: two a node
        ([(1, [])], 4),
        ([(3, [])], 6),
        ([(8, [])], 8),  # as many as there are ranks
        ([(1000, [])], 8),
        ([(3, [UP] * 4)], 6),  # the others serve something else
        ([(0, [UP, DOWN, UP, f"{DOWN},{UP}"])], 6),
        ([(0, [DOWN] * 4)], 4),
        ([(8, []), (3, [])], 6),  # the node with the fewest counts
        ([(0, [UP] * 3), (8, [])], 6),
        ([(8, []), (0, [])], 4),
    ],
)
def test_cards_are_counted(
    extension: str, tmp_path: pathlib.Path, nodes: list[tuple[int, list[str]]], expected: int
) -> None:
    """Two pretended nodes of four ranks, on a file system of one server; one that is given stands for both."""
    cards = [sysfs(tmp_path / f"class{node}", *nodes[node % len(nodes)]) for node in range(2)]
    env = {"MPIOX_LOCKS": "server", "MPIOX_HINTS": "*:mpiox_ranks_per_node=4:mpiox_exchange=two_phase"}
    launch = python_run(["-c", PROGRAM, tmp_path / "file", *cards], 8, env=env, timeout_s=60)
    assert launch.stdout.split() == [str(expected)] * 8, launch.describe()
