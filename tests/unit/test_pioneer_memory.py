"""Phase A keeps nothing of the rows that are done: what is allocated as a trace goes on, and of traces of two sizes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mpiio_ext.pioneer.readers import recorder
from mpiio_ext.pioneer.readers._files import parquet_of
from mpiio_ext.pioneer.sanitize.sanitize import SANITIZED
from mpiio_ext.pioneer.table import TraceInfo
from mpiio_ext.pioneer.traces import open_trace, sanitize_to, save_sanitized

#: Of text twelve batches: what every batch needs is allocated, and loaded, before the first half is over.
LINES = 400_000
#: More than batches differ; 20 bytes a line come to eight times as much.
SLACK_BYTES = 1 << 19
ROWS = 200_000


class _Malloc(ctypes.Structure):
    """`struct mallinfo2` of glibc."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]


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


def strace_lines(count: int) -> Iterator[str]:
    """Yield lines of ``strace -f -ttt -T -y``."""
    for i in range(count):
        at, place = f"{1600000000 + i * 4e-5:.6f}", 65536 * i
        yield (
            f'2001 {at} openat(AT_FDCWD</data>, "/data/out.{i % 7}", O_RDWR|O_CREAT, 0644) = '
            f"3</data/out.{i % 7}> <0.000021>",
            f'2001 {at} pwrite64(3</data/out.1>, "\\1\\2\\3\\4\\5\\6\\7\\10"..., 65536, {place}) = 65536 <0.000034>',
            f"200{i % 4 + 1} {at} lseek(3</data/out.1>, {place}, SEEK_SET) = {place} <0.000004>",
            f'2002 {at} read(4</data/in.nc>, "CDF\\2\\0\\0"..., 4096) = 4096 <0.000011>',
            f"2003 {at} fstat(4</data/in.nc>, {{st_mode=S_IFREG|0644, st_size=4096, ...}}) = 0 <0.000005>",
            f'2004 {at} write(5</data/log>, "step {i}\\n", 9) = 9 <0.000009>',
            f"2001 {at} fsync(3</data/out.1>) = 0 <0.000310>",
            f"2001 {at} close(3</data/out.1>) = 0 <0.000006>",
        )[i % 8]


def _dftracer_call(i: int) -> tuple[str, str]:
    """Return the function of call i and its arguments: seven files are open at a time, each for five calls.

    A trace with more descriptors than a program may have would grow: the sanitization keeps what is open.
    """
    descriptor, place = 3 + i % 7, 4096 * i
    moves = f'"count":4096,"ret":4096,"fd":{descriptor}'
    return (
        ("open64", f'"flags":66,"mode":384,"ret":{descriptor}'),
        ("read", moves),
        ("lseek64", f'"fd":{descriptor},"whence":0,"offset":{place},"ret":{place}'),
        ("write", moves),
        ("close", f'"ret":0,"fd":{descriptor}'),
    )[i // 7 % 5]


def dftracer_lines(count: int) -> Iterator[str]:
    """Yield lines of DFTracer, in the schema of 2024."""
    yield "["
    for i in range(9):
        yield (
            f'{{"id":{i},"name":"FH","cat":"dftracer","pid":70,"tid":70,"ph":"M","args":{{"hhash":5,'
            f'"name":"/data/cm1out_00000{i}.dat","value":33{i}}}}}'
        )
    for i in range(count - 10):
        name, arguments = _dftracer_call(i)
        yield (
            f'{{"id":{i},"name":"{name}","cat":"POSIX","pid":70,"tid":{70 + i % 2},'
            f'"ts":{1700000000000000 + 40 * i},"dur":{11 + i % 50},"ph":"X","args":{{"hhash":5,'
            f'"p_idx":-1,"level":2,"fhash":{330 + (i // 35 * 7 + i % 7) % 9},{arguments}}}}}'
        )


@pytest.mark.parametrize(("reader", "lines"), [("strace", strace_lines), ("dftracer", dftracer_lines)])
def test_sanitizing_keeps_nothing_of_a_row(reader: str, lines: Callable[[int], Iterator[str]], tmp_path: Path) -> None:
    now = allocated()
    trace = tmp_path / ("a.pfw" if reader == "dftracer" else "trace.strace")
    with trace.open("w") as file:
        file.writelines(f"{line}\n" for line in lines(LINES))
    found: list[int] = []
    sanitize_to(tmp_path / "out.parquet", [trace], reader, progress=lambda _: found.append(now()))
    half = len(found) // 2
    assert half >= 5
    assert max(found[half:]) < max(found[:half]) + SLACK_BYTES


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
    texts = {
        "args_1": pa.array(["/data/out"] * rows),
        "args_2": pa.array(places[0]).cast(pa.string()),
        "args_3": pa.array(["4096"] * rows),
        "args_4": pa.array(places[1]).cast(pa.string()),
    }
    return pa.table(
        {
            "rank": np.zeros(rows, np.int32),
            "thread_id": np.zeros(rows, np.int32),
            "tstart": times,
            "tend": times,
            "func_id": pa.array(["pwrite"] * rows),
            "arg_count": np.full(rows, 4, np.int32),
            **texts,
        }
    )


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
