"""Files that exist, are written behind their close, and are written by others when everything was killed.

What a cache on a disk still holds is older than what was written since: it must not come over it.
"""

from __future__ import annotations

import json
import os
import pathlib
import signal
import sys
import time

import pytest

from mpiio_ext import delegates
from support import fuzz
from support.launch import launcher, marked_processes, preload_environment
from support.marks import slow
from support.processes import job
from support.staged import CHECKPOINTS, RANKS, asked, checkpoint, command, hints, kill_at_once, names, whole

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]
LIMIT_S, GRACE_S = 60.0, 60.0
PAGE = 16 << 10


def leave(
    folder: pathlib.Path, *, per_node: int = 0, rate: int = 1, after_s: float = 0, existed: str = "checkpoint0"
) -> str:
    """Kill all of a job that has closed a file which, by that name, existed before. Returns the hints of the next one.

    It is written with that rate, or, for 0, so slowly that somebody is killed in the middle of it.
    """
    for name in ("files", "first", "second"):
        (folder / name).mkdir()
    (folder / "files" / existed).write_bytes(bytes(1000))
    where = f"{folder}/first" + (f";{folder}/second" if per_node else "")
    hints = (
        f"*:mpiox_delegates=2:mpiox_delegate_cache=2m:mpiox_delegate_page={PAGE}:striping_unit={PAGE}:"
        f"mpiox_delegate_cache_dir={where}:mpiox_close=staged"
    )
    env = {
        **preload_environment(),
        "MPIOX_HINTS": f"{hints}:mpiox_drain_rate={rate}",
        "MPIOX_RANKS_PER_NODE": str(per_node),
        "MPIOX_FAULT": "" if rate else "op=write,path=*checkpoint0,delay_ms=100",
    }
    command = [str(launcher()), "-n", str(RANKS), "python", str(CHECKPOINTS), str(folder / "files"), "1", "600"]
    with job(command, folder / "log", env) as running:
        running.wait_for("closed 0", LIMIT_S)
        time.sleep(after_s)
        kill_at_once(marked_processes(running.marker))
        assert not running.left(GRACE_S)
    return hints


def run(folder: pathlib.Path, log: str, more: str, pause_s: float, until: str = "") -> str:
    """Run a job that makes a file; kill all of it when it says so, or let it end. Returns what it said."""
    hints = (
        f"*:mpiox_delegates=2:mpiox_delegate_cache=2m:mpiox_delegate_page={PAGE}:striping_unit={PAGE}:"
        f"mpiox_close=staged:{more}"
    )
    command = [str(launcher()), "-n", str(RANKS), "python", str(CHECKPOINTS), str(folder), "1", str(pause_s)]
    with job(command, folder.parent / log, {**preload_environment(), "MPIOX_HINTS": hints.rstrip(":")}) as running:
        if until:
            running.wait_for(until, LIMIT_S)
            kill_at_once(marked_processes(running.marker))
        else:
            assert running.status(LIMIT_S) == 0, running.text()
        assert not running.left(GRACE_S)
        return running.text()


def over(before: bytes) -> bytes:
    """Return what a file holds when what is left of a checkpoint is written over it: every sixth kilobyte is a hole."""
    left = bytes(2 * PAGE) + checkpoint(0)[2 * PAGE :]
    return bytes(new or old for new, old in zip(left, before.ljust(len(left), b"\0"), strict=True))


def later(path: pathlib.Path, seconds: float) -> None:
    """Let a file be written so long after now."""
    now = time.time() + seconds
    os.utime(path, (now, now))


def test_waiting_for_what_was_killed(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without names of files, by the hints that the job had: not all is there, and where the rest is."""
    monkeypatch.setenv("MPIOX_HINTS", leave(tmp_path))
    path, caches = tmp_path / "files/checkpoint0", tmp_path / "first"
    status, text = asked("wait", "--timeout", "60s")
    until_s = time.monotonic() + LIMIT_S
    while status == 1 and str(tmp_path) not in text and time.monotonic() < until_s:  # a test beside this one has them
        status, text = asked("wait", "--timeout", "60s")
    assert status == 1
    assert f"{path} is not all written: the rest is in {caches}/mpiox." in text, text
    assert f"mpiio-ext delegates recover {caches}\n" in text
    status, text = asked("wait", "--json", "--timeout", "60s")
    answer = json.loads(text)
    why = {row["path"]: row["why"] for row in answer["files"]}
    assert status == 1 and not answer["written"] and why[str(path)].startswith("is not all written: the rest is in ")
    for named in (path, path.parent):
        status, text = asked("wait", named)
        assert status == 1 and f"{path} is not all written: the rest is in {caches}/mpiox." in text, text
    left = sorted(caches.iterdir())
    status, text = asked("recover", "--json", caches)
    found = json.loads(text)
    assert status == 0 and found["written"] and not found["files"]
    assert [(row["cache"], row["state"]) for row in found["caches"]] == [(str(one), "recovered") for one in left]
    assert sum(row["bytes"] for row in found["caches"]) > 0
    assert str(path) not in asked("wait", "--timeout", "0s")[1]
    assert json.loads(asked("wait", "--json", path)[1]) == {"written": True, "files": []}


@pytest.mark.parametrize(("rate", "after_s"), [(1, 0), *slow((20_000, 1)), (0, 1), *slow((0, 0), (0, 0.5), (0, 2))])
def test_nobody_else_has_written(tmp_path: pathlib.Path, rate: int, after_s: float) -> None:
    """Nothing of it, or a part, is in the file; whoever was killed in the middle of a write is believed."""
    leave(tmp_path, rate=rate, after_s=after_s)
    status, text = asked("recover", tmp_path / "first")
    assert (status, text.count("brought to their files")) == (0, 2), text
    assert (tmp_path / "files/checkpoint0").read_bytes() == checkpoint(0)
    assert not list((tmp_path / "first").iterdir())


@pytest.mark.parametrize("seconds", [0.0, *slow(3600.0)])
def test_what_others_have_written_since_stays(tmp_path: pathlib.Path, seconds: float) -> None:
    """It is named, with both times; --force takes what the cache has: all but the first page of each delegate."""
    leave(tmp_path, after_s=0.5)
    path, newer = tmp_path / "files/checkpoint0", fuzz.data(len(checkpoint(0)))
    path.write_bytes(newer)
    if seconds:
        later(path, seconds)
    for _ in range(2):
        status, text = asked("recover", tmp_path / "first")
        assert status == 1
        assert f"{path} was written by another process on 20" in text, text
        caches = " and ".join(map(str, sorted((tmp_path / "first").iterdir())))
        assert f"; its bytes are in {caches}: --force writes" in text and text.count("--force") == 1, text
        (row,) = json.loads(asked("recover", "--json", tmp_path / "first")[1])["files"]
        assert row["path"] == str(path) and row["why"].startswith("was written by another process on 20")
        assert path.read_bytes() == newer
    assert len(list((tmp_path / "first").iterdir())) == 2
    status, text = asked("recover", "--force", tmp_path / "first")
    assert (status, text.count("brought to their files")) == (0, 2), text
    assert path.read_bytes() == over(newer)
    assert not list((tmp_path / "first").iterdir())


@pytest.mark.parametrize("rate", [20_000, *slow(0)])
def test_a_part_was_drained_before_others_wrote(tmp_path: pathlib.Path, rate: int) -> None:
    """Later than the time in which a write that was begun may have come."""
    leave(tmp_path, rate=rate, after_s=1)
    path = tmp_path / "files/checkpoint0"
    newer = fuzz.data(len(path.read_bytes()))
    path.write_bytes(newer)
    later(path, 60)
    status, text = asked("recover", tmp_path / "first")
    assert (status, f"{path} was written by another process" in text) == (1, True), text
    assert path.read_bytes() == newer


def test_a_file_that_was_made_anew(tmp_path: pathlib.Path) -> None:
    """Another file has its name: not even by force."""
    leave(tmp_path)
    path = tmp_path / "files/checkpoint0"
    path.rename(path.with_name("old"))
    path.write_bytes(b"new")
    for words in ([], ["--force"]):
        status, text = asked("recover", *words, tmp_path / "first")
        assert (status, f"{path} cannot be written: another file has its name now" in text) == (1, True), text
        assert path.read_bytes() == b"new"
    path.unlink()
    path.with_name("old").rename(path)
    assert asked("recover", tmp_path / "first")[0] == 0
    assert path.read_bytes() == checkpoint(0)


def test_the_next_job_leaves_it(tmp_path: pathlib.Path) -> None:
    """Its delegates say so and write the rest; its own files are written. recover finds what is left."""
    hints = leave(tmp_path, after_s=0.5)
    path, newer = tmp_path / "files/checkpoint0", fuzz.data(1000)
    path.write_bytes(newer)
    (tmp_path / "other").mkdir()
    command = [str(launcher()), "-n", str(RANKS), "python", str(CHECKPOINTS), str(tmp_path / "other"), "2", "0"]
    with job(command, tmp_path / "again", {**preload_environment(), "MPIOX_HINTS": hints}) as running:
        assert running.status(LIMIT_S) == 0, running.text()
        assert not running.left(GRACE_S)
        said = running.text()
    assert f"{path} was written by another process on 20" in said
    assert f"{tmp_path}/first/mpiox." in said and "recover --force writes them all the same" in said, said
    assert path.read_bytes() == newer
    assert [(tmp_path / f"other/checkpoint{number}").read_bytes() == checkpoint(number) for number in range(2)]
    assert len(list((tmp_path / "first").iterdir())) == 2
    assert asked("recover", "--force", tmp_path / "first")[0] == 0
    assert path.read_bytes() == over(newer)


@pytest.mark.both
def test_the_next_job_writes_the_same_file(tmp_path: pathlib.Path) -> None:
    """What was left comes into the file before the job writes it, not after."""
    hints = leave(tmp_path)
    command = [str(launcher()), "-n", str(RANKS), "python", str(CHECKPOINTS), str(tmp_path / "files"), "1", "0"]
    with job(command, tmp_path / "again", {**preload_environment(), "MPIOX_HINTS": hints}) as running:
        assert running.status(LIMIT_S) == 0, running.text()
        assert not running.left(GRACE_S)
        assert "written by others" not in running.text()
    assert (tmp_path / "files/checkpoint0").read_bytes() == checkpoint(0)
    assert not list((tmp_path / "first").iterdir())


@pytest.mark.parametrize("changed", [*slow(False), True])
def test_nodes_one_after_the_other(tmp_path: pathlib.Path, changed: bool) -> None:
    """What one node's recovery has written is not taken for others' by the next node's; what others wrote is."""
    leave(tmp_path, per_node=1)
    path = tmp_path / "files/checkpoint0"
    status, text = asked("recover", tmp_path / "first")
    assert status == 0, text
    time.sleep(3)
    if changed:
        path.write_bytes(bytes(10))
    status, text = asked("recover", tmp_path / "second")
    assert status == changed, text
    assert path.read_bytes() == (bytes(10) if changed else checkpoint(0))


PARTS = (*slow(""), "mpiox_subfiles=4:mpiox_subfile_unit=7000:")


@pytest.mark.parametrize("parts", PARTS)
def test_one_crash_after_the_other(tmp_path: pathlib.Path, parts: str) -> None:
    """What each leaves gets another name, which is said, and the next job stages the file again: no half file ever.

    recover then finds the first one's file, and completes it under that name.
    """
    (files := tmp_path / "files").mkdir()
    (caches := tmp_path / "caches").mkdir()
    path, aside = files / "checkpoint0", [f".checkpoint0.left-{number}.staging" for number in (1, 2)]
    keep = f"mpiox_delegate_cache_dir={caches}:"
    run(files, "log0", f"{keep}{parts}mpiox_drain_rate=1", 600, "closed 0")
    for number in (1, 2):
        said = run(files, f"log{number}", f"{parts}mpiox_drain_rate=1", 600, "closed 0")
        assert (
            f"{path}: {files}/.checkpoint0.staging was left by a job that was killed; it is called "
            f"{files}/{aside[number - 1]} from now on" in said
        ), said
        assert names(files) == {
            name for staging in (*aside[:number], ".checkpoint0.staging") for name in (staging, f"{staging}.parts")
        }
    said = run(files, "log3", parts, 0)
    assert "left-3.staging from now on" in said, said
    assert whole(path) == checkpoint(0)
    assert asked("recover", caches)[0] == 0
    assert not list(caches.iterdir())
    assert whole(files / "checkpoint0.left-1") == whole(path) == checkpoint(0)
    assert asked("wait", files / "checkpoint0.left-1") == (0, "")
    status, said = asked("wait", path)  # the other two have no cache
    assert status == 1 and all(f"{path}.left-{number} is incomplete" in said for number in (2, 3)), said


def test_a_name_that_another_job_has_now(tmp_path: pathlib.Path) -> None:
    """Two jobs make the same file at once: the second one gets an error, and the first one's file is whole."""
    (files := tmp_path / "files").mkdir()
    hints = (
        f"*:mpiox_delegates=2:mpiox_delegate_cache=2m:mpiox_delegate_page={PAGE}:striping_unit={PAGE}:"
        "mpiox_close=staged:mpiox_drain_rate=1"
    )
    command = [str(launcher()), "-n", str(RANKS), "python", str(CHECKPOINTS), str(files), "1", "600"]
    with job(command, tmp_path / "log", {**preload_environment(), "MPIOX_HINTS": hints}) as running:
        running.wait_for("closed 0", LIMIT_S)
        env = {**preload_environment(), "MPIOX_HINTS": hints}
        with job(command, tmp_path / "other", env) as other:
            assert other.status(LIMIT_S) not in (0, None) and not other.left(GRACE_S), other.text()
            said = other.text()
        assert "another job writes a file of this name" in said and "MPI_ERR_FILE_IN_USE" in said, said
        for pid in running.delegates():
            os.kill(pid, signal.SIGUSR1)
        assert asked("wait", "--timeout", "60s", files / "checkpoint0") == (0, "")
    assert names(files) == {"checkpoint0"} and whole(files / "checkpoint0") == checkpoint(0)


#: Opens FILE after "opening"; hints by MPI_Info where MODE is not "first", which closes it when FILE.go exists.
MAKES = """
import pathlib, sys, time
import mpiio_ext
from mpi4py import MPI
path, mode = sys.argv[1], sys.argv[2]
info = MPI.Info.Create({"mpiox_delegates": "1", "mpiox_close": "staged"})
print("opening", flush=True)
try:
    exclusive = MPI.MODE_EXCL if mode == "exclusive" else 0
    file = MPI.File.Open(MPI.COMM_WORLD, path, MPI.MODE_RDWR | MPI.MODE_CREATE | exclusive, info)
except MPI.Exception as error:
    print(f"refused {error.Get_error_class() == MPI.ERR_FILE_EXISTS}", flush=True)
    sys.exit()
file.Write_at_all(100 * MPI.COMM_WORLD.rank, (b"1" if mode == "first" else b"2") * 100)
print("open", flush=True)
while mode == "first" and not pathlib.Path(f"{path}.go").exists():
    time.sleep(0.01)
file.Close()
"""


@pytest.mark.parametrize("mode", ["exclusive", "shared"])
def test_a_name_that_another_job_gives_meanwhile(tmp_path: pathlib.Path, mode: str) -> None:
    """The first job ends while the second one waits to make the file: that one finds it, and there is one file."""
    (files := tmp_path / "files").mkdir()
    (script := tmp_path / "makes.py").write_text(MAKES, "utf-8")
    command = [str(launcher()), "-n", "2", sys.executable, str(script), str(path := files / "two")]
    with job([*command, "first"], tmp_path / "log", preload_environment()) as running:
        running.wait_for("open\n", LIMIT_S)
        time.sleep(1.1)  # a staging file that has just changed is not asked for its owner
        with job([*command, mode], tmp_path / "other", preload_environment()) as other:
            other.wait_for("opening", LIMIT_S)
            time.sleep(2)
            (files / "two.go").touch()
            assert running.status(LIMIT_S) == 0 and not running.left(GRACE_S), running.text()
            assert other.status(LIMIT_S) == 0 and not other.left(GRACE_S), other.text()
            assert other.text().count("refused True") == (2 if mode == "exclusive" else 0), other.text()
    assert names(files) == {"two", "two.go"}
    assert path.read_bytes() == (b"1" if mode == "exclusive" else b"2") * 200


def test_something_else_has_the_name(tmp_path: pathlib.Path) -> None:
    """It is said at once, by the delegates, status and wait; when that is gone, the file gets its name."""
    (files := tmp_path / "files").mkdir()
    path = files / "checkpoint0"
    hints = (
        f"*:mpiox_delegates=2:mpiox_delegate_cache=2m:mpiox_delegate_page={PAGE}:striping_unit={PAGE}:"
        "mpiox_close=staged:mpiox_drain_rate=1"
    )
    clash = f"{path} is complete as {files}/.checkpoint0.staging, but does not get its name, because"
    command = [str(launcher()), "-n", str(RANKS), "python", str(CHECKPOINTS), str(files), "1", "600"]
    with job(command, tmp_path / "log", {**preload_environment(), "MPIOX_HINTS": hints}) as running:
        running.wait_for("closed 0", LIMIT_S)
        path.write_bytes(b"other")
        for pid in running.delegates():
            os.kill(pid, signal.SIGUSR1)
        running.wait_for(clash, LIMIT_S)
        status, text = asked("wait", "--patience", "600s", "--timeout", "600s", path)
        assert (status, clash in text) == (1, True), text
        assert "complete, but its name exists" in asked("status", "--once")[1]
        path.rename(path.with_name("other"))
        assert asked("wait", "--patience", "60s", "--timeout", "60s", path) == (0, "")
    assert whole(path) == checkpoint(0)


@pytest.mark.slow
def test_something_else_has_names_for_good(tmp_path: pathlib.Path) -> None:
    """Delegates with copies of each other's files wait for names for a time; not for each other's end, for ever."""
    (files := tmp_path / "files").mkdir()
    hints = (
        f"*:mpiox_delegates=2:mpiox_delegate_cache=2m:mpiox_delegate_page={PAGE}:striping_unit={PAGE}:"
        "mpiox_close=staged:mpiox_drain_rate=1:mpiox_delegate_ack=replica:mpiox_drain_patience=1"
    )
    command = [str(launcher()), "-n", str(RANKS), "python", str(CHECKPOINTS), str(files), "2", "2"]
    env = {**preload_environment(), "MPIOX_HINTS": hints, "MPIOX_RANKS_PER_NODE": "2"}
    with job(command, tmp_path / "log", env) as running:
        for number in range(2):
            running.wait_for(f"closed {number}", LIMIT_S)
            (files / f"checkpoint{number}").write_bytes(b"other")
        running.status(LIMIT_S)
        assert not running.left(GRACE_S + 20), running.text()
        for number in range(2):
            assert f"checkpoint{number} is complete as {files}/.checkpoint{number}.staging" in running.text()
    for number in range(2):
        assert whole(files / f".checkpoint{number}.staging") == checkpoint(number)
        assert (files / f"checkpoint{number}").read_bytes() == b"other"


def test_recover_where_something_else_has_the_name(tmp_path: pathlib.Path) -> None:
    """All of it comes to the file, the cache goes, and the name is said, once."""
    (files := tmp_path / "files").mkdir()
    (caches := tmp_path / "caches").mkdir()
    path = files / "checkpoint0"
    run(files, "log", f"mpiox_delegate_cache_dir={caches}:mpiox_drain_rate=1", 600, "closed 0")
    path.write_bytes(b"other")
    status, text = asked("recover", caches)
    clash = f"{path} is complete as {files}/.checkpoint0.staging, but does not get its name, because"
    assert (status, text.count(clash), "its bytes are in" in text) == (1, 1, False), text
    assert not list(caches.iterdir())
    assert asked("recover", caches)[0] == 0
    status, text = asked("wait", path)
    assert (status, clash in text) == (1, True), text
    assert path.read_bytes() == b"other" and whole(files / ".checkpoint0.staging") == checkpoint(0)


def test_recover_on_one_node_of_two(tmp_path: pathlib.Path) -> None:
    """A closed file of which the other node has bytes keeps its staging name, which is said, until they are there."""
    leave(tmp_path, per_node=1, existed="old")
    path = tmp_path / "files/checkpoint0"
    for folder in ("first", "second"):
        status, text = asked("recover", tmp_path / folder)
        if folder == "first":
            said = f"{path} is incomplete and keeps the name {tmp_path}/files/.checkpoint0.staging: another I/O"
            assert (status, text.count(said)) == (1, 1), text
        assert not list((tmp_path / folder).iterdir())
    assert (status, "checkpoint0" in text) == (0, False), text
    assert whole(path) == checkpoint(0)
    assert names(tmp_path / "files") == {"old", "checkpoint0"}


def test_waiting_for_a_folder(tmp_path: pathlib.Path) -> None:
    """It stands for the files below it that are written, or that a killed job has left, also with caches in memory."""
    (files := tmp_path / "files").mkdir()
    path, existed = files / "checkpoint0", files / "checkpoint1"
    existed.write_bytes(b"existed")
    hints = (
        f"*:mpiox_delegates=2:mpiox_delegate_cache=2m:mpiox_delegate_page={PAGE}:striping_unit={PAGE}:"
        "mpiox_close=staged:mpiox_drain_rate=1"
    )
    command = [str(launcher()), "-n", str(RANKS), "python", str(CHECKPOINTS), str(files), "2", "15"]
    with job(command, tmp_path / "log", {**preload_environment(), "MPIOX_HINTS": hints}) as running:
        running.wait_for("closed 1", LIMIT_S)
        (other := tmp_path / "other").mkdir()
        assert asked("wait", other) == (0, "")
        for folder in (files, tmp_path):
            status, text = asked("wait", "--timeout", "0s", folder)
            assert status == 1
            assert all(f"{each} is not written yet" in text for each in (path, existed)), text
        kill_at_once(marked_processes(running.marker))
        assert not running.left(GRACE_S)
    for folder in (files, tmp_path):
        status, text = asked("wait", folder)
        assert status == 1
        assert (
            text == f"{path} is incomplete, and no delegate of this host writes it: its bytes are in "
            f"{files}/.checkpoint0.staging\n"
        )


def test_waiting_for_a_delegate_that_is_stopped(tmp_path: pathlib.Path) -> None:
    """It is named, as silent, and not the one that has written all that it had."""
    with job(command(tmp_path, 1, 600), tmp_path / "log", hints(mpiox_drain_rate=1)) as running:
        running.wait_for("closed 0", LIMIT_S)
        path = tmp_path / "checkpoint0"
        status, text = asked("wait", "--timeout", "0s", path)
        assert status == 1 and all(f"I/O delegate {number} (process" in text for number in (0, 1)), text
        first, other = (
            item.pid
            for item in sorted(delegates.status(), key=lambda item: item.delegate)
            if item.pid in running.delegates()
        )
        os.kill(first, signal.SIGSTOP)
        os.kill(other, signal.SIGUSR2)
        status, text = asked("wait", "--timeout", "4s", path)
        assert status == 1 and f"I/O delegate 0 (process {first} on " in text and ", silent)" in text, text
        assert str(other) not in text and text.count("silent") == text.count("checkpoint0") == 1, text
        os.kill(first, signal.SIGCONT)
        os.kill(first, signal.SIGUSR2)
        assert asked("wait", "--timeout", "60s", path) == (0, "")


def test_recover_after_a_folder_was_renamed(tmp_path: pathlib.Path) -> None:
    """Both caches have bytes of the file: it is named once, with what to do."""
    leave(tmp_path)
    files, caches = tmp_path / "files", sorted((tmp_path / "first").iterdir())
    files.rename(tmp_path / "moved")
    status, text = asked("recover", tmp_path / "first")
    assert (status, text.count(str(files))) == (1, 1), text
    assert (
        f"{files}/checkpoint0 cannot be written: No such file or directory: was its folder renamed? Rename it back"
        f", and recover again; or remove {caches[0]} and {caches[1]}, where its" in text
    ), text
    (tmp_path / "moved").rename(files)
    assert asked("recover", tmp_path / "first")[0] == 0
    assert (files / "checkpoint0").read_bytes() == checkpoint(0)
