#!/bin/bash
# Intel MPI 2021.18.1: every write and every read of a local file (ext4, tmpfs) is made between two calls of fcntl that lock
# and unlock its range, as ROMIO does on NFS. I_MPI_EXTRA_FILESYSTEM=on, described for parallel file systems (Lustre, GPFS),
# ends that: the same program makes none.
#
# Expected: a file system with POSIX semantics needs no lock for an access that is not atomic, and MPICH's ROMIO takes none.
#
# Seen with the wheels impi-rt 2021.18.1 and mpich 5.0.2 and mpi4py 4.1.2, 1 rank, 100 writes and 100 reads, ext4:
#     impi-rt 2021.18.1: 400 calls that lock or unlock
#     impi-rt 2021.18.1, I_MPI_EXTRA_FILESYSTEM=on: 0 calls that lock or unlock
#     mpich 5.0.2: 0 calls that lock or unlock
# Exit status 0: as seen; 1: the behaviour has changed; another: it could not be tried.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
command -v cc >/dev/null || { echo "needs a C compiler" >&2; exit 2; }

cat >"$folder/count.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>

int locks;

static int counted(const char *name, int fd, int command, void *argument)
{
    int (*next)(int, int, ...) = (int (*)(int, int, ...))dlsym(RTLD_NEXT, name);

    locks += command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW;
    return next(fd, command, argument);
}

#define FCNTL(name)                                                                                                    \
    int name(int fd, int command, ...)                                                                                 \
    {                                                                                                                  \
        va_list rest;                                                                                                  \
        va_start(rest, command);                                                                                       \
        void *argument = va_arg(rest, void *);                                                                         \
        va_end(rest);                                                                                                  \
        return counted(#name, fd, command, argument);                                                                  \
    }
FCNTL(fcntl)
FCNTL(fcntl64)
C
cc -shared -fPIC -o "$folder/count.so" "$folder/count.c" -ldl || exit 2
cat >"$folder/access.py" <<'PROGRAM'
import ctypes
import sys

from mpi4py import MPI

locks = ctypes.c_int.in_dll(ctypes.CDLL(None), "locks")
file = MPI.File.Open(MPI.COMM_WORLD, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)
block, before = bytearray(4096), locks.value
for number in range(100):
    file.Write_at(number * 4096, block)
for number in range(100):
    file.Read_at(number * 4096, block)
print(locks.value - before, "calls that lock or unlock")
file.Close()
PROGRAM

for library in impi-rt==2021.18.1 mpich==5.0.2; do
    python3 -m venv "$folder/${library%%=*}"
    "$folder/${library%%=*}/bin/python" -m pip install -q --disable-pip-version-check "$library" mpi4py==4.1.2 >&2 || exit 2
done
run() { # variables and the environment's name, whose program is run
    local library=${!#}
    timeout 120 env FI_PROVIDER=tcp LD_PRELOAD="$folder/count.so" "${@:1:$#-1}" \
        "$folder/$library/bin/python" "$folder/access.py" "$folder/data" >>"$folder/seen" || exit 2
    rm "$folder/data"
}
intel=(I_MPI_ROOT="$folder/impi-rt" LD_LIBRARY_PATH="$folder/impi-rt/lib" MPI4PY_MPIABI=impi)
printf 'impi-rt 2021.18.1: ' >>"$folder/seen"
run "${intel[@]}" impi-rt
printf 'impi-rt 2021.18.1, I_MPI_EXTRA_FILESYSTEM=on: ' >>"$folder/seen"
run "${intel[@]}" I_MPI_EXTRA_FILESYSTEM=on impi-rt
printf 'mpich 5.0.2: ' >>"$folder/seen"
run mpich
cat "$folder/seen"
diff - "$folder/seen" <<'SEEN' || { echo "changed: see the lines above" >&2; exit 1; }
impi-rt 2021.18.1: 400 calls that lock or unlock
impi-rt 2021.18.1, I_MPI_EXTRA_FILESYSTEM=on: 0 calls that lock or unlock
mpich 5.0.2: 0 calls that lock or unlock
SEEN
