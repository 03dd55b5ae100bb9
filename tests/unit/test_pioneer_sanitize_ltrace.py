"""Phase A of PIONEER where a tracer tells little: lines of ltrace, handles and names not told, what is no file."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

from mpiio_ext.pioneer.readers import ltrace
from mpiio_ext.pioneer.sanitize.sanitize import sanitize
from mpiio_ext.pioneer.traces import path_of, read_sanitized, tables_of
from support.sanitized import Row, batch_of, call, run, seen

#: Table II of the paper, "before", with the quotation marks and brackets that its print lacks; ltrace prints addresses.
TABLE_2 = """\
10:48:52.404754 MPI_File_open(92, 0x807a7f8, 34, 0x8078e38, 0xbf83b9e0 <unfinished ...>
10:48:52.405470 SYS_statfs64(0x807a7f8, 84, 0xbf83b788, 0xbf83b788, 0x81dff4) = 0 <0.008302>
10:48:52.414801 SYS_umask(022) = 077 <0.000025>
10:48:52.414866 SYS_umask(077) = 022 <0.000017>
10:48:52.414936 SYS_open("NAME", 32768, 0600) = 36 <0.000301>
10:48:52.416760 <... MPI_File_open resumed> ) = 0 <0.011931>
10:48:52.500000 MPI_File_write(0x8078f00, 0x9000000, 100, 3, 0xbf83b9e0 <unfinished ...>
10:48:52.500010 SYS_write(36, "", 400) = 400 <0.000301>
10:48:52.500400 <... MPI_File_write resumed> ) = 0 <0.000400>
10:48:52.600000 SYS_write(1, "done", 4) = 4 <0.000001>
10:48:52.700000 MPI_File_close(0xbf83b9e0 <unfinished ...>
10:48:52.700100 SYS_close(36) = 0 <0.000001>
10:48:52.700200 <... MPI_File_close resumed> ) = 0 <0.000300>
10:48:52.800000 SYS_open("/mine", 577, 0600) = 36 <0.000301>
10:48:52.800100 SYS_write(36, "", 7) = 7 <0.000301>
"""


def lines_of(text: str, folder: Path) -> list[Row]:
    (folder / "trace.0").write_text(text)
    info, batches = ltrace.read([folder / "trace.0"])
    rows = pa.Table.from_batches(list(sanitize(batches))).to_pylist()
    assert info.skipped == 0, info.sources
    return rows


def test_the_lines_of_table_2(tmp_path: Path) -> None:
    """The name is that of the file which MPI-IO opens; the handle that is used is the one whose open told none."""
    name = "/panfs/caddypan.lanl.gov/scratch1/nobody/tests/OUTPUT.1206553581.0"
    rows = lines_of(TABLE_2.replace("NAME", name), tmp_path)
    first = rows[0]
    assert (first["operation"], first["file"], first["offset"], first["duration"]) == (
        "MPI_File_open",
        name,
        None,
        11931000,
    )
    extra = json.loads(first["extra"])
    assert (extra["comm"], extra["amode"]) == ("MPI_COMM_SELF", 34)
    assert [(row["operation"], row["file"], row["offset"], row["mask"], row["parent"]) for row in rows[5:]] == [
        ("MPI_File_write", name, 0, None, None),
        ("write", name, 0, "inside MPI-IO", 7),
        ("write", None, None, "no I/O on files", None),
        ("MPI_File_close", name, None, None, None),
        ("close", name, None, "inside MPI-IO", 11),
        ("open", "/mine", None, None, None),
        ("write", "/mine", 0, None, None),
    ]
    assert [row["parent"] for row in rows[1:5]] == [1, 1, 1, 1]


def test_a_nameless_open_waits_for_its_end() -> None:
    """In batches of any size, and when the trace ends inside of it."""
    inner = [call("stat", file="/d", depth=1) for _ in range(5)]
    rows = [
        call("MPI_File_open", "mpiio", result=0, extra={"handle_address": "0x10"}),
        call("open", file="/etc/x", result=8, depth=1),
        *inner,
        call("open", file="/d/lock", result=9, depth=1),
        call("close", handle=9, result=0, depth=1),
        call("open", file="/d/f", result=9, depth=1),
        call("MPI_File_sync", "mpiio", handle=77),
        call("MPI_File_close", "mpiio", extra={"handle_address": "0x10"}),
        call("MPI_File_sync", "mpiio", handle=77),
    ]
    for size in (0, 1, 2, 3, 7):
        found = run(rows, size)
        assert [row["line"] for row in found] == list(range(1, len(rows) + 1))
        assert [row["file"] for row in found if row["layer"] == "mpiio"] == ["/d/f", "/d/f", "/d/f", None]
        cut = run(rows[:10], size)
        assert [row["file"] for row in cut if row["layer"] == "mpiio"] == ["/d/f"]


def test_two_opens_whose_handles_are_not_told() -> None:
    """Which of them a handle belongs to is not known, and not guessed; closes name the variable."""
    rows = [
        call("MPI_File_open", "mpiio", file="a", result=0, extra={"handle_address": "0x10"}),
        call("MPI_File_open", "mpiio", file="b", result=0, extra={"handle_address": "0x20"}),
        call("MPI_File_sync", "mpiio", handle=5),
        call("MPI_File_close", "mpiio", extra={"handle_address": "0x20"}),
        call("MPI_File_sync", "mpiio", handle=5),
        call("MPI_File_open", "mpiio", file="c", result=0, extra={"handle_address": "0x20"}),
        call("MPI_File_sync", "mpiio", handle=6),
        call("MPI_File_sync", "mpiio", handle=5),
        call("MPI_File_close", "mpiio", extra={"handle_address": "0x10"}),
        call("MPI_File_sync", "mpiio", handle=5),
    ]
    assert [row["file"] for row in run(rows)] == ["a", "b", None, "b", "a", "c", "c", "a", "a", None]


def test_parents_on_several_threads() -> None:
    """Each of two threads makes MPI calls; a thread of the MPI library works for the one that goes on."""
    rows = [
        call("MPI_File_open", "mpiio", file="/f", handle=1, result=0, timestamp=0, duration=10),
        call("open", file="/f", result=7, depth=1, timestamp=1, duration=1),
        call("MPI_File_iwrite", "mpiio", handle=1, size=8, timestamp=20, duration=5),
        call("MPI_File_write_at", "mpiio", handle=1, offset=0, size=8, thread=1, timestamp=30, duration=100),
        call("MPI_Wait", "mpi", thread=0, timestamp=40, duration=50),
        call("pwrite", handle=7, size=8, result=8, depth=1, thread=1, timestamp=45, duration=1),
        call("pwrite", handle=7, size=8, result=8, depth=0, thread=2, timestamp=46, duration=1),
        call("pwrite", handle=7, size=8, result=8, depth=1, thread=0, timestamp=47, duration=1),
        call("pwrite", handle=7, size=8, result=8, depth=0, thread=2, timestamp=95, duration=1),
        call("pwrite", handle=7, size=8, result=8, depth=0, thread=2, timestamp=200, duration=1),
    ]
    assert [row[0] for row in seen(rows, "parent")] == [None, 1, None, None, None, 4, 5, 5, 4, 4]


def test_waits_for_messages_are_no_io() -> None:
    rows = [
        call("MPI_File_open", "mpiio", file="/f", handle=1, result=0),
        call("MPI_File_iwrite", "mpiio", handle=1, size=8, extra={"request": "[ 0x55 ]"}),
        call("MPI_Waitall", "mpi", extra={"requests": "[ 0x44, 0x43 ]"}),
        call("MPI_Test", "mpi", extra={"request": "[ 0x55 ]", "flag": "[ 0 ]"}),
        call("MPI_Waitall", "mpi", extra={"requests": "[ 0x44, 0x55 ]"}),
        call("MPI_Wait", "mpi", extra={"request": "[ 0x55 ]"}),
        call("MPI_Barrier", "mpi"),
    ]
    assert seen(rows, "file", "mask") == [
        ("/f", None),
        ("/f", None),
        (None, "no I/O on files"),
        ("/f", "no I/O on files"),
        ("/f", None),
        (None, "no I/O on files"),
        (None, "no I/O on files"),
    ]


def test_what_is_no_file() -> None:
    """Sockets, standard streams, memory, calls of the system: kept and marked; unknown descriptors are not."""
    rows = [
        call("socket", result=5),
        call("write", handle=5, size=1),
        call("futex"),
        call("mmap", handle=-1, size=4096),
        call("munmap", size=4096),
        call("write", handle=2, size=1),
        call("write", handle=9, size=1),
        call("read", handle=8, extra={"object": "pipe:[7]"}),
        call("read", handle=12, depth=1),
        call("read", handle=12),
        call("close", handle=5, result=0),
        call("write", handle=5, size=1),
    ]
    no_io = "no I/O on files"
    assert [row[0] for row in seen(rows, "mask")] == [
        no_io,
        no_io,
        no_io,
        no_io,
        no_io,
        no_io,
        None,
        no_io,
        "inside MPI-IO",
        "descriptor of MPI-IO",
        no_io,
        None,
    ]


#: What tar and h5py do with a pipe; calls with an empty name, of which only those on a descriptor can succeed.
OF_A_PIPE = """\
pipe2([3<pipe:[7]>, 4<pipe:[7]>], O_CLOEXEC) = 0
newfstatat(3<pipe:[7]>, "", {st_mode=S_IFIFO|0600, st_size=0, ...}, AT_EMPTY_PATH) = 0
write(4<pipe:[7]>, "abc", 3) = 3
openat(AT_FDCWD, "/d/x", O_WRONLY|O_CREAT, 0666) = 5</d/x>
newfstatat(5</d/x>, "", {st_mode=S_IFREG|0644, st_size=0, ...}, AT_EMPTY_PATH) = 0
statx(5</d/x>, "", AT_EMPTY_PATH, STATX_ALL, {stx_mask=STATX_ALL, ...}) = 0
statx(3<pipe:[7]>, "", AT_EMPTY_PATH, STATX_ALL, {stx_mask=STATX_ALL, ...}) = 0
close(5</d/x>) = 0
stat("", 0x7ffe) = -1 ENOENT (No such file or directory)
openat(AT_FDCWD, "", O_RDONLY) = -1 ENOENT (No such file or directory)
rename("", "/d/y") = -1 ENOENT (No such file or directory)
socketpair(AF_UNIX, SOCK_STREAM, 0, [5<UNIX:[8->9]>, 6<UNIX:[9->8]>]) = 0
read(5<UNIX:[8->9]>, "", 8) = 0
"""


@pytest.mark.parametrize("told", [True, False], ids=["with -y", "without -y"])
def test_descriptors_that_are_no_files(tmp_path: Path, told: bool) -> None:
    """They are in no path, whether or not the tracer tells what a descriptor stands for."""
    text = OF_A_PIPE if told else re.sub(r"(\b\d)<[^]]*?\]?>(?=[], \n)])", r"\1", OF_A_PIPE)
    lines = [f"12 17000000{at}.5 {line} <0.000010>\n" for at, line in enumerate(text.splitlines(), 10)]
    (tmp_path / "trace.0").write_text("".join(lines))
    info, batches = read_sanitized([tmp_path / "trace.0"])
    found = path_of(tables_of(batches), info)
    names = list(zip(found.words("operation"), found.words("file"), strict=True))
    assert names == [("open", "/d/x"), ("fstat", "/d/x"), ("fstat", "/d/x"), ("close", "/d/x")]


def test_openat2_opens(tmp_path: Path) -> None:
    """Without names of descriptors its file is known by the handle, and so is where its accesses are."""
    lines = ('openat2(-100, "/d/a", {flags=O_RDWR, resolve=0}, 24) = 3', *['write(3, "x", 9) = 9'] * 2)
    text = "".join(f"7 17000000{at}.5 {line} <0.00001>\n" for at, line in enumerate(lines, 10))
    (tmp_path / "trace.0").write_text(text)
    _, batches = read_sanitized([tmp_path / "trace.0"])
    rows = pa.Table.from_batches(list(batches)).to_pylist()
    found = [(row["operation"], row["file"], row["offset"]) for row in rows]
    assert found == [("open", "/d/a", None), ("write", "/d/a", 0), ("write", "/d/a", 9)]


def test_names_of_the_functions_that_programs_call() -> None:
    rows = [
        call("openat", file="/a", result=3),
        call("newfstatat", handle=3, extra={"dir": 3}),
        call("newfstatat", file="/a"),
        call("unlinkat", file="/a", extra={"flags": 0}),
        call("unlinkat", file="/d", extra={"flags": "AT_REMOVEDIR"}),
        call("unlinkat", file="/d", extra={"flags": 512}),
        call("renameat2", file="/a"),
    ]
    found = run(rows)
    assert [row["operation"] for row in found] == ["open", "fstat", "stat", "unlink", "rmdir", "rmdir", "rename"]
    assert found[1]["file"] == "/a"


def test_a_link_whose_names_are_not_told_is_io_on_files() -> None:
    """As its rename is: ltrace prints addresses where it does not know a function."""
    rows = [call(name, extra={"file": "0x402018", "file2_address": "0x40201e"}) for name in ("renameat", "linkat")]
    assert [(row["operation"], row["mask"]) for row in run(rows)] == [("rename", None), ("link", None)]


def test_no_word_stands_twice_in_a_dictionary() -> None:
    """pandas takes no such column: two functions of the kernel may be one of programs."""
    rows = [
        call("open", file="/d/a", handle=3, result=3),
        call("openat", file="/d/b", handle=4, result=4),
        call("newfstatat", file="/d/a"),
        call("newfstatat", file="/d/a", handle=3),
        call("fstat", handle=3),
        call("unlink", file="/d/a"),
        call("unlinkat", file="/d/b"),
        call("unlinkat", file="/d", extra={"flags": "AT_REMOVEDIR"}),
        call("rmdir", file="/d"),
    ]
    (batch,) = sanitize([batch_of(rows)])
    assert batch["operation"].to_pylist() == [
        "open",
        "open",
        "stat",
        "fstat",
        "fstat",
        "unlink",
        "unlink",
        "rmdir",
        "rmdir",
    ]
    words = batch["operation"].dictionary.to_pylist()
    assert len(set(words)) == len(words)


def test_large_counts_are_read_as_their_plain_forms(tmp_path: Path) -> None:
    rows = lines_of(
        '10:48:52.4 prog->MPI_File_open(0x1, "/f", 9, 0, [ 0x10 ]) = 0 <0.1>\n'
        "10:48:53.4 prog->MPI_File_write_at_all_c(0x10, 8, 0x2, 5, 0x4c000405, 0) = 0 <0.1>\n",
        tmp_path,
    )
    assert [(row["operation"], row["file"], row["offset"], row["size"]) for row in rows] == [
        ("MPI_File_open", "/f", None, None),
        ("MPI_File_write_at_all", "/f", 8, 20),
    ]
