"""Command lines that start a program's ranks on the hosts: Open MPI's launch agent, hydra's launcher of MPICH.

Both launchers start a daemon on each host through the agent, as they would by ssh, and make it talk TCP over the
hosts' own network. The whole environment goes along.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from cluster.network import SUBNET
from cluster.tools import ClusterError

FAMILIES = ("openmpi", "mpich")
ROOT = Path(__file__).resolve().parents[2]
#: Settings of Open MPI, which MPICH does not read: root may run ranks, and more of them than there are cores.
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    # No rank is bound: every host counts all cores as its own, so the first ranks of all hosts would share one core.
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
}


def launcher(family: str) -> Path:
    """Return the launcher of an MPI: of the project's build, else of the system."""
    own = ROOT / "build" / family / "venv" / "bin" / "mpirun"
    if own.exists():
        return own
    names = {"openmpi": ("mpirun.openmpi", "mpirun"), "mpich": ("mpiexec.hydra", "mpiexec.mpich", "mpiexec")}[family]
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise ClusterError(f"no launcher of {family} found: `make MPI={family} build`, or one of {names} on the PATH")
    return Path(found)


def places_of(ranks: int, hosts: int, each: int = 0) -> dict[int, int]:
    """Return ranks by host, in blocks: `each` on a host, 0: as evenly as can be."""
    if ranks < 1 or each < 0:
        raise ClusterError(f"{ranks} ranks, {each} a host: write positive numbers")
    if each:
        if each * hosts < ranks:
            raise ClusterError(f"{ranks} ranks do not fit on {hosts} hosts of {each}")
        places = {k: min(each, ranks - each * (k - 1)) for k in range(1, hosts + 1)}
    else:
        places = {k: ranks // hosts + (k <= ranks % hosts) for k in range(1, hosts + 1)}
    return {k: count for k, count in places.items() if count > 0}


def start_of(
    family: str,
    mpiexec: str | os.PathLike[str],
    agent: str | os.PathLike[str],
    places: Mapping[int, int],
    ranks: int,
    options: Sequence[str] = (),
) -> list[str]:
    """Return a launcher's command line up to the program, to be run on one of the hosts.

    Parameters
    ----------
    places : ranks by host, in order. A host with 0 ranks is the job's, too, where the launcher knows such hosts.
    ranks : of the program.
    options : more of the launcher's.
    """
    if family == "mpich":
        names = ",".join(f"node{k}:{count}" for k, count in places.items() if count)
        words = ["-launcher", "ssh", "-launcher-exec", os.fspath(agent), "-hosts", names]
    else:
        names = ",".join(f"node{k}:{count}" if count else f"node{k}" for k, count in places.items())
        words = ["--mca", "plm_rsh_agent", os.fspath(agent)]
        for part in ("btl", "oob"):
            words += ["--mca", f"{part}_tcp_if_include", SUBNET]
        words += ["-H", names]
    return [os.fspath(mpiexec), *words, *options, "-n", str(ranks)]
