"""To be traced: views of several kinds, and several nonblocking accesses at a time. ``pioneer_views.py DIR``.

Every byte is (place of the view's first byte + place in the data stream) modulo 251 plus 1, as the engine of PIONEER
writes it: a replay on as many ranks must make the same files, byte by byte.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

ROWS, COLUMNS = 6, 40
MODE = MPI.MODE_CREATE | MPI.MODE_RDWR


def stream(first: int, begin: int, size: int) -> np.ndarray:
    """Return bytes of a data stream."""
    return ((first + begin + np.arange(size)) % 251 + 1).astype(np.uint8)


def tiles(comm: MPI.Intracomm, folder: Path) -> None:
    """Write a block of columns of a matrix of doubles, twice, at the file pointer."""
    width = COLUMNS // comm.size
    kind = MPI.DOUBLE.Create_subarray([ROWS, COLUMNS], [ROWS, width], [0, comm.rank * width]).Commit()
    file = MPI.File.Open(comm, str(folder / "tiles"), MODE)
    file.Set_view(64, MPI.DOUBLE, kind)
    first, size = 64 + comm.rank * width * 8, ROWS * width * 8
    for step in range(2):
        file.Write_all(stream(first, step * size, size).view(np.float64))
    file.Set_view(0, MPI.BYTE, MPI.BYTE)
    file.Close()
    kind.Free()


def cyclic(comm: MPI.Intracomm, folder: Path) -> None:
    """Write blocks in turn through a resized vector, out of order, with seeks and at explicit offsets of integers."""
    block = MPI.INT32_T.Create_vector(1, 3, 3)
    kind = block.Create_resized(0, comm.size * 12).Commit()
    file = MPI.File.Open(comm, str(folder / "cyclic"), MODE)
    file.Set_view(comm.rank * 12, MPI.INT32_T, kind)
    first = comm.rank * 12
    file.Write_at_all(9, stream(first, 36, 36).view(np.int32))
    file.Seek(3)
    file.Write(stream(first, 12, 24).view(np.int32))
    file.Seek(-9, MPI.SEEK_CUR)
    file.Write(stream(first, 0, 12).view(np.int32))
    file.Close()
    block.Free()
    kind.Free()


def irregular(comm: MPI.Intracomm, folder: Path) -> None:
    """Write through a list of blocks, several nonblocking writes at a time, waited for in another order."""
    places = [comm.rank * 7 + k * 7 * comm.size + (k % 3) for k in range(400)]
    kind = MPI.BYTE.Create_hindexed([4 + k % 2 for k in range(400)], places).Commit()
    file = MPI.File.Open(comm, str(folder / "irregular"), MODE)
    file.Set_view(0, MPI.BYTE, kind)
    first = places[0]
    requests = [file.Iwrite_at(at, stream(first, at, 100)) for at in (0, 100, 200)]
    requests[1].Wait()
    requests.append(file.Iwrite_at(300, stream(first, 300, 100)))
    MPI.Request.Waitall([requests[0], requests[2], requests[3]])
    back = np.empty(400, np.uint8)
    file.Read_at(0, back)
    file.Close()
    kind.Free()
    assert (back == stream(first, 0, 400)).all()


def spread(comm: MPI.Intracomm, folder: Path) -> None:
    """Write through a distributed array and a struct."""
    sizes, grid = [8, comm.size * 4], [1, comm.size]
    kind = MPI.INT16_T.Create_darray(
        comm.size, comm.rank, sizes, [MPI.DISTRIBUTE_NONE, MPI.DISTRIBUTE_CYCLIC], [MPI.DISTRIBUTE_DFLT_DARG, 2], grid
    ).Commit()
    file = MPI.File.Open(comm, str(folder / "spread"), MODE)
    file.Set_view(0, MPI.INT16_T, kind)
    file.Write_all(stream(comm.rank * 4, 0, 64).view(np.int16))
    behind = 16 * comm.size * 4
    parts = MPI.Datatype.Create_struct([2, 1], [comm.rank * 16, comm.rank * 16 + 8], [MPI.INT32_T, MPI.INT64_T])
    parts = parts.Commit()
    file.Set_view(behind, MPI.BYTE, parts)
    file.Write_all(stream(behind + comm.rank * 16, 0, 16))
    file.Close()
    kind.Free()
    parts.Free()


def main() -> None:
    """Do all of them, one after the other."""
    comm = MPI.COMM_WORLD
    folder = Path(sys.argv[1])
    for part in (tiles, cyclic, irregular, spread):
        part(comm, folder)
    comm.Barrier()


if __name__ == "__main__":
    main()
