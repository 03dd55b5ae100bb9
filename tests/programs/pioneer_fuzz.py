"""Random spoilt paths: ``pioneer_fuzz.py FOLDER SEED COUNT [ENGINE]``; what `check` accepts is carried out to its end.

ENGINE is a library of the engine in place of the installed one, under sanitizers for example. Rank 0 prints how many
paths were refused and carried out, and what their calls came to.
"""

from __future__ import annotations

import contextlib
import io
import pathlib
import random
import shutil
import sys

import mpiio_ext  # noqa: F401  # before mpi4py

# isort: split
from mpi4py import MPI

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from mpiio_ext.pioneer.cli import _check_path
from mpiio_ext.pioneer.engine import library, replay
from mpiio_ext.pioneer.engine.run import NOT_MADE
from mpiio_ext.pioneer.path import WorkloadPath
from support.pioneer_random import spoilt_path


def _accepted(path: WorkloadPath, place: pathlib.Path) -> bool:
    """Return whether the command `check` has nothing against a path."""
    path.save(place)
    with contextlib.redirect_stdout(io.StringIO()):
        return _check_path(str(place)) == 0


def main() -> None:
    """Go through the paths; all ranks have the same ones."""
    comm = MPI.COMM_WORLD
    folder, seed, count = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    if len(sys.argv) > 4:
        library.get_library = lambda: pathlib.Path(sys.argv[4])
    refused = made = failed = left_out = 0
    for number in range(seed, seed + count):
        print(f"rank {comm.rank}: path {number}", file=sys.stderr, flush=True)  # the last one is what went wrong
        path = spoilt_path(random.Random(number))
        if not _accepted(path, folder / f"path.{comm.rank}.parquet"):
            refused += 1
            continue
        place = folder / f"below.{number}"
        place.mkdir(exist_ok=True)
        comm.Barrier()
        _, outcome = replay(path, place, comm, time_scale=0)
        assert (outcome.result == NOT_MADE).sum() == outcome.left_out, f"path {number}"
        assert (outcome.error > 0).sum() == outcome.failed, f"path {number}"
        made, failed, left_out = made + 1, failed + outcome.failed, left_out + outcome.left_out
        comm.Barrier()
        if comm.rank == 0:
            shutil.rmtree(place)
    if len(sys.argv) > 4:  # the library under test is the one that was asked for
        assert sys.argv[4].replace(".so", "_engine.so") in pathlib.Path("/proc/self/maps").read_text(encoding="utf-8")
    if comm.rank == 0:
        print(f"FUZZ {refused} refused, {made} carried out, {failed} calls failed, {left_out} left out", flush=True)


if __name__ == "__main__":
    main()
