"""The arbiter between hosts: real host names, networks, memories and process numbers, made of namespaces.

Page ranges move between delegates on all hosts, there and back, while ranks on all hosts write and read; see
support/hosts.py and test_arbiter_live.py. The arbiter itself serves the folder that the hosts share.
"""

from __future__ import annotations

import json
import pathlib
import sys
import time
from collections.abc import Iterator

import pytest

from mpiio_ext.delegates.arbiter import announcements, settings
from mpiio_ext.delegates.arbiter.service import Arbiter
from mpiio_ext.delegates.arbiter.settings import Settings
from support import hosts
from support.marks import slow
from support.processes import job

pytestmark = pytest.mark.mpi

PROGRAMS = pathlib.Path(__file__).parents[1] / "programs"
HOSTS, POOL = 3, 3
SMALL = "mpiox_delegate_page=4k:mpiox_delegate_cache=600k:striping_unit=4096:mpiox_delegate_timeout=120"
LIMIT_S = 240.0


@pytest.fixture(scope="module")
def cluster(family: str, extension: str) -> Iterator[hosts.Cluster]:
    """Bring up the hosts of this module."""
    hosts.require()
    with hosts.cluster(HOSTS) as found:
        yield found


@pytest.mark.parametrize("mode", ["spawn", *slow("thread")])
def test_ranges_move_between_hosts(cluster: hosts.Cluster, mode: str) -> None:
    """One rank and one delegate on each host; the pool and the policy change all the time."""
    folder, file = cluster.folder / f"arbiter_{mode}", cluster.folder / f"file_{mode}"
    program = [sys.executable, PROGRAMS / "delegates_remapped.py", file, "5", "300"]
    hints = f"*:mpiox_delegates={POOL}:mpiox_delegate_mode={mode}:{SMALL}:mpiox_arbiter={folder}"
    command = [*cluster.launcher(HOSTS, 1), *cluster.program(program)]
    said: list[str] = []
    seen: dict[str, announcements.Announcement] = {}
    with (
        Arbiter(folder, Settings(io_nodes=POOL, policy="size"), said.append) as arbiter,
        job(command, cluster.folder / f"log_{mode}", {"MPIOX_HINTS": hints}) as running,
    ):
        turn, deadline_s = 0, time.monotonic() + LIMIT_S
        while running.process.poll() is None and time.monotonic() < deadline_s:
            turn += 1
            settings.write(folder, Settings(io_nodes=1 + turn % POOL, policy=("size", "one")[turn // POOL % 2]))
            arbiter.step()
            seen |= {each.job: each for each in announcements.read_all(folder)[0]}
            time.sleep(0.1)
        assert running.status(1) == 0, running.text()
        found = json.loads(next(line for line in running.text().splitlines() if line.startswith("{")))
    assert found["wrong_reads"] == 0 and found["same"], found
    assert found["remapped_ranges"] >= 300
    (announced,) = seen.values()
    assert announced.nodes == HOSTS and announced.ranks == HOSTS
    assert announced.boot == announcements.here()[0] and announced.processes != announcements.here()[1]
    assert not announcements.is_gone(announced)  # its process number means nothing here
    assert not any("expired" in line for line in said), said
