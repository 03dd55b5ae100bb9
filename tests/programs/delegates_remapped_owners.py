"""One rank knows that page ranges have changed hands, one does not, and their old owners die: test_arbiter_deaths.py.

    delegates_remapped_owners.py FILE

Rank 0 writes the file. When the test has moved all page ranges to one delegate, rank 1 reads it all, and learns that.
When the test has killed the other delegates rank 0 writes everything anew, and both read it. The ranks and the test
meet at files beside FILE. Rank 0 prints a line of JSON.
"""

from __future__ import annotations

import json
import pathlib
import sys
import time

import mpiio_ext.delegates  # isort: skip  (before mpi4py)
import numpy as np
from mpi4py import MPI

PAGES, PIECE = 40, 2048  # pieces are small enough to be cached
BYTES = PAGES * 4096
LIMIT_S = 120.0


def meet(path: str, says: str, waits: str, text: str = "") -> None:
    """Tell the test that both ranks have come so far, and wait for it."""
    world = MPI.COMM_WORLD
    world.Barrier()
    if world.rank == 0:
        draft = pathlib.Path(f"{path}.draft")
        draft.write_text(text)
        draft.replace(f"{path}.{says}")
        deadline = time.monotonic() + LIMIT_S
        while not pathlib.Path(f"{path}.{waits}").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
    world.Barrier()


def write(file: MPI.File, value: int) -> None:
    """Write the whole file."""
    for at in range(0, BYTES, PIECE):
        file.Write_at(at, np.full(PIECE, value, np.uint8))


def is_read(file: MPI.File, value: int) -> bool:
    """Is every byte of the file this one?"""
    got = np.zeros(BYTES, np.uint8)
    for at in range(0, BYTES, PIECE):
        file.Read_at(at, got[at : at + PIECE])
    return bool((got == value).all())


def main() -> None:
    """Write, meet the test twice, write again, compare."""
    path = sys.argv[1]
    world = MPI.COMM_WORLD
    file = MPI.File.Open(world, path, MPI.MODE_CREATE | MPI.MODE_RDWR)
    mine = {item.delegate: item.pid for item in mpiio_ext.delegates.own()}  # those of this rank's node
    pids = {index: pid for each in world.allgather(mine) for index, pid in each.items()}
    if world.rank == 0:
        write(file, 1)
    file.Sync()
    meet(path, "written", "moved", json.dumps(pids))
    first = world.rank == 0 or is_read(file, 1)
    meet(path, "known", "killed")
    if world.rank == 0:
        write(file, 2)
    world.Barrier()  # a sync would drop what is cached, right or wrong
    second = is_read(file, 2)
    file.Close()
    with open(path, "rb") as plain:
        same = plain.read() == bytes([2]) * BYTES
    found = world.gather([first, second, same], 0)
    if world.rank == 0:
        print(json.dumps({"right": found}), flush=True)


if __name__ == "__main__":
    main()
