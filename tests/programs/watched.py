"""Writes pieces by itself on every rank and, before it closes the file, has its delegates looked at from outside.

watched.py FILE RESULT: RESULT is what `mpiio-ext delegates status --json` printed, and what `own()` says on each rank.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import mpiio_ext.delegates
import mpiio_ext.stats  # before mpi4py.MPI

# isort: split
import numpy as np
from mpi4py import MPI

PIECE, PIECES, CALLS = 512, 300, 3


def status() -> Any:
    """Run the command in a process of its own, which is no rank."""
    words = [sys.executable, "-m", "mpiio_ext", "delegates", "status", "--json", "--interval", "0.2"]
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMI", "MPIOX_", "HYDRA"))
    }
    return json.loads(subprocess.run(words, env=kept, capture_output=True, text=True, timeout=60, check=True).stdout)


def main() -> None:
    comm = MPI.COMM_WORLD
    path, result = sys.argv[1:]
    file = MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_RDWR)
    piece = MPI.BYTE.Create_contiguous(PIECE)
    filetype = piece.Create_resized(0, PIECE * comm.size).Commit()
    file.Set_view(comm.rank * PIECE, MPI.BYTE, filetype)
    data = np.full(PIECES * PIECE, comm.rank + 1, np.uint8)
    for call in range(CALLS):
        file.Write_at(call * data.size, data)
    comm.Barrier()
    own = [
        {"delegate": item.delegate, "bytes_written": item.counters["bytes_written"], "group": item.group}
        for item in mpiio_ext.delegates.own()
    ]
    seen = comm.gather({"own": own, "delegation": mpiio_ext.stats.of(file).delegation})
    if comm.rank == 0:
        with open(result, "w", encoding="utf-8") as out:
            json.dump({"status": status(), "ranks": seen}, out)
    comm.Barrier()
    file.Close()
    filetype.Free()
    piece.Free()


if __name__ == "__main__":
    main()
