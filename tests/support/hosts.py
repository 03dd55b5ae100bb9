"""Several hosts on this one machine, for launches between hosts: the project's cluster (scripts/cluster) under tests.

Hosts are namespaces with names, networks, processes, /dev/shm (docs/project/clusters.md). Here is what tests add:
the MPI of the running environment, this library under the program, launches that leave nothing behind.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence

import pytest

from support.launch import ROOT, Launch, base_environment, launcher, library_path, mpi_family, run_bounded

if str(ROOT / "scripts") not in sys.path:  # `cluster` is ours
    sys.path.append(str(ROOT / "scripts"))

from cluster import client, folders, launchers, needs
from cluster.tools import ClusterError

#: Kinds of shared folders with a client on every host.
KINDS = tuple(folders.KINDS)


@functools.cache
def why_not() -> str | None:
    """Return why hosts cannot be brought up here, None when they can."""
    try:
        with cluster(2) as found:
            found.call(1, ["true"])
    except (OSError, subprocess.SubprocessError, AssertionError, ClusterError) as error:
        return f"{error}"
    return None


@functools.cache
def why_no_share(kind: str) -> str | None:
    """Return why hosts cannot share a folder of this kind here, None when they can; see scripts/cluster/folders.py."""
    lacking = folders.missing(kind, rootless=os.geteuid() != 0)
    return f"{kind}: missing: {'; '.join(lacking)}" if lacking else why_not()


def require(kind: str = "") -> None:
    """Skip the test where hosts cannot be brought up here, or cannot share a folder of this kind."""
    reason = why_no_share(kind) if kind else why_not()
    if reason is not None:
        pytest.skip(reason)


def lacks_shaping() -> list[str]:
    """Return what is missing for limits of bandwidth."""
    return needs.missing(shaping=True)


class Cluster:
    """Hosts that are up; see :func:`cluster`.

    Attributes
    ----------
    of : the cluster itself, with all that it can do.
    folder : shared, in memory, the same path everywhere, for this machine too.
    private : folder of what belongs to the cluster.
    agent : an executable like ssh.
    """

    def __init__(self, of: client.Cluster) -> None:
        self.of = of
        self.private, self.folder, self.agent = of.private, of.folder, of.agent
        self.vanish, self.bring_back, self.on = of.vanish, of.bring_back, of.on
        self.count = len(of.hosts())

    def is_up(self, k: int) -> bool:
        """Tell whether host k is up: it has not been made to vanish."""
        return self.of.hosts()[k - 1].up

    def call(self, k: int, words: Sequence[str | os.PathLike[str]], timeout_s: float = 30.0) -> str:
        """Run a command that must succeed on host k; what it printed."""
        return run_bounded(self.on(k, words), env=base_environment(), timeout_s=timeout_s).stdout

    def launcher(
        self, ranks: int, places: Mapping[int, int] | int = 0, *, first: int = 1, options: Sequence[str] = ()
    ) -> list[str]:
        """Return the start of a launcher's command line, to be run on host `first`, up to the program.

        Parameters
        ----------
        ranks : of the program.
        places : ranks by host, in order; or as many on each; 0: spread evenly. A host with 0 ranks is the job's, too.
        first : the host of the launcher.
        options : more of the launcher's.
        """
        if not isinstance(places, Mapping):
            places = dict.fromkeys(range(1, self.count + 1), places or -(-ranks // self.count))
        words = launchers.start_of(str(mpi_family()), str(launcher()), self.agent, places, ranks, options)
        return self.on(first, words)

    def run(
        self,
        program: Sequence[str | os.PathLike[str]],
        ranks: int,
        places: Mapping[int, int] | int = 0,
        *,
        env: Mapping[str, str] | None = None,
        timeout_s: float = 60.0,
        check: bool = True,
        options: Sequence[str] = (),
        preload: bool = True,
        cwd: str | os.PathLike[str] | None = None,
    ) -> Launch:
        """Run a program on the hosts; see :meth:`launcher` and :func:`support.launch.mpi_run`."""
        words = [*self.launcher(ranks, places, options=options)]
        words += self.program(program) if preload else list(map(os.fspath, program))
        environment = base_environment() | dict(env or {})
        return run_bounded(words, env=environment, timeout_s=timeout_s, cwd=cwd or self.folder, check=check)

    def program(self, program: Sequence[str | os.PathLike[str]]) -> list[str]:
        """Return a program with this library under it."""
        return ["env", f"LD_PRELOAD={library_path()}", *map(os.fspath, program)]

    def path_on(self, k: int, path: str | os.PathLike[str]) -> pathlib.Path:
        """Return where this machine finds what host k calls `path`, on the mounts that are the host's own, too."""
        return pathlib.Path(f"/proc/{self.of.hosts()[k - 1].pid}/root{os.fspath(path)}")


@contextlib.contextmanager
def cluster(count: int, *, shares: Sequence[str] = (), rate: str = "") -> Iterator[Cluster]:
    """Bring up so many hosts; they are gone afterwards, or when this process dies."""
    with client.cluster(count, shares=shares, rate=rate) as found:
        yield Cluster(found)
