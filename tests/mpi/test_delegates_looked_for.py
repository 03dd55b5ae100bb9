"""Who looks past MPI for a file that is still written costs it nothing: on a full disk, killed, or with it open."""

from __future__ import annotations

import os
import pathlib
import signal
import sys
import textwrap
import time

import pytest

from support import subfiles
from support.launch import launcher, preload_environment, python_run
from support.processes import job

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]
#: Size of `small_disk`: the file, and little else.
DISK_KIB = 2304
BYTES = 1 << 20

START = f"""
import os, sys, time
from mpi4py import MPI

comm, path, n = MPI.COMM_WORLD, sys.argv[1] + "/file", {BYTES}
def write(byte):
    fh = MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_RDWR)
    fh.Write_at_all(comm.rank * n, bytes([byte + comm.rank]) * n)
    return fh
"""
HINTS = "*:mpiox_delegates=2:mpiox_delegate_cache=8m:mpiox_delegate_page=64k:mpiox_close=staged"


def test_a_disk_that_is_full_for_a_while(small_disk: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """A rank asks for the file while it is refused; when there is room again, all of it is there."""
    (other := small_disk / "other").write_bytes(bytes(BYTES))
    program = START + textwrap.dedent("""
        write(65).Close()
        if comm.rank == 1:
            print("asks", flush=True)
            print("exists", os.path.exists(path), flush=True)
        time.sleep(1)
    """)
    command = [str(launcher()), "-n", "2", sys.executable, "-c", program, str(small_disk)]
    environment = preload_environment() | {"MPIOX_HINTS": HINTS + ":mpiox_drain_patience=60"}
    with job(command, tmp_path / "log", environment) as running:
        running.wait_for("asks", 60)
        time.sleep(2)
        other.unlink()
        assert running.status(90) == 0, running.text()
        assert "exists True" in running.text()
    assert (small_disk / "file").read_bytes() == b"A" * BYTES + b"B" * BYTES


def test_a_rank_that_is_killed_while_it_waits(tmp_path: pathlib.Path) -> None:
    """The delegates go on, and give the file its name."""
    (folder := tmp_path / "files").mkdir()
    program = START + textwrap.dedent("""
        write(65).Close()
        if comm.rank == 1:
            print("pid", os.getpid(), "asks", flush=True)
            os.stat(path)
        time.sleep(600)
    """)
    command = [str(launcher()), "-n", "2", sys.executable, "-c", program, str(folder)]
    environment = preload_environment() | {"MPIOX_HINTS": HINTS, "MPIOX_FAULT": "op=write,path=*.staging,delay_ms=200"}
    with job(command, tmp_path / "log", environment) as running:
        running.wait_for("asks", 60)
        words = running.text().split()
        time.sleep(0.3)
        os.kill(int(words[words.index("pid") + 1]), signal.SIGKILL)
        assert running.status(60) is not None, running.text()
        assert not running.left(60), running.text()
    assert {path.name for path in folder.iterdir()} == {"file"}
    assert (folder / "file").read_bytes() == b"A" * BYTES + b"B" * BYTES


@pytest.mark.both
def test_a_file_that_the_rank_itself_has_open(tmp_path: pathlib.Path) -> None:
    """It gets its name at the close: to wait for it, ten seconds each time, would be in vain."""
    program = START + textwrap.dedent("""
        fh = write(65)
        for _ in range(40):
            assert not os.path.exists(path)
        fh.Close()
        assert os.path.getsize(path) == comm.size * n
    """)
    launch = python_run(["-c", program, tmp_path], 2, env={"MPIOX_HINTS": HINTS}, preload=True, timeout_s=120)
    assert launch.returncode == 0, launch.describe()


@pytest.mark.parametrize("close", ["written", "staged"])
def test_an_index_that_was_renamed_keeps_its_subfiles(tmp_path: pathlib.Path, close: str) -> None:
    """Its name is used again, by a program that empties it first, as PnetCDF does."""
    program = START + textwrap.dedent("""
        write(65).Close()
        if comm.rank == 0:
            os.rename(path, path + ".1")
            open(path, "w").close()
        comm.Barrier()
        write(70).Close()
    """)
    hints = f"{HINTS.replace('staged', close)}:mpiox_subfiles=3"
    launch = python_run(["-c", program, tmp_path], 2, env={"MPIOX_HINTS": hints}, preload=True, timeout_s=120)
    assert launch.returncode == 0, launch.describe()
    assert subfiles.read(tmp_path / "file.1") == b"A" * BYTES + b"B" * BYTES
    read = subfiles.read if subfiles.is_index(tmp_path / "file") else pathlib.Path.read_bytes
    assert read(tmp_path / "file") == b"F" * BYTES + b"G" * BYTES


PAST = f"""
import os, sys, time
from mpi4py import MPI

comm, path, n = MPI.COMM_WORLD, sys.argv[1] + "/file", {BYTES}
def hints(**more):
    info = MPI.Info.Create()
    for name, value in ([word.split("=") for word in sys.argv[2].split(":")] + list(more.items())):
        info.Set(name, value)
    return info
past = hints(mpiox_delegates="0", mpiox_drain_patience="1")
def write(byte):
    fh = MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_RDWR, hints())
    fh.Write_at_all(comm.rank * n, bytes([byte + comm.rank]) * n)
    return fh
def refused(comm, info):
    try:
        MPI.File.Open(comm, path, MPI.MODE_RDWR, info)
    except MPI.Exception as error:
        text, fine = str(error), error.Get_error_class() == MPI.ERR_NO_SPACE
        assert fine and "of " + path + " failed: No space left on device" in text and "stays with them" in text, text
    else:
        raise AssertionError("it was opened")
def there():
    open(sys.argv[1] + "/go", "w").close() if comm.rank == 0 else None
    while os.path.exists(sys.argv[1] + "/other"):
        time.sleep(0.01)
    comm.Barrier()
    for info in (past, hints()):
        fh, found = MPI.File.Open(comm, path, MPI.MODE_RDONLY, info), bytearray(n)
        fh.Read_at(comm.rank * n, found)
        fh.Close()
        assert found == bytes([65 + comm.rank]) * n
"""
#: Hints, and what the program does while the disk is full.
OPENED_PAST = {
    "made": ("", 0, "write(65).Close(); refused(comm, past)"),
    "subfiles": (":mpiox_subfiles=3", 0, "write(65).Close(); refused(comm, past)"),
    "there before": ("", 0, "write(65).Close(); refused(comm, past)"),
    "open elsewhere": (
        "",
        0,
        """
        first = write(65)
        fh = MPI.File.Open(MPI.COMM_SELF, path, MPI.MODE_RDONLY, hints()) if comm.rank else None
        first.Close()
        if fh is None:
            refused(MPI.COMM_SELF, past)
        comm.Barrier()
        fh.Close() if fh else None
        """,
    ),
    "copies": (
        ":mpiox_delegate_ack=replica",
        1,
        """
        write(65).Close()
        refused(comm, hints(mpiox_delegate_ack="memory", mpiox_drain_patience="0"))
        """,
    ),
}


@pytest.mark.parametrize("kind", OPENED_PAST)
def test_who_opens_it_past_the_delegates_is_refused(
    small_disk: pathlib.Path, tmp_path: pathlib.Path, kind: str
) -> None:
    """On a full disk: what delegates have of it stays with them, and is there when the disk has room again."""
    more, per_node, program = OPENED_PAST[kind]
    (other := small_disk / "other").write_bytes(bytes(BYTES))
    if kind == "there before":
        (small_disk / "file").write_bytes(b"before")
    code = f"{PAST}{textwrap.dedent(program)}\nthere()"
    words = HINTS.removeprefix("*:") + more
    command = [str(launcher()), "-n", "2", sys.executable, "-c", code, str(small_disk), words]
    environment = preload_environment() | {"MPIOX_RANKS_PER_NODE": str(per_node)}
    with job(command, tmp_path / "log", environment) as running:
        until = time.monotonic() + 60
        while not (small_disk / "go").exists():
            assert running.process.poll() is None and time.monotonic() < until, running.text()
            time.sleep(0.05)
        other.unlink()
        assert running.status(90) == 0, running.text()
        assert "lost" not in running.text()
    assert subfiles.read(small_disk / "file") == b"A" * BYTES + b"B" * BYTES


@pytest.mark.both
def test_a_rank_that_is_killed_while_it_holds_the_file(tmp_path: pathlib.Path) -> None:
    """It has just asked the delegates to keep the file, to open it: nobody lets it go."""
    (folder := tmp_path / "files").mkdir()
    program = START + textwrap.dedent("""
        write(65).Close()
        comm.Barrier()
        if comm.rank == 0:
            print("pid", os.getpid(), "opens", flush=True)
        MPI.File.Open(comm, path, MPI.MODE_RDONLY)
        time.sleep(600)
    """)
    command = [str(launcher()), "-n", "2", sys.executable, "-c", program, str(folder)]
    environment = preload_environment() | {
        "MPIOX_HINTS": HINTS + ":mpiox_drain_rate=1",
        "MPIOX_FAULT": "op=open,path=*.staging,delay_ms=2000",
    }
    with job(command, tmp_path / "log", environment) as running:
        running.wait_for("opens", 60)
        words = running.text().split()
        time.sleep(1)
        os.kill(int(words[words.index("pid") + 1]), signal.SIGKILL)
        assert running.status(60) is not None, running.text()
        assert not running.left(60), running.text()
    assert {path.name for path in folder.iterdir()} == {"file"}
    assert (folder / "file").read_bytes() == b"A" * BYTES + b"B" * BYTES
