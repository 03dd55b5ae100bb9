"""Write and read netCDF files through the PnetCDF binding: ``pnetcdf_calls.py MODE FILE RESULT-FOLDER``.

MODE is "blocking", "nonblocking" or "independent": three ways to the same bytes. The file has fixed-size and
record variables of several types, so that PnetCDF converts, interleaves records and aggregates requests of different
variables. Every value is a formula of its index. Ranks without data take part with empty accesses.
"""

from __future__ import annotations

import json
import pathlib
import re
import sys
from typing import Any

import mpiio_ext.stats  # before mpi4py.MPI

# isort: split
import numpy as np
from mpi4py import MPI

from mpiio_ext.bench import pnetcdf

ROWS, COLUMNS, RECORDS = 12, 10, 3
ARRAY = Any


def whole(code: str, offset: int) -> ARRAY:
    """Return the array that a variable of a type holds in the end."""
    values = np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS) + offset
    return values.astype(code)


def rows_of(rank: int, size: int) -> slice:
    """Return the rows of a rank, as blocks; more ranks than three leave the last one without any."""
    parts = min(size, 3)
    return slice(rank * ROWS // parts, (rank + 1) * ROWS // parts) if rank < parts else slice(0, 0)


def pieces_of(rank: int, size: int) -> list[tuple[list[int], list[int]]]:
    """Return (start, count) of pieces that the ranks own in turn: half rows, the second half first."""
    halves = [(row, half) for row in range(ROWS) for half in (1, 0)]
    return [([row, half * 5], [1, 5]) for row, half in halves if (row * 2 + half) % size == rank]


def define(file: pnetcdf.File) -> dict[str, pnetcdf.Variable]:
    """Define dimensions and variables; leave define mode."""
    rows, columns = file.def_dim("rows", ROWS), file.def_dim("columns", COLUMNS)
    time = file.def_dim("time", None)
    variables = {
        "blocks": file.def_var("blocks", "f8", [rows, columns]),
        "pieces": file.def_var("pieces", "u4", [rows, columns]),
        "records": file.def_var("records", "f4", [time, rows, columns]),
        "other": file.def_var("other", "i2", [time, columns]),
        "scalar": file.def_var("scalar", "i8", []),
        "letters": file.def_var("letters", "S1", [columns]),
    }
    file.enddef()
    return variables


def put(file: pnetcdf.File, mode: str, variable: pnetcdf.Variable, start: Any, count: Any, data: ARRAY) -> None:
    """Write one subarray in a mode."""
    if mode == "independent":
        if data.size:
            file.put_vara(variable, start, count, data)
    elif mode == "blocking":
        file.put_vara_all(variable, start, count, data)
    else:
        file.iput_vara(variable, start, count, data)


def put_list(file: pnetcdf.File, mode: str, variable: pnetcdf.Variable, places: Any, data: ARRAY) -> None:
    """Write a list of subarrays in a mode; where it has no call for lists, one by one."""
    if mode != "nonblocking":
        for (start, count), part in zip(places, data.reshape(len(places), -1), strict=True):
            put(file, mode, variable, start, count, part)
        return
    starts = np.array([start for start, _ in places]).reshape(-1, 2)
    counts = np.array([count for _, count in places]).reshape(-1, 2)
    file.iput_varn(variable, starts, counts, data)


def write(path: str, mode: str, comm: MPI.Intracomm) -> dict[str, Any]:
    """Write the file; return the places of its variables."""
    rank, size = comm.rank, comm.size
    mine = rows_of(rank, size)
    with pnetcdf.File.create(path, comm, info={"nc_var_align_size": "512"}) as file:
        variables = define(file)
        if mode == "independent":
            file.begin_indep_data()
        number = mine.stop - mine.start
        put(file, mode, variables["blocks"], [mine.start, 0], [number, COLUMNS], whole("f8", 0)[mine].copy())
        places = pieces_of(rank, size)
        values = [whole("i8", 7)[row, column : column + 5] for (row, column), _ in places]
        put_list(file, mode, variables["pieces"], places, np.array(values).reshape(-1))  # converted from 64 bits
        for record in range(RECORDS):
            data = whole("f4", 1000 * record)[mine].copy()
            put(file, mode, variables["records"], [record, mine.start, 0], [1, number, COLUMNS], data)
            line = whole("i2", record)[0] if rank == record % size else np.empty(0, "i2")
            put(file, mode, variables["other"], [record, 0], [1, COLUMNS if line.size else 0], line.copy())
        if rank == 0 or mode != "independent":
            put(file, mode, variables["scalar"], [], [], np.array(4711))
        letters = np.frombuffer(b"abcdefghij", "S1") if rank == 0 else np.empty(0, "S1")
        put(file, mode, variables["letters"], [0], [letters.size], letters.copy())
        if mode == "nonblocking":
            file.wait_all()
        if mode == "independent":
            file.end_indep_data()
        file.sync()
        return {name: file.inq_varoffset(variable) for name, variable in variables.items()}


def read(path: str, mode: str, comm: MPI.Intracomm) -> bool:
    """Read with other places than were written, into plain memory and into a part of an array; compare."""
    rank, size = comm.rank, comm.size
    columns = slice(rank * COLUMNS // size, (rank + 1) * COLUMNS // size)
    width = columns.stop - columns.start
    with pnetcdf.File.open(path, comm) as file:
        blocks, pieces = file.variable("blocks"), file.variable("pieces")
        first = np.zeros((ROWS, width))
        second = np.zeros(ROWS * 5, "i8")
        starts = [[row, 5] for row in reversed(range(ROWS))]
        wide = np.full((ROWS, 2 * COLUMNS), -1, "f4")
        part = ((ROWS, 2 * COLUMNS), (0, 0), (ROWS, COLUMNS))
        places = ([0, columns.start], [ROWS, width])
        record = ([RECORDS - 1, 0, 0], [1, ROWS, COLUMNS])
        if mode == "nonblocking":
            file.iget_vara(blocks, *places, first)
            file.iget_varn(pieces, starts, [[1, 5]] * ROWS, second)
            file.iget_vara(file.variable("records"), *record, wide, part)
            file.wait_all()
        elif mode == "blocking":
            file.get_vara_all(blocks, *places, first)
            for start, row in zip(starts, second.reshape(ROWS, 5), strict=True):
                file.get_vara_all(pieces, start, [1, 5], row)
            file.get_vara_all(file.variable("records"), *record, wide, part)
        else:
            with file.independent():
                file.get_vara(blocks, *places, first)
                for start, row in zip(starts, second.reshape(ROWS, 5), strict=True):
                    file.get_vara(pieces, start, [1, 5], row)
                file.get_vara(file.variable("records"), *record, wide, part)
        single = np.zeros(COLUMNS, "i2")
        file.get_vara_all(file.variable("other"), [1, 0], [1, COLUMNS], single)
    return bool(
        np.array_equal(first, whole("f8", 0)[:, columns])
        and np.array_equal(second.reshape(ROWS, 5), whole("i8", 7)[::-1, 5:])
        and np.array_equal(wide[:, :COLUMNS], whole("f4", 1000 * (RECORDS - 1)))
        and (wide[:, COLUMNS:] == -1).all()
        and np.array_equal(single, whole("i2", 1)[0])
    )


def main() -> None:
    """Write, read, say what happened."""
    mode, path, folder = sys.argv[1:]
    comm = MPI.COMM_WORLD
    before = mpiio_ext.stats.total()
    offsets = write(path, mode, comm)
    written = mpiio_ext.stats.total()
    comm.Barrier()
    equal = read(path, mode, comm)
    both = mpiio_ext.stats.total()
    mapped = {line.split()[-1] for line in pathlib.Path("/proc/self/maps").read_text().splitlines() if "/lib" in line}
    result = {
        "equal": equal,
        "offsets": offsets,
        "collective_writes": written.collective_writes - before.collective_writes,
        "independent_writes": written.independent_writes - before.independent_writes,
        "bytes_written": sum(
            getattr(written, name) - getattr(before, name) for name in ("bytes_written", "independent_bytes_written")
        ),
        "collective_reads": both.collective_reads - before.collective_reads,
        "independent_reads": both.independent_reads - before.independent_reads,
        "native_calls": both.native_calls - before.native_calls,
        "errors": both.errors - before.errors,
        "opens": both.calls.get("MPI_File_open", 0) - before.calls.get("MPI_File_open", 0),
        "mpis": sorted(path for path in mapped if re.search(r"/libmpi(ch)?\.so", path)),
    }
    pathlib.Path(folder, f"{comm.rank}.json").write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
