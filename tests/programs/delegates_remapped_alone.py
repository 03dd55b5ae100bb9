"""Every rank opens and closes one file by itself, all the time: tests/mpi/test_arbiter_live.py.

    delegates_remapped_alone.py FILE SECONDS

Records of the file come and go at the delegates while its page ranges are not where they were in the beginning. Each
rank prints a line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time

import mpiio_ext  # isort: skip  (before mpi4py)
import numpy as np
from mpi4py import MPI

PAGES, PAGE = 8, 4096
assert mpiio_ext


def main() -> None:
    """Open, write, read, close."""
    path, seconds = sys.argv[1], float(sys.argv[2])
    rank = MPI.COMM_WORLD.rank
    stays = MPI.File.Open(MPI.COMM_SELF, f"{path}.{rank}", MPI.MODE_CREATE | MPI.MODE_RDWR)
    stays.Write_at(0, np.zeros(9, np.uint8))
    opened = wrong = 0
    begun = time.monotonic()
    while time.monotonic() - begun < seconds:
        file = MPI.File.Open(MPI.COMM_SELF, path, MPI.MODE_CREATE | MPI.MODE_RDWR)
        opened += 1
        own = np.full(PAGE, opened % 255 + 1, np.uint8)
        got = np.zeros_like(own)
        for page in range(rank * PAGES, (rank + 1) * PAGES):
            file.Write_at(page * PAGE, own)
        for page in range(rank * PAGES, (rank + 1) * PAGES):
            file.Read_at(page * PAGE, got)
            wrong += not np.array_equal(own, got)
        file.Close()
    stays.Close()
    line = {"opened": opened, "wrong_reads": wrong, "same": wrong == 0}
    os.write(1, (json.dumps(line) + "\n").encode())  # not mixed with another rank's


if __name__ == "__main__":
    main()
