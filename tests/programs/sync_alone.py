"""Rank 0 writes and syncs; the other ranks sync once the file "go" is there: FOLDER."""

import os
import sys
import time

import numpy as np
from mpi4py import MPI

import mpiio_ext  # noqa: F401  (loads the library)

folder, comm = sys.argv[1], MPI.COMM_WORLD
file = MPI.File.Open(comm, f"{folder}/data", MPI.MODE_RDWR | MPI.MODE_CREATE)
if comm.rank == 0:
    file.Write_at(0, np.arange(256, dtype="u1"))
while comm.rank > 0 and not os.path.exists(f"{folder}/go"):
    time.sleep(0.02)
file.Sync()
back = np.empty(256, "u1")
file.Read_at(0, back)
assert (back == np.arange(256)).all()
file.Close()
