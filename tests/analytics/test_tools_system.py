"""The sources of a site: files by date, zones, clocks, names of file systems; what is missing is named."""

from __future__ import annotations

import contextlib
import pathlib
import sqlite3
from typing import Any

import pytest

from mpiio_ext.analytics import sources
from mpiio_ext.analytics.site import load_site
from mpiio_ext.analytics.tools.moments import Period, moment
from mpiio_ext.analytics.tools.system import System
from support.monitoring import records
from support.traces import shared_data

ZONE = "America/Los_Angeles"
MIDNIGHT = moment("2018-01-28T00:00:00", ZONE)


def site_of(folder: pathlib.Path, **more: Any) -> Any:
    """Return a site with three file systems; LMT by day, fullness of the whole machine by day."""
    return load_site(
        {
            "time_zone": ZONE,
            "file_systems": {
                "scratch1": {"kind": "lustre", "backend": "snx11025", "mounts": ["/scratch1"]},
                "scratch2": {"kind": "lustre", "backend": "snx11035", "mounts": ["/scratch2"]},
                "project": {"kind": "gpfs", "mounts": ["/global/project"]},
            },
            "clocks": {"ahead": {"offset_s": 10}, "utc": {"time_zone": "UTC"}},
            "files": [
                {"source": "lmt", "file_system": "scratch1", "path": "%Y-%m-%d/lmt1.sqlite", **more},
                {"source": "lmt", "file_system": "scratch2", "path": "%Y-%m-%d/lmt2.sqlite"},
                {"source": "lfs-df", "path": "%Y-%m-%d/osts.txt"},
            ],
        },
        folder,
    )


def day_of(folder: pathlib.Path, day: str, name: str, times: list[str], ost: str = "snx11025-OST0000") -> None:
    """Write a database of LMT in which an OST has read 10 B and written 1 B between two stamps."""
    (folder / day).mkdir(exist_ok=True)
    with contextlib.closing(sqlite3.connect(folder / day / name)) as base, base:
        base.execute("CREATE TABLE OST_INFO (OST_ID, OSS_ID, OST_NAME, HOSTNAME)")
        base.execute("CREATE TABLE TIMESTAMP_INFO (TS_ID, TIMESTAMP)")
        columns = ("OST_ID", "TS_ID", "READ_BYTES", "WRITE_BYTES")
        base.execute(f"CREATE TABLE OST_DATA ({', '.join(columns)})")
        base.execute("INSERT INTO OST_INFO VALUES (1, 1, ?, 'h')", (ost,))
        base.executemany("INSERT INTO TIMESTAMP_INFO VALUES (?, ?)", [(k, f"{day} {t}") for k, t in enumerate(times)])
        base.executemany("INSERT INTO OST_DATA VALUES (1, ?, ?, ?)", [(k, 10 * k, k) for k in range(len(times))])


def test_files_of_two_days_in_the_sites_zone(tmp_path: pathlib.Path) -> None:
    day_of(tmp_path, "2018-01-27", "lmt1.sqlite", ["23:59:45", "23:59:50", "23:59:55"])
    day_of(tmp_path, "2018-01-28", "lmt1.sqlite", ["00:00:00", "00:00:05", "00:00:10"])
    day_of(tmp_path, "2018-01-28", "lmt2.sqlite", ["00:00:00", "00:00:05"], "snx11035-OST0000")
    system = System(site_of(tmp_path))
    mine = system.file_system(["/scratch1"])
    assert (mine.name, mine.names) == ("scratch1", {"scratch1", "snx11025"})
    found, notes = system.traffic(mine, Period(MIDNIGHT - 15, MIDNIGHT + 10))
    assert found.read is not None
    steps = found.read.by_step()
    assert (steps[:2].tolist(), steps[3:].tolist()) == ([10, 10], [10, 10])
    assert found.read.missing == 1 / 5, "the counters of a file end with it"
    assert notes == []
    _, notes = system.traffic(mine, Period(MIDNIGHT + 86400, MIDNIGHT + 86500))
    assert f"lmt missing: {tmp_path}/2018-01-29/lmt1.sqlite: there is no such file" in map(str, notes)
    _, notes = system.fullness(mine, MIDNIGHT + 60)
    assert f"lfs-df missing: {tmp_path}/2018-01-28/osts.txt: there is no such file" in map(str, notes)
    other, _ = system.traffic(system.file_system(["/scratch2"]), Period(MIDNIGHT, MIDNIGHT + 5))
    assert other.read is not None
    assert other.read.names == ("snx11035-OST0000",)


def test_clocks_are_corrected(tmp_path: pathlib.Path) -> None:
    day_of(tmp_path, "2018-01-28", "lmt1.sqlite", ["00:00:10", "00:00:15", "00:00:20"])
    system = System(site_of(tmp_path, clock="ahead"))
    found, _ = system.traffic(system.named("snx11025"), Period(MIDNIGHT, MIDNIGHT + 10))
    assert found.read is not None
    assert (found.read.first, found.read.by_step().tolist()) == (MIDNIGHT, [10, 10])
    utc = System(site_of(tmp_path, clock="utc"))
    found, _ = utc.traffic(utc.named("scratch1"), Period(MIDNIGHT, MIDNIGHT + 10))
    assert found.series() == {}, "by this clock the stamps are of another time of day"


def test_sources_without_a_file_system_are_of_the_one_that_the_site_says(tmp_path: pathlib.Path) -> None:
    system = System(site_of(tmp_path))
    series, silent = records("csv", header={"file_system": "project"}), records("csv")
    assert System._is_of(series, system.file_system(["/global/project"]))
    assert not System._is_of(series, system.file_system(["/scratch1"]))
    assert not System._is_of(silent, system.file_system(["/scratch1"]))
    assert System._is_of(silent, system.named("scratch1")), "somebody chose it"


def test_disks_and_servers_of_gpfs_metadata_are_told_apart_where_the_site_says_which() -> None:
    """Of the real samples: na…md… are disks with metadata, ngfsv492 and 493 their servers."""
    archive = shared_data("tokio/samples") / "mmperfmon.2019-05-15-micro.tgz"
    period = Period(1557947700, 1557949000)

    def moved(**roles: list[str]) -> tuple[set[str], set[str], set[str]]:
        """Return the disks that bytes are of, and the servers that load of data and of metadata is of."""
        site = load_site(
            {
                "time_zone": "America/Los_Angeles",
                "file_systems": {"project": {"kind": "gpfs", "mounts": ["/project"], **roles}},
                "files": [{"source": "mmperfmon", "file_system": "project", "path": str(archive)}],
            }
        )
        system = System(site)
        found, notes = system.traffic(system.file_system(["/project/a"]), period)
        assert found.read is not None and found.written is not None and not notes
        assert found.read.names == found.written.names
        load = {kind: {name.partition(".")[0] for name in one.names} for kind, one in found.cpu.items()}
        return {name.partition(":")[2] for name in found.read.names}, load["oss"], load.get("mds", set())

    disks, servers, none = moved()
    data = {disk for disk in disks if disk.startswith("ddn")}
    assert data < disks and servers == {f"ngfsv{number}" for number in (448, 449, 492, 493, 494, 495)} and not none
    assert moved(data_targets=[r"^ddn\d+dt\d+$"])[0] == data == moved(metadata_targets=[r"^na\d+md\d+$"])[0]
    metadata = {"ngfsv492", "ngfsv493"}
    assert moved(metadata_servers=["^ngfsv49[23]"])[1:] == (servers - metadata, metadata)


def test_a_file_system_that_nobody_knows(tmp_path: pathlib.Path) -> None:
    system = System(site_of(tmp_path))
    assert system.file_system(["/home", "/tmp"]).names is None
    for ask in (system.fullness, system.failovers):
        answer, notes = ask(system.file_system(["/home"]), MIDNIGHT)
        assert answer is None
        assert "give --file-system NAME, or its mount point in site.json" in notes[0].what


def test_each_file_is_read_once(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    day_of(tmp_path, "2018-01-28", "lmt1.sqlite", ["00:00:00", "00:00:05"])
    asked: list[str] = []
    lmt: Any = sources.connector_of("lmt")
    read = lmt.read

    def noted(path: Any, *rest: Any, **more: Any) -> Any:
        asked.append(str(path))
        return read(path, *rest, **more)

    monkeypatch.setattr(lmt, "read", noted)
    system = System(site_of(tmp_path))
    for _ in range(3):
        system.traffic(system.named("scratch1"), Period(MIDNIGHT, MIDNIGHT + 5))
    assert asked == [str(tmp_path / "2018-01-28" / "lmt1.sqlite")]


def test_a_site_finds_the_samples(tmp_path: pathlib.Path) -> None:
    """LMT's sample under the name that a site's template gives it."""
    folder = shared_data("tokio/samples")
    (tmp_path / "2018-01-28").mkdir()
    (tmp_path / "2018-01-28" / "lmt1.sqlite").symlink_to((folder / "snx11025_2018-01-28.sqlite3").resolve())
    system = System(site_of(tmp_path))
    found, _ = system.traffic(system.file_system(["/scratch1"]), Period(MIDNIGHT, MIDNIGHT + 300))
    assert found.written is not None
    assert found.written.total() == 119_037_925_429
    full, _ = system.fullness(system.file_system(["/scratch1"]), MIDNIGHT + 7)
    assert full is not None
    assert (full.source, full.lead_s, len(full.targets)) == ("lmt", 2.0, 24)
