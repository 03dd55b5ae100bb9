"""Databases and HDF5: loads, operations and fullness of LMT, jobs, ggiostat; made here, whole and damaged."""

from __future__ import annotations

import contextlib
import json
import pathlib
import random
import signal
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpiio_ext.analytics import sources
from mpiio_ext.analytics.sources import Records, SourceError
from mpiio_ext.analytics.tools.moments import Period
from mpiio_ext.analytics.tools.system import System
from mpiio_ext.cli import main
from support.darshan_logs import Job, make_log

START = 1517126400
#: Three samples, 5 s apart.
LMT = """
CREATE TABLE TIMESTAMP_INFO (TS_ID, TIMESTAMP, PRIMARY KEY (TS_ID));
INSERT INTO TIMESTAMP_INFO VALUES (1, '2018-01-28 00:00:00'), (2, '2018-01-28 00:00:05'), (3, '2018-01-28 00:00:10');
CREATE TABLE OST_INFO (OST_ID, OSS_ID, OST_NAME, HOSTNAME);
INSERT INTO OST_INFO VALUES (1, 1, 'snx1-OST0000', 'n4');
CREATE TABLE OST_DATA (OST_ID, TS_ID, READ_BYTES, WRITE_BYTES, KBYTES_FREE, KBYTES_USED, INODES_FREE, INODES_USED);
INSERT INTO OST_DATA VALUES (1, 1, 0, 100, 30, 70, 3, 7), (1, 2, 10, 100, 29, 71, 2, 8), (1, 3, 30, 150, 28, 72, 2, 8);
CREATE TABLE OSS_INFO (OSS_ID, HOSTNAME); INSERT INTO OSS_INFO VALUES (1, 'n4');
CREATE TABLE OSS_DATA (OSS_ID, TS_ID, PCT_CPU, PCT_MEMORY);
INSERT INTO OSS_DATA VALUES (1, 1, 2.5, 90), (1, 2, NULL, 91), (1, 3, 4.5, 92);
CREATE TABLE MDS_INFO (MDS_ID, MDS_NAME, HOSTNAME); INSERT INTO MDS_INFO VALUES (1, 'snx1-MDT0000', 'n3');
CREATE TABLE MDS_DATA (MDS_ID, TS_ID, PCT_CPU, KBYTES_FREE, KBYTES_USED, INODES_FREE, INODES_USED);
INSERT INTO MDS_DATA VALUES (1, 1, 1.5, 5, 5, 6, 4), (1, 2, 1.6, 5, 5, 6, 4), (1, 3, 1.7, 4, 6, 5, 5);
CREATE TABLE OPERATION_INFO (OPERATION_ID, OPERATION_NAME); INSERT INTO OPERATION_INFO VALUES (1, 'open'), (2, 'close');
CREATE TABLE MDS_OPS_DATA (MDS_ID, TS_ID, OPERATION_ID, SAMPLES);
INSERT INTO MDS_OPS_DATA VALUES (1, 1, 1, 1000), (1, 2, 1, 1007), (1, 3, 1, 3), (1, 1, 2, 5), (1, 3, 2, 9);
"""
FUZZ = settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))


def base_of(path: pathlib.Path, script: str) -> pathlib.Path:
    with contextlib.closing(sqlite3.connect(path)) as base:
        base.executescript(script)
    return path


def rows(records: Records, table: str, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in records.tables[table].to_pylist()]


def test_loads_operations_and_fullness_of_a_database(tmp_path: pathlib.Path) -> None:
    records = sources.read(base_of(tmp_path / "l.sqlite3", LMT))
    assert (records.source, records.status) == ("lmt", "whole")
    assert rows(records, "servers", "server", "kind", "quantity", "value") == [
        ("n4", "oss", "cpu", 2.5),
        ("n4", "oss", "cpu", None),
        ("n4", "oss", "cpu", 4.5),
        ("n4", "oss", "memory", 90.0),
        ("n4", "oss", "memory", 91.0),
        ("n4", "oss", "memory", 92.0),
        ("n3", "mds", "cpu", 1.5),
        ("n3", "mds", "cpu", 1.6),
        ("n3", "mds", "cpu", 1.7),
    ]
    # The counter of open went back; the middle sample of close is lost.
    assert rows(records, "operations", "time", "operation", "count") == [
        (START - 28800, "open", 7.0),
        (START - 28795, "open", None),
        (START - 28800, "close", None),
        (START - 28795, "close", None),
    ]
    assert rows(records, "fullness", "target", "kind", "used_kib", "total_kib", "inodes_used", "inodes_total")[::3] == [
        ("snx1-OST0000", "OST", 70.0, 100.0, 7.0, 10.0),
        ("snx1-MDT0000", "MDT", 5.0, 10.0, 4.0, 10.0),
    ]
    assert Records.from_json(records.to_json()).equals(records)


def test_a_database_with_less(tmp_path: pathlib.Path) -> None:
    less = LMT + "DROP TABLE MDS_OPS_DATA; DROP TABLE OSS_INFO;"
    records = sources.read(base_of(tmp_path / "l.sqlite3", less))
    assert records.status == "whole"
    assert [records.tables[name].num_rows for name in ("servers", "operations", "fullness")] == [0, 0, 6]
    odd = sources.read(base_of(tmp_path / "o.sqlite3", LMT + "UPDATE OSS_DATA SET PCT_CPU = 'x' WHERE TS_ID = 3;"))
    assert (odd.status, odd.tables["lmt"].num_rows) == ("partial", 2)
    assert "MDS_DATA, MDS_INFO, OSS_DATA, OSS_INFO cannot be read: could not convert string" in str(odd.problems[0])


def _tokio(path: pathlib.Path) -> pathlib.Path:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        for group, dataset, column, values in (
            ("datatargets", "readbytes", "snx1-OST0000", [10, 20]),
            ("datatargets", "writebytes", "snx1-OST0000", [0, 50]),
            ("dataservers", "cpuload", "n4", [2.5, -0.0]),
            ("mdtargets", "statfss", "n3", [7, 0]),
            ("fullness", "bytes", "snx1-OST0000", [70, 71]),
            ("fullness", "bytestotal", "snx1-OST0000", [100, 100]),
        ):
            data = file.create_dataset(f"{group}/{dataset}", data=np.array(values, dtype=np.float64).reshape(2, 1))
            data.attrs["columns"] = [column.encode()]
            if "timestamps" not in file[group]:
                file.create_dataset(f"{group}/timestamps", data=np.array([START, START + 5]))
    return path


def test_loads_operations_and_fullness_of_hdf5(tmp_path: pathlib.Path) -> None:
    records = sources.read(_tokio(tmp_path / "l.hdf5"))
    assert rows(records, "servers", "time", "server", "value") == [(START, "n4", 2.5), (START + 5, "n4", None)]
    assert rows(records, "operations", "operation", "count") == [("statfs", 7.0), ("statfs", 0.0)]
    assert rows(records, "fullness", "used_kib", "total_kib", "inodes_used") == [
        (70.0, 100.0, None),
        (71.0, 100.0, None),
    ]


JOBS = """
CREATE TABLE summary (stepid PRIMARY KEY, hostname, start INTEGER, completion INTEGER, numnodes INTEGER);
INSERT INTO summary VALUES ('100.edison', 'edison', 1490000045, 1490000984, 2), ('101.edison', 'edison', 1, 5, 1);
"""
GGIOSTAT = """
CREATE TABLE NODE_FILESYSTEM_IO (FILESYSTEM_NAME, NODE_NAME, SECONDS, MICROSECONDS, BYTES_READ, BYTES_WRITTEN);
INSERT INTO NODE_FILESYSTEM_IO VALUES ('fs1', 'n1', 1490000045, 5, 10, 20), ('fs1', 'n2', 1490000045, 5, 11, 'x');
"""


def test_ggiostat_in_a_database(tmp_path: pathlib.Path) -> None:
    records = sources.read(base_of(tmp_path / "g.sqlite3", GGIOSTAT))
    assert (records.source, records.lost, records.tables["node_io"].num_rows) == ("ggiostat", 1, 1)
    assert str(records.problems[0]) == f"{tmp_path}/g.sqlite3:2: bytes_written: 'x' is no count"


@pytest.fixture(scope="module")
def folder() -> Iterator[pathlib.Path]:
    with tempfile.TemporaryDirectory() as name:
        yield pathlib.Path(name)


@pytest.mark.parametrize(("source", "script"), [("lmt", LMT), ("jobsdb", JOBS), ("ggiostat", GGIOSTAT)])
@FUZZ
@given(st.data())
def test_damaged_databases(folder: pathlib.Path, source: str, script: str, data: Any) -> None:
    name = folder / source
    if not name.exists():
        base_of(name, script)
    content = bytearray(name.read_bytes())
    # What is not zero, and so mostly means something.
    places = [at for at, byte in enumerate(content) if byte]
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.sampled_from(places))] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.sampled_from([len(content), len(content), len(content) * 2 // 3, 700]))]
    (folder / "damaged").write_bytes(content)
    for asked in (source, None):
        try:
            records = sources.read(folder / "damaged", asked)
        except SourceError:
            continue
        for table in records.tables.values():
            table.validate(full=True)
        assert Records.from_json(records.to_json()).equals(records)


def test_damaged_hdf5_is_read_apart(tmp_path: pathlib.Path) -> None:
    """The library may crash; the caller has records or an error with a cause."""
    whole = _tokio(tmp_path / "l.hdf5")
    assert sources.read_apart(whole).equals(sources.read(whole))
    content, source, path = whole.read_bytes(), random.Random(3), tmp_path / "bad.hdf5"
    places = [at for at, byte in enumerate(content) if byte]
    for _ in range(4):
        damaged = bytearray(content)
        for at in source.sample(places, 12):
            damaged[at] = source.randrange(256)
        path.write_bytes(damaged)
        try:
            records = sources.read_apart(path, "lmt")
        except SourceError as error:
            assert str(error).startswith(f"{path}: ") and error.what
        else:
            assert records.source == "lmt" and set(records.tables) == {"lmt", "servers", "operations", "fullness"}


def test_a_reader_stays_for_further_files_and_comes_back_after_its_death(tmp_path: pathlib.Path) -> None:
    whole = _tokio(tmp_path / "l.hdf5")
    base = base_of(tmp_path / "l.sqlite3", LMT)
    wanted = sources.read(whole)
    with sources.ApartReader() as reader:
        assert reader.read(whole).equals(wanted)
        assert reader._started is not None
        first = reader._started.process
        assert reader.read(base, time_zone="UTC").equals(sources.read(base, time_zone="UTC"))
        with pytest.raises(SourceError, match="none"):
            reader.read(tmp_path / "none")
        assert reader._started.process is first, "one process for all"
        first.kill()
        first.wait()
        assert reader.read(whole).equals(wanted) and reader._started.process is not first
        last = reader._started.process
        last.send_signal(signal.SIGSTOP)  # it cannot have answered before the first look
        with pytest.raises(SourceError, match="has not ended after 0 s"):
            reader.read(whole, timeout_s=0)
        assert reader._started is None
    assert last.returncode is not None, "nobody is left behind"


def test_a_file_that_kills_its_reader_costs_itself_alone(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the system's sources; the process is one that dies as libhdf5 lets it."""
    (tmp_path / "killed").write_text("#!/bin/sh\nkill -SEGV $$\n")
    (tmp_path / "killed").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "killed"))
    base = base_of(tmp_path / "l.sqlite3", LMT)
    system = System(None, [_tokio(tmp_path / "bad.hdf5"), base], time_zone="America/Los_Angeles")
    found, notes = system.traffic(system.named("snx1"), Period(START, START + 10.0))
    assert found.read is not None and found.read.total() == 30, "of the database"
    assert [str(note) for note in notes] == [
        f"lmt skipped: {tmp_path}/bad.hdf5: its reader was killed by SIGSEGV: it is damaged"
    ]
    assert notes[0].damage


@pytest.mark.slow
def test_the_command_outlives_damaged_hdf5(tmp_path: pathlib.Path) -> None:
    """Random bytes of real files: the row is there, with a note or with what could be read."""
    pytest.importorskip("darshan")
    content, source = _tokio(tmp_path / "l.hdf5").read_bytes(), random.Random(7)
    places = [at for at, byte in enumerate(content) if byte]
    log = tmp_path / "x.darshan"
    log.write_bytes(make_log(Job(start=START, end=START + 4, mounts=(("lustre", "/snx1"),)), {7: "/snx1/a"}, {}))
    bad = tmp_path / "bad.hdf5"
    for number in range(4):
        damaged = bytearray(content if number else content[: len(content) // 2])
        for at in source.sample([at for at in places if at < len(damaged) and at >= 8], 12):
            damaged[at] = source.randrange(256)
        bad.write_bytes(damaged)
        done = CliRunner().invoke(
            main,
            [
                "analyze",
                "summarize-job",
                str(log),
                "--source",
                str(bad),
                "--file-system",
                "snx1",
                "--json",
                "--strict",
                "--allow-missing",
            ],
        )
        (row,) = json.loads(done.stdout)
        assert row["_log"] == "x.darshan" and done.exit_code in (0, 1), done.output
        assert number or (done.exit_code == 1 and f"lmt skipped: {bad}: " in row["_notes"])


def test_a_reader_that_dies(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for word, cause in (("false", "ended with status 1"), ("true", "ended with status 0")):
        monkeypatch.setattr(sys, "executable", word)
        with pytest.raises(SourceError, match=f"x: its reader {cause}: it is damaged"):
            sources.read_apart(tmp_path / "x")
    (tmp_path / "killed").write_text("#!/bin/sh\nkill -SEGV $$\n")
    (tmp_path / "killed").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "killed"))
    with pytest.raises(SourceError, match="its reader was killed by SIGSEGV: it is damaged"):
        sources.read_apart(tmp_path / "x")
