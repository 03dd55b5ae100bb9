"""Phase A keeps nothing of the rows that are done: what is allocated as a trace goes on, and of traces of two sizes."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mpiio_ext.pioneer.readers import recorder
from mpiio_ext.pioneer.readers._files import parquet_of
from mpiio_ext.pioneer.sanitize import SANITIZED
from mpiio_ext.pioneer.table import TraceInfo
from mpiio_ext.pioneer.traces import open_trace, sanitize_to, save_sanitized
from support.scripts import load

ROOT = Path(__file__).resolve().parents[2]
#: Of text twelve batches: what every batch needs is allocated, and loaded, before the first half is over.
LINES = 400_000
#: More than batches differ; 20 bytes a line come to eight times as much.
SLACK_BYTES = 1 << 19
ROWS = 200_000


class _Malloc(ctypes.Structure):
    """`struct mallinfo2` of glibc."""

    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks",
                                                     "fsmblks", "uordblks", "fordblks", "keepcost")]  # fmt: skip


def allocated() -> Callable[[], int]:
    """Return a function for the bytes that are allocated now, by C, Python's large objects, NumPy and Arrow."""
    asked = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if asked is None:
        pytest.skip("the C library does not tell what is allocated (mallinfo2: glibc 2.33)")
    asked.restype = _Malloc

    def now() -> int:
        found = asked()
        return int(found.uordblks + found.hblkhd) + pa.total_allocated_bytes()

    return now


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    return load("benchmarks/pioneer_readers.py")


@pytest.mark.parametrize("name", ["strace", "dftracer 2024"])
def test_sanitizing_keeps_nothing_of_a_row(name: str, benchmark: ModuleType, tmp_path: Path) -> None:
    now = allocated()
    reader, make = benchmark.traces(None)[name]
    found: list[int] = []
    sanitize_to(tmp_path / "out.parquet", make(tmp_path, LINES), reader, progress=lambda _: found.append(now()))
    half = len(found) // 2
    assert half >= 5
    assert max(found[half:]) < max(found[:half]) + SLACK_BYTES


def test_traces_close_what_they_open(benchmark: ModuleType) -> None:
    """A trace that is made has no more descriptors than a program may have: the sanitization keeps what is open."""
    for old in (True, False):
        is_open, most = set(), 0
        for line in benchmark.dftracer_lines(5000, old=old):
            told = {key: int(value) for key, value in re.findall(r'"(fd|ret)":(-?\d+)', line)}
            if '"name":"open64"' in line:
                assert told["ret"] not in is_open
                is_open.add(told["ret"])
            elif "fd" in told:
                assert told["fd"] in is_open
            if '"name":"close"' in line:
                is_open.remove(told["fd"])
            most = max(most, len(is_open))
        assert 1 < most < 1024


def _random(rows: int, seed: int = 7) -> pa.Table:
    """Return rows of a sanitized table whose numbers nothing compresses."""
    generator = np.random.default_rng(seed)
    columns = []
    for field in SANITIZED:
        if field.type == pa.int64():
            columns.append(pa.array(generator.integers(0, 2**62, rows)))
        elif pa.types.is_dictionary(field.type):
            columns.append(pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), ["posix"]))
        else:
            columns.append(pa.array(np.zeros(rows, np.int32)).cast(field.type))
    return pa.table(columns, schema=SANITIZED)


def _most_of_pool(batches: Iterator[pa.RecordBatch]) -> int:
    before, most = pa.total_allocated_bytes(), 0
    for _ in batches:
        most = max(most, pa.total_allocated_bytes() - before)
    return most


def test_a_table_is_read_as_it_is_asked_for(tmp_path: Path) -> None:
    """Row groups that were read do not stay in memory."""
    most, sizes = [], []
    for rows in (ROWS, 4 * ROWS):
        path = tmp_path / f"{rows}.parquet"
        pq.write_table(_random(rows), path, row_group_size=20_000, use_dictionary=False)
        file = parquet_of(path)
        assert file.metadata.num_row_groups == rows // 20_000
        most.append(_most_of_pool(file.iter_batches(20_000)))
        sizes.append(path.stat().st_size)
    assert most[1] - most[0] < (sizes[1] - sizes[0]) / 10


def _records(rows: int, seed: int = 7) -> pa.Table:
    """Return what recorder2parquet makes of writes at offsets that nothing compresses."""
    places = np.random.default_rng(seed).integers(2**40, 2**62, (2, rows))
    times = np.arange(rows, dtype=np.float32)
    texts = {"args_1": pa.array(["/data/out"] * rows), "args_2": pa.array(places[0]).cast(pa.string()),
             "args_3": pa.array(["4096"] * rows), "args_4": pa.array(places[1]).cast(pa.string())}  # fmt: skip
    return pa.table({"rank": np.zeros(rows, np.int32), "thread_id": np.zeros(rows, np.int32), "tstart": times,
                     "tend": times, "func_id": pa.array(["pwrite"] * rows), "arg_count": np.full(rows, 4, np.int32),
                     **texts})  # fmt: skip


def test_tables_of_recorder_are_read_as_they_are_asked_for(tmp_path: Path) -> None:
    most, sizes = [], []
    for rows in (ROWS, 4 * ROWS):
        path = tmp_path / str(rows) / "0.parquet"
        path.parent.mkdir()
        pq.write_table(_records(rows), path, row_group_size=50_000)
        info, batches = recorder.read([path])
        most.append(_most_of_pool(iter(batches)))
        sizes.append(path.stat().st_size)
        assert info.sources[0].rows == rows
    assert most[1] - most[0] < (sizes[1] - sizes[0]) / 10


def test_a_sanitized_table_is_read_again(tmp_path: Path) -> None:
    most, sizes = [], []
    for rows in (ROWS, 4 * ROWS):
        path = tmp_path / f"{rows}.parquet"
        save_sanitized(TraceInfo(format="test"), _random(rows).to_batches(max_chunksize=20_000), path)
        most.append(_most_of_pool(iter(open_trace([path])[1])))
        sizes.append(path.stat().st_size)
    assert most[1] - most[0] < (sizes[1] - sizes[0]) / 10
