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


def read(folder: pathlib.Path, text: str | bytes, source: str | None = None, zone: str = "UTC") -> Records:
    path = folder / "input"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    records = sources.read(path, source, time_zone=zone)
    for table in records.tables.values():
        table.validate(full=True)
    return records


def said(records: Records) -> list[str]:
    return [str(problem).replace(records.path, "input") for problem in records.problems]


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


def test_mmperfmon(tmp_path: pathlib.Path) -> None:
    records = read(tmp_path, texts.USAGE, zone="America/Los_Angeles")
    assert records.header == {"step_s": 60.0, "hosts": ["io1.site"]}
    rows = records.tables["samples"].to_pylist()
    assert [(row["metric"], row["component"], row["value"], row["unit"]) for row in rows] == [
        ("cpu_user", None, 0.2, ""),
        ("cpu_user", None, None, ""),
        ("mem_free", None, 18786.5, "MB"),
        ("mem_free", None, 18785.6, "MB"),
        ("net_r", "lo", 1.7, "kB"),
        ("net_r", "lo", 98.7, "kB"),
    ]
    assert rows[0]["time"] == 1547229600.0 and rows[0]["timestamp"] == "2019-01-11-10:00:00"
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


def test_an_archive_names_the_file_that_is_damaged(tmp_path: pathlib.Path) -> None:
    data = texts.archive(("a.out", texts.USAGE), ("b.out", "nonsense\n"), ("c.out", texts.USAGE[:-1]), ("d.out", ""))
    records = read(tmp_path, data, "mmperfmon")
    assert said(records) == [
        "input:b.out:1: neither legend, heading nor row: 'nonsense'",
        "input:b.out: no output of mmperfmon query: neither a legend nor a table",
        "input:c.out:13: cut: the line has no end",
        "input:c.out:11: the table has 1 rows, and others have 2: the text is cut",
        "input:d.out: empty",
    ]
    assert set(records.tables["samples"]["member"].to_pylist()) == {"a.out", "c.out"}
    whole = texts.FORMS["archive"][1]
    between = read(tmp_path, whole[:1024], "mmperfmon")
    assert said(between) == ["input: input: cut, or damaged: no file of the archive can be read from byte 1,024"]
    assert between.tables["samples"].num_rows == 6
    cut = read(tmp_path, gzip.compress(data)[:-30], "mmperfmon")
    assert cut.status == "partial" and "gzip that ends early" in said(cut)[0]


def test_ggiostat(tmp_path: pathlib.Path) -> None:
    records = read(tmp_path, texts.GGIOSTAT)
    rows = records.tables["node_io"].to_pylist()
    assert [(row["time"], row["node_name"], row["bytes_read"], row["bytes_written"]) for row in rows] == [
        (1489998203.5, "ion1", 1024, 2048),
        (1489998203.500001, "ion2", 0, None),
    ]
    assert rows[0]["open_count"] is None
    bad = read(tmp_path, texts.GGIOSTAT.replace("1024", "10-24"))
    assert said(bad) == ["input:2: bytes_read: '10-24' is no count"]
    assert (bad.lost, bad.tables["node_io"].num_rows) == (1, 1)


# ---- Lustre ----------------------------------------------------------------------------------------------------------


def test_lfs_df(tmp_path: pathlib.Path) -> None:
    records = read(tmp_path, texts.LFS_DF)
    rows = records.tables["targets"].to_pylist()
    assert rows[2] == {
        "time": 1489998203.0,
        "file_system": "snx1",
        "target": "snx1-OST000a",
        "kind": "OST",
        "index": 10,
        "quantity": "1K-blocks",
        "total": 2000,
        "used": 500,
        "available": 1400,
        "used_percent": 27,
        "mount": "/scratch",
        "state": None,
    }
    assert (rows[4]["state"], rows[5]["state"]) == ("D", "inactive device")
    assert (rows[5]["total"], rows[5]["index"]) == (None, 10)
    assert records.tables["summaries"]["total"].to_pylist() == [4000, 2000]


def test_lfs_df_of_inodes_and_without_times(tmp_path: pathlib.Path) -> None:
    text = texts.LFS_DF.replace("BEGIN 1489998203\n", "").split("BEGIN")[0]
    text = text.replace("1K-blocks        Used   Available Use%", "   Inodes       IUsed       IFree IUse%")
    records = read(tmp_path, text)
    assert set(records.tables["targets"]["quantity"].to_pylist()) == {"Inodes"}
    assert records.tables["targets"]["time"].null_count == 3
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


def test_lctl_dl_and_failovers(tmp_path: pathlib.Path) -> None:
    records = read(tmp_path, texts.LCTL_DL)
    rows = records.tables["devices"].to_pylist()
    assert (rows[0]["target"], rows[0]["nid"], rows[1]["file_system"]) == (None, None, None)
    assert rows[11] == {
        "time": 1489999103.0,
        "number": 5,
        "state": "IN",
        "type": "osc",
        "name": "snx1-OST0002-osc-ffff885f",
        "uuid": "8dbdc7f6-8f86",
        "references": 5,
        "nid": "10.1.1.7@o2ib2",
        "file_system": "snx1",
        "target": "snx1-OST0002",
        "kind": "OST",
        "index": 2,
    }
    found = lctl.failovers(records.tables["devices"])
    assert found.schema == lctl.FAILOVERS.schema()
    names = ("time", "index", "osts_of_oss", "usual", "overloaded")
    assert [tuple(row[name] for name in names) for row in found.to_pylist()] == [
        (1489998203.0, 0, 1, 1, False),
        (1489998203.0, 1, 1, 1, False),
        (1489998203.0, 2, 1, 1, False),
        (1489999103.0, 0, 2, 1, True),
        (1489999103.0, 1, 2, 1, True),
        (1489999103.0, 2, 1, 1, False),
    ]


def test_lctl_dl_that_is_damaged(tmp_path: pathlib.Path) -> None:
    lost = read(tmp_path, texts.LCTL_DL.replace("BEGIN 1489999103\n", ""))
    assert said(lost) == ["input:8: device 0 behind 5: a line BEGIN is missing, and the devices from here have no time"]
    assert lost.tables["devices"]["time"].to_pylist() == [1489998203.0] * 6 + [None] * 6
    bad = read(tmp_path, texts.LCTL_DL.replace("OST0001", "OSX0001").encode().replace(b"clilov", b"cli\xff\xfe", 1))
    assert said(bad) == [
        "input:3: bytes that are no text, from column 20",
        "input:6: 'snx1-OSX0001-osc-ffff885f' is no name of a target",
        "input:13: 'snx1-OSX0001-osc-ffff885f' is no name of a target",
    ]
    assert bad.lost == 3


# ---- topology and jobs -----------------------------------------------------------------------------------------------


def test_topology_and_the_radius_of_a_job(tmp_path: pathlib.Path) -> None:
    records = read(tmp_path, texts.XTDB2PROC)
    processors = records.tables["processors"]
    row = processors.to_pylist()[1]
    assert (row["node"], row["x_coord"], row["processor_type"], row["cabinet"]) == ("nid05001", 4, "compute", None)
    assert json.loads(row["others"]) == {"vendor": "'x,y'"}
    # Corners of a rectangle of 4 by 3: the centre is 2.5 away from each.
    found = topology.job_radius(processors, ["nid05000", "nid05001", "nid05002", "nid05003", "nid09999", "nid05000"])
    assert (found.mean, found.least, found.greatest, found.centroid) == (2.5, 2.5, 2.5, (2.0, 1.5, 0.0))
    assert (found.nodes, found.unknown) == (4, ("nid09999",))
    three = topology.job_radius(processors, ["nid05000", "nid05001", "nid05002"])
    assert three.mean == pytest.approx((math.hypot(4 / 3, 1) + math.hypot(8 / 3, 1) + math.hypot(4 / 3, 2)) / 3)
    alone = topology.job_radius(processors, ["nid05003"])
    assert (alone.mean, alone.nodes) == (0.0, 1)
    nothing = topology.job_radius(processors, ["x"])
    assert (nothing.mean, nothing.centroid, nothing.unknown) == (None, None, ("x",))
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


def test_slurm_keeps_the_lines(tmp_path: pathlib.Path) -> None:
    records = read(tmp_path, texts.SACCT, zone="America/Los_Angeles")
    assert records.header == {"form": "sacct"}
    assert records.tables["lines"].to_pylist()[1] == {
        "JobIDRaw": "100.0",
        "State": "COMPLETED",
        "Start": "2018-01-28T01:00:10",
        "End": "2018-01-28T02:00:00",
        "NodeList": "nid0[0001-0003]",
    }
    (job,) = records.tables["slurm"].to_pylist()
    assert (job["job_id"], job["start_time"], job["nodes"]) == (100, 1517130000.0, ["nid00001", "nid00002", "nid00003"])
    tokio = read(tmp_path, texts.TOKIO_JOBS)
    assert tokio.tables["lines"].to_pylist()[0]["nodelist"] == ["nid05000", "nid05001"]
    bad = read(tmp_path, texts.SACCT.replace("100.0|COMPLETED", "100.0"))
    assert (said(bad)[0], bad.lost) == ("input:3: 4 columns, not 5, as the first line has", 1)
    jobs = read(tmp_path, json.dumps({"jobs": [{"job_id": 7, "name": "x"}, {"name": "y"}, 5]}))
    assert (jobs.header["form"], jobs.tables["lines"]["job_id"].to_pylist(), jobs.lost) == ("sacct-json", ["7"], 2)


def _jobs_database(path: pathlib.Path, *rows: tuple[Any, ...]) -> None:
    with contextlib.closing(sqlite3.connect(path)) as base, base:
        base.execute("CREATE TABLE summary (stepid PRIMARY KEY, hostname, start INTEGER, completion INTEGER, numnodes)")
        base.executemany("INSERT INTO summary VALUES (?, ?, ?, ?, ?)", rows)


def test_a_job_database(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "jobs.sqlite3"
    _jobs_database(path, ("100.edison", "edison", 1490000045, 1490000984, 2), ("101.edison", "edison", "soon", 5, 1))
    records = sources.read(path)
    assert (records.source, records.lost) == ("jobsdb", 1)
    assert str(records.problems[0]) == f"{path}:2: start is 'soon'"
    assert records.tables["summary"].to_pylist() == [
        {"stepid": "100.edison", "hostname": "edison", "start": 1490000045, "completion": 1490000984, "numnodes": 2}
    ]
    assert records.tables["slurm"]["job_id"].to_pylist()[0] == 100


# ---- series ----------------------------------------------------------------------------------------------------------


def test_a_series_as_csv(tmp_path: pathlib.Path) -> None:
    records = read(tmp_path, texts.SERIES, zone="America/Los_Angeles")
    rows = records.tables["series"].to_pylist()
    assert [(row["metric"], row["unit"]) for row in rows[:2]] == [("read", "B/s"), ("busy, all", "%")]
    assert [row["time"] for row in rows[::2]] == [1517097600.0, 1517126405.0, 1517126410.0]
    assert [row["value"] for row in rows] == [1.0, 2.5, None, None, 300.0, 0.0]
    lines = ["t;a", "2018-01-28T00:00:00.5+01:00;1", "2018-01-28T00:00:01;x", "2018-01-28T00:00:02;1;2", "0;2"]
    semicolons = read(tmp_path, "\n".join(lines))
    assert semicolons.tables["series"]["time"].to_pylist() == [1517094000.5, 0.0]
    assert said(semicolons) == [
        "input:3: 'x' is no number",
        "input:4: 3 values, and the first line names 2",
        "input:5: the last line has no end: it may be cut",
    ]
    assert semicolons.lost == 2
    with pytest.raises(SourceError, match="input:1: the first line must name a time and columns of values"):
        read(tmp_path, "t,a,a\n0,1,2\n", "csv")


def test_the_hour_that_clocks_show_twice(tmp_path: pathlib.Path) -> None:
    lines = [f"2018-11-04T{time}:00,1\n" for time in ("00:59", "01:30", "01:15", "01:45", "02:00")]
    records = read(tmp_path, "".join(["t,a\n", *lines]), zone="America/Los_Angeles")
    times = records.tables["series"]["time"].to_pylist()
    assert [time - times[0] for time in times] == [0.0, 1860.0, 4560.0, 6360.0, 7260.0]
