"""Collective writes and reads between hosts, every byte checked: ``between_hosts.py FOLDER PREFIX [TURNS]``.

Each pattern leaves a file FOLDER/PREFIX.PATTERN that depends on nothing but the number of ranks: a run with this
library and one without it must leave the same. Rank 0 prints one JSON line: hosts of the ranks, ranks on each node as
MPI sees it, the device number of every rank's /dev/shm; then "turn" after each of TURNS times through all patterns.
"""

from __future__ import annotations

import json
import os
import socket
import sys

import numpy as np
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
ROUNDS = 3
ORDERED_BYTES = 12_345
#: Pattern: bytes of a piece, pieces of a rank and round.
PIECES = {"tiny": (8, 4096), "small": (64, 1024), "page": (4096, 32), "odd": (1000, 77), "large": (1 << 18, 3)}


def content(first: int, count: int) -> np.ndarray:
    """Return the bytes of a file from `first`: any byte in a wrong place differs from what belongs there."""
    at = np.arange(first, first + count, dtype=np.uint64)
    return ((at * np.uint64(2654435761)) >> np.uint64(13)).astype(np.uint8)


def mine(piece: int, count: int, turn: int, rank: int) -> np.ndarray:
    """Return what a rank has of a round: pieces of all ranks in turns."""
    start = turn * piece * count * WORLD.size
    whole = content(start, piece * count * WORLD.size).reshape(count, WORLD.size, piece)
    return np.ascontiguousarray(whole[:, rank])


def exchange(path: str, piece: int, count: int) -> None:
    """Write a file collectively, then read what another rank has written."""
    element = MPI.BYTE.Create_contiguous(piece).Commit()
    kind = element.Create_resized(0, piece * WORLD.size).Commit()
    file = MPI.File.Open(WORLD, path, MPI.MODE_CREATE | MPI.MODE_RDWR)
    file.Set_view(WORLD.rank * piece, MPI.BYTE, kind)
    for turn in range(ROUNDS):
        file.Write_at_all(turn * piece * count, mine(piece, count, turn, WORLD.rank))
    file.Sync()
    WORLD.Barrier()
    file.Sync()
    other = (WORLD.rank + WORLD.size // 2 + 1) % WORLD.size
    file.Set_view(other * piece, MPI.BYTE, kind)
    for turn in reversed(range(ROUNDS)):
        found = np.zeros((count, piece), np.uint8)
        file.Read_at_all(turn * piece * count, found)
        wrong = int(np.count_nonzero(found != mine(piece, count, turn, other)))
        assert wrong == 0, f"rank {WORLD.rank}: {path}: {wrong} of {found.size} bytes of round {turn} are wrong"
    file.Close()
    kind.Free()
    element.Free()


def order(path: str, piece: int) -> None:
    """Write and read a file in the order of the ranks, at the shared file pointer."""
    file = MPI.File.Open(WORLD, path, MPI.MODE_CREATE | MPI.MODE_RDWR)
    file.Set_view(0, MPI.BYTE, MPI.BYTE)
    for turn in range(ROUNDS):
        file.Write_ordered(mine(piece, 1, turn, WORLD.rank))
    file.Sync()
    WORLD.Barrier()
    file.Sync()
    file.Seek_shared(0, MPI.SEEK_SET)
    for turn in range(ROUNDS):
        found = np.zeros((1, piece), np.uint8)
        file.Read_ordered(found)
        assert np.array_equal(found, mine(piece, 1, turn, WORLD.rank)), f"rank {WORLD.rank}: {path}: round {turn}"
    file.Close()


def main() -> None:
    """Go through the patterns."""
    folder, prefix = sys.argv[1:3]
    node = WORLD.Split_type(MPI.COMM_TYPE_SHARED)
    about = WORLD.gather((socket.gethostname(), node.size, os.stat("/dev/shm").st_dev))
    if about is not None:
        names, nodes, devices = zip(*about, strict=True)
        print(json.dumps({"hosts": names, "nodes": nodes, "shm": devices}), flush=True)
    for _ in range(int((sys.argv[3:] or ["1"])[0])):
        for name, (piece, count) in PIECES.items():
            exchange(f"{folder}/{prefix}.{name}", piece, count)
        order(f"{folder}/{prefix}.ordered", ORDERED_BYTES)
        if WORLD.rank == 0:
            print("turn", flush=True)


if __name__ == "__main__":
    main()
