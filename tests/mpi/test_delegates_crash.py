"""A delegate is killed whose bytes are not yet in the file: the end of the file is where they end."""

from __future__ import annotations

import os
import pathlib
import signal
import sys

import pytest

from support.launch import launcher, preload_environment
from support.processes import job

pytestmark = pytest.mark.mpi

LIMIT_S = 240.0

APPENDING = """
import pathlib
import sys
import time

import numpy as np
from mpi4py import MPI

comm, path = MPI.COMM_WORLD, pathlib.Path(sys.argv[1])
file = MPI.File.Open(comm, str(path), MPI.MODE_RDWR | MPI.MODE_CREATE)
file.Write_at_all(comm.rank * 8192, np.full(8192, comm.rank + 1, "u1"))
comm.Barrier()
if comm.rank == 0:
    print("written", flush=True)
while not path.with_suffix(".go").exists():
    time.sleep(0.001)
size = file.Get_size()
file.Seek(0, MPI.SEEK_END)
end = file.Get_position()
comm.Barrier()
file.Seek(100 * comm.rank, MPI.SEEK_CUR)
file.Write(np.full(100, 99, "u1"))
file.Close()
assert size == end == 8192 * comm.size, (size, end)
"""


@pytest.mark.both_with("1")
@pytest.mark.parametrize("victim", [0, 1])
def test_the_end_of_the_file_waits_for_a_rescue(extension: str, tmp_path: pathlib.Path, victim: int) -> None:
    """Bytes of a delegate on another node that is dead, and not yet in the file, count; what is appended is behind."""
    path = tmp_path / "data"
    command = [str(launcher()), "-n", "2", sys.executable, "-c", APPENDING, str(path)]
    env = {
        "MPIOX_HINTS": "*:mpiox_delegates=2:mpiox_collective=cached:mpiox_delegate_page=4k",
        "MPIOX_RANKS_PER_NODE": "1",
        "MPIOX_FAULT": f"op=write,path={path},delay_ms=500",
    }
    with job(command, tmp_path / "log", preload_environment() | env) as running:
        running.wait_for("written", LIMIT_S)
        os.kill(running.delegates()[victim], signal.SIGKILL)
        path.with_suffix(".go").touch()
        assert running.status(LIMIT_S) == 0, running.text()
    assert path.read_bytes() == bytes([1] * 8192 + [2] * 8192 + [99] * 200), running.text()
