"""Datatypes made by large-count constructors, as file types, etypes and memory types (tests/programs/large_types.c)."""

from __future__ import annotations

import pathlib

import pytest

from support.cbuild import failed_checks, mpi_program
from support.launch import mpi_run

pytestmark = pytest.mark.mpi

#: Constructors times (three ways to treat the handles of a view, and memory) times five kinds of access.
CHECKS = 11 * 4 * 5


@pytest.mark.parametrize("preload", [False, True], ids=["native", "preloaded"])
def test_every_constructor(extension: str, family: str, tmp_path: pathlib.Path, preload: bool) -> None:
    """Types freed after MPI_File_set_view or before MPI_Wait, duplicated, and as etypes."""
    if family == "mpich" and not preload:
        pytest.skip("ROMIO crashes when a memory type is freed while its nonblocking collective is under way")
    launch = mpi_run([mpi_program("large_types"), tmp_path / "file"], 2, preload=preload, timeout_s=60, check=False)
    assert launch.returncode == 0, launch.describe()
    assert not failed_checks(launch.stdout, CHECKS), launch.describe()
    assert launch.stdout.rstrip().endswith("end"), launch.describe()
