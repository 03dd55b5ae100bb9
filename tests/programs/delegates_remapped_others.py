"""World rank 0 leads no file: the job is announced all the same. tests/mpi/test_arbiter_live.py.

    delegates_remapped_others.py FILE ANNOUNCED

The other ranks open the file and wait until ANNOUNCED, a folder, is not empty. Then rank 1 prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time

import mpiio_ext.stats  # isort: skip  (before mpi4py)
import numpy as np
from mpi4py import MPI

LIMIT_S = 60.0


def main() -> None:
    """Open, wait, report."""
    path, folder = sys.argv[1:3]
    world = MPI.COMM_WORLD
    others = world.Split(0 if world.rank > 0 else MPI.UNDEFINED, world.rank)
    if world.rank > 0:
        file = MPI.File.Open(others, path, MPI.MODE_CREATE | MPI.MODE_RDWR)
        file.Write_at(others.rank, np.array([7], np.uint8))
        deadline = time.monotonic() + LIMIT_S
        names: list[str] = []
        while not names and time.monotonic() < deadline:
            names = [name for name in os.listdir(folder) if not name.startswith(".")]
            time.sleep(0.05)
        others.Barrier()
        delegated = mpiio_ext.stats.of(file).delegated_writes
        file.Close()
        if world.rank == 1:
            print(json.dumps({"announced": names, "delegated_writes": delegated}), flush=True)


if __name__ == "__main__":
    main()
