"""The arbiter against another user of the machine: copies, sizes, links, pipes, foreign and large files.

The other user is nobody (65534). Its files are made by programs that run as that user, so that the test is refused what
the user would be refused. Skipped where the tests may not become another user.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from mpiio_ext.delegates.arbiter import announcements, expired, mapfile, settings
from mpiio_ext.delegates.arbiter.mapfile import Map, MapError
from mpiio_ext.delegates.arbiter.placement import place
from mpiio_ext.delegates.arbiter.programs import Programs
from mpiio_ext.delegates.arbiter.service import Arbiter, is_served
from mpiio_ext.delegates.arbiter.settings import Settings
from mpiio_ext.delegates.arbiter.shares import shared_out
from mpiio_ext.delegates.arbitration import Size
from mpiio_ext.delegates.arbitration.jobs import Grant, Job, Machine
from support import cbuild, strangers
from support.strangers import AS_NOBODY, NOBODY, PYTHON


def text_of(
    job: str,
    *,
    pid: int,
    started: int | None = None,
    ranks: int = 4,
    nodes: int = 2,
    delegates: int = 4,
    program: str = "app",
    applied: int = 0,
    system: tuple[str, int] | None = None,
) -> str:
    """Return what the library writes."""
    boot, processes = system or announcements.here()
    return (
        f"mpiox-job 1\njob {job}\nhost node\nboot {boot}\nprocesses {processes}\npid {pid}\n"
        + (f"started {started}\n" if started is not None else "")
        + f"ranks {ranks}\nnodes {nodes}\ndelegates {delegates}\nprogram {program}\nscheduler_job -\n"
        f"applied {applied}\n"
    )


@pytest.fixture()
def folder(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """An arbiter's folder as documented, that another user can reach."""
    strangers.need()
    path = pathlib.Path("/tmp") / f"mpiio-ext-arbiter-{os.getpid()}-{tmp_path.name[-20:]}"
    (path / "jobs").mkdir(parents=True)
    path.chmod(0o755)
    (path / "jobs").chmod(0o1777)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def as_nobody(code: str, *arguments: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run Python code as the other user."""
    return subprocess.run(
        [*PYTHON, code, *map(str, arguments)], check=check, timeout=60, capture_output=True, text=True
    )


def put(path: pathlib.Path, text: str) -> None:
    """Write a file as the other user."""
    as_nobody("import sys; open(sys.argv[1], 'w').write(sys.argv[2])", path, text)


@pytest.fixture()
def sleeper() -> Iterator[int]:
    """A live process of the other user: not before it says so, since it is root's until setpriv has changed that."""
    process = subprocess.Popen([*AS_NOBODY, "sh", "-c", "echo; exec sleep 300"], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None and process.stdout.readline() == b"\n"
        yield process.pid
    finally:
        process.kill()
        process.communicate()


def own(folder: pathlib.Path, job: str = "mine", **more: int) -> pathlib.Path:
    path = folder / "jobs" / job
    path.write_text(text_of(job, pid=os.getpid(), started=announcements.started(os.getpid()), **more))
    return path


# ---- what another user can do ---------------------------------------------------------------------------------------


def test_a_copied_announcement_changes_nothing(folder: pathlib.Path) -> None:
    """Under its own name, under another one, and with 100,000 nodes: the process that it names is not its owner's."""
    lines: list[str] = []
    with Arbiter(folder, Settings(io_nodes=4, policy="size"), lines.append) as arbiter:
        mine = own(folder)
        arbiter.step()
        assert arbiter.map.jobs == {"mine": (0, 1, 2, 3)}
        text = mine.read_text()
        put(folder / "jobs" / "copy", text)
        put(folder / "jobs" / "renamed", text.replace("job mine\n", "job renamed\n"))
        put(
            folder / "jobs" / "large",
            text.replace("job mine\n", "job large\n")
            .replace("ranks 4", "ranks 200000")
            .replace("nodes 2", "nodes 100000"),
        )
        for _ in range(3):
            assert not arbiter.step()
        assert mapfile.read(folder).jobs == {"mine": (0, 1, 2, 3)}
    for name in ("copy", "renamed", "large"):
        told = [line for line in lines if f"/jobs/{name}:" in line]
        assert len(told) == 1 and "65534" in told[0] and "refused" in told[0], lines
    assert as_nobody("import os, sys; os.unlink(sys.argv[1])", mine, check=False).returncode != 0


def test_another_users_own_job_gets_a_share(folder: pathlib.Path, sleeper: int) -> None:
    """A live process of its own, whatever it asks for: half of the I/O nodes, alone on them with all its jobs."""
    with Arbiter(folder, Settings(io_nodes=4, policy="size"), lambda _: None) as arbiter:
        own(folder)
        arbiter.step()
        for number in range(6):
            put(
                folder / "jobs" / f"his{number}",
                text_of(f"his{number}", pid=sleeper, ranks=200_000, nodes=100_000, delegates=4),
            )
            arbiter.step()
            assert len(arbiter.map.jobs) == number + 2
            mine = arbiter.map.jobs["mine"]
            his = {node for job, nodes in arbiter.map.jobs.items() if job != "mine" for node in nodes}
            assert len(mine) == 2 and not his & set(mine), arbiter.map.jobs
        settings.write(folder, Settings(io_nodes=4, policy="size", jobs_per_user=2))
        arbiter.step()
        assert sorted(arbiter.map.jobs) == ["his0", "his1", "mine"]


def test_what_another_user_plants(folder: pathlib.Path, sleeper: int) -> None:
    """Links, pipes, large files, numbers that cannot be, generations: nothing changes, one line for each."""
    lines: list[str] = []
    with Arbiter(folder, Settings(io_nodes=4, compute_nodes=64), lines.append) as arbiter:
        mine = own(folder)
        arbiter.step()
        before = mapfile.read(folder)
        as_nobody(
            "import os, sys; os.chdir(sys.argv[1]); os.symlink('mine', 'link'); os.mkfifo('pipe'); "
            "os.symlink('/etc/passwd', 'passwd'); open('big', 'w').truncate(1 << 40); os.mkdir('folder')",
            folder / "jobs",
        )
        os.link(mine, folder / "jobs" / "hard")  # as root: another user may where fs.protected_hardlinks is 0
        for name, numbers in {
            "nodes": {"nodes": 5, "ranks": 4},
            "ranks": {"ranks": 2**31 - 1},
            "delegates": {"delegates": 577},
            "applied": {"applied": 2**62},
        }.items():
            put(folder / "jobs" / name, text_of(name, pid=sleeper, **numbers))
        put(folder / "jobs" / "escape", text_of("escape", pid=sleeper, program="\x1b[2J"))
        put(folder / "jobs" / "x\x1b[2J", "x")
        (folder / "jobs" / "hard").unlink()
        for _ in range(3):
            arbiter.step()
        assert mapfile.read(folder) == before
    names = ("link", "pipe", "passwd", "big", "folder", "nodes", "ranks", "delegates", "applied", "escape")
    for name in names:
        assert sum(f"/jobs/{name}:" in line for line in lines) == 1, (name, lines)
    assert not any("\x1b" in line for line in lines)


@pytest.mark.slow
def test_a_flood_is_one_line(folder: pathlib.Path) -> None:
    lines: list[str] = []
    with Arbiter(folder, Settings(io_nodes=4), lines.append) as arbiter:
        own(folder)
        as_nobody("import os, sys; os.chdir(sys.argv[1]); [open(f'f{i}', 'w') for i in range(3000)]", folder / "jobs")
        for _ in range(3):
            arbiter.step()
        assert list(arbiter.map.jobs) == ["mine"]
    assert len(lines) < 20 and any("more" in line for line in lines), len(lines)


def test_a_lease_stops_nothing(folder: pathlib.Path) -> None:
    """Whoever holds a lease on his file makes opening it fail, or wait for a minute where it may: his file alone."""
    code = (
        "import fcntl, os, signal, sys; signal.signal(signal.SIGIO, signal.SIG_IGN); "
        "file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o644); "
        "fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK); print(flush=True); signal.pause()"
    )
    held = subprocess.Popen([*PYTHON, code, folder / "jobs" / "held"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    lines: list[str] = []
    try:
        assert held.stdout is not None
        if held.stdout.readline() != b"\n":
            pytest.skip("the file system has no leases")
        with Arbiter(folder, Settings(io_nodes=4), lines.append) as arbiter:
            own(folder)
            for _ in range(2):
                arbiter.step()
            assert list(arbiter.map.jobs) == ["mine"]
    finally:
        held.kill()
        held.communicate()
    assert any("/jobs/held: refused" in line and "lease" in line for line in lines), lines


def test_deaths_without_end(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs that are dead and are announced again and again: few lines, one file written in a look."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    lines: list[str] = []
    written: list[pathlib.Path] = []
    whole = expired.write_whole

    def counted(path: pathlib.Path, *what: Any, **how: Any) -> int:
        written.append(path)
        return whole(path, *what, **how)

    monkeypatch.setattr(expired, "write_whole", counted)
    with Arbiter(folder, Settings(io_nodes=4), lines.append) as arbiter:
        own(folder)
        for look in range(3):
            as_nobody(
                "import os, pathlib, sys; os.chdir(sys.argv[1])\n"
                "for i in range(40): pathlib.Path(f'j{i}').write_text(sys.argv[2].replace('NUMBER', str(i)))",
                folder / "jobs",
                text_of("jNUMBER", pid=gone.pid),
            )
            arbiter.step()
            assert len(written) == look + 1 and arbiter.map.jobs == {"mine": (0, 1, 2, 3)}
    assert len(lines) < 20, lines


def test_names_without_end() -> None:
    """Programs are what jobs say: a user who thinks of new ones all the time fills neither the log nor the memory."""
    lines: list[str] = []
    known = Programs(Settings(io_nodes=4, curves={"app": {1: 10.0, 2: 20.0}}), lines.append)
    assert not any(known.curve(f"p{number}", 1 + number % 4) for number in range(1000))
    assert known.curve("app", 4) is known.curve("app", 4) is not None
    assert len(lines) == 64 and "app" in lines[0] and "not named" in lines[-1], lines


def test_a_generation_of_many_jobs_is_a_short_line(folder: pathlib.Path) -> None:
    lines: list[str] = []
    with Arbiter(folder, Settings(io_nodes=4), lines.append) as arbiter:
        for number in range(40):
            own(folder, f"job{number:02}")
        arbiter.step()
        assert len(arbiter.map.jobs) == 40
    assert lines[-1].startswith("generation 1: job00 ") and lines[-1].endswith(", 8 more"), lines


def test_what_became_of_the_dead_is_not_followed(folder: pathlib.Path) -> None:
    """A dead job's name that has become a link, to where the arbiter must not look or would wait."""
    found = expired.Expired(folder)
    found.add({"dead": 1})
    os.symlink(folder / "elsewhere", folder / "jobs" / "dead")
    assert found.add({"other": 2}) == ["other"]
    assert found.times == {"dead": 1, "other": 2}


def test_nobody_else_can_take_the_lock(folder: pathlib.Path) -> None:
    """Whoever may open the lock's file can hold it, also by reading: no arbiter would start."""
    with Arbiter(folder, Settings(io_nodes=4), lambda _: None):
        assert is_served(folder)
    taken = as_nobody("import fcntl, sys; fcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX)", folder / ".lock", check=False)
    assert "PermissionError" in taken.stderr
    assert is_served(folder) is False


def test_a_process_number_that_was_given_again(folder: pathlib.Path) -> None:
    """Same number, another start: the job is gone."""
    with Arbiter(folder, Settings(io_nodes=4), lambda _: None) as arbiter:
        start = announcements.started(os.getpid())
        assert start is not None
        (folder / "jobs" / "old").write_text(text_of("old", pid=os.getpid(), started=start - 1))
        own(folder)
        arbiter.step()
        assert list(arbiter.map.jobs) == ["mine"]


def test_another_host_is_believed_by_the_owner(folder: pathlib.Path) -> None:
    """Whose processes cannot be seen: the owner of the file has the share, whatever process the text names."""
    with Arbiter(folder, Settings(io_nodes=4, policy="size"), lambda _: None) as arbiter:
        own(folder)
        arbiter.step()
        put(folder / "jobs" / "far", text_of("far", pid=1, ranks=10**6, nodes=10**6, system=("elsewhere", 1)))
        arbiter.step()
        assert {job: len(nodes) for job, nodes in arbiter.map.jobs.items()} == {"far": 2, "mine": 2}
        found = {each.job: each.uid for each in announcements.read_all(folder)[0]}
        assert found == {"far": NOBODY, "mine": os.geteuid()}


def test_the_arbiters_own_files(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """A map or a draft that is a link or a pipe is neither read nor written through; a folder for all is named."""
    victim = tmp_path / "victim"
    victim.write_text("whole")
    (folder / ".map").symlink_to(victim)
    (folder / ".settings.json").symlink_to(victim)
    (folder / ".expired.json").symlink_to(victim)
    mapfile.write(folder, Map(3, {"a": (1,)}))
    settings.write(folder, Settings(io_nodes=4))
    assert victim.read_text() == "whole" and mapfile.read(folder) == Map(3, {"a": (1,)})
    usual = os.umask(0o077)
    mapfile.write(folder, Map(4, {"a": (1,)}))
    os.umask(usual)
    as_nobody("import sys; open(sys.argv[1])", folder / "map")
    (folder / "map").unlink()
    os.mkfifo(folder / "map")
    with pytest.raises(MapError, match="plain file"):
        mapfile.read(folder)
    (folder / "map").unlink()
    lines: list[str] = []
    (folder / "jobs").chmod(0o777)
    with Arbiter(folder, None, lines.append):
        pass
    assert any("chmod 1777" in line for line in lines), lines


# ---- the job's side -------------------------------------------------------------------------------------------------


def test_a_job_among_strangers(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """In C: drafts truncate nothing, foreign announcements are not taken for one's own, foreign maps not followed."""
    program = cbuild.program("arbiter/test_strangers.c", "arbiter", "common")
    victim = tmp_path / "victim"
    victim.write_text("whole")
    cbuild.passes(program, folder, victim)
    assert victim.read_text() == "whole"
    assert not [entry.name for entry in (folder / "jobs").iterdir() if not stat.S_ISLNK(entry.lstat().st_mode)]


# ---- shares ---------------------------------------------------------------------------------------------------------


def shares(asked: dict[str, tuple[int, int]], pool: int, share: float | None) -> dict[str, int]:
    jobs = [Job(name=name, compute_nodes=nodes, processes=nodes) for name, (_, nodes) in asked.items()]

    def ask(some: Sequence[Job], io_nodes: int) -> Mapping[str, Grant]:
        machine = Machine(io_nodes=io_nodes, compute_nodes=None, direct=False, most=io_nodes, divisible=False)
        return Size().allocate(some, machine).grants

    found = shared_out(jobs, {name: uid for name, (uid, _) in asked.items()}, pool, share, ask)
    return {name: grant.io_nodes for name, grant in found.items()}


def test_shares() -> None:
    """One user has all; nobody is held below its share by what another one claims; nothing is left unused."""
    assert shares({"a": (1, 7), "b": (1, 1)}, 8, None) == {"a": 7, "b": 1}
    assert shares({"a": (1, 7), "b": (2, 1)}, 8, None) == {"a": 4, "b": 4}
    assert shares({"a": (1, 7), "b": (2, 1)}, 8, 1.0) == {"a": 7, "b": 1}
    assert shares({"a": (1, 7), "b": (2, 1)}, 8, 0.75) == {"a": 6, "b": 2}
    assert shares({"a": (1, 7), "b": (2, 1)}, 8, 0.1) == {"a": 1, "b": 7}
    assert sum(shares({"a": (1, 9), "b": (2, 1), "c": (3, 1)}, 9, None).values()) == 9
    assert shares({"a": (1, 9), "b": (2, 9), "c": (3, 1)}, 8, 0.25) == {"a": 2, "b": 2, "c": 4}


def test_sharing_stays_among_a_users_jobs() -> None:
    """More jobs than nodes: those of one user share among themselves."""
    counts = {"a": 2, **{f"b{n}": 1 for n in range(5)}}
    users = {job: 1 if job == "a" else 2 for job in counts}
    found = place(counts, dict.fromkeys(counts, 4), {"a": (2, 3)}, 4, users)
    assert found["a"] == (2, 3)
    assert not {node for job, nodes in found.items() if job != "a" for node in nodes} & {2, 3}


def test_it_lives_on(folder: pathlib.Path) -> None:
    """The command itself, with a folder full of traps: it serves, and ends when it is told to."""
    as_nobody(
        "import os, sys; os.chdir(sys.argv[1]); os.mkfifo('pipe'); os.symlink('/dev/zero', 'zero'); "
        "open('big', 'w').truncate(1 << 40)",
        folder / "jobs",
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "mpiio_ext", "delegates", "arbiter", "--dir", str(folder), "--io-nodes", "4"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        own(folder)
        until = time.monotonic() + 60
        while "mine" not in mapfile.read(folder).jobs and time.monotonic() < until and process.poll() is None:
            time.sleep(0.05)
        assert process.poll() is None and mapfile.read(folder).jobs == {"mine": (0, 1, 2, 3)}
    finally:
        process.terminate()
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, out
