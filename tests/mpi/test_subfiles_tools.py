"""The commands on files that MPI programs have written, and MPI programs on files that the commands have made.

One launch for all: ranks write files that are stored as several, by collective and by independent calls, with holes,
and longer and shorter ones again; others are killed. Each is merged, and has to be what the MPI program
says that it is. Files that are made by the format alone are read and changed by ranks without a hint.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

from support.cases import Case, Cases
from support.launch import base_environment, python_run
from support.made_subfiles import command, make

pytestmark = pytest.mark.mpi

START = """
import sys
import numpy as np
from mpi4py import MPI

comm, folder = MPI.COMM_WORLD, sys.argv[1]
name = folder + "/file"
WRITE = MPI.MODE_CREATE | MPI.MODE_RDWR

def everybody(n):
    return np.concatenate([np.random.default_rng(rank).integers(1, 255, n, "u1") for rank in range(comm.size)])

def mine(n):
    return everybody(n)[comm.rank * n : (comm.rank + 1) * n]
"""
#: Programs that write, by name; how many bytes each rank has written in the end, and how many zeros are before them.
WRITERS = {
    "collective": (
        """
fh = MPI.File.Open(comm, name, WRITE)
fh.Write_at_all(5000 * comm.rank, mine(5000))
fh.Close()
""",
        5000,
        0,
    ),
    "independent": (
        """
fh = MPI.File.Open(comm, name, WRITE)
for at in range(0, 70_000, 7_000):
    fh.Write_at(70_000 * comm.rank + at, mine(70_000)[at : at + 7_000])
fh.Close()
""",
        70_000,
        0,
    ),
    "a hole": (
        """
fh = MPI.File.Open(comm, name, WRITE)
fh.Write_at_all(3_000_000 + 900 * comm.rank, mine(900))
fh.Close()
""",
        900,
        3_000_000,
    ),
    "cut": (
        """
fh = MPI.File.Open(comm, name, WRITE)
fh.Write_at_all(9000 * comm.rank, mine(9000))
fh.Close()
fh = MPI.File.Open(comm, name, WRITE)
fh.Set_size(0)
fh.Write_at_all(333 * comm.rank, mine(333))
fh.Close()
""",
        333,
        0,
    ),
    "independent through delegates": (
        """
fh = MPI.File.Open(comm, name, WRITE)
for at in range(0, 70_000, 700):
    fh.Write_at(70_000 * comm.rank + at, mine(70_000)[at : at + 700])
fh.Sync()
comm.Barrier()
fh.Sync()
back = np.zeros(70_000 * comm.size, "u1")
fh.Read_at(0, back)
assert (back == everybody(70_000)).all()
fh.Close()
""",
        70_000,
        0,
    ),
    "nothing": ("MPI.File.Open(comm, name, WRITE).Close()", 0, 0),
}
HINTS = "*:mpiox_subfiles=4:mpiox_subfile_unit=1000"
DELEGATES = ":mpiox_delegates=2:mpiox_delegate_mode=thread:mpiox_delegate_page=4k"
CASES = {
    name: Case(
        text=START + text,
        ranks=3,
        environment={"MPIOX_HINTS": HINTS + (DELEGATES if name.endswith("delegates") else "")},
    )
    for name, (text, _, _) in WRITERS.items()
}
#: Reads such a file, changes it, and says what it has then.
READER = """
import sys
import numpy as np
from mpi4py import MPI

comm, name = MPI.COMM_WORLD, sys.argv[1]
fh = MPI.File.Open(comm, name, MPI.MODE_RDWR)
whole = np.zeros(fh.Get_size(), "u1")
fh.Read_at_all(0, whole)
assert bytes(whole) == open(name + ".plain", "rb").read()
fh.Write_at_all(200 * comm.rank, np.full(100, 65 + comm.rank, "u1"))
fh.Close()
"""
#: Renames what it has written past the library: the index, both, the folder alone.
RENAMED = (
    START
    + """
import os, pathlib

def rename(old, new):
    comm.Barrier()
    if comm.rank == 0:
        os.rename(old, new)
    comm.Barrier()

def read(path):
    fh = MPI.File.Open(comm, path, MPI.MODE_RDONLY)
    back = np.zeros(fh.Get_size(), "u1")
    fh.Read_at_all(0, back)
    fh.Close()
    assert bytes(back) == bytes(everybody(5000))

name = folder
other = name + " other"
fh = MPI.File.Open(comm, name, WRITE)
fh.Write_at_all(5000 * comm.rank, mine(5000))
fh.Close()
rename(name, other)
read(other)
rename(name + ".subfiles", other + ".subfiles")
read(other)
fh = MPI.File.Open(comm, other, MPI.MODE_RDWR)  # from now on the text says so, too
fh.Write_at_all(5000 * comm.rank, mine(5000))
fh.Close()
assert b"subfile file other.subfiles/" in pathlib.Path(other).read_bytes()
rename(other, name)
for mode in (MPI.MODE_RDONLY, MPI.MODE_RDWR):
    if comm.rank == 0:
        os.rename(other + ".subfiles", name + ".away")
    comm.Barrier()
    try:
        MPI.File.Open(comm, name, mode)
        assert False
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_NO_SUCH_FILE
        text = error.Get_error_string()
        assert "open (its folder file other.subfiles is missing)" in text, text
    comm.Barrier()
    if comm.rank == 0:
        os.rename(name + ".away", other + ".subfiles")
    comm.Barrier()
read(name)
"""
)
#: Writes, and then waits to be killed.
KILLED = """
import sys, time
import numpy as np
from mpi4py import MPI

fh = MPI.File.Open(MPI.COMM_WORLD, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR)
fh.Write_at(0, np.full(5000, 7, "u1"))
print("written", flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Cases:
    return Cases(CASES, tmp_path_factory.mktemp("written"))


def expected(name: str) -> bytes:
    """Return what a program has written."""
    numpy = pytest.importorskip("numpy")
    _, count, zeros = WRITERS[name]
    parts = [numpy.random.default_rng(rank).integers(1, 255, count, "u1") for rank in range(3)]
    return bytes(zeros) + b"".join(part.tobytes() for part in parts)


@pytest.mark.both
@pytest.mark.parametrize("name", WRITERS)
def test_what_programs_have_written_is_merged(name: str, written: Cases) -> None:
    path = written.result(name).folder / "file"
    assert path.read_bytes().startswith(b"mpiio_ext subfiles 1\n")
    (found,) = json.loads(command("check", path, "--json").stdout)
    assert (found["state"], found["unit_bytes"], found["count"]) == ("whole", 1000, 4) and not found["problems"]
    done = command("merge", path, "-o", path.with_name("plain"))
    assert done.exit_code == 0 and path.with_name("plain").read_bytes() == expected(name), done.output
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    shutil.copytree(f"{path}.subfiles", f"{copy}.subfiles")
    assert command("rm", copy).exit_code == 0 and not list(path.parent.glob("copy*"))
    assert command("merge", path, "--in-place").exit_code == 0 and path.read_bytes() == expected(name)
    assert not list(path.parent.glob("*.subfiles"))


def run(code: str, ranks: int, path: pathlib.Path, **environment: str) -> None:
    script = path.with_name("program.py")
    script.write_text("import mpiio_ext\n" + code, encoding="utf-8")
    python_run([script, path], ranks, env=environment, timeout_s=60)


def test_what_the_format_says_is_read_and_changed_by_programs(tmp_path: pathlib.Path, extension: str) -> None:
    path = tmp_path / "file"
    data = bytes(range(256)) * 300 + b"end"
    make(path, {0: data}, len(data), 512, 3)
    (tmp_path / "file.plain").write_bytes(data)
    run(READER, 3, path)
    assert command("check", path).exit_code == 0
    changed = bytearray(data)
    for rank in range(3):
        changed[200 * rank : 200 * rank + 100] = bytes([65 + rank]) * 100
    assert command("merge", path, "--in-place").exit_code == 0 and path.read_bytes() == changed


@pytest.mark.parametrize("ranks", [1, 3])
def test_what_is_renamed_by_hand(ranks: int, tmp_path: pathlib.Path, extension: str) -> None:
    """Index and folder, in either order: programs find the file. Without the folder the error says so."""
    run(RENAMED, ranks, tmp_path / "file", MPIOX_HINTS=HINTS)
    assert command("check", tmp_path / "file").exit_code == 0


def test_a_program_that_is_killed(tmp_path: pathlib.Path, extension: str) -> None:
    """While it runs nothing can be done with its file; when it was killed the file is not whole."""
    path, script = tmp_path / "file", tmp_path / "program.py"
    script.write_text("import mpiio_ext\n" + KILLED, encoding="utf-8")
    environment = base_environment() | {"MPIOX_HINTS": "*:mpiox_subfiles=4:mpiox_subfile_unit=1000"}
    with subprocess.Popen([sys.executable, script, path], env=environment, stdout=subprocess.PIPE) as alone:
        assert alone.stdout is not None and alone.stdout.readline() == b"written\n"
        for words in (["merge"], ["merge", "--unfinished"], ["rm"]):
            done = command(*words, path)
            assert done.exit_code == 2 and "is being written: a program has it open" in done.stderr, done.output
        os.kill(alone.pid, signal.SIGKILL)
    deadline_s = time.monotonic() + 60
    while "is being written" in command("check", path).stdout and time.monotonic() < deadline_s:
        time.sleep(0.1)
    done = command("merge", path)
    assert done.exit_code == 2 and "is not whole: the index says 'state writing'" in done.stderr
    assert command("merge", path, "--unfinished", "-o", tmp_path / "plain").exit_code == 0
    assert (tmp_path / "plain").read_bytes() == b"\7" * 5000
    assert command("rm", path).exit_code == 0


DISK_KIB = 300
FULL = """
import sys
import numpy as np
from mpi4py import MPI

comm, name = MPI.COMM_WORLD, sys.argv[1] + "/file"
classes = []
fh = MPI.File.Open(comm, name, MPI.MODE_CREATE | MPI.MODE_RDWR)
for call in (lambda: fh.Write_at_all(200_000 * comm.rank, np.ones(200_000, "u1")), fh.Close):
    try:
        call()
        classes.append(0)
    except MPI.Exception as error:
        classes.append(error.Get_error_class())
classes = comm.gather(classes)
if comm.rank == 0:
    assert classes[0][0] == MPI.ERR_NO_SPACE and all(each == classes[0] for each in classes), classes
    print("told")
"""


def test_a_full_disk(extension: str, small_disk: pathlib.Path) -> None:
    """Every rank is told, and what was written does not look whole unless it was closed whole."""
    hints = {"LD_PRELOAD": extension, "MPIOX_HINTS": "*:mpiox_subfiles=4:mpiox_subfile_unit=4096"}
    launch = python_run(["-c", FULL, small_disk], 3, env=hints)
    assert launch.stdout.split() == ["told"], launch.describe()
    done = command("check", small_disk / "file")
    assert done.exit_code != 0 and "is not whole" in done.stdout + done.stderr, done.stdout + done.stderr
