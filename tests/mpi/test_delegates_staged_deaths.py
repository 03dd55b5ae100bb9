"""Processes are killed while files are written behind their close: what was closed is there, and never half of it.

tests/programs/delegates_staged_deaths.py closes checkpoints that its delegates write slowly, out of caches on a disk.
At a moment that is drawn something is killed: a delegate, or it and its supervisor, a rank (then launchers end the
job), the launcher, or everything that runs. Then what was left is recovered, if there is anything. Or a node is lost:
all but the other delegate, which has copies (level replica, caches in memory). At no time has a file its name before
all of it is there, unless it is made when a delegate is dead: then the job has said so. Or files are open again, to
be read or written once more, while they drain: 500 kills by `pytest --run-slow -n 2 … -k open_again`.
"""

from __future__ import annotations

import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass

import numpy as np
import pytest

from mpiio_ext.delegates import status as delegates_status
from mpiio_ext.delegates.cli_draining import recover_cache
from support import fuzz, subfiles
from support.launch import launcher, marked_processes, preload_environment
from support.marks import slow
from support.processes import Job, job, words
from support.staged import CHECKPOINTS, RANKS, check_names, checkpoint, closed, fill, kill_at_once, names, send, whole

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]
FILES = 5
LIMIT_S, GRACE_S = 60.0, 60.0
#: Hints under which each checkpoint is subfiles, whose unit is no part of a page; "": it is one file.
PARTS = ("", "mpiox_subfiles=4:mpiox_subfile_unit=7000:")
WHO = ("delegate", "both", "rank", "launcher", "everything", "node")


def kill(running: Job, who: str, rng: random.Random) -> None:
    """Kill; everything is stopped before, so that nobody writes for another one."""
    if who == "everything":
        kill_at_once(marked_processes(running.marker))
    elif who == "node":
        other = slice(index := rng.randrange(2), index + 1)
        spared = {running.process.pid, *running.delegates()[other], *running.supervisors()[other]}
        kill_at_once(pid for pid in marked_processes(running.marker) if pid not in spared)
    elif who == "launcher":
        send([running.process.pid], signal.SIGKILL)
    elif who == "rank":
        ranks = [
            pid
            for pid in marked_processes(running.marker)
            if "delegates_staged_deaths" in words(pid) and "-n" not in words(pid).split()
        ]
        send(rng.sample(ranks, min(1, len(ranks))), signal.SIGKILL)  # none: they have ended
    else:
        index = rng.randrange(2)
        delegates, supervisors = running.delegates(), running.supervisors()
        victims = delegates[index : index + 1] + (supervisors[index : index + 1] if who == "both" else [])
        send(victims, signal.SIGKILL)
        while any(map(words, victims)):  # a rank that leaves before they are dead has nothing to rescue
            time.sleep(0.001)


def die(
    folder: pathlib.Path,
    who: str,
    seed: int,
    parts: str = "",
    disk: pathlib.Path | None = None,
    full: str = "",
    within_s: float = 0.2,
) -> int:
    """Run it and kill; every checkpoint that was closed must be there. Returns how many were recovered from a disk.

    The disk of the caches is full by then (full="caches"), or that of the files is until it is over ("files").
    """
    rng = random.Random(f"{who} {seed}{parts}")
    files, caches = folder / "files", (disk or folder) / f"caches{seed}"
    files.mkdir(parents=True)
    caches.mkdir()
    more = "mpiox_delegate_ack=replica" if who == "node" else f"mpiox_delegate_cache_dir={caches}"
    hints = (
        f"*:mpiox_delegates=2:mpiox_delegate_cache=2m:mpiox_delegate_page=16k:{more}:{parts}"
        "striping_unit=16k:mpiox_close=staged:mpiox_drain_rate=150k:mpiox_drain_patience=1"
    )
    env = {
        **preload_environment(),
        "MPIOX_HINTS": hints,
        "MPIOX_RANKS_PER_NODE": "1" if who == "node" else "0",
        "MPIOX_FAULT": f"op=write,path=*{'.subfiles/*' if parts else '.staging'},errno=ENOSPC"
        if full == "files"
        else "",
    }
    command = [str(launcher()), "-n", str(RANKS), "python", str(CHECKPOINTS), str(files), str(FILES), "0.05"]
    after = rng.randrange(FILES)
    with job(command, folder / "log", env) as running:
        running.wait_for(f"closed {after}", LIMIT_S)
        time.sleep(rng.random() * within_s)
        filler = fill(disk) if disk and full == "caches" else None
        certain = closed(running)
        kill(running, who, rng)
        deadline_s = time.monotonic() + LIMIT_S
        while running.process.poll() is None and time.monotonic() < deadline_s:
            check_names(files, who, running)
            time.sleep(0.02)
        assert running.process.poll() is not None, running.text()
        assert not (left := running.left(GRACE_S)), f"{left}\n{running.text()}"
        text = f"{who} {seed} {certain}\n{running.text()}"
        certain = certain if who in ("rank", "launcher") else closed(running)
    check_names(files, text)
    assert full != "files" or not any(name.startswith("checkpoint") for name in names(files)), text
    recovered = [recover_cache(path) for path in sorted(caches.iterdir())]
    assert all(moved >= 0 and all(item.waits for item in failed) for moved, failed in recovered), f"{recovered}\n{text}"
    assert not list(caches.iterdir()), text
    if filler:
        filler.unlink()
    check_names(files, text)
    assert {f"checkpoint{number}" for number in certain} <= names(files), text
    assert not [path for path in files.iterdir() if path.name.startswith(tuple(f".checkpoint{n}." for n in certain))]
    return len(recovered)


@pytest.mark.both_with("rank-", "everything-*")
@pytest.mark.slow_with(
    "delegate-mpiox_subfiles=*", "both-", "rank-mpiox_subfiles=*", "everything-", "node-mpiox_subfiles=*"
)
@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("who", [who for who in WHO if who != "launcher"] + slow("launcher"))
def test_what_was_closed_is_not_lost(tmp_path: pathlib.Path, who: str, parts: str) -> None:
    recovered = die(tmp_path, who, 0, parts)
    assert recovered > 0 or who != "everything"


@pytest.mark.parametrize("who", ["rank", "both", *slow("delegate", "launcher", "everything")])
def test_what_ranks_have_started_outlives_them(tmp_path: pathlib.Path, who: str) -> None:
    """In mode process, which launchers that cannot spawn get: nothing is left for `recover` when ranks are killed."""
    recovered = die(tmp_path, who, 1, "mpiox_delegate_mode=process:")
    assert recovered == 0 or who in ("both", "everything")


FINALIZED = """
    import os, sys
    import numpy as np
    from mpi4py import MPI

    comm, part = MPI.COMM_WORLD, 1 << 20
    file = MPI.File.Open(comm, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_WRONLY)
    file.Write_at_all(comm.rank * part, np.full(part, 1 + comm.rank, "u1"))
    if os.fork() == 0:
        os._exit(0)
    try:
        while os.wait():  # all children of the program: no delegate is one
            pass
    except ChildProcessError:
        pass
    file.Close()
    print("closed" if comm.rank == 0 else "", flush=True)
"""


@pytest.mark.parametrize("victims", ["both", "supervisors", "nobody"])
def test_ranks_in_finalize_wait_for_what_they_have_started(tmp_path: pathlib.Path, victims: str) -> None:
    """They write the bytes of a delegate that dies with its supervisor meanwhile, and report a long wait."""
    hints = "*:mpiox_delegates=2:mpiox_delegate_mode=process:mpiox_delegate_page=64k:mpiox_close=staged"
    env = {
        **preload_environment(),
        "MPIOX_HINTS": f"{hints}:mpiox_delegate_report=1",
        "MPIOX_FAULT": "op=write,path=*.staging,delay_ms=100",
    }
    command = [str(launcher()), "-n", "2", "python", "-c", textwrap.dedent(FINALIZED), str(tmp_path / "file")]
    with job(command, tmp_path / "log", env) as running:
        running.wait_for("closed", LIMIT_S)
        if victims == "both":
            kill(running, "both", random.Random(1))
        elif victims == "supervisors":
            send(running.supervisors(), signal.SIGKILL)
        assert running.status(LIMIT_S) == 0, running.text()
        assert (tmp_path / "file").exists(), running.text()  # before mpirun sees the ends of all descriptors
        assert not running.left(GRACE_S), running.text()
        assert victims != "nobody" or "MPI_Finalize waits for I/O delegate" in running.text()
    assert whole(tmp_path / "file") == b"".join(bytes([1 + rank]) * (1 << 20) for rank in range(2))


AFTER = """
    import pathlib, sys, time
    import numpy as np
    from mpi4py import MPI

    comm, folder = MPI.COMM_WORLD, pathlib.Path(sys.argv[1])
    MPI.File.Open(MPI.COMM_SELF, str(folder / f"alone{comm.rank}"), MPI.MODE_CREATE | MPI.MODE_WRONLY).Close()
    for number in range(4):
        file = MPI.File.Open(comm, str(folder / f"file{number}"), MPI.MODE_CREATE | MPI.MODE_WRONLY)
        file.Write_at(comm.rank * 50000, np.full(50000, 1 + comm.rank, "u1"))
        print(f"open {number}", flush=True) if comm.rank == 0 else None
        while number in (0, 2) and not (folder / f"go{number}").exists():
            time.sleep(0.01)
        file.Close()
"""


@pytest.mark.both_with("")
@pytest.mark.parametrize("parts", PARTS)
def test_what_is_made_after_a_death_is_said(tmp_path: pathlib.Path, parts: str) -> None:
    """It has its own name at once, of which one line speaks; of subfiles the index says that it is being written.

    What was open by then has no name before it is closed. Of files for which no delegates are asked for a line has
    been said before.
    """
    hints = f"*:mpiox_delegates=2:{parts}mpiox_close=staged,alone*:mpiox_delegates=0"
    env = {**preload_environment(), "MPIOX_HINTS": hints}
    command = [str(launcher()), "-n", str(RANKS), "python", "-c", textwrap.dedent(AFTER), str(tmp_path)]
    with job(command, tmp_path / "log", env) as running:
        running.wait_for("open 0", LIMIT_S)
        kill(running, "both", random.Random(1))
        assert not (tmp_path / "file0").exists() and (tmp_path / ".file0.staging").exists()
        (tmp_path / "go0").touch()
        running.wait_for("open 2", LIMIT_S)
        line = r"/(\w+): mpiox_close=staged needs I/O delegates \((.*)\): MPI_File_close waits"
        said = sorted(re.findall(line, running.text()))
        assert said == [
            *((f"alone{rank}", "no hint requests them") for rank in range(RANKS)),
            ("file1", "a delegate of the job has died"),
        ], running.text()
        assert (tmp_path / "file2").exists() and not (tmp_path / ".file2.staging").exists()
        for name, status, state in ("file1", 0, ": whole"), ("file2", 1, ": is being written"):
            done = subprocess.run(
                ["mpiio-ext", "subfiles", "check", str(tmp_path / name)],
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
            assert not parts or (done.returncode == status and f"{name}{state}" in done.stdout), done
        (tmp_path / "go2").touch()
        assert running.status(LIMIT_S) == 0 and not running.left(GRACE_S), running.text()
    for number in range(4):
        data = b"".join(bytes([1 + rank]) * 50000 for rank in range(RANKS))
        assert whole(tmp_path / f"file{number}") == data, running.text()


@pytest.mark.parametrize(
    ("pattern", "level", "parts"),
    [
        *slow(("*", "replica", "")),
        ("*", "memory", PARTS[1]),
        ("*checkpoint*", "memory", PARTS[1]),
        *slow(("*", "memory", ""), ("*checkpoint*", "memory", "")),
    ],
)
def test_restart_from_what_is_left(tmp_path: pathlib.Path, pattern: str, level: str, parts: str) -> None:
    """The next job with these disks reads what a killed one had closed, though nothing of it was in a file yet.

    The delegates of that pattern start in MPI_Init, or when the first of these files is opened. Copies in the caches
    are not needed then, and nothing of them is left.
    """
    files, caches = tmp_path / "files", tmp_path / "caches"
    files.mkdir()
    caches.mkdir()
    hints = (
        f"{pattern}:mpiox_delegates=2:mpiox_delegate_cache=2m:mpiox_delegate_page=16k:striping_unit=16k:"
        f"mpiox_delegate_cache_dir={caches}:mpiox_delegate_ack={level}:{parts}"
        "mpiox_close=staged:mpiox_drain_rate=1"
    )
    env = {**preload_environment(), "MPIOX_HINTS": hints, "MPIOX_RANKS_PER_NODE": "1" if level == "replica" else "0"}
    program = [str(launcher()), "-n", str(RANKS), "python", str(CHECKPOINTS), str(files)]
    with job([*program, "2", "600"], tmp_path / "log", env) as running:
        running.wait_for("closed 0", LIMIT_S)
        kill(running, "everything", random.Random(0))
        assert not running.left(GRACE_S)
    assert {path.name for path in files.iterdir()} >= {".checkpoint0.staging", ".checkpoint0.staging.parts"}
    with job([*program, "1", "-1"], tmp_path / "again", env) as running:
        assert running.status(LIMIT_S) == 0, running.text()
        assert "read 0" in running.text()
        assert not running.left(GRACE_S)
    assert not list(caches.iterdir())
    assert whole(files / "checkpoint0") == checkpoint(0)


@pytest.mark.parametrize(("lost", "parts"), [*slow((0, "")), (1, PARTS[1]), *slow((1, ""), (0, PARTS[1]))])
def test_recover_on_all_nodes_but_one(tmp_path: pathlib.Path, lost: int, parts: str) -> None:
    """Level replica, and everything is killed: the caches of one node alone have all that was closed, in copies too."""
    files, caches = tmp_path / "files", [tmp_path / "first", tmp_path / "second"]
    for folder in (files, *caches):
        folder.mkdir()
    hints = (
        "*:mpiox_delegates=2:mpiox_delegate_cache=2m:mpiox_delegate_page=16k:striping_unit=16k:"
        f"mpiox_delegate_cache_dir={caches[0]};{caches[1]}:mpiox_delegate_ack=replica:{parts}"
        "mpiox_close=staged:mpiox_drain_rate=1"
    )
    env = {**preload_environment(), "MPIOX_HINTS": hints, "MPIOX_RANKS_PER_NODE": "1"}
    command = [str(launcher()), "-n", str(RANKS), "python", str(CHECKPOINTS), str(files), "2", "600"]
    with job(command, tmp_path / "log", env) as running:
        running.wait_for("closed 0", LIMIT_S)
        kill(running, "everything", random.Random(0))
        assert not running.left(GRACE_S)
    assert not (files / "checkpoint0").exists()
    for folder in (caches[1 - lost], caches[lost]):  # the second one comes back later: what it has is there already
        done = subprocess.run(
            ["mpiio-ext", "delegates", "recover", str(folder)],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert whole(files / "checkpoint0") == checkpoint(0)
        assert not list(folder.iterdir())


def begin_before_the_boot(cache: pathlib.Path, now: float) -> None:
    """Change when its delegate has started: the first number of the cache that is a time of the last minutes."""
    data = bytearray(cache.read_bytes())
    at = next(at for at in range(0, len(data), 8) if now - 900 < struct.unpack_from("d", data, at)[0] <= now)
    struct.pack_into("d", data, at, 1000.0)
    cache.write_bytes(data)


def test_caches_of_before_a_restart_of_the_node(tmp_path: pathlib.Path) -> None:
    """They look as those of running delegates. Which pages have come to the disk is not known."""
    files, caches, old = tmp_path / "files", tmp_path / "caches", tmp_path / "old"
    for folder in (files, caches, old):
        folder.mkdir()
    hints = (
        f"*:mpiox_delegates=2:mpiox_delegate_cache=2m:mpiox_delegate_page=16k:mpiox_delegate_cache_dir={caches}:"
        "mpiox_close=staged:mpiox_drain_rate=1"
    )
    command = [str(launcher()), "-n", str(RANKS), "python", str(CHECKPOINTS), str(files), "2", "600"]
    with job(command, tmp_path / "log", {**preload_environment(), "MPIOX_HINTS": hints}) as running:
        running.wait_for("closed 0", LIMIT_S)
        for cache in caches.iterdir():
            shutil.copy(cache, old)
            begin_before_the_boot(old / cache.name, time.time())
        kill(running, "everything", random.Random(0))
        assert not running.left(GRACE_S)
    for folder, status, said in ((old, 1, "this node was restarted since"), (caches, 0, "brought to their files")):
        done = subprocess.run(
            ["mpiio-ext", "delegates", "recover", str(folder)],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == status and (done.stdout + done.stderr).count(said) == 2, done
        assert (files / "checkpoint0").exists() == (status == 0)
    assert len(list(old.iterdir())) == 2
    assert whole(files / "checkpoint0") == checkpoint(0)


OPEN = """
import os, sys, time
from mpi4py import MPI

comm, page, pages, path = MPI.COMM_WORLD, 16384, 40, sys.argv[1] + "/file"
fh = MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_RDWR)
def write(step):
    at = (step * comm.size + comm.rank) * page * pages
    fh.Write_at(at, bytes([1 + step * comm.size + comm.rank]) * (page * pages))
write(0)
comm.Barrier()
if comm.rank == 0:
    print("written 0", flush=True)
while not os.path.exists(sys.argv[2]):
    time.sleep(0.01)
write(1)
comm.Barrier()
fh.Close()
comm.Barrier()
if comm.rank == 0:
    print("closed", flush=True)
"""


@pytest.mark.parametrize(
    ("who", "parts"), [("delegate", ""), ("both", PARTS[1]), *slow(("both", ""), ("delegate", PARTS[1]))]
)
def test_while_an_open_file_is_written(tmp_path: pathlib.Path, who: str, parts: str) -> None:
    """Level replica: its pages are written since nothing comes; then one of its delegates is killed in the middle."""
    for seed in range(fuzz.examples(2, least=1)):
        (folder := tmp_path / str(seed)).mkdir()
        (files := folder / "files").mkdir()
        hints = (
            "*:mpiox_delegates=2:mpiox_delegate_cache=8m:mpiox_delegate_page=16k:striping_unit=16k:"
            f"mpiox_delegate_ack=replica:mpiox_close=staged:{parts}mpiox_drain_rate=300k"
        )
        env = {**preload_environment(), "MPIOX_HINTS": hints, "MPIOX_RANKS_PER_NODE": "1"}
        command = [str(launcher()), "-n", "2", "python", "-c", OPEN, str(files), str(folder / "go")]
        with job(command, folder / "log", env) as running:
            running.wait_for("written 0", LIMIT_S)
            until = time.monotonic() + LIMIT_S
            while not (left := dirty_of(files)) or left[0] == left[1]:
                assert time.monotonic() < until, running.text()
            assert 0 < left[0] < left[1], "all of it is written: the kill is too late"
            kill(running, who, random.Random(f"open {who} {seed}{parts}"))
            (folder / "go").touch()
            assert running.status(2 * LIMIT_S) == 0, running.text()
            assert "closed" in running.text() and not running.left(GRACE_S), running.text()
            assert "lost" not in running.text(), running.text()
        assert names(files) == {"file"}
        assert whole(files / "file") == b"".join(bytes([1 + part]) * (16384 * 40) for part in range(4))


def dirty_of(files: pathlib.Path) -> tuple[int, int] | None:
    """Return the dirty bytes of the file in a folder, and all that were deposited in the first step; None: not open."""
    found = [
        file.dirty_bytes
        for item in delegates_status()
        for file in item.files
        if file.path == f"{files}/.file.staging" and not file.replica
    ]
    return (sum(found), 2 * 16384 * 40) if found else None


#: Of `small_disk`: two caches, and little else.
DISK_KIB = 5 << 10


FULL = [*(("caches", who) for who in WHO[:5]), *(("files", who) for who in ("everything", "rank", "launcher"))]


@pytest.mark.parametrize(
    ("full", "who", "parts", "times"),
    [
        *slow(("files", "everything", PARTS[0], 1)),
        ("caches", "both", PARTS[0], 1),
        ("files", "everything", PARTS[1], 1),
        *slow(*((*each, parts, 25) for parts in PARTS for each in FULL)),
    ],
)
def test_deaths_on_full_disks(
    small_disk: pathlib.Path, tmp_path: pathlib.Path, full: str, who: str, parts: str, times: int
) -> None:
    for seed in range(1, times + 1):
        deadline_s = time.monotonic() + LIMIT_S
        while shutil.disk_usage(small_disk).used > 1 << 20:  # who was killed holds caches for a moment
            assert time.monotonic() < deadline_s, list(small_disk.rglob("*"))
            time.sleep(0.05)
        recovered = die(tmp_path / str(seed), who, seed, parts, small_disk, full)
        assert recovered > 0 or full != "files"


@pytest.mark.slow
@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("who", WHO)
def test_many_deaths(tmp_path: pathlib.Path, who: str, parts: str) -> None:
    """A hundred moments of each kind, a third of them when most is closed, or all is written."""
    for seed in range(1, 101):
        die(tmp_path / str(seed), who, seed, parts, within_s=0.2 if seed % 3 else 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """A job that opens its files again while they drain; who is killed, when so many lines are told and a moment later.

    finishes: the ranks do not wait for the kill at their end.
    """

    who: str
    parts: str
    has_caches: bool
    rate: str
    lines: int
    finishes: bool
    seed: int

    @property
    def loses(self) -> bool:
        """Whether what was closed may be lost: caches in memory, and nobody is left who can write it."""
        return not self.has_caches and (self.who == "everything" or (self.who == "both" and self.finishes))


def drawn(seed: int) -> Again:
    """Draw a job."""
    rng = random.Random(f"again {fuzz.seed()} {seed}")
    return Again(
        who=rng.choice(WHO[:5]),
        parts=rng.choice(PARTS),
        has_caches=rng.random() < 0.6,
        rate=rng.choice(("1", "50k", "300k")),
        lines=rng.randrange(1, 24),
        finishes=rng.random() < 0.25,
        seed=rng.randrange(1 << 30),
    )


def generations(told: list[str]) -> dict[int, dict[str, int]]:
    """Return the last generation of each file that was begun ("open"), read, synced and closed; -1: none."""
    found: dict[int, dict[str, int]] = {}
    for word, number, generation in (line.split() for line in told if line != "done"):
        found.setdefault(int(number), {"open": -1, "read": -1, "synced": -1, "closed": -1})[word] = int(generation)
    return found


def wrong_with(files: pathlib.Path, number: int, last: dict[str, int], *, loses: bool) -> str:
    """Return what a file lacks of what was promised; "": nothing. What has begun since may be there in part."""
    path, hidden = files / f"checkpoint{number}", files / f".checkpoint{number}.staging"
    closed = -1 if loses else last["closed"]
    if closed >= 0 and (not path.exists() or list(files.glob(f"{hidden.name}*"))):
        return f"checkpoint{number} {last} has no name, or its staging name too"
    if (promised := max(last["synced"], closed)) < 0:
        return ""
    path = path if path.exists() else hidden
    if not path.exists():
        return f"checkpoint{number} {last} is not there"
    if closed == last["open"] and subfiles.is_index(path) and subfiles.read_index(path).size is None:
        return f"checkpoint{number} {last} is not whole by its index"
    data = np.frombuffer(subfiles.read(path), np.uint8)
    allowed = [np.frombuffer(checkpoint(number, one), np.uint8) for one in range(promised, last["open"] + 1)]
    if data.size != allowed[0].size:
        return f"checkpoint{number} {last} has {data.size} of {allowed[0].size} B"
    missing = np.flatnonzero(~np.any([data == one for one in allowed], axis=0))
    return f"checkpoint{number} {last} lacks {missing.size} B from {missing[0]} on" if missing.size else ""


def die_again(folder: pathlib.Path, again: Again) -> list[str]:
    """Play it; return what is wrong afterwards, with the text of the job."""
    rng = random.Random(again.seed)
    files, caches, told, go = (folder / name for name in ("files", "caches", "files.told", "files.go"))
    files.mkdir(parents=True)
    caches.mkdir()
    told.touch()
    more = f"mpiox_delegate_cache_dir={caches}:" if again.has_caches else ""
    hints = (
        f"*:mpiox_delegates=2:mpiox_delegate_cache=2m:mpiox_delegate_page=16k:striping_unit=16k:{more}"
        f"{again.parts}mpiox_close=staged:mpiox_drain_rate={again.rate}:mpiox_drain_patience=1"
    )
    command = [
        str(launcher()),
        "-n",
        str(RANKS),
        sys.executable,
        str(CHECKPOINTS),
        str(files),
        str(FILES),
        "0.05",
        str(again.seed),
    ]
    wrong = []
    with job(command, folder / "log", {**preload_environment(), "MPIOX_HINTS": hints}) as running:
        if again.finishes:
            go.touch()
        until = time.monotonic() + LIMIT_S
        while len(lines := told.read_text().splitlines()) < again.lines and "done" not in lines:
            if time.monotonic() > until or running.process.poll() is not None:
                return [f"{again}: it does not go on before the kill, status {running.process.poll()}", running.text()]
            time.sleep(0.005)
        time.sleep(rng.random() * 0.2)
        kill(running, again.who, rng)
        go.touch()
        status = running.status(LIMIT_S)
        if status is None or (status != 0 and again.who in ("delegate", "both")):
            wrong.append(f"status {status} (None: it goes on)")
        wrong += running.left(GRACE_S)
        recovered = [(path.name, recover_cache(path)) for path in sorted(caches.iterdir())]
        wrong += [f"{name} keeps {item}" for name, (_, failed) in recovered for item in failed if not item.waits]
        wrong += [f"left: {path.name}" for path in caches.iterdir()]
        last = generations(told.read_text().splitlines())
        wrong += filter(None, (wrong_with(files, number, last[number], loses=again.loses) for number in last))
        return [str(again), *wrong, *sorted(path.name for path in files.iterdir()), running.text()] if wrong else []


@pytest.mark.parametrize(
    ("who", "parts", "has_caches", "seed", "lines"),
    [
        ("delegate", PARTS[0], False, 1, 10),
        ("both", PARTS[1], True, 6, 3),
        *slow(("rank", PARTS[0], True, 1, 10)),
        ("everything", PARTS[0], True, 2, 6),
        *slow(
            ("both", PARTS[0], False, 3, 24),
            ("launcher", PARTS[0], True, 2, 6),
            ("both", PARTS[0], False, 1, 10),
            ("everything", PARTS[1], False, 6, 3),
        ),
    ],
)
def test_what_is_open_again_is_not_lost(
    tmp_path: pathlib.Path, who: str, parts: str, has_caches: bool, seed: int, lines: int
) -> None:
    """Line 10 of seed 1 and line 3 of seed 6 begin to write a file once more; line 6 of seed 2 begins to read one.

    At line 24, which does not come, all is closed: ranks end as soon as a delegate and its supervisor are dead.
    """
    again = Again(who=who, parts=parts, has_caches=has_caches, rate="50k", lines=lines, finishes=False, seed=seed)
    wrong = die_again(tmp_path / "job", again)
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_many_deaths_while_files_are_open_again(tmp_path: pathlib.Path, block: int) -> None:
    """Twenty-five of each block, of which each failure is told; MPIOX_TEST_SEED repeats them."""
    found = {}
    for seed in range(25 * block, 25 * block + 25):
        if wrong := die_again(tmp_path / str(seed), drawn(seed)):
            found[seed] = "\n".join(wrong)
        else:
            shutil.rmtree(tmp_path / str(seed))
    assert not found, f"seeds {list(found)}\n" + "\n\n".join(found.values())
