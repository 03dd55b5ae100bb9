"""Time lines of real programs, against their traces."""

from __future__ import annotations

import pathlib
import re
import sys

import pytest

from support import timelines, traced
from support.launch import PROGRAMS, Launch, base_environment, launcher, run_bounded
from support.marks import slow

pytestmark = pytest.mark.mpi

PYTHON_M = [sys.executable, "-m", "mpiio_ext"]
TWO_PHASE = "*:mpiox_exchange=two_phase"
#: Rank 1 is killed inside of a call that takes long, of all ranks.
KILLED = """
import os, signal, sys, threading
from mpi4py import MPI
world = MPI.COMM_WORLD
file = MPI.File.Open(world, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_WRONLY)
file.Write_at(world.rank * 4096, bytes(4096))
world.Barrier()
if world.rank == 1:
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGKILL)).start()
    os.mkfifo(sys.argv[1] + ".pipe")
    file.Write_at(4096, bytes(4096))
    open(sys.argv[1] + ".pipe")
world.Barrier()
"""


def traced_run(folder: pathlib.Path, ranks: int, **variables: str) -> Launch:
    program = [sys.executable, str(PROGRAMS / "two_files.py"), str(folder / "data"), "262144"]
    command = [*PYTHON_M, "trace", "-o", str(folder / "trace"), "--extension", "--", str(launcher()), "-n", str(ranks)]
    return run_bounded([*command, *program], env=base_environment() | variables, timeout_s=90)


def timeline_of(folder: pathlib.Path, name: str = "run.pftrace") -> timelines.Timeline:
    words = ["pioneer", "timeline", str(folder / "trace"), "-o", str(folder / name)]
    said = run_bounded([*PYTHON_M, *words], env=base_environment(), timeout_s=60)
    found = timelines.read(folder / name)
    assert f": {len(found.of_trace()):,} calls of " in said.stdout
    return found


@pytest.mark.parametrize("name", ["run.pftrace", "run.json.gz"])
def test_ranks_aggregators_and_files(extension: str, tmp_path: pathlib.Path, name: str) -> None:
    traced_run(tmp_path, 4, MPIOX_HINTS=TWO_PHASE)
    found = timeline_of(tmp_path, name)
    _, rows = traced.read(tmp_path / "trace")
    timelines.check(found, rows)
    assert {found.groups[event["pid"]] for event in found.of_group("rank ")} == {f"rank {rank}" for rank in range(4)}
    for event in found.of_group("rank "):
        if event["cat"] == "posix" and event["args"].get("file") == f"{tmp_path}/data":
            assert [one["cat"] for one in event["around"]][:1] == ["mpiio"], event
    data = [row for row in rows if row["file"] == f"{tmp_path}/data"]
    requests = [row for row in data if row["operation"] in ("pwrite", "pread") and row["size"] > 0]
    exchanged = [event for event in found.of_group("aggregators") if event["cat"] == "posix"]
    assert len(exchanged) == len(requests) > 0
    for event in exchanged:
        assert [one["name"].partition("_")[2] for one in event["around"]] == [event["around"][0]["name"][11:], "round"]
    ends = [end for begin, end in found.arrows() if begin["args"]["file"] == f"{tmp_path}/data"]
    here = [end for end in ends if found.groups[end["pid"]] == f"file data ({tmp_path}/data)"]
    assert len(here) == sum(row["layer"] == "posix" and row["depth"] > 0 for row in data)
    of_ranks = {event["tid"] for event in found.of_group("file data ")}
    assert {found.tracks[tid] for tid in of_ranks} == {f"rank {rank}" for rank in range(4)}


@pytest.mark.parametrize("mode", ["thread", *slow("spawn")])
def test_delegates(extension: str, tmp_path: pathlib.Path, mode: str) -> None:
    """Threads that are delegates have tracks of their own; what ranks do for delegates is there beside."""
    traced_run(tmp_path, 3, MPIOX_HINTS=f"*:mpiox_delegates=1:mpiox_delegate_mode={mode}")
    found = timeline_of(tmp_path)
    timelines.check(found, traced.read(tmp_path / "trace")[1])
    tracks = {found.tracks[event["tid"]] for event in found.of_group("delegates")}
    own = {name for name in tracks if name.startswith("delegate: thread ")}
    assert tracks - own == {f"rank {rank}, for its delegates" for rank in range(3)}
    assert len(own) == (mode == "thread")
    flushed = [begin["name"] for begin, end in found.arrows() if end["name"] == "flush_barrier"]
    assert flushed == ["MPI_File_close"] * 6


@pytest.mark.both
@pytest.mark.parametrize("outside", [True, *slow(False)], ids=["run_mpiexec", "mpiexec_run"])
def test_run_makes_one(extension: str, tmp_path: pathlib.Path, outside: bool) -> None:
    start = [str(launcher()), "-n", "4"]
    command = [*PYTHON_M, "run", "--timeline", str(tmp_path / "run.pftrace"), "--stats=line"]
    program = [sys.executable, str(PROGRAMS / "two_files.py"), str(tmp_path / "data"), "4096"]
    words = [*command, "--", *start, *program] if outside else [*start, *command, "--", *program]
    done = run_bounded(words, env=base_environment(), timeout_s=90)
    (said,) = re.findall(r"wrote .*run\.pftrace: ([\d,]+) calls of 4 ranks", done.stderr)
    found = timelines.read(tmp_path / "run.pftrace")
    assert int(said.replace(",", "")) == len(found.of_trace())
    assert sum(event["name"].removesuffix("_c") == "MPI_File_write_at_all" for event in found.of_trace()) == 4
    assert {event["pid"] for event in found.of_group("rank ")} == {1, 2, 3, 4}
    assert {path.name.partition(".")[0] for path in tmp_path.iterdir()} == {"run", "data"}


def test_a_killed_rank(extension: str, tmp_path: pathlib.Path) -> None:
    """What it was in has no end; the others' calls are there."""
    target = tmp_path / "run.pftrace"
    command = [*PYTHON_M, "run", "--timeline", str(target), "--", str(launcher()), "-n", "3"]
    looks = "n=0; until [ -e $0 ] || [ $n -gt 300 ]; do sleep .1; n=$((n+1)); done"
    words = [
        "sh",
        "-c",
        f'"$@"; status=$?; {looks}; exit $status',
        str(target),
        *command,
        sys.executable,
        "-c",
        KILLED,
        str(tmp_path / "data"),
    ]
    done = run_bounded(words, env=base_environment(), timeout_s=60, check=False)
    assert done.returncode not in (0, None)
    found = timelines.read(target)
    open_ends = [event for event in found.of_trace() if event["end"] == timelines.ENDLESS]
    of_killed = [event for event in open_ends if found.groups[event["pid"]] == "rank 1"]
    assert [event["name"] for event in of_killed] == ["open"], done.describe()
    assert of_killed[0]["args"]["details"]["unfinished"] == 1
    assert re.search(r"run\.pftrace: rank 0 and 2 others: truncated: the process did not complete", done.stderr)
    writes = [event for event in found.of_trace() if event["name"].removesuffix("_c") == "MPI_File_write_at"]
    assert len(writes) == 4 and all(event["ph"] == "X" for event in writes)


@pytest.mark.parametrize(("program", "status"), [("true", 0), ("false", 1)])
def test_a_program_without_calls_has_none(extension: str, tmp_path: pathlib.Path, program: str, status: int) -> None:
    command = [*PYTHON_M, "run", "--timeline", str(tmp_path / "run.pftrace"), "--", program]
    done = run_bounded(command, env=base_environment(), timeout_s=60, check=False)
    assert done.returncode == status
    (line,) = done.stderr.splitlines()
    assert line.startswith("mpiio-ext: no time line: no call was recorded: the program has done no I/O, or ")
    assert not list(tmp_path.iterdir())


def test_beside_a_page_and_a_log(extension: str, tmp_path: pathlib.Path) -> None:
    """All are made of one recording, which has every call then."""
    options = [
        f"--timeline={tmp_path / 'run.pftrace'}",
        f"--darshan={tmp_path / 'run.darshan'}",
        f"--report={tmp_path / 'run.html'}",
    ]
    program = [sys.executable, str(PROGRAMS / "two_files.py"), str(tmp_path / "data"), "4096"]
    command = [*PYTHON_M, "run", *options, "--", str(launcher()), "-n", "2", *program]
    done = run_bounded(command, env=base_environment(), timeout_s=120)
    assert done.stderr.count("mpiio-ext: wrote ") == 3, done.describe()
    found = timelines.read(tmp_path / "run.pftrace")
    assert sum(event["name"].startswith("MPI_File_read_at_all") for event in found.of_trace()) == 2
