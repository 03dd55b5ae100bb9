"""One file that all ranks write and read, then a file of each rank by itself: FILE BYTES."""

from __future__ import annotations

import sys

import mpiio_ext  # isort: skip  # noqa: F401  # before mpi4py: takes the calls over

from mpi4py import MPI

path, size = sys.argv[1], int(sys.argv[2])
world = MPI.COMM_WORLD
data = bytearray([world.rank]) * size
piece = size // 64
view = MPI.BYTE.Create_vector(64, piece, piece * world.size).Commit()
file = MPI.File.Open(world, path, MPI.MODE_CREATE | MPI.MODE_RDWR)
file.Set_view(world.rank * piece, MPI.BYTE, view)
file.Write_at_all(0, data)
found = bytearray(size)
file.Read_at_all(0, found)
assert found == data
file.Close()
view.Free()
own = world.Split(world.rank)
file = MPI.File.Open(own, f"{path}.{world.rank}", MPI.MODE_CREATE | MPI.MODE_WRONLY)
file.Write_at(0, data)
file.Close()
own.Free()
