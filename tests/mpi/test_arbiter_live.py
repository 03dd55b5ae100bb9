"""The arbiter and running jobs: I/O nodes change hands while ranks write and read, and no byte is lost.

Source. Arbitration paper, Section 4 (its own clients read the mapping every 10 s; its remapping was never shown).
"""

from __future__ import annotations

import json
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from mpiio_ext.delegates.arbiter import announcements, mapfile, settings
from mpiio_ext.delegates.arbiter.mapfile import Map
from mpiio_ext.delegates.arbiter.settings import Settings
from support.launch import base_environment, launcher, python_run
from support.marks import slow

pytestmark = pytest.mark.mpi

PROGRAM = pathlib.Path(__file__).parents[1] / "programs" / "delegates_remapped.py"
POOL = 4
#: Units of a page: else all that the programs write lies in two or three page ranges.
SMALL = "mpiox_delegate_page=4k:mpiox_delegate_cache=600k:striping_unit=4096"


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """The arbiter's folder."""
    (tmp_path / "arbiter" / "jobs").mkdir(parents=True)
    return tmp_path / "arbiter"


@pytest.fixture
def arbiter(folder: pathlib.Path) -> Iterator[subprocess.Popen[str]]:
    """Run ``mpiio-ext delegates arbiter``."""
    command = [sys.executable, "-m", "mpiio_ext", "delegates", "arbiter", "--dir", str(folder), "--io-nodes", str(POOL)]
    with (folder.parent / "arbiter.log").open("w") as log:
        process = subprocess.Popen([*command, "--policy", "size"], stdout=log, stderr=log, text=True)
        try:
            deadline = time.monotonic() + 60
            while mapfile.read(folder).generation == 0 and time.monotonic() < deadline:
                time.sleep(0.05)
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def start(
    folder: pathlib.Path,
    name: str,
    ranks: int,
    seconds: float,
    *stop: str,
    mode: str,
    least: int,
    program: pathlib.Path = PROGRAM,
    delegates: int = POOL,
    **more: str,
) -> subprocess.Popen[str]:
    """Start a job that follows the arbiter."""
    hints = f"*:mpiox_delegates={delegates}:mpiox_delegate_mode={mode}:{SMALL}:mpiox_arbiter={folder}"
    words = [str(program), str(folder.parent / name), str(seconds), str(least), *stop]
    launch = [str(launcher()), "-n", str(ranks), sys.executable, *words]
    environment = {**base_environment(), "MPIOX_HINTS": hints, **more}
    return subprocess.Popen(launch, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(job: subprocess.Popen[str]) -> dict[str, object]:
    """Return what the job printed; it must have read and written what it should."""
    try:
        out, err = job.communicate(timeout=240)
    except subprocess.TimeoutExpired:
        job.kill()
        out, err = job.communicate()
        pytest.fail(f"the job hangs\n{out}\n{err}")
    assert job.returncode == 0, err
    found: dict[str, object] = json.loads(out.splitlines()[-1])
    assert found["wrong_reads"] == 0 and found["same"], found
    return found


@pytest.mark.parametrize("mode", ["spawn", *slow("thread")])
def test_three_jobs_come_and_go(
    extension: str,
    folder: pathlib.Path,
    arbiter: subprocess.Popen[str],
    mode: str,
    record_property: Callable[[str, object], None],
) -> None:
    """Jobs start and end at different times, and policy and pool change: each is re-mapped ten times or more."""
    jobs: list[subprocess.Popen[str]] = []
    applied: dict[str, set[int]] = {}
    noticed: list[int] = []
    started: dict[str, int] = {}
    had: dict[str, set[tuple[int, ...]]] = {}
    stops = [folder.parent / f"stop{number}" for number in range(3)]
    begun = time.monotonic()
    turn = 0
    while time.monotonic() - begun < 140 and (len(jobs) < 3 or any(job.poll() is None for job in jobs)):
        if len(jobs) < 3 and time.monotonic() - begun > 2 * len(jobs):
            name, stop = f"file{len(jobs)}", str(stops[len(jobs)])
            jobs.append(start(folder, name, 2, 4, stop, mode=mode, least=200))
        turn += 1
        policy = ("size", "process", "one", "mckp")[turn % 4]
        settings.write(folder, Settings(io_nodes=1 + turn // 4 % POOL, policy=policy))  # each policy with each pool
        time.sleep(0.3)
        content = mapfile.read(folder)
        for job in announcements.read_all(folder)[0]:
            started[job.job] = job.started or 0
            applied.setdefault(job.job, set()).add(job.applied)
            had.setdefault(job.job, set()).add(content.jobs.get(job.job, ()))
            noticed += [job.noticed_us] if job.applied and job.noticed_us is not None else []
        # Whoever has been given other I/O nodes often enough ends, one after the other; the others may have more then.
        if len(applied) == 3:
            order = sorted(started, key=started.get)
            often = [len(applied[name] - {0}) >= 10 and len(had[name]) >= 3 for name in order]
            ends = [stop for stop, enough in zip(stops, often, strict=True) if enough and not stop.exists()]
            for stop in ends[:1]:
                stop.touch()
    found = [finish(job) for job in jobs]
    assert len(applied) == 3
    assert all(len(generations - {0}) >= 10 for generations in applied.values()), applied
    assert all(len(nodes) >= 3 for nodes in had.values()), had
    for job in found:
        delegates = job["delegates"]
        assert isinstance(delegates, list) and len(delegates) == POOL
        assert sum(d["bytes_written"] > 0 for d in delegates) >= 2, delegates  # more than one has served
        assert job["delegates_wrote"] == job["written"], job  # each byte once, by one of them
        assert sum(d["moved_in"] for d in delegates) >= 100, delegates
        changed = sum(d["moved_in"] for d in delegates) - sum(d["moved_out"] for d in delegates)
        assert abs(changed) <= 1, delegates  # one may be between two delegates
    assert announcements.read_all(folder) == ([], [])  # they have left
    assert noticed  # how soon: reported, since the machine may be busy
    record_property("noticed_ms", [statistics.median(noticed) / 1e3, max(noticed) / 1e3])
    record_property("longest_access_s", [job["longest_access_s"] for job in found])
    print({name: sorted(nodes) for name, nodes in had.items()})
    print(
        f"maps noticed after {statistics.median(noticed) / 1e3:.1f} ms (median), {max(noticed) / 1e3:.1f} at most; "
        f"longest accesses {', '.join(format(job['longest_access_s'], '.2f') for job in found)} s"
    )


def give_nodes(folder: pathlib.Path, job: subprocess.Popen[str], interval: float) -> None:
    """Give a job other I/O nodes until it ends, or hangs."""
    generation = 0
    while job.poll() is None and generation * interval < 60:
        generation += 1
        names = [entry.name for entry in (folder / "jobs").iterdir() if not entry.name.startswith(".")]
        nodes = [(0,), (0, 1, 2, 3), (3,), (1, 2), (2, 0)][generation % 5]
        mapfile.write(folder, Map(generation, dict.fromkeys(names, nodes)))
        time.sleep(interval)


@pytest.mark.slow
def test_a_pool_of_256(extension: str, folder: pathlib.Path) -> None:
    """The last of 256 I/O nodes serves like the first: a job has all of them, that one alone, and the last ones."""
    job = start(folder, "file", 1, 4, mode="thread", least=400, delegates=256)
    deadline = time.monotonic() + 120
    for generation in range(1, 1000):
        if job.poll() is not None or time.monotonic() > deadline:
            break
        nodes = [(255,), tuple(range(256)), tuple(range(200, 256))][generation % 3]
        names = [entry.name for entry in (folder / "jobs").iterdir() if not entry.name.startswith(".")]
        mapfile.write(folder, Map(generation, dict.fromkeys(names, nodes)))
        time.sleep(0.5)
    found = finish(job)
    assert isinstance(found["remapped_ranges"], int) and found["remapped_ranges"] >= 400
    assert isinstance(found["delegates"], list) and len(found["delegates"]) == 256
    assert found["delegates"][255]["moved_in"] > 0 and found["delegates_wrote"] == found["written"], found


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [3, 1])
def test_between_nodes(extension: str, folder: pathlib.Path, ranks: int) -> None:
    """Every rank is a node of its own: page ranges move there and back while accesses are on their way."""
    job = start(folder, "file", ranks, 5, mode="thread", least=500, MPIOX_RANKS_PER_NODE="1")
    give_nodes(folder, job, 0.25)
    found = finish(job)
    assert isinstance(found["remapped_ranges"], int) and found["remapped_ranges"] >= 500
    assert isinstance(found["delegates"], list)
    assert all(delegate["moved_in"] > 0 and delegate["moved_out"] > 0 for delegate in found["delegates"]), found


def test_collected_writes(extension: str, folder: pathlib.Path) -> None:
    """What is collected for an old owner never comes after what was written to the new one."""
    program = PROGRAM.with_name("delegates_remapped_behind.py")
    job = start(folder, "file", 2, 5, mode="thread", least=500, program=program, MPIOX_RANKS_PER_NODE="1")
    give_nodes(folder, job, 0.03)
    out, err = job.communicate(timeout=240)
    assert job.returncode == 0, err
    found = json.loads(out.splitlines()[-1])
    assert found["old"] == 0 and found["remapped_ranges"] >= 500, found


@pytest.mark.slow
def test_opened_and_closed_all_the_time(extension: str, folder: pathlib.Path) -> None:
    """Each rank for itself: no page range is left without an owner, no old page with its next one."""
    program = PROGRAM.with_name("delegates_remapped_alone.py")
    job = start(folder, "file", 3, 6, mode="thread", least=0, program=program)
    give_nodes(folder, job, 0.2)
    if job.poll() is None:
        job.kill()
        pytest.fail("the job hangs")
    out, err = job.communicate(timeout=240)
    assert job.returncode == 0, err
    lines = [json.loads(text) for text in re.findall(r"\{.*?\}", out)]  # MPICH's mpiexec may lose where lines end
    assert len(lines) == 3 and all(line["wrong_reads"] == 0 and line["opened"] > 0 for line in lines), lines


def test_bad_maps_change_nothing(extension: str, folder: pathlib.Path) -> None:
    """A map that is cut, changed or old is said once, and the last good one stays in force."""
    job = start(folder, "file", 1, 15, mode="thread", least=1)  # seconds: this test takes 2, and waits for a CPU
    deadline = time.monotonic() + 60
    names: list[str] = []
    while not names and time.monotonic() < deadline:
        names = [entry.name for entry in (folder / "jobs").iterdir() if not entry.name.startswith(".")]
        time.sleep(0.05)
    mapfile.write(folder, Map(7, dict.fromkeys(names, (2,))))
    while time.monotonic() < deadline and announcements.read_all(folder)[0][0].applied != 7:
        time.sleep(0.05)
    good = Map(8, dict.fromkeys(names, (1,))).encode()
    old = Map(3, dict.fromkeys(names, (0,))).encode()
    for bad in (good[:-5], good.replace(b" 1\n", b" 3\n"), b"", old, b"\xff" * 99):
        (folder / ".map").write_bytes(bad)
        (folder / ".map").replace(folder / "map")
        time.sleep(0.3)
        assert announcements.read_all(folder)[0][0].applied == 7
    (folder / "map").unlink()
    out, err = job.communicate(timeout=200)
    assert job.returncode == 0, err
    assert json.loads(out.splitlines()[-1])["same"]
    lines = [line for line in err.splitlines() if "/map:" in line]
    assert len(lines) == 3, err  # no map, an older one, none at all: once each
    assert all("stay as they are" in line for line in lines)


def test_no_folder(extension: str, tmp_path: pathlib.Path) -> None:
    """A folder that is not there: a line says so, and the job goes on with all its delegates."""
    hints = f"*:mpiox_delegates=2:mpiox_delegate_mode=thread:mpiox_arbiter={tmp_path / 'nowhere'}"
    launch = python_run([PROGRAM, tmp_path / "file", "0.5", "0"], 2, env={"MPIOX_HINTS": hints})
    assert "nowhere" in launch.stderr and "keeps all its I/O delegates" in launch.stderr, launch.describe()


@pytest.mark.both
def test_world_rank_0_leads_no_file(extension: str, folder: pathlib.Path) -> None:
    """Another process announces the job, and it is gone when the job has ended."""
    program = PROGRAM.with_name("delegates_remapped_others.py")
    hints = f"*:mpiox_delegates=2:mpiox_delegate_mode=thread:{SMALL}:mpiox_arbiter={folder}"
    launch = python_run([program, folder.parent / "file", folder / "jobs"], 3, env={"MPIOX_HINTS": hints})
    found = json.loads(launch.stdout.splitlines()[-1])
    assert len(found["announced"]) == 1 and found["delegated_writes"] > 0, found
    assert announcements.read_all(folder) == ([], [])
