"""Ranks that look for a file whose delegate hangs in a system call on it: they say so once, wait, and lose nothing."""

from __future__ import annotations

import pathlib
import re
import shutil
import textwrap

import pytest

from support.cbuild import mpi_program
from support.launch import Launch, mpi_run, python_run
from support.marks import slow

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]
BYTES = 1 << 18

START = f"""
import os, sys
from mpi4py import MPI

comm, path, n = MPI.COMM_WORLD, sys.argv[1], {BYTES}
fh = MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_RDWR)
fh.Write_at_all(comm.rank * n, bytes([65 + comm.rank]) * n)
fh.Close()
comm.Barrier()
"""
#: What comes for the file, and by which rank the line is said.
COMES = {
    "open": (
        """
        fh = MPI.File.Open(comm, path, MPI.MODE_RDONLY)
        data = bytearray(n)
        fh.Read_at_all(comm.rank * n, data)
        fh.Close()
        assert data == bytes([65 + comm.rank]) * n
    """,
        0,
    ),
    "stat": (
        """
        assert comm.rank == 0 or os.path.getsize(path) == 2 * n
    """,
        1,
    ),
    "delete": (
        """
        if comm.rank == 1:
            MPI.File.Delete(path)
        comm.Barrier()
        assert not os.path.exists(path)
    """,
        1,
    ),
}
#: The call that hangs for 10 s, more than a busy machine keeps a process from running, and what the line says of it.
HANGS = {
    "sync": "op=sync,rank=1,path=*.staging,delay_ms=10000,times=1",
    "write": "op=write,rank=1,path=*.staging,delay_ms=10000,times=1",
}
SAYS = {
    "sync": "search for a file that goes to stable storage and gets its name: ",
    "write": "search for a file that is being written behind its close: ",
}
LINE = re.compile(
    r"mpiio_ext: rank (\d) has waited (\d+) s for .*I/O delegate .*\(process \d+ on [^)]+\): (.*): "
    r"it is alive and runs, but has not answered: its file system may hang or be slow; "
    r"`mpiio-ext delegates status` there shows it\. The rank continues to wait"
)


def run(tmp_path: pathlib.Path, program: str, fault: str, report_s: int, per_node: int) -> Launch:
    """Return what a job does whose second delegate hangs."""
    hints = (
        f"*:mpiox_delegates=2:mpiox_delegate_cache=8m:mpiox_delegate_page=64k:striping_unit=64k:"
        f"mpiox_close=staged:mpiox_delegate_report={report_s}"
    )
    env = {"MPIOX_HINTS": hints, "MPIOX_FAULT": fault, "MPIOX_RANKS_PER_NODE": str(per_node)}
    return python_run(
        ["-c", START + textwrap.dedent(program), tmp_path / "file"], 2, env=env, preload=True, timeout_s=120
    )


@pytest.mark.both_with("sync-open-one node")
@pytest.mark.slow_with("sync-open-two nodes", "sync-stat-*", "sync-delete-two nodes", "write-stat-one node")
@pytest.mark.parametrize("per_node", [0, 1], ids=["one node", "two nodes"])
@pytest.mark.parametrize(("hangs", "comes"), [*(("sync", comes) for comes in COMES), ("write", "stat")])
def test_a_system_call_that_hangs(tmp_path: pathlib.Path, hangs: str, comes: str, per_node: int) -> None:
    """Who waits says for what, and for whom; when the call returns, everything is as without."""
    program, rank = COMES[comes]
    launch = run(tmp_path, program, HANGS[hangs], 2, per_node)
    said = [match for line in launch.stderr.splitlines() if (match := LINE.fullmatch(line))]
    assert [int(match[1]) for match in said] == [rank], launch.describe()
    assert int(said[0][2]) <= 10 and said[0][3] == f"{SAYS[hangs]}{tmp_path}/file", launch.describe()
    if comes != "delete":
        assert (tmp_path / "file").read_bytes() == b"A" * BYTES + b"B" * BYTES


@pytest.mark.slow_with("write")
@pytest.mark.parametrize("hangs", list(HANGS))
def test_both_delegates_hang(tmp_path: pathlib.Path, hangs: str) -> None:
    """Whichever of them has hung a little longer when it is asked: the line comes in time, and once."""
    launch = run(tmp_path, COMES["stat"][0], HANGS[hangs].replace("rank=1,", ""), 2, 0)
    said = [match for line in launch.stderr.splitlines() if (match := LINE.fullmatch(line))]
    assert [(int(match[1]), match[3]) for match in said] == [(1, f"{SAYS[hangs]}{tmp_path}/file")], launch.describe()
    assert int(said[0][2]) <= 4, launch.describe()


def test_nothing_is_said_where_it_goes_on(tmp_path: pathlib.Path) -> None:
    """Writes that take long one by one are progress; and a user may want no lines."""
    slow = "op=write,path=*.staging,delay_ms=900"
    launch = run(tmp_path, COMES["stat"][0], slow, 2, 0)
    assert "has waited" not in launch.stderr, launch.describe()
    launch = run(tmp_path, COMES["stat"][0], HANGS["sync"], 0, 0)
    assert "has waited" not in launch.stderr, launch.describe()


#: The program of a delegate that begins late, spawned or to serve. It takes its library, too, from its own folder.
LATE = """#!/bin/sh
if [ "$1" = serve ]; then sleep {serve}; else sleep {spawn}; export LD_PRELOAD={library}; fi
exec {real} "$@"
"""
STARTS = re.compile(
    r"mpiio_ext: rank (\d) \(process \d+ on [^)]+\) has waited \d+ s for I/O delegates to start: (.*); "
    r"a process or node may be stopped or overloaded\. The rank continues to wait"
)


@pytest.mark.both_with("3-0-1-MPI_Comm_spawn*")
@pytest.mark.parametrize(
    ("spawn_s", "serve_s", "report_s", "says"),
    [
        (3, 0, 1, "MPI_Comm_spawn has not returned"),
        *slow((0, 3, 1, "the spawned delegates have not connected, or have not reported that they run")),
        (3, 3, 0, None),
    ],
)
def test_a_start_that_takes_long(
    extension: str, tmp_path: pathlib.Path, spawn_s: int, serve_s: int, report_s: int, says: str | None
) -> None:
    """Rank 0, which waits for them, prints for what; the other one, which waits for rank 0, does not."""
    library, program = tmp_path / "lib" / "libmpiio_ext.so", tmp_path / "bin" / "mpiio-ext-delegate"
    real = pathlib.Path(extension).resolve().parents[1] / "bin" / program.name
    library.parent.mkdir()
    program.parent.mkdir()
    shutil.copy(extension, library)
    program.write_text(LATE.format(spawn=spawn_s, serve=serve_s, library=library, real=real))
    program.chmod(0o755)
    env = {"LD_PRELOAD": str(library), "MPIOX_HINTS": f"*:mpiox_delegates=1:mpiox_delegate_report={report_s}"}
    launch = mpi_run([mpi_program("lives"), tmp_path / "file", "opens", "1"], 2, env=env, timeout_s=60)
    said = [match.groups() for line in launch.stderr.splitlines() if (match := STARTS.fullmatch(line))]
    assert (("0", says) in said) if says else (not said), launch.describe()
    assert ("1", says) not in said, launch.describe()
    assert (tmp_path / "file").read_bytes() == b"a" * 64 + b"b" * 64
