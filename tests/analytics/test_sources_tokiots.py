"""Time series of pytokio's HDF5 that are no OSTs in steps of 5 s: of burst buffers (collectd) and GPFS (mmperfmon)."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

from mpiio_ext.analytics import sources
from mpiio_ext.analytics.sources import ApartReader, Records, SourceError
from mpiio_ext.analytics.tools.moments import Period
from mpiio_ext.analytics.tools.system import System
from mpiio_ext.analytics.tools.traffic import traffic
from support.traces import shared_data

h5py = pytest.importorskip("h5py", reason="needs h5py")
START, STEP = 1_500_000_000, 10
NAMES = ("bb0001:nvme0n1", "bb0001:nvme1n1", "bb0002:nvme0n1")


def made(path: pathlib.Path, steps: int = 400, step: int = STEP) -> dict[str, Any]:
    """Write a file as archive_collectdes does, and return its matrices; one column waits for a name."""
    random = np.random.default_rng(3)
    found: dict[str, Any] = {}
    with h5py.File(path, "w") as file:
        file.attrs["version"] = "1"
        for name, columns, unit in (
            ("datatargets/readrates", NAMES, "bytes/sec"),
            ("datatargets/writerates", NAMES, "UNKNOWN"),
            ("datatargets/readoprates", NAMES, "ops/sec"),
            ("dataservers/cpuload", ("bb0001", "bb0002"), "%"),
            ("dataservers/memslab", ("bb0001", "bb0002"), "bytes"),
            ("mdtargets/openrates", ("m1",), "ops/sec"),
        ):
            group = name.partition("/")[0]
            if f"{group}/timestamps" not in file:
                file[f"{group}/timestamps"] = START + step * np.arange(steps)
            values = random.integers(0, 10**6, (steps, len(columns) + 1)).astype(float)
            values[7, 0] = values[:, len(columns)] = -0.0  # how pytokio marks what was lost, and what has no name
            data = file.create_dataset(name, data=values, chunks=(50, len(columns) + 1), compression="gzip")
            data.attrs["columns"] = np.array([column.encode() for column in columns])
            data.attrs["units"] = np.bytes_(unit)
            found[name] = np.where(np.signbit(values), np.nan, values)[:, : len(columns)]
    return found


def matrix(records: Records, name: str) -> tuple[list[str], Any]:
    rows = [row for row in records.tables["timeseries"].to_pylist() if f"{row['group']}/{row['dataset']}" == name]
    columns = list(dict.fromkeys(row["column"] for row in rows))
    values = np.array([np.nan if row["value"] is None else row["value"] for row in rows])
    return columns, values.reshape(len(columns), -1).T


def test_everything_of_another_tool_is_read(tmp_path: pathlib.Path) -> None:
    written = made(tmp_path / "bb.hdf5")
    records = sources.read(tmp_path / "bb.hdf5")
    assert (records.source, records.status) == ("lmt", "whole"), records.problems
    assert not any(table.num_rows for name, table in records.tables.items() if name != "timeseries")
    for name, values in written.items():
        columns, found = matrix(records, name)
        np.testing.assert_array_equal(found, values, err_msg=name)
        assert len(columns) == values.shape[1], "a column without a name is left out"
    row = next(row for row in records.tables["timeseries"].to_pylist() if row["dataset"] == "writerates")
    assert (row["time"], row["step"], row["unit"], row["column"]) == (START, STEP, "bytes/sec", NAMES[0])


def test_a_part_of_a_file_has_the_values_of_the_whole(tmp_path: pathlib.Path) -> None:
    written = made(tmp_path / "bb.hdf5")
    low, high = START + 2000, START + 2500
    part = sources.read(tmp_path / "bb.hdf5", between=(low, high))
    times = [row["time"] for row in part.tables["timeseries"].to_pylist() if row["dataset"] == "openrates"]
    assert times[0] <= low and times[-1] >= high and len(times) < 400
    first = (int(times[0]) - START) // STEP
    np.testing.assert_array_equal(
        matrix(part, "datatargets/readrates")[1], written["datatargets/readrates"][first : first + len(times)]
    )


def test_servers_of_another_tool_answer_what_was_moved(tmp_path: pathlib.Path) -> None:
    written = made(tmp_path / "bb.hdf5")
    records = sources.read(tmp_path / "bb.hdf5")
    period = Period(START + 50.0, START + 250.0)
    found = traffic([records], period)
    inside = slice(5, 25)
    for series, name in ((found.read, "readrates"), (found.written, "writerates")):
        assert series is not None and series.names == NAMES and series.step_s == STEP
        np.testing.assert_allclose(series.values, STEP * written[f"datatargets/{name}"][inside])
    assert found.cpu["oss"].values == pytest.approx(written["dataservers/cpuload"][inside], nan_ok=True)
    assert found.operations["read"].total() == pytest.approx(
        STEP * np.nansum(written["datatargets/readoprates"][inside])
    )
    assert found.operations["open"].total() == pytest.approx(STEP * np.nansum(written["mdtargets/openrates"][inside]))
    system = System(None, [tmp_path / "bb.hdf5"])
    mine, notes = system.traffic(system.named("bb"), period)
    assert mine.read is not None and mine.read.total() == found.read.total() and not notes  # type: ignore[union-attr]


def test_of_lmt_only_what_no_other_table_holds(tmp_path: pathlib.Path) -> None:
    sample = shared_data("tokio/samples") / "snx11025_2018-01-28.hdf5"
    assert not sources.read(sample).tables["timeseries"].num_rows
    with h5py.File(sample) as source, h5py.File(tmp_path / "more.hdf5", "w") as file:
        for name in source:
            source.copy(name, file)
        data = file.create_dataset("datatargets/readops", data=np.ones((60, 24)))
        data.attrs["columns"] = source["datatargets/readbytes"].attrs["columns"]
    more = sources.read(tmp_path / "more.hdf5")
    assert more.tables["lmt"].num_rows == 60 * 24
    rows = more.tables["timeseries"].to_pylist()
    assert len(rows) == 60 * 24 and {(row["dataset"], row["unit"], row["step"]) for row in rows} == {
        ("readops", "ops", 5.0)
    }


def test_what_is_damaged_is_named_and_the_rest_is_read(tmp_path: pathlib.Path) -> None:
    made(tmp_path / "bb.hdf5")
    with h5py.File(tmp_path / "bb.hdf5", "a") as file:
        file["mdtargets/timestamps"][:] = np.random.default_rng(1).random(400)
        file["dataservers/timestamps"][3] = 17
        del file["datatargets/readoprates"].attrs["columns"]
    records = sources.read(tmp_path / "bb.hdf5")
    (problem,) = records.problems
    assert "the time stamps of mdtargets are no steps of one length" in problem.what
    assert "datatargets/readoprates cannot be read" in problem.what
    assert np.isnan(matrix(records, "dataservers/cpuload")[1][3]).all()
    assert not np.isnan(matrix(records, "datatargets/readrates")[1][3]).any()


def test_any_bytes_cost_their_file_alone(tmp_path: pathlib.Path) -> None:
    made(tmp_path / "bb.hdf5", 60)
    whole = (tmp_path / "bb.hdf5").read_bytes()
    random = np.random.default_rng(5)
    with ApartReader() as reader:
        for number in range(40):
            data = bytearray(whole[: int(random.integers(100, len(whole)))] if number % 4 == 0 else whole)
            for at in random.integers(0, len(data), 4):
                data[at] = int(random.integers(0, 256))
            path = tmp_path / f"{number}.hdf5"
            path.write_bytes(bytes(data))
            try:
                found = reader.read(path, "lmt", time_zone="UTC")
            except SourceError as error:
                assert str(path) in str(error)
                continue
            found.tables["timeseries"].validate(full=True)
