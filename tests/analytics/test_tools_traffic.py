"""What the servers moved: the same from every form of every source, equal to a sum by hand."""

from __future__ import annotations

import contextlib
import pathlib
import sqlite3

import numpy as np
import pytest

from mpiio_ext.analytics.site import load_site
from mpiio_ext.analytics.sources import Records
from mpiio_ext.analytics.sources import read as read_source
from mpiio_ext.analytics.sources.lmt import convert
from mpiio_ext.analytics.tools.moments import Period
from mpiio_ext.analytics.tools.system import System
from mpiio_ext.analytics.tools.traffic import Traffic, traffic
from support.monitoring import lmt_table, records, table
from support.traces import shared_data

FORMS = ("sqlite3", "hdf5", "h5lmt")
FIVE_MINUTES = Period.of("2018-01-28T00:00:00-08:00", "2018-01-28T00:05:00-08:00")


def sample(form: str, period: Period = FIVE_MINUTES) -> Traffic:
    folder = shared_data("tokio/samples")
    found = convert([f"snx11025_2018-01-28.{form}"], str(folder), "America/Los_Angeles")
    return traffic([records("lmt", form, **found.tables)], period, {"snx11025"})


def counted_by_hand(path: pathlib.Path) -> dict[str, tuple[int, int]]:
    """Return what each OST read and wrote in the database: the last value of its counters less the first."""
    with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as base:
        return {
            name: (read, written)
            for name, read, written in base.execute(
                "SELECT OST_NAME, MAX(READ_BYTES) - MIN(READ_BYTES), MAX(WRITE_BYTES) - MIN(WRITE_BYTES)"
                " FROM OST_DATA JOIN OST_INFO USING (OST_ID) GROUP BY OST_NAME"
            )
        }


def test_three_forms_of_one_interval_give_the_same_series() -> None:
    pytest.importorskip("h5py")
    first, *others = (sample(form) for form in FORMS)
    assert first.read is not None
    assert first.read.values.shape == (60, 24)
    for other in others:
        for name, series in first.series().items():
            if name in ("bytes_read", "bytes_written"):
                np.testing.assert_array_equal(other.series()[name].values, series.values)
                assert (other.series()[name].names, other.series()[name].first) == (series.names, series.first)


@pytest.mark.parametrize("form", FORMS)
def test_totals_of_osts_equal_a_count_by_hand(form: str) -> None:
    pytest.importorskip("h5py")
    counted = counted_by_hand(shared_data("tokio/samples") / "snx11025_2018-01-28.sqlite3")
    found = sample(form)
    assert found.read is not None
    assert found.written is not None
    assert found.read.by_component() == {name: read for name, (read, _) in sorted(counted.items())}
    assert found.written.by_component() == {name: written for name, (_, written) in sorted(counted.items())}
    assert found.written.total() == sum(written for _, written in counted.values()) == 119_037_925_429


@pytest.mark.parametrize("form", FORMS)
def test_part_of_an_interval_and_a_period_beyond_it(form: str) -> None:
    pytest.importorskip("h5py")
    start = FIVE_MINUTES.start
    parts = [sample(form, Period(start + low, start + high)) for low, high in ((0, 101.5), (101.5, 300))]
    whole = sample(form)
    assert whole.read is not None
    assert sum(part.read.total() or 0 for part in parts if part.read is not None) == whole.read.total()
    beyond = sample(form, Period(start + 290, start + 320)).read
    assert beyond is not None
    assert (len(beyond.values), beyond.missing) == (6, 4 / 6)
    nothing = sample(form, Period(start + 86400, start + 86430))
    assert (nothing.series(), len(nothing.notes)) == ({}, 1)
    assert "begins at 2018-01-28 08:00:00Z" in nothing.notes[0]


# ---- made by hand ----------------------------------------------------------------------------------------------------


def test_lmt_of_two_days_and_two_file_systems() -> None:
    one = records("lmt", "a", lmt=lmt_table([(1000.0, "f-OST0000", 1, 2), (1005.0, "f-OST0000", None, 4)], "f"))
    two = records("lmt", "b", lmt=lmt_table([(1005.0, "f-OST0000", 8, None), (1010.0, "f-OST0001", 16, 32)], "f"))
    other = records("lmt", "c", lmt=lmt_table([(1000.0, "g-OST0000", 100, 100)], "g"))
    found = traffic([one, two, other], Period(1000.0, 1015.0), {"f"})
    assert found.read is not None
    np.testing.assert_array_equal(found.read.values, [[1, np.nan], [8, np.nan], [np.nan, 16]])
    assert found.written is not None
    np.testing.assert_array_equal(found.written.values, [[2, np.nan], [4, np.nan], [np.nan, 32]])
    assert found.sources == ("lmt",)


def test_load_and_operations_of_servers() -> None:
    load = table(
        {
            "time": [1000, 1000, 1005],
            "server": ["oss1", "mds1", "oss1"],
            "kind": ["oss", "mds", "oss"],
            "quantity": ["cpu", "cpu", "cpu"],
            "value": [10, 30, 20],
        }
    )
    counts = table({"time": [1000, 1005], "server": ["mds1"] * 2, "operation": ["open", "open"], "count": [7, 9]})
    found = traffic([records("lmt", servers=load, operations=counts)], Period(1000.0, 1010.0), edges="share")
    assert found.cpu["oss"].values.ravel().tolist() == [10.0, 20.0]
    assert (found.cpu["oss"].level, found.cpu["oss"].unit) == (True, "%")
    np.testing.assert_array_equal(found.cpu["mds"].values.ravel(), [30.0, np.nan])
    assert found.operations["open"].total() == 16
    assert set(found.series()) == {"oss_cpu", "mds_cpu", "open_ops"}


@pytest.mark.parametrize("stamps", ["begin", "end"])
def test_gpfs_units_are_powers_of_1024_and_stamps_as_the_site_says(stamps: str) -> None:
    columns = {
        "time": [1060, 1120] * 4 if stamps == "end" else [1000, 1060] * 4,
        "host": ["s1"] * 8,
        "component": ["lun1"] * 4 + [""] * 4,
        "metric": ["gpfs_nsdds_bytes_read"] * 2 + ["gpfs_nsdds_bytes_written"] * 2 + ["cpu_user"] * 2 + ["cpu_sys"] * 2,
        "value": [1, 2, 3, 4, 10, 20, 1, 2],
        "unit": ["kB", "MB", "", "", "", "", "", ""],
    }
    source = records("mmperfmon", header={"step_s": 60.0, "stamps": stamps}, samples=table(columns))
    found = traffic([source], Period(1000.0, 1120.0))
    assert found.read is not None
    assert (found.read.first, found.read.step_s, found.read.names) == (1000.0, 60.0, ("s1:lun1",))
    assert found.read.values.ravel().tolist() == [1024.0, 2 * 1024.0**2]
    assert found.written is not None
    assert found.written.values.ravel().tolist() == [3.0, 4.0]
    assert found.cpu["oss"].values.ravel().tolist() == [11.0, 22.0]
    assert found.cpu["oss"].names == ("s1",)


def test_counters_that_grow_start_again_or_miss_a_sample() -> None:
    times = [1000, 1005, 1010, 1015, 1025, 1030]
    source = records(
        "ggiostat",
        node_io=table(
            {
                "time": times,
                "node_name": ["n1"] * 6,
                "filesystem_name": ["f"] * 6,
                "bytes_read": [10, 30, 5, 6, 9, 9],
                "bytes_written": [0, 1, 2, 3, 5, 8],
                "open_count": [0, 0, 4, 4, 4, 5],
                "close_count": [None] * 6,
                "read_requests": [0] * 6,
                "write_requests": [0] * 6,
                "read_directory": [0] * 6,
                "inode_updates": [0] * 6,
            }
        ),
    )
    found = traffic([source], Period(1000.0, 1030.0), {"f"})
    assert found.read is not None
    np.testing.assert_array_equal(found.read.values.ravel(), [20, np.nan, 1, np.nan, np.nan, 0])
    assert found.operations["open"].total() == 5
    assert "close" not in found.operations
    assert traffic([source], Period(1000.0, 1030.0), {"g"}).series() == {}


@pytest.mark.parametrize("counter", [True, False])
def test_columns_of_csv(counter: bool) -> None:
    metric = "lustre_read_bytes_total" if counter else "bytes_read"
    values = [100, 110, 140] if counter else [10, 30, 1]
    series = table({"time": [0, 10, 20], "metric": [metric] * 3, "value": values})
    found = traffic([records("csv", series=series)], Period(0.0, 20.0))
    assert found.read is not None
    assert (found.read.names, found.read.step_s) == (("made",), 10.0)
    assert found.read.values.tolist() == [[10], [30]]


def test_values_that_are_left_out_have_a_note() -> None:
    times = [0.0, 10.0, 10.0, 20.0, 24.0, 30.0, 40.0, 50.0]
    series = table({"time": times, "metric": ["bytes_written"] * 8, "value": [1.0] * 8})
    found = traffic([records("csv", series=series)], Period(0.0, 60.0))
    assert found.written is not None and found.written.total() == 6
    (note,) = found.notes
    assert note.startswith("made: 2 values of bytes_written are left out, ") and note.endswith("steps of 10 s")


def csv_of(tmp_path: pathlib.Path, names: str) -> Records:
    path = tmp_path / "io.csv"
    path.write_text(f"time,{names}\n0,1,10\n10,2,20\n20,4,40\n")
    return read_source(path)


@pytest.mark.parametrize(
    ("names", "read", "written"),
    [
        ("bytes_read,bytes_written", 3, 30),
        ("bytes_read [B],bytes_written [GB]", 3, 30e9),
        ("bytes_read [KiB],bytes_written [B/s]", 3 * 1024, 300),
        ("read [B/s],write [MiB/s]", 30, 300 * 2**20),
        ("read [bytes],written [kB]", 3, 30_000),
        ("lustre_read_bytes_total [kB],write [B]", 3000, 30),
    ],
)
def test_units_of_columns_are_converted(tmp_path: pathlib.Path, names: str, read: float, written: float) -> None:
    found = traffic([csv_of(tmp_path, names)], Period(0.0, 20.0))
    assert found.read is not None and found.written is not None
    assert (found.read.total(), found.written.total()) == (read, written)
    assert (found.read.unit, found.notes) == ("B", ())


def test_units_and_names_that_are_not_known_are_named(tmp_path: pathlib.Path) -> None:
    found = traffic([csv_of(tmp_path, "bytes_read [blocks],bytes_written")], Period(0.0, 20.0))
    assert found.read is None and found.written is not None
    assert len(found.notes) == 1 and "bytes_read [blocks] is not used: the unit is not known" in found.notes[0]
    (note,) = traffic([csv_of(tmp_path, "lustre_read_bytes_total [B/s],x")], Period(0.0, 20.0)).notes
    assert "lustre_read_bytes_total [B/s] is not used" in note
    for names in ("read,write", "read [IOPS],flux"):  # counts of requests, perhaps
        (note,) = traffic([csv_of(tmp_path, names)], Period(0.0, 20.0)).notes
        assert "no known metric name (there are " in note and names.split(",")[0] in note and "site.json" in note


def test_a_site_names_metrics_and_their_units(tmp_path: pathlib.Path) -> None:
    (tmp_path / "io.csv").write_text("time,in,out [MB],bytes_read\n0,1,10,7\n10,2,20,7\n20,4,40,7\n")
    entry = {
        "source": "csv",
        "file_system": "f",
        "path": "io.csv",
        "metrics": {"bytes_read": ["none", "in [kB/s]"], "bytes_written": "out"},
    }
    site = load_site({"file_systems": {"f": {"mounts": ["/f"]}}, "files": [entry]}, tmp_path)
    system = System(site)
    found, notes = system.traffic(system.named("f"), Period(0.0, 20.0))
    assert notes == [] and found.read is not None and found.written is not None
    assert (found.read.total(), found.written.total()) == (30_000, 30e6)


def test_sources_with_different_steps_are_not_added_up() -> None:
    lmt = records("lmt", lmt=lmt_table([(1000.0, "f-OST0000", 1, 2)], "f"))
    series = table({"time": [1000, 1010], "metric": ["bytes_read"] * 2, "value": [1, 2]})
    found = traffic([lmt, records("csv", series=series)], Period(1000.0, 1010.0))
    assert found.read is None
    assert found.written is not None
    assert "steps of 5 and 10 s" in found.notes[0]
