"""Files opened until no descriptor is left, then used: ``many_open.py FOLDER MOST``, with a low ``ulimit -n``.

Rank 0 prints one JSON line: how many files each rank has got, and the error that the next open gave on each.
"""

from __future__ import annotations

import json
import resource
import sys

import numpy as np
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
DESCRIPTORS = 128


def main() -> None:
    """Open, write, read, close."""
    folder, most = sys.argv[1], int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    files: list[MPI.File] = []
    error = ""
    while len(files) < most and not error:
        try:
            files.append(MPI.File.Open(WORLD, f"{folder}/{len(files)}", MPI.MODE_CREATE | MPI.MODE_RDWR))
        except MPI.Exception as caught:
            error = caught.Get_error_string()
    for number, file in enumerate(files):
        mine = np.full(100, number + WORLD.rank, np.uint8)
        file.Write_at_all(100 * WORLD.rank, mine)
        found = np.zeros(100, np.uint8)
        file.Read_at_all(100 * WORLD.rank, found)
        assert np.array_equal(found, mine), f"rank {WORLD.rank}, file {number}"
    for file in files:
        file.Close()
    told = WORLD.gather((len(files), error))
    if told is not None:
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
