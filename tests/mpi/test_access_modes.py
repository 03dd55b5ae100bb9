"""Openings whose arguments differ between ranks: what the error says, and that ranks make the same calls."""

from __future__ import annotations

import pathlib

import pytest

from support.launch import python_run

pytestmark = pytest.mark.mpi


@pytest.mark.both
def test_who_differs(extension: str, tmp_path: pathlib.Path) -> None:
    """The text of the error names its class, in the same words under each MPI, the rank, what differs and the file."""
    script = tmp_path / "program.py"
    script.write_text(
        "import sys\nimport mpiio_ext\nfrom mpi4py import MPI\n"
        "mode = MPI.MODE_WRONLY if MPI.COMM_WORLD.rank == 1 else MPI.MODE_RDWR\n"
        "name = sys.argv[1] if MPI.COMM_WORLD.rank < 2 or len(sys.argv) == 2 else sys.argv[2]\n"
        "try:\n    MPI.File.Open(MPI.COMM_WORLD, name, mode | MPI.MODE_CREATE)\n"
        "except MPI.Exception as error:\n    print(f'{error}\\n', end='')\n",
        encoding="utf-8",
    )
    one, other = tmp_path / "one", tmp_path / "other"
    for names, text in (
        ([one], f"rank 1: open with another access mode than rank 0 ({one})"),
        ([one, other], f"rank 2: open of another file than rank 0 ({one})"),
    ):
        launch = python_run([script, *names], 3, preload=True, timeout_s=30)
        lines = launch.stdout.splitlines()
        assert lines == [f"MPI_ERR_NOT_SAME: arguments differ between ranks: {text}"] * 3, launch.describe()
    assert not other.exists()


#: MPI's own open, of arguments that differ: whatever it returns, each rank of the library makes the same calls.
UNLIKE = """
import sys
import mpiio_ext
from mpi4py import MPI
world = MPI.COMM_WORLD
mode = MPI.MODE_CREATE | MPI.MODE_WRONLY | (MPI.MODE_SEQUENTIAL if sys.argv[2] == "sequential" else 0)
try:
    MPI.File.Open(world, sys.argv[1], mode | (MPI.MODE_DELETE_ON_CLOSE if world.rank == 1 else 0))
except MPI.Exception:
    pass
found = world.gather(world.allreduce(1), 0)
if world.rank == 0:
    print("sums", found, flush=True)
"""


@pytest.mark.both
@pytest.mark.parametrize("how", ["sequential", "not enabled"])
def test_arguments_that_differ_where_mpi_opens_the_file(extension: str, tmp_path: pathlib.Path, how: str) -> None:
    script = tmp_path / "program.py"
    script.write_text(UNLIKE, encoding="utf-8")
    env = {"MPIOX_HINTS": "*:mpiox_enable=false"} if how == "not enabled" else {}
    launch = python_run([script, tmp_path / "file", how], 2, preload=True, env=env, timeout_s=30, check=False)
    assert not launch.timed_out, launch.describe()
    assert launch.stdout == "sums [2, 2]\n", launch.describe()
