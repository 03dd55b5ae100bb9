"""The newest write of a rank wins while page ranges change hands: tests/mpi/test_arbiter_live.py.

    delegates_remapped_behind.py FILE SECONDS LEAST

Rank 0 writes rising numbers to the same places, in a file that is only written, so that small writes are collected.
After every sync the file must hold the last one of each place. Rank 0 prints one line of JSON. The program ends after
SECONDS, when LEAST page ranges have changed hands: 60 s at most.
"""

from __future__ import annotations

import json
import sys
import time

import mpiio_ext.stats  # isort: skip  (before mpi4py)
import numpy as np
from mpi4py import MPI

PLACES, APART = 120, 4096


def write(file: MPI.File, first: int) -> int:
    """Write for a while. Returns the last number."""
    number, begun = first, time.monotonic()
    while time.monotonic() - begun < 0.15:
        for place in range(PLACES):
            number += 1
            file.Write_at(place * APART, np.array([number], np.int64))
    return number


def main() -> None:
    """Write, synchronise, compare."""
    path, seconds, least = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    world = MPI.COMM_WORLD
    file = MPI.File.Open(world, path, MPI.MODE_CREATE | MPI.MODE_WRONLY)
    last = old = remapped = 0
    begun, on = time.monotonic(), True
    while on:
        if world.rank == 0:
            last = write(file, last)
        file.Sync()
        if world.rank == 0:
            with open(path, "rb") as plain:
                for place in range(PLACES):
                    plain.seek(place * APART)
                    old += int(np.frombuffer(plain.read(8), np.int64)[0]) != last - PLACES + place + 1
        remapped, spent = mpiio_ext.stats.of(file).remapped_ranges, time.monotonic() - begun
        on = world.bcast(spent < seconds or (remapped < least and spent < 60), 0)
    file.Close()
    if world.rank == 0:
        print(json.dumps({"writes": last, "old": old, "remapped_ranges": remapped}), flush=True)


if __name__ == "__main__":
    main()
