"""Files that are closed before they are written (mpiox_close=staged)."""

from __future__ import annotations

import errno
import os
import pathlib
import signal
import subprocess
import textwrap

import pytest

from mpiio_ext import delegates
from mpiio_ext.delegates.arbiter import announcements, mapfile
from mpiio_ext.delegates.cli_draining import recover_cache
from support import subfiles
from support.launch import marked_processes, python_run
from support.marks import slow
from support.processes import job
from support.staged import (
    CHECKPOINT_BYTES,
    PARTS,
    RANKS,
    asked,
    checkpoint,
    command,
    fill,
    hints,
    kill_at_once,
    names,
    whole,
)

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]
OPEN = """
    import os, sys, time
    import mpiio_ext
    # isort: split
    import numpy as np
    from mpi4py import MPI

    comm, page, pages = MPI.COMM_WORLD, 65536, 10
    name = os.path.join(sys.argv[1], ".file.staging" if sys.argv[2] == "new" else "file")
    part = lambda step: np.full(page * pages, 1 + step * comm.size + comm.rank, "u1")
    fh = MPI.File.Open(comm, os.path.join(sys.argv[1], "file"), MPI.MODE_CREATE | MPI.MODE_RDWR)
    for step in range(2):
        fh.Write_at((step * comm.size + comm.rank) * page * pages, part(step))
        fh.Write_at(page * pages * comm.size * 2, np.ones(7, "u1"))
        comm.Barrier()
        until, size = time.monotonic() + 60, page * pages * comm.size * (step + 1)
        while comm.rank == 0:
            with open(name, "rb") as file:
                found = np.frombuffer(file.read(size), "u1")
            parts = found.reshape(-1, page * pages) if found.size == size else np.zeros((1, 1))
            if (parts == 1 + np.arange(len(parts))[:, None]).all():
                break
            assert time.monotonic() < until, f"step {step}: its pages are not in the file"
            time.sleep(0.1)
        comm.Barrier()
    fh.Close()
"""


@pytest.mark.both_with("spawn-new")
@pytest.mark.parametrize(("mode", "kind"), [("spawn", "new"), *slow(("thread", "new")), ("spawn", "there")])
def test_a_file_that_stays_open_is_written_while_nothing_comes(tmp_path: pathlib.Path, mode: str, kind: str) -> None:
    """Its complete pages, so that there is room for the next ones; and it has its name only when it is whole."""
    if kind == "there":
        (tmp_path / "file").write_bytes(b"")
    hints = f"*:mpiox_delegates=2:mpiox_delegate_page=64k:mpiox_close=staged:mpiox_delegate_mode={mode}"
    launch = python_run(["-c", textwrap.dedent(OPEN), tmp_path, kind], RANKS, env={"MPIOX_HINTS": hints}, timeout_s=120)
    assert launch.returncode == 0, launch.describe()
    assert names(tmp_path) == {"file"}
    assert (tmp_path / "file").stat().st_size == 65536 * 10 * RANKS * 2 + 7


# ---- from outside ----------------------------------------------------------------------------------------------------


def tool(*words: str | pathlib.Path) -> tuple[int, str]:
    """Return status and messages of a command under `mpiio-ext subfiles`."""
    done = subprocess.run(
        ["mpiio-ext", "subfiles", *map(str, words)], capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow_with("parts0")
@pytest.mark.parametrize("parts", PARTS)
def test_it_is_seen_and_waited_for(tmp_path: pathlib.Path, parts: dict[str, int]) -> None:
    """What is left is shown; waiting ends at its limit, or when all is there; a warning lifts the rate."""
    first, second = tmp_path / "checkpoint0", tmp_path / "checkpoint1"
    with job(command(tmp_path, 2, 600), tmp_path / "log", hints(mpiox_drain_rate=1, **parts)) as running:
        running.wait_for("closed 0", 120)
        files = [file for item in delegates.status() for file in item.files if str(tmp_path) in file.path]
        assert {(file.path, file.hidden, file.draining) for file in files} == {
            (str(tmp_path / ".checkpoint0.staging"), True, True)
        }
        assert 0 < sum(file.dirty_bytes for file in files) <= CHECKPOINT_BYTES
        text = asked("status", "--once")[1]
        assert f"being written  {first}" in text and ".staging" not in text, text
        status, text = asked("wait", "--timeout", "0s", first)
        assert status == 1
        assert f"{first} is not written yet" in text
        status, text = asked("wait", second)
        assert (status, text.strip()) == (1, f"{second} is not there")
        if parts:
            status, text = tool("rm", tmp_path / ".checkpoint0.staging")
            assert (status, "is being written: a program has it open" in text) == (2, True), text
        for pid in running.delegates():
            os.kill(pid, signal.SIGUSR2)
        assert asked("wait", "--timeout", "60s", first) == (0, "")
        assert whole(first) == checkpoint(0)
        assert not parts or tool("check", first)[0] == 0
        assert running.process.poll() is None
    assert asked("wait", first) == (0, "")


def test_evenly_until_the_next(tmp_path: pathlib.Path) -> None:
    """When the interval is known, a checkpoint is written little by little; the first one is written at once."""
    with job(command(tmp_path, 2, 8), tmp_path / "log", hints(mpiox_drain_pace="even")) as running:
        running.wait_for("closed 0", 120)
        assert asked("wait", "--timeout", "60s", tmp_path / "checkpoint0") == (0, "")
        running.wait_for("closed 1", 120)
        left: set[int] = set()
        while not (tmp_path / "checkpoint1").exists():
            assert running.process.poll() is None, running.text()
            left.add(
                sum(
                    file.dirty_bytes for item in delegates.status() for file in item.files if str(tmp_path) in file.path
                )
            )
        assert running.status(120) == 0, running.text()
    assert len(left) > 3, left
    assert (tmp_path / "checkpoint1").read_bytes() == checkpoint(1)


def test_the_arbiters_nodes_write_it(tmp_path: pathlib.Path) -> None:
    """Files are with the I/O nodes that the job had when they were written, and stay there when it is given others."""
    folder, arbiter = tmp_path / "files", tmp_path / "arbiter"
    folder.mkdir()
    (arbiter / "jobs").mkdir(parents=True)
    given: dict[int, set[int]] = {0: {0, 1, 2, 3}}
    env = hints(
        mpiox_delegates=4, mpiox_delegate_page="4k", striping_unit="4k", mpiox_drain_rate=4000, mpiox_arbiter=arbiter
    )
    with job(command(folder, 4, 3), tmp_path / "log", env) as running:
        for number, nodes in enumerate([(2, 3), (0,), (1, 2), (3,)]):
            running.wait_for(f"closed {number}", 120)
            status = delegates.status()
            for done in given:
                having = {
                    item.delegate
                    for item in status
                    for file in item.files
                    if file.path == f"{folder}/.checkpoint{done}.staging" and file.dirty_bytes > 0
                }
                assert having <= given[done], (number, done, having, given)
                assert having or asked("wait", "--timeout", "60s", folder / f"checkpoint{done}") == (0, "")
            names = [item.job for item in announcements.read_all(arbiter)[0]]
            mapfile.write(arbiter, mapfile.Map(number + 1, dict.fromkeys(names, nodes)))
            while number < 3 and {item.applied for item in announcements.read_all(arbiter)[0]} != {number + 1}:
                assert running.process.poll() is None and f"closed {number + 1}" not in running.text(), running.text()
            given[number + 1] = set(nodes)
        for pid in running.delegates():
            os.kill(pid, signal.SIGUSR1)
        assert running.status(120) == 0, running.text()
        assert not running.left(60)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        f"checkpoint{number}": checkpoint(number) for number in range(4)
    }


@pytest.mark.slow_with("parts0")
@pytest.mark.parametrize("parts", PARTS)
def test_what_says_who_has_bytes_is_removed(tmp_path: pathlib.Path, parts: dict[str, int]) -> None:
    """The file does not get its name, and that is said, with what to do; nothing of it is lost."""
    said = f"{tmp_path}/checkpoint0 does not get its name: {tmp_path}/.checkpoint0.staging.parts, the list"
    with job(command(tmp_path, 1, 600), tmp_path / "log", hints(mpiox_drain_rate=1, **parts)) as running:
        running.wait_for("closed 0", 120)
        (tmp_path / ".checkpoint0.staging.parts").unlink()
        for pid in running.delegates():
            os.kill(pid, signal.SIGUSR1)
        status, text = asked("wait", "--patience", "1s", tmp_path / "checkpoint0")
        assert (status, text.count(said)) == (1, 1), text
        running.wait_for(said, 60)
        assert "its .parts was removed" in asked("status", "--once")[1]
        assert subfiles.read(tmp_path / ".checkpoint0.staging") == checkpoint(0)
        (tmp_path / ".checkpoint0.staging").rename(tmp_path / "checkpoint0")
        assert asked("wait", "--timeout", "60s", tmp_path / "checkpoint0") == (0, "")
        if parts:  # by hand, too
            assert tool("merge", "--unfinished", tmp_path / "checkpoint0", "-o", tmp_path / "plain")[0] == 0
            assert tool("rm", tmp_path / "checkpoint0")[0] == 0
            (tmp_path / "plain").rename(tmp_path / "checkpoint0")
        assert (tmp_path / "checkpoint0").read_bytes() == checkpoint(0)


def test_what_says_who_has_bytes_is_removed_before_the_end(tmp_path: pathlib.Path) -> None:
    """The job ends at once then, and says so as well; so does `wait` afterwards."""
    said = f"{tmp_path}/checkpoint0 does not get its name: {tmp_path}/.checkpoint0.staging.parts, the list"
    with job(command(tmp_path, 1, 5), tmp_path / "log", hints(mpiox_drain_rate=1)) as running:
        running.wait_for("closed 0", 120)
        (tmp_path / ".checkpoint0.staging.parts").unlink()
        assert running.status(120) is not None
        assert not running.left(30), running.text()
        assert said in running.text() and "check that the directory exists" not in running.text(), running.text()
    status, text = asked("wait", tmp_path / "checkpoint0")
    assert (status, text.count(said)) == (1, 1), text
    assert (tmp_path / ".checkpoint0.staging").read_bytes() == checkpoint(0)


@pytest.mark.slow_with("parts0")
@pytest.mark.parametrize("parts", PARTS)
def test_what_the_file_system_refuses(tmp_path: pathlib.Path, parts: dict[str, int]) -> None:
    """For a while: it is written again. For good: it is named, and can be recovered when the file system takes it."""
    folder, caches = tmp_path / "files", tmp_path / "caches"
    folder.mkdir()
    caches.mkdir()
    what = "subfiles/*.2" if parts else "staging"
    fault = f"op=write,path=*0.{what},errno=EIO,times=3;op=write,path=*1.{what.removesuffix('.2')},errno=ENOSPC"
    env = {**hints(mpiox_delegate_cache_dir=caches, mpiox_drain_patience=15, **parts), "MPIOX_FAULT": fault}
    with job(command(folder, 2, 0), tmp_path / "log", env) as running:
        running.wait_for("closed 1", 120)
        status, text = asked("wait", "--patience", "1s", folder / "checkpoint1")
        assert status == 1
        assert f"{folder / 'checkpoint1'} cannot be written: {os.strerror(errno.ENOSPC)}" in text
        assert any(str(path) in text for path in caches.iterdir()), text
        assert running.status(120) is not None
        assert not running.left(60)
        said = running.text()
    assert f"write of {folder / 'checkpoint1'} failed" in said
    assert whole(folder / "checkpoint0") == checkpoint(0)
    assert names(folder) == {"checkpoint0", ".checkpoint1.staging", ".checkpoint1.staging.parts"}
    assert all(str(path) in said for path in caches.iterdir()), said
    recovered = [recover_cache(path) for path in caches.iterdir()]
    assert sum(moved for moved, _ in recovered) == CHECKPOINT_BYTES
    assert all(item.waits for _, failed in recovered for item in failed)
    assert not list(caches.iterdir())
    assert whole(folder / "checkpoint1") == checkpoint(1)
    assert names(folder) == {"checkpoint0", "checkpoint1"}


@pytest.mark.slow_with("EIO-parts0", "ENFILE-parts1")
@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("code", ["EIO", "ENFILE"])
def test_an_fsync_that_fails_once(tmp_path: pathlib.Path, parts: dict[str, int], code: str) -> None:
    """The kernel has dropped the bytes, and its next fsync says nothing: the file is told of, and gets no name.

    Where nothing was asked of the disk it is asked again.
    """
    folder, caches = tmp_path / "files", tmp_path / "caches"
    folder.mkdir()
    caches.mkdir()
    fault = f"op=sync,path=*0.{'subfiles/*.2' if parts else 'staging'},errno={code},times=1"
    env = {**hints(mpiox_delegate_cache_dir=caches, mpiox_drain_patience=2, **parts), "MPIOX_FAULT": fault}
    with job(command(folder, 1, 0), tmp_path / "log", env) as running:
        running.wait_for("closed 0", 120)
        status = asked("wait", "--patience", "1s" if code == "EIO" else "30s", folder / "checkpoint0")[0]
        assert running.status(120) is not None
        assert not running.left(60)
        said = running.text()
    if code == "ENFILE":
        assert status == 0, said
        assert whole(folder / "checkpoint0") == checkpoint(0)
        return
    assert status == 1, said
    assert f"fsync of {folder / 'checkpoint0'} failed" in said
    assert all(failed for _, failed in map(recover_cache, caches.iterdir()))
    assert names(folder) == {".checkpoint0.staging", ".checkpoint0.staging.parts"}


#: Size of `small_disk`: a checkpoint, of 216 KiB, and little else.
DISK_KIB = 288


@pytest.mark.parametrize(
    ("what", "then", "parts"),
    [
        ("full", "goes on", {}),
        *slow(("full", "killed", {})),
        ("read-only", "killed", {}),
        *slow(("full", "goes on", PARTS[1])),
        ("full", "killed", PARTS[1]),
        *slow(("full", "ends", {}), ("full", "ends", PARTS[1])),
    ],
)
def test_disk_refuses(
    small_disk: pathlib.Path, tmp_path: pathlib.Path, what: str, then: str, parts: dict[str, int]
) -> None:
    """A real one. The file is named, with where its bytes are, until the disk takes them: then it is whole."""
    (caches := tmp_path / "caches").mkdir()
    path, other = small_disk / "checkpoint0", small_disk / "other"
    code = errno.ENOSPC if what == "full" else errno.EROFS
    env = hints(mpiox_delegate_cache_dir=caches, mpiox_drain_patience=15, **parts)
    if what == "full":
        other.write_bytes(bytes(150 << 10))
    else:
        env["MPIOX_FAULT"] = "op=write,path=*0.staging,errno=EROFS"
    with job(command(small_disk, 1, 0 if then == "ends" else 600), tmp_path / "log", env) as running:
        running.wait_for("closed 0", 120)
        check_named(asked("wait", "--patience", "1s", path), path, code, caches)
        if then == "goes on":
            other.unlink()
            assert asked("wait", "--patience", "30s", path) == (0, "")
            assert whole(path) == checkpoint(0)
            return
        if then == "killed":
            kill_at_once(marked_processes(running.marker))
        assert running.status(120) is not None
        assert not running.left(60), running.text()
    assert not path.exists()
    if what == "read-only":
        mount_again(small_disk, "ro")
    check_named(asked("recover", caches), path, code, caches)
    assert not path.exists()
    if what == "full":
        other.unlink()
    else:
        mount_again(small_disk, "rw")
    status, text = asked("recover", caches)
    assert (status, "cannot" in text) == (0, False), text
    assert not list(caches.iterdir())
    assert names(small_disk) == {"checkpoint0"}
    assert whole(path) == checkpoint(0)


def check_named(answer: tuple[int, str], path: pathlib.Path, code: int, caches: pathlib.Path) -> None:
    """A command has failed, and says why, and in which caches the bytes are."""
    status, text = answer
    assert status == 1, text
    assert f"{path} cannot be written: {os.strerror(code)}; its bytes are in {caches}/mpiox." in text


@pytest.mark.parametrize(
    ("level", "keep"),
    [("replica", 0), ("memory", 0.3), *slow(("replica", 0.3), ("disk", 0), ("memory", 0), ("memory", 0.1))],
)
def test_disk_of_a_cache_fails_later(tmp_path: pathlib.Path, level: str, keep: float) -> None:
    """The cache of one delegate cannot be read any more. What was closed is whole, or named; the program goes on."""
    folder, caches = tmp_path / "files", tmp_path / "caches"
    folder.mkdir()
    caches.mkdir()
    path = folder / "checkpoint0"
    env = {
        **hints(mpiox_delegate_cache_dir=caches, mpiox_delegate_ack=level, mpiox_drain_rate=20000),
        "MPIOX_RANKS_PER_NODE": "1" if level == "replica" else "0",
    }
    with job(command(folder, 2, 2), tmp_path / "log", env) as running:
        running.wait_for("closed 0", 120)
        cache = next(caches.iterdir())
        os.truncate(cache, int(cache.stat().st_size * keep) // 4096 * 4096)
        assert running.status(120) == 0, running.text()
        assert not running.left(60), running.text()
        said = running.text()
    assert f"its cache in {caches} cannot be read any more: the disk has failed, or the file was truncated" in said
    assert (folder / "checkpoint1").read_bytes() == checkpoint(1)
    if level == "memory" and not path.exists():
        status, text = asked("wait", path)
        assert (status, str(path) in text) == (1, True), text
        assert keep == 0 or f"of {folder}/checkpoint0" in said
    else:
        assert path.read_bytes() == checkpoint(0), said


@pytest.mark.parametrize("small_disk", [5 << 10], indirect=True)
@pytest.mark.parametrize("when", ["before", "later"])
def test_disk_of_the_caches_is_full(small_disk: pathlib.Path, tmp_path: pathlib.Path, when: str) -> None:
    """From the start: they are in memory, and that is said. Later: they have their room. Nothing is lost."""
    (folder := tmp_path / "files").mkdir()
    if when == "before":
        fill(small_disk)
    with job(command(folder, 3, 1), tmp_path / "log", hints(mpiox_delegate_cache_dir=small_disk)) as running:
        running.wait_for("closed 0", 120)
        fill(small_disk)
        assert running.status(120) == 0, running.text()
        assert not running.left(60), running.text()
        said = [line for line in running.text().splitlines() if line.startswith("mpiio_ext:")]
    assert len(said) == (when == "before"), said
    assert all("No space left on device" in line and "is in memory" in line for line in said)
    assert [path.name for path in small_disk.iterdir()] == ["filler"]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        f"checkpoint{number}": checkpoint(number) for number in range(3)
    }


@pytest.mark.parametrize("small_disk", [8 << 10], indirect=True)
@pytest.mark.parametrize("level", ["memory", *slow("replica")])
def test_disk_of_a_cache_does_not_take_it(
    small_disk: pathlib.Path, failing_disk: pathlib.Path, tmp_path: pathlib.Path, level: str
) -> None:
    """The kernel could not write pages of a cache. Nobody knows whether what is read from it is right; that is said."""
    folder, caches = tmp_path / "files", tmp_path / "caches"
    folder.mkdir()
    caches.mkdir()
    path = folder / "checkpoint0"
    env = {
        **hints(mpiox_delegate_cache_dir=f"{failing_disk};{caches}", mpiox_delegate_ack=level, mpiox_drain_rate=20000),
        "MPIOX_RANKS_PER_NODE": "1" if level == "replica" else "0",
    }
    with job(command(folder, 2, 2), tmp_path / "log", env) as running:
        running.wait_for("closed 0", 120)
        fill(small_disk)
        subprocess.run(["sync", "-f", str(failing_disk)], capture_output=True, check=False, timeout=60)
        assert running.status(120) == 0, running.text()
        assert not running.left(60), running.text()
        said = running.text()
    assert f"its cache in {failing_disk};{caches} cannot be read any more: the disk has failed" in said
    assert (folder / "checkpoint1").read_bytes() == checkpoint(1)
    if level == "memory":
        assert f"of {folder}/checkpoint0" in said
        assert asked("wait", path)[0] == 1
        status, text = asked("recover", failing_disk)
        assert (status, f"{path} cannot be written" in text) == (1, True), text
        assert not path.exists()
    else:
        assert path.read_bytes() == checkpoint(0), said


def mount_again(folder: pathlib.Path, options: str) -> None:
    """Change a mounted disk."""
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True, capture_output=True, timeout=20)


def test_caches_that_are_not_used(tmp_path: pathlib.Path) -> None:
    """What others may open, links, and what is no cache are left alone, and named."""
    for name, mode in (("mpiox.empty", 0o600), ("mpiox.open", 0o644)):
        (tmp_path / name).write_bytes(bytes(1 << 20))
        (tmp_path / name).chmod(mode)
    (tmp_path / "mpiox.link").symlink_to("mpiox.empty")
    status, text = asked("recover", tmp_path)
    assert status == 1
    assert text.count("cannot be used") == 2
    assert {path.name for path in tmp_path.iterdir()} == {"mpiox.empty", "mpiox.open", "mpiox.link"}
