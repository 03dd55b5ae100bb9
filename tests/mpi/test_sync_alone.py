"""MPI_File_sync of some ranks only, which MPI forbids and programs do: it ends, or a line names the missing ranks."""

from __future__ import annotations

import os
import pathlib
import re
import sys
import time

import pytest

from support.cases import Case, Cases
from support.launch import PROGRAMS, launcher, library_path
from support.processes import job

pytestmark = [pytest.mark.mpi, pytest.mark.both, pytest.mark.usefixtures("extension")]
LIMIT_S = 240.0

PROGRAM = """
import sys
import mpiio_ext
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
file = MPI.File.Open(comm, sys.argv[1] + "/data", MPI.MODE_RDWR | MPI.MODE_CREATE)
for writer in range(comm.size):  # as IMB-IO does
    if comm.rank == writer:
        file.Write_at(1000 * writer, np.full(1000, writer + 1, "u1"))
        try:
            file.Sync()
            assert sys.argv[2] != str(writer)
        except MPI.Exception as error:
            assert sys.argv[2] == str(writer) and error.Get_error_class() == MPI.ERR_IO, error
            assert f"rank {writer}: fsync of " in str(error) and "(errno 5)" in str(error), error
    comm.Barrier()
    back = np.empty(1000, "u1")
    file.Read_at(1000 * writer, back)
    assert (back == writer + 1).all()
split = np.full(4, comm.rank + 11, "u1")
file.Iwrite_at_all(5000 + 4 * comm.rank, split).Wait()
if comm.rank == 0:
    file.Sync()
comm.Barrier()
file.Close()
file = MPI.File.Open(comm, sys.argv[1] + "/data", MPI.MODE_RDONLY)
if comm.rank == comm.size - 1:
    file.Sync()
file.Close()
"""
CASES = {
    "alone": Case(text=PROGRAM, ranks=3, arguments=("{folder}", "")),
    "failing": Case(
        text=PROGRAM,
        ranks=3,
        arguments=("{folder}", "1"),
        environment={"MPIOX_FAULT": "op=sync,rank=1,times=1,errno=EIO"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_node(cases: Cases, name: str) -> None:
    """Each rank syncs without the others, and returns an error of its own."""
    cases.result(name)


@pytest.mark.parametrize(
    ("hints", "per_node", "awaited"),
    [
        ("mpiox_delegates=1:mpiox_delegate_mode=thread", 0, "ranks 1-3"),
        ("", 1, "some of ranks 1-3"),
        pytest.param("", 2, "rank 1", marks=pytest.mark.slow),
    ],
)
def test_elsewhere(tmp_path: pathlib.Path, hints: str, per_node: int, awaited: str) -> None:
    """The rank that waits prints a line with those it waits for; it continues when they come."""
    program = [sys.executable, str(PROGRAMS / "sync_alone.py"), str(tmp_path)]
    command = [str(launcher()), "-n", "4", "env", f"LD_PRELOAD={library_path()}", *program]
    env = {"MPIOX_HINTS": f"*:{hints}" if hints else "", "MPIOX_RANKS_PER_NODE": str(per_node), "MPIOX_REPORT_S": "0.5"}
    with job(command, tmp_path / "log", env) as running:
        deadline_s = time.monotonic() + LIMIT_S
        while "has waited" not in running.text():
            assert running.process.poll() is None and time.monotonic() < deadline_s, running.text()
            time.sleep(0.05)
        (tmp_path / "go").touch()
        assert running.status(LIMIT_S) == 0, running.text()
        lines = [line for line in running.text().splitlines() if "has waited" in line]
    where = re.escape(os.fspath(tmp_path / "data"))
    first = rf"mpiio_ext: rank 0 has waited \d+ s in MPI_File_sync of {where} for {awaited}: "
    assert any(re.match(first, line) for line in lines), lines
