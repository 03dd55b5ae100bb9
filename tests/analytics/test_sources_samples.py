"""Every sample of the monitoring sources of real machines: read whole, and values that were counted by hand."""

from __future__ import annotations

import json
import pathlib
from collections import Counter

import pyarrow.compute as pc
import pytest

from mpiio_ext.analytics import sources
from mpiio_ext.analytics.sources import Records, lctl, topology
from support.darshan_rows import shared_data

ZONE = "America/Los_Angeles"
#: File -> source, and rows of its tables: counted with grep, wc, tar, h5dump and sqlite3.
SAMPLES = {
    "lctl-dl-t.txt.gz": ("lctl-dl", {"devices": 352}),
    "lfs-df.txt.gz": ("lfs-df", {"targets": 340, "summaries": 4}),
    "mmperfmon-nsdds.txt.gz": ("mmperfmon", {"samples": 2520}),
    "mmperfmon-usage.txt.gz": ("mmperfmon", {"samples": 360}),
    "mmperfmon.2019-05-15-micro.tgz": ("mmperfmon", {"samples": 17040}),
    "noposix.darshan": ("darshan", {"darshan_job": 1}),
    "sample-badost.darshan": ("darshan", {"darshan_job": 1}),
    "sample-goodost.darshan": ("darshan", {"darshan_job": 1}),
    "sample.slurm": ("slurm", {"slurm": 1, "lines": 11}),
    "sample.xtdb2proc.gz": ("xtdb2proc", {"processors": 499}),
    "sample_nersc_jobsdb.sqlite3": ("jobsdb", {"summary": 485, "slurm": 485}),
    "sample_ost-fullness.txt.gz": ("lfs-df", {"targets": 23800, "summaries": 280}),
    "sample_ost-map.txt.gz": ("lctl-dl", {"devices": 24640}),
    "snx11025_2018-01-28.h5lmt": ("lmt", {"lmt": 1440, "servers": 25 * 61, "fullness": 0}),
    "snx11025_2018-01-28.hdf5": ("lmt", {"lmt": 1440, "servers": 49 * 60, "operations": 720, "fullness": 1440}),
    "snx11025_2018-01-28.sqlite3": ("lmt", {"lmt": 1440, "servers": 49 * 61, "operations": 1260, "fullness": 1525}),
}


def sample(name: str) -> Records:
    path = shared_data("tokio", "samples", name)
    if name.endswith(("hdf5", "h5lmt")):
        pytest.importorskip("h5py")
    return sources.read(path, time_zone=ZONE)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_read_whole_and_comes_back(name: str, tmp_path: pathlib.Path) -> None:
    records = sample(name)
    source, rows = SAMPLES[name]
    assert (records.source, records.problems) == (source, ())
    assert {table: records.tables[table].num_rows for table in rows} == rows
    records.save(tmp_path / "records.json.gz")
    assert sources.load(tmp_path / "records.json.gz").equals(records)


def test_every_sample_has_a_connector() -> None:
    folder = shared_data("tokio", "samples")
    others = {"LICENSE", "site.json", "sample-badost.README"}
    assert {path.name for path in folder.iterdir()} - others == set(SAMPLES)


def test_the_disks_of_gpfs() -> None:
    """The first rows of one disk of the archive, and the last table of a text, as they stand there."""
    samples = sample("mmperfmon-nsdds.txt.gz").tables["samples"]
    last = samples.filter(pc.equal(samples["component"], samples["component"][-1].as_py()))
    assert last.num_rows == 60 and last["timestamp"][0].as_py() == "2019-03-04-16:01:00"
    disks = pc.count_distinct(samples["component"]).as_py()
    assert disks == 42
    archive = sample("mmperfmon.2019-05-15-micro.tgz").tables["samples"]
    mine = pc.and_(pc.equal(archive["host"], "ngfsv449.nersc.gov"), pc.equal(archive["component"], "ddn55dt00"))
    one = archive.filter(mine)
    read = one.filter(pc.equal(one["metric"], "gpfs_nsdds_bytes_read"))
    assert read["value"].to_pylist()[:3] == [96107503.0, 116637969.0, 121879074.0]
    assert set(archive["unit"].to_pylist()) == {"", "MB", "kB"}


def test_fullness_of_scratch2() -> None:
    records = sample("lfs-df.txt.gz")
    targets = records.tables["targets"].to_pylist()
    osts = [row for row in targets if row["mount"] == "/scratch2" and row["kind"] == "OST"]
    assert len(osts) == 24
    assert sum(row["used"] for row in osts) == 1590005655436
    assert osts[6]["used_percent"] == 83
    assert Counter(row["kind"] for row in targets) == {"OST": 332, "MDT": 8}
    series = sample("sample_ost-fullness.txt.gz")
    assert series.header == {"snapshots": 70}
    times = sorted(set(series.tables["targets"]["time"].to_pylist()))
    assert (times[0], len(times)) == (1489998203.0, 70)
    assert 880 < (times[-1] - times[0]) / 69 < 1300


def test_which_servers_had_foreign_osts() -> None:
    found = lctl.failovers(sample("lctl-dl-t.txt.gz").tables["devices"]).to_pylist()
    overloaded = {(row["target"], row["oss"]) for row in found if row["overloaded"]}
    assert {item for item in overloaded if item[0].startswith("snx11035")} == {
        ("snx11035-OST0002", "10.100.101.7@o2ib2"),
        ("snx11035-OST0003", "10.100.101.7@o2ib2"),
    }
    assert len(found) == 332 and {row["usual"] for row in found} == {1}


def test_where_the_nodes_of_the_job_were() -> None:
    processors = sample("sample.xtdb2proc.gz").tables["processors"]
    path = shared_data("tokio", "samples", "sample.slurm")
    nodes = json.loads(path.read_text())["4478544.0"]["nodelist"]
    found = topology.job_radius(processors, nodes)
    assert (found.nodes, found.unknown) == (128, ())
    places = {row["node"]: (row["x_coord"], row["y_coord"], row["z_coord"]) for row in processors.to_pylist()}
    centre = [sum(places[node][axis] for node in nodes) / 128 for axis in range(3)]
    mean = sum(sum((places[node][axis] - centre[axis]) ** 2 for axis in range(3)) ** 0.5 for node in nodes) / 128
    assert found.mean == pytest.approx(mean, rel=1e-12)


def test_three_forms_of_an_interval_of_lmt_agree() -> None:
    base, h5lmt, hdf5 = (sample(f"snx11025_2018-01-28.{form}") for form in ("sqlite3", "h5lmt", "hdf5"))

    def rows(records: Records, table: str, *key: str) -> dict[tuple[object, ...], object]:
        return {tuple(row[name] for name in key): row for row in records.tables[table].to_pylist()}

    operations = [rows(records, "operations", "time", "operation") for records in (base, h5lmt, hdf5)]
    for key, row in operations[2].items():
        assert operations[0][key] == row
    for key, row in operations[1].items():
        assert row["count"] == pytest.approx(operations[0][key]["count"])  # type: ignore[index]
    loads = [rows(records, "servers", "time", "server", "quantity") for records in (base, h5lmt, hdf5)]
    assert all(loads[0][key] == row for key, row in loads[2].items())
    assert all(loads[0][key] == row for key, row in loads[1].items() if key[1] is not None)
    full = [rows(records, "fullness", "time", "target") for records in (base, hdf5)]
    assert all(full[0][key] == row for key, row in full[1].items())
    steps = [rows(records, "lmt", "time", "ost") for records in (base, h5lmt, hdf5)]
    assert steps[0] == steps[1] == steps[2]
    # 19,186 B in the first step of OST 0: the difference of the first two counters in OST_DATA.
    assert steps[0][(1517126400.0, 0)]["bytes_written"] == 19186  # type: ignore[index]
