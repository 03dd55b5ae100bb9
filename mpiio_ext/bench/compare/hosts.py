"""Launches on several hosts of this one machine, for ``compare --hosts``: the project's cluster of namespaces.

The cluster's sources are in the source checkout (``scripts/cluster``, docs/project/clusters.md), not in the installed
package; outside a checkout there are no hosts. What a launch leaves on any host is ended by the mark in its
environment. The hosts' clock is the machine's, and the micro-benchmark detects this: its times go from the first rank's
begin to the last one's end, as on one node.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from mpiio_ext.bench.compare.launches import ArgumentError, Case, Outcome, run_benchmark
from mpiio_ext.bench.compare.peers import Peer
from mpiio_ext.bench.errors import BenchError

_CLUSTER = Path(__file__).resolve().parents[3] / "scripts" / "cluster"
_GRACE_S = 5.0  # that processes get to end after their launcher


class HostsError(BenchError):
    """Hosts cannot be brought up here."""


def _module(name: str) -> ModuleType:
    """Return a module of the cluster, which is loaded from its files: the path of imports stays as it is."""
    if "cluster" not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            "cluster", _CLUSTER / "__init__.py", submodule_search_locations=[str(_CLUSTER)]
        )
        if spec is None or spec.loader is None or not (_CLUSTER / "client.py").exists():
            raise HostsError("--hosts: the cluster of namespaces is part of the source checkout, which this is not")
        sys.modules["cluster"] = package = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(package)
    return importlib.import_module(f"cluster.{name}")


class Place:
    """Hosts that are up.

    Parameters
    ----------
    cluster : a ``cluster.client.Cluster``
    ranks_per_host : consecutive ranks on each

    Attributes
    ----------
    folder : in memory, shared by all hosts with one page cache, the same path for all of them and for this machine
    """

    def __init__(self, cluster: Any, ranks_per_host: int) -> None:
        self._cluster, self._each = cluster, ranks_per_host
        self.folder = Path(cluster.folder)

    def command(self, peer: Peer, case: Case) -> list[str]:
        """Return the command line of one launch: the peer's launcher on the first host, ranks in blocks."""
        launchers = _module("launchers")
        places = launchers.places_of(case.ranks, len(self._cluster.hosts()), self._each)
        words = launchers.start_of(
            peer.installation.family, peer.installation.mpiexec, self._cluster.agent, places, case.ranks
        )
        return [str(word) for word in self._cluster.on(1, [*words, *peer.program([*case.arguments(), "--wire"])])]

    def run(self, peer: Peer, case: Case) -> Outcome:
        """Run the micro-benchmark once under a peer; see :func:`launches.run_benchmark`."""
        commands, launchers = _module("commands"), _module("launchers")
        mark = uuid.uuid4().hex
        environment = {**launchers.ENVIRONMENT, **peer.variables(), commands.MARKER: mark}
        try:
            return run_benchmark(peer, case, self.command(peer, case), environment)
        finally:
            commands.end_all(mark, _GRACE_S)


@contextlib.contextmanager
def hosts(count: int, ranks_per_host: int, rate: str) -> Iterator[Place]:
    """Start so many hosts, and stop them after the block.

    Parameters
    ----------
    count : of the hosts
    ranks_per_host : consecutive ranks on each
    rate : of every host's link in each direction, e.g. "1gbit"; "": no limit

    Raises
    ------
    HostsError
        with what is missing on this machine
    ArgumentError
        `rate` is no bandwidth
    """
    client, tools, network = _module("client"), _module("tools"), _module("network")
    if rate:
        try:
            network.parse_rate(rate)
        except tools.ClusterError as error:
            raise ArgumentError(f"--rate: {error}") from error
    os.environ["PATH"] = tools.with_system_path(os.environ.get("PATH"))
    try:
        cluster = client.start(count, name=uuid.uuid4().hex[:8], rate=rate, attached=True)
    except tools.ClusterError as error:
        raise HostsError(f"--hosts: {error}") from error
    try:
        yield Place(cluster, ranks_per_host)
    finally:
        cluster.stop()
