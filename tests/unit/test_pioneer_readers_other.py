"""Readers of Darshan DXT and of Recorder's text and Parquet; how a reader is found; merging of streams."""

from __future__ import annotations

import gzip
import os
import pathlib
import random
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpiio_ext.analytics.sources.darshan import convert
from mpiio_ext.pioneer.readers import FORMATS, dxt, find_reader, reader_of, recorder
from mpiio_ext.pioneer.readers._order import merged, ordered
from mpiio_ext.pioneer.sanitize.sanitize import sanitize
from mpiio_ext.pioneer.table import SCHEMA, Source, TraceInfo
from support.cbuild import ROOT
from support.darshan_logs import Job, make_log
from support.expected import Expected
from support.traces import is_sorted, rows_of, shared_data, table_of, told

#: Of recorder2text of Recorder 2.3.3, as it stands: addresses are "%p", names stand in place of handles.
TEXT = """\
0.0036088 0.0062297 MPI_File_open 0 1 ( MPI_COMM_WORLD /scratch/shared.dat 9 %p 0-0 )
0.0055683 0.0055752 open 1 0 ( /scratch/shared.dat 66 420 )
0.0063580 0.0072070 MPI_File_write_at_all 0 1 ( 0-0 0 %p 8192 MPI_DOUBLE MPI_STATUS_IGNORE )
0.0068570 0.0071691 pwrite 1 0 ( /scratch/shared.dat %p 65536 0 )
0.0094693 0.0102523 MPI_File_close 0 1 ( 0-0 )
0.0102383 0.0102393 close 1 0 ( /scratch/shared.dat )
0.0102621 0.0102671 open 0 0 ( /scratch/own.0 578 420 )
0.0103291 0.0103303 writev 0 0 ( /scratch/own.0 30 2 )
0.0103411 0.0103421 close 0 0 ( /scratch/own.0 )
0.0103451 0.0103480 fopen 0 0 ( /scratch/log a )
0.0103570 0.0103589 vfprintf 0 0 ( /scratch/log 29 )
0.0103619 0.0103647 fclose 0 0 ( /scratch/log )
"""
#: Lines as the same release prints them: HDF5 around calls, views, versions of stat, positions, the application's file
#: beside MPI's.
MORE = """\
1.0 1.9 H5Dwrite 0 3 ( 1 2 3 )
1.1 1.8 MPI_File_write_at 1 1 ( 1-0 8 %p 10 MPI_INT MPI_STATUS_IGNORE )
1.2 1.3 pwrite64 2 0 ( /scratch/h %p 40 8 )
2.0 2.1 H5Fflush 0 3 ( 1 )
2.02 2.05 pwrite 1 0 ( /scratch/h5 %p 96 0 )
3.0 3.1 MPI_File_set_view 0 1 ( 0-0 64 MPI_DOUBLE MPI_TYPE_UNKNOWN %p %p )
3.1 3.2 MPI_File_seek 0 1 ( 0-0 2 MPI_SEEK_SET )
3.2 3.4 MPI_File_write 0 1 ( 0-0 %p 3 MPI_DOUBLE [-2 0] )
3.3 3.35 write 1 0 ( /scratch/shared.dat %p 24 )
4.0 4.1 __xstat64 0 0 ( 1 /scratch/a %p )
4.1 4.2 open64 0 0 ( /scratch/shared.dat 1 )
4.2 4.3 lseek64 0 0 ( /scratch/shared.dat 100 0 )
4.3 4.4 write 0 0 ( /scratch/shared.dat %p 7 )
4.4 4.5 write 0 0 ( /scratch/shared.dat %p 5 )
4.5 4.6 MPI_File_sync 0 1 ( MPI_FILE_UNKNOWN )
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


@pytest.mark.parametrize(
    ("name", "form", "line"),
    [
        ("run-{}.pfw", "dftracer", '{"id":1,"name":"read","cat":"POSIX","pid":1,"tid":1,"ts":1,"dur":1,"ph":"X"}\n'),
        ("t.{}", "strace", "7  1700000000.5 close(3) = 0 <0.1>\n"),
        ("t.{}", "ltrace", "10:00:00.0 SYS_close(3) = 0\n"),
        ("{}.txt", "recorder", TEXT),
    ],
    ids=["dftracer", "strace", "ltrace", "recorder"],
)
def test_an_empty_file_that_sorts_first(tmp_path: pathlib.Path, name: str, form: str, line: str) -> None:
    """As a child leaves that has done nothing: plain, compressed, or a bracket alone. The others are read."""
    for number, empty in enumerate((b"", gzip.compress(b""), gzip.compress(b"[\n"), b"[\n]\n")):
        (tmp_path / name.format(number)).write_bytes(empty)
    for number in range(4, 12):
        (tmp_path / name.format(number)).write_bytes(b"")
    (tmp_path / name.format(12)).write_text(line)
    reader = find_reader(tmp_path)
    assert form == reader.NAME
    info, table = table_of(reader, tmp_path)
    assert len(table) == len(line.splitlines())
    assert info.clock == {"ltrace": "midnight", "recorder": "arbitrary"}.get(form, "unix")


def test_recorder_text(tmp_path: pathlib.Path, expected: Expected) -> None:
    folder = tmp_path / "_text"
    folder.mkdir()
    for rank in (0, 1, 10):
        (folder / f"{rank}.txt").write_text(TEXT)
    assert find_reader(tmp_path).NAME == "recorder"
    info, table = table_of(recorder, tmp_path)
    assert (info.ranks, table["rank"].to_pylist()) == (11, [0] * 12 + [1] * 12 + [10] * 12)
    assert "results" in info.lacks
    expected(told(recorder, folder / "0.txt"))


def sanitized_text(folder: pathlib.Path, text: str) -> list[tuple[object, ...]]:
    """Return (operation, file, offset, mask) of the lines of a rank after phase A."""
    (folder / "0.txt").write_text(text)
    rows = pa.Table.from_batches(list(sanitize(recorder.read([folder / "0.txt"])[1]))).to_pylist()
    return [(row["operation"], row["file"], row["offset"], row["mask"]) for row in rows]


def test_recorder_calls_inside_of_others(tmp_path: pathlib.Path, expected: Expected) -> None:
    """The level counts all calls; those of MPI make a row MPI-IO's own. Positions by the name of the file."""
    expected(sanitized_text(tmp_path, TEXT))
    opened = "".join(f"{line}\n" for line in TEXT.splitlines()[:2])
    expected(sanitized_text(tmp_path, opened + MORE)[2:])
    info, _ = table_of(recorder, tmp_path / "0.txt")
    assert info.sources[0].loss.problems[0].why == "2 records are of other layers: 1 H5Dwrite, 1 H5Fflush"


def test_recorder_without_levels(tmp_path: pathlib.Path) -> None:
    """RECORDER_LOG_LEVEL=0: all levels are 0; what lies within an MPI call in time, and on its file, is its own."""
    text = TEXT.replace("open 1 0", "open 0 0").replace("pwrite 1 0", "pwrite 0 0")
    found = sanitized_text(tmp_path, text)
    assert [mask for _, _, _, mask in found[:4]] == [None, None, None, "inside MPI-IO"]
    (tmp_path / "0.txt").write_text(text)
    assert [row.get("depth") for row in rows_of(recorder, tmp_path / "0.txt")][:4] == [0, None, 0, None]


@pytest.mark.parametrize("repeated", [False, True])
def test_recorder_parquet(tmp_path: pathlib.Path, repeated: bool, expected: Expected) -> None:
    """Recorder declares columns of numbers as repeated; pyarrow reads them as lists."""
    wrap = (lambda values: [[value] for value in values]) if repeated else list
    columns = {
        "rank": wrap([2, 5]),
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
    expected(told(recorder, path))
    path.write_bytes(path.read_bytes()[:-50])
    info, _ = table_of(recorder, path)
    assert info.sources[0].loss.truncated


def as_columns(lines: list[str]) -> dict[str, list[object]]:
    """Return lines of recorder2text as what recorder2parquet has of them."""
    words = [line.split() for line in lines]
    given = [one[6:-1] for one in words]
    return {
        "rank": [4] * len(words),
        "thread_id": [7] * len(words),
        "tstart": [float(one[0]) for one in words],
        "tend": [float(one[1]) for one in words],
        "func_id": [one[2] for one in words],
        "level": [int(one[3]) for one in words],
        "arg_count": [len(one) for one in given],
        **{f"args_{i + 1}": [one[i] if i < len(one) else "" for one in given] for i in range(10)},
    }


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_recorder_text_and_parquet_agree(tmp_path: pathlib.Path, data: st.DataObject) -> None:
    """The same records as text and as a table are the same rows."""
    names = ["open64", "pwrite", "lseek", "fwrite", "MPI_File_write_at", "MPI_File_set_view", "stat", "nobody", "H5F"]
    words = st.sampled_from(["/data/x", "5", "0x7f", "-1", "MPI_INT", "MPI_DOUBLE_C", "4096", "0", '"', "é", "9" * 30])
    times = st.integers(-(10**15), 10**15).map(lambda micro: f"{micro / 1e6:.6f}")
    line = st.builds(
        "{} {} {} {} 0 ( {} )".format,
        times,
        times,
        st.sampled_from(names),
        st.integers(0, 2),
        st.lists(words, max_size=7).map(" ".join),
    )
    lines = data.draw(st.lists(line, min_size=1, max_size=12))
    (tmp_path / "4.txt").write_text("".join(f"{one}\n" for one in lines), encoding="utf-8")
    pq.write_table(pa.table(as_columns(lines)), tmp_path / "4.parquet")
    told, _ = table_of(recorder, tmp_path / "4.txt")
    text, table = (rows_of(recorder, tmp_path / name) for name in ("4.txt", "4.parquet"))
    assert told.skipped == 0
    for one, other in zip(text, table, strict=True):
        assert abs(one["timestamp"] - other.pop("timestamp")) < 200  # of a double
        assert abs(one.pop("duration") - other.pop("duration")) < 400
        del one["timestamp"]
        assert one == other


def test_recorder_arguments_that_are_too_many(tmp_path: pathlib.Path, expected: Expected) -> None:
    """A name with blanks moves the arguments behind it: they are all kept as they stand there."""
    (tmp_path / "0.txt").write_text("0.5 0.75 open 0 0 ( /data/my file 66 384 )\n0.5 0.75 read 0 0 ( 5 0x7f zero )\n")
    expected(told(recorder, tmp_path / "0.txt"))


def test_recorder_times_are_exact(tmp_path: pathlib.Path) -> None:
    """Nanoseconds of a day, which no double holds; more digits are rounded; exponents."""
    text = "86400.123456789 86400.1234567895 close 0 0 ( 5 )\n-0.000000001 1e-3 close 0 0 ( 5 )\n7. 7 close 0 0 ( 5 )\n"
    (tmp_path / "0.txt").write_text(text)
    found = [(row["timestamp"], row["duration"]) for row in rows_of(recorder, tmp_path / "0.txt")]
    assert found == [(-1, 1_000_001), (7_000_000_000, 0), (86_400_123_456_789, 1)]


def mutated(content: bytes, data: st.DataObject, most: int = 6) -> bytes:
    """Return bytes some of which have been replaced, removed or added, and perhaps the end cut off."""
    found = bytearray(content)
    for _ in range(data.draw(st.integers(0, most))):
        at = data.draw(st.integers(0, max(len(found) - 1, 0)))
        found[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
    return bytes(found[: data.draw(st.integers(0, len(found)))] if data.draw(st.booleans()) else found)


def others_of(info: TraceInfo) -> int:
    """Return how many records were of other layers."""
    told = [problem.why for problem in info.sources[0].loss.problems if "of other layers" in problem.why]
    return sum(int(why.split()[0]) for why in told)


@settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_recorder_text_of_any_bytes(tmp_path: pathlib.Path, data: st.DataObject) -> None:
    """Every line is a row, counted as lost, a record of another layer, or blank; what is cut is told."""
    text = mutated(TEXT.encode(), data)
    path = tmp_path / "0.txt"
    path.write_bytes(text)
    recorder.recognizes(path)
    info, table = table_of(recorder, path)
    source = info.sources[0]
    blank = sum(not line.strip() for line in text.split(b"\n")[:-1])
    assert len(table) + info.skipped + others_of(info) + blank >= source.lines
    assert len(table) + info.skipped + others_of(info) <= source.lines
    not_gzip = text.startswith(b"\x1f\x8b")  # taken for a compressed file, of which nothing can be read
    assert source.loss.truncated == (not_gzip or not text.endswith(b"\n"))


@pytest.mark.parametrize(
    "line",
    [
        "1 2 open " + "9" * 5000 + " 0 ( /x )",
        "1e999 2 open 0 0 ( /x )",
        "-3.9e9 3.9e9 open 0 0 ( /x )",
        "-8e9 8e9 open 0 0 ( /x )",
        "1 2 pwrite 0 0 ( 5 0x7f " + "9" * 5000 + " 1 )",
    ],
)
def test_recorder_numbers_out_of_range(tmp_path: pathlib.Path, line: str) -> None:
    (tmp_path / "0.txt").write_text(line + "\n")
    info, table = table_of(recorder, tmp_path / "0.txt")
    assert len(table) + info.skipped == 1


@settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_recorder_parquet_of_any_values(tmp_path: pathlib.Path, data: st.DataObject) -> None:
    """A column of another type, values out of range: every record is a row, counted as lost, or of another layer."""
    count = data.draw(st.integers(0, 4))
    usual: dict[str, list[object]] = {
        "rank": [1] * count,
        "thread_id": [7] * count,
        "tstart": [0.5] * count,
        "tend": [0.75] * count,
        "func_id": ["pwrite"] * count,
        "arg_count": [4] * count,
        "args_1": ["5"] * count,
        "args_2": ["0x1"] * count,
        "args_3": ["800"] * count,
        "args_4": ["64"] * count,
    }
    for name in data.draw(st.lists(st.sampled_from(sorted(usual)), max_size=3)):
        kind = data.draw(st.sampled_from([st.integers(-(2**63), 2**63 - 1), st.floats(), st.text(max_size=5)]))
        usual[name] = [data.draw(st.one_of(st.none(), kind)) for _ in range(count)]
    path = tmp_path / "3.parquet"
    pq.write_table(pa.table(usual), path)
    info, table = table_of(recorder, path)
    assert info.sources[0].lines == count
    assert len(table) + info.skipped + others_of(info) == count


@settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_recorder_parquet_of_any_bytes(tmp_path: pathlib.Path, data: st.DataObject) -> None:
    """Damaged files are told; pages have checksums, so that no value is another one."""
    columns = {
        "rank": [1] * 9,
        "thread_id": [7] * 9,
        "tstart": [0.5] * 9,
        "tend": [0.75] * 9,
        "func_id": ["pwrite"] * 9,
        "arg_count": [4] * 9,
        "args_1": [str(i) for i in range(9)],
        "args_2": ["0x1"] * 9,
        "args_3": ["800"] * 9,
        "args_4": ["64"] * 9,
    }
    path = tmp_path / "1.parquet"
    pq.write_table(pa.table(columns), path, write_page_checksum=True)
    content = path.read_bytes()
    path.write_bytes(mutated(content, data, most=2))
    recorder.recognizes(path)
    info, table = table_of(recorder, path)
    loss = info.sources[0].loss
    assert len(table) == 9 or loss.truncated or loss.skipped > 0
    if info.sources[0].lines == 0:
        assert loss.problems


def test_recorder_parquet_that_is_cut_says_how_much_was_not_read(tmp_path: pathlib.Path) -> None:
    columns = {
        "rank": [1] * 9,
        "thread_id": [7] * 9,
        "tstart": [0.5] * 9,
        "tend": [0.75] * 9,
        "func_id": ["read"] * 9,
        "arg_count": [0] * 9,
    }
    path = tmp_path / "1.parquet"
    pq.write_table(pa.table(columns), path)
    path.write_bytes(path.read_bytes()[:-50])
    loss = table_of(recorder, path)[0].sources[0].loss
    assert loss.truncated and loss.unread_bytes == path.stat().st_size
    assert f"{loss.unread_bytes:,} bytes were not read" in loss.problems[0].why


def darshan_logs() -> pathlib.Path:
    darshan = pytest.importorskip("darshan", reason="PyDarshan (mpiio_ext[pioneer]) is not installed")
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


def test_dxt_has_one_code_for_each_layer() -> None:
    """pandas takes no dictionary in which a text stands twice."""
    columns = dxt._Columns()
    kinds = [columns.kind(layer, name) for layer, *both in dxt._MODULES.values() for name in both]
    for number, kind in enumerate(kinds):
        columns.add(1, timestamp=number, duration=1, offset=0, size=1, kind=kind, file=0, rank=0, line=1 + number)
    columns.files["a"] = 0
    (batch,) = columns.batches()
    assert batch["layer"].to_pylist() == ["posix", "posix", "mpiio", "mpiio"]
    assert batch["operation"].to_pylist() == ["read", "write", "MPI_File_read", "MPI_File_write"]
    for name in ("layer", "operation", "file"):
        words = batch[name].dictionary.to_pylist()
        assert len(set(words)) == len(words), name


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


def spoilt(content: bytes, rng: random.Random) -> bytes:
    """Return a log that is cut, or of which some bits, bytes of the head or a stretch are others."""
    found = bytearray(content)
    kind = rng.choice(["cut", "bits", "head", "zeros"])
    if kind == "cut":
        return content[: rng.randrange(len(content))]
    for _ in range(rng.randrange(1, 4)):
        if kind == "bits":
            found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
        elif kind == "head":
            found[rng.randrange(1024)] = rng.randrange(256)
        else:
            at = rng.randrange(len(found))
            found[at : at + 100] = bytes(len(found[at : at + 100]))
    return bytes(found)


def test_dxt_of_any_bytes(tmp_path: pathlib.Path, request: pytest.FixtureRequest) -> None:
    """What is damaged is told, and nothing is missing without that."""
    content = (darshan_logs() / "dxt.darshan").read_bytes()
    seed = int(os.environ.get("MPIOX_TEST_SEED", "1"))
    for case in range(200 if request.config.getoption("--run-slow") else 40):
        path = tmp_path / "a.darshan"
        path.write_bytes(spoilt(content, random.Random(f"{seed} {case}")))
        info, batches = dxt.read([path])
        table = pa.Table.from_batches(list(batches), SCHEMA)
        table.validate(full=True)
        loss = info.sources[0].loss
        told = loss.truncated or loss.skipped > 0 or any("no DXT" in problem.why for problem in loss.problems)
        assert told or len(table) == 7623, (seed, case)
        assert info.sources[0].rows == len(table)


def test_dxt_of_a_record_that_is_none(tmp_path: pathlib.Path) -> None:
    """What came before and behind is kept; records whose times are none are counted, and so is what is cut."""

    def record(rank: int, *requests: tuple[int, int, float, float]) -> bytes:
        head = struct.pack("<Qqq64sqq", 1, rank, -1, b"host", len(requests), 0)
        return head + b"".join(struct.pack("<qqdd", *each) for each in requests)

    path = tmp_path / "a.darshan"
    data = [record(2, (8, 9, 0.5, 1.0)), record(1, (0, 1, 1e300, 2.0), (0, 1, 0.0, 1.0)), record(0, (4, 2, 0.25, 1.0))]
    for left_out, lines, skipped, truncated in ((0, 4, 2, False), (8, 3, 3, True)):
        region = b"".join(data)
        path.write_bytes(make_log(Job(start=5, processes=3), {1: "/a"}, {10: (1, region[: len(region) - left_out])}))
        info, batches = dxt.read([path])
        rows = pa.Table.from_batches(list(batches), SCHEMA).to_pylist()
        found = [(row["rank"], row["offset"], row["size"], row["timestamp"], row["line"], row["file"]) for row in rows]
        last = [(0, 4, 2, 5_250_000_000, 4, "/a")] if not left_out else []
        assert found == [*last, (2, 8, 9, 5_500_000_000, 1, "/a")]
        loss = info.sources[0].loss
        assert (info.sources[0].lines, loss.skipped, loss.truncated, info.ranks) == (lines, skipped, truncated, 3)
        assert loss.problems[0].line == 2 and info.sources[0].host == "host"


def test_dxt_of_releases_that_the_library_does_not_know() -> None:
    """Darshan 3.5 has the thread of each request: PyDarshan 3.4.8 reads none of them."""
    path = ROOT / "tests/samples/diagnosis/one_aggregator_rows-4-2-dxt.darshan"
    info, table = table_of(dxt, path)
    written = [row for row in table.to_pylist() if row["operation"] == "write"]
    (row,) = [
        row
        for row in convert([path.name], str(path.parent)).tables["darshan_file"].to_pylist()
        if row["mpiio_coll_writes"]
    ]
    own = [each for each in written if each["file"] == row["file"]]
    assert (sum(each["size"] for each in own), len(own)) == (row["bytes_written"], row["writes"])
    assert (info.ranks, info.skipped, is_sorted(table)) == (4, 0, True)


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


@pytest.mark.parametrize("thread", ["", "4711 ", "[pid  4711] "])
def test_strace_without_times(tmp_path: pathlib.Path, thread: str) -> None:
    (tmp_path / "trace.0").write_text(
        f'{thread}openat(AT_FDCWD</d>, "/d/x", O_RDONLY) = 3</d/x>\n{thread}read(3</d/x>, "x", 1) = 1\n'
    )
    for path in (tmp_path, tmp_path / "trace.0"):
        with pytest.raises(ValueError, match=r"strace recorded no times: start it with `-ttt -T`"):
            find_reader(path)
