"""To be traced: a shared file by collectives, a file of each rank, one of the root. ``pioneer_checkpoint.py DIR``."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

STEPS, BLOCK, LINES = 12, 1000, 10


def main() -> None:
    """Write a checkpoint, read a part of it back, and say so in a log."""
    comm = MPI.COMM_WORLD
    folder = Path(sys.argv[1])
    file = MPI.File.Open(comm, str(folder / "all.dat"), MPI.MODE_CREATE | MPI.MODE_RDWR)
    for step in range(STEPS):
        file.Write_at_all((step * comm.size + comm.rank) * BLOCK, np.full(BLOCK, step + 1, np.uint8))
    file.Sync()
    file.Read_at(comm.rank * BLOCK, np.empty(BLOCK, np.uint8))
    file.Close()
    with (folder / f"own_{comm.rank:03}.txt").open("wb", buffering=0) as own:
        for line in range(LINES):
            own.write(b"x" * (100 + line))
    if comm.rank == 0:
        with (folder / "log.txt").open("wb", buffering=0) as log:
            log.write(b"done")
    comm.Barrier()


if __name__ == "__main__":
    main()
