"""Threads make a process's first accesses of the memory of a pretended GPU at once; prints their errors as JSON.

Usage: gpu_threads.py PATH
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import threading

import mpiio_ext  # noqa: F401  # before mpi4py

# isort: split
import numpy as np
from mpi4py import MPI

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from support.pretended_gpu import Gpu

THREADS, BYTES = 4, 4096
path = pathlib.Path(sys.argv[1])
gpu = Gpu()
file = MPI.File.Open(MPI.COMM_SELF, path, MPI.MODE_CREATE | MPI.MODE_RDWR)
there = [gpu.place(np.full(BYTES, 1 + each, np.uint8)) for each in range(THREADS)]
errors = [""] * THREADS
together = threading.Barrier(THREADS)


def write(each: int) -> None:
    together.wait()
    try:
        file.Write_at(each * BYTES, [MPI.buffer.fromaddress(there[each], BYTES), BYTES, MPI.BYTE])
    except MPI.Exception as error:
        errors[each] = str(error.Get_error_string())


threads = [threading.Thread(target=write, args=(each,)) for each in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
file.Close()
if not any(errors):
    assert (np.fromfile(path, np.uint8) == np.repeat(np.arange(1, 1 + THREADS), BYTES)).all()
print(json.dumps(errors))
