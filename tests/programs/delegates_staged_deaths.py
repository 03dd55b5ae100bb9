"""Checkpoints that are closed before they are written, until something is killed.

``delegates_staged_deaths.py FOLDER FILES PAUSE_S`` writes so many files through delegates and computes in between;
each that all ranks have closed is a line of rank 0. Every sixth byte is not written: what has holes stays so. With a
pause below 0 it restarts: it reads them all, and says of each whether all is there.
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
