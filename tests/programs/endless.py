"""Collectives on one file without end: ``endless.py FILE``; rank 0 prints "turn" after each time through.

Every rank writes its pieces of a round, different ones each time, and reads those that another rank has written. A
wrong byte is said and ends the rank; an error of MPI is said, with its class, and ends the rank with status 3.
"""

from __future__ import annotations

import sys

import numpy as np
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
PIECE, COUNT = 64, 4096


def mine(turn: int, rank: int) -> np.ndarray:
    """Return what a rank writes in a turn."""
    mixed = np.arange(PIECE * COUNT, dtype=np.uint64) * np.uint64(2654435761 + 2 * turn + 977 * rank)
    return (mixed >> np.uint64(11)).astype(np.uint8)


def go_on(path: str) -> None:
    """Write and read for ever."""
    kind = MPI.BYTE.Create_contiguous(PIECE).Create_resized(0, PIECE * WORLD.size).Commit()
    file = MPI.File.Open(WORLD, path, MPI.MODE_CREATE | MPI.MODE_RDWR)
    other = (WORLD.rank + WORLD.size // 2 + 1) % WORLD.size
    shift = PIECE * (other - WORLD.rank)
    found = np.zeros(PIECE * COUNT, np.uint8)
    turn = 0
    while True:
        file.Set_view(WORLD.rank * PIECE, MPI.BYTE, kind)
        file.Write_at_all(0, mine(turn, WORLD.rank))
        file.Set_view(WORLD.rank * PIECE + shift, MPI.BYTE, kind)
        file.Read_at_all(0, found)
        wrong = int(np.count_nonzero(found != mine(turn, other)))
        assert wrong == 0, f"rank {WORLD.rank}: {wrong} of {found.size} bytes of turn {turn} are wrong"
        turn += 1
        if WORLD.rank == 0:
            print("turn", flush=True)


if __name__ == "__main__":
    try:
        go_on(sys.argv[1])
    except MPI.Exception as error:
        print(f"rank {WORLD.rank}: error class {error.Get_error_class()}: {error}", flush=True)
        sys.exit(3)
