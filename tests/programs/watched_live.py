"""Reads and writes in every way, known numbers of bytes, then lets itself be looked at until a file appears.

watched_live.py FOLDER: FOLDER/data is accessed; FOLDER/ready says that all ranks are done; FOLDER/go ends it.
"""

from __future__ import annotations

import pathlib
import sys
import time

import mpiio_ext  # before mpi4py.MPI

# isort: split
import numpy as np
from mpi4py import MPI

#: Bytes that each rank writes and reads in each way.
BYTES = 3000


def main() -> None:
    assert mpiio_ext.__file__
    folder, comm = pathlib.Path(sys.argv[1]), MPI.COMM_WORLD
    data = np.full(BYTES, comm.rank + 1, np.uint8)
    at = comm.rank * BYTES
    mode = MPI.MODE_CREATE | MPI.MODE_RDWR
    closed = MPI.File.Open(comm, str(folder / "closed"), mode)
    closed.Write_at(at, data)
    closed.Close()
    file = MPI.File.Open(comm, str(folder / "data"), mode)
    file.Write_at(at, data)
    file.Write_at_all(at, data)
    file.Iwrite_at(at, data).Wait()
    file.Iwrite_at_all(at, data).Wait()
    file.Write_at_all_begin(at, data)
    file.Write_at_all_end(data)
    file.Sync()
    comm.Barrier()
    file.Read_at(at, data)
    file.Read_at_all(at, data)
    file.Read_at(at, np.zeros(0, np.uint8))
    native = MPI.File.Open(comm, str(folder / "native"), mode, MPI.Info.Create({"mpiox_enable": "false"}))
    native.Write_at(at, data)
    comm.Barrier()
    if comm.rank == 0:
        (folder / "ready").touch()
    while not (folder / "go").exists():
        time.sleep(0.01)
    comm.Barrier()
    native.Close()
    file.Close()


if __name__ == "__main__":
    main()
