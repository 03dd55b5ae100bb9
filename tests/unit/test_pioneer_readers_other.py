"""Readers of Darshan DXT and of Recorder's text and Parquet; how a reader is found; merging of streams."""

from __future__ import annotations

import json
import pathlib
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpiio_ext.pioneer.errors import MissingPackageError
from mpiio_ext.pioneer.readers import FORMATS, dxt, find_reader, reader_of, recorder
from mpiio_ext.pioneer.readers._order import merged, ordered
from mpiio_ext.pioneer.table import SCHEMA, Source
from support.traces import is_sorted, rows_of, shared_data, table_of

TEXT = """\
0.000010 0.000020 MPI_File_open 0 1 ( MPI_COMM_WORLD /data/x 9 MPI_INFO_NULL 0x10 )
0.000012 0.000018 open 1 0 ( /data/x 66 384 )
0.000030 0.000040 MPI_File_write_at 0 1 ( 0x10 4096 0x7f 100 MPI_DOUBLE 0x1 )
0.000031 0.000039 pwrite 1 0 ( 5 0x7f 800 32768 )
0.000050 0.000051 lseek 0 0 ( 5 0 2 )
0.000052 0.000053 write 0 0 ( /data/y 0x7f 10 )
0.000060 0.000070 H5Dwrite 0 3 ( 1 2 3 )
"""


def test_every_format_has_a_reader(tmp_path: pathlib.Path) -> None:
    for name in FORMATS:
        if name == "own":
            continue
        reader = reader_of(name)
        assert name == reader.NAME
        assert not reader.recognizes(tmp_path)
        assert not reader.recognizes(tmp_path / "missing")
        for content in (b"", b"\0" * 100, b"hello\n", b"\x1f\x8bxx"):
            (tmp_path / "x").write_bytes(content)
            assert not reader.recognizes(tmp_path / "x")
        (tmp_path / "x").unlink()
    with pytest.raises(ValueError, match="no reader of the format 'nope'"):
        reader_of("nope")


def test_recorder_text(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "_text"
    folder.mkdir()
    for rank in (0, 1, 10):
        (folder / f"{rank}.txt").write_text(TEXT)
    assert find_reader(tmp_path).NAME == "recorder"
    info, table = table_of(recorder, tmp_path)
    assert info.ranks == 11
    assert table["rank"].to_pylist() == [0] * 6 + [1] * 6 + [10] * 6
    rows = rows_of(recorder, folder / "0.txt")
    assert [row["operation"] for row in rows] == [
        "MPI_File_open", "open", "MPI_File_write_at", "pwrite", "lseek", "write"
    ]  # fmt: skip
    assert (rows[0]["file"], rows[0]["depth"], rows[0]["timestamp"], rows[0]["duration"]) == (
        "/data/x",
        0,
        10_000,
        10_000,
    )
    assert (rows[2]["size"], rows[2]["offset"], rows[2]["handle"]) == (800, 4096, 16)
    assert (rows[3]["size"], rows[3]["offset"]) == (800, 32768)
    assert json.loads(rows[4]["extra"]) == {"whence": "SEEK_END"}
    assert (rows[5]["file"], rows[5]["size"]) == ("/data/y", 10)
    assert info.sources[0].loss.problems[0].why == "1 records are of other layers: 1 H5Dwrite"
    assert "results" in info.lacks


@pytest.mark.parametrize("repeated", [False, True])
def test_recorder_parquet(tmp_path: pathlib.Path, repeated: bool) -> None:
    """Recorder declares columns of numbers as repeated; pyarrow reads them as lists."""
    wrap = (lambda values: [[value] for value in values]) if repeated else list
    columns = {
        "rank": wrap([2, 2]),
        "thread_id": wrap([7, 8]),
        "tstart": wrap([0.5, 1.0]),
        "tend": wrap([0.75, 1.5]),
        "func_id": ["open64", "pwrite"],
        "arg_count": wrap([3, 4]),
        "args_1": ["/data/x", "5"],
        "args_2": ["66", "0x1"],
        "args_3": ["384", "800"],
        "args_4": ["", "64"],
    }
    path = tmp_path / "2.parquet"
    pq.write_table(pa.table(columns), path)
    assert find_reader(path).NAME == "recorder"
    rows = rows_of(recorder, path)
    assert [(row["operation"], row["rank"], row["thread"]) for row in rows] == [("open", 2, 0), ("pwrite", 2, 1)]
    assert (rows[1]["size"], rows[1]["offset"], rows[1]["duration"]) == (800, 64, 5 * 10**8)
    path.write_bytes(path.read_bytes()[:-50])
    info, _ = table_of(recorder, path)
    assert info.sources[0].loss.truncated


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_recorder_no_bytes_raise(tmp_path: pathlib.Path, data: st.DataObject) -> None:
    text = bytearray(TEXT.encode())
    for _ in range(data.draw(st.integers(0, 6))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
    path = tmp_path / "0.txt"
    path.write_bytes(text[: data.draw(st.integers(0, len(text)))])
    recorder.recognizes(path)
    info, table = table_of(recorder, path)
    assert len(table) + info.skipped <= max(info.sources[0].lines, 1)


def darshan_logs() -> pathlib.Path:
    darshan = pytest.importorskip("darshan", reason="PyDarshan (mpiio_ext[trace]) is not installed")
    return pathlib.Path(darshan.__file__).parent / "examples" / "example_logs"


def test_dxt() -> None:
    path = darshan_logs() / "dxt.darshan"
    assert find_reader(path).NAME == "dxt"
    info, table = table_of(dxt, path)
    assert (len(table), info.ranks, info.skipped) == (7623, 1, 0)
    assert is_sorted(table)
    assert set(table["operation"].to_pylist()) == {"read", "write"}
    assert table["depth"].null_count == table["result"].null_count == len(table)
    assert "opens, closes, seeks, syncs and metadata calls" in info.lacks
    info, table = table_of(dxt, darshan_logs() / "example.darshan")
    assert len(table) == 0
    assert "no DXT" in info.sources[0].loss.problems[0].why


def test_dxt_of_384_ranks() -> None:
    folder = shared_data("darshan")
    darshan_logs()
    info, table = table_of(dxt, folder)
    assert info.ranks == 384
    assert len(table) == 25_973
    assert table["layer"].to_pylist().count("mpiio") == 8448
    assert is_sorted(table)


def test_dxt_broken(tmp_path: pathlib.Path) -> None:
    content = (darshan_logs() / "dxt.darshan").read_bytes()
    path = tmp_path / "a.darshan"
    path.write_bytes(content[:100])
    info, table = table_of(dxt, path)
    assert len(table) == 0
    assert info.sources[0].loss.truncated
    with pytest.raises(FileNotFoundError):
        list(dxt.read([tmp_path / "missing"])[1])


def test_dxt_without_pydarshan(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setitem(sys.modules, "darshan.backend.cffi_backend", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'mpiio_ext\[trace\]'"):
        dxt.read([tmp_path])


def batch_of(times: list[int]) -> pa.RecordBatch:
    fixed = {"operation": "read", "rank": 0, "thread": 0, "layer": "posix"}
    return pa.RecordBatch.from_pylist([{"timestamp": time, "line": i, **fixed} for i, time in enumerate(times)], SCHEMA)


@given(streams=st.lists(st.lists(st.lists(st.integers(0, 50), max_size=6), max_size=4), max_size=4))
def test_merging(streams: list[list[list[int]]]) -> None:
    flat = [sorted(time for batch in stream for time in batch) for stream in streams]
    cut = [[times[i : i + 3] for i in range(0, len(times), 3)] for times in flat]
    found = merged([iter([batch_of(times) for times in stream]) for stream in cut])
    times = [time for batch in found for time in batch.column(0).to_pylist()]
    assert times == sorted(time for stream in flat for time in stream)


@given(times=st.lists(st.integers(0, 100), max_size=60), window=st.integers(0, 70))
def test_ordering(times: list[int], window: int) -> None:
    source = Source(path="x")
    batches = [batch_of(times[i : i + 7]) for i in range(0, len(times), 7)]
    found = [time for batch in ordered(batches, source, window) for time in batch.column(0).to_pylist()]
    assert sorted(found) == sorted(times)
    if window >= len(times):
        assert found == sorted(times)
    assert (found == sorted(times)) == (source.loss.problems == [])
