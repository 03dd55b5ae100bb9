"""Plans with a number out of range: ``pioneer_wrong_plan.py FOLDER``; the engine refuses each on all ranks.

Rank 0 prints what every rank was told, by the column that was spoilt on the last rank.
"""

from __future__ import annotations

import json
import pathlib
import sys

import mpiio_ext  # noqa: F401  # before mpi4py

# isort: split
from mpi4py import MPI

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from mpiio_ext.pioneer.engine import Places, carry_out, make_plan
from support.pioneer_paths import path_of, row

ROWS = [
    row("open", "a.{rank}", "private", extra={"flags": 66}),
    row("unlink", "b.{rank}", "private"),
    row("rename", "c.{rank}", "private", extra={"file2": "d.{rank}"}),
    row("close", "a.{rank}", "private"),
]
SPOILT = {
    "file": (1, 99),
    "second": (2, 7),
    "slot": (0, 5),
    "operation": (1, 250),
    "size": (1, -1),
    "request": (1, 3),
    "other": (1, 0),
    "no file": (1, -1),
    "no second": (2, -1),
    "no slot": (0, -1),
}


def main() -> None:
    """Spoil one number after the other."""
    comm, said = MPI.COMM_WORLD, {}
    for what, (place, value) in SPOILT.items():
        plan = make_plan(path_of(ROWS), comm.rank, comm.size, Places(pathlib.Path(sys.argv[1])))
        if comm.rank == comm.size - 1:
            getattr(plan, what.removeprefix("no "))[place] = value
        try:
            carry_out(plan, comm, time_scale=0)
            told = "carried out"
        except ValueError as error:
            told = str(error)
        said[what] = comm.gather(told)
    if comm.rank == 0:
        print("SAID " + json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
