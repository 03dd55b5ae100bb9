"""Real samples in one store: facts that several logs tell are there once, and every file has a verdict."""

from __future__ import annotations

import pathlib

import pyarrow.parquet as pq

from mpiio_ext.analytics import IOMiner
from mpiio_ext.analytics.store.logtable import read_logs
from support.traces import shared_data


def test_slurm_and_lmt_samples(tmp_path: pathlib.Path) -> None:
    folder = str(shared_data("tokio/samples"))
    miner = IOMiner(
        {
            "store": str(tmp_path / "store"),
            "inputs": {"slurm": [folder], "lmt": [folder]},
            "workers": 0,
            "site": {"time_zone": "America/Los_Angeles"},
        }
    )
    report = miner.init_stores()
    catalog = miner.catalog
    assert report.rows == {"slurm": 486, "lmt": 3 * 1440}
    assert (catalog.rows("slurm"), catalog.rows("lmt")) == (485, 1440), "a job and the interval are told several times"
    found = pq.read_table(catalog.files("lmt"))
    assert found.column("time").to_pylist() == sorted(found.column("time").to_pylist())
    jobs = pq.read_table(catalog.files("slurm")).column("job_id").to_pylist()
    assert jobs == sorted(set(jobs))
    logs = read_logs(catalog.folder, catalog.manifest.logs).to_pylist()
    assert {(row["path"], row["kind"]) for row in logs if row["status"] == "whole"} == {
        ("sample.slurm", "slurm"),
        ("sample_nersc_jobsdb.sqlite3", "slurm"),
        *((f"snx11025_2018-01-28.{form}", "lmt") for form in ("sqlite3", "hdf5", "h5lmt")),
    }
    assert all(row["reason"] for row in logs if row["status"] != "whole")
    assert miner.init_stores().known == len(logs)
