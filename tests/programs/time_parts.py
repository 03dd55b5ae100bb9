"""Where ranks spend their time, known beforehand: `time_parts.py FOLDER`.

Rank 1 comes late by HALF_S four times: to open a file, to two collective calls, and to close the file.
With SLOW_STORAGE_US as of slow_storage.c, requests to files below FOLDER/slow sleep.
"""

from __future__ import annotations

import pathlib
import sys
import time

import numpy as np
from mpi4py import MPI

HALF_S, BYTES, REQUESTS = 0.5, 1 << 20, 5

comm, folder = MPI.COMM_WORLD, pathlib.Path(sys.argv[1])
data, mode = np.full(BYTES, 7, "u1"), MPI.MODE_CREATE | MPI.MODE_WRONLY


def late() -> None:
    """Come late on rank 1."""
    time.sleep(HALF_S if comm.rank == 1 else 0)


comm.Barrier()
late()
together = MPI.File.Open(comm, str(folder / "together"), mode)
for step in range(2):
    late()
    together.Write_at_all((step * comm.size + comm.rank) * BYTES, data)
late()
together.Close()

alone = MPI.File.Open(MPI.COMM_SELF, str(folder / "slow" / f"alone.{comm.rank}"), mode)
for number in range(REQUESTS):
    alone.Write_at(number * BYTES, data)
alone.Close()

info = MPI.Info.Create()
info.Set("mpiox_ranks_per_node", "1")
info.Set("mpiox_exchange", "two_phase")
between = MPI.File.Open(comm, str(folder / "between"), mode, info)
pieces = MPI.UNSIGNED_CHAR.Create_vector(BYTES // 64, 64, 64 * comm.size).Commit()
between.Set_view(comm.rank * 64, MPI.UNSIGNED_CHAR, pieces)
between.Write_at_all(0, data)
between.Close()
