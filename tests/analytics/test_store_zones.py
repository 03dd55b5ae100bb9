"""A wrong time zone of the site: named after a fill, in the report and in the manifest."""

from __future__ import annotations

import datetime
import pathlib
import zoneinfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mpiio_ext.analytics.setup import load_setup
from mpiio_ext.analytics.store.catalog import Catalog
from mpiio_ext.analytics.store.fill import Report, fill
from mpiio_ext.analytics.store.zones import Days
from support.darshan_logs import Job, make_log

ZONE = zoneinfo.ZoneInfo("America/Los_Angeles")
#: Noon of a winter day.
NOON = datetime.datetime(2018, 1, 28, 12, tzinfo=ZONE)


def sacct(folder: pathlib.Path, name: str, jobs: dict[int, tuple[int, int]], zone: datetime.tzinfo) -> None:
    """Write jobs with start and duration (s since noon, s) in local time."""
    folder.mkdir(exist_ok=True)
    lines = ["JobIDRaw|JobName|Start|End"]
    for job, (start, seconds) in jobs.items():
        begin = (NOON + datetime.timedelta(seconds=start)).astimezone(zone)
        ends = begin + datetime.timedelta(seconds=seconds)
        lines.append(f"{job}|a|{begin:%Y-%m-%dT%H:%M:%S}|{ends:%Y-%m-%dT%H:%M:%S}")
    (folder / name).write_text("\n".join(lines) + "\n")


@pytest.fixture
def place(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return a folder with ten runs of Darshan: of each job one, half a minute behind its start."""
    (tmp_path / "darshan").mkdir()
    for job in range(1, 11):
        start = int(NOON.timestamp()) + 100 * job + 30
        log = make_log(Job(job_id=job, start=start, end=start + 500), {}, {})
        (tmp_path / "darshan" / f"{job}.darshan").write_bytes(log)
    return tmp_path


JOBS = {job: (100 * job, 600) for job in range(1, 11)}


def filled(place: pathlib.Path, zone: str) -> Report:
    setup = {
        "store": f"store-{len(zone)}",
        "inputs": {"darshan": ["darshan"], "slurm": ["slurm"]},
        "workers": 0,
        "site": {"time_zone": zone},
    }
    return fill(load_setup(setup, place))


def test_slurm_that_is_hours_off_darshan_is_noted(place: pathlib.Path) -> None:
    sacct(place / "slurm", "a.txt", JOBS, ZONE)
    assert filled(place, "America/Los_Angeles").notes == []
    report = filled(place, "UTC")
    [note] = report.notes
    assert note.startswith("slurm is 8 h early against Darshan, for 10 of 10 runs: is site.time_zone (UTC) right?")
    assert note in str(report) and Catalog(place / "store-3").manifest.notes == (note,)
    sacct(place / "slurm", "b.txt", {99: (0, 10)}, ZONE)
    assert filled(place, "UTC").notes == [note], "it stays until the store is filled anew"


def test_of_shifts_that_show_as_many_runs_whole_hours_come_first(place: pathlib.Path) -> None:
    """Jobs are longer than their runs: a shift of 7 h 45 min would do, too."""
    sacct(place / "slurm", "a.txt", {job: (start, 3600) for job, (start, _) in JOBS.items()}, ZONE)
    [note] = filled(place, "UTC").notes
    assert note.startswith("slurm is 8 h early against Darshan, for 10 of 10 runs")


def test_slurm_without_darshan_has_nothing_to_be_compared_with(tmp_path: pathlib.Path) -> None:
    (tmp_path / "darshan").mkdir()
    sacct(tmp_path / "slurm", "a.txt", JOBS, ZONE)
    report = filled(tmp_path, "UTC")
    assert (report.notes, report.rows["slurm"]) == ([], len(JOBS))


def test_two_forms_of_slurm_that_differ_by_hours_are_noted(place: pathlib.Path) -> None:
    sacct(place / "slurm", "local.txt", JOBS, ZONE)
    sacct(place / "slurm", "utc.txt", JOBS, datetime.timezone.utc)
    assert [note.split(":")[0] for note in filled(place, "UTC").notes] == ["slurm has 10 jobs twice, 8 h apart"]


def test_jobs_that_ran_again_and_ids_that_were_used_again_are_no_wrong_zone(place: pathlib.Path) -> None:
    sacct(place / "slurm", "a.txt", JOBS, ZONE)
    sacct(place / "slurm", "again.txt", {job: (start + 7200, 333 + job) for job, (start, _) in JOBS.items()}, ZONE)
    sacct(place / "slurm", "old.txt", {job: (start - 10**7, 600) for job, (start, _) in JOBS.items()}, ZONE)
    assert filled(place, "America/Los_Angeles").notes == []


def lmt(path: pathlib.Path, first: float, seconds: float, moved: float = 7.0) -> list[str]:
    """Write rows of LMT from a time on, and return the file's name in a list."""
    times = first + np.arange(0.0, seconds, 5)
    bytes_read = np.full(len(times), moved)
    pq.write_table(pa.table({"time": times, "bytes_read": bytes_read, "bytes_written": bytes_read}), path)
    return [str(path)]


def test_a_day_of_lmt_begins_at_midnight(tmp_path: pathlib.Path) -> None:
    midnight = datetime.datetime(2018, 1, 28, tzinfo=ZONE).timestamp()
    whole, part = lmt(tmp_path / "a", midnight, 86400), lmt(tmp_path / "b", midnight, 7200)

    def notes(zone: str, parts: list[str], date: str = "2018-01-28") -> list[str]:
        days = Days(zone)
        days.look_at("x.hdf5", parts, date)
        return days.notes()

    assert notes("America/Los_Angeles", whole) == notes("UTC", whole, "") == []
    assert notes("UTC", part) == [], "a part of a day may begin at any time"
    [note] = notes("UTC", whole)
    assert note.startswith("lmt: x.hdf5 begins 8 h after midnight of the day in its path: is site.time_zone (UTC)")


def test_two_forms_of_lmt_that_differ_by_hours_are_noted(tmp_path: pathlib.Path) -> None:
    days = Days("UTC")
    days.look_at("a.hdf5", lmt(tmp_path / "a", 8 * 3600, 600), "")
    days.look_at("b.sqlite", lmt(tmp_path / "b", 0, 600), "")
    days.look_at("c.sqlite", lmt(tmp_path / "c", 3600, 600, moved=8.0), "")
    assert [note.split(":")[1] for note in days.notes()] == [" b.sqlite is equal to a.hdf5, 8 h apart"]
    quiet = Days("UTC")
    for number in range(3):
        quiet.look_at(f"{number}.hdf5", lmt(tmp_path / "d", 3600.0 * number, 600, moved=0.0), "")
    assert quiet.notes() == [], "hours in which nothing was moved are alike"
