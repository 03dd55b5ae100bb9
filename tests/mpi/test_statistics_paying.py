"""Whether statistics say that delegates would pay: where requests wait for a server they do, and only there."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

from support.cbuild import slow_storage
from support.launch import json_lines, python_run
from support.marks import slow

pytestmark = pytest.mark.mpi

RANKS, COUNT, BYTES = 2, 800, 64
PROGRAM = """
import sys
import mpiio_ext
from mpi4py import MPI
comm, kind, count, size = MPI.COMM_WORLD, sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
file = MPI.File.Open(comm, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)
for i in range(count):
    place = i * (1 << 20) if kind == "jumps" else (i * comm.size + comm.rank) * size
    (file.Write_at_all if kind == "collective" else file.Write_at)(place, bytes(size))
file.Close()
"""


def told(folder: pathlib.Path, kind: str = "fills", size: int = BYTES, **variables: str) -> dict[str, Any]:
    """Return the statistics of the file."""
    env = {"MPIOX_STATS_FILE": str(folder / "stats"), **variables}
    python_run(["-c", PROGRAM, folder / "data" / "file", kind, str(COUNT), str(size)], RANKS, env=env, timeout_s=120)
    lines = json_lines(folder / "stats")
    return next(line for line in lines if line["kind"] == "file")


def test_memory_and_a_page_cache_are_no_reason(tmp_path: pathlib.Path) -> None:
    (tmp_path / "data").mkdir()
    line = told(tmp_path)
    assert (line["independent_writes"], line["delegation"]) == (RANKS * COUNT, "")


@pytest.mark.both_with("collective-False")
@pytest.mark.parametrize(("kind", "pays"), [("fills", True), *slow(("jumps", False)), ("collective", False)])
def test_requests_that_wait_for_a_server_are(tmp_path: pathlib.Path, kind: str, *, pays: bool) -> None:
    """Not where pages would hold one piece each, nor where collectives do the work."""
    (tmp_path / "data").mkdir()
    slow = {"LD_PRELOAD": slow_storage(), "SLOW_STORAGE_PATH": str(tmp_path / "data"), "SLOW_STORAGE_US": "500"}
    text = told(tmp_path, kind, **slow)["delegation"]
    assert text.startswith("would pay here: ") == pays, text
    assert not pays or f"{RANKS * COUNT} accesses of {BYTES} bytes took" in text


def test_those_who_have_delegates_are_told_of_them(tmp_path: pathlib.Path) -> None:
    (tmp_path / "data").mkdir()
    slow = {"LD_PRELOAD": slow_storage(), "SLOW_STORAGE_PATH": str(tmp_path / "data"), "SLOW_STORAGE_US": "500"}
    text = told(tmp_path, MPIOX_HINTS="*:mpiox_delegates=1:mpiox_delegate_mode=thread", **slow)["delegation"]
    assert text.startswith("1 delegate, thread")
