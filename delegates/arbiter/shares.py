"""Shares of users: a claim of one user takes nothing from the share of another.

Problem. Jobs report their own sizes and programs. A policy that believes these reports gives all nodes to the job with
the largest claim.
Algorithm. The policy is asked about all jobs. The algorithm sets aside the users whose jobs get more than a user's
share. The policy then decides about the other users with the rest of the pool, and finally about the users set aside
with the remaining nodes.
Guarantees. A user alone has all. No job gets less than its share because another one claims more; nodes that other jobs
do not use are used. Sizes count among the jobs of one user, and among users below their share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mpiio_ext.delegates.arbitration.jobs import Grant, Job


def _total(grants: Mapping[str, Grant], names: Sequence[str]) -> int:
    return sum(0 if grants[name].shared else max(1, grants[name].io_nodes) for name in names)


def shared_out(
    jobs: Sequence[Job],
    users: Mapping[str, int],
    io_nodes: int,
    share: float | None,
    ask: Callable[[Sequence[Job], int], Mapping[str, Grant]],
) -> dict[str, Grant]:
    """Return the I/O nodes of each job.

    Parameters
    ----------
    users : job -> number of its user
    io_nodes : in the pool
    share : part of the pool that one user has at most while others want it; None = all users the same
    ask : the policy, with some of the jobs and so many I/O nodes
    """
    found = dict(ask(jobs, io_nodes))
    names: dict[int, list[str]] = {}
    for job in jobs:
        names.setdefault(users[job.name], []).append(job.name)
    limit = max(1, int(io_nodes * share) if share is not None else io_nodes // max(1, len(names)))
    above = sorted(user for user, its in names.items() if _total(found, its) > limit)
    if len(names) < 2 or not above:
        return found
    rest = [job for job in jobs if users[job.name] not in above]
    left = io_nodes
    if rest:
        pool = max(1, io_nodes - limit * len(above))
        found |= shared_out(rest, users, pool, None if share is None else min(1.0, share * io_nodes / pool), ask)
        left = max(0, io_nodes - _total(found, [job.name for job in rest]))
    for number, user in enumerate(above):
        has = max(1, left // (len(above) - number))
        found |= ask([job for job in jobs if users[job.name] == user], has)
        left = max(0, left - has)
    return found
