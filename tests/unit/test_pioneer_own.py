"""The reader of the tracer's files: drawn records come back as they were, damage is told, nothing crashes it."""

from __future__ import annotations

import pathlib
import struct

import pyarrow as pa
import pytest

from mpiio_ext.pioneer.readers import find_reader, own, reader_of
from mpiio_ext.pioneer.table import SCHEMA, TraceInfo
from support import cbuild, fuzz

HEADER = BLOCK = 65536
PIONEER = cbuild.folder("pioneer")
SOURCES = [str(PIONEER / name) for name in ("mpiox_tracefile.c",)]
READER = [*SOURCES, *(str(PIONEER / f"mpiox_tracefile_{part}.c") for part in ("reader", "texts"))]
INCLUDES = [f"-I{PIONEER}", f"-I{cbuild.folder('common')}"]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, list[list[int | None]]]:
    """Return a file of drawn records and its records."""
    folder = tmp_path_factory.mktemp("drawn")
    source = str(cbuild.ROOT / "tests" / "c" / "pioneer" / "write_tracefile.c")
    command = [cbuild.compiler(), *cbuild.FLAGS, *cbuild.SANITIZE, *INCLUDES, source, *SOURCES]
    program = cbuild.compile_c(command, "write_tracefile")
    path = folder / f"rank0{own.SUFFIX}"
    lines = cbuild.check(program, str(path), "30000", fuzz.seed()).splitlines()
    return path, [[None if word == "null" else int(word) for word in line.split()] for line in lines]


def table_of(*paths: pathlib.Path) -> tuple[TraceInfo, pa.Table]:
    info, batches = own.read(paths)
    return info, pa.Table.from_batches(list(batches), SCHEMA)


def rows_of(table: pa.Table) -> list[list[int | None]]:
    names = ("timestamp", "duration", "operation", "file", "offset", "size", "handle", "result", "thread", "depth")
    columns = [table.column(name).to_pylist() for name in names]
    columns[2] = [int(name.removeprefix("op")) for name in columns[2]]
    columns[3] = [-1 if name is None else int(name.removeprefix("/f")) for name in columns[3]]
    return [list(row) for row in zip(*columns, strict=True)]


def damaged(path: pathlib.Path, folder: pathlib.Path, at: int, content: bytes) -> pathlib.Path:
    copy = folder / f"copy{own.SUFFIX}"
    data = bytearray(path.read_bytes())
    data[at : at + len(content)] = content
    copy.write_bytes(data)
    return copy


def test_drawn_records(drawn: tuple[pathlib.Path, list[list[int | None]]]) -> None:
    path, records = drawn
    info, table = table_of(path)
    assert rows_of(table) == records, f"seed {fuzz.seed()}"
    assert table.column("line").to_pylist() == list(range(1, len(records) + 1))
    assert set(table.column("layer").to_pylist()) == {"mpiio", "mpi", "stdio"}
    (source,) = info.sources
    assert (source.rank, source.host, source.rows, source.loss.skipped) == (0, "drawn", len(records), 0)
    assert not source.loss.truncated
    assert not source.loss.problems
    assert find_reader(path) is reader_of("mpiio_ext")
    assert own.recognizes(path.parent)
    assert not own.recognizes(pathlib.Path(__file__))


def test_calls_under_way(drawn: tuple[pathlib.Path, list[list[int | None]]], tmp_path: pathlib.Path) -> None:
    """Slots of a process that was killed are rows; not where the record is there, or the operation or layer is not."""
    path, records = drawn
    known = next(row for row in reversed(records) if (row[8] or 0) < 128 and (row[9] or 0) < 4)
    layers = {"mpiio": 0, "mpi": 1, "stdio": 2}
    last = max(row[0] or 0 for row in records)
    slots = {
        (5, 1): (1 | 9 << 8 | layers["mpiio"] << 16, last + 10, 77, 2),
        (6, 0): (1 | 200 << 8 | layers["mpiio"] << 16, last + 20, 77, 2),
        (7, 0): (1 | 9 << 8 | 9 << 16, last + 20, 77, 2),
        (8, 3): (1 | 9 << 8 | layers["mpi"] << 16, last + 30, -(1 << 63), 0),
        (known[8], known[9]): (1 | 9 << 8 | layers["mpiio"] << 16, known[0], 77, 2),
    }
    region = bytearray(128 * 4 * 32)
    for (thread, depth), values in slots.items():
        struct.pack_into("<Qqqq", region, ((thread or 0) * 4 + (depth or 0)) * 32, *values)
    closed = damaged(path, tmp_path, 4096, bytes(region))
    assert table_of(closed)[1].num_rows == len(records)
    running = damaged(closed, tmp_path, 20, bytes(4))
    info, table = table_of(running)
    assert table.num_rows == len(records) + 2
    names = ("thread", "depth", "timestamp", "file", "handle", "layer", "duration", "result", "extra")
    assert [tuple(row[name] for name in names) for row in table.to_pylist() if row["extra"] == '{"unfinished":1}'] == [
        (5, 1, last + 10, "/f1", 77, "mpiio", None, None, '{"unfinished":1}'),
        (8, 3, last + 30, None, None, "mpi", None, None, '{"unfinished":1}'),
    ]
    assert info.sources[0].loss.truncated


def first_of(path: pathlib.Path, block: int) -> int:
    """Return how many records there are before a block."""
    return int(struct.unpack_from("<Q", path.read_bytes(), HEADER + block * BLOCK + 16)[0])


def test_a_damaged_block_is_left_out_and_counted(
    drawn: tuple[pathlib.Path, list[list[int | None]]], tmp_path: pathlib.Path
) -> None:
    path, records = drawn
    info, table = table_of(damaged(path, tmp_path, HEADER + BLOCK + 5000, b"damaged"))
    lost = first_of(path, 2) - first_of(path, 1)
    assert info.skipped == lost
    assert rows_of(table) == records[: first_of(path, 1)] + records[first_of(path, 2) :]
    problem, bytes_lost = info.sources[0].loss.problems
    assert (problem.line, problem.why) == (first_of(path, 1) + 1, "damaged: the checksum of the block")
    assert bytes_lost.why == f"{BLOCK:,} of {path.stat().st_size:,} bytes, in damaged blocks, were not read"
    assert (info.sources[0].loss.unread_bytes, info.sources[0].loss.missing_bytes) == (BLOCK, 0)


@pytest.mark.parametrize("cut", [3, BLOCK // 2, BLOCK + 17])
def test_a_file_that_was_cut(
    drawn: tuple[pathlib.Path, list[list[int | None]]], tmp_path: pathlib.Path, cut: int
) -> None:
    path, records = drawn
    copy = tmp_path / f"copy{own.SUFFIX}"
    copy.write_bytes(path.read_bytes()[:-cut])
    info, table = table_of(copy)
    found = rows_of(table)
    assert found == records[: len(found)]
    assert len(found) >= first_of(path, 1)
    loss, there = info.sources[0].loss, copy.stat().st_size
    assert loss.problems[0].why == "the file is shorter than its header claims"
    assert info.skipped > 0
    assert loss.truncated
    assert (loss.missing_bytes, loss.unread_bytes) == (cut, (there - HEADER) % BLOCK)
    assert loss.problems[-1].why == (
        f"cut at byte {there:,} of {there + cut:,}: {cut:,} bytes are missing, and "
        f"{(there - HEADER) % BLOCK:,} bytes before that could not be read"
    )


@pytest.mark.parametrize("content", [b"", b"MPIOXTRC", b"MPIOXTRC\2\0\0\0" + bytes(5000)])
def test_what_is_no_trace(tmp_path: pathlib.Path, content: bytes) -> None:
    path = tmp_path / f"x{own.SUFFIX}"
    path.write_bytes(content)
    info, table = table_of(path)
    assert table.num_rows == 0
    assert info.sources[0].loss.problems[0].why.startswith("no trace file")


def test_a_file_that_is_not_there(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError):
        own.read([tmp_path / "nothing.mpioxtrace"])


def test_fuzzed(drawn: tuple[pathlib.Path, list[list[int | None]]], tmp_path: pathlib.Path) -> None:
    """libFuzzer with address and undefined-behaviour sanitizers, from blocks of real records."""
    data = drawn[0].read_bytes()
    records = [data[HEADER + 32 :][:length] for length in (300, 3000, 30)]
    cbuild.fuzz(
        "pioneer/fuzz_tracefile.c",
        folder=tmp_path,
        runs=12_000,
        most=80_000,
        files=list(map(pathlib.Path, READER)),
        corpus=[
            *(kind + record for record in records for kind in (b"\0\0", b"\2\0", b"\2\1")),
            b"\1\0" + data[HEADER : HEADER + BLOCK + 2000],
        ],
    )
