"""What connectors of monitoring sources return, value by value, and what they say of damage."""

from __future__ import annotations

import contextlib
import gzip
import json
import math
import pathlib
import sqlite3
from typing import Any

import pytest

from mpiio_ext.analytics import sources
from mpiio_ext.analytics.sources import Records, SourceError, lctl, mmperfmon, topology
from support import source_texts as texts
from support.expected import Expected
from support.monitoring import read, said, told


@pytest.mark.parametrize(("source", "text"), texts.FORMS.values(), ids=texts.FORMS)
def test_every_source_comes_back_from_json(tmp_path: pathlib.Path, source: str, text: bytes) -> None:
    records = read(tmp_path, text)
    assert (records.source, records.status, records.lost) == (source, "whole", 0), records.problems
    assert records.check() is records
    assert Records.from_json(records.to_json()).equals(records)
    assert Records.from_json(records.to_json()).header == records.header
    for name in ("again", "again.gz"):
        records.save(tmp_path / f"json-{name}")
        saved = sources.load(tmp_path / f"json-{name}")
        assert saved.equals(records) and saved.header == records.header and saved.path == records.path
    if not text.startswith(b"PAR1"):  # which is packed inside
        (tmp_path / "packed").mkdir()
        (tmp_path / "packed" / "input").write_bytes(gzip.compress(text))
        assert sources.read(tmp_path / "packed" / "input").equals(records)


@pytest.mark.parametrize(("source", "text"), texts.FORMS.values(), ids=texts.FORMS)
def test_the_columns_are_those_that_are_documented(tmp_path: pathlib.Path, source: str, text: bytes) -> None:
    records = read(tmp_path, text)
    documented = {table.name: table for table in sources.connector_of(source).TABLES}
    assert set(records.tables) == set(documented)
    for name, table in records.tables.items():
        if (source, name) != ("slurm", "lines"):  # which has the columns of the source
            assert table.schema.equals(documented[name].schema(), check_metadata=True)
            units = {field.name: (field.metadata or {}).get(b"unit", b"").decode() for field in table.schema}
            assert units == {column.name: column.unit for column in documented[name].columns}
        assert all(column.name and column.type for column in documented[name].columns)


# ---- GPFS ------------------------------------------------------------------------------------------------------------


def test_mmperfmon(tmp_path: pathlib.Path, expected: Expected) -> None:
    expected(told(read(tmp_path, texts.USAGE, zone="America/Los_Angeles")))
    assert mmperfmon.UNITS["MB"] == 2**20


def test_the_columns_of_a_later_table_are_the_next_of_the_legend(tmp_path: pathlib.Path) -> None:
    """A table of columns that all have one name, as those of disks, cannot be told by its heading."""
    keys = [f"{at}:\tio|GPFSNSDDisk|d{at}|gpfs_nsdds_bytes_read" for at in (1, 2, 3)]
    table = "Row Timestamp gpfs_nsdds_bytes_read{}\n1 2019-03-04-16:01:00 {}\n"
    text = "Legend:\n" + "\n".join(keys) + "\n" + table.format(" gpfs_nsdds_bytes_read", "5 6") + table.format("", "7")
    rows = read(tmp_path, text).tables["samples"].to_pylist()
    assert [(row["component"], row["value"]) for row in rows] == [("d1", 5.0), ("d2", 6.0), ("d3", 7.0)]


@pytest.mark.parametrize(
    ("old", "new", "problem", "lost", "rows"),
    [
        ("0.2  18786.5", "0.2 x 18786.5", "input:8: 'x' is no number", 1, 4),
        ("null  18785.6", "18785.6", "input:9: 1 values, and the heading has 2", 1, 4),
        (
            "2019-01-11-10:01:00   98.7",
            "2019-01-11-10:61:00   98.7",
            "input:13: '2019-01-11-10:61:00' is no time",
            1,
            5,
        ),
        (
            "Row           Timestamp     net_r",
            "Row           Timestamp     net_x",
            "input:11: column 3 (net_x) is net_r in the legend: its values are left out",
            1,
            4,
        ),
        (
            " 2:\tio1.site",
            " 2;\tio1.site",
            "input:4: neither legend, heading nor row: '2;\\tio1.site|Memory|mem_free'",
            2,
            4,
        ),
        (
            "  2 2019-01-11-10:01:00   98.7 kB \n",
            "",
            "input:11: the table has 1 rows, and others have 2: the text is cut",
            1,
            5,
        ),
    ],
)
def test_mmperfmon_that_is_damaged(
    tmp_path: pathlib.Path, old: str, new: str, problem: str, lost: int, rows: int
) -> None:
    assert old in texts.USAGE
    records = read(tmp_path, texts.USAGE.replace(old, new))
    assert (said(records)[0], records.lost, records.tables["samples"].num_rows) == (problem, lost, rows)
    with pytest.raises(SourceError, match="input"):
        records.check()


def test_a_text_of_mmperfmon_that_ends_behind_a_table_is_cut(tmp_path: pathlib.Path) -> None:
    records = read(tmp_path, texts.USAGE[: texts.USAGE.index(" \nRow           Timestamp     net_r")])
    assert said(records) == ["input: columns 3 to 3 of the legend have no table: the text is cut"]


def test_an_archive_names_the_file_that_is_damaged(tmp_path: pathlib.Path, expected: Expected) -> None:
    data = texts.archive(("a.out", texts.USAGE), ("b.out", "nonsense\n"), ("c.out", texts.USAGE[:-1]), ("d.out", ""))
    expected(told(read(tmp_path, data, "mmperfmon")))
    expected(told(read(tmp_path, texts.FORMS["archive"][1][:1024], "mmperfmon")))
    cut = read(tmp_path, gzip.compress(data)[:-30], "mmperfmon")
    assert cut.status == "partial" and "gzip that ends early" in said(cut)[0]


def test_ggiostat(tmp_path: pathlib.Path, expected: Expected) -> None:
    for text in (texts.GGIOSTAT, texts.GGIOSTAT.replace("1024", "10-24")):
        expected(told(read(tmp_path, text)))


# ---- Lustre ----------------------------------------------------------------------------------------------------------


def test_lfs_df(tmp_path: pathlib.Path, expected: Expected) -> None:
    expected(told(read(tmp_path, texts.LFS_DF)))


def test_lfs_df_of_inodes_and_without_times(tmp_path: pathlib.Path, expected: Expected) -> None:
    text = texts.LFS_DF.replace("BEGIN 1489998203\n", "").split("BEGIN")[0]
    text = text.replace("1K-blocks        Used   Available Use%", "   Inodes       IUsed       IFree IUse%")
    expected(told(read(tmp_path, text)))
    with pytest.raises(SourceError, match="no output of lfs df"):
        read(tmp_path, texts.LFS_DF.replace("1K-blocks", "bytes"), "lfs-df")


@pytest.mark.parametrize(
    ("old", "new", "problems", "rows"),
    [
        (
            "1000         900  53%",
            "1x00         900  53%",
            [
                "input:4: neither heading, target nor summary: "
                "'snx1-OST0000_UUID           2000        1x00         900  53'"
            ],
            5,
        ),
        (
            "1000         900  53%",
            "1900         900  53%",
            ["input:7: used of /scratch is 1500, and its OSTs add up to 2400: a line is damaged or missing"],
            6,
        ),
        ("[OST:0]\n", "[OST:1]\n", ["input:4: 'snx1-OST0000_UUID' is not OST 1"], 5),
        (
            "\nfilesystem summary:         2000        1001         899  53% /scratch\n\n",
            "",
            ["input:10: cut: the table that begins here has no summary"],
            6,
        ),
        (
            "BEGIN 1489999103",
            "BEGIN 14899991x3",
            ["input:9: 'BEGIN 14899991x3' begins a snapshot, and its time is none: the rows behind it have no time"],
            6,
        ),
        (
            "BEGIN 1489999103\n",
            "",
            ["input:10: snx1-MDT0000 a second time: a line BEGIN is missing, and the rows from here have no time"],
            6,
        ),
        (
            "BEGIN 1489999103",
            "BXGIN 1489999103",
            ["input:9: neither heading, target nor summary: 'BXGIN 1489999103'"],
            6,
        ),
    ],
)
def test_lfs_df_that_is_damaged(tmp_path: pathlib.Path, old: str, new: str, problems: list[str], rows: int) -> None:
    assert old in texts.LFS_DF
    records = read(tmp_path, texts.LFS_DF.replace(old, new, 1))
    assert (said(records), records.tables["targets"].num_rows) == (problems, rows)
    times = records.tables["targets"]["time"].to_pylist()
    assert times[-1] == (None if "BEGIN" in old else 1489999103.0)


def test_lctl_dl_and_failovers(tmp_path: pathlib.Path, expected: Expected) -> None:
    records = read(tmp_path, texts.LCTL_DL)
    expected(told(records))
    found = lctl.failovers(records.tables["devices"])
    assert found.schema == lctl.FAILOVERS.schema()
    expected(found.to_pylist())


def test_lctl_dl_that_is_damaged(tmp_path: pathlib.Path, expected: Expected) -> None:
    expected(told(read(tmp_path, texts.LCTL_DL.replace("BEGIN 1489999103\n", ""))))
    bad = texts.LCTL_DL.replace("OST0001", "OSX0001").encode().replace(b"clilov", b"cli\xff\xfe", 1)
    expected(told(read(tmp_path, bad)))


# ---- topology and jobs -----------------------------------------------------------------------------------------------


def test_topology_and_the_radius_of_a_job(tmp_path: pathlib.Path, expected: Expected) -> None:
    records = read(tmp_path, texts.XTDB2PROC)
    expected(told(records))
    names = [f"nid0500{number}" for number in range(4)]
    # Corners of a rectangle of 4 by 3: the centre is 2.5 away from each.
    asked = ([*names, "nid09999", names[0]], names[:3], names[3:], ["x"])
    found = [topology.job_radius(records.tables["processors"], each) for each in asked]
    expected(found)
    assert found[1].mean == pytest.approx((math.hypot(4 / 3, 1) + math.hypot(8 / 3, 1) + math.hypot(4 / 3, 2)) / 3)
    absent = read(tmp_path, texts.XTDB2PROC.replace("x_coord=4,y_coord=0", "x_coord=null,y_coord=0"))
    assert topology.job_radius(absent.tables["processors"], ["nid05001"]).unknown == ("nid05001",)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("processor_id=5001", "processor_id=5000", "input:4: processor 5000 a second time"),
        ("x_coord=4,y_coord=0", "x_coord=4,y_coord=O", "input:4: y_coord is 'O', which is no number"),
        ("x_coord=4,y_coord=0", "x_coord=4", "input:4: its fields are not those of the first line"),
        ("cpu=1,", "cpu=1;", "input:4: its fields are not those of the first line"),
        ("processor_id=5001", "processor_id=null", "input:4: it has no processor_id"),
    ],
)
def test_topology_that_is_damaged(tmp_path: pathlib.Path, old: str, new: str, problem: str) -> None:
    records = read(tmp_path, texts.XTDB2PROC.replace(old, new, 1), "xtdb2proc")
    assert (said(records), records.lost, records.tables["processors"].num_rows) == ([problem], 1, 3)


def test_slurm_keeps_the_lines(tmp_path: pathlib.Path, expected: Expected) -> None:
    expected(told(read(tmp_path, texts.SACCT, zone="America/Los_Angeles")))
    jobs = json.dumps({"jobs": [{"job_id": 7, "name": "x"}, {"name": "y"}, 5]})
    for text in (texts.TOKIO_JOBS, texts.SACCT.replace("100.0|COMPLETED", "100.0"), jobs):
        expected(told(read(tmp_path, text)))


def _jobs_database(path: pathlib.Path, *rows: tuple[Any, ...]) -> None:
    with contextlib.closing(sqlite3.connect(path)) as base, base:
        base.execute("CREATE TABLE summary (stepid PRIMARY KEY, hostname, start INTEGER, completion INTEGER, numnodes)")
        base.executemany("INSERT INTO summary VALUES (?, ?, ?, ?, ?)", rows)


def test_a_job_database(tmp_path: pathlib.Path, expected: Expected) -> None:
    path = tmp_path / "jobs.sqlite3"
    _jobs_database(path, ("100.edison", "edison", 1490000045, 1490000984, 2), ("101.edison", "edison", "soon", 5, 1))
    expected(told(sources.read(path)))


# ---- series ----------------------------------------------------------------------------------------------------------


def test_a_series_as_csv(tmp_path: pathlib.Path, expected: Expected) -> None:
    expected(told(read(tmp_path, texts.SERIES, zone="America/Los_Angeles")))
    lines = ["t;a", "2018-01-28T00:00:00.5+01:00;1", "2018-01-28T00:00:01;x", "2018-01-28T00:00:02;1;2", "0;2"]
    expected(told(read(tmp_path, "\n".join(lines))))
    with pytest.raises(SourceError, match="input:1: the first line must name a time and columns of values"):
        read(tmp_path, "t,a,a\n0,1,2\n", "csv")


def test_the_hour_that_clocks_show_twice(tmp_path: pathlib.Path) -> None:
    lines = [f"2018-11-04T{time}:00,1\n" for time in ("00:59", "01:30", "01:15", "01:45", "02:00")]
    records = read(tmp_path, "".join(["t,a\n", *lines]), zone="America/Los_Angeles")
    times = records.tables["series"]["time"].to_pylist()
    assert [time - times[0] for time in times] == [0.0, 1860.0, 4560.0, 6360.0, 7260.0]
