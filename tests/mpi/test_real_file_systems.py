"""Real distributed file systems with a client on each host: every partition method, MPI's rules, random programs.

GlusterFS volumes, CephFS and MooseFS on the cluster of namespaces (docs/project/clusters.md). What lacks is skipped.
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterator

import pytest

from differential import run
from differential.arms import Setting
from support import hosts
from support.launch import base_environment, json_lines, run_bounded
from support.partition_methods import METHODS
from support.shares import DISTRIBUTED

pytestmark = [pytest.mark.mpi, pytest.mark.both, pytest.mark.slow]

PROGRAMS = pathlib.Path(__file__).parents[1] / "programs"
#: A sharded GlusterFS volume has files of a single writer only: it is left to the MPI library.
COHERENT = tuple(kind for kind in DISTRIBUTED if kind != "gluster-shard")
LIMIT_S = 120.0
coherent = pytest.mark.parametrize("share", COHERENT, indirect=True, scope="module")
PATTERNS = ("tiny", "small", "page", "odd", "large", "ordered")


@pytest.fixture(scope="module")
def share(request: pytest.FixtureRequest, family: str, extension: str) -> Iterator[tuple[str, hosts.Cluster]]:
    """Bring up two hosts with one kind of file system."""
    hosts.require(request.param)
    with hosts.cluster(2, shares=(request.param,)) as found:
        yield request.param, found


def exchange(kind: str, cluster: hosts.Cluster, prefix: str, hints: str) -> list[dict[str, object]]:
    """Run the program of all patterns under hints, one rank a host; what the library counted for each file."""
    folder, statistics = cluster.of.shares()[kind], cluster.folder / f"{prefix}.jsonl"
    env = {"MPIOX_STATS": "1", "MPIOX_STATS_FILE": str(statistics), "MPIOX_HINTS": hints}
    program = [sys.executable, PROGRAMS / "between_hosts.py", folder, prefix]
    cluster.run(program, 2, 1, env=env, timeout_s=LIMIT_S)
    lines = json_lines(statistics)
    return [line for line in lines if line["kind"] == "file"]


@coherent
@pytest.mark.parametrize("stripes", ["", ":mpiox_stripe_size_io=true:striping_unit=64k:striping_factor=2"])
def test_every_method(share: tuple[str, hosts.Cluster], stripes: str) -> None:
    """Each method leaves the bytes of plain MPI-IO on a coherent folder, seen by both hosts' clients."""
    kind, cluster = share
    folder = cluster.of.shares()[kind]
    program = [sys.executable, PROGRAMS / "between_hosts.py", cluster.folder, "plain"]
    cluster.run(program, 2, 1, preload=False, timeout_s=LIMIT_S)
    for method in (*METHODS, "auto"):
        prefix = f"{method}{bool(stripes):d}"
        hints = f"*:mpiox_coherence=refresh:mpiox_partition={method}{stripes}"
        lines = exchange(kind, cluster, prefix, hints)
        assert lines, "the library counted no file"
        for line in lines:
            assert line["collective_writes"] and line["native_calls"] == 0, line
        for name in PATTERNS:
            plain = (cluster.folder / f"plain.{name}").read_bytes()
            for k in (1, 2):
                words = cluster.on(k, ["cmp", f"{folder}/{prefix}.{name}", cluster.folder / f"plain.{name}"])
                done = run_bounded(words, env=base_environment(), timeout_s=LIMIT_S, check=False)
                assert done.returncode == 0, f"{kind}, {method}, {name} of {len(plain)} bytes: {done.describe()}"


@coherent
@pytest.mark.parametrize("size", [1000, 200_000])
def test_rules(share: tuple[str, hosts.Cluster], size: int) -> None:
    """What MPI promises is kept without being asked: the file system is known."""
    kind, cluster = share
    program = [sys.executable, PROGRAMS / "without_coherence.py", cluster.of.shares()[kind], str(size)]
    launch = cluster.run(program, 2, 1, timeout_s=LIMIT_S)
    assert launch.stdout.split() == ["done"], launch.describe()


@coherent
def test_random_programs(share: tuple[str, hosts.Cluster]) -> None:
    """Random programs that MPI's rules allow where every host has caches of its own."""
    kind, cluster = share
    # Open MPI makes a file of its own for the shared pointer at each open. Where GlusterFS' client still knows the name
    # from an open before, a host's open of it fails, and the other ranks' never ends.
    env = (("OMPI_MCA_sharedfp", "individual"),)
    setting = Setting(arms=("ours",), limit_s=60.0, cluster=cluster, parent=str(cluster.of.shares()[kind]), env=env)
    report = run.run(list(range(41_001, 41_021)), setting, shuffle=True, strict=True)
    assert report.cases >= 20
    again = [f"python tests/differential/run.py --hosts 2 --share {kind} --case {s}" for s in sorted(report.failures)]
    assert not report.failures, "\n".join([*again, str(list(report.failures.items())[:3])])
