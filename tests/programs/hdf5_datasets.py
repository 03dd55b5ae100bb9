"""Write and read an HDF5 file with all ranks through h5py: ``hdf5_datasets.py FILE RESULT-FOLDER``.

Every value is a formula of its index, so that anybody can check the file. Environment NATIVE=1: without the library.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys

NATIVE = os.environ.get("NATIVE") == "1"
if not NATIVE:
    import mpiio_ext.stats

import h5py  # noqa: E402
import numpy as np  # noqa: E402
from mpi4py import MPI  # noqa: E402

SHAPE = (24, 18, 10)


def formula(start: int, stop: int) -> np.ndarray:
    """Return rows start .. stop-1 of the array that is stored everywhere."""
    z, y, x = np.meshgrid(np.arange(start, stop), np.arange(SHAPE[1]), np.arange(SHAPE[2]), indexing="ij")
    return (z * 10_000 + y * 100 + x).astype("f8")


def part(rank: int, size: int, length: int) -> slice:
    """Return the rows of a rank; with more ranks than rows some have none."""
    return slice(rank * length // size, (rank + 1) * length // size)


def write(path: str, comm: MPI.Intracomm) -> None:
    """Write three datasets, all collectively."""
    rank, size = comm.rank, comm.size
    with h5py.File(path, "w", driver="mpio", comm=comm) as file:
        contiguous = file.create_dataset("contiguous", SHAPE, "f8")
        chunked = file.create_dataset("chunked", SHAPE, "f8", chunks=(5, 7, 4))
        strided = file.create_dataset("strided", SHAPE, "i4", fillvalue=-1)
        file.attrs["ranks"] = 0
        mine = part(rank, size, SHAPE[0])
        columns = part(rank, size, SHAPE[2])
        with contiguous.collective:
            contiguous[mine] = formula(mine.start, mine.stop)
        with chunked.collective:  # another decomposition: columns, the fastest dimension
            chunked[:, :, columns] = formula(0, SHAPE[0])[:, :, columns]
        with strided.collective:  # hyperslabs with a stride: rows rank, rank + size, ...
            strided[rank::size, 1::2, :] = formula(0, SHAPE[0])[rank::size, 1::2, :].astype("i4")


def fetch(dataset: h5py.Dataset, selection: tuple[slice, ...]) -> np.ndarray:
    """Read a hyperslab collectively; read_direct(), because indexing takes a short cut that reads independently."""
    shape = tuple(len(range(*s.indices(n))) for s, n in zip(selection, dataset.shape, strict=True))
    result = np.zeros(shape, dataset.dtype)
    with dataset.collective:
        dataset.read_direct(result, selection)
    return result


def read(path: str, comm: MPI.Intracomm) -> bool:
    """Read with another decomposition and compare."""
    rank, size = comm.rank, comm.size
    with h5py.File(path, "r", driver="mpio", comm=comm) as file:
        rows = part(size - 1 - rank, size, SHAPE[1])
        first = fetch(file["contiguous"], np.s_[:, rows, :])
        second = fetch(file["chunked"], np.s_[rank::size, :, :])
        third = fetch(file["strided"], np.s_[:, rows, :])
    whole = formula(0, SHAPE[0])
    expected = whole.copy()
    expected[:, ::2, :] = -1
    same = np.array_equal(first, whole[:, rows, :]) and np.array_equal(second, whole[rank::size])
    return bool(same and np.array_equal(third, expected[:, rows, :]))


def check(path: str) -> None:
    """Compare the file with the formula, in one process."""
    with h5py.File(path, "r") as file:
        whole = formula(0, SHAPE[0])
        assert np.array_equal(file["contiguous"][...], whole)
        assert np.array_equal(file["chunked"][...], whole)
        whole[:, ::2, :] = -1
        assert np.array_equal(file["strided"][...], whole)


def main() -> None:
    """Write, read, say what happened."""
    comm = MPI.COMM_WORLD
    before = None if NATIVE else mpiio_ext.stats.total()
    write(sys.argv[1], comm)
    written = None if NATIVE else mpiio_ext.stats.total()
    equal = read(sys.argv[1], comm)
    result: dict[str, object] = {"equal": equal}
    if before is not None and written is not None:
        both = mpiio_ext.stats.total()
        result |= {
            "collective_writes": written.collective_writes - before.collective_writes,
            "bytes_written": written.bytes_written - before.bytes_written,
            "collective_reads": both.collective_reads - written.collective_reads,
            "errors": both.errors - before.errors,
            "opens": both.calls.get("MPI_File_open", 0) - before.calls.get("MPI_File_open", 0),
        }
    pathlib.Path(sys.argv[2], f"{comm.rank}.json").write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
