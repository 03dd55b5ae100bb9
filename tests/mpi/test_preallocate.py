"""MPI_File_preallocate of a staged file, and on a full disk; tests/differential/cases has what it does otherwise."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

from support.cases import Case, Cases
from support.launch import mpi_run

pytestmark = [pytest.mark.mpi, pytest.mark.both]

PROGRAM = """
import errno
import os
import sys
import time
import mpiio_ext
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
file = MPI.File.Open(comm, sys.argv[1], MPI.MODE_RDWR | MPI.MODE_CREATE)
data = np.full(1000, comm.rank + 1, "u1")
file.Write_at_all(1000 * comm.rank, data)

def refused(call, size, error_class, number):
    comm.Barrier()
    try:
        call(size)
    except MPI.Exception as error:
        text = str(error)
        assert error.Get_error_class() == error_class, text
        assert text.count(sys.argv[1]) == 1 and f"length {size}" in text and f"(errno {number})" in text, text
    else:
        raise AssertionError("not refused")
    comm.Barrier()

what = sys.argv[2]
if what == "late":
    if comm.rank == comm.size - 1:
        time.sleep(0.1)
        file.Write_at(50_000, data)
    file.Preallocate(40_000)
    assert file.Get_size() == 51_000
    comm.Barrier()
    file.Preallocate(60_000)
    assert file.Get_size() == 60_000
elif what == "full":
    size, before = file.Get_size(), os.statvfs(sys.argv[3])
    def unchanged():
        free = os.statvfs(sys.argv[3]).f_bfree
        assert file.Get_size() == size and free > before.f_bfree * 9 // 10, (file.Get_size(), size, free, before)
    refused(file.Preallocate, 1 << 30, MPI.ERR_NO_SPACE, errno.ENOSPC)
    unchanged()
    if sys.argv[4] == "ext4":  # tmpfs has files of any size
        refused(file.Set_size, 1 << 50, MPI.ERR_IO, errno.EFBIG)
        refused(file.Preallocate, 1 << 50, MPI.ERR_IO, errno.EFBIG)
        unchanged()
back = np.empty(1000, "u1")
file.Read_at_all(1000 * comm.rank, back)
assert (back == data).all()
file.Close()
"""


STAGED = {"MPIOX_HINTS": "*:mpiox_delegates=2:mpiox_collective=cached:mpiox_close=staged"}
CASES = {"late": Case(text=PROGRAM, ranks=4, arguments=("{folder}/data", "late"), environment=STAGED)}


def test_preallocate_of_a_staged_file(cases: Cases) -> None:
    """What a rank has written, which comes late to the call, counts: nothing beyond the size is cut off."""
    cases.result("late")


@pytest.mark.parametrize(("kind", "hints"), [("tmpfs", ""), ("ext4", ""), ("ext4", "mpiox_subfiles=2")])
def test_a_full_disk(extension: str, tmp_path: pathlib.Path, kind: str, hints: str) -> None:
    """The error names file, size and errno on every rank; the file keeps its size, its bytes, and no other space."""
    folder, image = tmp_path / "small", tmp_path / "image"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder]
    if kind == "ext4":
        with image.open("wb") as file:
            file.truncate(24 << 20)
        mount = ["sh", "-c", 'mkfs.ext4 -q -F "$0" && mount -o loop "$0" "$1"', image, folder]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, timeout=60).returncode != 0:
        pytest.skip(f"a small {kind} cannot be mounted here")
    try:
        program = tmp_path / "program.py"
        program.write_text(PROGRAM, encoding="utf-8")
        words = [sys.executable, program, folder / "data", "full", folder, "" if hints else kind]
        mpi_run(words, 3, env={"MPIOX_HINTS": hints}, timeout_s=60)
    finally:
        subprocess.run(["umount", "-l", folder], check=False, timeout=60)
