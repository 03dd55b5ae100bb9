"""To be traced: files of halves, of pairs and of the even ranks, by communicators. ``pioneer_parts.py DIR``."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

STEPS, BLOCK = 6, 500


def main() -> None:
    """Write a file per half at offsets, one per pair through views, one of the even ranks, one of all."""
    comm = MPI.COMM_WORLD
    folder, mode = Path(sys.argv[1]), MPI.MODE_CREATE | MPI.MODE_RDWR
    half = comm.Split(comm.rank // max(1, comm.size // 2))
    file = MPI.File.Open(half, str(folder / f"half.{comm.rank // max(1, comm.size // 2)}"), mode)
    for step in range(STEPS):
        file.Write_at_all((step * half.size + half.rank) * BLOCK, np.full(BLOCK, step + 1, np.uint8))
    file.Read_at(half.rank * BLOCK, np.empty(BLOCK, np.uint8))
    file.Close()

    pairs = max(1, comm.size // 2)
    pair = comm.Split(comm.rank % pairs)
    file = MPI.File.Open(pair, str(folder / f"pair_{comm.rank % pairs + 1:02}.dat"), mode)
    strided = MPI.BYTE.Create_vector(STEPS, BLOCK, 2 * BLOCK).Commit()
    file.Set_view(pair.rank * BLOCK, MPI.BYTE, strided)
    for step in range(STEPS):
        file.Write_all(np.full(BLOCK, step + 1, np.uint8))
    file.Close()

    even = comm.Split(0 if comm.rank % 2 == 0 else MPI.UNDEFINED)
    if even != MPI.COMM_NULL:
        file = MPI.File.Open(even, str(folder / "even.dat"), mode)
        file.Write_at_all(even.rank * BLOCK, np.full(BLOCK, 9, np.uint8))
        file.Close()

    file = MPI.File.Open(comm, str(folder / "all.dat"), mode)
    file.Write_at_all(comm.rank * BLOCK, np.full(BLOCK, 7, np.uint8))
    file.Close()


if __name__ == "__main__":
    main()
