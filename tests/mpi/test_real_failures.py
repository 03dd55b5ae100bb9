"""Real distributed file systems that fail amid collective writes: killed storage servers, full disks.

The library promises: every rank is told the same, by an error or by success; no byte of a collective write that has
succeeded on all ranks is missing afterwards; the program ends, unless the file system itself blocks. What a client on a
third host reads afterwards, whose caches know nothing of the file, is the judge. The same program runs without the
library beside it.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest

from cluster import share_ceph, share_gluster, share_moosefs
from cluster.served import SERVED, Place, keep_trying, resize_disk
from cluster.tools import ClusterError
from support import hosts
from support.shares import daemons_of

pytestmark = [pytest.mark.mpi, pytest.mark.both, pytest.mark.slow]

PROGRAM = pathlib.Path(__file__).parents[1] / "programs" / "failing_storage.py"
RANKS, ROUND_BYTES = 4, 4096 * 32 * 4
#: Ranks are on the first two hosts; the third has a client that only looks.
PLACES, JUDGE = {1: 2, 2: 2}, 3
#: Space that is left when the disks get full: a few rounds.
LEFT_BYTES = 3 * ROUND_BYTES
#: Seconds for a program that ends (MooseFS gives up after 60 s), and after which one counts as blocked; each times 4.
LIMIT_S, BLOCKED_S = 60.0, 8.0
STEP_S = 120.0


def run(cluster: hosts.Cluster, k: int, words: list[str]) -> str:
    """Run a command on a host, which may leave daemons there."""
    done = subprocess.run(cluster.on(k, words), capture_output=True, text=True, timeout=STEP_S, check=False)
    if done.returncode != 0:
        raise ClusterError(f"{words}: {done.stdout} {done.stderr}")
    return done.stdout


def place_of(cluster: hosts.Cluster) -> Place:
    """Return where its shares are served."""
    return Place(private=cluster.private, count=cluster.count, run=lambda k, words: run(cluster, k, words))


def kill(cluster: hosts.Cluster, words: str) -> None:
    """Kill the one daemon whose command line has these words."""
    (pid,) = [pid for pid, line in daemons_of(cluster.private) if words in line]
    os.kill(pid, signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class Fault:
    """How a file system fails, and what the program then meets.

    Attributes
    ----------
    kind : of the share.
    what : "N servers" are killed, or all their disks are "full".
    ends : "goes on": all writes succeed; "fails": a write fails on all ranks; "blocks": a write waits for the servers.
    classes : of the errors.
    """

    kind: str
    what: str
    ends: str
    classes: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        return f"{self.kind}-{self.what.replace(' ', '-')}"

    def readable(self) -> bool:
        """Tell whether what has arrived can still be read."""
        return self.ends == "goes on" or self.what == "full"

    def strike(self, cluster: hosts.Cluster) -> None:
        """Break it."""
        if self.what == "full":
            self.fill(cluster, LEFT_BYTES)
            return
        for server in range(int(self.what.split()[0])):
            name = {
                "moosefs": f"mfschunkserver.{server + 1}.cfg",
                "cephfs": f"ceph-osd -c {cluster.private}/ceph.conf -i {server}",
            }
            kill(cluster, name.get(self.kind, f"{self.kind}-server-{server}.vol"))

    def fill(self, cluster: hosts.Cluster, free_bytes: int | None) -> None:
        """Leave so much space, None: all that there was."""
        place = place_of(cluster)
        if self.kind == "cephfs":
            ratios = ("0.02", "0.01", "0.01") if free_bytes is not None else ("0.95", "0.90", "0.85")
            for name, ratio in zip(("full", "backfillfull", "nearfull"), ratios, strict=True):
                share_ceph.command(place, "osd", f"set-{name}-ratio", ratio)
            keep_trying(lambda: self.noticed(place, full=free_bytes is not None))
            return
        path = share_moosefs.DISK if self.kind == "moosefs" else SERVED
        for k in range(1, cluster.count + 1):
            if self.kind != "gluster" or k == 1:
                resize_disk(place, k, path, free_bytes)

    def noticed(self, place: Place, *, full: bool) -> None:
        """Raise unless Ceph's monitor knows whether its stores are full, which they tell it from time to time."""
        pools = [
            pool["flags_names"].split(",")
            for pool in json.loads(share_ceph.command(place, "osd", "dump", "--format", "json"))["pools"]
        ]
        if any("full" in flags for flags in pools) != full:
            raise ClusterError(f"flags of the pools: {pools}")

    def mend(self, cluster: hosts.Cluster) -> None:
        """Start what was killed, on what is there of its files; make room."""
        place = place_of(cluster)
        if self.what == "full":
            self.fill(cluster, None)
            return
        for server in range(int(self.what.split()[0])):
            if self.kind == "moosefs":
                share_moosefs.start_chunk_server(place, server + 1)
            elif self.kind != "cephfs":  # its stores are in their processes' memory
                (volume,) = (volume for volume in share_gluster.VOLUMES if volume.name == self.kind)
                volume.start_brick(place, server)


FAULTS = (
    Fault("gluster", "1 servers", "fails", ("ERR_IO",)),
    Fault("gluster", "full", "fails", ("ERR_NO_SPACE",)),
    Fault("gluster-disperse", "1 servers", "goes on"),
    Fault("gluster-disperse", "2 servers", "fails", ("ERR_IO",)),
    Fault("moosefs", "1 servers", "goes on"),
    Fault("moosefs", "3 servers", "fails", ("ERR_IO", "ERR_NO_SPACE")),
    Fault("moosefs", "full", "blocks"),
    Fault("cephfs", "1 servers", "goes on"),
    Fault("cephfs", "2 servers", "blocks"),
    Fault("cephfs", "full", "fails", ("ERR_NO_SPACE",)),
)


@pytest.fixture()
def cluster(fault: Fault, family: str, extension: str) -> Iterator[hosts.Cluster]:
    """Bring up three hosts with the file system that is to fail."""
    hosts.require(fault.kind)
    with hosts.cluster(3, shares=(fault.kind,)) as found:
        yield found


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended: on time, and what its ranks were told, by what they did and the round."""

    path: pathlib.Path
    timed_out: bool
    returncode: int
    described: str
    told: dict[tuple[str, int], list[str]]

    def writes(self) -> dict[int, list[str]]:
        """Return what the ranks were told of each round's write."""
        return {turn: results for (what, turn), results in self.told.items() if what == "write"}

    def gist(self) -> str:
        """Return how it ended in a line."""
        bad = [
            f"{what} {turn}: {set(results)}" for (what, turn), results in self.told.items() if set(results) != {"ok"}
        ]
        return f"{'blocked' if self.timed_out else 'ended'} ({self.returncode}), {len(self.writes())} writes; {bad[:6]}"


def carry_out(cluster: hosts.Cluster, fault: Fault, name: str, *, preload: bool) -> Ended:
    """Run the program, and let the storage fail under it."""
    path, notes = cluster.of.shares()[fault.kind] / name, cluster.folder / f"notes.{name}"
    notes.mkdir()

    def strike() -> None:
        deadline_s = time.monotonic() + STEP_S
        while not (notes / "ready").exists() and time.monotonic() < deadline_s:
            time.sleep(0.01)
        fault.strike(cluster)
        (notes / "broken").touch()

    limit_s = BLOCKED_S if fault.ends == "blocks" else LIMIT_S
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        struck = pool.submit(strike)
        words = [sys.executable, PROGRAM, path, notes, *(["read"] if fault.readable() else [])]
        launch = cluster.run(words, RANKS, PLACES, preload=preload, timeout_s=limit_s, check=False)
        struck.result()
    told: dict[tuple[str, int], list[str]] = {}
    for rank in range(RANKS):
        with contextlib.suppress(FileNotFoundError):
            for line in (notes / f"rank.{rank}").read_text("utf-8").splitlines():
                what, turn, result = json.loads(line)
                told.setdefault((what, turn), []).append(result)
    return Ended(path, launch.timed_out, launch.returncode, launch.describe(), told)


def eventually(step: Callable[[], bytes]) -> bytes:
    """Return what a step gives once it goes well: clients find their servers again after seconds."""
    found: list[bytes] = []
    keep_trying(lambda: found.append(step()))
    return found[0]


def arrived(cluster: hosts.Cluster, ended: Ended) -> bytes:
    """Return the file as the third host's client reads it."""

    def read() -> bytes:
        words = cluster.on(JUDGE, ["cat", ended.path])
        done = subprocess.run(words, capture_output=True, timeout=STEP_S, check=False)
        if done.returncode != 0:
            raise ClusterError(done.stderr.decode())
        return done.stdout

    return eventually(read)


def lost_rounds(content: bytes, ended: Ended) -> list[int]:
    """Return the rounds that all ranks were told to have written, and whose bytes are not in the file."""
    at = np.arange(len(ended.writes()) * ROUND_BYTES, dtype=np.uint64)
    expected = ((at * np.uint64(2654435761)) >> np.uint64(13)).astype(np.uint8).tobytes()
    lost = []
    for turn, results in ended.writes().items():
        part = slice(turn * ROUND_BYTES, (turn + 1) * ROUND_BYTES)
        if results == ["ok"] * RANKS and content[part] != expected[part]:
            lost.append(turn)
    return lost


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.ends == "blocks"], ids=str)
def test_blocks_natively(fault: Fault, cluster: hosts.Cluster) -> None:
    """Where the library waits without end, so does the MPI library: it is the file system that waits."""
    ended = carry_out(cluster, fault, "native", preload=False)
    assert ended.timed_out, ended.described


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_ours(fault: Fault, cluster: hosts.Cluster) -> None:
    """All ranks are told the same of every write, it is true, and the program ends where the file system lets it."""
    ended = carry_out(cluster, fault, "ours", preload=True)
    print(f"OURS {fault}: {ended.gist()}")
    assert ended.timed_out == (fault.ends == "blocks"), ended.described
    for (what, turn), results in ended.told.items():
        assert ended.timed_out or len(results) == RANKS, ended.described
        assert what == "close" or len(set(results)) == 1, f"{what} {turn}: the ranks were told {results}"
        assert {"wrong", "short"}.isdisjoint(results), f"{what} {turn}: bytes that were not written, without an error"
    if fault.ends == "blocks":
        return
    assert ended.returncode == 0, ended.described
    errors = {result for results in ended.writes().values() for result in results} - {"ok"}
    assert bool(errors) == (fault.ends == "fails"), ended.gist()
    assert errors <= set(fault.classes), ended.gist()
    fault.mend(cluster)
    assert not lost_rounds(arrived(cluster, ended), ended), ended.gist()
