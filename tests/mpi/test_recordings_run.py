"""Recordings of real processes: threads, forks, a kill in the middle, a disk that is full, and what is not written."""

from __future__ import annotations

import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

from mpiio_ext._load import get_tracer
from mpiio_ext.cli import endings
from mpiio_ext.common.recordings import states
from mpiio_ext.pioneer.darshan import recordings, tallies
from support import cbuild, strangers
from support.launch import base_environment
from support.traced import tracing

pytestmark = pytest.mark.mpi

READ, WRITE = recordings.CLASSES.index("read"), recordings.CLASSES.index("write")


@pytest.fixture(scope="module")
def program(family: str) -> pathlib.Path:
    return cbuild.mpi_program("trace", "-O2")


def recorded(
    program: pathlib.Path, folder: pathlib.Path, *arguments: str, prefix: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a program alone under the recorder; the recordings are in FOLDER/trace."""
    variables = base_environment() | tracing(folder / "trace") | {"MPIOX_TRACE_MODE": "recording"}
    command = f"{prefix}exec {program} {arguments[0]} {folder} {' '.join(arguments[1:])}"
    return subprocess.run(["bash", "-c", command], env=variables, capture_output=True, text=True, timeout=120)


def written(found: recordings.Recording, path: pathlib.Path | str) -> tuple[int, int]:
    """Return calls and bytes of writes of a file through POSIX."""
    rows = found.records[found.records["module"] == 0]
    mine = [row for row in rows if found.names[int(row["name"])] == str(path)]
    place = found.counts[0].index("WRITES")
    return sum(int(row["counts"][place]) for row in mine), sum(int(row["done"][1]) for row in mine)


def everything(folder: pathlib.Path, program: pathlib.Path | str = "") -> list[recordings.Recording]:
    """Return the recordings of a program's processes, not of the shell that has become the program."""
    heads = recordings.heads([folder / "trace"])
    return [recordings.read(head.path) for head in heads if head.command.startswith(str(program))]


@pytest.mark.both
def test_threads(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Of four threads that write at once no call is lost, and every sum agrees with the others."""
    assert recorded(program, tmp_path, "threads", "50000").returncode == 0
    (found,) = everything(tmp_path, program)
    assert found.problem == ""
    for number in range(4):
        calls, size = written(found, f"{tmp_path}/data.{number}")
        assert (calls, size) == (50000, 50000)
    assert found.lanes[1].sum() == 200_000
    steps = found.steps[found.steps["class"] == WRITE]
    assert (steps["calls"].sum(), steps["bytes"].sum()) == (200_000, 200_000)
    assert len(found.segments) + found.unkept == 200_000
    assert not list((tmp_path / "trace").glob("*.mpioxtrace"))


def test_calls_that_no_record_counts(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Their kinds, files and outcomes: syncs inside of a mapping, locks, renames, and failures."""
    assert recorded(program, tmp_path, "others").returncode == 0
    (found,) = everything(tmp_path, program)
    rows = tallies.of_rows([*tallies.rows_of(found, 0)])
    counts = {
        (kind, function, error): (pathlib.Path(file).name, calls)
        for kind, function, error, file, calls in zip(
            rows.kind, rows.function, rows.error, rows.file, rows.calls.tolist(), strict=True
        )
        if function != "rename"
    }
    for key in (("sync", "msync", ""), ("lock", "flock", ""), ("lock", "fcntl", ""), ("lock", "lockf", "")):
        assert counts[key] == ("data", 10)
    assert counts["stat", "stat", "ENOENT"] == ("inside", 10)
    assert counts["unlink", "unlink", "ENOENT"] == ("inside", 10)
    assert counts["write", "write", "EBADF"] == ("data", 10)
    assert counts["unlink", "unlink", ""] == ("data", 1)
    assert counts["other", "ftruncate", ""] == ("data", 1)
    renames = rows.where(rows.function == "rename")
    assert sorted(zip(map(os.path.basename, renames.file), renames.calls.tolist(), strict=True)) == [
        ("data", 5),
        ("other", 5),
    ]
    place = found.counts[0].index("DUPS")
    assert (found.records["counts"][:, place] == 0).all()  # locks are no duplicates


def test_a_kill_in_the_middle(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    assert recorded(program, tmp_path, "kill", "50000").returncode == -signal.SIGKILL
    (found,) = everything(tmp_path, program)
    assert found.head.running
    assert written(found, tmp_path / "data") == (50000, 50000)


def test_a_kill_at_any_moment(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Whatever the last call was in, what is left is read, and its sums differ by one call at most."""
    variables = base_environment() | tracing(tmp_path / "trace") | {"MPIOX_TRACE_MODE": "recording"}
    data = tmp_path / "data"
    for number in range(5):
        data.unlink(missing_ok=True)
        with subprocess.Popen([str(program), "bytes", str(tmp_path), "100000000"], env=variables) as process:
            while not data.exists() or data.stat().st_size < 2:  # the last one of these may not be recorded yet
                with pytest.raises(subprocess.TimeoutExpired):
                    process.wait(0.01)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.001 + 0.037 * number)
            process.kill()
    found = everything(tmp_path, program)
    assert len(found) == 5
    for each in found:
        assert each.head.running
        calls, size = written(each, tmp_path / "data")
        assert calls > 0
        assert abs(calls - size) <= 1
        assert abs(int(each.lanes[1].sum()) - size) <= 1


@pytest.mark.both
def test_a_fortran_program(tmp_path: pathlib.Path, family: str) -> None:
    variables = base_environment() | tracing(tmp_path / "trace") | {"MPIOX_TRACE_MODE": "recording"}
    subprocess.run([cbuild.fortran_program(2), tmp_path / "data"], env=variables, check=True, timeout=60)
    (state,) = (each for each in states(tmp_path / "trace") if each.rank >= 0)  # not Open MPI's daemon
    assert (state.rank, state.running, state.finalized, state.exit_status) == (0, False, True, 0)


def test_fork(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """The child has a recording of its own, and the parent's goes on."""
    assert recorded(program, tmp_path, "fork").returncode == 0
    found = everything(tmp_path, program)
    assert sorted(written(each, tmp_path / "data") for each in found) == [(1, 3), (2, 3)]
    assert not any(each.head.running for each in found)


def test_a_full_disk(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """The program goes on, and so do the counters; only accesses one by one have no more room."""
    done = recorded(program, tmp_path, "bytes", "300000", prefix="ulimit -f 300; ")
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    (found,) = everything(tmp_path, program)
    assert written(found, tmp_path / "data") == (300000, 300000)
    assert found.unkept > 200_000
    assert found.head.path.stat().st_size <= 300 << 10


def test_few_addresses(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """A recording that may be larger than the process may map is a smaller one."""
    prefix = "ulimit -v 900000; export MPIOX_RECORDING_BYTES=1600000000; "
    done = recorded(program, tmp_path, "bytes", "2000", prefix=prefix)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    (found,) = everything(tmp_path, program)
    assert written(found, tmp_path / "data") == (2000, 2000)


def test_a_folder_that_cannot_be_written(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    variables = base_environment() | tracing(pathlib.Path("/proc/nothing")) | {"MPIOX_TRACE_MODE": "recording"}
    done = subprocess.run(
        [str(program), "posix", str(tmp_path)], env=variables, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert done.stderr.count("\n") == 1
    assert "check that the folder can be written" in done.stderr


#: Listens where the watcher of recordings would, and says who comes and goes.
WATCHER = """
import socket, sys
door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
door.bind("\\0" + sys.argv[1])
door.listen(1)
print("listens", flush=True)
guest = door.accept()[0]
print("came", flush=True)
guest.recv(1)
print("gone", flush=True)
"""


def says(process: subprocess.Popen[bytes], within_s: float = 60.0) -> str:
    """Return the next line of a process, whose output has no buffer; "" where there is none for so long."""
    assert process.stdout is not None
    return process.stdout.readline().decode().strip() if select.select([process.stdout], [], [], within_s)[0] else ""


@pytest.mark.parametrize("stranger", [False, True], ids=["same_user", "another_user"])
def test_only_a_watcher_of_the_same_user_is_trusted(stranger: bool, tmp_path: pathlib.Path, family: str) -> None:
    """Anybody may take its name: another user's connection is closed at once, while the program goes on."""
    if stranger:
        strangers.need()
    python = strangers.PYTHON if stranger else [sys.executable, "-c"]
    variables = base_environment() | tracing(tmp_path / "trace") | {"MPIOX_TRACE_MODE": "recording"}
    words = [*python, WATCHER, endings.door_name(tmp_path / "trace")]
    program = [sys.executable, "-c", "open('data', 'w').write('a'); input()"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdout=pipe, bufsize=0) as watcher:
        try:
            assert says(watcher) == "listens"
            with subprocess.Popen(program, stdin=pipe, env=variables, cwd=tmp_path) as recorded:
                assert says(watcher) == "came"
                assert says(watcher, 60.0 if stranger else 1.0) == ("gone" if stranger else "")
                assert recorded.poll() is None
                recorded.communicate(b"\n", timeout=60)
            assert recorded.returncode == 0 and (stranger or says(watcher) == "gone")
        finally:
            watcher.kill()


def test_another_program(tmp_path: pathlib.Path, family: str) -> None:
    """A shell that becomes another program leaves a recording of each; both have ended."""
    variables = base_environment() | tracing(tmp_path / "trace") | {"MPIOX_TRACE_MODE": "recording"}
    command = ["sh", "-c", "echo a > first; exec cp first second"]
    subprocess.run(command, env=variables, check=True, timeout=60, cwd=tmp_path)
    found = everything(tmp_path)
    assert {each.head.running for each in found} == {False}
    names = np.concatenate([list(each.names.values()) for each in found])
    assert {str(tmp_path / "first"), str(tmp_path / "second")} <= set(names.tolist())


def instructions(words: list[str], preload: list[str], trace: pathlib.Path | None = None) -> float:
    """Return the instructions of a call, by Valgrind: those of a long run less those of a short one."""
    counts = []
    for calls in (20_000, 40_000):
        variables = base_environment() | {"LD_PRELOAD": ":".join(preload)}
        if trace is not None:
            variables |= {"MPIOX_TRACE_DIR": str(trace / str(calls)), "MPIOX_TRACE_MODE": "recording"}
        tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *words[:-1], str(calls), words[-1]]
        done = subprocess.run(tool, env=variables, capture_output=True, text=True, timeout=300, check=True)
        counts.append(int(re.findall(r"Collected : (\d+)", done.stderr)[0]))
    return (counts[1] - counts[0]) / 40_000


@pytest.mark.slow
@pytest.mark.parametrize(("order", "most"), [("o", 310), ("r", 425), ("f", 310)])
def test_what_a_call_costs(family: str, tmp_path: pathlib.Path, order: str, most: int) -> None:
    """Instructions, which are the same in every run: at most those measured and a tenth more."""
    if shutil.which("valgrind") is None:
        pytest.skip("no Valgrind to count instructions with")
    source = str(cbuild.ROOT / "tests" / "programs" / "small_calls.c")
    loop = cbuild.compile_c([cbuild.compiler(), "-O2", source], "small_calls")
    nothing = cbuild.compile_c([cbuild.compiler(), "-O2", "-DNOTHING", "-shared", "-fPIC", source], "nothing.so")
    words = [str(loop), str(tmp_path / "file"), "4096", order]
    (tmp_path / "trace").mkdir()
    alone = instructions(words, [str(nothing)])
    added = instructions(words, [str(get_tracer()), str(nothing)], tmp_path / "trace") - alone
    assert 0 < added <= most
