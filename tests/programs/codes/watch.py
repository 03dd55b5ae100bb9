"""The seconds that a program spends on I/O, for the applications in Python."""

from __future__ import annotations

import time

from mpi4py import MPI

comm = MPI.COMM_WORLD


class Watch:
    """Adds up the seconds of I/O: opening, defining, transferring and closing, without the computation between."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.spent_s = 0.0

    def __enter__(self) -> None:
        comm.Barrier()
        self.since_s = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.spent_s += time.perf_counter() - self.since_s

    def say(self, operation: str, size_bytes: float) -> None:
        """Print the bandwidth on rank 0; the slowest rank's time counts."""
        slowest_s = comm.allreduce(self.spent_s, MPI.MAX)
        if comm.rank == 0:
            print(f"{self.program} {operation} {size_bytes / slowest_s / 1e6:.1f} MB/s, {size_bytes / 1e6:.1f} MB")
