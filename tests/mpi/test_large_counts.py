"""Counts, offsets and extents beyond 2^31, on sparse files: little data, large numbers."""

from __future__ import annotations

import os
import pathlib
import shutil
from typing import Any

import pytest

from support.cases import Case, Cases, program_case
from support.cbuild import failed_checks, mpi_program
from support.launch import MEMORY, PROGRAMS, mpi_run, of_ranks, python_run
from support.partition_methods import METHODS

pytestmark = [pytest.mark.mpi, pytest.mark.both]

PROGRAM = PROGRAMS / "large_accesses.py"


def run(folder: pathlib.Path, case: str, ranks: int, hints: str = "", timeout_s: float = 120.0) -> list[dict[str, Any]]:
    """Run one case of large_accesses.py; return what every rank saw."""
    path = folder / "large"
    try:
        python_run([PROGRAM, path, folder, case], ranks, env={"MPIOX_HINTS": hints}, timeout_s=timeout_s)
    finally:
        path.unlink(missing_ok=True)
    return of_ranks(folder, ranks)


HINTS = ("", "*:mpiox_ranks_per_node=2", "*:mpiox_exchange=direct")
KINDS = ("offsets", "vector", "subarray", "memory")


#: Where a file system keeps nothing on disk: holes of GiB, met by many windows, cost seconds of system time on others.
PLACE = MEMORY or "{folder}"


def large(kind: str, hints: str = "", place: str = "{folder}") -> Case:
    path = f"{place}/mpiio_ext_large_{os.getpid()}"
    return program_case(PROGRAM.stem, 3, path, "{folder}", kind, MPIOX_HINTS=hints)


CASES = {
    f"{kind} {hints}": large(kind, hints, PLACE if kind == "vector" and "direct" not in hints else "{folder}")
    for kind in KINDS
    for hints in HINTS
}
CASES |= {
    method: large("vector", f"*:mpiox_partition={method}:striping_unit=1m:striping_factor=4", PLACE)
    for method in METHODS
}


def check(cases: Cases, name: str) -> None:
    """Every check of a case holds on every rank."""
    folder = cases.result(name).folder
    for rank, seen in enumerate(of_ranks(folder, 3)):
        assert seen and all(seen.values()), (rank, seen)


@pytest.mark.parametrize("hints", HINTS)
@pytest.mark.parametrize("kind", KINDS)
def test_beyond_two_gib(cases: Cases, kind: str, hints: str) -> None:
    """Offsets, extents of file types and of memory types."""
    check(cases, f"{kind} {hints}")


@pytest.mark.parametrize("method", METHODS)
def test_methods_on_far_pieces(cases: Cases, method: str) -> None:
    """Few pieces in a region of several GiB: the rounds must skip what nobody touches, with every method."""
    check(cases, method)


def test_sizes_and_statuses_beyond_two_gib(tmp_path: pathlib.Path, extension: str) -> None:
    """What statuses, file pointers and queries say of accesses, types and etypes larger than 2^31 bytes."""
    path = tmp_path / "large"
    try:
        launch = mpi_run([mpi_program("large_counts"), path], 2, preload=True, timeout_s=120, check=False)
    finally:
        path.unlink(missing_ok=True)
    assert launch.returncode == 0, launch.describe()
    assert not failed_checks(launch.stdout, 7) and launch.stdout.rstrip().endswith("end"), launch.describe()


@pytest.mark.slow
@pytest.mark.parametrize("hints", HINTS[:2])
def test_small_buffers_on_far_pieces(tmp_path: pathlib.Path, extension: str, hints: str) -> None:
    """The same with buffers of 64 KiB: 70,000 windows, nearly all of them empty."""
    for rank, seen in enumerate(run(tmp_path, "vector_small_buffers", 3, hints)):
        assert seen and all(seen.values()), (rank, seen)


def test_count_beyond_two_gib(tmp_path: pathlib.Path, extension: str, family: str) -> None:
    """The large-count calls, where the MPI library has them."""
    if family != "mpich":
        pytest.skip("Open MPI 4.1 has no large-count interface: a count is an int")
    for rank, seen in enumerate(run(tmp_path, "counts", 3)):
        assert all(seen.values()), (rank, seen)


@pytest.mark.slow
@pytest.mark.parametrize("hints", ["", "*:mpiox_ranks_per_node=1"])
def test_more_than_two_gib_in_one_call(tmp_path: pathlib.Path, extension: str, hints: str) -> None:
    """Two ranks write and read 2 GiB + 32 KiB each."""
    pages, size = os.sysconf("SC_AVPHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    if pages * size < 12 << 30 or shutil.disk_usage(tmp_path).free < 6 << 30:
        pytest.skip("needs 12 GiB of free memory and 6 GiB of free disk")
    for rank, seen in enumerate(run(tmp_path, "volume", 2, hints, timeout_s=400)):
        assert all(seen.values()), (rank, seen)
