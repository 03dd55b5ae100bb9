"""The page of a run says where the time went: of a program whose ranks sleep for what they are said to do."""

from __future__ import annotations

import pathlib
import re
import sys
from typing import Any

import pytest

import mpiio_ext
from support import cbuild
from support.launch import base_environment, launcher, run_bounded

pytestmark = pytest.mark.mpi

#: Of the program; rank 1 is late so often.
HALF_S, LATE, REQUESTS, SLEEP_S = 0.5, 4, 5, 0.1
PROGRAM = cbuild.ROOT / "tests" / "programs" / "time_parts.py"


def parts(folder: pathlib.Path, ranks: int, **settings: str) -> tuple[dict[str, dict[str, float]], str, dict[str, Any]]:
    """Return the parts of the time, the sentence about them, and the document."""
    (folder / "slow").mkdir(parents=True)
    shim = cbuild.slow_storage()
    storage = {
        "SLOW_STORAGE_PATH": str(folder / "slow"),
        "SLOW_STORAGE_US": str(int(SLEEP_S * 1e6)),
        "LD_PRELOAD": str(shim),
    }
    command = [
        launcher(),
        "-n",
        str(ranks),
        sys.executable,
        "-m",
        "mpiio_ext",
        "run",
        "--report",
        str(folder / "io.html"),
        "--",
        sys.executable,
        str(PROGRAM),
        str(folder),
    ]
    run_bounded(command, env=base_environment() | storage | settings, timeout_s=120)
    document = mpiio_ext.run_report(folder / "io.html").document
    return {row["part"]: row for row in document["parts"]}, document["spent_on"], document


def _named(document: dict[str, Any]) -> None:
    """Check that the page names the late rank, and says what each of the others waited."""
    (late,) = (one for one in document["findings"] if "is late" in one["title"])
    assert "rank 1" in late["title"] and "rank 1" in late["advice"][0]
    waits = [re.search(r"each other rank waits .*: ([\d.]+) (m?)s$", line) for line in late["evidence"]]
    told_s = [float(each[1]) / (1000 if each[2] else 1) for each in waits if each is not None]
    assert sorted(told_s)[-2] >= 0.9 * HALF_S * LATE / 2  # in two calls; in others they may wait, too, but not so long
    assert "for rank 1, which is late" in document["sentence"]


@pytest.mark.both
def test_parts_of_the_time(extension: str, tmp_path: pathlib.Path) -> None:
    """Two ranks wait for the third one; requests that sleep are the file system's; and the parts are the whole."""
    found, told, document = parts(tmp_path, 3)
    assert found["waiting"]["most_s"] >= LATE * HALF_S and found["waiting"]["rank"] != 1
    assert found["waiting"]["least_s"] < found["waiting"]["most_s"] / 2 and found["waiting"]["least_rank"] == 1
    assert found["waiting"]["mean_s"] >= 2 * LATE * HALF_S / 3
    if not any("waited for a CPU" in text for text in document["notices"]):  # else no finding is made of waiting
        _named(document)
    chart = next(one for one in document["charts"] if one["name"] == "time-line-ranks")
    run_s = chart["data"]["run_time"]
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
    assert found["messages"]["most_s"] == found["library"]["most_s"] == 0
    assert found["waiting"]["most_s"] < found["mpi_library"]["most_s"]  # in opening, which this library begins
    assert found["mpi_library"]["most_s"] >= (LATE - 1) * HALF_S
    assert "the MPI library" in told and "mpiio_ext" not in told
