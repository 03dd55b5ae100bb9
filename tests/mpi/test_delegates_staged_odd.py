"""Files that are written behind their close, and what seldom happens to them: moved away, locked, called too long."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator

import pytest

from support import cbuild, subfiles
from support.launch import PROGRAMS, launcher, mpi_family
from support.marks import slow
from support.processes import job
from support.staged import PARTS, RANKS, asked, hints, names, whole

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]
LIMIT_S, NAME_MAX = 60.0, 255
#: Size of `small_disk`: the file of REFUSED, and little else.
DISK_KIB = 2304

START = """
import os, subprocess, sys, time
from mpi4py import MPI

comm, folder = MPI.COMM_WORLD, sys.argv[1]
def write(path, byte=65, n=100000):
    fh = MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_RDWR)
    fh.Write_at_all(comm.rank * n, bytes([byte + comm.rank]) * n)
    return fh
def say(*words):
    comm.Barrier()
    if comm.rank == 0:
        print(*words, flush=True)
"""
CONTENT = b"".join(bytes([65 + rank]) * 100000 for rank in range(RANKS))


def program(code: str, *words: object, ranks: int = RANKS) -> list[str]:
    """Return how a program is started that goes on from START."""
    return [str(launcher()), "-n", str(ranks), sys.executable, "-c", START + textwrap.dedent(code), *map(str, words)]


@pytest.fixture()
def elsewhere(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Return a folder of another file system than `tmp_path`."""
    folder = pathlib.Path(tempfile.mkdtemp(dir="/dev/shm"))
    try:
        if folder.stat().st_dev == tmp_path.stat().st_dev:
            pytest.skip("one file system has both folders")
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.mark.slow_with("False-parts1", "True-parts0")
@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("exists", [False, True])
def test_mv_to_another_file_system(
    tmp_path: pathlib.Path, elsewhere: pathlib.Path, parts: dict[str, int], exists: bool
) -> None:
    """It copies, and removes: what the copy lacks is said, `wait` fails, and no half file gets a name."""
    (before := tmp_path / "before").mkdir()
    path = before / "file"
    if exists:
        path.write_bytes(b"before")
    env = hints(mpiox_drain_rate=1, mpiox_drain_patience=3, **parts)
    with job(
        program(
            """
        write(folder + "/before/file").Close()
        say("closed")
        while not os.path.exists(folder + "/asked"):
            time.sleep(0.05)
    """,
            tmp_path,
        ),
        tmp_path / "log",
        env,
    ) as running:
        running.wait_for("closed", LIMIT_S)
        subprocess.run(["mv", before, elsewhere], check=True)
        status, text = asked("wait", "--timeout", "1s", path)
        assert (status, str(path) in text) == (1, True), text
        (tmp_path / "asked").touch()
        assert running.status(LIMIT_S) == 0 and not running.left(LIMIT_S), running.text()
        said = running.text()
    left = re.findall(rf"mpiio_ext: {path} was removed while (\d+) bytes were not written: they are lost; ", said)
    assert len(left) == 2 and 0 < sum(map(int, left)) <= len(CONTENT), said
    assert names(elsewhere / "before") == ({"file"} if exists else {".file.staging", ".file.staging.parts"})
    if parts and not exists:
        assert subfiles.read_index(elsewhere / "before/.file.staging").size is None


def test_a_name_that_is_too_long_for_a_staging_name(tmp_path: pathlib.Path) -> None:
    """The file has its own name all the time, and is whole when it is closed; that is said. Subfiles have less room."""
    (folder := tmp_path / "files").mkdir()
    code = """
        os.chdir(folder + "/files")
        for name in sys.argv[2:]:
            fh = write(name)
            say("open", name[0], name in os.listdir())
            fh.Close()
            say("closed", name[0])
            while not os.path.exists(folder + "/next" + name[0]):
                time.sleep(0.05)
    """
    lengths = dict(zip("abc", (228, 229, 236) if mpi_family() == "openmpi" else (239, 240, NAME_MAX), strict=True))
    paths = [folder / (letter * length) for letter, length in lengths.items()]
    with job(
        program(code, tmp_path, *(path.name for path in paths)), tmp_path / "log", hints(mpiox_drain_rate=1)
    ) as running:
        for path, letter in zip(paths, lengths, strict=True):
            running.wait_for(f"closed {letter}", LIMIT_S)
            assert (path.name in names(folder)) == (letter != "a"), running.text()
            assert letter == "a" or whole(path) == CONTENT, running.text()
            (tmp_path / f"next{letter}").touch()
        assert running.status(LIMIT_S) == 0 and not running.left(LIMIT_S), running.text()
        said = running.text()
    assert all(whole(path) == CONTENT for path in paths) and names(folder) == {path.name for path in paths}
    assert "open a False" in said and "open b True" in said and "open c True" in said, said
    lines = [line for line in said.splitlines() if line.startswith("mpiio_ext:")]
    assert [line.partition(" (")[0] for line in lines] == [
        f"mpiio_ext: {path.name}: no name for what is not all written yet" for path in paths[1:]
    ], said
    assert all("(File name too long)" in line for line in lines), said


def test_a_file_that_is_opened_again_by_a_longer_name(tmp_path: pathlib.Path) -> None:
    """Its staging name is too long for OMPIO then, by which it is opened while it is written."""
    code = """
        os.chdir(folder)
        name = "x" * (239 - len(os.getcwd()))
        write(name).Close()
        listed = subprocess.check_output(["env", "-i", "/bin/ls"], text=True)  # which does not wait, unlike listdir()
        say("closed", name in listed.split())
        fh, found = MPI.File.Open(comm, os.path.join(os.getcwd(), name), MPI.MODE_RDONLY), bytearray(100000)
        fh.Read_at_all(comm.rank * 100000, found)
        fh.Close()
        assert found == bytes([65 + comm.rank]) * 100000
        say("read")
    """
    with job(program(code, tmp_path), tmp_path / "log", hints(mpiox_drain_rate=1)) as running:
        assert running.status(LIMIT_S) == 0 and not running.left(LIMIT_S), running.text()
        assert running.text().split("\n")[:2] == ["closed False", "read"], running.text()


@pytest.mark.slow_with("0-parts0", "2-parts1")
@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("left", [0, 2])
def test_a_part_of_a_delegate_that_was_killed_in_an_open(
    tmp_path: pathlib.Path, left: int, parts: dict[str, int]
) -> None:
    """Another delegate cannot open the file, so that it needs no staging name: nobody else ends that part."""
    preload = cbuild.compile_c(
        [cbuild.compiler(), *cbuild.FLAGS, "-shared", "-fPIC", str(PROGRAMS / "left_part.c"), "-ldl"], "left_part.so"
    )
    faults = {"MPIOX_FAULT": "op=open,rank=1,path=*file.*,errno=EIO"}
    env = hints(mpiox_delegates=3, mpiox_delegate_mode="thread", **parts) | faults
    env |= {"LEFT_PART": str(left), "LD_PRELOAD": f"{preload}:{env['LD_PRELOAD']}"}
    code = """
        fh = write(folder + "/file")
        say("open", sorted(name for name in os.listdir(folder) if "file" in name))
        fh.Close()
    """
    with job(program(code, tmp_path, ranks=1), tmp_path / "log", env) as running:
        assert running.status(LIMIT_S) == 0 and not running.left(LIMIT_S), running.text()
        said = running.text()
    assert f"open {['file', *(['file.subfiles'] if parts else [])]}" in said.splitlines(), said
    assert whole(tmp_path / "file") == CONTENT[:100000]


@pytest.mark.parametrize("ranks", [*slow(1), 3])
def test_subfiles_that_somebody_has_locked(tmp_path: pathlib.Path, ranks: int) -> None:
    """A call that looks for the file waits, but not for ever; when nobody has them any more it gets its name."""
    code = """
        import fcntl, glob, struct
        fh = write(folder + "/file")
        say("open")
        first = os.open(glob.glob(folder + "/file.subfiles/*.0")[0], os.O_RDWR)
        lock = struct.pack("hhqqi", fcntl.F_RDLCK, os.SEEK_SET, (1 << 62) + 1, 1, 0) # as who writes them
        fcntl.fcntl(first, 37, lock) # F_OFD_SETLK
        fh.Close()
        comm.Barrier()
        if comm.rank == 0:
            print("exists", os.path.exists(folder + "/file"), flush=True)
        comm.Barrier()
        os.close(first)
        comm.Barrier()
        if comm.rank == 0:
            print("exists", os.path.exists(folder + "/file"), flush=True)
    """
    with job(program(code, tmp_path, ranks=ranks), tmp_path / "log", hints(**PARTS[1])) as running:
        assert running.status(LIMIT_S) == 0 and not running.left(LIMIT_S), running.text()
        said = running.text().split()
    assert said == ["open", "exists", "False", "exists", "True"], said
    assert whole(tmp_path / "file") == CONTENT[: ranks * 100000]


REFUSED = """
    def refused():
        try:
            MPI.File.Open(comm, folder + "/small/after/file", MPI.MODE_RDWR)
        except MPI.Exception as error:
            text = str(error)
            assert error.Get_error_class() == MPI.ERR_NO_SPACE and "stays with them" in text, text
        else:
            raise AssertionError("it was opened")
    def held():
        other = comm.Dup()
        handle = other.py2f()
        other.Free()
        return handle, sorted(os.listdir("/proc/self/fd"))
    def await_(name):
        while not os.path.exists(folder + "/" + name):
            time.sleep(0.05)
        comm.Barrier()
    write(folder + "/small/before/file", n=1 << 20).Close()
    say("closed")
    await_("moved")
    for _ in range(3):
        refused()
    before = held()
    say("begun")
    await_("counted")
    for _ in range(10):
        refused()
    assert held() == before, (before, held())
    say("ten times")
    await_("room")
    fh, found = None, bytearray(1 << 20)
    while fh is None: # a patience of 0: it may be refused until the delegates have tried again
        try:
            fh = MPI.File.Open(comm, folder + "/small/after/file", MPI.MODE_RDWR)
        except MPI.Exception as error:
            assert error.Get_error_class() == MPI.ERR_NO_SPACE, error
    fh.Read_at_all(comm.rank << 20, found)
    fh.Close()
    assert found == bytes([65 + comm.rank]) * (1 << 20)
"""


@pytest.mark.both
def test_an_open_that_is_refused_after_the_library_has_opened_the_file(
    small_disk: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """One delegate cannot open it any more, and others cannot write what they have of it: nothing is left open."""
    (small_disk / "before").mkdir()
    (other := small_disk / "other").write_bytes(bytes(1 << 20))
    faults = {"MPIOX_FAULT": "op=open,rank=2,path=*/after/*,errno=EIO"}
    env = hints(mpiox_delegates=3, mpiox_drain_patience=0, mpiox_delegate_cache="8m") | faults

    def descriptors() -> list[list[str]]:
        return [sorted(os.listdir(f"/proc/{pid}/fd")) for pid in running.delegates()]

    with job(program(REFUSED, tmp_path, ranks=2), tmp_path / "log", env) as running:
        running.wait_for("closed", LIMIT_S)
        (small_disk / "before").rename(small_disk / "after")
        (tmp_path / "moved").touch()
        running.wait_for("begun", LIMIT_S)
        before = descriptors()
        (tmp_path / "counted").touch()
        running.wait_for("ten times", LIMIT_S)
        assert descriptors() == before and len(before) == 3
        other.unlink()
        (tmp_path / "room").touch()
        assert running.status(LIMIT_S) == 0 and not running.left(LIMIT_S), running.text()
    assert whole(small_disk / "after/file") == b"A" * (1 << 20) + b"B" * (1 << 20)
    assert names(small_disk / "after") == {"file"}
