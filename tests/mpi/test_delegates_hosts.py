"""Delegates between hosts: real host names, networks and memories, made of namespaces; see support/hosts.py.

tests/programs/delegates_hosts.c does everything that a file can do and verifies each byte; delegates_crash.c goes on
while delegates are killed, or a whole host vanishes. Nothing here measures time, but whether something ends at all.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import pathlib
import re
import signal
import struct
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from support import hosts, strangers
from support.cbuild import failed_checks, mpi_program
from support.launch import mpi_family
from support.marks import slow
from support.processes import Job, job

pytestmark = pytest.mark.mpi

HOSTS = 4
LIMIT_S = 300.0
GRACE_S = 60.0
SMALL = "mpiox_delegate_cache=2m:mpiox_delegate_page=64k"
#: The tables of a cache take some 330 KiB; this leaves one page of 64 KiB.
ONE_PAGE = "408k"
#: Checks of delegates_hosts.c and of delegates_crash.c.
ALL_CHECKS, CRASH_CHECKS = 4 * 8 + 6 + 6 + 10, 2 * 8


@pytest.fixture(scope="module")
def cluster(family: str, extension: str) -> Iterator[hosts.Cluster]:
    """Bring up the hosts of this module; a host that has vanished comes back for the next test."""
    hosts.require()
    with hosts.cluster(HOSTS) as found:
        yield found


def places(text: str) -> tuple[dict[int, str], dict[int, str]]:
    """Return the hosts of the ranks and of the delegates, as a program has printed them."""
    found = re.findall(r"^(rank|delegate) (\d+) host (\w+)", text, re.MULTILINE)
    return (
        {int(index): host for kind, index, host in found if kind == "rank"},
        {int(index): host for kind, index, host in found if kind == "delegate"},
    )


def use_everything(
    cluster: hosts.Cluster, each: int, hints: str, env: dict[str, str] | None = None
) -> tuple[dict[int, str], dict[int, str]]:
    """Run delegates_hosts on all hosts; where ranks and delegates were."""
    ranks = each * HOSTS
    launch = cluster.run(
        [mpi_program("delegates_hosts"), cluster.folder / "file"],
        ranks,
        each,
        env={"MPIOX_HINTS": f"*:{hints}", **(env or {})},
        timeout_s=LIMIT_S,
    )
    assert not failed_checks(launch.stdout, ALL_CHECKS), launch.describe()
    assert launch.stdout.rstrip().splitlines().count("end") == 1, launch.describe()
    ranks_at, delegates_at = places(launch.stdout)
    assert [ranks_at[rank] for rank in range(ranks)] == [f"node{1 + rank // each}" for rank in range(ranks)]
    return ranks_at, delegates_at


# ---- access ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow_with("1-thread", "2-spawn")
@pytest.mark.parametrize("mode", ["spawn", "thread"])
@pytest.mark.parametrize("each", [1, 2])
def test_access(cluster: hosts.Cluster, mode: str, each: int) -> None:
    """Two delegates on two of four hosts; every access, every byte."""
    _, delegates_at = use_everything(cluster, each, f"mpiox_delegates=2:mpiox_delegate_mode={mode}:{SMALL}")
    assert delegates_at == {0: "node1", 1: "node3"}


@pytest.mark.slow
@pytest.mark.parametrize("level", ["replica", "disk"])
@pytest.mark.parametrize("mode", ["spawn", "thread"])
def test_levels(cluster: hosts.Cluster, mode: str, level: str) -> None:
    """The same at the higher levels of acknowledgement, three delegates."""
    hints = f"mpiox_delegates=3:mpiox_delegate_mode={mode}:mpiox_delegate_ack={level}:{SMALL}"
    _, delegates_at = use_everything(cluster, 1, hints)
    assert len(set(delegates_at.values())) == 3


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["delay_ms=1", "short=1000", "delay_ms=1:drop_after=300000"])
def test_bad_network(cluster: hosts.Cluster, fault: str) -> None:
    """Latency, short system calls, connections that break: no byte is wrong."""
    hints = f"mpiox_delegates=2:{SMALL}"
    use_everything(cluster, 1, hints, {"MPIOX_NETWORK_FAULT": fault})


@pytest.mark.slow
def test_one_page(cluster: hosts.Cluster) -> None:
    """A cache of one page at each delegate."""
    hints = f"mpiox_delegates=2:mpiox_delegate_cache={ONE_PAGE}:mpiox_delegate_page=64k"
    _, delegates_at = use_everything(cluster, 2, hints)
    assert len(delegates_at) == 2


# ---- places ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "expected"),
    [
        ("1", ["node1"]),
        ("4", [f"node{k}" for k in (1, 2, 3, 4)]),
        ("per_node=2", [f"node{k // 2}" for k in range(2, 10)]),
    ],
)
def test_spread(cluster: hosts.Cluster, count: str, expected: list[str]) -> None:
    """Delegates are spread over the hosts."""
    _, delegates_at = use_everything(cluster, 1, f"mpiox_delegates={count}:{SMALL}")
    assert sorted(delegates_at.values()) == expected


@pytest.mark.slow
def test_named_hosts(cluster: hosts.Cluster) -> None:
    """mpiox_delegate_hosts."""
    _, delegates_at = use_everything(cluster, 1, f"mpiox_delegates=2:mpiox_delegate_hosts=node4;node2:{SMALL}")
    assert delegates_at == {0: "node4", 1: "node2"}


WAITING = 2  # phase of delegates_crash.c


# ---- death -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """delegates_crash on hosts 1 and 2, two ranks each; delegate 0 alone on host 3, delegate 1 on host 1."""

    level: str
    records: int
    pause_us: int = 200

    def command(self, cluster: hosts.Cluster, options: Sequence[str]) -> list[str]:
        """Return the command line."""
        words = [mpi_program("delegates_crash"), cluster.folder / "file", cluster.folder / "progress"]
        places = {1: 2, 2: 2, 3: 0}
        start = cluster.launcher(4, places, options=options)
        return [*start, *cluster.program([*words, str(self.records), str(self.pause_us)])]

    def hints(self) -> str:
        """Return MPIOX_HINTS. Open MPI is told of a host without ranks by its place in mpirun's list."""
        where = "node3;node1" if mpi_family() == "mpich" else "+n2;+n0"
        return f"*:mpiox_delegates=2:mpiox_delegate_hosts={where}:mpiox_delegate_ack={self.level}:{SMALL}"


def let_go(running: Job, held: mmap.mmap) -> None:
    """The first file is open: all delegates are there, and the ranks wait for a word."""
    deadline_s = time.monotonic() + LIMIT_S
    while struct.unpack("5I", held[:20])[4] < WAITING and time.monotonic() < deadline_s:
        assert running.process.poll() is None, running.text()
        time.sleep(0.01)
    held[20] = 1


def await_records(running: Job, held: mmap.mmap, count: int) -> None:
    """Return when the four ranks have written so many, or have ended."""
    deadline_s = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline_s and running.process.poll() is None:
        if sum(struct.unpack("4I", held[:16])) >= count:
            return
        time.sleep(0.001)


def await_end(running: Job) -> None:
    """Return when the program has said its last word, or the launcher has ended."""
    deadline_s = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline_s and running.process.poll() is None:
        if "end" in running.text().splitlines():  # the launcher may say more
            return
        time.sleep(0.05)


def crash(cluster: hosts.Cluster, run: Run, at: float, *, host: bool, options: Sequence[str] = ()) -> str:
    """Run it, and after a part of the first file's records kill delegate 0 or its host; what was printed."""
    counters = cluster.folder / "progress"
    counters.write_bytes(bytes(4096))
    for name in ("file", "file.2"):  # another test's may be longer
        (cluster.folder / name).unlink(missing_ok=True)
    log = cluster.private / "job.log"
    with (
        counters.open("r+b") as file,
        mmap.mmap(file.fileno(), 4096) as held,
        job(run.command(cluster, options), log, {"MPIOX_HINTS": run.hints()}) as running,
    ):
        let_go(running, held)
        victims = running.delegates()  # not later: on a busy machine the job may end before this process runs again
        assert len(victims) == 2, running.text()
        await_records(running, held, int(at * run.records))
        if host:
            cluster.vanish(3)
            await_end(running)  # the launcher may wait for the host for ever
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(victims[0], signal.SIGKILL)
            assert running.status(LIMIT_S) == 0, running.text()
            assert not running.left(GRACE_S), running.text()
        text = running.text()
    assert text.rstrip().splitlines().count("end") == 1, f"{run}: it has not come to its end\n{text}"
    return text


@pytest.mark.parametrize("level", ["memory", *slow("replica"), "disk"])
def test_killed_delegate(cluster: hosts.Cluster, level: str) -> None:
    """A delegate is killed while ranks of other hosts write: no byte is lost, at any level."""
    run = Run(level=level, records=300 if level == "disk" else 1200)
    for at in (0.1, 0.8):
        text = crash(cluster, run, at, host=False)
        assert not failed_checks(text, CRASH_CHECKS), text


#: What keeps the launcher from ending the job; see docs/reference/delegates.md.
TOLERANT = {"openmpi": ("--enable-recovery",), "mpich": ("-disable-auto-cleanup",)}


@pytest.fixture()
def third_host(cluster: hosts.Cluster) -> Iterator[None]:
    """A host that vanishes is back for the next test."""
    yield
    if not cluster.is_up(3):
        cluster.bring_back(3)


@pytest.mark.parametrize("level", ["replica", *slow("disk")])
def test_host_vanishes(cluster: hosts.Cluster, third_host: None, level: str) -> None:
    """The host of a delegate vanishes: what was acknowledged is there."""
    run = Run(level=level, records=300 if level == "disk" else 1200)
    text = crash(cluster, run, 0.3, host=True, options=TOLERANT[str(mpi_family())])
    assert not failed_checks(text, CRASH_CHECKS), text


@pytest.mark.both
def test_host_vanishes_with_memory(cluster: hosts.Cluster, third_host: None) -> None:
    """At level memory the next flush barrier says on all ranks what may be lost, once, and all goes on."""
    run = Run(level="memory", records=1200)
    text = crash(cluster, run, 0.3, host=True, options=TOLERANT[str(mpi_family())])
    failed = failed_checks(text, CRASH_CHECKS)
    error = r"^rank (\d): sync: (?:MPI_ERR_IO|Other I/O error).*in a cache that is lost.*at offset (\d+), length (\d+)"
    said = re.findall(error, text, re.MULTILINE)
    if not said:  # everything was in the file by chance
        assert not failed, text
        return
    assert {int(rank) for rank, *_ in said} == {0, 1, 2, 3}, text
    assert len({place[1:] for place in said}) == 1, text
    wrong = re.findall(r"^rank \d: record \d+ at (\d+): (\d+) of \d+ bytes, wrong", text, re.MULTILINE)
    first, length = int(said[0][1]), int(said[0][2])
    assert all(first < int(at) + int(n) and int(at) < first + length for at, n in wrong), text
    assert failed <= {
        "sync in the middle",
        "sync, barrier, sync",
        "first half",
        "second half",
        "reading what others wrote",
        "the file",
    }, text
    second = text.index("ok open", text.index("close"))
    late = text.index("in a cache that is lost") > second  # the machine was busy
    other = text[:second] if late else text[second:]  # the file that was not open then
    assert not failed_checks(other, CRASH_CHECKS // 2), text


# ---- others on the network -------------------------------------------------------------------------------------------

#: An address that every host has, and ports of which node1 takes its own.
TWICE, FIRST, LAST = "10.99.0.1", 40000, 40199


@pytest.fixture()
def ears(cluster: hosts.Cluster, tmp_path: pathlib.Path) -> Iterator[list[pathlib.Path]]:
    """On all hosts but node1 another user listens wherever a delegate of node1 could be; files of what he hears."""
    strangers.need()
    usual = cluster.call(1, ["cat", "/proc/sys/net/ipv4/ip_local_port_range"])
    script = f"ip link add own0 type veth peer name own1; ip addr add {TWICE}/32 dev own0; ip link set own0 up"
    heard = {k: tmp_path / f"heard{k}" for k in range(2, HOSTS + 1)}
    with contextlib.ExitStack() as stack:
        stack.callback(set_ports, cluster, usual)
        set_ports(cluster, f"{FIRST} {LAST}")
        for k in range(1, HOSTS + 1):
            stack.callback(cluster.call, k, ["ip", "link", "del", "own0"])
            cluster.call(k, ["sh", "-c", script])
        for k, path in heard.items():
            words = cluster.on(k, [*strangers.PYTHON, strangers.EAR, TWICE, str(FIRST), str(LAST)])
            ear = subprocess.Popen(words, stdout=stack.enter_context(path.open("w")))
            stack.callback(ear.wait)
            stack.callback(ear.kill)
            while not path.read_text().startswith("listens\n"):
                assert ear.poll() is None
                time.sleep(0.01)
        yield [*heard.values()]


def set_ports(cluster: hosts.Cluster, ports: str) -> None:
    cluster.call(1, ["sh", "-c", f"echo {ports.split()[0]} {ports.split()[1]} >/proc/sys/net/ipv4/ip_local_port_range"])


def test_a_stranger_listens_first(cluster: hosts.Cluster, ears: list[pathlib.Path]) -> None:
    """The address of a delegate leads to another user's port on each client's own host: he hears nothing but hellos."""
    hints = "mpiox_delegates=1:mpiox_delegate_mode=thread:mpiox_delegate_interface=own0:" + SMALL
    launch = cluster.run(
        [mpi_program("delegates_hosts"), cluster.folder / "file"],
        HOSTS,
        1,
        env={"MPIOX_HINTS": f"*:{hints}"},
        timeout_s=LIMIT_S,
    )
    assert not failed_checks(launch.stdout), launch.describe()
    assert "the process that answers does not know the secret" in launch.stderr, launch.describe()
    heard = [bytes.fromhex(line) for path in ears for line in path.read_text().splitlines()[1:]]
    assert len(heard) >= HOSTS - 1, launch.describe()
    assert {(len(text), text[:5]) for text in heard} == {(40, b"MXHS\2")}, heard
