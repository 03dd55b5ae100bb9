"""Write and read a file in every way under the hints of the environment, and another by the MPI library alone.

Usage: hint_ranges.py FOLDER. Prints "SEEN " and the values in force; ends with an error on a wrong byte.
"""

from __future__ import annotations

import json
import pathlib
import sys

import numpy as np

from mpiio_ext import hints  # isort: skip  # before MPI
from mpi4py import MPI

COMM, FOLDER, COUNT = MPI.COMM_WORLD, pathlib.Path(sys.argv[1]), 9000
WAYS = ("all", "at", "runs")


def access(name: str, way: str, *, plain: bool) -> None:
    """Write interleaved ints, or runs of them, and read them back."""
    info = MPI.Info.Create()
    if plain:
        info.Set("mpiox_enable", "false")
    fh = MPI.File.Open(COMM, str(FOLDER / name), MPI.MODE_CREATE | MPI.MODE_RDWR, info)
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
    assert np.array_equal(mine, back), (name, way)
    if not plain:
        seen.update({hint.spec.name: hint.value for hint in hints.of(fh)})
    fh.Close()


seen: dict[str, str] = {}
for way in WAYS:
    access(f"ours.{way}", way, plain=False)
    access(f"plain.{way}", way, plain=True)
COMM.Barrier()
if COMM.rank == 0:
    for way in WAYS:
        ours, plain = ((FOLDER / f"{who}.{way}").read_bytes() for who in ("ours", "plain"))
        assert len(plain) == 4 * COUNT * COMM.size
        assert ours == plain, f"{way}: {sum(a != b for a, b in zip(ours, plain, strict=False))} bytes, {len(ours)} long"
    print("SEEN", json.dumps(seen))
