"""Whether the ranks of a node have a core each: only then may one of them spin without taking time from another."""

from __future__ import annotations

import os
import socket
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpi4py import MPI


def are_free(allowed: Sequence[Collection[int]]) -> bool:
    """Return whether the ranks of a node can all run at a time; `allowed` are the cores that each may run on.

    Ranks that are bound to the same core share it, whatever others are free.
    """
    sharing: dict[frozenset[int], int] = defaultdict(int)
    for cores in allowed:
        sharing[frozenset(cores)] += 1
    together = len(frozenset().union(*allowed)) >= len(allowed)
    return together and all(len(cores) >= count for cores, count in sharing.items())


def cores_free(comm: MPI.Intracomm) -> bool:
    """Return whether each rank of this rank's node has a core. Collective over `comm`.

    What else runs on the node is not looked at: it comes and goes.
    """
    found = comm.allgather((socket.gethostname(), sorted(os.sched_getaffinity(0))))
    return are_free([cores for host, cores in found if host == found[comm.rank][0]])
