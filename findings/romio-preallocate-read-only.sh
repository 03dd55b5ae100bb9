#!/bin/bash
# MPICH 5.0.2 (ROMIO): MPI_File_preallocate of a file that every rank has opened with MPI_MODE_RDONLY raises an error on
# rank 0 alone; every other rank gets MPI_SUCCESS. MPI_File_set_size of the same file raises its error on every rank.
#
# Expected: both calls are collective, so that one gives an error where the other does: on every rank. A program that
# leaves its I/O phase on an error leaves it on rank 0 alone here; the other ranks then wait for rank 0 in their next
# collective call.
#
# Seen with mpich 5.0.2 and mpi4py 4.1.2, 2 ranks, on ext4 and tmpfs:
#     rank 0: preallocate MPI_ERR_IO, set_size MPI_ERR_READ_ONLY
#     rank 1: preallocate MPI_SUCCESS, set_size MPI_ERR_READ_ONLY
# Exit status 0: as seen; 1: the behaviour has changed; another: it could not be tried.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install -q --disable-pip-version-check mpich==5.0.2 mpi4py==4.1.2 >&2 || exit 2

cat >"$folder/errors.py" <<'PROGRAM'
import sys

from mpi4py import MPI

NAMES = {getattr(MPI, name): f"MPI_{name}" for name in dir(MPI) if name.startswith("ERR_")} | {0: "MPI_SUCCESS"}


def outcome(call, size):
    try:
        call(size)
    except MPI.Exception as error:
        return NAMES[error.Get_error_class()]
    return NAMES[0]


world = MPI.COMM_WORLD
if world.rank == 0:
    with open(sys.argv[1], "wb") as made:
        made.write(bytes(100))
world.Barrier()
file = MPI.File.Open(world, sys.argv[1], MPI.MODE_RDONLY)  # errors of files are returned: mpi4py raises them
mine = f"rank {world.rank}: preallocate {outcome(file.Preallocate, 5000)}, set_size {outcome(file.Set_size, 50)}"
file.Close()
lines = world.gather(mine)
if world.rank == 0:
    print("\n".join(lines))
PROGRAM

timeout 120 "$folder/venv/bin/mpiexec" -n 2 "$folder/venv/bin/python" "$folder/errors.py" "$folder/data" |
    tee "$folder/seen" || exit 2
diff - "$folder/seen" <<'SEEN' || { echo "changed: see the lines above" >&2; exit 1; }
rank 0: preallocate MPI_ERR_IO, set_size MPI_ERR_READ_ONLY
rank 1: preallocate MPI_SUCCESS, set_size MPI_ERR_READ_ONLY
SEEN
