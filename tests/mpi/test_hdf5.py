"""Parallel HDF5 through h5py: the library is under it, and what it writes is what the MPI library alone writes."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import pytest

from support.cases import Case, Cases, program_case
from support.launch import PROGRAMS, base_environment, json_lines, mpi_run, of_ranks, python_alone, python_run
from support.partition_methods import METHODS

pytestmark = pytest.mark.mpi

PROGRAM = PROGRAMS / "hdf5_datasets.py"
CHECK = """
import sys
sys.path.insert(0, sys.argv[2])
import hdf5_datasets
hdf5_datasets.check(sys.argv[1])
print("equal")
"""


RANKS = (1, 2, 3, 4, 5)
#: Small stripes, two pretended nodes.
GEOMETRY = (
    "mpiox_exchange=two_phase:striping_unit=512:striping_factor=3:cb_buffer_size=1024:cb_nodes=3:mpiox_ranks_per_node=2"
)


def datasets(ranks: int, hints: str = "") -> Case:
    return program_case(PROGRAM.stem, ranks, "{folder}/data.h5", "{folder}", MPIOX_HINTS=hints)


CASES = {f"{ranks}": datasets(ranks) for ranks in RANKS}
CASES |= {method: datasets(4, f"*.h5:mpiox_partition={method}:{GEOMETRY}") for method in METHODS}


def outcome(cases: Cases, name: str) -> tuple[pathlib.Path, list[dict[str, Any]]]:
    """Return the path of the file that a case has written, and what every rank saw."""
    folder = cases.result(name).folder
    return folder / "data.h5", of_ranks(folder, cases.cases[name].ranks)


def check_with_serial_hdf5(path: pathlib.Path) -> None:
    """Open the file in a fresh process without MPI-IO and compare it with the formula."""
    done = python_alone(CHECK, path, PROGRAM.parent, NATIVE="1")
    assert done.stdout.strip() == "equal", done.stderr[-3000:]


@pytest.fixture(scope="module")
def reference(parallel_h5py: None, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return what the MPI library alone writes; the datasets are the same for every number of ranks."""
    folder = tmp_path_factory.mktemp("native")
    python_run([PROGRAM, folder / "data.h5", folder], 3, env={"NATIVE": "1"}, timeout_s=120)
    assert all(seen["equal"] for seen in of_ranks(folder, 3))
    return folder / "data.h5"


@pytest.mark.both_with("4")
@pytest.mark.slow_except("3", "4")
@pytest.mark.parametrize("ranks", RANKS)
def test_datasets(parallel_h5py: None, cases: Cases, reference: pathlib.Path, ranks: int) -> None:
    """Contiguous, chunked and strided datasets; statistics prove that the calls went through the library."""
    path, seen = outcome(cases, str(ranks))
    for result in seen:
        assert result["equal"]
        assert result["errors"] == 0
        assert result["collective_writes"] >= 3
        assert result["collective_reads"] >= 2  # HDF5 reads chunks that one rank owns alone independently
        assert result["opens"] >= 2
    data = 24 * 18 * 10
    assert sum(result["bytes_written"] for result in seen) >= data * 8 * 2 + data // 2 * 4
    check_with_serial_hdf5(path)
    if shutil.which("h5diff"):
        command = ["h5diff", str(path), str(reference)]
        done = subprocess.run(command, env=base_environment(), capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.both_with("transpose")
@pytest.mark.parametrize("method", METHODS)
def test_methods(parallel_h5py: None, cases: Cases, method: str) -> None:
    """The same with each method, small stripes, two pretended nodes."""
    path, seen = outcome(cases, method)
    assert all(result["equal"] and result["collective_writes"] >= 3 for result in seen)
    check_with_serial_hdf5(path)


@pytest.mark.both
def test_preloaded(tmp_path: pathlib.Path, extension: str, parallel_h5py: None) -> None:
    """An unchanged program under LD_PRELOAD."""
    statistics = tmp_path / "stats.jsonl"
    path = tmp_path / "data.h5"
    mpi_run(
        [sys.executable, PROGRAM, path, tmp_path],
        3,
        preload=True,
        timeout_s=120,
        env={"NATIVE": "1", "MPIOX_STATS": "1", "MPIOX_STATS_FILE": os.fspath(statistics)},
    )
    check_with_serial_hdf5(path)
    lines = json_lines(statistics)
    ours = [line for line in lines if str(line.get("path", "")).endswith("data.h5")]
    assert sum(line["collective_writes"] for line in ours) >= 3, lines  # calls per rank
    assert sum(line["collective_reads"] for line in ours) >= 2, lines
