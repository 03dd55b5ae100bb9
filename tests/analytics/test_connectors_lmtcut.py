"""A part of LMT's HDF5 by time has the values of the whole file, damaged chunks included."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpiio_ext.analytics import sources
from mpiio_ext.analytics.sources.lmt import convert
from support.traces import shared_data

h5py = pytest.importorskip("h5py")  # behind mpiio_ext, which goes under its MPI

STEPS, OSTS, START = 120, 4, 1_000_000
LMT: Any = sources.connector_of("lmt")


def tokio(path: pathlib.Path, chunk: int = 10) -> pathlib.Path:
    """Write TOKIO's form: chunks of some steps and 2 OSTs, one of them damaged, one missing."""
    random = np.random.default_rng(3)
    with h5py.File(path, "w") as file:
        for group in ("datatargets", "mdtargets", "dataservers", "fullness"):
            file[f"{group}/timestamps"] = START + 5 * np.arange(STEPS)
        for name in ("datatargets/readbytes", "datatargets/writebytes", "fullness/bytes", "fullness/bytestotal"):
            values = random.integers(1, 10**9, (STEPS, OSTS)).astype(float)
            data = file.create_dataset(name, shape=(STEPS, OSTS), dtype=float, chunks=(chunk, 2), compression="gzip")
            data.attrs["columns"] = np.array([b"f-OST%04x" % ost for ost in range(OSTS)])
            data[: STEPS - 20] = values[: STEPS - 20]
            data[STEPS - 20 :, :2] = values[STEPS - 20 :, :2]  # the others are never written: chunks are missing
        data = file.create_dataset("mdtargets/opens", data=random.random((STEPS, 1)), chunks=(chunk * 2, 1))
        data.attrs["columns"] = np.array([b"mds"])
        data = file.create_dataset("dataservers/cpuload", data=random.random((STEPS, 2)))
        data.attrs["columns"] = np.array([b"oss1", b"oss2"])
    with h5py.File(path) as file:
        damaged = file["datatargets/readbytes"].id.get_chunk_info(4)
    data = bytearray(path.read_bytes())
    data[damaged.byte_offset : damaged.byte_offset + damaged.size] = bytes(damaged.size)
    path.write_bytes(data)
    return path


def h5lmt(path: pathlib.Path) -> pathlib.Path:
    random = np.random.default_rng(4)
    with h5py.File(path, "w") as file:
        file["FSStepsGroup/FSStepsDataSet"] = START + 5 * np.arange(STEPS + 1)
        file["FSMissingGroup/FSMissingDataSet"] = random.integers(0, 2, (OSTS, STEPS + 1))
        for name in ("OSTReadGroup/OSTBulkReadDataSet", "OSTWriteGroup/OSTBulkWriteDataSet"):
            data = file.create_dataset(
                name, data=random.integers(0, 99, (OSTS, STEPS + 1)).astype(float), chunks=(2, 11)
            )
            data.attrs["OSTNames"] = np.array([b"f-OST%04x" % ost for ost in range(OSTS)])
        file["MDSCPUGroup/MDSCPUDataSet"] = random.random(STEPS + 1)
    return path


def rows(table: Any, low: float, high: float) -> list[tuple[Any, ...]]:
    """Return the rows of a period in an order."""
    found = [tuple(row.values()) for row in table.to_pylist() if low <= row["time"] < high]
    return sorted(found, key=lambda row: tuple(str(value) for value in row))


@pytest.mark.parametrize("form", [tokio, h5lmt])
@given(st.integers(-30, STEPS * 5 + 30), st.integers(1, 200))
@settings(max_examples=15)
def test_a_part_is_that_of_the_whole(tmp_path_factory: Any, form: Any, begin: int, length: int) -> None:
    path = form(tmp_path_factory.mktemp("lmt") / "day.h5")
    low, high = float(START + begin), float(START + begin + length)
    whole, part = LMT.read(path), LMT.read(path, between=(low, high))
    assert whole.tables.keys() == part.tables.keys()
    for name, table in whole.tables.items():
        assert rows(part.tables[name], low, high) == rows(table, low, high), name


def test_a_part_reads_less(tmp_path: pathlib.Path) -> None:
    path = tokio(tmp_path / "day.h5")
    part = convert([path.name], str(tmp_path), "UTC", (START + 100.0, START + 105.0)).tables["lmt"]
    assert 0 < part.num_rows <= 2 * 20 * OSTS, "two chunks of the longest kind at most"
    beyond = convert([path.name], str(tmp_path), "UTC", (0.0, 5.0)).tables["lmt"]
    assert beyond.num_rows == 20 * OSTS, "of a file of another day its begin is enough"
    assert min(beyond["time"].to_pylist()) == START


@pytest.mark.parametrize("form", ["hdf5", "h5lmt"])
def test_a_part_of_the_samples(form: str) -> None:
    path = shared_data("tokio/samples") / f"snx11025_2018-01-28.{form}"
    low, high = 1517126460.0, 1517126520.0
    whole, part = LMT.read(path), LMT.read(path, between=(low, high))
    for name, table in whole.tables.items():
        assert rows(part.tables[name], low, high) == rows(table, low, high)


def test_a_part_is_read_in_a_process_of_its_own(tmp_path: pathlib.Path) -> None:
    path, between = tokio(tmp_path / "l.hdf5"), (START + 100.0, START + 200.0)
    with sources.ApartReader() as reader:
        part = reader.read(path, "lmt", between=between)
    assert part.equals(LMT.read(path, "UTC", between=between))
    assert 0 < part.tables["lmt"].num_rows < sources.read(path).tables["lmt"].num_rows
