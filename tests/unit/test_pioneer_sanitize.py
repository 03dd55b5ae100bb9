"""Phase A of PIONEER: names for handles, offsets for file pointers, masks for what MPI-IO does itself."""

from __future__ import annotations

import json
import sys
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpiio_ext.pioneer.sanitize.sanitize import application_only, sanitize
from mpiio_ext.pioneer.sanitize.system_files import import_folders, matcher
from mpiio_ext.pioneer.traces import sanitized
from support.sanitized import OF_PROGRAMS, OF_THE_SYSTEM, Row, batch_of, call, run, seen


def test_table_2_of_the_paper() -> None:
    """Before: an open of MPI-IO with four calls of POSIX inside. After: one record of the application."""
    name = "/panfs/caddypan.lanl.gov/scratch1/nobody/tests/OUTPUT.1206553581.0"
    rows = [
        call("MPI_File_open", "mpiio", file=name, handle=0x8078E38, result=0, duration=11931000),
        call("SYS_statfs64", file="/panfs", depth=1),
        call("SYS_umask", depth=1),
        call("SYS_umask", depth=1),
        call("SYS_open", file=name, result=36, depth=1),
    ]
    found = run(rows)
    assert [(row["operation"], row["mask"], row["parent"]) for row in found] == [
        ("MPI_File_open", None, None),
        *[(operation, "inside MPI-IO", 1) for operation in ("statfs", "umask", "umask", "open")],
    ]
    left = application_only(pa.Table.from_batches(list(sanitize([batch_of(rows)])))).to_pylist()
    assert [(row["operation"], row["file"], row["duration"]) for row in left] == [("MPI_File_open", name, 11931000)]


def test_writes_of_nonblocking_calls_on_other_threads() -> None:
    """On a descriptor that MPI-IO has opened every call is MPI-IO's, whatever the depth on that thread."""
    rows = [
        call("MPI_File_open", "mpiio", file="/d/f", handle=900, result=0),
        call("open", file="/d/f", result=7, depth=1),
        call("MPI_File_iwrite", "mpiio", handle=900, size=10, result=0),
        call("MPI_Wait", "mpi"),
        call("pwrite", handle=7, offset=0, size=10, result=10, thread=1),
        call("write", handle=8, size=3, result=3),
        call("MPI_File_close", "mpiio", handle=900, result=0),
        call("close", handle=7, depth=1, result=0),
        call("open", file="/d/g", result=7),
        call("write", handle=7, size=5, result=5),
    ]
    assert seen(rows, "file", "mask", "parent") == [
        ("/d/f", None, None),
        ("/d/f", "inside MPI-IO", 1),
        ("/d/f", None, None),
        (None, None, None),
        ("/d/f", "descriptor of MPI-IO", 4),
        (None, None, None),
        ("/d/f", None, None),
        ("/d/f", "inside MPI-IO", 7),
        ("/d/g", None, None),
        ("/d/g", None, None),
    ]


def test_accesses_within_those_of_mpiio_where_no_depth_is_told() -> None:
    """Darshan DXT: the same file, in time within; not beside, not on another file, not where the depth is told."""

    def access(operation: str, layer: str, file: str, begin: int, end: int, depth: int | None = None) -> Row:
        return call(operation, layer, file=file, timestamp=begin, duration=end - begin, depth=depth, offset=0, size=8)

    rows = [
        access("MPI_File_write", "mpiio", "/a", 100, 200),
        access("write", "posix", "/a", 100, 150),
        access("write", "posix", "/b", 120, 130),
        access("read", "posix", "/a", 150, 200),
        access("write", "posix", "/a", 160, 170, depth=0),
        access("write", "posix", "/a", 190, 201),
        access("write", "posix", "/a", 300, 310),
        access("MPI_File_write", "mpiio", "/a", 400, 500),
        access("write", "posix", "/a", 400, 500),
    ]
    assert seen(rows, "mask", "parent") == [
        (None, None),
        ("inside MPI-IO", 1),
        (None, None),
        ("inside MPI-IO", 1),
        (None, None),
        (None, None),
        (None, None),
        (None, None),
        ("inside MPI-IO", 8),
    ]


def test_offsets_are_followed() -> None:
    """Reads and writes at the file pointer, short ones, seeks, explicit offsets, append, a failed call."""
    rows = [
        call("open", file="a", result=3),
        call("read", handle=3, size=100, result=40),
        call("write", handle=3, size=10, result=10),
        call("lseek", handle=3, offset=-5, result=45),
        call("write", handle=3, size=1, result=-1),
        call("pread", handle=3, offset=7, size=2, result=2),
        call("read", handle=3, size=1, result=1),
        call("lseek", handle=3, offset=1, result=-1),
        call("read", handle=3, size=1, result=1),
        call("open", file="a", result=4, extra={"flags": "O_WRONLY|O_APPEND"}),
        call("write", handle=4, size=2, result=2),
        call("write", handle=4, size=2, result=2),
        call("close", handle=3, result=0),
        call("read", handle=3, size=1),
    ]
    assert seen(rows, "offset") == [
        (value,) for value in (None, 0, 40, 45, 45, 7, 45, 46, 46, None, 50, 52, None, None)
    ]
    assert [row["file"] for row in run(rows)][-2:] == ["a", None]


def test_duplicates_share_the_file_pointer() -> None:
    rows = [
        call("open", file="a", result=3),
        call("dup", handle=3, result=9),
        call("write", handle=9, size=4, result=4),
        call("close", handle=3, result=0),
        call("write", handle=9, size=4, result=4),
        call("open", file="b", result=3),
        call("dup2", handle=3, result=9),
        call("write", handle=9, size=1, result=1),
        call("dup2", handle=9, result=9),
        call("write", handle=3, size=1, result=1),
        call("fdopen", "stdio", handle=3, result=5000),
        call("fwrite", "stdio", handle=5000, size=6, result=6),
        call("fseek", "stdio", handle=5000, offset=-1, result=0, extra={"whence": "SEEK_CUR"}),
        call("fread", "stdio", handle=5000, size=1, result=1),
        call("fseek", "stdio", handle=5000, offset=3, result=0, extra={"whence": 0}),
        call("fgetc", "stdio", handle=5000),
    ]
    assert [
        (row["file"], row["offset"]) for row in run(rows) if row["operation"] in ("write", "fwrite", "fread", "fgetc")
    ] == [("a", 0), ("a", 4), ("b", 0), ("b", 1), ("b", 2), ("b", 7), ("b", 3)]


@pytest.mark.parametrize(
    "command",
    [
        {"command": 0},
        {"command": 1030},
        {"cmd": "F_DUPFD_CLOEXEC", "argument": 10},
        {"cmd": "F_DUPFD"},
        {"cmd": "0x406"},
    ],
)
def test_fcntl_duplicates_as_dup_does(command: dict[str, Any]) -> None:
    """The descriptor of F_DUPFD shares the file pointer and the session; other commands of fcntl make none."""
    rows = [
        call("open", file="a", result=3),
        call("fcntl", handle=3, result=10, extra=command),
        call("write", handle=10, size=4, result=4),
        call("fcntl", handle=3, result=0, extra={"cmd": "F_SETFL"}),
        call("close", handle=3, result=0),
        call("write", handle=10, size=2, result=2),
        call("fcntl", handle=10, result=1, extra={"command": 3}),
        call("close", handle=10, result=0),
        call("write", handle=1, size=2, result=2),
    ]
    found = run(rows)
    assert [row["operation"] for row in found] == [
        "open",
        "dup",
        "write",
        "fcntl",
        "close",
        "write",
        "fcntl",
        "close",
        "write",
    ]
    assert [(row["file"], row["offset"]) for row in found if row["operation"] == "write"] == [
        ("a", 0),
        ("a", 4),
        (None, None),
    ]
    assert [row["session"] for row in found] == [0] * 8 + [None]
    assert json.loads(found[1]["extra"]) == command
    assert run(rows, 1) == found


def test_sessions_are_those_of_handles() -> None:
    """Several of one file, duplicates, streams of descriptors; a failed open has a number of its own."""
    rows = [
        call("open", file="a", result=3),
        call("open", file="a", result=4),
        call("write", handle=3, size=1, result=1),
        call("read", handle=4, size=1, result=1),
        call("open", file="b", result=-1),
        call("dup", handle=3, result=5),
        call("close", handle=3, result=0),
        call("write", handle=5, size=1, result=1),
        call("open", file="a", result=3),
        call("fdopen", "stdio", handle=3, result=900),
        call("fwrite", "stdio", handle=900, size=1, result=1),
        call("fclose", "stdio", handle=900),
        call("write", handle=77, size=1, result=1),
        call("stat", file="a"),
        call("MPI_File_open", "mpiio", file="c", handle=8, result=0),
        call("MPI_File_iwrite_at", "mpiio", handle=8, offset=0, size=1, result=0, extra={"request": 9}),
        call("MPI_Wait", "mpi", extra={"request": 9}),
    ]
    sessions = [0, 1, 0, 1, 2, 0, 0, 0, 3, 3, 3, 3, None, None, 4, 4, 4]
    assert [row["session"] for row in run(rows)] == sessions
    assert [row["session"] for row in run(rows, 1)] == sessions


def test_the_descriptor_of_a_stream_belongs_to_the_stream() -> None:
    """Streams of C++: fopen, then writev and lseek on the descriptor, fclose; the descriptor is then another file's."""
    rows = [
        call("fopen", "stdio", file="a", handle=900, result=0, extra={"flags": 577, "handle2": 3}),
        call("writev", handle=3, size=8, result=8),
        call("lseek", handle=3, offset=100, result=100),
        call("write", handle=3, size=2, result=2),
        call("fclose", "stdio", handle=900, result=0),
        call("write", handle=3, size=1, result=1),
        call("fopen", "stdio", file="b", handle=900, result=0, extra={"flags": 0, "handle2": 3}),
        call("read", handle=3, size=4, result=4),
        call("fread", "stdio", handle=900, size=4, result=4),
        call("open", file="c", result=4),
        call("fclose", "stdio", handle=900, result=0),
        call("open", file="d", result=3),
        call("read", handle=3, size=4, result=4),
    ]
    wanted = [
        ("a", 0),
        ("a", 0),
        ("a", 0),
        ("a", 0),
        ("a", 0),
        (None, None),
        ("b", 1),
        ("b", 1),
        ("b", 1),
        ("c", 2),
        ("b", 1),
        ("d", 3),
        ("d", 3),
    ]
    for size in (0, 1):
        assert [(row["file"], row["session"]) for row in run(rows, size)] == wanted
    assert [row["offset"] for row in run(rows) if row["operation"] in ("writev", "write", "read", "fread")] == [
        0,
        100,
        None,
        0,
        4,
        0,
    ]


def test_views_and_pointers_of_mpi_io() -> None:
    """Offsets count elementary types of the view; a view sets the pointer back; split collectives use it, too."""
    rows = [
        call("MPI_File_open", "mpiio", file="f", handle=1, result=0),
        call("MPI_File_write", "mpiio", handle=1, size=16, result=0),
        call("MPI_File_set_view", "mpiio", handle=1, result=0, extra={"etype_size": 8}),
        call("MPI_File_write_all", "mpiio", handle=1, size=16, result=0),
        call("MPI_File_write_at", "mpiio", handle=1, offset=5, size=8, result=0),
        call("MPI_File_seek", "mpiio", handle=1, offset=3, result=0, extra={"whence": "MPI_SEEK_SET"}),
        call("MPI_File_read_all_begin", "mpiio", handle=1, size=8, result=0),
        call("MPI_File_read_all_end", "mpiio", handle=1, result=0),
        call("MPI_File_iread", "mpiio", handle=1, size=8, result=0),
        call("MPI_File_write_shared", "mpiio", handle=1, size=8, result=0),
        call("MPI_File_seek", "mpiio", handle=1, offset=-1, result=0, extra={"whence": "MPI_SEEK_END"}),
        call("MPI_File_read", "mpiio", handle=1, size=8, result=0),
    ]
    assert seen(rows, "offset") == [(value,) for value in (None, 0, None, 0, 40, 24, 24, None, 32, None, 40, 40)]


def test_failed_opens_and_unknown_handles() -> None:
    rows = [
        call("open", file="a", result=-1),
        call("write", handle=-1, size=1),
        call("fopen", "stdio", file="b", handle=0),
        call("MPI_File_open", "mpiio", file="c", handle=0, result=38),
        call("MPI_File_read", "mpiio", handle=0, size=1),
        call("write", size=4),
        call("close", handle=12, result=-1),
    ]
    assert [row["file"] for row in run(rows)] == ["a", None, "b", "c", None, None, None]


def test_ranks_have_their_own_handles() -> None:
    rows = [
        call("open", file="a", result=3),
        call("open", file="b", result=3, rank=1),
        call("write", handle=3, size=1, result=1),
        call("write", handle=3, size=2, result=2, rank=1),
        call("write", handle=3, size=1, result=1, rank=1),
    ]
    found = sorted(seen(rows, "rank", "file", "offset"), key=lambda row: row[0])
    assert (found[1], found[3:]) == ((0, "a", 0), [(1, "b", 0), (1, "b", 2)])


def test_ranks_whose_rows_are_mixed() -> None:
    """Every other row is of another rank: each has its own in their order, and they are not looked at one by one."""
    rows = [call("open", file=f"of {rank}", result=3, rank=rank) for rank in range(4)]
    rows += [
        call("write", handle=3, size=rank + 1, result=rank + 1, rank=rank) for _ in range(3000) for rank in range(4)
    ]
    batches = list(sanitize([batch_of(rows[:5000]), batch_of(rows[5000:])]))
    assert len(batches) == 4
    for rank in range(4):
        own = [row for batch in batches for row in batch.to_pylist() if row["rank"] == rank]
        assert [row["offset"] for row in own] == [None, *(i * (rank + 1) for i in range(3000))]
        assert {row["file"] for row in own} == {f"of {rank}"}


@pytest.mark.parametrize(
    ("name", "is_system"),
    [
        *dict.fromkeys(OF_PROGRAMS, False).items(),
        *dict.fromkeys(OF_THE_SYSTEM, True).items(),
        ("/proc/cpuinfo", True),
        ("/sys", True),
        ("/var/tmp/u/ompi.node.1/jf.0/1", True),
        ("/lib/x.so.6", True),
        ("out/lib/data", False),
        ("/scratch/u/etc/a", False),
        ("/tmp", True),
        ("/tmp/mine.dat", False),
        ("/home/u/venv/mod.cpython-311.pyc", True),
        ("/procurement", False),
        ("/dev", True),
        ("/dev/null", True),
        ("/dev/shm/me/f.nc", False),
        ("/dev/shm/mpich_shar_tmpx", True),
        ("/dev/shm/vader_segment.node.1", True),
        ("/home/me/ucx.conf", True),
        ("ucx.conf", True),
        ("myucx.conf", False),
    ],
)
def test_files_of_the_system(name: str, is_system: bool) -> None:
    assert (matcher().match(name) is not None) == is_system
    rows = [call("open", file=name, result=3), call("read", handle=3, size=1, result=1), call("stat", file=name)]
    assert [row["mask"] for row in run(rows)] == ["file of the system" if is_system else None] * 3
    for nothing in (matcher(()), matcher(only=["/nowhere/*", name])):
        assert pa.Table.from_batches(list(sanitize([batch_of(rows)], system_files=nothing)))["mask"].null_count == 3


def test_files_of_the_system_are_counted_and_only_takes_them() -> None:
    """Of a trace, and of the table that phase A has made of it."""
    rows = [call("open", file=name, result=3) for name in ("/usr/share/a", "/usr/share/a", "/etc/b", "/d/c")]
    told: list[str] = []
    stored = list(sanitized([batch_of(rows)], say=told.append))
    assert list(sanitized(stored, say=told.append)) == stored
    assert told == ["3 operations on 2 files of the system, such as /usr/share/a: left out; --only GLOB takes them"] * 2
    (batch,) = stored
    at, names = batch.schema.get_field_index("file"), batch["file"].cast(pa.string()).to_pylist()
    column = pa.array([None, *names[1:]]).dictionary_encode().cast(batch.schema.field(at).type)
    list(sanitized([batch.set_column(at, batch.schema.field(at), column)], say=told.append))  # one names no file
    assert told.pop().startswith("2 operations on 2 files of the system, such as /usr/share/a:")
    for batches in ([batch_of(rows)], stored):
        told.clear()
        found = pa.Table.from_batches(list(sanitized(batches, only=["/usr/share/*", "/d/*"], say=told.append)))
        assert found["mask"].to_pylist() == [None, None, "file of the system", None]
        assert told == ["1 operation on 1 file of the system, such as /etc/b: left out; --only GLOB takes them"]
        found = pa.Table.from_batches(list(sanitized(batches, only=["a", "b"])))
        assert found["mask"].null_count == 4


def test_what_an_editable_installation_looks_for_is_no_io_of_the_program() -> None:
    """Its folders are, there or not; data of a program below them is not."""
    locations = {"pkg": ["/src", "/src/pkg"], "pkg.one": ["/src/one"], "pkg.one.two": ["/src/one/two"]}
    assert import_folders(locations) == {"/src", "/src/pkg", "/src/one", "/src/pkg/one", "/src/one/two"}
    finders = (getattr(finder, "submodule_search_locations", {}) for finder in sys.meta_path)
    own = next((found for found in finders if "mpiio_ext" in found), None)
    if own is None:
        pytest.skip("mpiio_ext is not installed in the editable way")
    names = sorted(import_folders(own))
    assert len(names) > 50
    rows = [call("stat", file=name, extra={"errno": 2}) for name in names]
    assert {row["mask"] for row in run(rows)} == {"file of the system"}
    assert [
        row["mask"]
        for row in run([call("stat", file=f"{name}/data.nc") for name in names if ("site-packages" not in name)])
    ].count(None) > 50


def test_extra_that_is_no_json() -> None:
    rows = [call("open", file="a", result=3), call("write", handle=3, size=1, result=1)]
    for text in ("{", "[1]", '"x"', '{"whence": [1]}', '{"etype_size": -3}'):
        assert run([rows[0] | {"extra": text}, rows[1]])[1]["offset"] == 0


steps = st.one_of(
    st.tuples(st.just("open"), st.integers(3, 9), st.sampled_from(["a", "b", "c"])),
    st.tuples(st.sampled_from(["read", "write"]), st.integers(2, 10), st.integers(0, 50)),
    st.tuples(st.just("lseek"), st.integers(2, 10), st.integers(0, 90)),
    st.tuples(st.just("dup2"), st.integers(2, 10), st.integers(3, 9)),
    st.tuples(st.just("close"), st.integers(2, 10), st.just(0)),
)


@given(st.lists(steps, max_size=120), st.integers(0, 7))
def test_descriptors_against_a_model(several: list[tuple[str, int, Any]], size: int) -> None:
    """Whatever is opened, duplicated and closed, in batches of any size."""
    table: dict[int, list[Any]] = {}
    rows, expected = [], []
    for operation, handle, value in several:
        if operation == "open":
            rows.append(call("open", file=value, result=handle))
            expected.append((value, None))
            table[handle] = [value, 0]
            continue
        entry = table.get(handle)
        place = value if operation == "lseek" else entry[1] if entry and operation in ("read", "write") else None
        told = operation == "lseek"  # where it has led to, whatever its handle
        expected.append((entry[0] if entry else None, place if entry or told else None))
        if operation in ("read", "write"):
            rows.append(call(operation, handle=handle, size=value, result=value))
            if entry:
                entry[1] += value
        elif operation == "lseek":
            rows.append(call("lseek", handle=handle, offset=value, result=value))
            if entry:
                entry[1] = value
        elif operation == "dup2":
            rows.append(call("dup2", handle=handle, result=value))
            if entry:
                table[value] = entry
        else:
            rows.append(call("close", handle=handle, result=0))
            table.pop(handle, None)
    assert [(row["file"], row["offset"]) for row in run(rows, size)] == expected


def test_many_handles() -> None:
    """The table of handles grows, and shrinks without losing what lies behind."""
    rows = [call("open", file=f"f{i % 50}", result=3 + i * 7) for i in range(3000)]
    rows += [call("close", handle=3 + i * 7, result=0) for i in range(0, 3000, 2)]
    rows += [call("write", handle=3 + i * 7, size=i, result=i) for i in range(3000)]
    found = run(rows, 1000)[4500:]
    assert [row["file"] for row in found] == [None if i % 2 == 0 else f"f{i % 50}" for i in range(3000)]


def test_offsets_that_the_tracer_tells_are_kept() -> None:
    """As when another process moves the shared file pointer."""
    rows = [
        call("open", file="a", result=3),
        call("write", handle=3, size=4, result=4, offset=100),
        call("write", handle=3, size=4, result=4),
    ]
    assert [row[0] for row in seen(rows, "offset")] == [None, 100, 104]


def test_offsets_that_the_trace_tells_need_no_handle() -> None:
    """Darshan DXT has no opens and no handles, and tells every offset; so does a descriptor from elsewhere."""
    rows = [
        call("write", file="a", offset=700, size=10),
        call("MPI_File_write", "mpiio", file="a", offset=900, size=10),
        call("fread", "stdio", file="a", handle=5000, offset=4, size=2, result=2),
        call("read", handle=9, offset=30, size=3, result=3),
        call("lseek", handle=9, offset=-5, result=25),
        call("lseek", handle=9, offset=-50, result=-1),
        call("read", handle=9, size=3, result=3),
        call("fseek", "stdio", handle=77, offset=8, result=0, extra={"whence": 0}),
        call("MPI_File_set_view", "mpiio", file="a", offset=64, result=0),
    ]
    assert seen(rows, "offset") == [(value,) for value in (700, 900, 4, 30, 25, None, None, None, None)]


def test_mappings_last_longer_than_their_descriptors() -> None:
    """Closed right after mmap; two of one descriptor; addresses in `extra`, or as the result of mmap; memory."""
    rows = [
        call("open", file="a", result=3),
        call("mmap", handle=3, size=8, result=0, extra={"address": 4096}),
        call("mmap", handle=3, size=9, result=0, extra={"address": 16384}),
        call("close", handle=3, result=0),
        call("open", file="b", result=3),
        call("mmap", handle=3, size=8, result=32768),
        call("close", handle=3, result=0),
        call("msync", file="a", size=8, result=0, extra={"address": 4096, "flags": 4}),
        call("munmap", size=8, result=0, extra={"address": 32768}),
        call("munmap", size=8, extra={"address": "0x1000"}),
        call("munmap", size=9, result=0, extra={"address": 16384}),
        call("munmap", size=9, result=0, extra={"address": 16384}),
        call("munmap", size=5, result=0),
    ]
    for size in (0, 1):
        assert [(row["file"], row["session"], row["mask"]) for row in run(rows, size)] == [
            ("a", 0, None),
            ("a", 0, None),
            ("a", 0, None),
            ("a", 0, None),
            ("b", 1, None),
            ("b", 1, None),
            ("b", 1, None),
            ("a", 0, None),
            ("b", 1, None),
            ("a", 0, None),
            ("a", 0, None),
            (None, None, "no I/O on files"),
            (None, None, "no I/O on files"),
        ]
