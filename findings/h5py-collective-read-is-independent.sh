#!/bin/bash
# h5py 3.16.0 (parallel): inside `with dataset.collective:` a read by slicing, dataset[a:b], is carried out independently.
# No error or warning says so. A write there is collective, and so is dataset.read_direct(). Datasets of integers or
# floats, read by integers, slices and Ellipsis, are concerned: the usual case. h5py takes a faster way for these, which
# passes HDF5 no transfer property list.
#
# Expected: the documentation calls the context manager one for "MPI collective reads & writes".
# A program loses the collective read: many small requests where aggregators would make few large ones.
#
# Seen with h5py 3.16.0 built from its source for Debian's HDF5 1.10.8 and Open MPI 4.1.4, mpi4py 4.1.2, 2 ranks; calls of
# MPI-IO that read the data (8 KiB a rank), of rank 0:
#     slice: 0 collective, 1 independent
#     read_direct: 1 collective, 0 independent
# Exit status 0: as seen; 1: the behaviour has changed; another: it could not be tried.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
hdf5=$(dirname "$(find /usr/lib -name libhdf5.so -path '*hdf5/openmpi*' -print -quit)") || exit 2
[[ $hdf5 != . ]] && command -v mpicc.openmpi >/dev/null ||
    { echo "needs Debian's packages libhdf5-openmpi-dev and libopenmpi-dev" >&2; exit 2; }

cat >"$folder/count.c" <<'C'
#include <mpi.h>
#include <stdio.h>

static int collective, independent;
enum { DATA = 8192 };

static int is_data(int count, MPI_Datatype type)
{
    int size;
    MPI_Type_size(type, &size);
    return (long long)count * size == DATA;
}

int MPI_File_read_at(MPI_File file, MPI_Offset offset, void *buffer, int count, MPI_Datatype type, MPI_Status *status)
{
    independent += is_data(count, type);
    return PMPI_File_read_at(file, offset, buffer, count, type, status);
}

int MPI_File_read_at_all(MPI_File file, MPI_Offset offset, void *buffer, int count, MPI_Datatype type, MPI_Status *status)
{
    collective += is_data(count, type);
    return PMPI_File_read_at_all(file, offset, buffer, count, type, status);
}

int MPI_Finalize(void)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        printf("%d collective, %d independent\n", collective, independent);
    fflush(stdout);
    return PMPI_Finalize();
}
C
cat >"$folder/read.py" <<'PROGRAM'
import sys

import h5py
import numpy
from mpi4py import MPI

world, each = MPI.COMM_WORLD, 1024
mine = numpy.s_[world.rank * each : (world.rank + 1) * each]
with h5py.File(sys.argv[1], "w", driver="mpio", comm=world) as file:
    file.create_dataset("x", (world.size * each,), "f8")[mine] = world.rank
with h5py.File(sys.argv[1], "r", driver="mpio", comm=world) as file:
    dataset, found = file["x"], numpy.empty(each)
    with dataset.collective:
        if sys.argv[2] == "slice":
            found = dataset[mine]
        else:
            dataset.read_direct(found, mine)
    assert (found == world.rank).all()
PROGRAM

python3 -m venv "$folder/venv"
pip=("$folder/venv/bin/python" -m pip install -q --disable-pip-version-check)
export CC=mpicc.openmpi HDF5_MPI=ON MPI4PY_MPIABI=openmpi HDF5_INCLUDEDIR=/usr/include/hdf5/openmpi HDF5_LIBDIR=$hdf5
"${pip[@]}" setuptools==80.9.0 wheel==0.45.1 pkgconfig==1.5.5 cython==3.1.4 numpy==2.3.3 mpi4py==4.1.2 >&2 || exit 2
"${pip[@]}" --no-binary=h5py --no-build-isolation h5py==3.16.0 >&2 || exit 2
mpicc.openmpi -shared -fPIC -o "$folder/count.so" "$folder/count.c" || exit 2

for way in slice read_direct; do
    printf '%s: ' "$way" >>"$folder/seen"
    timeout 120 mpirun.openmpi -n 2 env LD_PRELOAD="$folder/count.so" \
        "$folder/venv/bin/python" "$folder/read.py" "$folder/data.h5" "$way" >>"$folder/seen" || exit 2
done
cat "$folder/seen"
diff - "$folder/seen" <<'SEEN' || { echo "changed: see the lines above" >&2; exit 1; }
slice: 0 collective, 1 independent
read_direct: 1 collective, 0 independent
SEEN
