"""Several programs that have one file of subfiles open: who closes it last, who is killed, who removes it meanwhile."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import signal
import sys
import time
from collections.abc import Iterator

import pytest

from mpiio_ext.common import files
from support import subfiles
from support.launch import launcher, mpi_family, preload_environment, python_run
from support.made_subfiles import command
from support.marks import slow
from support.processes import Job, job

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]

SIZE = 15000
OPENER = pathlib.Path(__file__).parents[1] / "programs" / "subfiles_opener.py"
DATA = bytes(place % 256 for place in range(SIZE))


class Program:
    """A program that has the file of subfiles open."""

    def __init__(self, running: Job, orders: pathlib.Path) -> None:
        self.running, self._orders, self._count = running, orders, 0

    def do(self, *orders: str) -> None:
        for order in orders:
            with self._orders.open("a") as file:
                file.write(f"{order}\n")
            self._count += 1
            self.running.wait_for(f"done {self._count}", 60)

    def kill(self) -> None:
        pid = int(self.running.text().split("pid ")[1].split()[0])
        os.kill(pid, signal.SIGKILL)
        self.running.status(60)
        assert not self.running.left(60)


@contextlib.contextmanager
def program(path: pathlib.Path, mode: str, number: int, *, wait: bool = True) -> Iterator[Program]:
    """Start a program that opens the file; it ends with the block."""
    orders = path.parent.parent / f"orders{number}"
    words = [str(launcher()), "-n", "1", sys.executable, str(OPENER), str(path), mode, str(orders), str(SIZE)]
    with job(words, path.parent.parent / f"log{number}", preload_environment()) as running:
        if wait:
            running.wait_for("opened", 60)
        yield Program(running, orders)


@pytest.fixture()
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return a file of subfiles."""
    (tmp_path / "files").mkdir()
    subfiles.store(tmp_path / "files" / "file", DATA, 4, 1000)
    return tmp_path / "files" / "file"


def unfinish(path: pathlib.Path) -> None:
    """Leave a file of subfiles that a killed program was writing."""
    with program(path, "RDWR", 9) as killed:
        killed.do("write")
        killed.kill()
    assert subfiles.read_index(path).size is None


@pytest.mark.parametrize("reverse", [False, *slow(True)], ids=["in turn", "in reverse"])
def test_an_unfinished_file_that_two_open_stays_unfinished(path: pathlib.Path, reverse: bool) -> None:
    unfinish(path)
    with program(path, "RDWR", 0) as one, program(path, "RDWR", 1) as other:
        assert "it was never closed" in one.running.text()
        for each in (other, one) if reverse else (one, other):
            each.do("close")
            assert subfiles.read_index(path).size is None
    assert command("check", path).exit_code == 1
    with program(path, "RDWR", 2) as again:
        again.do("empty", "write", "close")
    assert command("check", path).exit_code == 0 and subfiles.read(path) == DATA


@pytest.mark.parametrize("how", ["first", "last", "emptied", "emptied while two write"])
def test_one_of_two_writers_is_killed(path: pathlib.Path, how: str) -> None:
    """Nobody knows what it would have written: the other one, which closes the file, does not make it whole."""
    with program(path, "RDWR", 0) as one, program(path, "RDWR", 1) as other:
        for each in (one, other):
            each.do("write")
        victim, left = (one, other) if how == "first" else (other, one)
        if how == "emptied while two write":
            left.do("empty", "write")
        victim.kill()
        if how == "emptied":
            left.do("empty", "write")
        left.do("close")
        text = left.running.text()
    whole = how == "emptied"
    assert (subfiles.read_index(path).size is not None) == whole == (command("check", path).exit_code == 0)
    assert ("it was never closed" in text) == (not whole)
    assert not whole or subfiles.read(path) == DATA


@pytest.mark.both
def test_two_writers_that_close_it_make_it_whole(path: pathlib.Path) -> None:
    with program(path, "RDWR", 0) as one, program(path, "WRONLY", 1) as other, program(path, "RDONLY", 2) as reader:
        assert b"writers 2\n" in path.read_bytes()
        assert command("check", path).exit_code == 1 and "is being written" in command("check", path).stdout
        one.do("write", "close")
        assert subfiles.read_index(path).size is None and b"writers" not in path.read_bytes()
        other.do("close")
        assert command("check", path).exit_code == 0
        reader.do("read", "close")
    assert subfiles.read(path) == DATA


@pytest.mark.slow_with("rm-RDWR", "merge in place-RDONLY")
@pytest.mark.parametrize("mode", ["RDONLY", "RDWR"])
@pytest.mark.parametrize("work", [["rm"], ["merge", "--in-place"]], ids=["rm", "merge in place"])
def test_nobody_removes_what_is_open(path: pathlib.Path, work: list[str], mode: str) -> None:
    with program(path, mode, 0) as one:
        done = command(*work, path)
        assert done.exit_code == 2 and "a program has it open" in done.stderr, done.output
        one.do("read")
        if mode == "RDWR":
            one.do("write")
        one.do("close")
    assert command("check", path).exit_code == 0 and subfiles.read(path) == DATA
    assert command(*work, path).exit_code == 0
    assert [one.name for one in path.parent.iterdir()] == ([] if work == ["rm"] else ["file"])


@pytest.mark.slow_with("rm begun-RDONLY", "rm ends-RDONLY", "copied-RDONLY", "renamed-RDWR", "merge ends-RDONLY")
@pytest.mark.parametrize("mode", ["RDONLY", "RDWR"])
@pytest.mark.parametrize(
    ("work", "step", "meanwhile"),
    [
        pytest.param(["rm"], "subfile removed", "waits", id="rm begun"),
        pytest.param(["rm"], "rm: subfiles", "refused", id="rm ends"),
        pytest.param(["merge", "--in-place"], "merge: copied", "waits", id="copied"),
        pytest.param(["merge", "--in-place"], "merge: renamed", "opened", id="renamed"),
        pytest.param(["merge", "--in-place"], "subfile removed", "opened", id="merge ends"),
    ],
)
def test_an_open_meanwhile_meets_no_half_of_a_file(
    path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, work: list[str], step: str, meanwhile: str, mode: str
) -> None:
    """An open waits while subfiles are removed or copied. Then the file is not there, or it is one file."""
    with contextlib.ExitStack() as stack:
        started: list[Program] = []

        def start(name: str) -> None:
            if name == step and not started:
                started.append(stack.enter_context(program(path, mode, 0, wait=False)))
                started[0].running.wait_for("pid" if meanwhile == "waits" else meanwhile, 60)
                if meanwhile == "waits":
                    time.sleep(0.5)  # an open that does not wait ends in this time, on a machine that is not busy
                    assert not re.search("opened|refused", started[0].running.text())

        monkeypatch.setattr(files, "step", start)
        assert command(*work, path).exit_code == 0
        if work == ["rm"]:
            assert started[0].running.status(60) is not None
            assert "refused True" in started[0].running.text(), started[0].running.text()
        else:
            started[0].running.wait_for(f"opened {SIZE}", 60)
            started[0].do("read", "close")
            assert path.read_bytes() == DATA


#: Writes a file of subfiles behind its close, and opens it again at once by a name with a prefix, to delete it.
AGAIN = """
import sys
import numpy as np
from mpi4py import MPI
world, name = MPI.COMM_WORLD, sys.argv[1]
data = np.full(4 << 20, 7, np.uint8)
file = MPI.File.Open(world, name, MPI.MODE_CREATE | MPI.MODE_RDWR)
file.Write_at_all(world.rank * data.size, data)
file.Close()
file = MPI.File.Open(world, f"ufs:{name}", MPI.MODE_RDWR | MPI.MODE_DELETE_ON_CLOSE)
found = np.zeros(1, np.uint8)
file.Read_at(0, found)
print(found[0], file.Get_size(), flush=True)
file.Close()
"""


def test_a_name_with_a_prefix_of_a_file_that_is_still_written(tmp_path: pathlib.Path) -> None:
    """It waits until the file has its own name, and finds subfiles, not their index as data."""
    if mpi_family() != "mpich":
        pytest.skip("Open MPI takes the prefix for a part of the name")
    (script := tmp_path / "again.py").write_text(AGAIN, encoding="utf-8")
    (folder := tmp_path / "files").mkdir()
    hints = "*:mpiox_close=staged:mpiox_delegates=1:mpiox_delegate_mode=thread:mpiox_subfiles=2"
    launch = python_run([script, folder / "f"], 2, preload=True, env={"MPIOX_HINTS": hints}, timeout_s=60)
    assert launch.stdout.split() == ["7", str(8 << 20)] * 2, launch.describe()
    assert not [*folder.iterdir()]
