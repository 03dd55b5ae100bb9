"""Readers of ltrace, LANL-Trace and strace: lines by hand, random ones, broken ones, real ones."""

from __future__ import annotations

import gzip
import json
import pathlib
import re
import shutil
import subprocess
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mpiio_ext.cli import main
from mpiio_ext.pioneer.readers import find_reader, ltrace, strace
from mpiio_ext.pioneer.readers._functions import FUNCTIONS
from mpiio_ext.pioneer.readers.prototypes import prototypes
from support.expected import Expected
from support.traces import is_sorted, rows_of, table_of, told

#: "Before sanitization" of Table II of He, Du, Narasimhamurthy, "PIONEER".
TABLE_II = """\
10:48:52.404754 MPI_File_open(92, 0x807a7f8, 34, 0x8078e38, 0xbf83b9e0 <unfinished ...>
10:48:52.405470 SYS_statfs64(0x807a7f8, 84, 0xbf83b788, 0xbf83b788, 0x81dff4) = 0 <0.008302>
10:48:52.414801 SYS_umask(022) = 077 <0.000025>
10:48:52.414866 SYS_umask(077) = 022 <0.000017>
10:48:52.414936 SYS_open("/panfs/caddypan.lanl.gov/scratch1/nobody/tests/OUTPUT.1206553581.0", 32768, 0600) \
= 36 <0.000301>
10:48:52.416760 <... MPI_File_open resumed>)=0 <0.011931>
"""


def write(folder: pathlib.Path, name: str, text: str | bytes) -> pathlib.Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def clock(hours: int, minutes: int, seconds: float) -> int:
    return ((hours * 60 + minutes) * 60) * 10**9 + round(seconds * 1e9)


def test_table_two_of_the_paper(tmp_path: pathlib.Path, expected: Expected) -> None:
    expected(told(ltrace, write(tmp_path, "trace.0", TABLE_II)))


def test_forms_of_today(tmp_path: pathlib.Path, expected: Expected) -> None:
    path = write(
        tmp_path,
        "t",
        "17362 23:59:59.9 a.out->MPI_File_write_at(0x30, 4096, 0x7f, 100, 0x4c000405, 0x1 <unfinished ...>\n"
        "17363 23:59:59.95 SYS_futex(1, 2 <unfinished ...>\n"
        '17362 00:00:00.1 SYS_pwrite(5, "a"b)"..., 400, 4096) = 400 <0.000020>\n'
        "17363 00:00:00.15 <... SYS_futex resumed> ) = -11 <0.2>\n"
        "17362 00:00:00.2 <... MPI_File_write_at resumed> ) = 0 <0.300000>\n"
        "17362 00:00:00.3 --- SIGCHLD (Child exited) ---\n"
        "17362 00:00:00.4 SYS_lseek(5, 7, 0) = 7 <0.000001>\n"
        "17362 00:00:00.5 a.out->fwrite(0x1, 8, 3, 0x55) = 3 <0.000001>\n"
        "17362 00:00:00.6 SYS_exit_group(0 <no return ...>\n"
        "17363 00:00:00.7 SYS_read(3, <unfinished ...>\n"
        "17362 00:00:00.8 +++ exited (status 0) +++\n",
    )
    expected(told(ltrace, path))


def test_a_line_from_before_midnight_that_is_late(tmp_path: pathlib.Path) -> None:
    """Its time, and that of what follows, is of the day that the line is of."""
    lines = [f"{clock} SYS_lseek(5, 7, 0) = 7\n" for clock in ("23:59:58", "00:00:01", "23:59:59", "00:00:02")]
    rows = rows_of(ltrace, write(tmp_path, "t", "".join(lines)))
    assert sorted(row["timestamp"] for row in rows) == [at * 10**9 for at in (86_398, 86_399, 86_401, 86_402)]


def test_other_names_of_calls(tmp_path: pathlib.Path, expected: Expected) -> None:
    """As C libraries have them, and numbers of system calls."""
    path = write(
        tmp_path,
        "t",
        "1 10:00:00.1 a.out->_IO_getc(0x55) = 65 <0.1>\n"
        "1 10:00:00.2 SYS_pread64(3, 0x7f, 9, 4) = 9 <0.1>\n"
        '1 10:00:00.3 SYS_332(-100, "/a", 0, 0xfff, 0x7f) = 0 <0.1>\n',
    )
    expected(told(ltrace, path))


@pytest.mark.parametrize(
    ("printed", "flags"),
    [("01102", 0o1102), ("0x442", 0x442), ("00", 0), ("577", 577), ("O_RDWR|O_CREAT", "O_RDWR|O_CREAT")],
)
def test_flags_in_any_base_are_numbers(tmp_path: pathlib.Path, printed: str, flags: int | str) -> None:
    """Else an open is taken for one to read, and the writes behind it fail in a replay."""
    line = f'5 14:00:34.256804 SYS_openat(-100, "/d/a", {printed}, 0644) = 3 <0.000039>\n'
    (row,) = rows_of(ltrace, write(tmp_path, "t", line))
    assert json.loads(row["extra"]) == {"flags": flags, "mode": "0644"}


def test_quotes_that_ltrace_leaves_in_strings(tmp_path: pathlib.Path, expected: Expected) -> None:
    """If the end of the arguments is lost, none is guessed."""
    path = write(
        tmp_path,
        "t",
        '1 10:00:00.1 SYS_write(5, "a"b"c"..., 400) = 400 <0.1>\n1 10:00:00.2 SYS_write(5, "a",bc"..., 9) = 9 <0.1>\n',
    )
    expected(told(ltrace, path))


def test_names(tmp_path: pathlib.Path, expected: Expected) -> None:
    path = write(
        tmp_path,
        "t",
        b'1 1159808385.1 SYS_open("/panfs/scratch1/nobody/tests/OUT"..., 0, 0) = 3 <0.1>\n'
        + b'1 1159808385.2 SYS_open("/\\303\\251\\n\\"x\\\\", 0, 0) = 3 <0.1>\n'
        + b'1 1159808385.3 SYS_open("/\xff\xc3\xa9", 0, 0) = 3 <0.1>\n'
        + b'1 1159808385.4 SYS_rename("a", "b") = 0 <0.1>\n',
    )
    expected(told(ltrace, path))


def test_lanl_trace_with_its_timing_file(tmp_path: pathlib.Path, expected: Expected) -> None:
    call = "SYS_close(3) = 0 <0.000001>\n"
    for process, second in ((10378, 20), (10377, 10)):
        write(tmp_path, f"raw.{process}", f"10:00:{second}.0 {call}10:00:{second + 1}.0 {call}")
    write(
        tmp_path,
        "timing",
        "# Barrier before\n"
        "1: host13.lanl.gov (10377) Entered barrier at 1159808385.170918\n"
        "0: host12.lanl.gov (10378) Entered barrier at 1159808380.0\n"
        "0: host12.lanl.gov (10378) Exited barrier at 1159808386.000000\n"
        "1: host13.lanl.gov (10377) Exited barrier at 1159808386.250000\n",
    )
    write(tmp_path, "summary", "SYS_close 4\n")
    expected(told(ltrace, tmp_path))


NAMES_OF_ONE_FILE = """\
12 1795249976.01 stat("x", {...}) = -1 ENOENT (No such file) <0.1>
12 1795249976.02 openat(AT_FDCWD</home/me>, "/etc/ld.so.cache", O_RDONLY) = 3</etc/ld.so.cache> <0.1>
12 1795249976.10 creat("x", 0644) = 3</home/me/x> <0.1>
12 1795249976.11 link("./x", "y") = 0 <0.1>
12 1795249976.12 unlink("x") = 0 <0.1>
12 1795249976.13 mkdir("/home/me/sub/", 0755) = 0 <0.1>
12 1795249976.14 chdir("no") = -1 ENOENT (No such file) <0.1>
12 1795249976.15 chdir("sub") = 0 <0.1>
12 1795249976.16 truncate("..//x", 5) = 0 <0.1>
12 1795249976.17 clone3({flags=CLONE_VM|CLONE_FS|CLONE_THREAD}, 88) = 13 <0.1>
12 1795249976.18 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD) = 14 <0.1>
13 1795249976.19 stat("a", {...}) = 0 <0.1>
13 1795249976.20 chdir("..") = 0 <0.1>
12 1795249976.21 stat("a", {...}) = 0 <0.1>
14 1795249976.22 stat("a", {...}) = 0 <0.1>
14 1795249976.23 fchdir(3</home/me/x>) = 0 <0.1>
14 1795249976.24 unlink("a" <unfinished ...>
14 1795249976.25 <... unlink resumed>) = 0 <0.1>
14 1795249976.26 newfstatat(AT_FDCWD, "", {...}, 0) = -1 ENOENT (No such file) <0.1>
"""


def test_relative_names_are_joined_to_the_working_folder(tmp_path: pathlib.Path, expected: Expected) -> None:
    """Of every call alike, not of openat alone: one file has one name."""
    expected(told(strace, write(tmp_path, "t", NAMES_OF_ONE_FILE)))


def test_a_new_descriptor_tells_the_working_folder(tmp_path: pathlib.Path) -> None:
    """Older releases of strace have nothing beside AT_FDCWD."""
    path = write(
        tmp_path,
        "t",
        '12 1795249976.1 openat(AT_FDCWD, "a/x", O_RDWR) = 3</home/me/a/x> <0.1>\n'
        '12 1795249976.2 stat("a/x", {...}) = 0 <0.1>\n12 1795249976.3 unlink("/home/me/a/x") = 0 <0.1>\n',
    )
    assert [row["file"] for row in rows_of(strace, path)] == ["/home/me/a/x"] * 3


def test_strace(tmp_path: pathlib.Path, expected: Expected) -> None:
    path = write(
        tmp_path,
        "t",
        '12 1795249976.5 openat(AT_FDCWD</home/me>, "x", O_RDWR|O_CREAT, 0644) = 3</home/me/x> <0.000012>\n'
        '12 1795249976.6 openat(AT_FDCWD</home/me>, "/no", O_RDONLY) = -1 ENOENT (No such file) <0.000001>\n'
        '12 1795249976.7 pwrite64(3</home/me/x>, "\\1,)"..., 100, 50) = 100 <0.000002>\n'
        '12 1795249976.8 writev(3</home/me/x>, [{iov_base="a", iov_len=5}, {iov_base="b", iov_len=7}], 2 '
        "<unfinished ...>\n"
        "13 1795249976.81 read(4<TCP:[127.0.0.1:1->127.0.0.1:2]>,  <unfinished ...>\n"
        "12 1795249976.9 <... writev resumed>) = 12 <0.1>\n"
        '13 1795249976.91 <... read resumed>"xy", 8) = 2 <0.1>\n'
        "13 1795249976.95 ioctl(5<a>, SIOCGIFNAME, {ifr_index=1 <unfinished ...>\n"
        '13 1795249976.96 <... ioctl resumed>, ifr_name="lo"}) = 0\n'
        "13 1795249976.97 read(0,  <unfinished ...>) = ?\n"
        "12 1795249976.98 --- SIGUSR1 {si_signo=SIGUSR1, si_code=SI_USER} ---\n"
        "12 1795249976.99 nanosleep({tv_sec=1}, NULL) = ? ERESTART_RESTARTBLOCK (Interrupted by signal) <0.1>\n"
        '12 1795249976.991 write(3</home/me/x>, "abc"..., 4096) = ? ERESTARTSYS (To be restarted) <0.1>\n'
        "strace: Process 14 attached\n"
        "12 1795249977.0 +++ exited with 0 +++\n",
    )
    expected(told(strace, path))


def test_strace_with_a_file_for_each_thread(tmp_path: pathlib.Path) -> None:
    flags = "child_stack=0x1, flags=CLONE_VM|CLONE_THREAD"
    for rank, base in ((0, 100), (1, 200)):
        write(
            tmp_path,
            f"tr.{rank}.{base}",
            f"1000000000.1 clone({flags}) = {base + 1} <0.1>\n1000000000.3 close(3) = 0 <0.1>\n",
        )
        write(tmp_path, f"tr.{rank}.{base + 1}", "1000000000.2 close(4) = 0 <0.1>\n1000000000.4 close(5) = 0 <0.1>\n")
    info, table = table_of(strace, tmp_path)
    assert table["rank"].to_pylist() == [0] * 4 + [1] * 4
    assert table["thread"].to_pylist() == [0, 1, 0, 1] * 2
    assert is_sorted(table)
    assert info.ranks == 2
    for path in list(tmp_path.iterdir()):  # without the ranks in the names: by the lines of clone
        path.rename(tmp_path / f"tr.{path.name.split('.')[2]}")
    _, table = table_of(strace, tmp_path)
    assert table["rank"].to_pylist() == [0] * 4 + [1] * 4


def test_one_file_with_several_processes(tmp_path: pathlib.Path) -> None:
    text = (
        "10 1000000000.1 clone(flags=CLONE_CHILD_SETTID|SIGCHLD) = 12 <0.1>\n"
        "12 1000000000.2 clone3({flags=CLONE_VM|CLONE_THREAD <unfinished ...>\n"
        "12 1000000000.3 <... clone3 resumed>}, 88) = 13 <0.1>\n"
        "13 1000000000.4 close(1) = 0 <0.1>\n"
    )
    info, table = table_of(strace, write(tmp_path, "t", text))
    places = list(zip(table["rank"].to_pylist(), table["thread"].to_pylist(), strict=True))
    assert places == [(0, 0), (1, 0), (1, 1)]
    (problem,) = info.sources[0].loss.problems
    assert problem.why.startswith("1 process was made by another one of this trace, and each counts as a rank")
    info, table = table_of(strace, write(tmp_path, "t.0", text))
    assert set(table["rank"].to_pylist()) == {0} and info.ranks == 1 and info.sources[0].loss.problems == []
    words = ["pioneer", "path", str(tmp_path / "t"), "-o", str(tmp_path / "path.parquet")]
    assert "1 process was made by another one" in CliRunner().invoke(main, words).output


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "empty file"),
        (b"10:00:00.0 SYS_close(3", "the call has no end"),
        (b"10:00:00.0 SYS_close(3) = 0\n\x00\x01\x02\n", "binary"),
        (b"10:00:00.0 SYS_close(3) = 0\n10:00:00.1 <... SYS_read resumed> ) = 0\n", "without its beginning"),
        (b"SYS_close(3) = 0\n", "no time"),
        (b"10:00:00.0 SYS_close(3) = 0\n1159808385.17 SYS_close(3) = 0\n", "thread or time"),
        (b"10:00:00.0 hello world\n", "no call"),
        (b"10:00:00.0 SYS_close(" + b"1" * (1 << 20) + b") = 0\n", "longer than 1 MiB"),
        (gzip.compress(b"10:00:00.0 SYS_close(3) = 0\n" * 1000, mtime=0)[:-20], "its end is missing"),
        (b"\x1f\x8b" + b"nonsense", "not gzip"),
    ],
    ids=["empty", "cut", "binary", "resumed", "no time", "other time", "no call", "long", "cut gzip", "no gzip"],
)
def test_what_is_broken_is_told(tmp_path: pathlib.Path, text: bytes, why: str) -> None:
    path = write(tmp_path, "t", text)
    for reader in (ltrace, strace):
        info, _ = table_of(reader, path)
        problems = info.sources[0].loss.problems
        assert any(why in problem.why for problem in problems), problems


def test_a_last_line_that_is_cut(tmp_path: pathlib.Path) -> None:
    info, table = table_of(ltrace, write(tmp_path, "t", TABLE_II[:-30]))
    assert info.sources[0].loss.truncated
    assert info.skipped == 1
    assert len(table) == 5  # the open is there, without its end
    assert table["duration"].to_pylist()[0] is None


#: A call: thread, name, arguments as text, result, duration in us.
CALL = st.tuples(
    st.integers(1, 4),
    st.sampled_from(["read", "pwrite64", "openat", "frob", "MPI_File_sync"]),
    st.integers(0, 2**31),
    st.integers(-1, 2**40),
    st.integers(0, 10**7),
    st.booleans(),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12),
)


def c_string(text: str) -> str:
    named = {0x22: '\\"', 0x5C: "\\\\", 0x0A: "\\n", 0x09: "\\t"}
    return "".join(named.get(byte, chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in text.encode())


def whole(name: str) -> str:
    """Return a name as rows have it: parts that are empty or "." mean nothing."""
    parts = "/".join(part for part in name.split("/") if part not in ("", "."))
    return "/" + parts if name.startswith("/") else parts or (name and ".")


def render(calls: list[tuple[Any, ...]]) -> tuple[str, list[dict[str, Any]]]:
    """Return a trace, in which some calls of a thread are cut by those of others, and its rows."""
    lines, rows, open_calls = [], [], {}
    for i, (thread, name, number, result, duration, cut, text) in enumerate(calls):
        stamp = f"{thread} {1_000_000_000 + i}.5 "
        if thread in open_calls:
            lines.append(stamp + open_calls.pop(thread))
        arguments = {
            "read": f'3, "{c_string(text)}"..., {number}',
            "pwrite64": f'3, "{c_string(text)}", {number}, 77',
            "openat": f'AT_FDCWD, "{c_string(text)}", O_RDWR',
        }.get(name, str(number))
        end = f") = {result}" + (" EIO (Input/output error)" if result == -1 else "") + f" <{duration / 1e6:.6f}>"
        row = {
            "timestamp": (1_000_000_000 + i) * 10**9 + 5 * 10**8,
            "operation": name.removesuffix("64"),
            "duration": duration * 1000,
            "result": result,
            "line": len(lines) + 1,
        }
        if name in ("read", "pwrite64"):
            row["size"] = number
        if name == "openat":
            row["file"] = whole(text)
        rows.append(row)
        if cut:
            lines.append(f"{stamp}{name}({arguments} <unfinished ...>")
            open_calls[thread] = f"<... {name} resumed> {end}"
        else:
            lines.append(f"{stamp}{name}({arguments}{end}")
    lines += [f"{thread} 1900000000.0 {end}" for thread, end in open_calls.items()]
    return "".join(line + "\n" for line in lines), rows


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(calls=st.lists(CALL, min_size=1, max_size=30), compressed=st.booleans())
@example(
    calls=[(1, "openat", 0, 0, 0, False, name) for name in ("0/", "a//b/./c/", ".", "./", "/", "//", "../x", "")],
    compressed=False,
)
def test_round_trip(tmp_path: pathlib.Path, calls: list[tuple[Any, ...]], compressed: bool) -> None:
    text, expected = render(calls)
    path = write(tmp_path, "t", gzip.compress(text.encode()) if compressed else text)
    info, table = table_of(ltrace, path)
    assert info.sources[0].loss.problems == []
    for row, right in zip(table.to_pylist(), expected, strict=True):
        assert {name: row[name] for name in right} == right


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_bytes_raise(tmp_path: pathlib.Path, data: st.DataObject) -> None:
    """Cut, overwritten or random bytes: rows and losses, no errors."""
    text = bytearray(TABLE_II.encode())
    for _ in range(data.draw(st.integers(0, 5))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
        text = text or bytearray(b"x")
    text = text[: data.draw(st.integers(0, len(text)))]
    path = write(tmp_path, "t", bytes(text) if data.draw(st.booleans()) else data.draw(st.binary(max_size=300)))
    for reader in (ltrace, strace):
        reader.recognizes(path)
        info, table = table_of(reader, path)
        assert len(table) + info.skipped <= max(info.sources[0].lines, 1)


@pytest.mark.parametrize("tool", ["strace", "ltrace"])
def test_traces_of_today(tmp_path: pathlib.Path, tool: str) -> None:
    """What the tracers of this machine write of a small program is understood to the last line."""
    if shutil.which(tool) is None:
        pytest.skip(f"no {tool}")
    path, data = tmp_path / "trace", tmp_path / "data"
    options = {"strace": ["-f", "-ttt", "-T", "-y"], "ltrace": ["-f", "-S", "-tt", "-T", "-s", "256"]}[tool]
    command = [tool, *options, "-o", str(path), "/bin/sh", "-c", f"echo hello > {data}; cat {data}; ls /nonexistent"]
    done = subprocess.run(command, capture_output=True, timeout=120)
    if not path.exists() or path.stat().st_size == 0 or b"ptrace" in done.stderr:
        pytest.skip(f"{tool} may not trace here: {done.stderr[:200]!r}")
    info, table = table_of(find_reader(path), path)
    assert info.format == tool
    assert info.skipped == 0, info.sources[0].loss
    assert is_sorted(table)
    if tool == "strace":
        assert str(data) in table["file"].to_pylist()


def test_prototypes_for_ltrace() -> None:
    """One line each, for what readers know: handles in variables, large counts, numbers of MPICH; none of libraries."""
    lines = prototypes(mpich=False).splitlines()
    assert len(set(lines)) == len(lines)
    assert {
        "int MPI_File_open(addr, string, int, addr, +array(addr,1)*);",
        "int MPI_File_iread_at_c(addr, long, addr, long, addr, +array(addr,1)*);",
        "int MPI_Testany(int, array(addr,arg1)*, addr, +array(int,1)*, addr);",
        "int SYS_openat(int, string, octal, octal);",
        "long SYS_pread64(int, addr, ulong, long);",
    } <= set(lines)
    assert "int MPI_Wait(array(uint,1)*, addr);" in prototypes(mpich=True).splitlines()
    named = [re.fullmatch(r"\w+ (?:SYS_)?(\w+?)(?:_c)?\(.*\);", line) for line in lines if not line.startswith(";")]
    assert {name[1] for name in named if name} <= FUNCTIONS.keys() | {"umask", "pipe2"} and all(named)
