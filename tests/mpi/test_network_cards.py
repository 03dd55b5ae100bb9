"""Aggregators of files on several nodes: as many as the network cards, which are counted in sysfs."""

from __future__ import annotations

import pathlib

import pytest

from support.launch import python_run

pytestmark = pytest.mark.mpi

PROGRAM = """
import itertools, os, re, sys
import mpiio_ext
from mpi4py import MPI
comm = MPI.COMM_WORLD
kind = MPI.BYTE.Create_vector(1, 100, 1).Create_resized(0, 100 * comm.size).Commit()
for number, cards in enumerate(zip(sys.argv[2::2], sys.argv[3::2])):
    os.environ["MPIOX_NICS"] = cards[comm.rank // 4]
    order = list(itertools.permutations(range(4)))[number]  # cards are counted once for each group of ranks
    ranks = comm.Split(0, order[comm.rank] if comm.rank < 4 else comm.rank)
    fh = MPI.File.Open(ranks, f"{sys.argv[1]}{number}", MPI.MODE_CREATE | MPI.MODE_RDWR)
    fh.Set_view(comm.rank * 100, MPI.BYTE, kind)
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


#: The cards of a node, one that is given stands for both, and the number of aggregators.
NODES: list[tuple[list[tuple[int, list[str]]], int]] = [
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
]


@pytest.fixture(scope="module")
def counted(extension: str, tmp_path_factory: pytest.TempPathFactory) -> list[list[int]]:
    """Return how many aggregators each rank has found for each of NODES, in one launch."""
    folder = tmp_path_factory.mktemp("cards")
    cards = [
        sysfs(folder / f"{number}.{node}", *nodes[node % len(nodes)])
        for number, (nodes, _) in enumerate(NODES)
        for node in range(2)
    ]
    env = {"MPIOX_LOCKS": "server", "MPIOX_HINTS": "*:mpiox_ranks_per_node=4:mpiox_exchange=two_phase"}
    launch = python_run(["-c", PROGRAM, folder / "file", *cards], 8, env=env, timeout_s=60)
    return [[int(word) for word in line.split()] for line in launch.stdout.splitlines()]


@pytest.mark.parametrize("number", range(len(NODES)))
def test_cards_are_counted(counted: list[list[int]], number: int) -> None:
    """Two pretended nodes of four ranks, on a file system of one server."""
    assert counted[number] == [NODES[number][1]] * 8
