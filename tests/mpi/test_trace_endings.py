"""The tracer of PIONEER: threads and processes, and what is left of a trace when its process or its disk ends badly."""

from __future__ import annotations

import pathlib
import signal
import subprocess
import time

import pytest

from mpiio_ext._load import get_tracer
from mpiio_ext.pioneer.readers import own
from support import cbuild
from support.launch import base_environment
from support.traced import Row, of, read, traced, tracing

pytestmark = pytest.mark.mpi


@pytest.fixture(scope="module")
def program(family: str) -> pathlib.Path:
    return cbuild.mpi_program("trace", "-O2")


@pytest.mark.both
def test_threads(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    assert traced(program, tmp_path, "threads", "20000").returncode == 0
    info, rows = read(tmp_path / "trace")
    assert info.skipped == 0
    for number in range(4):
        mine = of(rows, f"{tmp_path}/data.{number}")
        assert [row["operation"] for row in mine] == ["open", *["pwrite"] * 20000, "close"]
        assert [row["offset"] for row in mine[1:-1]] == list(range(20000))
        assert len({row["thread"] for row in mine}) == 1
    assert len({row["thread"] for row in rows}) == 4


def test_a_killed_process_leaves_a_trace(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    assert traced(program, tmp_path, "kill", "50000").returncode == -signal.SIGKILL
    info, rows = read(tmp_path / "trace")
    mine = of(rows, tmp_path / "data")
    assert [row["offset"] for row in mine] == [None, *range(50000)]
    (source,) = info.sources
    assert source.loss.truncated
    assert source.loss.skipped == 0
    assert source.loss.problems[0].why.startswith("truncated")
    assert source.lines == source.rows == 50001


@pytest.mark.slow_except("1000", "1750", "2500", "3750")
@pytest.mark.parametrize("after_us", range(1000, 4000, 250))
def test_a_signal_handler_that_ends_the_process(after_us: int, program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """The handler may interrupt the tracer, which has its lock then: the process does not wait for itself."""
    assert traced(program, tmp_path, "interrupted", str(after_us)).returncode == 7
    _, rows = read(tmp_path / "trace")
    places = [row["offset"] for row in of(rows, tmp_path / "data") if row["operation"] == "pwrite"]
    assert places == list(range(len(places)))


def asleep(process: subprocess.Popen[str]) -> bool:
    """Return whether a process waits in the kernel, now and a little later."""
    for _ in range(3):
        if pathlib.Path(f"/proc/{process.pid}/stat").read_text("ascii").rpartition(")")[2].split()[0] != "S":
            return False
        time.sleep(0.02)
    return True


def killed_in_a_call(program: pathlib.Path, folder: pathlib.Path, how: str) -> list[Row]:
    """Kill the program when it says that it is about to make its call, and does nothing more; what was unfinished."""
    variables = base_environment() | tracing(folder / "trace")
    process = subprocess.Popen(
        [str(program), "block", str(folder), how], env=variables, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        deadline = time.monotonic() + 60
        while not asleep(process) and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        process.kill()
        process.communicate(timeout=60)
    info, rows = read(folder / "trace")
    (source,) = info.sources
    assert source.loss.truncated and source.loss.skipped == 0
    assert len({row["line"] for row in rows if "unfinished" not in row["extra"]}) == source.lines
    assert all(row["duration"] is not None for row in rows if "unfinished" not in row["extra"])
    return [row for row in rows if row["extra"] == {"unfinished": 1}]


@pytest.mark.parametrize("how", ["read", "write"])
def test_the_call_that_a_process_was_killed_in(program: pathlib.Path, tmp_path: pathlib.Path, how: str) -> None:
    """What is known of it is in the trace: operation, file, descriptor, start; its end is not."""
    (row,) = killed_in_a_call(program, tmp_path, how)
    _, rows = read(tmp_path / "trace")
    opened = next(item for item in of(rows, tmp_path / "data") if item["operation"] == "open")
    assert (row["operation"], row["layer"], row["file"]) == (how, "posix", str(tmp_path / "data"))
    assert (row["handle"], row["thread"], row["depth"]) == (opened["result"], 0, 0)
    assert row["result"] is None and row["duration"] is None and row["offset"] is None
    assert row["timestamp"] >= opened["timestamp"] + opened["duration"]
    assert rows[-1] == row


def test_a_name_that_is_used_for_the_first_time(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Nobody opens the pipe's other end."""
    (row,) = killed_in_a_call(program, tmp_path, "open")
    assert (row["operation"], row["file"], row["handle"], row["result"]) == ("open", str(tmp_path / "data"), None, None)


def test_a_call_that_is_made_inside_of_another_one(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """The MPI library opens a pipe: both calls are under way, each at its depth."""
    outer, *inner = killed_in_a_call(program, tmp_path, "mpi")
    assert (outer["operation"], outer["depth"], outer["file"]) == ("MPI_File_open", 0, str(tmp_path / "data"))
    assert [(row["operation"], row["depth"], row["file"]) for row in inner] == [
        (inner[0]["operation"], 1, str(tmp_path / "data"))
    ]
    assert inner[0]["operation"] in ("open", "openat")
    assert outer["timestamp"] <= inner[0]["timestamp"]


def test_a_full_disk_ends_the_trace_and_not_the_program(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    limit_kib = 3 * 1024
    variables = base_environment() | tracing(tmp_path / "trace")
    command = f"ulimit -f {limit_kib}; exec {program} bytes {tmp_path} 900000"
    done = subprocess.run(["bash", "-c", command], env=variables, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"
    assert [line for line in done.stderr.splitlines() if "mpiio_ext trace" in line] == done.stderr.splitlines()
    assert done.stderr.count("cannot grow") == 1
    info, rows = read(tmp_path / "trace")
    mine = of(rows, tmp_path / "data")[1:]
    assert 100000 < len(mine) < 900000
    assert [row["offset"] for row in mine] == list(range(len(mine)))
    assert info.sources[-1].loss.truncated


@pytest.mark.slow
def test_a_real_full_disk(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (tmp_path / "small").mkdir()
    mount = f"mount -t tmpfs -o size=3m none {tmp_path}/small"
    if subprocess.run(["unshare", "-m", "bash", "-c", mount], capture_output=True, timeout=60).returncode != 0:
        pytest.skip("needs the right to mount")
    run = f"MPIOX_TRACE_DIR={tmp_path}/small LD_PRELOAD={get_tracer()} {program} bytes {tmp_path} 900000"
    command = f"{mount}; {run}; code=$?; mkdir {tmp_path}/trace; cp {tmp_path}/small/* {tmp_path}/trace; exit $code"
    done = subprocess.run(
        ["unshare", "-m", "bash", "-c", command], env=base_environment(), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("cannot grow") == 1
    info, rows = read(tmp_path / "trace")
    assert info.sources[-1].loss.truncated
    assert len(of(rows, tmp_path / "data")) > 100000


def test_a_folder_that_cannot_be_written(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    variables = base_environment() | tracing(pathlib.Path("/proc/nothing"))
    done = subprocess.run(
        [str(program), "posix", str(tmp_path)], env=variables, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert done.stderr.count("\n") == 1
    assert "check that the folder can be written" in done.stderr


def test_fork_and_exec(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """The child has a file of its own; where both move the position it is the kernel's."""
    assert traced(program, tmp_path, "fork").returncode == 0
    info, _ = read(tmp_path / "trace")
    writes = []
    for path in own.files_of([tmp_path / "trace"]):
        rows = of(read(path)[1], tmp_path / "data")
        writes.append([(row["offset"], row["size"]) for row in rows if row["operation"] == "write"])
    assert sorted(writes) == [[(0, 2), (5, 1)], [(2, 3)]]
    assert [source.loss.truncated for source in info.sources] == [False, False]
