"""MPI_Abort while delegates hold bytes: those that a write has returned for are in the file when the job has ended."""

from __future__ import annotations

import pathlib

import pytest

from support.cbuild import mpi_program
from support.launch import mpi_run

pytestmark = [pytest.mark.mpi, pytest.mark.both, pytest.mark.usefixtures("extension")]
RECORDS, RECORD_BYTES, SEED = 3000, 100, 5


def byte_at(position: int) -> int:
    """Return what tests/programs/report.h puts there."""
    mixed = ((position + 1) * 0x9E3779B97F4A7C15 + SEED * 7919) % (1 << 64)
    return 1 + (mixed >> 40) % 255


@pytest.mark.slow_with("1-1-spawn", "3-2-thread")
@pytest.mark.parametrize("mode", ["thread", "process", "spawn"])
@pytest.mark.parametrize(("ranks", "delegates"), [(1, 1), (3, 2)])
def test_nothing_acknowledged_is_lost(tmp_path: pathlib.Path, mode: str, ranks: int, delegates: int) -> None:
    """The highest rank aborts; in thread mode the lowest ones host the delegates."""
    hints = f"*:mpiox_delegates={delegates}:mpiox_delegate_mode={mode}:mpiox_delegate_page=64k"
    check(tmp_path / "file", ranks, hints)


def test_the_fortran_binding_aborts_alike(family: str, tmp_path: pathlib.Path) -> None:
    if family != "openmpi":
        pytest.skip("MPICH's Fortran binding calls MPI_Abort; Open MPI's calls PMPI_Abort")
    check(tmp_path / "file", 3, "*:mpiox_delegates=2:mpiox_delegate_mode=thread:mpiox_delegate_page=64k", "fortran")


def check(file: pathlib.Path, ranks: int, hints: str, *how: str) -> None:
    """Run the program, which aborts: every byte that it has written is in the file."""
    launch = mpi_run(
        [mpi_program("aborting"), file, str(RECORDS), *how],
        ranks,
        preload=True,
        check=False,
        env={"MPIOX_HINTS": hints},
        timeout_s=60,
    )
    assert launch.returncode != 0 and not launch.timed_out, launch.describe()
    data = file.read_bytes()
    assert data == bytes(byte_at(i) for i in range(RECORDS * RECORD_BYTES)), (len(data), launch.describe())
    assert "may be lost" not in launch.stderr, launch.describe()
