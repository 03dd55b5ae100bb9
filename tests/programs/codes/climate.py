"""History output of a climate model, written with netCDF4-python: record variables that grow by one time step a record.

Four variables share the unlimited dimension ``time``, so that in a classic file each record holds a slab of every one
of them; the coordinates and a mask without time lie before. The ranks own bands of latitude. Everything is written
collectively, closed, opened again to append the second half of the records, and read back, each rank reading its
neighbour's band.

Usage: ``climate.py FILE N RECORDS [FORMAT]``: N latitudes, 2N longitudes, 5 levels. FORMAT: NETCDF3_64BIT_DATA
(default; written by PnetCDF), NETCDF3_64BIT_OFFSET, NETCDF3_CLASSIC, NETCDF4 or NETCDF4_CLASSIC (written by HDF5).
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from mpi4py import MPI
from netCDF4 import Dataset
from watch import Watch

LEVELS = 5
COORDINATES = ("level", "lat", "lon")
VARIABLES = {"temperature": 4, "humidity": 4, "pressure": 3, "rain": 3}  # name: dimensions

comm = MPI.COMM_WORLD


def band(rank: int, n: int) -> slice:
    """Return the latitudes of a rank."""
    return slice(n * rank // comm.size, n * (rank + 1) // comm.size)


def values(name: str, record: int, rows: slice, n: int) -> np.ndarray:
    """Return one record of a variable on a band; the values are whole numbers that a float holds."""
    number = list(VARIABLES).index(name)
    level, row, column = np.ogrid[0 : LEVELS if VARIABLES[name] == 4 else 1, rows, 0 : 2 * n]
    data = ((level * n + row) * 2 * n + column) % 131_071 + 200_000 * number + 1_000_000 * (record % 8)
    return (data if VARIABLES[name] == 4 else data[0]).astype("f4")


def define(file: Dataset, n: int) -> None:
    """Make dimensions and variables."""
    for name, length in {"time": None, "level": LEVELS, "lat": n, "lon": 2 * n}.items():
        file.createDimension(name, length)
    file.title = "history"
    file.createVariable("mask", "i2", ("lat", "lon"))
    for name in COORDINATES:
        file.createVariable(name, "f4", (name,))
    file.createVariable("time", "f8", ("time",)).units = "days since 1850-01-01"
    for name, dims in VARIABLES.items():
        where = ("time", "level", "lat", "lon") if dims == 4 else ("time", "lat", "lon")
        file.createVariable(name, "f4", where)


def mask(rows: slice, n: int) -> np.ndarray:
    """Return the mask of a band."""
    row, column = np.ogrid[rows, 0 : 2 * n]
    return ((row * 2 * n + column) % 32_749).astype("i2")


def coordinate(name: str, n: int) -> np.ndarray:
    """Return the values of a coordinate: hPa from above, degrees from the south and from Greenwich."""
    if name == "level":
        return np.linspace(200, 1000, LEVELS, dtype="f4")
    lowest, extent, count = (-90, 180, n) if name == "lat" else (0, 360, 2 * n)
    return (lowest + (np.arange(count) + 0.5) * extent / count).astype("f4")


def write_fixed(file: Dataset, n: int) -> None:
    """Write what has no time, collectively: a band of the mask and of the latitudes, the other coordinates whole.

    Every value of the file is written: what a library leaves between is not the same with every MPI library.
    """
    rows = band(comm.rank, n)
    for name in ("mask", *COORDINATES):
        file[name].set_collective(True)
    file["mask"][rows] = mask(rows, n)
    file["lat"][rows] = coordinate("lat", n)[rows]
    for name in ("level", "lon"):
        file[name][:] = coordinate(name, n)


def place(name: str, record: int, rows: slice) -> tuple[slice | int, ...]:
    """Return where one record of a variable lies on a band."""
    return (record, slice(None), rows) if VARIABLES[name] == 4 else (record, rows)


def append(file: Dataset, records: range, n: int, watch: Watch) -> None:
    """Write records, collectively."""
    rows = band(comm.rank, n)
    for variable in file.variables.values():
        variable.set_collective(True)
    for record in records:
        data = {name: values(name, record, rows, n) for name in VARIABLES}
        with watch:
            file["time"][record] = float(record)
            for name in VARIABLES:
                file[name][place(name, record, rows)] = data[name]


def write(path: str, n: int, records: int, kind: Any) -> Watch:
    """Write half of the records into a new file, append the others."""
    half, watch = (records + 1) // 2, Watch("climate")
    with watch:
        file = Dataset(path, "w", parallel=True, comm=comm, info=MPI.Info(), format=kind)
        file.set_fill_off()
        define(file, n)
        write_fixed(file, n)
    append(file, range(half), n, watch)
    with watch:
        file.close()
        file = Dataset(path, "a", parallel=True, comm=comm, info=MPI.Info())
    append(file, range(half, records), n, watch)
    with watch:
        file.close()
    return watch


def read(path: str, n: int, records: int) -> tuple[Watch, int]:
    """Read the neighbour's band; return the number of wrong values, too."""
    rows, watch = band((comm.rank + 1) % comm.size, n), Watch("climate")
    with watch:
        file = Dataset(path, "r", parallel=True, comm=comm, info=MPI.Info())
        file.set_auto_mask(False)
        for variable in file.variables.values():
            variable.set_collective(True)
        land, days = file["mask"][rows], file["time"][:]
        coordinates = {name: file[name][:] for name in COORDINATES}
    wrong = np.count_nonzero(land != mask(rows, n)) + np.count_nonzero(days != np.arange(records))
    wrong += sum(np.count_nonzero(found != coordinate(name, n)) for name, found in coordinates.items())
    for record in range(records):
        with watch:
            found = {name: file[name][place(name, record, rows)] for name in VARIABLES}
        wrong += sum(np.count_nonzero(found[name] != values(name, record, rows, n)) for name in VARIABLES)
    with watch:
        file.close()
    return watch, int(wrong)


def main() -> None:
    """Write, read, verify."""
    path, n, records = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    kind = sys.argv[4] if len(sys.argv) > 4 else "NETCDF3_64BIT_DATA"
    size_bytes = 2 * n * n * (2 + 4 * records * (2 * LEVELS + 2))
    write(path, n, records, kind).say("write", size_bytes)
    watch, wrong = read(path, n, records)
    watch.say("read", size_bytes)
    if wrong:
        print(f"climate: rank {comm.rank}: {wrong} wrong values", file=sys.stderr)
    if comm.allreduce(wrong):
        raise SystemExit(1)
    if comm.rank == 0:
        print("climate verified")


if __name__ == "__main__":
    main()
