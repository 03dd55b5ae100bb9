"""A fill that is killed between any two changes of the disk leaves a valid store, and the next one completes it."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
from typing import Any

import pyarrow.parquet as pq
import pytest

from mpiio_ext.analytics.setup import PlacementPlan
from mpiio_ext.analytics.store.catalog import Catalog
from mpiio_ext.analytics.store.fill import fill
from mpiio_ext.analytics.store.logtable import read_logs
from mpiio_ext.analytics.store.manifest import read_manifest
from mpiio_ext.analytics.store.placement import place
from mpiio_ext.common import files
from support import fake_logs

MODULES = ("common.files", "analytics.store.commit", "analytics.store.placement")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that dies loses nothing that it has handed to the operating system: no need to wait for the disk."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def _work(folder: pathlib.Path, work: str) -> None:
    if work != "place":
        fill(fake_logs.set_up(folder), connectors={"darshan": fake_logs.convert})
    if work != "fill":
        place(folder / "store", PlacementPlan(targets=(str(folder / "t1"), str(folder / "t2")), subtables=2))


def _killed_at(number: int, folder: pathlib.Path, work: str) -> bool:
    """Do the work in a child that ends at the step of this number; return whether it came so far."""
    child = os.fork()
    if child == 0:
        seen = 0

        def step(_name: str) -> None:
            nonlocal seen
            if seen == number:
                os._exit(9)
            seen += 1

        status = 1
        try:
            for module in MODULES:
                __import__(f"mpiio_ext.{module}", fromlist=["step"]).step = step
            _work(folder, work)
            status = 0
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 9)
    return status == 9


def _state(folder: pathlib.Path) -> dict[str, Any]:
    """Return the rows of a store, reading every valid file whole."""
    catalog = Catalog(folder / "store")
    out: dict[str, Any] = {}
    for table in ("darshan_job", "darshan_file"):
        found = [row for path in catalog.files(table) for row in pq.read_table(path).to_pylist()]
        assert len(found) == catalog.rows(table)
        out[table] = sorted((row["job_id"], row.get("file_id"), row.get("exe", "")) for row in found)
    logs = read_logs(catalog.folder, catalog.manifest.logs).to_pylist()
    out["logs"] = sorted((row["path"], row["status"], row["size"]) for row in logs)
    return out


def _first(folder: pathlib.Path) -> None:
    for number in range(4):
        fake_logs.write(folder / "logs", f"a{number}", f"job {number} 2 {number}")


def _second(folder: pathlib.Path) -> None:
    fake_logs.write(folder / "logs", "a1", "job 1111 3 77")
    fake_logs.write(folder / "logs", "b", "job 5 1")
    fake_logs.write(folder / "logs", "c", "skip because")
    (folder / "logs" / "a2.darshan").unlink()


@pytest.mark.parametrize("work", ["fill", "place", pytest.param("both", marks=pytest.mark.slow)])
def test_killed_at_every_step(tmp_path: pathlib.Path, work: str) -> None:
    whole, begun = tmp_path / "whole", tmp_path / "begun"
    begun.mkdir()
    _first(begun)
    _work(begun, "both" if work == "both" else "fill")
    before = _state(begun)
    if work != "place":
        _second(begun)
    # Sizes and times stay as they are, and placed files have absolute paths: one folder, copied away and back.
    shutil.copytree(begun, whole, symlinks=True)
    _work(begun, work)
    after = _state(begun)
    assert (after != before) == (work != "place")
    number, killed = 0, True
    while killed:
        shutil.rmtree(begun)
        shutil.copytree(whole, begun)
        killed = _killed_at(number, begun, work)
        state = _state(begun)
        assert state in (before, after), f"step {number} leaves something between"
        _work(begun, work)
        assert _state(begun) == after, f"after step {number} the next fill does not complete the store"
        left = [path.name for path in begun.rglob("*") if path.name.endswith(files.TEMPORARY)]
        assert left == [], f"step {number}"
        number += 1
    assert number > 12


def test_killed_in_the_first_fill(tmp_path: pathlib.Path) -> None:
    for number in range(40):
        folder = tmp_path / str(number)
        folder.mkdir()
        _first(folder)
        killed = _killed_at(number, folder, "fill")
        found = read_manifest(folder / "store")
        assert found is None or len(_state(folder)["logs"]) == 4
        _work(folder, "fill")
        assert len(_state(folder)["darshan_file"]) == 8
        if not killed:
            return
    pytest.fail("the fill has more than 40 steps")


def test_files_are_on_the_disk_before_they_count(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a machine that dies: contents reach the disk before the name, and the name before the manifest."""
    events: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: events.append(f"sync {os.readlink(f'/proc/self/fd/{fd}')}"))
    monkeypatch.setattr(files, "step", events.append)
    fake_logs.write(tmp_path / "logs", "a", "job 1 1")
    _work(tmp_path, "fill")
    renamed = [event.split()[-1] for event in events if event.startswith("renamed")]
    assert renamed[-1] == "manifest.json"
    assert len(renamed) == 4
    for name in renamed:
        at = events.index(f"renamed {name}")
        assert events[at - 1].startswith("sync ")
        assert re.search(rf"/\.{re.escape(name)}\.[0-9a-f]+\.tmp$", events[at - 1])
        assert not events[at + 1].endswith(".tmp"), "then the folder"
        assert events[at + 1].startswith("sync ")
