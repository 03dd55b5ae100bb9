"""What dates a log whose path does not: the start of its job; and names that are no logs that can be read."""

from __future__ import annotations

import datetime
import os
import pathlib
import socket
import warnings
from typing import Any

import pytest

from mpiio_ext.analytics import IOMiner
from mpiio_ext.analytics.sources.darshan import convert
from mpiio_ext.analytics.sources.darshanheader import start_of
from mpiio_ext.analytics.store.catalog import Catalog
from mpiio_ext.analytics.store.fill import Report, fill
from mpiio_ext.analytics.store.logtable import read_logs
from support import fake_logs
from support.darshan_logs import Job, make_log, packaged_logs


def logs(store: pathlib.Path) -> dict[str, dict[str, Any]]:
    catalog = Catalog(store)
    return {row["path"]: row for row in read_logs(catalog.folder, catalog.manifest.logs).to_pylist()}


def test_the_header_tells_what_the_connector_tells() -> None:
    found = packaged_logs()
    if not found:
        pytest.skip("this PyDarshan ships no logs")
    for path in found:
        jobs = convert([path.name], str(path.parent)).tables["darshan_job"]["start_time"].to_pylist()
        assert start_of(path) == pytest.approx(jobs[0], abs=1), path.name


@pytest.mark.parametrize("version", ["3.10", "3.21", "3.41"])
@pytest.mark.parametrize("order", ["<", ">"])
def test_the_header_of_any_version_and_order_of_bytes(tmp_path: pathlib.Path, version: str, order: str) -> None:
    path = tmp_path / "a.darshan"
    whole = make_log(Job(start=1_500_000_000), {}, {}, version=version, order=order)
    path.write_bytes(whole)
    assert start_of(path) == 1_500_000_000
    for length in range(0, len(whole), 37):  # cut off, it tells the same or nothing
        path.write_bytes(whole[:length])
        assert start_of(path) in (None, 1_500_000_000)


class Period:
    """Two logs of 2017, copied later, in a folder without dates."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        (folder / "logs").mkdir()
        for number, day in enumerate((datetime.datetime(2017, 3, 20, 1), datetime.datetime(2017, 11, 2)), 1):
            start = int(day.replace(tzinfo=datetime.timezone.utc).timestamp())
            job = make_log(Job(job_id=number, start=start), {}, {})
            (folder / "logs" / f"{number}.darshan").write_bytes(job)
        (folder / "logs" / "notes.darshan").write_text("no log")
        os.utime(folder / "logs" / "notes.darshan", (1.6e9, 1.6e9))  # 2020-09-13

    def fill(self, *period: str, zone: str = "UTC") -> Report:
        document = {
            "store": f"store-{zone}".replace("/", "-"),
            "inputs": {"darshan": ["logs"]},
            "workers": 0,
            "site": {"time_zone": zone},
        }
        from mpiio_ext.analytics.setup import load_setup

        return fill(load_setup(document, self.folder), *period)


def test_a_log_belongs_to_the_day_its_job_began(tmp_path: pathlib.Path) -> None:
    period = Period(tmp_path)
    report = period.fill("2017-01-01", "2017-06-30")
    assert (report.whole, report.outside) == (1, 2)
    assert report.notes == [
        "outside the period: 1 dated by the start of their jobs, in the logs, 2017-11-02 to 2017-11-02",
        "outside the period: 1 dated by the time of their last change, 2020-09-13 to 2020-09-13",
    ]
    assert all(note in str(report) for note in report.notes)
    found = logs(tmp_path / "store-UTC")
    assert [(row["status"], row["date"], row["dated"]) for _, row in sorted(found.items())] == [
        ("whole", "2017-03-20", "start"),
        ("outside", "2017-11-02", "start"),
        ("outside", "2020-09-13", "change"),
    ]
    assert Catalog(tmp_path / "store-UTC").entries("darshan_job")[0].period == "2017-03"


def test_logs_outside_are_looked_into_once_and_taken_when_their_period_comes(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    period = Period(tmp_path)
    period.fill("2017-01-01", "2017-06-30")
    before = Catalog(tmp_path / "store-UTC").manifest
    monkeypatch.setattr("mpiio_ext.analytics.sources.darshanheader.start_of", lambda path: 1 / 0)
    again = period.fill("2017-01-01", "2017-06-30")
    assert (again.known, again.outside, again.whole, again.vanished) == (1, 2, 0, 0)
    assert Catalog(tmp_path / "store-UTC").manifest == before
    (tmp_path / "logs" / "notes.darshan").unlink()
    assert (period.fill("2017-01-01", "2017-12-31").whole, len(logs(tmp_path / "store-UTC"))) == (1, 3)
    assert Catalog(tmp_path / "store-UTC").rows("darshan_job") == 2


def test_days_are_those_of_the_site(tmp_path: pathlib.Path) -> None:
    """01:00 UTC on the 20th is the 19th in California."""
    period = Period(tmp_path)
    assert period.fill("2017-03-19", "2017-03-19", zone="America/Los_Angeles").whole == 1
    assert period.fill("2017-03-20", "2017-03-20").whole == 1


def test_python_is_told_when_nothing_is_of_the_period(tmp_path: pathlib.Path) -> None:
    Period(tmp_path)
    miner = IOMiner({"store": str(tmp_path / "store"), "inputs": {"darshan": [str(tmp_path / "logs")]}, "workers": 0})
    with pytest.warns(UserWarning, match=r"no rows[^$]*2017-03-20 to 2017-11-02"):
        miner.init_stores("2018-01-01", "2018-01-31")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        miner.init_stores("2017-01-01", "2018-01-31")


def test_names_that_are_no_files_are_skipped_with_a_reason(tmp_path: pathlib.Path) -> None:
    """A FIFO would hold a fill up for ever; a link to nothing is a log that cannot be read now."""
    folder = tmp_path / "logs"
    fake_logs.write(folder, "good", "job 1 1")
    os.mkfifo(folder / "fifo.darshan")
    (folder / "dangling.darshan").symlink_to(folder / "gone")
    (folder / "folder").mkdir()
    (folder / "linked.darshan").symlink_to(folder / "folder")
    (folder / "link.darshan").symlink_to(fake_logs.write(tmp_path, "elsewhere", "job 2 1"))
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(folder / "socket.darshan"))
    connectors = {"darshan": fake_logs.convert}
    for inputs in ("logs", "logs/*.darshan"):
        store = f"store{len(inputs)}"
        setup = fake_logs.set_up(tmp_path, inputs={"darshan": [inputs]}, store=store)
        report = fill(setup, "1999-01-01", "2099-01-01", connectors=connectors)
        found = {name.removesuffix(".darshan"): row for name, row in logs(tmp_path / store).items()}
        told = {name: (row["status"], row["reason"]) for name, row in found.items()}
        assert told.pop("linked", ("skipped", "no file but a folder")) == ("skipped", "no file but a folder")
        assert told == {
            "good": ("whole", ""),
            "link": ("whole", ""),
            "fifo": ("skipped", "no file but a FIFO"),
            "socket": ("skipped", "no file but a socket"),
            "dangling": ("unreadable", "a link to nothing"),
        }
        assert (report.whole, report.unreadable, report.outside) == (2, 1, 0)
    fake_logs.write(folder, "gone", "job 3 1").rename(folder / "gone")
    assert fill(setup, connectors=connectors).whole == 1, "the link leads somewhere now"


@pytest.mark.parametrize("below", [b"bad\xff.darshan", b"folder\xe9/log.darshan"])
def test_a_name_that_is_not_utf8_costs_that_log_alone(tmp_path: pathlib.Path, below: bytes) -> None:
    """Such a name is in no table; the log is named in the manifest, and all others are converted."""
    folder = tmp_path / "logs"
    fake_logs.write(folder, "good", "job 1 1")
    strange = folder / os.fsdecode(below)
    strange.parent.mkdir(exist_ok=True)
    strange.write_bytes(b"job 2 1")
    told = below.decode("utf-8", "backslashreplace")
    connectors = {"darshan": fake_logs.convert}
    for inputs in ("logs", "logs/**/*.darshan"):
        store = f"store{len(inputs)}"
        setup = fake_logs.set_up(tmp_path, inputs={"darshan": [inputs]}, store=store)
        for again in range(2):
            report = fill(setup, "1999-01-01", "2099-01-01", connectors=connectors)
            found = {name: (row["status"], row["reason"]) for name, row in logs(tmp_path / store).items()}
            assert found == {"good.darshan": ("whole", ""), told: ("skipped", "its name is not UTF-8; rename it")}
            assert report.whole == (0 if again else 1)
