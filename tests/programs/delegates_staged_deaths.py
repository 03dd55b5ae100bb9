"""Checkpoints that are closed before they are written, until something is killed.

``delegates_staged_deaths.py FOLDER FILES PAUSE_S`` writes so many files through delegates and computes in between;
each that all ranks have closed is a line of rank 0. Every sixth byte is not written: what has holes stays so. With a
pause below 0 it restarts: it reads them all, and says of each whether all is there.

``… FOLDER FILES PAUSE_S SEED`` opens them again while they drain, as the seed draws: all ranks or one rank read, or all
write every other block once more, a new generation of the file. Rank 0 appends to FOLDER.told what begins ("open FILE
GENERATION", "read …") and what a sync or a close has promised, past the launcher. It ends when FOLDER.go exists.
"""

from __future__ import annotations

import os
import pathlib
import random
import sys
import time

import numpy as np
from mpi4py import MPI

COMM = MPI.COMM_WORLD
FOLDER, FILES, PAUSE_S = pathlib.Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
BLOCK, BLOCKS = 5000, 12


def restart(number: int) -> None:
    """Read a file that an earlier job has left, all of it on each rank."""
    whole = np.zeros((BLOCKS * COMM.size, BLOCK + 1000), np.uint8)
    whole[:, :BLOCK] = ((np.arange(BLOCKS * COMM.size) + number) % 251 + 1)[:, None]
    found = np.empty(whole.size - 1000, np.uint8)
    file = MPI.File.Open(COMM, str(FOLDER / f"checkpoint{number}"), MPI.MODE_RDONLY)
    file.Read_at_all(0, found)
    fine = file.Get_size() == found.size and bool((found == whole.ravel()[: found.size]).all())
    file.Close()
    if COMM.allreduce(fine, MPI.LAND) and COMM.rank == 0:
        print(f"read {number}", flush=True)


def tell(*words: object) -> None:
    """Append a line to what is told, when all ranks have come here."""
    COMM.Barrier()
    if COMM.rank == 0:
        with pathlib.Path(f"{FOLDER}.told").open("a", encoding="ascii") as told:
            print(*words, file=told)


def content(number: int, generation: int) -> np.ndarray:
    """Return the bytes of a generation, as `checkpoint` of tests/support/staged.py."""
    blocks = np.arange(BLOCKS * COMM.size)
    last = np.where((generation - blocks) % 2 == 0, generation, max(0, generation - 1))
    whole = np.zeros((len(blocks), BLOCK + 1000), np.uint8)
    whole[:, :BLOCK] = ((blocks + number + 50 * last) % 251 + 1)[:, None]
    return whole


def write(number: int, generation: int, draw: random.Random) -> None:
    """Write a generation, all ranks."""
    tell("open", number, generation)
    mode = MPI.MODE_RDWR | (MPI.MODE_CREATE if generation == 0 else 0)
    file, rows = MPI.File.Open(COMM, str(FOLDER / f"checkpoint{number}"), mode), content(number, generation)
    for block in range(COMM.rank, len(rows), COMM.size):
        if generation == 0 or (generation - block) % 2 == 0:
            file.Write_at(block * (BLOCK + 1000), rows[block, :BLOCK])
    if draw.random() < 0.3:
        file.Sync()
        tell("synced", number, generation)
    time.sleep(draw.random() * (4 if generation else 1) * PAUSE_S)
    file.Close()
    tell("closed", number, generation)


def read(number: int, generation: int, draw: random.Random) -> None:
    """Read a file that was closed: all ranks, or one of them alone, which may look for it past MPI first."""
    alone, looks = draw.choice((None, *range(COMM.size))), draw.random() < 0.3
    tell("read", number, generation)
    if looks and alone == COMM.rank:
        os.stat(FOLDER / f"checkpoint{number}")
    if alone in (None, COMM.rank):
        expected = content(number, generation).ravel()[:-1000]
        found = np.empty(expected.size, np.uint8)
        comm = COMM if alone is None else MPI.COMM_SELF
        file = MPI.File.Open(comm, str(FOLDER / f"checkpoint{number}"), MPI.MODE_RDONLY)
        file.Read_at(0, found)
        if file.Get_size() != found.size or (found != expected).any():
            print(
                f"wrong: rank {COMM.rank} reads checkpoint{number}, size {file.Get_size()}, "
                f"at {np.flatnonzero(found != expected)[:1]}",
                flush=True,
            )
            COMM.Abort(3)
        time.sleep(draw.random() * 4 * PAUSE_S)
        file.Close()
    else:
        draw.random()
    COMM.Barrier()


def reopen(seed: int) -> None:
    """Write all files; after each, open some of the last ones again."""
    draw, generations = random.Random(seed), [-1] * FILES
    for number in range(FILES):
        for old in (number, *(draw.randint(max(0, number - 2), number) for _ in range(draw.randrange(3)))):
            if generations[old] >= 0 and draw.random() < 0.5:
                read(old, generations[old], draw)
            else:
                generations[old] += 1
                write(old, generations[old], draw)
            time.sleep(draw.random() * PAUSE_S)
    tell("done")
    while not pathlib.Path(f"{FOLDER}.go").exists():
        time.sleep(0.02)


if len(sys.argv) > 4:
    reopen(int(sys.argv[4]))
    FILES = 0
for number in range(FILES if PAUSE_S < 0 else 0):
    restart(number)
for number in range(FILES if PAUSE_S >= 0 else 0):
    file = MPI.File.Open(COMM, str(FOLDER / f"checkpoint{number}"), MPI.MODE_CREATE | MPI.MODE_WRONLY)
    for block in range(COMM.rank, BLOCKS * COMM.size, COMM.size):
        file.Write_at(block * (BLOCK + 1000), np.full(BLOCK, (block + number) % 251 + 1, np.uint8))
    file.Close()
    COMM.Barrier()
    if COMM.rank == 0:
        print(f"closed {number}", flush=True)
    time.sleep(PAUSE_S)
