"""Ranks that are killed while they move page ranges: tests/mpi/test_arbiter_deaths.py.

    delegates_remapped_deaths.py FILE SECONDS

Every rank opens one file by itself, so that each of them moves page ranges, and says who it is in FILE.RANK. It writes
its own part and reads it back for SECONDS. Who is alive then closes the file, compares its part as plain reads find it,
prints a line of JSON, and leaves without MPI_Finalize, which would wait for the dead.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import time

import mpiio_ext.stats  # isort: skip  (before mpi4py)
import numpy as np
from mpi4py import MPI

BYTES = 1 << 19  # of each rank


def main() -> None:
    """Write, read, compare."""
    path, seconds = sys.argv[1], float(sys.argv[2])
    rank = MPI.COMM_WORLD.rank
    rng = np.random.default_rng([2, rank])
    own, base = np.zeros(BYTES, np.uint8), rank * BYTES
    file = MPI.File.Open(MPI.COMM_SELF, path, MPI.MODE_CREATE | MPI.MODE_RDWR)
    file.Write_at(base, own)
    draft = pathlib.Path(f"{path}.{rank}.draft")
    draft.write_text(str(os.getpid()))
    draft.replace(f"{path}.{rank}")
    accesses = wrong = 0
    begun = time.monotonic()
    while time.monotonic() - begun < seconds:
        length = int(rng.integers(1, 9000))
        at = int(rng.integers(0, BYTES - length))
        if rng.random() < 0.6:
            piece = rng.integers(1, 256, length, dtype=np.uint8)
            file.Write_at(base + at, piece)
            own[at : at + length] = piece
        else:
            got = np.zeros(length, np.uint8)
            file.Read_at(base + at, got)
            wrong += not np.array_equal(got, own[at : at + length])
        accesses += 1
    remapped = mpiio_ext.stats.of(file).remapped_ranges
    file.Close()
    with open(path, "rb") as plain:
        plain.seek(base)
        same = plain.read(BYTES) == own.tobytes()
    line = {"rank": rank, "accesses": accesses, "wrong_reads": wrong, "same": same, "remapped_ranges": remapped}
    os.write(1, (json.dumps(line) + "\n").encode())  # at once, and not mixed with another rank's
    os._exit(0)


if __name__ == "__main__":
    main()
