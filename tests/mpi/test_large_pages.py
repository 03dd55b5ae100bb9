"""Pages of 64 KiB, as Arm's kernels may have, pretended by tests/programs/large_pages.c."""

from __future__ import annotations

import pathlib
import re
import sys

import pytest

from support.cbuild import mpi_program
from support.launch import mpi_run, preload_environment

pytestmark = [pytest.mark.mpi, pytest.mark.both, pytest.mark.usefixtures("extension")]
RANKS = 3
PROGRAM = """
import sys
import numpy as np
from mpi4py import MPI

world, count = MPI.COMM_WORLD, 3000
file = MPI.File.Open(world, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)
file.Set_view(world.rank * 700, MPI.BYTE, MPI.BYTE.Create_vector(count, 700, 700 * world.size).Commit())
for turn in range(2):
    mine = np.random.default_rng(turn * world.size + world.rank).integers(0, 256, 700 * count, np.uint8)
    file.Write_at_all(0, mine)
    file.Sync()
    found = np.zeros_like(mine)
    file.Read_at_all(0, found)
    assert (found == mine).all(), (world.rank, turn)
file.Close()
"""


@pytest.mark.parametrize(
    "hints",
    [
        "romio_cb_write=enable",
        "mpiox_delegates=2:mpiox_delegate_mode=thread:mpiox_delegate_page=4k:mpiox_delegate_cache=512k",
        "mpiox_delegates=2:mpiox_delegate_mode=spawn:mpiox_close=staged:mpiox_delegate_page=4k:mpiox_delegate_cache=8m",
        "direct_read=true:direct_write=true",
    ],
)
def test_no_call_needs_smaller_pages(tmp_path: pathlib.Path, hints: str) -> None:
    """Mappings, and what is asked for parts of them, lie at multiples of the page; every byte is right."""
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    library = mpi_program("large_pages", "-shared", "-fPIC", "-ldl")
    env = {"MPIOX_HINTS": f"*:{hints}"}
    env["LD_PRELOAD"] = f"{library}:{preload_environment(env['MPIOX_HINTS'])['LD_PRELOAD']}"
    program = [sys.executable, tmp_path / "program.py", tmp_path / "file"]
    launch = mpi_run(program, RANKS, env=env, timeout_s=120)
    assert not re.search(r"large_pages: .* at 0x", launch.stderr), launch.describe()
    assert "mpiio_ext:" not in launch.stderr, launch.describe()
    assert re.search(r"large_pages: [1-9]\d* mappings", launch.stderr), launch.describe()
