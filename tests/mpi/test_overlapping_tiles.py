"""File types whose tiles overlap: legal, made by HDF5 for chunked datasets, and out of order across tiles."""

from __future__ import annotations

import pytest

from support.cases import Case, Cases

pytestmark = [pytest.mark.mpi, pytest.mark.both]

PROGRAM = """
import sys
import mpiio_ext.stats
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
EXTENT, FAR, TILES = 64, 1000, 4  # tiles of 1008 bytes and more every 64: their hulls overlap, their bytes do not
places = [8 * comm.rank, FAR + 8 * comm.rank]
filetype = MPI.BYTE.Create_hindexed_block(8, places).Create_resized(0, EXTENT).Commit()
disp = 40
expected = np.zeros(disp + FAR + EXTENT * TILES, "u1")


def put(rank: int, tile: int, value: int) -> None:
    for place in (8 * rank, FAR + 8 * rank):
        at = disp + EXTENT * tile + place
        expected[at : at + 8] = value


file = MPI.File.Open(comm, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)
file.Set_size(expected.size)
file.Set_view(disp, MPI.BYTE, filetype)
file.Set_atomicity(sys.argv[2:] == ["atomic"])
one, two = np.empty(16, "u1"), np.empty(32, "u1")
one[:] = 10 + comm.rank  # within the first tile
file.Write_at_all(0, one)
two[:] = 50 + comm.rank  # across tiles 1 and 2
file.Write_at_all(16, two)
one[:] = 90 + comm.rank  # within the last one, alone
file.Write_at(48, one)
for rank in range(comm.size):
    put(rank, 0, 10 + rank), put(rank, 1, 50 + rank), put(rank, 2, 50 + rank), put(rank, 3, 90 + rank)
assert file.Get_byte_offset(24) == disp + EXTENT + places[1]
back = np.zeros(64, "u1")
file.Iread_at_all(0, back).Wait()
assert (back == np.repeat([10, 50, 50, 90], 16) + comm.rank).all(), back
file.Seek(0, MPI.SEEK_END)
stats = mpiio_ext.stats.of(file)
assert stats.native_calls == 0, stats
file.Sync()
comm.Barrier()
file.Set_view(0)
whole = np.zeros(expected.size, "u1")
file.Read_at_all(0, whole)
assert (whole == expected).all(), np.nonzero(whole != expected)
file.Close()
"""


RANKS = (1, 2, 3, 4, 7)
NODES = {"one_node": 0, "pretended_nodes": 2}
#: Under locks: atomic mode, and writes that are sieved.
LOCKED = {"atomic": ("atomic",), "sieved": ()}


def tiles(ranks: int, nodes: int) -> Case:
    """Return the program on pretended nodes (0: on the real one)."""
    env = {"MPIOX_RANKS_PER_NODE": str(max(1, ranks // nodes))} if nodes else {}
    return Case(text=PROGRAM, ranks=ranks, arguments=("{folder}/data",), environment=env)


def tiles_under_locks(words: tuple[str, ...]) -> Case:
    """Return the program where accesses lock what they touch."""
    env = {"MPIOX_HINTS": "romio_ds_write=enable"}
    return Case(text=PROGRAM, ranks=3, arguments=("{folder}/data", *words), environment=env)


CASES = {f"{where} {ranks}": tiles(ranks, nodes) for where, nodes in NODES.items() for ranks in RANKS}
CASES |= {name: tiles_under_locks(words) for name, words in LOCKED.items()}


@pytest.mark.slow_with("1-pretended_nodes", "2-*", "3-one_node", "7-*")
@pytest.mark.parametrize("where", NODES)
@pytest.mark.parametrize("ranks", RANKS)
def test_overlapping_tiles(cases: Cases, ranks: int, where: str) -> None:
    """Every byte where the type map says, by collective, independent and nonblocking access, none natively."""
    cases.result(f"{where} {ranks}")


@pytest.mark.parametrize("name", LOCKED)
def test_overlapping_tiles_under_locks(cases: Cases, name: str) -> None:
    """Atomic mode and sieved writes lock what they touch, and neither the other's lock nor themselves."""
    cases.result(name)
