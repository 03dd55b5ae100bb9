"""Placement: subtables of equal size by job range on their targets, joins on one target, and bytes read per target."""

from __future__ import annotations

import pathlib
from typing import Any

import pyarrow.parquet as pq
import pytest

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.setup import PlacementPlan
from mpiio_ext.analytics.store.catalog import Catalog
from mpiio_ext.analytics.store.fill import fill
from mpiio_ext.analytics.store.placement import place, target_of
from support import fake_logs

JOBS = 60


@pytest.fixture
def store(tmp_path: pathlib.Path) -> pathlib.Path:
    for number in range(JOBS):
        fake_logs.write(tmp_path / "logs", f"{number:03}", f"job {number} 3 {number}")
    refill(tmp_path)
    return tmp_path


def refill(folder: pathlib.Path) -> None:
    fill(fake_logs.set_up(folder), connectors={"darshan": fake_logs.convert})


def plan_of(folder: pathlib.Path, targets: int = 2, count: int = 6, osts: tuple[int, ...] = ()) -> PlacementPlan:
    return PlacementPlan(
        targets=tuple(str(folder / f"t{number}") for number in range(targets)), subtables=count, osts=osts
    )


def content(folder: pathlib.Path, table: str) -> list[dict[str, Any]]:
    found = [row for path in Catalog(folder / "store").files(table) for row in pq.read_table(path).to_pylist()]
    return sorted(found, key=lambda row: (row["job_id"], row["log_id"], row.get("file_id") or 0))


def test_tables_are_split_alike_and_joins_stay_on_one_target(store: pathlib.Path) -> None:
    before = {table: content(store, table) for table in ("darshan_job", "darshan_file")}
    place(store / "store", plan_of(store))
    assert {table: content(store, table) for table in before} == before
    catalog = Catalog(store / "store")
    places: dict[int, set[tuple[int, int]]] = {}
    for table in before:
        entries = catalog.entries(table)
        assert sorted({entry.subtable for entry in entries}) == list(range(6))
        assert [len([entry for entry in entries if entry.target == target]) for target in (0, 1)] == [3, 3]
        for entry in entries:
            assert entry.target == target_of(entry.subtable, 6, 2)
            assert pathlib.Path(entry.path).is_relative_to(store / f"t{entry.target}")
            found = pq.read_table(entry.path, columns=["job_id"]).column(0).to_pylist()
            assert (min(found), max(found)) == (entry.low, entry.high)
            for job in found:
                places.setdefault(job, set()).add((entry.subtable, entry.target))
    assert len(places) == JOBS
    assert all(len(where) == 1 for where in places.values()), "all rows of a job lie in one subtable of each table"
    assert {entry.rows for entry in catalog.entries("darshan_file")} == {30}


def test_a_job_range_reads_from_its_target_alone(store: pathlib.Path) -> None:
    place(store / "store", plan_of(store))
    catalog = Catalog(store / "store")
    tables = ("darshan_job", "darshan_file")
    assert [[entry.target for entry in catalog.entries(table, 0, 9)] for table in tables] == [[0], [0]]
    assert [{entry.target for entry in catalog.entries(table, 0, JOBS)} for table in tables] == [{0, 1}, {0, 1}]
    assert sorted(entry.subtable for entry in catalog.entries("darshan_job")) == list(range(6))
    assert sorted(entry.target for entry in catalog.entries("darshan_job")) == [0] * 3 + [1] * 3


def test_what_is_not_placed_reads_from_the_store(store: pathlib.Path) -> None:
    assert [entry.target for entry in Catalog(store / "store").entries("darshan_job", 0, JOBS)] == [-1]


def test_new_and_changed_logs_go_to_their_subtables(store: pathlib.Path) -> None:
    place(store / "store", plan_of(store))
    bounds = Catalog(store / "store").manifest.placement["bounds"]
    fake_logs.write(store / "logs", "new", "job 7 2")
    fake_logs.write(store / "logs", "later", f"job {JOBS + 5} 2")
    fake_logs.write(store / "logs", "030", "job 31 4")
    refill(store)
    expected = content(store, "darshan_file")
    place(store / "store", plan_of(store))
    catalog = Catalog(store / "store")
    assert catalog.manifest.placement["bounds"] == bounds
    assert content(store, "darshan_file") == expected
    assert len(expected) == JOBS * 3 + 4 + 1
    for table in ("darshan_job", "darshan_file"):
        for entry in catalog.entries(table):
            low, high = (0, *bounds["jobs"])[entry.subtable], (*bounds["jobs"], 10**9)[entry.subtable]
            assert low <= entry.low <= entry.high < high
    again = place(store / "store", plan_of(store))
    assert again == catalog.manifest, "nothing is left to do"


def test_another_plan_moves_everything(store: pathlib.Path) -> None:
    place(store / "store", plan_of(store))
    expected = content(store, "darshan_job")
    place(store / "store", PlacementPlan(targets=(str(store / "other"),), subtables=3))
    assert content(store, "darshan_job") == expected
    assert list((store / "t0").rglob("*.parquet")), "readers that have begun may finish"
    refill(store)
    assert not list((store / "t0").iterdir()), "what lay on a target that is not one any more is removed"
    assert content(store, "darshan_job") == expected
    place(store / "store", plan_of(store))
    place(store / "store", PlacementPlan(targets=(str(store / "third"),), subtables=3))
    refill(store)
    assert [name for name in ("t0", "t1", "other", "third") if list((store / name).iterdir())] == ["third"]
    assert content(store, "darshan_job") == expected


def test_files_of_others_on_a_target_stay(store: pathlib.Path) -> None:
    (store / "t0").mkdir()
    foreign = store / "t0" / "foreign.parquet"
    foreign.write_text("mine")
    place(store / "store", plan_of(store))
    refill(store)
    place(store / "store", plan_of(store, 1, 1))
    refill(store)
    assert foreign.read_text() == "mine"


def test_lustre_is_asked_for_one_ost_a_file(store: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(store, osts=(17, 4))
    monkeypatch.setenv("PATH", str(store / "bin"))
    with pytest.raises(AnalyticsError, match="there is no lfs command"):
        place(store / "store", plan)
    (store / "bin").mkdir()
    lfs = store / "bin" / "lfs"
    lfs.write_text(f'#!/bin/sh\necho "$@" >> {store}/calls\n: > "$6"\n')
    lfs.chmod(0o755)
    place(store / "store", plan)
    calls = [line.split() for line in (store / "calls").read_text().splitlines()]
    assert len(calls) == 12
    for call in calls:
        assert call[:4] == ["setstripe", "-c", "1", "-i"]
        assert pathlib.Path(call[5]).is_relative_to(store / {"17": "t0", "4": "t1"}[call[4]])
    calls_before = len(calls)
    place(store / "store", plan)
    assert len((store / "calls").read_text().splitlines()) == calls_before, "nothing is left to do"
    place(store / "store", plan_of(store, osts=(17, 5)))
    moved = [line.split()[4] for line in (store / "calls").read_text().splitlines()[calls_before:]]
    assert moved.count("5") == moved.count("17") == 6, "another OST is another placement"
    lfs.write_text('#!/bin/sh\necho "not a Lustre file" >&2\nexit 1\n')
    with pytest.raises(AnalyticsError, match="no file could be made on OST 17: not a Lustre file"):
        place(store / "store", plan, anew=True)
    assert len(content(store, "darshan_job")) == JOBS


def test_placing_needs_a_store_and_a_target(tmp_path: pathlib.Path) -> None:
    with pytest.raises(AnalyticsError, match="there is no store to place"):
        place(tmp_path / "store", plan_of(tmp_path))
    refill(tmp_path)
    place(tmp_path / "store", plan_of(tmp_path))
    fake_logs.write(tmp_path / "logs", "a", "job 1 1")
    refill(tmp_path)
    (tmp_path / "t0").write_text("a file")
    (tmp_path / "t1").write_text("a file")
    with pytest.raises(AnalyticsError, match="cannot be written"):
        place(tmp_path / "store", plan_of(tmp_path))
    assert len(content(tmp_path, "darshan_job")) == 1


def test_each_target_has_as_many_subtables() -> None:
    assert [target_of(number, 4, 2) for number in range(4)] == [0, 0, 1, 1]
    assert [target_of(number, 9, 3) for number in range(9)] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
