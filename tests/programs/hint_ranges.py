"""Write and read a file in every way under each of some hints in turn, and once by the MPI library alone.

Usage: hint_ranges.py FOLDER HINTS... Prints for each "SEEN " and the values in force; a wrong byte is an error.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys

import numpy as np

from mpiio_ext import hints  # isort: skip  # before MPI
from mpi4py import MPI

COMM, COUNT = MPI.COMM_WORLD, 9000
WAYS = ("all", "at", "runs")


def access(path: pathlib.Path, way: str, *, plain: bool) -> dict[str, str]:
    """Write interleaved ints, or runs of them, and read them back; return the hints in force."""
    info = MPI.Info.Create()
    if plain:
        info.Set("mpiox_enable", "false")
    fh = MPI.File.Open(COMM, str(path), MPI.MODE_CREATE | MPI.MODE_RDWR, info)
    block = 1 if way != "runs" else COUNT // 3
    ints = MPI.INT.Create_contiguous(block).Create_resized(0, 4 * block * COMM.size).Commit()
    fh.Set_view(4 * block * COMM.rank, MPI.INT, ints)
    mine, back = np.arange(COUNT, dtype=np.int32) * COMM.size + COMM.rank, np.full(COUNT, -1, np.int32)
    half = COUNT // 2
    if way == "all":
        fh.Write_all(mine)
        fh.Seek(0)
        fh.Read_all(back)
    else:
        fh.Write_at(0, mine[:half])
        fh.Write_at(half, mine[half:])
        fh.Sync()
        COMM.Barrier()
        fh.Read_at(0, back)
    assert np.array_equal(mine, back), (path, way)
    seen = {} if plain else {hint.spec.name: hint.value for hint in hints.of(fh)}
    fh.Close()
    return seen


def content(path: pathlib.Path) -> bytes:
    """Return what is in a file, which may be stored as several."""
    fh = MPI.File.Open(MPI.COMM_SELF, str(path), MPI.MODE_RDONLY)
    data = np.empty(fh.Get_size(), np.uint8)
    fh.Read_at(0, data)
    fh.Close()
    return data.tobytes()


alone: dict[str, bytes] = {}
for number, text in enumerate(sys.argv[2:]):
    os.environ["MPIOX_HINTS"] = text
    folder = pathlib.Path(sys.argv[1], str(number))
    folder.mkdir(exist_ok=True)
    COMM.Barrier()
    seen: dict[str, str] = {}
    for way in WAYS:
        seen |= access(folder / f"ours.{way}", way, plain=False)
        if number == 0:
            access(folder / f"plain.{way}", way, plain=True)
    COMM.Barrier()
    if COMM.rank == 0:
        for way in WAYS:
            if number == 0:
                alone[way] = content(folder / f"plain.{way}")
                assert len(alone[way]) == 4 * COUNT * COMM.size
            ours = content(folder / f"ours.{way}")
            if ours != alone[way]:
                wrong = sum(a != b for a, b in zip(ours, alone[way], strict=False))
                raise AssertionError(f"{text}, {way}: {wrong} bytes, {len(ours)} long")
        print("SEEN", json.dumps(seen))
