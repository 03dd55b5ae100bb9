"""To be traced: several handles of one file at a time, in POSIX and in MPI-IO. ``pioneer_handles.py DIR``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mpi4py import MPI

STEPS, SIZE = 3, 100


def posix(comm: MPI.Intracomm, folder: Path) -> None:
    """Write through one descriptor and read through another in turn; the root has a third one, which it opens first."""
    name = folder / f"own.{comm.rank}"
    name.write_bytes(bytes(SIZE))
    third = os.open(name, os.O_RDONLY) if comm.rank == 0 else -1
    writes, reads = os.open(name, os.O_WRONLY), os.open(name, os.O_RDONLY)
    for step in range(STEPS):
        os.write(writes, bytes([step + 1]) * SIZE)
        os.read(reads, SIZE)
        if third >= 0:
            os.read(third, SIZE // 2)
    copy = os.dup2(writes, 100 + reads)
    os.close(writes)
    os.write(copy, b"x" * SIZE)
    for descriptor in (reads, copy, *([third] if third >= 0 else [])):
        os.close(descriptor)


def mpi(comm: MPI.Intracomm, folder: Path) -> None:
    """Write a shared file through one handle, and read it through another."""
    name = str(folder / "all")
    writes = MPI.File.Open(comm, name, MPI.MODE_WRONLY | MPI.MODE_CREATE)
    reads = MPI.File.Open(comm, name, MPI.MODE_RDONLY)
    for step in range(STEPS):
        at = (step * comm.size + comm.rank) * SIZE
        writes.Write_at_all(at, bytes([step + 1]) * SIZE)
        writes.Sync()
        reads.Read_at_all(at, bytearray(SIZE))
    writes.Close()
    reads.Close()


def main() -> None:
    """Do both."""
    comm = MPI.COMM_WORLD
    for part in (posix, mpi):
        part(comm, Path(sys.argv[1]))
        comm.Barrier()


if __name__ == "__main__":
    main()
