"""Subfiles that cannot be written: every rank of a collective is told which, and the index never says `whole`.

Injected errors, permissions, a real full disk; and delegates that are killed while a file of subfiles is open, after
which nothing is missing.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import textwrap

import pytest

from support import cbuild, subfiles
from support.launch import Launch, launcher, mpi_run, preload_environment
from support.made_subfiles import command
from support.marks import slow
from support.processes import job

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]

RANKS = 3
HINTS = "*:mpiox_subfiles=4:mpiox_subfile_unit=1000"
#: How the bytes come to the subfiles.
WAYS = {
    "plain": "",
    "nodes": ":mpiox_exchange=two_phase",
    "delegates": ":mpiox_delegates=2:mpiox_delegate_page=4k",
    "staged": ":mpiox_delegates=2:mpiox_delegate_page=4k:mpiox_close=staged",
}

START = """
import os, pathlib, sys
import numpy as np
from mpi4py import MPI

comm, name = MPI.COMM_WORLD, sys.argv[1]
RDONLY, RDWR, CREATE = MPI.MODE_RDONLY, MPI.MODE_RDWR, MPI.MODE_CREATE

def attempt(what, function, *arguments):
    told = "fine"
    try:
        result = function(*arguments)
    except MPI.Exception as error:
        result, told = None, MPI.Get_error_string(error.Get_error_code()).replace("\\n", " ")
        told = f"{error.Get_error_class()} {told}"
    for line in comm.gather(told) or ():
        print(f"{what}: {line}", flush=True)
    return result

def mine(n, rank=comm.rank):
    return np.random.default_rng(rank).integers(1, 255, n, "u1")
"""
WRITE = """
fh = attempt("open", MPI.File.Open, comm, name, RDWR | CREATE)
if fh is not None:
    fh.Set_errhandler(MPI.ERRORS_RETURN)
    size = int(sys.argv[2])
    attempt("write", fh.Write_at_all, size * comm.rank, mine(size))
    attempt("sync", fh.Sync)
    attempt("close", fh.Close)
"""


def run(folder: pathlib.Path, text: str, *words: str, prefix: tuple[str, ...] = (), **environment: str) -> Launch:
    """Run a program on the ranks, which ends by itself, whatever fails."""
    script = folder.with_name(f"{folder.name}.py")
    script.write_text("import mpiio_ext\n" + START + textwrap.dedent(text), encoding="utf-8")
    launch = mpi_run([*prefix, sys.executable, script, folder / "file", *words], RANKS, env=environment, timeout_s=60)
    assert launch.returncode == 0, launch.describe()
    return launch


def told(launch: Launch, what: str) -> list[str]:
    """Return what each rank was told by a call."""
    lines = re.findall(rf"^{what}: (.*)$", launch.stdout, re.M)
    assert len(lines) == RANKS, launch.describe()
    return lines


def failed_everywhere(launch: Launch, *calls: str) -> str:
    """Return what ranks were told by the first of these calls that has failed, which it has on all of them."""
    for call in calls:
        lines = told(launch, call)
        if any(line != "fine" for line in lines):
            assert all(line != "fine" for line in lines), launch.describe()
            return " ".join(lines)
    raise AssertionError(launch.describe())


def check_unfinished(folder: pathlib.Path) -> None:
    """The file has its own name, and its index does not say that it is whole."""
    assert {path.name for path in folder.iterdir()} == {"file", "file.subfiles"}
    assert subfiles.read_index(folder / "file").size is None
    assert command("check", folder / "file").exit_code == 1


@pytest.fixture()
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return an empty folder."""
    (tmp_path / "files").mkdir()
    return tmp_path / "files"


@pytest.mark.both
@pytest.mark.parametrize("way", [way for way in WAYS if way != "staged"])
def test_a_subfile_that_cannot_be_written(folder: pathlib.Path, way: str) -> None:
    """By a collective; through delegates the sync tells it. What could not be written is named, with its subfile."""
    launch = run(
        folder, WRITE, "5000", MPIOX_HINTS=HINTS + WAYS[way], MPIOX_FAULT="op=write,path=*.subfiles/*.2,errno=EIO"
    )
    text = failed_everywhere(launch, "write", "sync", "close")
    assert "(subfile 2)" in text and str(folder / "file") in text and "failed at" in text, launch.describe()
    check_unfinished(folder)


@pytest.mark.parametrize("way", ["plain", "staged"])
def test_a_client_that_sees_the_file_late(folder: pathlib.Path, way: str) -> None:
    """Its rank waits until it sees what rank 0 has made, before the MPI library opens it."""
    source = cbuild.ROOT / "tests" / "programs" / "late_names.c"
    late = cbuild.compile_c([cbuild.compiler(), *cbuild.FLAGS, "-shared", "-fPIC", str(source), "-ldl"], "late.so")
    name = "/.file.staging" if way == "staged" else "/file"
    environment = {"MPIOX_HINTS": HINTS + WAYS[way], "LD_PRELOAD": str(late), "LATE_NAME": name, "LATE_MS": "400"}
    launch = run(folder, WRITE, "5000", **environment)
    assert told(launch, "open") == told(launch, "close") == ["fine"] * RANKS
    assert subfiles.read_index(folder / "file").size == 5000 * RANKS


def test_a_subfile_that_cannot_be_read(folder: pathlib.Path) -> None:
    """It is named, and the file stays whole."""
    read = (
        WRITE
        + """
fh = MPI.File.Open(comm, name, RDONLY)
fh.Set_errhandler(MPI.ERRORS_RETURN)
attempt("read", fh.Read_at_all, 5000 * comm.rank, np.zeros(5000, "u1"))
fh.Close()
"""
    )
    launch = run(folder, read, "5000", MPIOX_HINTS=HINTS, MPIOX_FAULT="op=read,path=*.subfiles/*.1,errno=EIO")
    assert "read (subfile 1)" in failed_everywhere(launch, "read"), launch.describe()
    assert subfiles.read_index(folder / "file").size == 5000 * RANKS


def test_a_subfile_that_is_written_later(folder: pathlib.Path) -> None:
    """A file that is opened without delegates, and fails, has its own name then, and is not whole."""
    text = WRITE.replace("fh.Write_at_all,", "(fh.Set_atomicity(True), fh.Write_at_all)[1],")
    launch = run(
        folder, text, "5000", MPIOX_HINTS=HINTS + WAYS["staged"], MPIOX_FAULT="op=write,path=*.subfiles/*.2,errno=EIO"
    )
    assert "(subfile 2)" in failed_everywhere(launch, "write"), launch.describe()
    check_unfinished(folder)


# ---- permissions -----------------------------------------------------------------------------------------------------


@pytest.fixture()
def refused(tmp_path: pathlib.Path) -> tuple[str, ...]:
    """Return what stands before a program that is refused what permissions forbid."""
    if os.geteuid() != 0:
        return ()
    if shutil.which("setpriv") is None:
        pytest.skip("root needs setpriv to be refused anything")
    prefix = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
    (secret := tmp_path / "secret").write_bytes(b"x")
    secret.chmod(0)
    if subprocess.run([*prefix, "cat", secret], capture_output=True, check=False, timeout=20).returncode == 0:
        pytest.skip("root cannot give up its right to open every file here")
    return prefix


@pytest.mark.both_with("first-plain")
@pytest.mark.slow_with("first-delegates", "other-plain", "folder-delegates")
@pytest.mark.parametrize("way", ["plain", "delegates"])
@pytest.mark.parametrize("what", ["first", "other", "folder"])
def test_without_permission(folder: pathlib.Path, refused: tuple[str, ...], what: str, way: str) -> None:
    """A subfile, or their folder. What the opening refuses is not changed."""
    subfiles.store(folder / "file", bytes(range(250)) * 60, 4, 1000)
    before = subfiles.read_index(folder / "file")
    parts = folder / "file.subfiles"
    forbidden = parts if what == "folder" else sorted(parts.iterdir())[0 if what == "first" else 2]
    mode = forbidden.stat().st_mode
    forbidden.chmod(0)
    launch = run(folder, WRITE, "5000", prefix=refused, MPIOX_HINTS=HINTS + WAYS[way])
    forbidden.chmod(mode)
    text = failed_everywhere(launch, "open", *(["write", "sync"] if what == "other" else []))
    assert f"(subfile {2 if what == 'other' else 0}" in text and "Permission denied" in text, launch.describe()
    advice = {"first": ": chmod it as the index is)", "folder": " cannot be reached: chmod its folder)", "other": ""}
    assert advice[what] in text, launch.describe()
    if what == "other":
        check_unfinished(folder)
    else:
        assert subfiles.read_index(folder / "file") == before
        assert command("check", folder / "file").exit_code == 0


def test_an_index_that_nobody_may_write(folder: pathlib.Path, refused: tuple[str, ...]) -> None:
    """Programs without the library cannot destroy it; under the library it is written, and keeps its mode."""
    subfiles.store(folder / "file", bytes(15000), 4, 1000)
    (folder / "file").chmod(0o444)
    alone = [*refused, sys.executable, "-c", f"open({str(folder / 'file')!r}, 'r+b')"]
    assert b"Permission denied" in subprocess.run(alone, capture_output=True, check=False, timeout=60).stderr
    launch = run(folder, WRITE, "5000", prefix=refused)
    assert all(told(launch, call) == ["fine"] * RANKS for call in ("open", "write", "sync", "close")), launch.describe()
    assert command("check", folder / "file").exit_code == 0 and any(subfiles.read(folder / "file"))
    assert (folder / "file").stat().st_mode & 0o777 == 0o444


SYNCED = """
fh = MPI.File.Open(comm, name, RDWR | CREATE)
if comm.rank == 0:
    fh.Write_at(5000, mine(500))  # two subfiles, whose shares of 5500 bytes are longer, have none
if sys.argv[2] == "sync":
    fh.Sync()
fh.Close()
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
@pytest.mark.parametrize("how", ["sync", "close alone"])
def test_what_was_synced_is_stable_before_the_index_says_whole(folder: pathlib.Path, how: str) -> None:
    log = folder.with_name("calls")
    run(
        folder,
        SYNCED,
        how,
        MPIOX_HINTS=HINTS,
        prefix=("strace", "-f", "-y", "-e", "trace=fsync,fdatasync,ftruncate,rename,renameat2", "-A", "-o", f"{log}"),
    )
    calls = re.findall(r"(fsync|fdatasync|ftruncate|rename)\w*\((.*)", log.read_text("utf-8", errors="replace"))
    last = max(at for at, (call, about) in enumerate(calls) if call == "rename" and ".index-" in about)
    unsynced = set[str]()
    for call, about in calls[:last]:
        number = re.search(r"\.subfiles/[0-9a-f]{16}\.(\d)", about)
        if number is not None:
            (unsynced.add if call == "ftruncate" else unsynced.discard)(number[1])
    synced = {
        number
        for call, about in calls[:last]
        if call.startswith("f") and "sync" in call
        for number in re.findall(r"\.subfiles/[0-9a-f]{16}\.(\d)", about)
    }
    assert unsynced == (set() if how == "sync" else {"0", "2", "3"})
    assert ("1" in synced) == (how == "sync") and subfiles.read_index(folder / "file").size == 5500


@pytest.mark.parametrize("way", ["plain", "staged"])
def test_a_folder_that_takes_no_file(folder: pathlib.Path, refused: tuple[str, ...], way: str) -> None:
    """Nothing is made."""
    folder.chmod(0o555)
    launch = run(folder, WRITE, "5000", prefix=refused, MPIOX_HINTS=HINTS + WAYS[way])
    folder.chmod(0o755)
    assert "making subfiles" in (text := failed_everywhere(launch, "open")) and "Permission denied" in text
    assert not list(folder.iterdir())


@pytest.mark.both_with("plain")
@pytest.mark.parametrize("way", ["plain", "staged"])
def test_a_rank_that_cannot_open_what_was_made(folder: pathlib.Path, way: str) -> None:
    """Why is looked for before it goes: it is no file that is not there."""
    launch = run(
        folder, WRITE, "5000", MPIOX_HINTS=HINTS + WAYS[way], MPIOX_FAULT="op=open,rank=1,path=*.subfiles/*,errno=EIO"
    )
    text = failed_everywhere(launch, "open")
    assert "(a file of subfiles)" in text and "No such file" not in text, launch.describe()
    assert not list(folder.iterdir())


# ---- a real disk -----------------------------------------------------------------------------------------------------

#: Size of `small_disk`.
DISK_KIB = 256


@pytest.mark.both_with("plain")
@pytest.mark.slow_with("nodes")
@pytest.mark.parametrize("way", [way for way in WAYS if way != "staged"])
def test_full_disk(small_disk: pathlib.Path, way: str) -> None:
    """A full disk under subfiles is told to every rank. What there is room for can be written when there is again."""
    launch = run(small_disk, WRITE, "200000", MPIOX_HINTS=HINTS + WAYS[way])
    text = failed_everywhere(launch, "write", "sync", "close")
    assert "No space left on device" in text and "(subfile " in text, launch.describe()
    check_unfinished(small_disk)
    again = run(
        small_disk,
        WRITE.replace("size * comm.rank", "comm.Barrier() or fh.Set_size(0) or size * comm.rank"),
        "5000",
        MPIOX_HINTS=WAYS[way] and "*" + WAYS[way],
    )
    assert "fine" in told(again, "close"), again.describe()
    assert command("check", small_disk / "file").exit_code == 0
    assert len(subfiles.read(small_disk / "file")) == 5000 * RANKS


# ---- delegates that are killed ---------------------------------------------------------------------------------------

KILLED = """
import time

fh = MPI.File.Open(comm, name, RDWR | CREATE)
data = mine(60000)
for at in range(0, 60000, 500):
    fh.Write_at(60000 * comm.rank + at, data[at : at + 500])
    if at == 30000 and comm.Barrier() is None:
        if comm.rank == 0:
            print("half", flush=True)
        while not os.path.exists(name + ".go"):
            time.sleep(0.01)
fh.Sync()
comm.Barrier()
fh.Sync()
other = (comm.rank + 1) % comm.size
fh.Read_at(60000 * other, back := np.zeros(60000, "u1"))
assert (back == mine(60000, other)).all()
assert fh.Get_size() == 60000 * comm.size
fh.Close()
if comm.rank == 0:
    print("closed", flush=True)
"""


@pytest.mark.parametrize(
    ("level", "close"),
    [
        *slow(("memory", "written")),
        ("replica", "written"),
        ("memory", "staged"),
        *slow(("disk", "written"), ("replica", "staged")),
    ],
)
def test_a_delegate_is_killed(tmp_path: pathlib.Path, folder: pathlib.Path, level: str, close: str) -> None:
    """While ranks write. No byte is missing, and the file is merged to what they wrote."""
    numpy = pytest.importorskip("numpy")
    script, path = tmp_path / "program.py", folder / "file"
    script.write_text(START + KILLED, encoding="utf-8")
    hints = f"{HINTS}:mpiox_delegates=2:mpiox_delegate_page=4k:mpiox_delegate_ack={level}:mpiox_close={close}"
    env = {**preload_environment(), "MPIOX_HINTS": hints, "MPIOX_RANKS_PER_NODE": "1" if level == "replica" else "0"}
    words = [str(launcher()), "-n", str(RANKS), sys.executable, str(script), str(path)]
    with job(words, tmp_path / "log", env) as running:
        running.wait_for("half", 60)
        os.kill(running.delegates()[0], signal.SIGKILL)
        (folder / "file.go").touch()
        assert running.status(120) == 0, running.text()
        assert not running.left(60), running.text()
        assert "closed" in running.text()
    (folder / "file.go").unlink()
    expected = b"".join(numpy.random.default_rng(rank).integers(1, 255, 60000, "u1").tobytes() for rank in range(RANKS))
    assert subfiles.read_index(path).size == len(expected) and subfiles.read(path) == expected
    assert command("merge", path, "--in-place").exit_code == 0
    assert path.read_bytes() == expected and list(folder.iterdir()) == [path]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
@pytest.mark.parametrize("way", ["plain", *slow("staged")])
def test_the_folder_of_another_user(folder: pathlib.Path, way: str) -> None:
    """In a sticky folder it is not used, and the words say what to do."""
    (folder / "file.subfiles").mkdir()
    os.chown(folder / "file.subfiles", 65534, -1)
    folder.chmod(0o1777)
    text = failed_everywhere(run(folder, WRITE, "5000", MPIOX_HINTS=HINTS + WAYS[way]), "open")
    assert "if the folder NAME.subfiles is another user's: take another name" in text
    assert [path.name for path in folder.rglob("*")] == ["file.subfiles"]


@pytest.mark.slow_with("file-staged", "link-plain")
@pytest.mark.parametrize("way", ["plain", "staged"])
@pytest.mark.parametrize("what", ["file", "link"])
def test_the_name_of_the_folder_is_no_folder(folder: pathlib.Path, what: str, way: str) -> None:
    """Anybody can make such a name in a shared folder: the open is refused, and what has it stays."""
    (elsewhere := folder / "elsewhere").mkdir()
    if what == "link":
        (folder / "file.subfiles").symlink_to(elsewhere)
    else:
        (folder / "file.subfiles").touch()
    before = sorted(folder.rglob("*"))
    text = failed_everywhere(run(folder, WRITE, "5000", MPIOX_HINTS=HINTS + WAYS[way]), "open")
    assert "if NAME.subfiles is no folder: remove it, or take another name" in text
    assert sorted(folder.rglob("*")) == before
