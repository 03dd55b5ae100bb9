"""The reader of DFTracer: both schemas by hand, random events, broken files, the real trace of CM1."""

from __future__ import annotations

import gzip
import json
import pathlib
import zlib
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpiio_ext.pioneer.readers import _files, dftracer, find_reader
from mpiio_ext.pioneer.table import info_of, with_info
from support.expected import Expected
from support.traces import is_sorted, rows_of, shared_data, table_of, told

#: The schema of 2024; the table's entry of the second file comes after its use, and a call stands behind one inside it.
OLD = """[
{"id":1,"name":"HH","cat":"dftracer","pid":70,"tid":70,"ph":"M","args":{"name":"corona173","value":5692}}
{"id":2,"name":"thread_name","cat":"dftracer","pid":70,"tid":70,"ph":"M","args":{"name":"70","value":"thread_name"}}
{"id":5,"name":"start","cat":"dftracer","pid":70,"tid":70,"ts":90,"dur":0,"ph":"X","args":{"hhash":5692,"level":1}}
{"id":6,"name":"FH","cat":"dftracer","pid":70,"tid":70,"ph":"M","args":{"name":"/data/a","value":33}}
{"id":7,"name":"open64","cat":"POSIX","pid":70,"tid":70,"ts":101,"dur":2,"ph":"X","args":{"hhash":5692,"level":2,\
"flags":577,"ret":7,"fhash":33,"p_idx":-1,"mode":384}}
{"id":8,"name":"fopen","cat":"STDIO","pid":70,"tid":71,"ts":100,"dur":9,"ph":"X","args":{"fhash":34,"mode":"r"}}
{"id":9,"name":"FH","cat":"dftracer","pid":70,"tid":70,"ph":"M","args":{"name":"/data/b","value":34}}
{"id":10,"name":"pwrite","cat":"POSIX","pid":70,"tid":70,"ts":110,"dur":3,"ph":"X","args":{"count":32,\
"ret":30,"fhash":33,"fd":7,"offset":64}}
{"id":11,"name":"fread","cat":"STDIO","pid":70,"tid":70,"ts":111,"dur":3,"ph":"X","args":{"count":4,"size":8,"ret":4}}
{"id":12,"name":"lseek","cat":"POSIX","pid":70,"tid":70,"ts":112,"dur":1,"ph":"X","args":{"fd":7,"whence":2,"offset":0}}
{"id":13,"name":"PR","cat":"dftracer","pid":70,"tid":70,"ph":"M","args":{"name":"rank","value":"3"}}
{"id":14,"name":"compute","cat":"APP","pid":70,"tid":70,"ts":113,"dur":1,"ph":"X"}
{"id":15,"name":"end","cat":"dftracer","pid":70,"tid":70,"ts":120,"dur":0,"ph":"X","args":{"num_events":14}}
]
"""

#: The later one: texts as hashes, numbers as phases, nanoseconds.
NEW = """[
{"id":1,"name":"FH","cat":"dftracer","type":1,"pid":9,"tid":9,"ph":4,"args":{"hhash":"ab","name":"/n","value":"f1"}}
{"id":2,"name":"CM","cat":"dftracer","type":1,"pid":9,"tid":9,"ph":4,"args":{"name":"time_metric","value":"NS"}}
{"id":3,"name":"read","cat":"POSIX","type":1,"pid":9,"tid":9,"ts":5000,"dur":70,"ph":1,"args":{\
"hhash":"ab","fhash":"f1","size":8,"ret":-1}}
{"id":4,"name":"read","cat":"POSIX","type":1,"ts":5000,"ph":3,"pid":9,"tid":9,"args":{"hhash":"ab"}}
{"id":5,"name":"MPI_File_open","cat":"MPI","type":1,"pid":9,"tid":9,"ts":6000,"dur":70,"ph":1,"args":{"fhash":"f2"}}
]"""


#: The one of 2023, as DLIO Profiler 0.0.1 has written it for IOR: names, and numbers in quotes where C has no int.
FIRST = """[
 {"id":"0","name":"access","cat":"POSIX","pid":"2315","tid":"4630","ts":"1698975745976947","dur":"2","ph":"X","args":{\
"hostname":"m-0-0","fname":"testfile"}}
{"id":"1","name":"open64","cat":"POSIX","pid":"2315","tid":"4630","ts":"1698975745976978","dur":"29","ph":"X","args":{\
"hostname":"m-0-0","ret":15,"flags":66,"mode":436,"fname":"testfile"}}
{"id":"2","name":"lseek64","cat":"POSIX","pid":"2315","tid":"4630","ts":"1698975745977017","dur":"1","ph":"X","args":{\
"hostname":"m-0-0","ret":"262144","whence":"0","offset":"262144","fd":15,"fname":"testfile"}}
{"id":"3","name":"write","cat":"POSIX","pid":"2315","tid":"4630","ts":"1698975745977021","dur":"205","ph":"X","args":{\
"hostname":"m-0-0","ret":"131072","count":"262144","fd":"15","fname":"testfile"}}
{"id":"4","name":"close","cat":"POSIX","pid":"2315","tid":"4630","ts":"1698975745977500","dur":"2","ph":"X","args":{\
"hostname":"m-0-0","core_affinity": [0,1],"ret":0,"fd":15,"fname":"12"}}
"""


def write(folder: pathlib.Path, name: str, text: str | bytes) -> pathlib.Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_schema_of_2024(tmp_path: pathlib.Path, expected: Expected) -> None:
    path = write(tmp_path, "a.pfw", OLD)
    expected(told(dftracer, path))
    info, table = table_of(dftracer, path)
    assert info_of(with_info(table.schema, info)).lacks == info.lacks


def test_schema_of_2023(tmp_path: pathlib.Path, expected: Expected) -> None:
    """Quoted numbers are numbers; a name that is one stays a name."""
    expected(told(dftracer, write(tmp_path, "a.pfw", FIRST)))


@pytest.mark.parametrize(
    "broken",
    ['"count":"many"', '"count":1.5', '"ret":"0x"', '"fd":"stdin"', '"offset":[1]', '"count":"99999999999999999999"'],
)
def test_a_size_that_is_no_number_is_refused_with_its_line(tmp_path: pathlib.Path, broken: str) -> None:
    lines = FIRST.splitlines()
    lines[4] = lines[4].replace('"hostname"', f'{broken},"hostname"')
    info, table = table_of(dftracer, write(tmp_path, "a.pfw", "\n".join(lines) + "\n"))
    assert (len(table), info.skipped) == (4, 1)
    (problem,) = info.sources[0].loss.problems
    assert (problem.line, problem.why) == (5, "a result, handle, size or offset is no number")
    assert problem.text in lines[4]


CASES = """\
[
{"id":1,"name":"FH","cat":"dftracer","pid":1,"tid":1,"ph":"M","args":{"name":"/d/a","value":"f"}}
{"id":2,"name":"Fopen","cat":"STDIO","pid":1,"tid":1,"ts":1,"dur":1,"ph":"X","args":{"fhash":"f","mode":"r","ret":7}}
{"id":3,"name":"Fread","cat":"POSIX","pid":1,"tid":1,"ts":2,"dur":1,"ph":"X","args":{"fhash":"f","size":64,"ret":64}}
{"id":4,"name":"FREAD","cat":"stdio","pid":1,"tid":1,"ts":3,"dur":1,"ph":"X","args":{"fhash":"f","size":64,"ret":64}}
{"id":5,"name":"Open64","cat":"STDIO","pid":1,"tid":1,"ts":4,"dur":1,"ph":"X","args":{"fhash":"f","ret":3}}
{"id":6,"name":"Pwrite","cat":"posix","pid":1,"tid":1,"ts":5,"dur":1,"ph":"X","args":{"fhash":"f","count":9,"ret":9}}
{"id":7,"name":"mpi_file_sync","cat":"mpi","pid":1,"tid":1,"ts":6,"dur":1,"ph":"X","args":{"fhash":"f"}}
{"id":8,"name":"Frobnicate","cat":"POSIX","pid":1,"tid":1,"ts":7,"dur":1,"ph":"X","args":{"fhash":"f"}}
{"id":9,"name":"read","cat":"APP","pid":1,"tid":1,"ts":8,"dur":1,"ph":"X","args":{"fhash":"f"}}
"""


def test_names_and_categories_in_any_case(tmp_path: pathlib.Path, expected: Expected) -> None:
    """No call is passed over for a capital letter, nor for the category that it stands in."""
    expected(told(dftracer, write(tmp_path, "a.pfw", CASES)))


def test_what_is_null_is_not_known(tmp_path: pathlib.Path, expected: Expected) -> None:
    expected(told(dftracer, write(tmp_path, "a.pfw", FIRST.replace('"ret":"131072"', '"ret":null'))))


def test_later_schema(tmp_path: pathlib.Path, expected: Expected) -> None:
    path = write(tmp_path, "a.pfw", NEW)
    expected(told(dftracer, path))
    assert not table_of(dftracer, path)[0].sources[0].loss.truncated


#: Of DFTracer 2.2.0: vectors have no size, second names are hashes, of which the last is in no table.
VECTORS = """\
{"name":"FH","cat":"dftracer","type":1,"pid":1,"tid":1,"ph":4,"args":{"hhash":"68","name":"/d/x","value":"02b8"}}
{"name":"FH","cat":"dftracer","type":1,"pid":1,"tid":1,"ph":4,"args":{"hhash":"68","name":"/d/y","value":"2c1a"}}
{"id":26,"name":"writev","cat":"POSIX","type":3,"pid":1,"tid":1,"ts":1,"dur":4,"ph":1,"args":{"hhash":"68","ret":60,\
"iovcnt":3,"fhash":"02b8"}}
{"id":27,"name":"preadv64","cat":"POSIX","type":3,"pid":1,"tid":1,"ts":2,"dur":3,"ph":1,"args":{"hhash":"68","ret":50,\
"offset":50000,"iovcnt":3,"fhash":"02b8"}}
{"id":28,"name":"readv","cat":"POSIX","type":3,"pid":1,"tid":1,"ts":3,"dur":3,"ph":1,"args":{"hhash":"68","ret":-1,\
"iovcnt":3,"fhash":"02b8"}}
{"id":29,"name":"rename","cat":"POSIX","type":3,"pid":1,"tid":1,"ts":4,"dur":3,"ph":1,"args":{"hhash":"68",\
"newpath_hash":"2c1a","fhash":"02b8"}}
{"id":30,"name":"link","cat":"POSIX","type":3,"pid":1,"tid":1,"ts":5,"dur":3,"ph":1,"args":{"hhash":"68",\
"newpath_hash":"ffff","fhash":"2c1a"}}
"""


def test_vectors_and_second_names(tmp_path: pathlib.Path, expected: Expected) -> None:
    expected(told(dftracer, write(tmp_path, "a.pfw", VECTORS)))


def test_ranks_by_the_order_of_processes(tmp_path: pathlib.Path) -> None:
    for pid in (30, 4, 100):
        write(tmp_path, f"x-{pid}.pfw", OLD.replace(":70", f":{pid}").replace('"PR"', '"XX"').replace('"rank"', '"x"'))
    _, table = table_of(dftracer, tmp_path)
    assert sorted(Counter(table["rank"].to_pylist()).items()) == [(0, 5), (1, 5), (2, 5)]


def test_compressed_in_several_members_and_cut(tmp_path: pathlib.Path) -> None:
    lines = OLD.splitlines(keepends=True)
    whole = b"".join(gzip.compress(line.encode()) for line in lines)
    assert rows_of(dftracer, write(tmp_path, "a.pfw.gz", whole)) == rows_of(dftracer, write(tmp_path, "b.pfw", OLD))
    for cut in (len(whole) - 3, len(whole) // 2, 30):
        info, _ = table_of(dftracer, write(tmp_path, "c.pfw.gz", whole[:cut]))
        assert info.sources[0].loss.truncated
        said = [problem.why for problem in info.sources[0].loss.problems]
        assert any(f"the compressed file ends at byte {cut:,} and its end is missing" in why for why in said)
    info, _ = table_of(dftracer, write(tmp_path, "d.pfw", ""))
    assert info.sources[0].loss.truncated


def test_how_many_bytes_were_not_read(tmp_path: pathlib.Path) -> None:
    """Of a line that is cut, and of a compressed file that is damaged."""
    assert OLD.endswith("\n")
    cut = OLD.rstrip("\n")[:-9]
    line = len(cut) - cut.rfind("\n") - 1
    loss = table_of(dftracer, write(tmp_path, "a.pfw", cut))[0].sources[0].loss
    assert (loss.unread_bytes, loss.missing_bytes) == (line, 0)
    assert any(
        f"the text ends at byte {len(cut):,}, in the middle of a line: its {line:,} bytes were not understood"
        in problem.why
        for problem in loss.problems
    )
    first = gzip.compress(OLD.encode())
    damaged = first + b"\x1f\x8b" + b"no gzip" * 100
    loss = table_of(dftracer, write(tmp_path, "b.pfw.gz", damaged))[0].sources[0].loss
    assert loss.unread_bytes == len(damaged) - len(first)
    assert f"behind byte {len(first):,} of the compressed file, {loss.unread_bytes:,} bytes" in loss.problems[0].why
    assert table_of(dftracer, write(tmp_path, "c.pfw", OLD))[0].sources[0].loss.unread_bytes == 0


def test_the_same_hash_of_two_files(tmp_path: pathlib.Path, expected: Expected) -> None:
    """16 bits: an entry counts from its line on."""
    event = '{"id":1,"name":"read","cat":"POSIX","pid":1,"tid":1,"ts":%d,"dur":1,"ph":"X","args":{"fhash":5}}\n'
    entry = '{"id":1,"name":"FH","cat":"dftracer","pid":1,"tid":1,"ph":"M","args":{"name":"%s","value":5}}\n'
    text = event % 1 + entry % "/a" + event % 2 + entry % "/b" + event % 3
    expected(told(dftracer, write(tmp_path, "a.pfw", text)))


EVENT = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["read", "write", "open", "ftruncate", "frob"]),
        "cat": st.sampled_from(["POSIX", "STDIO"]),
        "dur": st.integers(0, 10**9),
        "args": st.fixed_dictionaries(
            {"fhash": st.integers(0, 6)},
            optional={
                "ret": st.integers(-1, 2**40),
                "fd": st.integers(0, 99),
                "offset": st.integers(0, 2**50),
                "size": st.integers(0, 2**31),
                "mode": st.one_of(st.integers(0, 999), st.text(max_size=5)),
            },
        ),
    }
)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=st.lists(EVENT, min_size=1, max_size=30), names=st.lists(st.text(max_size=9), min_size=7, max_size=7))
def test_round_trip(tmp_path: pathlib.Path, events: list[dict[str, Any]], names: list[str]) -> None:
    records: list[dict[str, Any]] = [
        {"id": i, **event, "pid": 1, "tid": 1, "ts": 1000 + i, "ph": "X"} for i, event in enumerate(events)
    ]
    for i, name in enumerate(names[1:], 1):
        args = {"name": name, "value": i}
        records.append({"id": 99, "name": "FH", "cat": "dftracer", "pid": 1, "tid": 1, "ph": "M", "args": args})
    text = "".join(json.dumps(record, separators=(",", ":"), ensure_ascii=False) + "\n" for record in records)
    info, table = table_of(dftracer, write(tmp_path, "a.pfw", text))
    assert info.sources[0].loss.problems == []
    for row, event in zip(table.to_pylist(), events, strict=True):
        args = event["args"]
        assert row["file"] == (names[args["fhash"]] if args["fhash"] else None)
        assert [row["result"], row["offset"], row["size"]] == [args.get(key) for key in ("ret", "offset", "size")]
        assert json.loads(row["extra"] or "{}") == {key: args[key] for key in args if key == "mode"}
        assert row["duration"] == event["dur"] * 1000


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_bytes_raise(tmp_path: pathlib.Path, data: st.DataObject) -> None:
    text = bytearray((OLD + NEW).encode())
    for _ in range(data.draw(st.integers(0, 6))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
    content = bytes(text[: data.draw(st.integers(0, len(text)))])
    if data.draw(st.booleans()):
        content = gzip.compress(content)[: data.draw(st.integers(0, len(content)))]
    path = write(tmp_path, "a.pfw", content)
    dftracer.recognizes(path)
    info, table = table_of(dftracer, path)
    assert len(table) + info.skipped <= max(info.sources[0].lines, 1)


def test_cm1() -> None:
    """Real: 12 ranks of CM1, the root and 11 others."""
    folder = shared_data("cm1_dftracer")
    assert find_reader(folder).NAME == "dftracer"
    info, table = table_of(dftracer, folder)
    expected: Counter[str] = Counter()
    for path in sorted(folder.glob("*.pfw.gz")):
        for line in gzip.decompress(path.read_bytes()).decode().splitlines():
            event = json.loads(line) if line.startswith("{") else {}
            if event.get("ph") == "X" and event["cat"] in ("POSIX", "STDIO"):
                expected[event["cat"].lower()] += 1
    assert Counter(table["layer"].to_pylist()) == expected
    assert info.skipped == 0
    assert info.ranks == 12
    assert [source.rank for source in info.sources] == list(range(12))
    assert {source.host for source in info.sources} == {"corona173"}
    assert table["file"].null_count == 0
    assert is_sorted(table)
    assert len(table) == 72_760


def test_either_inflater(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Members one behind the other, a missing end and damage: python-isal and zlib find the same."""
    pytest.importorskip("isal", reason="python-isal (mpiio_ext[pioneer]) is not installed")
    assert _files.inflate is not zlib
    whole = gzip.compress(OLD.encode()[:-3]) + gzip.compress(OLD.encode()[-3:])
    path = tmp_path / "a.pfw.gz"
    for content in (whole, whole + bytes(9), whole[:-9], whole[:400], whole + b"x", whole[:300] + b"\xff" * 60):
        path.write_bytes(content)
        found = []
        for inflate in (_files.inflate, zlib):
            with monkeypatch.context() as patch:
                patch.setattr(_files, "inflate", inflate)
                info, table = table_of(dftracer, path)
            found.append((table.to_pylist(), info.sources[0].loss.truncated))
        assert found[0] == found[1]
        assert found[0][1] == (content not in (whole, whole + bytes(9)))


def test_threads_that_take_turns(tmp_path: pathlib.Path) -> None:
    """Processes and threads by turns, some with the same numbers: each has its own, in the order of the lines."""
    lines = [
        f'{{"id":{i},"name":"read","cat":"POSIX","pid":{7 + i % 2},"tid":{9 - i % 3},"ts":{100 + i},"dur":1,'
        '"ph":"X"}\n'
        for i in range(6000)
    ]
    path = write(tmp_path, "a.pfw", "".join(lines))
    info, table = table_of(dftracer, path)
    number = {0: {0: 0, 2: 1, 1: 2}, 1: {1: 0, 0: 1, 2: 2}}
    assert table["rank"].to_pylist() == [i % 2 for i in range(6000)]
    assert table["thread"].to_pylist() == [number[i % 2][i % 3] for i in range(6000)]
    assert (info.ranks, info.sources[0].rank) == (2, -1)
