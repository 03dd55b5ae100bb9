"""Logs of LMT that contradict each other where they overlap are told; the others, and forms of one log, are not."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpiio_ext.analytics.setup import load_setup
from mpiio_ext.analytics.store.catalog import Catalog
from mpiio_ext.analytics.store.conflicts import NOTE, Conflicts, with_conflicts
from mpiio_ext.analytics.store.fill import Report, fill
from mpiio_ext.analytics.store.logtable import LOGS, read_logs
from support.traces import shared_data

START = 1517126400


def log(
    path: pathlib.Path, first: int, reads: list[list[float]], age: int, names: tuple[str, ...] = ("fs-OST0001",)
) -> None:
    """Write TOKIO's HDF5 with bytes read of each step and OST, and nothing written; a larger `age` is newer."""
    h5py = pytest.importorskip("h5py")
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        file["datatargets/timestamps"] = START + 5 * np.arange(first, first + len(reads))
        for name, values in (("readbytes", np.array(reads)), ("writebytes", np.zeros((len(reads), len(names))))):
            data = file.create_dataset(f"datatargets/{name}", data=values)
            data.attrs["columns"] = np.array([each.encode() for each in names])
    os.utime(path, (START + age, START + age))


def filled(place: pathlib.Path) -> Report:
    setup = load_setup({"store": str(place / "store"), "inputs": {"lmt": [str(place / "logs")]}, "workers": 1})
    return fill(setup, quiet=True)


def told(place: pathlib.Path) -> dict[str, tuple[str, str]]:
    """Return status and reason of each log, by the name of its file."""
    catalog = Catalog(place / "store")
    rows = read_logs(catalog.folder, catalog.manifest.logs).to_pylist()
    return {pathlib.Path(row["path"]).name: (row["status"], row["reason"]) for row in rows}


def reads(place: pathlib.Path) -> list[tuple[float, float]]:
    import pyarrow.parquet as pq

    table = pa.concat_tables([pq.read_table(path) for path in Catalog(place / "store").files("lmt")])
    return [(row["time"] - START, row["bytes_read"]) for row in table.to_pylist()]


def test_logs_of_one_fill(tmp_path: pathlib.Path) -> None:
    log(tmp_path / "logs" / "a.hdf5", 0, [[1e6], [2e6], [3e6]], 1)
    log(tmp_path / "logs" / "b.hdf5", 1, [[2e6 + 1], [9e6], [4e6]], 2)  # one byte is rounding
    log(tmp_path / "logs" / "c.hdf5", 2, [[9e6], [4e6]], 3)
    report = filled(tmp_path)
    assert (report.whole, report.conflict, report.notes) == (1, 2, [NOTE])
    assert "2 conflict" in str(report)
    when = "1 step of an OST at 2018-01-28 08:00:10 UTC with other values than"
    rest = "that which knows both directions counts, else the newer"
    assert told(tmp_path) == {
        "a.hdf5": ("conflict", f"{when} {tmp_path}/logs/b.hdf5; {rest}"),
        "b.hdf5": ("conflict", f"{when} {tmp_path}/logs/a.hdf5; {rest}"),
        "c.hdf5": ("whole", ""),
    }, "c says what b says"
    assert reads(tmp_path) == [(0, 1e6), (5, 2e6 + 1), (10, 9e6), (15, 4e6)]


def test_logs_of_different_fills(tmp_path: pathlib.Path) -> None:
    log(tmp_path / "logs" / "a.hdf5", 0, [[1.0], [200.0], [300.0]], 1)
    assert (filled(tmp_path).whole, told(tmp_path)) == (1, {"a.hdf5": ("whole", "")})
    log(tmp_path / "logs" / "b.hdf5", 1, [[500.0], [600.0]], 2)
    assert filled(tmp_path).conflict == 1
    status, reason = told(tmp_path)["b.hdf5"]
    assert status == "conflict"
    assert reason.startswith("2 steps of an OST from 2018-01-28 08:00:05 to 2018-01-28 08:00:10 UTC with other values")
    assert "than the store had" in reason
    assert Catalog(tmp_path / "store").manifest.notes == (NOTE,)
    assert reads(tmp_path) == [(0, 1), (5, 500), (10, 600)]
    log(tmp_path / "logs" / "c.hdf5", 2, [[600.0], [7.0]], 3)
    assert (filled(tmp_path).whole, told(tmp_path)["c.hdf5"]) == (1, ("whole", ""))
    assert Catalog(tmp_path / "store").manifest.notes == (NOTE,), "what was found stays"


def test_logs_that_agree_say_nothing(tmp_path: pathlib.Path) -> None:
    """Absent values contradict nothing; an OST without a file system in its name is one step, too."""
    bare = ("OST0001",)
    log(tmp_path / "logs" / "a.hdf5", 0, [[1.0], [-0.0], [300.0]], 1, bare)
    log(tmp_path / "logs" / "b.hdf5", 1, [[500.0], [300.0]], 2, bare)
    assert (filled(tmp_path).whole, filled(tmp_path).known) == (1, 2)
    assert [status for status, _ in told(tmp_path).values()].count("conflict") == 0
    assert Catalog(tmp_path / "store").manifest.notes == ()
    assert reads(tmp_path) == [(0, 1), (5, 500), (10, 300)]


def test_three_forms_of_the_same_time_agree(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("h5py")
    shared = shared_data("tokio/samples")
    setup = load_setup(
        {
            "store": str(tmp_path / "store"),
            "inputs": {"lmt": [str(shared)]},
            "workers": 1,
            "site": {"time_zone": "America/Los_Angeles"},
        }
    )
    report = fill(setup, quiet=True)
    assert report.rows["lmt"] and report.conflict == 0


VALUES = st.none() | st.sampled_from([0.0, 5e6, 5e6 + 1, 7e6])


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), VALUES, VALUES), max_size=12))
def test_each_step_counts_once(rows: list[tuple[int, int, Any, Any]]) -> None:
    """Against a comparison of all pairs: those who contradict anybody are found, and nobody else."""
    names = ("time", "age", "bytes_read", "bytes_written")
    kinds = [pa.float64(), pa.int64(), pa.float64(), pa.float64()]
    table = pa.table([pa.array([row[k] for row in rows], kind) for k, kind in enumerate(kinds)], names=list(names))
    found = Conflicts()
    found.look_at(table.append_column("ost_name", pa.array(["x"] * len(rows))), ("time", "ost_name"), names[2:])
    apart = {
        row[0]
        for row in rows
        for other in rows
        for k in (2, 3)
        if row[0] == other[0]
        and row[k] is not None
        and other[k] is not None
        and abs(row[k] - other[k]) > max(1.0, 1e-6 * max(row[k], other[k]))
    }
    meetings = found.meetings()
    assert {time for one in meetings for time in (one.first, one.last)} <= apart
    assert bool(meetings) == bool(apart)
    assert all(1 <= one.steps <= len(apart) and one.older <= one.newer for one in meetings)


def test_nothing_found_changes_nothing() -> None:
    logs = LOGS.empty_table()
    assert with_conflicts(logs, [], {}) is logs
