"""h5py scripts that never close their file: independent writes, which HDF5 brings to the file inside MPI_Finalize.

usage: delegates_unclosed.py FILE
"""

import sys

import mpiio_ext.delegates  # isort: skip  # before mpi4py and h5py
import h5py
from mpi4py import MPI

comm = MPI.COMM_WORLD
file = h5py.File(sys.argv[1], "w", driver="mpio", comm=comm)
data = file.create_dataset("data", (100, comm.size), dtype="i4")
for row in range(100):
    data[row, comm.rank] = row * 1000 + comm.rank
group = mpiio_ext.delegates.current()
if comm.rank == 0:
    print("mode", group.mode if group else None, flush=True)
keep = (file, data)  # alive until MPI_Finalize
