"""MPI_File_preallocate: the size on every rank at once, what is written stays, and errors are everybody's."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

from support.cases import Case, Cases
from support.launch import mpi_run

pytestmark = pytest.mark.mpi

PROGRAM = """
import sys
import time
import mpiio_ext
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
file = MPI.File.Open(comm, sys.argv[1], MPI.MODE_RDWR | MPI.MODE_CREATE)
data = np.full(1000, comm.rank + 1, "u1")
file.Write_at_all(1000 * comm.rank, data)

def failed(size):
    try:
        file.Preallocate(size)
    except MPI.Exception as error:
        return error.Get_error_class()
    return MPI.SUCCESS

what = sys.argv[2]
if what == "grows":
    for round in range(20):
        size = 1000 * comm.size + 4096 * (round + 1)
        assert failed(size) == MPI.SUCCESS and file.Get_size() == size
    assert failed(10) == MPI.SUCCESS and file.Get_size() == size  # never smaller
elif what == "negative":
    assert failed(-1) != MPI.SUCCESS
elif what == "differs" and comm.size > 1:
    assert failed(50_000 + comm.rank) != MPI.SUCCESS
elif what == "late":
    if comm.rank == comm.size - 1:
        time.sleep(0.1)
        file.Write_at(50_000, data)
    assert failed(40_000) == MPI.SUCCESS and file.Get_size() == 51_000
    comm.Barrier()
    assert failed(60_000) == MPI.SUCCESS and file.Get_size() == 60_000
elif what == "full":
    assert failed(1 << 30) == MPI.ERR_NO_SPACE
back = np.empty(1000, "u1")
file.Read_at_all(1000 * comm.rank, back)
assert (back == data).all()
file.Close()
"""


RANKS = (1, 4)
WHATS = ("grows", "negative", "differs")
CASES = {
    f"{what} {ranks}": Case(text=PROGRAM, ranks=ranks, arguments=("{folder}/data", what))
    for what in WHATS
    for ranks in RANKS
}
SCRATCH = {"MPIOX_HINTS": "*:mpiox_delegates=2:mpiox_collective=cached:mpiox_close=never"}
CASES["late"] = Case(text=PROGRAM, ranks=4, arguments=("{folder}/data", "late"), environment=SCRATCH)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("what", WHATS)
def test_preallocate(cases: Cases, what: str, ranks: int) -> None:
    """Sizes that are negative or not the same on all ranks are refused on all of them; the file stays usable."""
    cases.result(f"{what} {ranks}")


def test_preallocate_of_a_scratch_file(cases: Cases) -> None:
    """What a rank has written, which comes late to the call, counts: nothing beyond the size is cut off."""
    cases.result("late")


def test_preallocate_on_a_full_disk(extension: str, tmp_path: pathlib.Path) -> None:
    """No space is MPI_ERR_NO_SPACE on every rank, and what was written is still there."""
    if os.geteuid() != 0:
        pytest.skip("a small tmpfs can only be mounted by root")
    folder = tmp_path / "small"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], check=False).returncode != 0:
        pytest.skip("no tmpfs can be mounted here")
    try:
        program = tmp_path / "program.py"
        program.write_text(PROGRAM, encoding="utf-8")
        mpi_run([sys.executable, program, folder / "data", "full"], 3, timeout_s=60)
    finally:
        subprocess.run(["umount", "-l", folder], check=False)
