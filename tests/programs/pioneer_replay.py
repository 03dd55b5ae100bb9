"""Carries out a path: ``pioneer_replay.py PATH FOLDER MOST_BYTES``. Rank 0 prints as JSON what was seen."""

from __future__ import annotations

import json
import pathlib
import sys

import mpiio_ext  # noqa: F401  # before mpi4py

# isort: split
from mpi4py import MPI

from mpiio_ext.pioneer.engine import replay
from mpiio_ext.pioneer.engine.run import NOT_MADE
from mpiio_ext.pioneer.path import WorkloadPath


def main() -> None:
    """Carry it out, and gather what became of it."""
    comm = MPI.COMM_WORLD
    path = WorkloadPath.load(pathlib.Path(sys.argv[1]))
    plan, outcome = replay(path, pathlib.Path(sys.argv[2]), comm, most_bytes=int(sys.argv[3]))
    gaps = (outcome.start[1:] - outcome.start[:-1] - outcome.duration[:-1]).tolist()
    late = [gap - wanted for gap, wanted in zip(gaps, plan.slack[1:].tolist(), strict=True)]
    seen = comm.gather(
        {
            "ids": plan.ids.tolist(),
            "made": (outcome.result != NOT_MADE).tolist(),
            "failed": outcome.failed,
            "left_out": outcome.left_out,
            "written": outcome.bytes_written,
            "read": outcome.bytes_read,
            "earliest_ns": min(late, default=0),
            "results": outcome.result.tolist(),
        }
    )
    if seen is not None:
        print("SEEN " + json.dumps(seen), flush=True)


if __name__ == "__main__":
    main()
