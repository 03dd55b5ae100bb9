"""Two small jobs under a live arbiter, in the report of the bench."""

from __future__ import annotations

import json
import sys

import pytest

from support.launch import base_environment, run_bounded

pytestmark = pytest.mark.mpi


@pytest.mark.slow
def test_two_jobs_in_the_report(extension, mpi_python, tmp_path):
    """Both follow the arbiter, all their bytes are right, and the page of results that were there shows them."""
    words = [
        "-m",
        "mpiio_ext.bench",
        "-w",
        "contiguous",
        "-m",
        "native,auto",
        "--size",
        "256KiB",
        "-r",
        "1",
        "--path",
        tmp_path,
        "--output",
        tmp_path / "results",
        "--no-figures",
    ]
    mpi_python(words, 2, timeout_s=120, cwd=tmp_path)
    command = [
        sys.executable,
        "-m",
        "mpiio_ext.bench",
        "arbitration",
        "--archive",
        str(tmp_path),
        "--together",
        "1",
        "--lead",
        "0.5",
        "--path",
        str(tmp_path),
    ]
    launch = run_bounded(command, env=base_environment(), timeout_s=150, cwd=tmp_path)
    found = json.loads((tmp_path / "results" / "arbitration.json").read_text())
    assert set(found["policies"]) == {"static", "mckp"}
    for policy, run in found["policies"].items():
        counts = [step["io_nodes"] for step in run["map"]]
        assert any(set(step) == {"small-pieces", "large-pieces"} for step in counts), counts
        together = next(step for step in counts if len(step) == 2)
        assert sum(together.values()) <= 4 and min(together.values()) >= 1
        if policy == "static":
            assert together == {"small-pieces": 2, "large-pieces": 2}
        small, large = run["jobs"].values()
        overlap = min(small["end_s"], large["end_s"]) - max(small["begin_s"], large["begin_s"])
        assert overlap > 0.9, "a phase is as long as --together by the jobs' own clocks"
        assert run["bandwidth_mb_per_s"] > 0
        for job in run["jobs"].values():
            assert job["verified_bytes"] == 16 << 20 or job["data_bytes"] == job["verified_bytes"], job
            assert sum(slot["data_bytes"] for slot in job["slots"]) == job["data_bytes"] > 0
    page = (tmp_path / "results" / "report.html").read_text()
    section = page[page.index('id="arbitration1"') :]
    assert "<svg" in section and "small-pieces" in section
    assert "MCKP: small-pieces" in launch.stdout
    assert not list(tmp_path.glob("mpiio-arbitration-*"))
