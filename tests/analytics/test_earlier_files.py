"""Files that an earlier version has written: records as JSON, and a store; both are read, and the store grows.

``earlier/records.json`` is ``mpiio-ext analyze connector convert`` of an ``lfs df`` with a damaged line;
``earlier/store.tar.gz`` a store of a log of Darshan, three jobs of Slurm, and two steps of LMT.
"""

from __future__ import annotations

import json
import pathlib
import tarfile

import pytest
from click.testing import CliRunner

from mpiio_ext.analytics import IOMiner
from mpiio_ext.cli import main

EARLIER = pathlib.Path(__file__).with_name("earlier")


def test_records() -> None:
    shown = CliRunner().invoke(main, ["analyze", "connector", "show", str(EARLIER / "records.json"), "--json"])
    found = json.loads(shown.stdout)
    assert (found["source"], found["status"], found["lost"]) == ("lfs-df", "partial", 1)
    assert found["tables"] == {"targets": 5, "summaries": 2} and found["header"] == {"snapshots": 2}
    assert found["problems"][0]["line"] == 4


def test_store(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("duckdb")
    with tarfile.open(EARLIER / "store.tar.gz") as archive:
        archive.extractall(tmp_path)
    (tmp_path / "new.sacct").write_text("JobIDRaw|State|Start|End|NNodes\n99|COMPLETED|2018-01-28T00:00:00|Unknown|2\n")
    with IOMiner({"store": str(tmp_path / "store"), "inputs": {"slurm": [str(tmp_path)]}, "workers": 0}) as miner:
        assert miner.load("darshan_job").project("job_id", "app", "log_version").rows() == [
            {"job_id": 42, "app": "app", "log_version": "3.41"}
        ]
        assert miner.load("slurm").project("job_id", "start_time", "nodes").rows() == [
            {"job_id": 100, "start_time": 1517101200.0, "nodes": ["nid00001", "nid00002", "nid00003", "nid05"]},
            {"job_id": 101, "start_time": None, "nodes": None},
            {"job_id": 102, "start_time": 1517108400.0, "nodes": ["a1", "b08", "b09", "b10"]},
        ]
        assert miner.load("lmt").project("time", "ost", "bytes_read", "bytes_written").rows() == [
            {"time": 1517097600.0, "ost": 0, "bytes_read": 10.0, "bytes_written": 0.0},
            {"time": 1517097605.0, "ost": 0, "bytes_read": 20.0, "bytes_written": 50.0},
        ]
        assert miner.init_stores().rows == {"slurm": 1}
        assert [row["job_id"] for row in miner.load("slurm").sort("job_id").rows()] == [99, 100, 101, 102]
