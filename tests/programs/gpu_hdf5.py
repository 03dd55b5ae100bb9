"""An HDF5 dataset, or an array of mpi4py, in the memory of a pretended GPU. Usage: gpu_hdf5.py CASE FOLDER.

CASE: "array", an object with __cuda_array_interface__ for mpi4py; or words of a dataset: contiguous or chunked, and
independent or collective, joined by "-".
"""

from __future__ import annotations

import os
import sys

import mpiio_ext  # before mpi4py.MPI and h5py

# isort: split
import numpy as np
from mpi4py import MPI

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from support.pretended_gpu import Count, Gpu

ITEMS = 4096
comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
case, folder = sys.argv[1:]
gpu = Gpu()
data = np.random.default_rng(rank).random(ITEMS)
there = gpu.place(data.view(np.uint8))
back = gpu.place(np.zeros(data.nbytes, np.uint8))


class Array:
    """What CuPy, PyTorch and Numba give."""

    def __init__(self, address: int) -> None:
        self.__cuda_array_interface__ = {"shape": (ITEMS,), "typestr": "<f8", "data": (address, False), "version": 3}


def by_mpi4py() -> None:
    """Write and read arrays of the GPU."""
    file = MPI.File.Open(comm, f"{folder}/array", MPI.MODE_CREATE | MPI.MODE_RDWR)
    file.Write_at_all(rank * data.nbytes, Array(there))
    file.Read_at(rank * data.nbytes, Array(back))
    file.Close()


def by_hdf5() -> None:
    """Write and read a dataset by pointers of the GPU."""
    import h5py

    arrays = [np.frombuffer(MPI.buffer.fromaddress(at, data.nbytes), data.dtype) for at in (there, back)]
    transfer = h5py.h5p.create(h5py.h5p.DATASET_XFER)
    if "collective" in case:
        transfer.set_dxpl_mpio(h5py.h5fd.MPIO_COLLECTIVE)
    with h5py.File(f"{folder}/data.h5", "w", driver="mpio", comm=comm) as file:
        chunks = (ITEMS // 4,) if "chunked" in case else None
        dataset = file.create_dataset("x", (size * ITEMS,), dtype=data.dtype, chunks=chunks).id
        place, memory = dataset.get_space(), h5py.h5s.create_simple((ITEMS,))
        place.select_hyperslab((rank * ITEMS,), (ITEMS,))
        dataset.write(memory, place, arrays[0], dxpl=transfer)
        dataset.read(memory, place, arrays[1], dxpl=transfer)


by_mpi4py() if case == "array" else by_hdf5()
assert mpiio_ext.interposed()
assert (gpu.get(back, data.nbytes).view(data.dtype) == data).all()
assert gpu.count(Count.COPIED) >= 2 * data.nbytes
print("right")
