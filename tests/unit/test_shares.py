"""Shared folders of the cluster: distributed file systems that start and stop by themselves: docs/project/clusters.md.

What MPI programs find there: tests/mpi/test_real_file_systems.py.
"""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from cluster import client
from support import hosts
from support.shares import DISTRIBUTED, daemons_of

LIMIT_S = 120.0


@pytest.fixture(params=[pytest.param(kind, marks=pytest.mark.slow if kind == "cephfs" else ()) for kind in DISTRIBUTED])
def kind(request: pytest.FixtureRequest) -> str:
    """Return a kind that can be had here."""
    hosts.require(request.param)
    return str(request.param)


@pytest.fixture()
def name() -> Iterator[str]:
    """Return the name of a cluster of which nothing is left after the test."""
    own = f"s{os.getpid()}"
    yield own
    client.Cluster(own).stop()
    assert not left_of(own)


def left_of(name: str) -> list[str]:
    """Return what is left of a cluster: folders, mounts, processes that have it in their command line."""
    places = [client.private_folder(name), client.shared_folder(name)]
    mounts = pathlib.Path("/proc/self/mounts").read_text("utf-8")
    found = [f"{path}" for path in places if path.exists() or f"{path}" in mounts]
    return found + [f"{pid}: {words}" for pid, words in daemons_of(places[0])]


def said(found: client.Cluster, k: int, script: str) -> str:
    """Run a shell script on a host; what it printed."""
    done = subprocess.run(found.on(k, ["sh", "-c", script]), capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done
    return done.stdout.strip()


def test_life(kind: str, name: str) -> None:
    """Every host has a client of its own on one file system; a host that comes back has it again; nothing is left."""
    found = client.start(3, name=name, shares=[kind])
    where = found.shares()[kind]
    devices = {said(found, k, f"stat -c %d {where}") for k in (1, 2, 3)}
    assert not os.path.ismount(where) and devices.isdisjoint({said(found, 1, f"stat -c %d {found.private}")})
    said(found, 1, f"head -c 3000000 /dev/urandom > {where}/data")
    sums = {said(found, k, f"sha256sum < {where}/data") for k in (1, 2, 3)}
    assert len(sums) == 1
    assert daemons_of(found.private), "the daemons are not found: nothing below could fail"
    found.vanish(3)
    found.bring_back(3)
    assert said(found, 3, f"sha256sum < {where}/data") in sums
    found.stop()
    assert not left_of(name)


def test_killed_keeper(kind: str, name: str) -> None:
    """The keeper is killed: servers, clients and mounts end with it."""
    found = client.start(2, name=name, shares=[kind])
    os.kill(found.state()["pid"], signal.SIGKILL)
    deadline_s = time.monotonic() + LIMIT_S
    while left_of(name):
        assert time.monotonic() < deadline_s, left_of(name)
        time.sleep(0.1)
