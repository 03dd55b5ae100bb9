"""Scratch files of several nodes: pages are written first here or there and read everywhere, every byte compared.

``delegates_scratch.py FOLDER SEED`` draws the layout of cells, who writes which, and when the file is closed and opened
again; every rank then reads cells of all. Rank 0 prints ``begun`` when the file is open, waits for FOLDER/go, prints
``SEEN`` and, as JSON, what is wrong, and how many page ranges delegates have taken over.
"""

from __future__ import annotations

import json
import pathlib
import random
import sys
import time

import numpy as np
from mpi4py import MPI

import mpiio_ext.delegates

COMM = MPI.COMM_WORLD
FOLDER, SEED = pathlib.Path(sys.argv[1]), int(sys.argv[2])
ALL, MINE = random.Random(SEED), random.Random(f"{SEED} {COMM.rank}")
CELL = ALL.choice([48 << 10, 64 << 10, 100_000, 256 << 10, 1 << 20])
START = ALL.choice([0, 0, 1000, 64 << 10])
CELLS = COMM.size * max(2, (24 << 20) // CELL // COMM.size)
EACH = CELLS // COMM.size
LAYOUT = ALL.choice(["block", "block", "turns", "drawn"])
ORDER = list(range(CELLS))
if LAYOUT == "turns":
    ORDER = [k * COMM.size + rank for rank in range(COMM.size) for k in range(EACH)]
elif LAYOUT == "drawn":
    ALL.shuffle(ORDER)
written = np.zeros(CELLS, np.int64)  # how often, of each cell
wrong: list[str] = []


def content(cell: int, times: int) -> np.ndarray:
    """Return what a cell holds when it has been written so often; zeros before that."""
    if times == 0:
        return np.zeros(CELL, np.uint8)
    return ((np.arange(CELL) * 7 + cell * 31 + times * 101) % 251 + 1).astype(np.uint8)


def opened(mode: int) -> MPI.File:
    """Open it."""
    return MPI.File.Open(COMM, str(FOLDER / "scratch"), mode)


def write(file: MPI.File, cells: list[int]) -> None:
    """Write cells of this rank: whole, in two parts, or neighbours in one call."""
    k = 0
    while k < len(cells):
        count = 1
        while MINE.random() < 0.7 and k + count < len(cells) and cells[k + count] == cells[k] + count:
            count += 1
        data = np.concatenate([content(cell, written[cell] + 1) for cell in cells[k : k + count]])
        cut = MINE.randrange(data.size) if MINE.random() < 0.2 else 0
        for first, past in [(0, cut), (cut, data.size)]:
            if past > first:
                file.Write_at(START + cells[k] * CELL + first, data[first:past])
        k += count


def read(file: MPI.File, cells: list[int]) -> None:
    """Compare cells of any rank."""
    found = np.zeros(CELL, np.uint8)
    for cell in cells:
        found[:] = 255
        file.Read_at(START + cell * CELL, found)
        if not (found == content(cell, written[cell])).all():
            wrong.append(f"rank {COMM.rank}: cell {cell} of {LAYOUT}, written {written[cell]} times")


file = opened(MPI.MODE_CREATE | MPI.MODE_RDWR)
file.Set_size(START + CELLS * CELL)
if COMM.rank == 0:
    print("begun", flush=True)
    while not (FOLDER / "go").exists():
        time.sleep(0.001)
COMM.Barrier()
for _ in range(4):
    part = ALL.choice([0.3, 0.6, 1.0])
    chosen = sorted(cell for cell in range(CELLS) if ALL.random() < part)
    mine = [cell for cell in chosen if ORDER.index(cell) // EACH == COMM.rank]
    if MINE.random() < 0.3:
        MINE.shuffle(mine)
    write(file, mine)
    written[chosen] += 1
    file.Sync()
    COMM.Barrier()
    file.Sync()
    read(file, MINE.sample(range(CELLS), min(CELLS, 20)))
    COMM.Barrier()
    if ALL.random() < 0.5:
        file.Close()
        file = opened(MPI.MODE_RDWR)
read(file, list(range(CELLS)))
seen = COMM.gather((wrong, [d.counters["moved_in"] for d in mpiio_ext.delegates.status()]))
file.Close()
if COMM.rank == 0:
    texts = [text for each in seen for text in each[0]]
    print("SEEN", json.dumps([texts, sum(sum(each[1]) for each in seen)]), flush=True)
