"""Somebody exchanges two folders while MPI_File_open makes a file with a staging name in one of them.

The program is stopped for that before one of rank 0's opens of a staging name, each time before another; delegates are
threads of rank 0, so that theirs are among them. Whichever folder the file comes to, it is whole there, or nowhere.
Open MPI is tried with one rank: where the folders are exchanged between the opens of two ranks, OMPIO's MPI_File_open
hangs, also by itself; one rank waits in its close, the others for the shared file pointer.
"""

from __future__ import annotations

import pathlib
import sys

import pytest

from support import cbuild
from support.launch import PROGRAMS, mpi_run, preload_environment
from support.marks import slow

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]

BYTES = 100_000
HINTS = (
    "*:mpiox_delegates=2:mpiox_delegate_mode=thread:mpiox_close=staged:mpiox_delegate_cache=8m"
    ":mpiox_delegate_page=64k:striping_unit=64k"
)
PROGRAM = """
import sys
import numpy as np
from mpi4py import MPI

comm, bytes_ = MPI.COMM_WORLD, int(sys.argv[2])
try:
    fh = MPI.File.Open(comm, sys.argv[1], MPI.MODE_RDWR | MPI.MODE_CREATE)
except MPI.Exception:
    done = "refused"
else:
    fh.Write_at_all(comm.rank * bytes_, np.full(bytes_, 65 + comm.rank, "u1"))
    fh.Close()
    done = "closed"
print(comm.gather(done) or "", end="", flush=True)
"""


@pytest.mark.both_with("1-1 times", "5-1 times")
@pytest.mark.parametrize("more", [0, *slow(1, 3)], ids=lambda more: f"{more + 1} times")
@pytest.mark.parametrize("at", [1, *slow(4), 5, 7, 9, *slow(2, 3, 6, 8, 10)])
def test_two_folders_are_exchanged(family: str, tmp_path: pathlib.Path, at: int, more: int) -> None:
    """It has its name in one of the folders, with all bytes; where MPICH refuses it on every rank, nothing is left."""
    preload = cbuild.compile_c(
        [cbuild.compiler(), *cbuild.FLAGS, "-shared", "-fPIC", str(PROGRAMS / "exchanged.c"), "-ldl"], "exchanged.so"
    )
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
    environment = {
        "LD_PRELOAD": f"{preload}:{preload_environment()['LD_PRELOAD']}",
        "MPIOX_HINTS": HINTS,
        "EXCHANGE_A": str(one),
        "EXCHANGE_B": str(other),
        "EXCHANGE_AT": str(at),
        "EXCHANGE_MORE": str(more),
    }
    ranks = 1 if family == "openmpi" else 2
    program = [sys.executable, "-c", PROGRAM, one / "file", str(BYTES)]
    launch = mpi_run(program, ranks, env=environment, timeout_s=60)
    assert (tmp_path / "one.exchanged").exists(), "nothing was exchanged"
    # OMPIO makes a .locktest file by a path, too, and removes it by that
    left = [path for folder in (one, other) for path in folder.iterdir() if ".locktest." not in path.name]
    if family == "mpich" and "refused" in launch.stdout:  # ROMIO makes the file, and opens it again
        assert launch.stdout == str(["refused"] * ranks), launch.describe()
        assert not left, launch.describe()
        return
    assert launch.stdout == str(["closed"] * ranks), launch.describe()
    files = [path for path in left if path.name == "file"]
    assert [path.read_bytes() for path in files] == [(b"A" * BYTES + b"B" * BYTES)[: ranks * BYTES]], launch.describe()
    # exchanged back, a folder may keep the empty file that the MPI library has made there
    assert all(path in files or (more and path.stat().st_size == 0) for path in left), launch.describe()
