"""The page of a run says where the time went: of a program whose ranks sleep for what they are said to do."""

from __future__ import annotations

import pathlib
import sys

import pytest

import mpiio_ext
from support import cbuild
from support.launch import base_environment, launcher, run_bounded

pytestmark = pytest.mark.mpi

HALF_S, REQUESTS, SLEEP_S = 0.5, 5, 0.1
PROGRAM = cbuild.ROOT / "tests" / "programs" / "time_parts.py"


def parts(folder: pathlib.Path, ranks: int, **settings: str) -> tuple[dict[str, dict[str, float]], str, float]:
    """Return the parts of the time, the sentence about them, and the run time."""
    (folder / "slow").mkdir(parents=True)
    slow = cbuild.ROOT / "benchmarks" / "slow_storage.c"
    shim = cbuild.compile_c([cbuild.compiler(), "-O2", "-shared", "-fPIC", str(slow), "-ldl"], "slow_storage.so")
    storage = {"SLOW_STORAGE_PATH": str(folder / "slow"), "SLOW_STORAGE_US": str(int(SLEEP_S * 1e6)),
               "LD_PRELOAD": str(shim)}  # fmt: skip
    command = [launcher(), "-n", str(ranks), sys.executable, "-m", "mpiio_ext", "run", "--report",
               str(folder / "io.html"), "--", sys.executable, str(PROGRAM), str(folder)]  # fmt: skip
    run_bounded(command, env=base_environment() | storage | settings, timeout_s=120)
    document = mpiio_ext.run_report(folder / "io.html").document
    chart = next(one for one in document["charts"] if one["name"] == "time-line-ranks")
    return {row["part"]: row for row in document["parts"]}, document["spent_on"], chart["data"]["run_time"]


def test_parts_of_the_time(extension: str, tmp_path: pathlib.Path) -> None:
    """Two ranks wait for the third one; requests that sleep are the file system's; and the parts are the whole."""
    found, told, run_s = parts(tmp_path, 3)
    assert found["waiting"]["most_s"] >= HALF_S and found["waiting"]["rank"] != 1
    assert found["waiting"]["mean_s"] >= 2 * HALF_S / 3
    assert found["file_system"]["mean_s"] >= REQUESTS * SLEEP_S
    assert found["messages"]["mean_s"] > 0 < found["library"]["mean_s"]
    assert sum(row["mean_s"] for row in found.values()) == pytest.approx(run_s)
    assert "the file system" in told and "waiting for other ranks" in told, told


def test_a_rank_alone_waits_for_nobody(extension: str, tmp_path: pathlib.Path) -> None:
    found, told, _ = parts(tmp_path, 1)
    assert found["waiting"]["most_s"] == found["messages"]["most_s"] == 0 < found["library"]["mean_s"]
    assert found["file_system"]["mean_s"] >= REQUESTS * SLEEP_S
    assert "waiting" not in told


def test_what_the_mpi_library_does_is_not_told_apart(extension: str, tmp_path: pathlib.Path) -> None:
    """A rank comes late to a call that the MPI library carries out: nobody has measured who waits."""
    found, told, _ = parts(tmp_path, 3, MPIOX_HINTS="mpiox_enable=false", OMPI_MCA_io="romio321")
    assert found["waiting"]["most_s"] == found["messages"]["most_s"] == found["library"]["most_s"] == 0
    assert found["mpi_library"]["most_s"] >= HALF_S
    assert "the MPI library" in told and "this library" not in told
