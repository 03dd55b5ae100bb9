"""GPFS: how full disks are (mmdf), in which state (mmlsdisk), and what a job's row says of both."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
from typing import Any

import pytest
from click.testing import CliRunner

from mpiio_ext.analytics.diagnosis import Finding, diagnose
from mpiio_ext.analytics.jobs.row import ask
from mpiio_ext.analytics.site import load_site
from mpiio_ext.analytics.sources import Records, SourceError
from mpiio_ext.analytics.tools.health import DiskStates, disk_states, fullness
from mpiio_ext.analytics.tools.moments import Period
from mpiio_ext.analytics.tools.system import System
from mpiio_ext.cli import main
from support import source_texts as texts
from support.darshan_logs import posix
from support.expected import Expected
from support.job_logs import BYTES_WRITTEN, OPENS, WRITE_TIME, WRITES, log_at
from support.monitoring import read, said, told
from support.quiet_rows import JOB, file, small


def disks_of(records: Records, *names: str) -> list[tuple[Any, ...]]:
    (table,) = (records.tables[name] for name in ("disks", "disk_states") if name in records.tables)
    return [tuple(row[name] for name in names) for row in table.to_pylist()]


# ---- mmdf ------------------------------------------------------------------------------------------------------------


def test_mmdf_as_text_and_coded(tmp_path: pathlib.Path, expected: Expected) -> None:
    for text in (texts.MMDF, texts.MMDF_Y):
        expected(told(read(tmp_path, text)))


def test_mmdf_in_other_units_and_of_disks_without_new_blocks(tmp_path: pathlib.Path, expected: Expected) -> None:
    """Larger units are rounded and do not add up."""
    text = texts.MMDF.split("BEGIN")[1].partition("\n")[2].replace("in KB", "in GB", 1)
    text = text.replace("4194304       -1", "    221       -1").replace("1048576 ( 25%)", "    221 ( 25%)")
    star = texts.MMDF.replace("1048576 ( 25%)          1888 ( 0%)", "0 (  0%)   0 ( 0%)  *", 1)
    for each in (text, star):
        expected(told(read(tmp_path, each)))


def test_mmdf_with_a_unit_behind_each_size(tmp_path: pathlib.Path) -> None:
    """As ``--block-size auto`` prints them: rounded, so that pools do not add up."""
    text = texts.MMDF.replace("in KB", "     ").replace("4194304       -1", "   4.1G       -1")
    text = text.replace("1048576 ( 25%)", "1.001G ( 25%)").replace("1888 ( 0%)", "1.8M ( 0%)")
    numbers = re.sub(r"(?<=\s)([0-9]{4,})(?= +(?:-?[0-9]+ |[0-9]+ \(|\())", lambda found: f"{found[1]}K", text)
    auto = read(tmp_path, numbers)
    assert auto.status == "whole" and auto.source == "mmdf", said(auto)
    names = ("disk", "size", "free_blocks", "free_fragments")
    assert disks_of(auto, *names)[1] == ("data1", round(4.1 * (1 << 20)), round(1.001 * (1 << 20)), 1843)
    assert disks_of(auto, *names)[0] == disks_of(read(tmp_path, texts.MMDF), *names)[0]
    bad = read(tmp_path, numbers.replace("4.1G", "4.1.1G", 1))
    assert said(bad)[0].startswith("input:11: neither heading, disk, total nor inodes: 'data1")


@pytest.mark.parametrize(
    ("old", "new", "problem", "rows"),
    [
        (
            "1048576 ( 25%)",
            "1048577 ( 25%)",
            "input:14: free_blocks of pool data is 4194304, and its disks add up to 4194305: a line "
            "is damaged or missing",
            6,
        ),
        (
            "1048576 ( 25%)",
            "10x8576 ( 25%)",
            "input:11: neither heading, disk, total nor inodes: "
            "'data1                 4194304       -1 No       Yes         '",
            5,
        ),
        ("1048576 ( 25%)", "4194304 (100%)", "input:11: disk data1 has more free than its size", 5),
        ("data2 ", "data1 ", "input:12: disk data1 a second time in a snapshot", 5),
        (" No       Yes         1048576", " Yo       Yes         1048576", "input:11: 'Yo' is neither Yes nor No", 5),
        (
            "(total) ",
            "(fatal) ",
            "input:20: neither heading, disk, total nor inodes: "
            "'(fatal)              10485760                               '",
            6,
        ),
        (
            "BEGIN 1489999103",
            "BEGIN 99999999999",
            "input:28: 'BEGIN 99999999999' begins a snapshot, and its time is none",
            6,
        ),
    ],
)
def test_mmdf_that_is_damaged(tmp_path: pathlib.Path, old: str, new: str, problem: str, rows: int) -> None:
    assert old in texts.MMDF
    records = read(tmp_path, texts.MMDF.replace(old, new, 1))
    assert said(records)[0] == problem
    assert len(disks_of(records)) == rows


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("41:5005384:1::", "41", "input:5: 11 fields, and 14 are named"),
        (":41:5005384", ":141:5005384", "input:5: a share of more than 100 %"),
        (
            "mmdf:inode:0:1:::430741822:484301506:915043328:1332164000:\n",
            "",
            "input: cut: the snapshot that begins here does not have all numbers of inodes",
        ),
        (
            "mmdf:fsTotal:HEADER",
            "mmdf:fsTotals:HEADER",
            "input:8: no line mmdf:fsTotal:HEADER above it names its fields",
        ),
    ],
)
def test_coded_lines_that_are_damaged(tmp_path: pathlib.Path, old: str, new: str, problem: str) -> None:
    assert old in texts.MMDF_Y
    assert said(read(tmp_path, texts.MMDF_Y.replace(old, new, 1)))[0] == problem


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("mmdf", "no output of mmdf: neither a line 'name in KB group …' nor mmdf:nsd:HEADER"),
        ("mmlsdisk", "no output of mmlsdisk: neither a line 'name type size group …' nor mmlsdisk::HEADER"),
    ],
)
def test_what_is_none_is_refused(tmp_path: pathlib.Path, source: str, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        read(tmp_path, texts.LFS_DF, source)
    assert caught.value.what == message


# ---- mmlsdisk --------------------------------------------------------------------------------------------------------


def test_mmlsdisk_in_its_forms(tmp_path: pathlib.Path, expected: Expected) -> None:
    for text in (texts.MMLSDISK, texts.MMLSDISK_L, texts.MMLSDISK_Y):
        expected(told(read(tmp_path, text)))


@pytest.mark.parametrize(
    ("text", "old", "new", "problem"),
    [
        (
            "MMLSDISK",
            "ready         down ",
            "ready         dawn ",
            "input:14: neither heading nor disk: 'data2        nsd         512         103 No       Yes   read'",
        ),
        ("MMLSDISK", "data2 ", "data1 ", "input:7: disk data1 a second time in a snapshot, or without a name"),
        ("MMLSDISK", "BEGIN 1489999103", "BEGIN x", "input:8: 'BEGIN x' begins a snapshot, and its time is none"),
        (
            "MMLSDISK_L",
            "suspended     recovering         2 data",
            "suspended     recovering",
            "input:5: 0 values behind the availability, and the heading names 3",
        ),
        (
            "MMLSDISK_L",
            "Number of quorum disks: 3\nRead quorum value:      2\nWrite quorum value:     2\n",
            "",
            "input:2: cut: the list of -L that begins here has no lines about the quorum",
        ),
        ("MMLSDISK_Y", ":ready:up:", ":ready:bar:", "input:2: a disk that is 'ready' and 'bar'"),
        ("MMLSDISK_Y", ":512:1:yes:yes", ":5-2:1:yes:yes", "input:2: '5-2' is no count"),
    ],
)
def test_mmlsdisk_that_is_damaged(tmp_path: pathlib.Path, text: str, old: str, new: str, problem: str) -> None:
    whole = getattr(texts, text)
    assert old in whole
    assert said(read(tmp_path, whole.replace(old, new, 1)))[0] == problem


# ---- what a job's row says -------------------------------------------------------------------------------------------


def test_disks_are_targets_and_their_states_are_those_before_a_moment(tmp_path: pathlib.Path) -> None:
    full, states = read(tmp_path, texts.MMDF), read(tmp_path, texts.MMLSDISK)
    found, notes = fullness([full], 1489999000.0)
    assert found is not None and not notes
    assert [target.name for target in found.targets] == ["data1", "data2"], "disks without data are no targets"
    assert (found.most.used_kib, found.most.index, found.least.name) == (4194304 - 1048576 - 1888, None, "data2")
    assert found.percent == pytest.approx(100 * (1 - (4194304 + 2 * 1888) / 8388608))
    before, _ = disk_states([states], 1489999000.0)
    assert before is not None and (before.disks, before.words, before.lead_s) == (3, {}, 797.0)
    later, _ = disk_states([states], 1489999104.0)
    assert later is not None and (later.down, later.not_ready) == (("data2",), ("data1",))
    assert later.words == {"data1": "being emptied, up", "data2": "ready, down"}
    assert disk_states([full], 1489999104.0) == (None, [])
    assert "the first sample of states of disks" in disk_states([states], 1.0)[1][0]


def test_a_row_has_fullness_and_failed_disks_of_the_file_system_that_the_site_says(tmp_path: pathlib.Path) -> None:
    (tmp_path / "mmdf.txt").write_text(texts.MMDF)
    (tmp_path / "mmlsdisk.txt").write_text(texts.MMLSDISK)
    site = load_site(
        {
            "file_systems": {name: {"kind": "gpfs", "mounts": [f"/{name}"]} for name in ("fs1", "fs2")},
            "files": [
                {"source": source, "file_system": "fs1", "path": f"{source}.txt"} for source in ("mmdf", "mmlsdisk")
            ],
        },
        tmp_path,
    )
    system = System(site)
    answer = ask(system, system.file_system(["/fs1"]), Period(1489999104.0, 1489999200.0), "begin", None)
    row = answer.columns
    assert (row["fshealth_ost_count"], row["fshealth_ost_most_full_name"]) == (2, "data1")
    assert [row[f"fshealth_disk_{name}count"] for name in ("", "down_", "not_ready_")] == [3, 1, 1]
    assert row["fshealth_disk_faults"] == "data1 (being emptied, up), data2 (ready, down)"
    assert {"mmdf", "mmlsdisk"} <= set(answer.sources)
    other = ask(system, system.file_system(["/fs2"]), Period(1489999104.0, 1489999200.0), "begin", None)
    assert not {"fshealth_ost_count", "fshealth_disk_count"} & other.columns.keys()
    given = System(None, [tmp_path / "mmdf.txt", tmp_path / "mmlsdisk.txt"])
    chosen, _ = given.disk_states(given.named("anything"), 1489999104.0)
    assert chosen is not None and chosen.disks == 3, "somebody chose the file system by its name"


# ---- diagnosis -------------------------------------------------------------------------------------------------------


def _storage_faults(states: DiskStates | None, **options: Any) -> list[Finding]:
    found = diagnose(JOB, [file(0, 90, **small())], disks=states, **options).findings
    return [finding for finding in found if finding.cause == "storage_fault"]


def test_failed_disks_are_a_finding_that_is_never_sure(tmp_path: pathlib.Path) -> None:
    states = read(tmp_path, texts.MMLSDISK)
    later, _ = disk_states([states], 1489999104.0)
    (found,) = _storage_faults(later)
    assert found.title == (
        "2 of 3 disks of the file system were not up and ready: data1 (being emptied, up), data2 (ready, down)."
    )
    assert (found.confidence, found.at_most) == ("medium", True)
    assert [one.value for one in found.evidence] == [1, 1, 3, 1]
    (hidden,) = _storage_faults(later, anonymous=True)
    assert "data" not in re.sub("metadata|moves_data", "", json.dumps(dataclasses.asdict(hidden)))
    emptied = texts.MMLSDISK.replace("ready         down", "ready         up  ")
    (found,) = _storage_faults(disk_states([read(tmp_path, emptied)], 1489999104.0)[0])
    assert (found.confidence, found.title[:9]) == ("low", "1 of 3 di")
    before, _ = disk_states([states], 1489999000.0)
    assert not _storage_faults(before) and not _storage_faults(None)


def test_the_command_takes_the_states_of_disks(tmp_path: pathlib.Path) -> None:
    records = [posix(7, 0, {OPENS: 1, BYTES_WRITTEN: 10**9, WRITES: 10**5}, {WRITE_TIME: 90.0})]
    log = log_at(tmp_path / "a.darshan", records, "/fs1", start=1489999104, end=1489999204, job_id=5)
    (tmp_path / "mmlsdisk.txt").write_text(texts.MMLSDISK)
    (tmp_path / "site.json").write_text(
        json.dumps(
            {
                "file_systems": {"fs1": {"kind": "gpfs", "mounts": ["/fs1"]}},
                "files": [{"source": "mmlsdisk", "file_system": "fs1", "path": "mmlsdisk.txt"}],
            }
        )
    )

    def told(*more: object) -> Any:
        return CliRunner().invoke(main, ["analyze", "logs", str(log), "--json", *map(str, more)])

    by_site, by_name = (
        told("--site", tmp_path / "site.json"),
        told("--source", tmp_path / "mmlsdisk.txt", "--file-system", "fs1"),
    )
    assert by_site.exit_code == by_name.exit_code == 0
    assert json.loads(by_site.stdout) == json.loads(by_name.stdout)
    without = told("--source", tmp_path / "mmlsdisk.txt")
    assert "which file system the job used is not known" in without.stderr
    assert "--file-system NAME" in without.stderr and "storage_fault" not in without.stdout
    other = told("--source", log, "--file-system", "fs1")
    assert other.exit_code == 0 and "a.darshan: not used: darshan has no states of disks" in other.stderr
    gone = told("--source", tmp_path / "gone.txt", "--file-system", "fs1")
    assert gone.exit_code == 2 and "gone.txt: cannot be read: No such file" in gone.stderr and not gone.stdout
