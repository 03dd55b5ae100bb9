"""The arbiter without jobs: announcements, decisions, settings, and its command line."""

from __future__ import annotations

import errno
import json
import os
import pathlib
import resource
import subprocess
import sys
import time
from typing import Any

import pytest

from mpiio_ext.delegates.arbiter import announcements, mapfile, settings
from mpiio_ext.delegates.arbiter.service import Arbiter, BusyError
from mpiio_ext.delegates.arbiter.settings import Settings
from mpiio_ext.delegates.arbitration.curves import Curve
from mpiio_ext.delegates.arbitration.store import Store
from mpiio_ext.errors import ArgumentError
from support.announcing import announce
from support.expected import Expected

# ---- announcements --------------------------------------------------------------------------------------------------


def test_announcements(tmp_path: pathlib.Path) -> None:
    (tmp_path / "jobs").mkdir()
    announce(tmp_path, "b", ranks=16)
    announce(tmp_path, "a", age_s=30)
    (tmp_path / "jobs" / "half").write_text("mpiox-job 1\njob half\n")
    (tmp_path / "jobs" / "other").write_bytes(b"\xff\xfe")
    found, others = announcements.read_all(tmp_path)
    assert [(item.job, item.ranks) for item in found] == [("a", 4), ("b", 16)]
    assert others == ["half", "other"]
    assert 29 < found[0].age_s < 60


def test_what_no_job_writes_harms_nobody(tmp_path: pathlib.Path) -> None:
    """Pipes, links, folders, large files, names that would spoil the map, numbers out of range: left out."""
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    announce(tmp_path, "fine")
    os.mkfifo(jobs / "pipe")
    (jobs / "link").symlink_to(jobs / "fine")
    (jobs / "nowhere").symlink_to(jobs / "gone")
    (jobs / "folder").mkdir()
    (jobs / "large").write_bytes(b"x" * 5000)
    announce(tmp_path, "two words")
    announce(tmp_path, "pid", pid=10**30)
    announce(tmp_path, "ranks", ranks=0)
    announce(tmp_path, "x" * 128)
    announce(tmp_path, "negative", applied=-1)
    (jobs / os.fsdecode(b"\xff")).write_text("mpiox-job 1\n")
    found, others = announcements.read_all(tmp_path)
    assert [item.job for item in found] == ["fine"] and len(others) == 11
    with Arbiter(tmp_path, Settings(io_nodes=4), lambda _: None) as arbiter:
        assert arbiter.step() and list(mapfile.read(tmp_path).jobs) == ["fine"]


def test_a_file_system_that_fails_ends_no_job(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Arbiter(tmp_path, Settings(io_nodes=4), lambda _: None) as arbiter:
        announce(tmp_path, "a")
        arbiter.step()

        def fail(*_: object) -> int:
            raise OSError(errno.ESTALE, "stale")

        with monkeypatch.context() as patched:
            patched.setattr(os, "open", fail)
            with pytest.raises(OSError, match="stale"):
                arbiter.step()
        assert not arbiter.step() and list(arbiter.map.jobs) == ["a"]


def test_a_dead_process_of_this_host_is_no_job(tmp_path: pathlib.Path) -> None:
    """What counts is the boot of the kernel and the space of process numbers, not the name of the host."""
    (tmp_path / "jobs").mkdir()
    boot, processes = announcements.here()
    assert boot and processes
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    announce(tmp_path, "container", pid=gone.pid, system=(boot, processes + 1))
    announce(tmp_path, "gone", pid=gone.pid, system=(boot, processes))
    announce(tmp_path, "here", system=(boot, processes))
    announce(tmp_path, "namesake", pid=gone.pid, system=("f" + boot[1:] + "0", processes))
    announce(tmp_path, "unknown", pid=gone.pid, system=("-", 0))
    found, _ = announcements.read_all(tmp_path)
    assert [item.job for item in found if announcements.is_gone(item)] == ["gone"] and len(found) == 5


# ---- decisions ------------------------------------------------------------------------------------------------------


def counts_of(arbiter: Arbiter) -> dict[str, int]:
    return {job: len(nodes) for job, nodes in arbiter.map.jobs.items()}


#: A job that announces itself, with what it says; settings that are in force from then on; a job that ends.
Event = tuple[str, dict[str, Any]] | Settings | str
FAST_AND_FLAT = {"fast": {1: 100.0, 2: 190.0, 4: 300.0}, "flat": {1: 50.0, 4: 51.0}}
#: Each job was measured with two I/O nodes or more.
TWO_OR_MORE = {"app": {2: 100.0, 4: 150.0}}
FAST_AND_SLOW = {"fast": {1: 100.0, 2: 200.0, 3: 300.0}, "slow": {1: 10.0, 2: 25.0, 3: 30.0}}
NOISY = FAST_AND_SLOW | {"fast": {1: 100.0, 2: [190.0, 200.0, 210.0], 3: [10.0, 300.0, 650.0]}}
NAMES = {"flow-3": {1: 10.0, 2: 20.0}, "large": {16: 500.0}, "other": {1: 5.0}}
TEN_EACH = {"app": {count: 10.0 * count for count in range(1, 9)}}
SHARING = {"fast": {1: 100.0, 2: 300.0, 3: 600.0}, "slow": {1: 10.0, 2: 11.0}}


def mckp(**more: Any) -> list[Event]:
    return [Settings(io_nodes=4, **{"curves": FAST_AND_SLOW, **more})]


def limited(**more: Any) -> list[Event]:
    return [Settings(io_nodes=8, curves=TEN_EACH, **more)]


#: The first settings, and what happens before each step.
SCENARIOS: dict[str, tuple[Settings, list[list[Event]]]] = {
    "jobs come and go": (
        Settings(io_nodes=5, curves=FAST_AND_FLAT),
        [
            [],
            [("one", {"program": "fast"})],
            [("two", {"program": "flat"})],
            [],
            [("three", {"program": "fast", "delegates": 2})],
            ["one"],
        ],
    ),
    # everybody has one, shared; MCKP has no allocation within the pool, SIZE decides, and the arbiter says so
    "more jobs than I/O nodes": (Settings(io_nodes=2), [[(f"job{number}", {}) for number in range(5)]]),
    # the pool has five for three jobs
    "no allocation": (
        Settings(io_nodes=5, curves=TWO_OR_MORE),
        [[("large", {"nodes": 6}), ("small", {"nodes": 2}), ("tiny", {"nodes": 2})]],
    ),
    # SIZE and STATIC count the compute nodes that jobs announce; a job that says nothing counts as one
    "sizes are compute nodes": (
        Settings(io_nodes=8, policy="size"),
        [
            [("a", {"nodes": 6, "ranks": 6}), ("b", {"nodes": 2, "ranks": 64})],
            [("b", {})],
            [Settings(io_nodes=8, policy="static", compute_nodes=16)],
        ],
    ),
    # weights, floor, hysteresis and confidence each change what the jobs get
    "settings of MCKP": (
        Settings(io_nodes=4, curves=FAST_AND_SLOW),
        [
            [("fast", {"program": "fast"}), ("slow", {"program": "slow"})],
            mckp(hysteresis=10.0, weights={"slow": 50.0}),
            mckp(migration_cost_s=600.0, horizon_s=600.0, weights={"slow": 10.0}),
            mckp(weights={"slow": 50.0}),
            mckp(floor=0.5),
            mckp(curves=NOISY),
            mckp(curves=NOISY, confidence=0.95),
        ],
    ),
    # no curves: whoever comes, those that fit keep what they have
    "live jobs of one kind": (
        Settings(io_nodes=3, compute_nodes=64),
        [[("c", {"nodes": 32})], [("d", {"nodes": 32})], [("b", {"nodes": 32})], ["d"]],
    ),
    "programs without a curve": (
        Settings(io_nodes=4, curves=NAMES),
        [
            [(name, {"program": program})]
            for name, program in {"a": "flow3", "b": "flow3", "c": "large", "d": "flow-3"}.items()
        ],
    ),
    # at most so many I/O nodes, and only numbers that divide its compute nodes
    "limits of a job": (
        Settings(io_nodes=8, curves=TEN_EACH),
        [[("a", {"nodes": 6})], limited(most=5), limited(divisible=True), limited(divisible=True, most=5)],
    ),
    # jobs that gain little share I/O node 0, the others have theirs alone; more unknown jobs than nodes fit, too
    "the shared I/O node": (
        Settings(io_nodes=4, curves=SHARING, shared_node=True),
        [
            [("f", {"program": "fast"})],
            [("s1", {"program": "slow"})],
            [("s2", {"program": "slow"})],
            [],
            [(f"u{number}", {"program": "unknown"}) for number in range(6)],
        ],
    ),
}


def happens(folder: pathlib.Path, event: Event) -> None:
    if isinstance(event, Settings):
        settings.write(folder, event)
    elif isinstance(event, str):
        (folder / "jobs" / event).unlink()
    else:
        announce(folder, event[0], **event[1])


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenarios(name: str, tmp_path: pathlib.Path, expected: Expected) -> None:
    """The I/O nodes of each job after each step, and the lines that the arbiter prints."""
    first, steps = SCENARIOS[name]
    lines: list[str] = []
    found = []
    with Arbiter(tmp_path, first, lines.append) as arbiter:
        for events in steps:
            for event in events:
                happens(tmp_path, event)
            changed = "" if arbiter.step() else "as before: "
            nodes = "; ".join(f"{job} {','.join(map(str, own))}" for job, own in arbiter.map.jobs.items())
            found.append(f"{changed}{nodes or 'no jobs'}")
        assert (mapfile.read(tmp_path), settings.read(tmp_path)) == (arbiter.map, arbiter._settings)
    expected({"maps": found, "lines": lines})


def test_static_leaves_running_jobs_alone(tmp_path: pathlib.Path) -> None:
    """Its numbers fall as jobs come when the whole machine is not known: what runs keeps what it has all the same."""
    lines: list[str] = []
    with Arbiter(tmp_path, Settings(io_nodes=8, policy="static"), lines.append) as arbiter:
        for name, nodes, now in (("a", 8, {"a": 8}), ("b", 8, {"a": 8, "b": 1}), ("c", 16, {"a": 8, "b": 1, "c": 1})):
            announce(tmp_path, name, nodes=nodes, delegates=16)
            arbiter.step()
            assert counts_of(arbiter) == now
        before = arbiter.map.jobs["a"]
    with Arbiter(tmp_path, Settings(io_nodes=8, policy="static"), lines.append) as arbiter:  # started again, as it was
        announce(tmp_path, "d", nodes=32, delegates=16)
        arbiter.step()
        assert arbiter.map.jobs["a"] == before
        settings.write(tmp_path, Settings(io_nodes=8, policy="static", compute_nodes=64))
        arbiter.step()  # whoever changes the settings wants them for all
        assert counts_of(arbiter) == {"a": 1, "b": 1, "c": 2, "d": 4}
    with Arbiter(tmp_path, Settings(io_nodes=16, policy="static", compute_nodes=64), lines.append) as arbiter:
        arbiter.step()
        assert counts_of(arbiter)["d"] == 8
    assert sum("--compute-nodes" in line for line in lines) == 2  # once each time it is started so


def test_a_pool_of_256(tmp_path: pathlib.Path) -> None:
    """Pools are as large as in the paper's Table 1 (576 forwarding nodes), and so are jobs' numbers."""
    curves = {"app": {count: 10.0 * count for count in (1, 2, 4, 8, 16, 32, 64, 128, 256)}}
    with Arbiter(tmp_path, Settings(io_nodes=256, curves=curves), lambda _: None) as arbiter:
        announce(tmp_path, "a", delegates=256)
        arbiter.step()
        assert arbiter.map.jobs == {"a": tuple(range(256))}
        for number in range(127):
            announce(tmp_path, f"b{number}", delegates=256)
        arbiter.step()
        given = [node for nodes in mapfile.read(tmp_path).jobs.values() for node in nodes]
        assert len(given) == len(set(given)) == 256
    with pytest.raises(ArgumentError, match="/io_nodes: 577 is greater than 576"):
        settings.decode('{"io_nodes": 577}')


def test_a_full_disk_under_the_folder(tmp_path: pathlib.Path) -> None:
    """Nothing can be written for a while: the last map stays whole, and the new one comes when there is room."""
    with Arbiter(tmp_path, Settings(io_nodes=4), lambda _: None) as arbiter:
        announce(tmp_path, "a")
        arbiter.step()
        before = mapfile.read(tmp_path)
        announce(tmp_path, "b")
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
        try:
            for _ in range(3):
                with pytest.raises(OSError, match="File too large"):
                    arbiter.step()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert mapfile.read(tmp_path) == before == arbiter.map
        assert arbiter.step() and sorted(mapfile.read(tmp_path).jobs) == ["a", "b"]


def test_a_new_arbiter_goes_on(tmp_path: pathlib.Path) -> None:
    with Arbiter(tmp_path, Settings(io_nodes=4), lambda _: None) as arbiter:
        announce(tmp_path, "a")
        arbiter.step()
        before = arbiter.map
        with pytest.raises(BusyError):
            Arbiter(tmp_path, None, lambda _: None)
    with Arbiter(tmp_path, None, lambda _: None) as arbiter:
        assert arbiter.map == before and not arbiter.step()
        announce(tmp_path, "b")
        assert arbiter.step() and arbiter.map.generation == before.generation + 1
    (tmp_path / "map").write_bytes(b"damaged")
    with Arbiter(tmp_path, None, lambda _: None) as arbiter:
        assert arbiter.step() and arbiter.map.generation > before.generation + 1


def test_the_dead_expire(tmp_path: pathlib.Path) -> None:
    """By the arbiter's clock: the times of the files may be an hour before or behind."""
    lines: list[str] = []
    with Arbiter(tmp_path, Settings(io_nodes=4, lease_s=0.4), lines.append) as arbiter:
        old = announce(tmp_path, "old", age_s=3600)
        new = announce(tmp_path, "new", age_s=3600)
        ahead = announce(tmp_path, "ahead", age_s=-3600)
        arbiter.step()
        assert list(arbiter.map.jobs) == ["ahead", "new", "old"]
        for beat in range(12):
            time.sleep(0.05)
            os.utime(new, (beat, beat))
            arbiter.step()
        assert list(arbiter.map.jobs) == ["new"] and not old.exists() and not ahead.exists()
    assert sum("expired" in line for line in lines) == 2


def test_an_announcement_that_cannot_be_removed(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user's: its job expires all the same, once, and comes back when it is touched."""
    lines: list[str] = []

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "not yours")

    monkeypatch.setattr(pathlib.Path, "unlink", refuse)
    with Arbiter(tmp_path, Settings(io_nodes=4, lease_s=0.2), lines.append) as arbiter:
        path = announce(tmp_path, "a")
        arbiter.step()
        for _ in range(8):
            time.sleep(0.05)
            arbiter.step()
        assert arbiter.map.jobs == {} and sum("expired" in line for line in lines) == 1
        os.utime(path)
        assert arbiter.step() and list(arbiter.map.jobs) == ["a"]


def test_the_dead_stay_dead_after_a_restart(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that expired counts no more for the next arbiter, nor is its file opened, until it speaks again."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "not yours")

    monkeypatch.setattr(pathlib.Path, "unlink", refuse)
    with Arbiter(tmp_path, Settings(io_nodes=4, lease_s=0.2), lambda _: None) as arbiter:
        path = announce(tmp_path, "a")
        live = announce(tmp_path, "b")
        for _ in range(10):
            arbiter.step()
            time.sleep(0.05)
            os.utime(live)
        assert list(arbiter.map.jobs) == ["b"] and path.exists()
    generation = mapfile.read(tmp_path).generation
    opened: list[str] = []
    read = announcements._read
    monkeypatch.setattr(announcements, "_read", lambda name: (opened.append(pathlib.Path(name).name), read(name))[1])
    with Arbiter(tmp_path, Settings(io_nodes=4, lease_s=1000), lambda _: None) as arbiter:
        assert not arbiter.step() and arbiter.map.generation == generation and opened == ["b"]
        os.utime(path)
        assert arbiter.step() and set(arbiter.map.jobs) == {"a", "b"}
    (tmp_path / "expired.json").write_text('{"b": "x", "a": tru')
    with Arbiter(tmp_path, None, lambda _: None) as arbiter:
        arbiter.step()
        assert set(arbiter.map.jobs) == {"a", "b"}


def test_who_died_while_there_was_no_arbiter(tmp_path: pathlib.Path) -> None:
    """It does not live for another lease: a few seconds, in which a job whose clock is wrong would speak."""
    with Arbiter(tmp_path, Settings(io_nodes=4, lease_s=1000), lambda _: None) as arbiter:
        dead = announce(tmp_path, "dead", age_s=5000)
        late = announce(tmp_path, "late", age_s=5000)
        lately = announce(tmp_path, "lately", age_s=900)
        arbiter.step()
        assert set(arbiter.map.jobs) == {"dead", "late", "lately"}
        for _ in range(30):
            arbiter._looked -= 1  # a second more has passed
            os.utime(late, (0, arbiter._looked))
            arbiter.step()
        assert set(arbiter.map.jobs) == {"late", "lately"} and not dead.exists() and lately.exists()


def test_a_lost_map_does_not_lower_the_generation(tmp_path: pathlib.Path) -> None:
    """Jobs follow generation 57: they would take no notice of the 1 of a new beginning."""
    with Arbiter(tmp_path, Settings(io_nodes=4), lambda _: None) as arbiter:
        announce(tmp_path, "a", applied=57)
        assert arbiter.step() and arbiter.map.generation == 58
        assert not arbiter.step()
        announce(tmp_path, "a", applied=58)
        assert not arbiter.step()


def test_settings_change_while_it_runs(tmp_path: pathlib.Path) -> None:
    lines: list[str] = []
    with Arbiter(tmp_path, Settings(io_nodes=4, policy="size"), lines.append) as arbiter:
        announce(tmp_path, "a")
        arbiter.step()
        assert arbiter.map.jobs == {"a": (0, 1, 2, 3)}
        settings.write(tmp_path, Settings(io_nodes=4, policy="one"))
        assert arbiter.step() and len(arbiter.map.jobs["a"]) == 1
        (tmp_path / "settings.json").write_text('{"io_nodes": 4, "policy": "best"}')
        assert not arbiter.step()
        (tmp_path / "settings.json").unlink()
        assert not any(arbiter.step() for _ in range(3))
    told = [line for line in lines if "stay in force" in line]
    assert len(told) == 2 and "best" in told[0], told  # once each


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("{", "line 1"),
        ('{"io_nodes": 1, "io_nodes": 2}', "twice"),
        ("[]", "object"),
        ('{"policy": "mckp"}', '"io_nodes" is'),
        ('{"io_nodes": 0}', "io_nodes"),
        ('{"io_nodes": true}', "/io_nodes"),
        ('{"io_nodes": 1, "nodes": 2}', "/nodes"),
        ('{"io_nodes": 1, "curves": {"app": {"x": 1}}}', "/curves/app/x"),
        ('{"io_nodes": 1, "lease_s": 0}', "lease_s"),
        ('{"io_nodes": 1, "curves": {"app": {}}}', "app"),
        ('{"io_nodes": 1, "weights": {"app": "2"}}', "/weights/app"),
        ('{"io_nodes": 1, "floor": 2}', "floor"),
        ('{"io_nodes": 1, "confidence": "much"}', "/confidence"),
        ('{"io_nodes": 1, "curves": {"app": {"1": []}}}', "/curves/app/1"),
        ('{"io_nodes": 1, "horizon_s": 0}', "horizon_s"),
        ('{"io_nodes": 1, "shared_node": 1}', "/shared_node"),
        ('{"io_nodes": 1, "most": 0}', "most"),
        ('{"io_nodes": 1, "divisible": "no"}', "/divisible"),
        ('{"io_nodes": 1, "curves": {"app": {"1": {"mean": 1}}}}', "/curves/app/1"),
    ],
)
def test_wrong_settings_say_where(text: str, where: str) -> None:
    with pytest.raises(ArgumentError, match=where):
        settings.decode(text)


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mpiio_ext", "delegates", "arbiter", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_the_command(tmp_path: pathlib.Path, expected: Expected) -> None:
    folder = str(tmp_path)
    nobody = run("--dir", folder, "--status")
    assert nobody.returncode == 2 and "no arbiter has ever served" in nobody.stderr
    missing = run("--dir", folder)
    assert missing.returncode == 2 and "--io-nodes" in missing.stderr
    with Arbiter(tmp_path, Settings(io_nodes=3), lambda _: None) as arbiter:
        announce(tmp_path, "a")
        arbiter.step()
        busy = run("--dir", folder)
        assert busy.returncode == 2 and "another arbiter" in busy.stderr
        assert run("--dir", folder, "--set", "--io-nodes", "2", "--policy", "size").returncode == 0
        arbiter.step()
        assert json.loads(run("--dir", folder, "--status").stdout)["serving"] is True
    status = json.loads(run("--dir", folder, "--status").stdout)
    assert status["serving"] is False and status["settings"]["io_nodes"] == 2 and status["map"]["jobs"] == {"a": [0, 1]}
    assert status["jobs"][0]["ranks"] == 4
    words = (
        "--policy",
        "mckp",
        "--floor",
        "0.25",
        "--weight",
        "app=3",
        "--weight",
        "x=2",
        "--hysteresis",
        "0.1",
        "--migration-cost",
        "2",
        "--horizon",
        "60",
        "--confidence",
        "0.9",
        "--compute-nodes",
        "512",
        "--most",
        "2",
        "--divisible",
        "--shared-node",
    )
    assert run("--dir", folder, "--set", *words).returncode == 0
    expected(settings.read(tmp_path))
    assert run("--dir", folder, "--set", "--weight", "app=much").returncode == 2
    wrong = run("--dir", folder, "--set", "--policy", "best")
    assert wrong.returncode == 2 and "best" in wrong.stderr


def test_setting_where_nobody_serves(tmp_path: pathlib.Path) -> None:
    missing = run("--dir", str(tmp_path / "none"), "--set", "--io-nodes", "3")
    assert missing.returncode == 2 and "no such folder" in missing.stderr and "--io-nodes N" in missing.stderr
    assert "Errno" not in missing.stderr and not (tmp_path / "none").exists()
    alone = run("--dir", str(tmp_path), "--set", "--io-nodes", "3")
    assert alone.returncode == 0 and "no arbiter serves" in alone.stderr and settings.read(tmp_path).io_nodes == 3
    with Arbiter(tmp_path, None, lambda _: None):
        served = run("--dir", str(tmp_path), "--set", "--io-nodes", "4")
    assert served.returncode == 0 and not served.stderr and settings.read(tmp_path).io_nodes == 4


def test_curves_on_the_command_line(tmp_path: pathlib.Path) -> None:
    """An object of numbers, or what ``mpiio-ext delegates arbitrate curves --store`` has written."""
    with Arbiter(tmp_path / "arbiter", Settings(io_nodes=3), lambda _: None):
        pass
    command = ("--dir", str(tmp_path / "arbiter"), "--set", "--curves")
    store = tmp_path / "store.json"
    Store(store).save({"app": Curve.of({0: 10.0, 1: 20.0, 4: 50.0})})
    assert run(*command, str(store)).returncode == 0
    assert settings.read(tmp_path / "arbiter").curves == {"app": {1: 20.0, 4: 50.0}}
    bad = tmp_path / "bad.json"
    bad.write_text("{bad")
    wrong = run(*command, str(bad))
    assert wrong.returncode == 2 and "bad.json: is not JSON" in wrong.stderr and "Traceback" not in wrong.stderr
