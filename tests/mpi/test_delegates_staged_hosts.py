"""Files that are closed before they are written, between hosts, which are namespaces; see support/hosts.py.

Cases meet their files again in every way; tests/programs/delegates_staged_deaths.py closes checkpoints, until the host
of a delegate vanishes: what was acknowledged at level replica is written by the other delegate.
"""

from __future__ import annotations

import contextlib
import pathlib
import sys
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from differential import arms, text, variants
from support import hosts
from support.launch import marked_processes
from support.marks import slow
from support.processes import job
from support.staged import CHECKPOINTS, check_names, kill_at_once

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]
LIMIT_S = 120.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[hosts.Cluster]:
    """Bring up three hosts."""
    hosts.require()
    with hosts.cluster(3) as found:
        yield found


@pytest.mark.parametrize(
    ("level", "parts"), [*slow(("memory", 0)), ("memory", 3), *slow(("replica", 0), ("replica", 3))]
)
def test_what_is_closed_is_there(cluster: hosts.Cluster, level: str, parts: int) -> None:
    """Also files of subfiles."""
    setting = replace(variants.behind("spawn", 0, level, parts=parts).setting(), cluster=cluster)
    entries = text.read_file(text.FOLDER / "staged.case")
    cases = arms.ready([entry.case | {"id": number} for number, entry in enumerate(entries)], setting)
    found = arms.launch(cases, 3, setting)
    assert len(found) == len(entries) and not any(line["problems"] for line in found), found


def host_of(pid: int) -> str:
    """Return what tells a process's host from the others."""
    with contextlib.suppress(OSError):
        return str(pathlib.Path(f"/proc/{pid}/ns/uts").readlink())
    return ""


@pytest.fixture()
def second_host(cluster: hosts.Cluster) -> Iterator[None]:
    """A host that vanishes is back for the next test."""
    yield
    if not cluster.is_up(2):
        cluster.bring_back(2)


@pytest.mark.both_with("1-0")
@pytest.mark.parametrize(("vanishes", "parts"), [(1, 0), *slow((0, 4), (0, 0), (1, 4))])
def test_host_is_lost(cluster: hosts.Cluster, second_host: None, vanishes: int, parts: int) -> None:
    """Silently, or all of its processes are killed: the other delegate writes both parts, and files get their names."""
    folder = cluster.folder / f"lost-{vanishes}-{parts}"
    folder.mkdir()
    hints = (
        "*:mpiox_delegates=2:mpiox_delegate_cache=2m:mpiox_delegate_page=16k:mpiox_delegate_ack=replica:"
        f"mpiox_subfiles={parts}:mpiox_subfile_unit=7000:"
        "striping_unit=16k:mpiox_close=staged:mpiox_drain_rate=20k"
    )
    words = [*cluster.launcher(3, 1), *cluster.program([sys.executable, CHECKPOINTS, folder, "3", "600"])]
    with job(words, cluster.private / "job.log", {"MPIOX_HINTS": hints}) as running:
        running.wait_for("closed 0", LIMIT_S)
        assert not (folder / "checkpoint0").exists()
        if vanishes:
            cluster.vanish(2)
        else:
            lost = host_of(cluster.of.hosts()[1].pid)
            kill_at_once(pid for pid in marked_processes(running.marker) if host_of(pid) == lost)
        deadline_s = time.monotonic() + LIMIT_S
        while not (folder / "checkpoint0").exists() and time.monotonic() < deadline_s:
            time.sleep(0.05)
        check_names(folder, running.text())
        assert (folder / "checkpoint0").exists(), running.text()
        assert not list(folder.glob(".checkpoint0.*")), running.text()
