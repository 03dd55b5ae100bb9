"""Checkpoints that are closed before they are written, until something is killed.

``delegates_staged_deaths.py FOLDER FILES PAUSE_S`` writes so many files through delegates and computes in between;
each that all ranks have closed is a line of rank 0. Every sixth byte is not written: what has holes stays so.
"""

from __future__ import annotations

import pathlib
import sys
import time

import numpy as np
from mpi4py import MPI

COMM = MPI.COMM_WORLD
FOLDER, FILES, PAUSE_S = pathlib.Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
BLOCK, BLOCKS = 5000, 12

for number in range(FILES):
    file = MPI.File.Open(COMM, str(FOLDER / f"checkpoint{number}"), MPI.MODE_CREATE | MPI.MODE_WRONLY)
    for block in range(COMM.rank, BLOCKS * COMM.size, COMM.size):
        file.Write_at(block * (BLOCK + 1000), np.full(BLOCK, (block + number) % 251 + 1, np.uint8))
    file.Close()
    COMM.Barrier()
    if COMM.rank == 0:
        print(f"closed {number}", flush=True)
    time.sleep(PAUSE_S)
