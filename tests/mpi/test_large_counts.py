"""Counts, offsets and extents beyond 2^31, on sparse files: little data, large numbers."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
from typing import Any

import pytest

from support.launch import PROGRAMS, python_run

pytestmark = pytest.mark.mpi

PROGRAM = PROGRAMS / "large_accesses.py"


def run(folder: pathlib.Path, case: str, ranks: int, hints: str = "", timeout_s: float = 120.0) -> list[dict[str, Any]]:
    """Run one case of large_accesses.py; return what every rank saw."""
    path = folder / "large"
    try:
        python_run([PROGRAM, path, folder, case], ranks, env={"MPIOX_HINTS": hints}, timeout_s=timeout_s)
    finally:
        path.unlink(missing_ok=True)
    return [json.loads((folder / f"{rank}.json").read_text("utf-8")) for rank in range(ranks)]


@pytest.mark.parametrize("hints", ["", "*:mpiox_ranks_per_node=2", "*:mpiox_exchange=direct"])
@pytest.mark.parametrize("case", ["offsets", "vector", "subarray", "memory"])
def test_beyond_two_gib(tmp_path: pathlib.Path, extension: str, case: str, hints: str) -> None:
    """Every check of the case holds on every rank."""
    for rank, seen in enumerate(run(tmp_path, case, 3, hints)):
        assert all(seen.values()), (rank, seen)


@pytest.mark.parametrize("method", ["even", "aligned", "static_cyclic", "group_cyclic", "transpose"])
def test_methods_on_far_pieces(tmp_path: pathlib.Path, extension: str, method: str) -> None:
    """Few pieces in a region of several GiB: the rounds must skip what nobody touches, with every method."""
    for rank, seen in enumerate(
        run(tmp_path, "vector", 3, f"*:mpiox_partition={method}:striping_unit=1m:striping_factor=4")
    ):
        assert all(seen.values()), (rank, seen)


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
