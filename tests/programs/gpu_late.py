"""Write host memory, load the driver of a pretended GPU, write its memory. Usage: gpu_late.py PATH NAME=VALUE...

The driver comes when the file is open and has been written for a while, as where a library of the program loads it.
"""

from __future__ import annotations

import os
import sys
import time

import mpiio_ext  # before mpi4py.MPI

# isort: split
import numpy as np
from mpi4py import MPI

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from support.pretended_gpu import Gpu

BYTES, BLOCK = 1 << 18, 512
#: A real driver takes longer from its loading to its first memory.
STARTING_S = 0.1

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
info = MPI.Info.Create()
for word in sys.argv[2:]:
    info.Set(*word.split("=", 1))
file = MPI.File.Open(comm, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR, info)
data = np.random.default_rng(rank).integers(0, 256, BYTES, dtype=np.uint8)
for _ in range(3):
    file.Write_at_all(rank * BYTES, data)
time.sleep(STARTING_S)
gpu = Gpu()
there, back = gpu.place(data), gpu.place(np.zeros_like(data))
pieces = MPI.BYTE.Create_vector(BYTES // BLOCK, BLOCK, BLOCK * size).Create_resized(0, BYTES * size).Commit()
file.Set_view(rank * BLOCK, MPI.BYTE, pieces)
for how in ("_at_all", "_at"):
    getattr(file, f"Write{how}")(0, [MPI.buffer.fromaddress(there, BYTES), BYTES, MPI.BYTE])
    file.Sync()
    comm.Barrier()
    getattr(file, f"Read{how}")(0, [MPI.buffer.fromaddress(back, BYTES), BYTES, MPI.BYTE])
    assert (gpu.get(back, BYTES) == data).all(), how
    gpu.put(back, np.zeros_like(data))
file.Close()
assert mpiio_ext.interposed()
print("right")
