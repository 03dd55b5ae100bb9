"""MPI programs on the hosts of a cluster: what the launchers start where, every byte of collectives, killed hosts.

The hosts are namespaces of this machine: docs/project/clusters.md. The quick part has two hosts of two ranks; the
slow part more of them, limits of bandwidth, a file system with a cache on every host, the differential test.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cluster import folders, needs, network, share_nfs
from cluster.served import SERVED, Place
from differential import run
from differential.arms import Setting
from support import hosts
from support.launch import LaunchError, base_environment, json_lines, marked_processes, run_bounded
from support.marks import slow
from support.processes import Job, job

pytestmark = pytest.mark.mpi

PROGRAM = pathlib.Path(__file__).parents[1] / "programs" / "between_hosts.py"
ENDLESS = PROGRAM.with_name("endless.py")
#: Pattern: bytes of the file for each rank; see the program.
PATTERNS = {"tiny": 3 * 8 * 4096, "small": 3 * 64 * 1024, "page": 3 * 4096 * 32, "odd": 3 * 77_000, "large": 9 << 18}
PATTERNS["ordered"] = 3 * 12_345  # at the shared file pointer
LIMIT_S = 120.0
GRACE_S = 60.0
Bring = Callable[..., hosts.Cluster]


@pytest.fixture(scope="module")
def bring(family: str, extension: str) -> Iterator[Bring]:
    """Return a function that brings hosts up; one cluster at a time, kept while the next test wants the same."""
    hosts.require()
    with contextlib.ExitStack() as stack:
        now: dict[tuple[Any, ...], hosts.Cluster] = {}

        def bring_up(count: int, **settings: Any) -> hosts.Cluster:
            key = (count, *sorted(settings.items()))
            if key not in now:
                now.clear()
                stack.close()
                now[key] = stack.enter_context(hosts.cluster(count, **settings))
            return now[key]

        yield bring_up


def go(
    cluster: hosts.Cluster,
    each: int,
    prefix: str,
    folder: pathlib.Path | None = None,
    *,
    ours: bool,
    level: str = "multiple",
    exchange: str = "auto",
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Run the program on all hosts; what it said, and the library's statistics of each file.

    `level`: what the program asks MPI for; "single" is plain MPI_Init. `exchange`: the hint mpiox_exchange.
    """
    statistics = cluster.folder / f"{prefix}.jsonl"
    statistics.unlink(missing_ok=True)  # of a test before on the same hosts
    env = {"MPIOX_STATS": "1", "MPIOX_STATS_FILE": str(statistics)} if ours else {}
    env["MPI4PY_RC_THREAD_LEVEL"] = level
    env["MPIOX_HINTS"] = f"mpiox_exchange={exchange}"
    program = [sys.executable, str(PROGRAM), str(folder or cluster.folder), prefix]
    launch = cluster.run(program, each * cluster.count, each, env=env, preload=ours, timeout_s=LIMIT_S)
    words = next(line for line in launch.stdout.splitlines() if line.startswith("{"))
    assert launch.stdout.count("turn") == 1, launch.describe()
    lines = json_lines(statistics) if ours else []
    return json.loads(words), [line for line in lines if line["kind"] == "file"]


def check_places(cluster: hosts.Cluster, each: int, about: dict[str, Any]) -> None:
    """Ranks are on the hosts in blocks, MPI sees a node in each host, and no two hosts have one /dev/shm."""
    assert about["hosts"] == [f"node{1 + rank // each}" for rank in range(each * cluster.count)]
    assert set(about["nodes"]) == {each}
    devices = collections.defaultdict(set)
    for host, device in zip(about["hosts"], about["shm"], strict=True):
        devices[host].add(device)
    assert all(len(found) == 1 for found in devices.values())
    assert len(set.union(*devices.values())) == cluster.count


def check_bytes(folder: pathlib.Path, ranks: int) -> None:
    """What the library and the MPI library alone have left is the same, and is there."""
    for name, each in PATTERNS.items():
        ours, native = ((folder / f"{prefix}.{name}").read_bytes() for prefix in ("ours", "native"))
        assert len(native) == each * ranks, name
        assert ours == native, f"{name}: {sum(a != b for a, b in zip(ours, native, strict=True))} bytes differ"


def check_both(cluster: hosts.Cluster, each: int, level: str = "multiple", exchange: str = "auto") -> None:
    """Run the program both ways in the shared folder.

    Its pieces cross by messages, not by memory; but as the hosts share a page cache, only tiny ones are worth that.
    """
    about, files = go(cluster, each, "ours", ours=True, level=level, exchange=exchange)
    check_places(cluster, each, about)
    assert {pathlib.Path(line["path"]).name for line in files} == {f"ours.{name}" for name in PATTERNS}
    for line in files:
        assert line["collective_writes"] > 0 and line["native_calls"] == 0, line
    crossed = {pathlib.Path(line["path"]).suffix for line in files if line["messages"] > 0}
    tiny, others = {".tiny", ".small", ".odd"}, {".page", ".large"}
    assert crossed - {".ordered"} == (tiny if exchange == "auto" else tiny | others), files
    check_places(cluster, each, go(cluster, each, "native", ours=False)[0])
    check_bytes(cluster.folder, each * cluster.count)


@pytest.mark.both_with("2-multiple-two_phase")
@pytest.mark.parametrize(
    ("each", "level", "exchange"),
    [
        *slow((1, "multiple", "two_phase")),
        (2, "multiple", "two_phase"),
        *slow((2, "single", "two_phase")),
        (2, "multiple", "auto"),
    ],
)
def test_two_hosts(bring: Bring, each: int, level: str, exchange: str) -> None:
    """The same bytes as by the MPI library alone, by messages between the hosts."""
    check_both(bring(2), each, level, exchange)


def test_no_descriptor_is_left(bring: Bring) -> None:
    """Whatever this library holds on each rank, an open for which one has no descriptor fails on all: nobody hangs."""
    cluster = bring(2)
    folder = cluster.folder / "many"
    folder.mkdir(exist_ok=True)
    program = [sys.executable, str(PROGRAM.with_name("many_open.py")), str(folder), "125"]
    told = json.loads(cluster.run(program, 4, 2, timeout_s=LIMIT_S).stdout)
    assert len({count for count, _ in told}) == 1, told
    assert told[0][0] >= 20, told
    assert all("Too many open files" in text for _, text in told), told


def ranks_on(cluster: hosts.Cluster, k: int, marker: str) -> list[int]:
    """Return the program's processes of a launch on host k."""
    own = os.readlink(f"/proc/{cluster.of.hosts()[k - 1].pid}/ns/uts")
    found = []
    for pid in marked_processes(marker):
        with contextlib.suppress(OSError):
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if os.readlink(f"/proc/{pid}/ns/uts") == own and words[0] == sys.executable.encode():
                found.append(pid)
    return found


def await_turns(running: Job, count: int) -> None:
    """Wait until a program has said that so many turns are over."""
    deadline_s = time.monotonic() + 4 * LIMIT_S
    while running.text().count("turn") < count:
        assert running.process.poll() is None and time.monotonic() < deadline_s, running.text()
        time.sleep(0.05)


@pytest.mark.parametrize("victims", [1, *slow(2)])
def test_killed_ranks_of_a_host(bring: Bring, tmp_path: pathlib.Path, victims: int) -> None:
    """One or all ranks of a host are killed amid collectives: the launcher ends the job, and nothing is left."""
    cluster = bring(2)
    program = [sys.executable, str(PROGRAM), str(cluster.folder), "killed", "1000000"]
    with job([*cluster.launcher(4, 2), *cluster.program(program)], tmp_path / "log") as running:
        await_turns(running, 2)
        ranks = ranks_on(cluster, 2, running.marker)
        assert len(ranks) == 2, ranks
        for pid in ranks[:victims]:
            os.kill(pid, signal.SIGKILL)
        assert running.status(LIMIT_S) not in {None, 0}, running.text()
        assert not running.left(GRACE_S), running.text()
        assert "are wrong" not in running.text()
    names = [name for k in (1, 2) for name in cluster.call(k, ["ls", "-A", "/dev/shm"]).split()]
    assert not [name for name in names if name.startswith("mpiox.")], names  # MPICH does leave memory of its own


@contextlib.contextmanager
def cut_link(cluster: hosts.Cluster, k: int, retries: int) -> Iterator[None]:
    """Cut the link of a host; its connections end after so many times that TCP has sent again, instead of 15."""
    name = "/proc/sys/net/ipv4/tcp_retries2"
    every = range(1, cluster.count + 1)
    before = [cluster.call(each, ["cat", name]).strip() for each in every]
    for each in every:
        cluster.call(each, ["sh", "-c", f"echo {retries} > {name}"])
    cluster.of.cut(k)
    try:
        yield
    finally:
        cluster.of.mend(k)
        for each, value in zip(every, before, strict=True):
            cluster.call(each, ["sh", "-c", f"echo {value} > {name}"])


def test_cut_link(bring: Bring, family: str, tmp_path: pathlib.Path) -> None:
    """The link of a host is cut amid collectives: with mpiox_wait_limit every rank on both sides ends, and says why.

    Without it they wait for as long as TCP sends again (a quarter of an hour), as under the MPI library alone. The
    launcher has connections of its own: Open MPI's keeps them under watch when it is told to; MPICH's does not.
    """
    cluster = bring(2)
    watch = ["keepalive_time", "5", "keepalive_intvl", "2", "keepalive_probes", "2"]
    pairs = zip(watch[::2], watch[1::2], strict=True)
    options = [word for name, value in pairs for word in ("--mca", f"oob_tcp_{name}", value)]
    start = cluster.launcher(4, 2, options=options if family == "openmpi" else [])
    program = [sys.executable, str(ENDLESS), str(cluster.folder / "cut")]
    limit = {"MPIOX_HINTS": "*:mpiox_wait_limit=6"}
    with job([*start, *cluster.program(program)], tmp_path / "log", limit) as running:
        await_turns(running, 3)
        with cut_link(cluster, 2, 5):
            deadline_s = time.monotonic() + LIMIT_S
            while any(ranks_on(cluster, k, running.marker) for k in (1, 2)):
                assert time.monotonic() < deadline_s, running.text()
                time.sleep(0.2)
            if family == "openmpi":
                assert running.status(LIMIT_S) not in {None, 0}, running.text()
            said = running.text()
    assert "on node1: " in said and "because of mpiox_wait_limit=6" in said, said
    assert "are wrong" not in said
    names = [name for k in (1, 2) for name in cluster.call(k, ["ls", "-A", "/dev/shm"]).split()]
    assert not [name for name in names if name.startswith("mpiox.")], names


def test_a_rank_that_fails(bring: Bring) -> None:
    """The status of a program that fails on one host is the launch's."""
    with pytest.raises(LaunchError, match="exit status"):
        bring(2).run(["sh", "-c", 'test "$(hostname)" = node1'], 2, 1, preload=False, timeout_s=LIMIT_S)


# ---- more hosts, slower links, a file system with a cache on each ----------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("count", "each", "rate"), [(4, 2, ""), (8, 1, ""), (4, 2, "1gbit"), (4, 1, "50mbit")])
def test_more_hosts(bring: Bring, count: int, each: int, rate: str) -> None:
    """The same on more hosts, also over links with limits."""
    if rate and (lacking := hosts.lacks_shaping()):
        pytest.skip("; ".join(lacking))
    check_both(bring(count, rate=rate), each)


@pytest.mark.slow
@pytest.mark.parametrize("cases", [200])
@pytest.mark.parametrize("count", [2, 4])
def test_differential(bring: Bring, count: int, cases: int) -> None:
    """Random programs of all MPI-IO calls between hosts."""
    setting = Setting(arms=("ours",), limit_s=60.0, cluster=bring(count))
    report = run.run(list(range(30_001, 30_001 + cases)), setting, shuffle=True)
    assert report.cases >= cases
    assert report.stats["messages"] > 0
    again = [f"python tests/differential/run.py --hosts {count} --case {seed}" for seed in sorted(report.failures)]
    assert not report.failures, "\n".join([*again, str(list(report.failures.items())[:3])])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gluster", "nfs"])
def test_caches_of_their_own(bring: Bring, kind: str) -> None:
    """A file system with a cache on each host: the library takes GlusterFS over, and says why it leaves NFS alone."""
    hosts.require(kind)
    cluster = bring(2, shares=(kind,))
    folder = cluster.of.shares()[kind]
    mounted = cluster.call(2, ["stat", "-f", "-c", "%T", folder]).strip()
    assert {"gluster": "fuse", "nfs": "nfs"}[kind] in mounted
    (cluster.path_on(1, folder) / "word").write_text("seen", encoding="utf-8")
    assert cluster.call(2, ["cat", folder / "word"]) == "seen"
    _, files = go(cluster, 1, "ours", folder, ours=True)
    assert len(files) == len(PATTERNS)
    for line in files:
        if kind == "gluster":
            assert line["collective_writes"] > 0 and line["native_calls"] == 0, line
        else:
            assert "several nodes may share the file" in line["reason"], line
    go(cluster, 1, "native", folder, ours=False)
    served = {"gluster": f"{SERVED}/gluster-0", "nfs": SERVED}[kind]
    check_bytes(cluster.path_on(1, served), 2)  # what the server has


@pytest.mark.parametrize("size", [1000, 200_000])
def test_rules_without_coherence(bring: Bring, size: int) -> None:
    """GlusterFS: what MPI promises is kept, for small files, which its client caches by itself, and for others."""
    hosts.require("gluster")
    cluster = bring(2, shares=("gluster",))
    folder = cluster.of.shares()["gluster"]
    program = [sys.executable, str(PROGRAM.with_name("without_coherence.py")), folder, str(size)]
    launch = cluster.run(program, 2, 1, timeout_s=LIMIT_S)
    assert launch.stdout.split() == ["done"], launch.describe()


@pytest.mark.slow
def test_differential_without_coherence(bring: Bring) -> None:
    """Random programs that MPI's rules allow where every host has caches of its own, on GlusterFS."""
    hosts.require("gluster")
    cluster = bring(2, shares=("gluster",))
    setting = Setting(arms=("ours",), limit_s=60.0, cluster=cluster, parent=str(cluster.of.shares()["gluster"]))
    report = run.run(list(range(40_001, 40_061)), setting, shuffle=True, strict=True)
    assert report.cases >= 60
    again = [f"python tests/differential/run.py --hosts 2 --share gluster --case {s}" for s in sorted(report.failures)]
    assert not report.failures, "\n".join([*again, str(list(report.failures.items())[:3])])


@pytest.mark.slow
def test_nfs_server(bring: Bring, tmp_path: pathlib.Path) -> None:
    """The NFS server alone, with a client outside the kernel: another host reads what is served."""
    lacking = needs.lacking_tools({"ganesha.nfsd": share_nfs.TOOLS["ganesha.nfsd"], "nfs-cp": "libnfs-utils"})
    if lacking or os.geteuid() != 0:
        pytest.skip("; ".join([*lacking, "needs root" if os.geteuid() else ""]))
    cluster = bring(3)

    def start(k: int, words: list[str]) -> str:  # as a launch it would end with all that it leaves
        return subprocess.run(cluster.on(k, words), check=True, timeout=LIMIT_S, stdout=subprocess.DEVNULL).args[0]

    folders.serve("nfs", Place(private=cluster.private, count=3, run=start), 1)
    data = bytes(range(256)) * 200
    cluster.path_on(1, f"{SERVED}/data").write_bytes(data)
    command = ["nfs-cp", f"nfs://{network.address(1)}/served/data?version=4", str(cluster.folder / "back")]
    deadline_s = time.monotonic() + LIMIT_S
    while run_bounded(cluster.on(3, command), env=base_environment(), timeout_s=30, check=False).returncode != 0:
        log = cluster.private / "ganesha.log"  # it may still be starting
        assert time.monotonic() < deadline_s, log.read_text("utf-8", errors="replace")
    assert (cluster.folder / "back").read_bytes() == data
