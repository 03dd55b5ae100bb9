"""Delegates between hosts: real host names, networks and memories, made of namespaces; see support/hosts.py.

tests/programs/delegates_hosts.c does everything that a file can do and verifies each byte; delegates_crash.c goes on
while delegates are killed, or a whole host vanishes. Nothing here measures time, but whether something ends at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from support import hosts
from support.cbuild import failed_checks, mpi_program

pytestmark = pytest.mark.mpi

HOSTS = 4
LIMIT_S = 300.0
GRACE_S = 60.0
SMALL = "mpiox_delegate_cache=2m:mpiox_delegate_page=64k"
#: Checks of delegates_hosts.c and of delegates_crash.c.
ALL_CHECKS, CRASH_CHECKS = 4 * 8 + 6 + 6 + 10, 2 * 8


@pytest.fixture(scope="module")
def cluster(family: str, extension: str) -> Iterator[hosts.Cluster]:
    """Bring up the hosts of this module; a host that has vanished comes back for the next test."""
    reason = hosts.why_not()
    if reason is not None:
        pytest.skip(reason)
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


@pytest.mark.parametrize("mode", ["spawn", "thread"])
@pytest.mark.parametrize("each", [1, 2])
def test_access(cluster: hosts.Cluster, mode: str, each: int) -> None:
    """Two delegates on two of four hosts; every access, every byte."""
    _, delegates_at = use_everything(cluster, each, f"mpiox_delegates=2:mpiox_delegate_mode={mode}:{SMALL}")
    assert delegates_at == {0: "node1", 1: "node3"}
