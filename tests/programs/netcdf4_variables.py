"""Write and read a file with netCDF4: ``netcdf4_variables.py FORMAT FILE RESULT-FOLDER``.

FORMAT is netCDF4's: "NETCDF4" goes through parallel HDF5, the classic formats through PnetCDF. Every value is a formula
of its index. Environment NATIVE=1: without the library.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import sys
from typing import Any

NATIVE = os.environ.get("NATIVE") == "1"
if not NATIVE:
    import mpiio_ext.stats

import netCDF4  # noqa: E402
import numpy as np  # noqa: E402
from mpi4py import MPI  # noqa: E402

SHAPE = (24, 18, 10)
STEPS = 2


def formula() -> Any:
    """Return the array that is stored everywhere."""
    z, y, x = np.meshgrid(*(np.arange(length) for length in SHAPE), indexing="ij")
    return (z * 10_000 + y * 100 + x).astype("f8")


def part(rank: int, size: int, length: int) -> slice:
    """Return the part of a rank; with more ranks than elements some have none."""
    return slice(rank * length // size, (rank + 1) * length // size)


def write(form: str, path: str, comm: MPI.Intracomm) -> None:
    """Write a fixed-size and a record variable collectively, and a small one independently."""
    mine = part(comm.rank, comm.size, SHAPE[0])
    columns = part(comm.rank, comm.size, SHAPE[2])
    with netCDF4.Dataset(path, "w", format=form, parallel=True, comm=comm, info=MPI.Info()) as file:
        for name, length in zip("zyx", SHAPE, strict=True):
            file.createDimension(name, length)
        file.createDimension("time", None)
        file.title = "formula"
        blocks = file.createVariable("blocks", "f8", ("z", "y", "x"))
        steps = file.createVariable("steps", "f4", ("time", "y", "x"))
        ranks = file.createVariable("ranks", "i4", ("z",))
        for variable in (blocks, steps):
            variable.set_collective(True)
        blocks[mine] = formula()[mine]
        for step in range(STEPS):
            steps[step, :, columns] = formula()[step, :, columns]
        ranks.set_collective(False)
        ranks[mine] = np.arange(SHAPE[0])[mine]


def read(path: str, comm: MPI.Intracomm) -> bool:
    """Read with another decomposition and compare."""
    rows = part(comm.size - 1 - comm.rank, comm.size, SHAPE[1])
    with netCDF4.Dataset(path, "r", parallel=True, comm=comm, info=MPI.Info()) as file:
        for name in ("blocks", "steps", "ranks"):
            file[name].set_collective(True)
        first, second, third = file["blocks"][:, rows, :], file["steps"][:, rows, :], file["ranks"][:]
        title = file.title
    return bool(
        title == "formula"
        and np.array_equal(first, formula()[:, rows, :])
        and np.array_equal(second, formula()[:STEPS, rows, :])
        and np.array_equal(third, np.arange(SHAPE[0]))
    )


def check(path: str) -> None:
    """Compare the file with the formula, in one process."""
    with netCDF4.Dataset(path) as file:
        assert np.array_equal(file["blocks"][...], formula())
        assert np.array_equal(file["steps"][...], formula()[:STEPS])
        assert np.array_equal(file["ranks"][...], np.arange(SHAPE[0]))


def main() -> None:
    """Write, read, say what happened."""
    form, path, folder = sys.argv[1:]
    comm = MPI.COMM_WORLD
    before = None if NATIVE else mpiio_ext.stats.total()
    write(form, path, comm)
    equal = read(path, comm)
    mapped = {line.split()[-1] for line in pathlib.Path("/proc/self/maps").read_text().splitlines() if "/lib" in line}
    mpis = [name for name in mapped if re.search(r"/libmpi(ch)?\.so", name)]
    # The empty library of another MPI's name is not one.
    result: dict[str, object] = {"equal": equal, "mpis": [name for name in mpis if os.path.getsize(name) > 100_000]}
    if before is not None:
        total = mpiio_ext.stats.total()
        names = ("collective_writes", "collective_reads", "bytes_written", "independent_bytes_written", "errors")
        result |= {name: getattr(total, name) - getattr(before, name) for name in names}
        result["opens"] = total.calls.get("MPI_File_open", 0) - before.calls.get("MPI_File_open", 0)
    pathlib.Path(folder, f"{comm.rank}.json").write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
