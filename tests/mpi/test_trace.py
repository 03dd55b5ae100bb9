"""The tracer of PIONEER: which calls it records, of which files, and its command."""

from __future__ import annotations

import glob
import pathlib
import shutil
import subprocess
import sys

import pytest
from click.testing import CliRunner

from mpiio_ext._load import get_library
from mpiio_ext.cli import main
from support import cbuild
from support.launch import base_environment, launcher, mpi_family, mpi_run, python_run, run_bounded
from support.marks import slow
from support.sanitized import OF_PROGRAMS, OF_THE_SYSTEM
from support.traced import Row, of, read, traced, tracing

pytestmark = pytest.mark.mpi


@pytest.fixture(scope="module")
def program(family: str) -> pathlib.Path:
    return cbuild.mpi_program("trace", "-O2")


def brief(row: Row) -> tuple[object, ...]:
    return row["operation"].removeprefix("MPI_File_").removesuffix("_c"), row["offset"], row["size"]


# ---- POSIX and stdio -------------------------------------------------------------------------------------------------


def test_posix_calls(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    done = traced(program, tmp_path, "posix")
    assert done.returncode == 0, done.stderr
    info, rows = read(tmp_path / "trace")
    data, other = tmp_path / "data", tmp_path / "other"
    found = [(*brief(row), row["result"]) for row in of(rows, data)]
    fd, copy = found[0][3], found[5][3]
    assert found == [
        ("open", None, None, fd),
        ("write", 0, 10, 10),
        ("writev", 10, 5, 5),
        ("lseek", 2, None, 2),
        ("read", 2, 4, 4),
        ("dup", None, None, copy),
        ("read", 6, 60, 9),
        ("pread", 3, 8, 8),
        ("pwrite", 100, 1, 1),
        ("close", None, None, 0),
        ("fstat", None, None, 0),
        ("mmap", 0, 4096, 0),
        ("munmap", None, 4096, 0),
        ("ftruncate", None, 50, 0),
        ("fsync", None, None, 0),
        ("close", None, None, 0),
        ("open", None, None, fd),
        ("write", 50, 3, 3),
        ("close", None, None, 0),
        ("rename", None, None, 0),
    ]
    assert [row["handle"] for row in of(rows, data)][:7] == [fd, fd, fd, fd, fd, fd, copy]
    assert of(rows, data)[0]["extra"] == {"flags": 0o1102, "mode": 0o640}
    assert of(rows, data)[3]["extra"] == {"whence": 0}
    assert of(rows, data)[-1]["extra"] == {"file2": str(other)}
    found = [(*brief(row), row["result"], row["extra"].get("errno")) for row in of(rows, other)]
    assert found == [("open", None, None, -1, 2), ("stat", None, None, 0, None), ("unlink", None, None, 0, None)]
    assert {row["layer"] for row in rows} == {"posix"}
    assert [row["timestamp"] for row in rows] == sorted(row["timestamp"] for row in rows)
    assert all(row["duration"] > 0 for row in rows)
    assert sorted(row["line"] for row in rows) == list(range(1, len(rows) + 1))
    assert info.clock == "unix"
    assert [(source.loss.truncated, source.loss.skipped) for source in info.sources] == [(False, 0)]


def test_stdio_calls(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    assert traced(program, tmp_path, "stdio").returncode == 0
    found = [(*brief(row), row["result"], row["layer"]) for row in of(read(tmp_path / "trace")[1], tmp_path / "data")]
    assert found == [
        ("fopen", None, None, 0, "stdio"),
        ("fwrite", 0, 10, 5, "stdio"),
        ("fputs", 10, 5, 5, "stdio"),
        ("fprintf", 15, 5, 5, "stdio"),
        ("fseek", 10, None, 0, "stdio"),
        ("fgets", 10, 63, 5, "stdio"),
        ("fread", 15, 3, 3, "stdio"),
        ("fgetc", 18, 1, 1, "stdio"),
        ("rewind", None, None, 0, "stdio"),
        ("fscanf", 0, 5, 5, "stdio"),
        ("getdelim", 5, 10, 10, "stdio"),
        ("fflush", None, None, 0, "stdio"),
        ("fclose", None, None, 0, "stdio"),
    ]


def test_names_are_absolute_and_the_system_is_left_out(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    variables = base_environment() | tracing(tmp_path / "trace")
    code = "import os\nos.close(os.open('./a//b', os.O_CREAT | os.O_RDWR))\nopen('/proc/self/stat').read()"
    (tmp_path / "a").mkdir()
    for keep in ("0", "1"):
        settings = variables | {"MPIOX_TRACE_SYSTEM_FILES": keep, "MPIOX_TRACE_DIR": str(tmp_path / f"trace{keep}")}
        subprocess.run([sys.executable, "-c", code], env=settings, cwd=tmp_path, check=True, timeout=60)
        names = {row["file"] for row in read(tmp_path / f"trace{keep}")[1]}
        assert str(tmp_path / "a" / "b") in names
        assert ("/proc/self/stat" in names) == (keep == "1")


def test_the_tracer_has_the_rules_of_the_sanitization(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """What it does not record it counts, and --only takes it."""
    code = "import os, sys\nfor name in sys.argv[1:]:\n os.path.isfile(name), os.path.isfile(name)"
    for only in ((), ("--only", "/usr/share/*", "--only", "*/libx.so")):
        command = [sys.executable, "-m", "mpiio_ext", "trace", "-o", str(tmp_path / f"trace{len(only)}"), *only, "--"]
        command += [sys.executable, "-c", code, *OF_PROGRAMS, *OF_THE_SYSTEM]
        run_bounded(command, env=base_environment(), timeout_s=60)
    info, rows = read(tmp_path / "trace0")
    assert {row["file"] for row in rows} & {*OF_PROGRAMS, *OF_THE_SYSTEM} == {*OF_PROGRAMS}
    (source,) = info.sources
    assert source.left_out.operations >= 2 * len(OF_THE_SYSTEM) and source.left_out.name.startswith("/")
    assert len(OF_THE_SYSTEM) <= source.left_out.files < source.left_out.operations
    words = ["pioneer", "path", str(tmp_path / "trace0"), "-o", str(tmp_path / "path.parquet")]
    said = CliRunner().invoke(main, words).output
    assert f"{source.left_out.operations:,} operations on " in said and "`mpiio-ext trace --only GLOB`" in said
    info, rows = read(tmp_path / "trace4")
    assert {row["file"] for row in rows} == {"/usr/share/a", "/data/libx.so"}
    assert info.sources[0].left_out.operations == 0 and info.selected
    words[2] = str(tmp_path / "trace4")
    assert "4 operations of 1 ranks" in CliRunner().invoke(main, words).output


# ---- MPI -------------------------------------------------------------------------------------------------------------


def expected(rank: int, ranks: int) -> list[tuple[object, ...]]:
    """Return what a rank of mode "mpi" does: operation, offset, size, extra."""
    mine = 100 + rank * 8
    opened = {"amode": 9, "comm": "world", "comm_size": ranks}
    plain = {
        "displacement": 0,
        "datarep": "native",
        "etype_size": 4,
        "filetype_size": 4,
        "filetype_extent": 4,
        "filetype": "4",
    }
    view = plain | {
        "displacement": 8,
        "filetype_size": 32,
        "filetype_extent": (3 * 2 * ranks + 2) * 4,
        "filetype": f"V(4;2;{2 * ranks * 4};4)",
    }

    def data(count: int, **more: int) -> dict[str, int]:
        return {"count": count, "type_size": 4} | more

    return [
        ("open", None, None, opened | ({"comm": "world"} if ranks > 1 else {})),
        ("write_at_all", rank * 32, 32, data(8)),
        ("set_view", None, None, view),
        ("seek", 2, None, {"whence": 0}),
        ("write_all", None, 16, data(4)),
        ("set_view", None, None, plain),
        ("sync", None, None, {}),
        ("read_at", 1, 8, data(2)),
        ("iwrite_at", mine, 32, data(8, request=1)),
        ("MPI_Wait", None, None, {"request": 1}),
        ("iread_at", mine, 16, data(4, request=2)),
        ("iread_at", mine + 4, 8, data(2, request=3)),
        ("MPI_Waitall", None, None, {"request": 2}),
        ("MPI_Waitall", None, None, {"request": 3}),
        ("iread_at", mine, 4, data(1, request=4)),
        ("MPI_Test", None, None, {"request": 4}),
        ("get_size", None, None, {"value": (100 + (ranks - 1) * 8 + 8) * 4}),
        ("close", None, None, {}),
        ("open", None, None, {"amode": 2, "comm": "self", "comm_size": 1}),
        ("close", None, None, {}),
    ]


@pytest.mark.both
@pytest.mark.parametrize("preloaded", [False, True], ids=["native", "extension"])
@pytest.mark.parametrize("ranks", [3, *slow(1)])
def test_mpi_calls(program: pathlib.Path, tmp_path: pathlib.Path, ranks: int, preloaded: bool) -> None:
    libraries = [get_library()] if preloaded else []
    mpi_run([program, "mpi", tmp_path], ranks, env=tracing(tmp_path / "trace", *libraries), timeout_s=120)
    info, rows = read(tmp_path / "trace")
    assert info.ranks == ranks
    assert [(source.rank, source.loss.truncated, source.loss.skipped) for source in info.sources] == [
        (rank, False, 0) for rank in range(ranks)
    ]
    for rank in range(ranks):
        mine = of(rows, tmp_path / "data", rank)
        assert [(*brief(row), row["extra"]) for row in mine] == expected(rank, ranks)
        assert {row["result"] for row in mine} == {0}
        assert [row["layer"] for row in mine].count("mpi") == 4
        assert [row["handle"] for row in mine[1:17]] == [mine[0]["handle"]] * 16
        inner = of(rows, tmp_path / "data", rank, depth=1)
        assert {row["layer"] for row in inner} <= {"posix", "extension"}
        events = [row["operation"] for row in inner if row["layer"] == "extension"]
        calls = [name for name in events if name != "write_round"]
        assert calls == (["collective_write"] * 2 if preloaded else [])
        names = [row["operation"] for row in rows if row["rank"] == rank and row["layer"] == "mpi" and not row["file"]]
        assert names == ["MPI_Init", "MPI_Barrier", "MPI_Finalize"]
    written = [row for row in rows if row["file"] == str(tmp_path / "data") and row["operation"].startswith("pwrite")]
    assert written
    assert {row["depth"] for row in written} == {1}


def test_waits_for_more_requests_than_a_list_has_room_for(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    mpi_run([program, "requests", tmp_path], 1, env=tracing(tmp_path / "trace"), timeout_s=60)
    rows = read(tmp_path / "trace")[1]
    started = [row for row in rows if row["operation"] == "MPI_File_iwrite_at"]
    assert [row["offset"] for row in started] == list(range(100))
    pending = [row["extra"]["request"] for row in started if "request" in row["extra"]]
    ended = [row for row in rows if row["operation"] == "MPI_Waitall"]
    assert [row["extra"]["request"] for row in ended] == pending
    assert {row["file"] for row in ended} <= {str(tmp_path / "data")}
    looks = [row for row in rows if row["operation"] == "MPI_Request_get_status"]
    assert len(looks) == (1 if 8 in pending else 0)
    assert all(row["depth"] == 1 for row in rows if row["operation"].startswith("pwrite"))
    assert [row["depth"] for row in rows if row["operation"] in ("MPI_Waitall", "MPI_File_close")][-1] == 0


@pytest.mark.parametrize("where", ["main", "thread", "signal"])
def test_a_jump_out_of_a_call(program: pathlib.Path, tmp_path: pathlib.Path, where: str) -> None:
    """The calls behind it are the application's again; those of the handler, on a stack above it too, are not."""
    mpi_run([program, "jump", tmp_path, where], 1, env=tracing(tmp_path / "trace"), timeout_s=60)
    info, rows = read(tmp_path / "trace")
    for name, depth in (("inside", 1), ("other", 0)):
        assert [(row["operation"], row["depth"]) for row in of(rows, tmp_path / name, depth=None)] == [
            ("open", depth),
            ("write", depth),
            ("close", depth),
        ]
    closed = [row for row in rows if row["operation"] in ("MPI_File_close", "MPI_Finalize")]
    assert [row["depth"] for row in closed] == [0, 0]
    assert info.skipped == 0


@pytest.mark.parametrize("ours", [False, True], ids=["mpi", "library"])
def test_exceptions_out_of_calls_in_threads(family: str, tmp_path: pathlib.Path, ours: bool) -> None:
    """C++ exceptions that an error handler throws through the call, again and again: each thread has its own depth."""
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    if family == "mpich" and not ours:
        pytest.skip("MPICH calls the handlers of files under a lock of its own, which an exception leaves locked")
    wrapper, source = pathlib.Path(sys.prefix) / "bin" / "mpicc", cbuild.ROOT / "tests" / "programs" / "throws.cpp"
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"]
    program = cbuild.compile_c([str(wrapper), *flags, str(source), "-lstdc++"], "throws")
    libraries = [get_library()] if ours else []
    mpi_run([program, tmp_path, "4"], 1, env=tracing(tmp_path / "trace", *libraries), timeout_s=60)
    info, rows = read(tmp_path / "trace")
    for name, depth in (("inside", 1), ("outside", 0)):
        for thread in range(4):
            found = of(rows, tmp_path / f"{name}.{thread}", depth=None)
            assert [(row["operation"], row["depth"]) for row in found] == 20 * [
                ("open", depth),
                ("write", depth),
                ("close", depth),
            ]
    closed = [row for row in rows if row["operation"] in ("MPI_File_close", "MPI_Finalize")]
    assert [row["depth"] for row in closed] == [0] * 5
    assert "MPI_File_read_at" not in {row["operation"] for row in rows} and info.skipped == 0


@pytest.mark.parametrize("inside", [False, True], ids=["around the launcher", "in each rank"])
def test_selection_of_files(program: pathlib.Path, tmp_path: pathlib.Path, inside: bool) -> None:
    """--only and --skip, several each, through the launcher and without it."""
    code = (
        "import sys, os\nfor name in ('a.dat', 'b.dat', 'c.log', 'd.tmp'):\n open(sys.argv[1] + '/' + name, 'w')"
        ".write('x')\nos.stat(sys.argv[1])\nos.listdir(sys.argv[1])\n"
    )
    trace = [sys.executable, "-m", "mpiio_ext", "trace"]
    names = {}
    for case, words in {
        "only": ["--only", "*.dat", "--only", "*/c.log"],
        "skip": ["--skip", "a.dat", "--skip", "*.tmp"],
        "both": ["--only", "*.dat", "--skip", "b.dat"],
        "folders": ["--folders"],
        "plain": [],
    }.items():
        run = [sys.executable, "-c", code, str(tmp_path)]
        start = [launcher(), "-n", "2"]
        command = [*trace, "-o", str(tmp_path / case), *words, "--"]
        command = [*start, *command, *run] if inside else [*command, *start, *run]
        run_bounded([str(word) for word in command], env=base_environment(), timeout_s=60)
        rows = read(tmp_path / case)[1]
        names[case] = {pathlib.Path(row["file"]).name for row in rows if row["file"].startswith(str(tmp_path))}
        looked = {row["operation"] for row in rows if row["file"] == str(tmp_path)}
        assert bool(looked & {"opendir", "stat"}) == (case == "folders")
    data = {"a.dat", "b.dat", "c.log", "d.tmp"}
    assert names["only"] == {"a.dat", "b.dat", "c.log"}
    assert names["skip"] & data == {"b.dat", "c.log"}
    assert names["both"] == {"a.dat"}
    assert names["plain"] & data == names["folders"] & data == data


def test_patterns_of_odd_folders(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """A backslash is itself, as in Python's fnmatch; a folder of more than a thousand bytes, escaped, is a pattern."""
    for number, folder in enumerate([tmp_path / "a\\b", tmp_path.joinpath(*["[" * 250] * 5)]):
        folder.mkdir(parents=True)
        command = [
            sys.executable,
            "-m",
            "mpiio_ext",
            "trace",
            "-o",
            str(tmp_path / f"trace{number}"),
            "--only",
            f"{glob.escape(str(folder))}/*",
            "--",
            sys.executable,
            "-c",
            "import sys; open(sys.argv[1], 'w').close()",
            str(folder / "x.dat"),
        ]
        run_bounded(command, env=base_environment(), timeout_s=60)
        assert {row["file"] for row in read(tmp_path / f"trace{number}")[1]} == {str(folder / "x.dat")}


def test_a_folder_that_cannot_be_made(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """One line that says what to do, and the program runs as without the tracer."""
    (tmp_path / "file").write_text("no folder")
    variables = base_environment() | tracing(tmp_path / "file" / "trace")
    done = subprocess.run([program, "posix", tmp_path], env=variables, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert str(tmp_path / "file" / "trace") in line
    assert "check that the folder can be written" in line
    command = [sys.executable, "-m", "mpiio_ext", "trace", "-o", str(tmp_path / "file" / "trace"), "--", str(program)]
    done = subprocess.run(command, env=base_environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "name a folder that every node can write to" in " ".join(done.stderr.split())


@pytest.mark.parametrize("ranks", [3, *slow(1)])
def test_python_program(tmp_path: pathlib.Path, ranks: int) -> None:
    """With `import mpiio_ext`: the library is loaded behind the tracer, and is in the way of the calls."""
    code = (
        "import sys, mpiio_ext\nfrom mpi4py import MPI\nassert mpiio_ext.interposed()\nworld = MPI.COMM_WORLD\n"
        "file = MPI.File.Open(world, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)\n"
        "file.Write_at_all(world.rank * 10, bytes(10))\nfile.Close()\n"
    )
    data = tmp_path / "data"
    python_run(["-c", code, str(data)], ranks, env=tracing(tmp_path / "trace"), timeout_s=120)
    rows = read(tmp_path / "trace")[1]
    for rank in range(ranks):
        found = [brief(row) for row in of(rows, data, rank) if row["operation"] != "MPI_File_set_errhandler"]
        assert found == [("open", None, None), ("write_at_all", rank * 10, 10), ("close", None, None)]
        assert "collective_write" in [row["operation"] for row in of(rows, data, rank, depth=1)]


ROUNDS = """
import sys
import mpiio_ext
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
info = MPI.Info.Create()
for name, value in {"cb_nodes": 1, "cb_buffer_size": 4096, "mpiox_exchange": "two_phase"}.items():
    info.Set(name, str(value))
file = MPI.File.Open(comm, sys.argv[1] + "/rounds", MPI.MODE_RDWR | MPI.MODE_CREATE, info)
file.Set_view(8 * comm.rank, MPI.BYTE, MPI.BYTE.Create_vector(2048, 8, 8 * comm.size).Commit())
file.Write_at_all(0, np.full(16384, comm.rank, "b"))
file.Read_at_all(0, np.zeros(16384, "b"))
file.Close()
info = MPI.Info.Create()
info.Set("mpiox_delegates", "1")
file = MPI.File.Open(comm, sys.argv[1] + "/delegated", MPI.MODE_RDWR | MPI.MODE_CREATE, info)
for i in range(10):
    file.Write_at(160 * comm.rank + 16 * i, np.full(16, i, "b"))
file.Sync()
file.Read_at(160 * comm.rank, np.zeros(160, "b"))
file.Close()
"""


def test_what_the_extension_does(extension: str, tmp_path: pathlib.Path) -> None:
    """Every round of a two-phase collective, inside of it; and what went through the delegates."""
    script = tmp_path / "rounds.py"
    script.write_text(ROUNDS, encoding="utf-8")
    words = ["-m", "mpiio_ext", "trace", "-o", tmp_path / "trace", "--", sys.executable, script, tmp_path]
    python_run(words, 2, timeout_s=120)
    rows = read(tmp_path / "trace")[1]
    for rank in range(2):
        mine = [row for row in rows if row["rank"] == rank and row["layer"] == "extension"]
        for kind in ("write", "read"):
            whole = next(row for row in mine if row["operation"] == f"collective_{kind}")
            rounds = [row for row in mine if row["operation"] == f"{kind}_round"]
            assert (whole["extra"]["way"], whole["extra"]["rounds"]) == ("two_phase", len(rounds))
            assert len(rounds) == 2 * 16384 // 4096
            told = [{"round": number, "rounds": len(rounds), "aggregators": 1} for number in range(len(rounds))]
            assert [row["extra"] for row in rounds] == told
            end = whole["timestamp"] + whole["duration"]
            assert all(
                whole["timestamp"] <= row["timestamp"] <= row["timestamp"] + row["duration"] <= end for row in rounds
            )
        barriers = [row["extra"] for row in mine if row["operation"] == "flush_barrier"]
        assert [(item["delegates"], item["error"]) for item in barriers] == [(1, 0)] * len(barriers)
        assert (barriers[0]["writes"], barriers[0]["bytes_written"], barriers[0]["reads"]) == (10, 160, 0)
        assert (barriers[-1]["writes"], barriers[-1]["reads"], barriers[-1]["bytes_read"]) == (10, 1, 160)


def test_python_program_without_the_extension(tmp_path: pathlib.Path) -> None:
    code = (
        "import sys\nfrom mpi4py import MPI\nfile = MPI.File.Open(MPI.COMM_WORLD, sys.argv[1], MPI.MODE_CREATE | "
        "MPI.MODE_RDWR)\nfile.Write_at_all(0, bytes(10))\nfile.Close()\n"
    )
    python_run(["-c", code, str(tmp_path / "data")], 1, env=tracing(tmp_path / "trace"), timeout_s=120)
    found = [brief(row) for row in of(read(tmp_path / "trace")[1], tmp_path / "data")]
    assert ("write_at_all", 0, 10) in found


@pytest.mark.both
@pytest.mark.parametrize("under", [True, False], ids=["extension", "alone"])
@pytest.mark.parametrize("binding", [*slow(1), 3])
def test_fortran_program(family: str, tmp_path: pathlib.Path, binding: int, under: bool) -> None:
    variables = tracing(tmp_path / "trace", *([get_library()] if under else []))
    variables |= {"EXPECT_MPIIO_EXT": "1"} if under else {}
    launch = mpi_run([cbuild.fortran_program(binding), tmp_path / "data"], 2, env=variables, timeout_s=120)
    assert not [line for line in launch.stdout.splitlines() if line.startswith("FAILED")]
    info, rows = read(tmp_path / "trace")
    assert info.ranks == 2
    calls = [row["operation"] for row in rows if row["rank"] == 0 and row["layer"] == "mpi"]
    assert calls == ["MPI_Init", "MPI_Wait", "MPI_Barrier", "MPI_Finalize"]
    found = [row["operation"] for row in of(rows, tmp_path / "data") if row["layer"] == "mpiio"]
    assert found[0] == "MPI_File_open"
    assert found.count("MPI_File_write_at_all") == 2  # one is wrong on purpose
    events = [row["operation"] for row in of(rows, tmp_path / "data", depth=1) if row["layer"] == "extension"]
    assert events.count("collective_write") == 2 * under


@pytest.mark.parametrize("now", [{}, {"LD_BIND_NOW": "1"}], ids=["lazy", "now"])
def test_program_without_mpi(tmp_path: pathlib.Path, now: dict[str, str]) -> None:
    (tmp_path / "file").write_text("text")
    variables = base_environment() | tracing(tmp_path / "trace") | now
    copy = ["cp", str(tmp_path / "file"), str(tmp_path / "copy")]
    subprocess.run(copy, env=variables, check=True, timeout=60)
    _, rows = read(tmp_path / "trace")
    assert [row["operation"].removesuffix("at") for row in of(rows, tmp_path / "file")].count("open") == 1
    assert {row["rank"] for row in rows} == {0}


# ---- command ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inside", [False, True])
def test_command(program: pathlib.Path, tmp_path: pathlib.Path, inside: bool) -> None:
    """Both `mpiio-ext trace -- mpirun ...` and `mpirun mpiio-ext trace -- ...`, with the extension."""
    mpiexec = launcher()
    assert mpiexec is not None
    trace = [sys.executable, "-m", "mpiio_ext", "trace", "-o", str(tmp_path / "trace"), "--extension", "--"]
    start = [mpiexec, "-n", "2"]
    command = [*start, *trace] if inside else [*trace, *start]
    run_bounded([*command, str(program), "mpi", str(tmp_path)], env=base_environment(), timeout_s=60)
    info, rows = read(tmp_path / "trace")
    assert [source.rank for source in info.sources] == [0, 1]
    assert "collective_write" in {row["operation"] for row in rows}
    if inside and mpi_family() == "mpich":  # whose launcher does not say which job a rank is of
        return
    again = [*command, str(program), "mpi", str(tmp_path)]
    launch = run_bounded(again, env=base_environment(), timeout_s=60, check=False)
    assert launch.returncode == 2, launch.describe()
    assert "traces of an earlier run: name another folder" in " ".join(launch.stderr.split()), launch.describe()


def test_ranks_without_and_with_several_traces(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """A trace file that was lost, and one of another run, are told; what is there is read."""
    mpiexec = launcher()
    assert mpiexec is not None
    for name in ("first", "second"):
        trace = [sys.executable, "-m", "mpiio_ext", "trace", "-o", str(tmp_path / name), "--", mpiexec, "-n", "3"]
        run_bounded([*trace, str(program), "mpi", str(tmp_path)], env=base_environment(), timeout_s=60)
    (other,) = (tmp_path / "second").glob("rank0.*.mpioxtrace")
    other.rename(tmp_path / "first" / f"again.{other.name}")
    (lost,) = (tmp_path / "first").glob("rank2.*.mpioxtrace")
    lost.unlink()
    info, rows = read(tmp_path / "first")
    assert {row["rank"] for row in rows} == {0, 1}
    said = [problem.why for source in info.sources for problem in source.loss.problems]
    assert sum("rank 0 has several traces" in why for why in said) == 1, said
    assert sum("1 of 3 ranks have no trace: 2:" in why for why in said) == 1, said
