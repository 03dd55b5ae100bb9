"""From numbers of I/O nodes to I/O nodes: which ones each job has.

Algorithm. A job can use the I/O nodes that it has delegates on: the lowest ones. Jobs retain their nodes up to their
new numbers. The free nodes then go to the jobs that get more nodes, first to the job with the fewest nodes to choose
from. Of several nodes a job retains or gets the highest, since fewer other jobs can use it. If a policy assigns more
nodes than there are, or none to a job that cannot do without, jobs share nodes, first the nodes with the fewest jobs.
The shared node (Section 3.1 of the arbitration paper) is the node of index 0, which every job can use. The jobs without
nodes of their own use it, and no other jobs do.
Guarantees. Every job has at least one I/O node and at most those that it has delegates on; the same input gives the
same answer; no job moves without need.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

_NOBODYS: Mapping[str, int] = {}


def place(
    counts: Mapping[str, int],
    usable: Mapping[str, int],
    before: Mapping[str, tuple[int, ...]],
    io_nodes: int,
    users: Mapping[str, int] = _NOBODYS,
) -> dict[str, tuple[int, ...]]:
    """Return the I/O nodes of every job, ascending.

    Parameters
    ----------
    counts : job -> number that the policy gives it
    usable : job -> how many I/O nodes it can use: those with an index below this
    before : job -> what it has now
    io_nodes : in the pool, at least 1
    users : job -> its user, whose jobs share nodes among each other before they share another user's
    """
    wanted = {job: max(1, min(count, usable[job], io_nodes)) for job, count in sorted(counts.items())}
    load: Counter[int] = Counter()
    held: dict[str, list[int]] = {}
    for job, count in wanted.items():
        reach = min(usable[job], io_nodes)
        kept = sorted((node for node in before.get(job, ()) if node < reach), reverse=True)
        held[job] = [node for node in kept if load[node] == 0][:count]
        load.update(held[job])
    for job, count in sorted(wanted.items(), key=lambda item: (usable[item[0]], item[0])):
        reach = min(usable[job], io_nodes)
        while len(held[job]) < count:
            node = min((node for node in range(reach) if node not in held[job]), key=lambda node: (load[node], -node))
            if load[node] > 0:
                node = _make_room(job, range(reach), held, wanted, usable, load, io_nodes)
            if node < 0:
                if held[job]:
                    break  # sharing is for those that would have none
                node = min(range(reach), key=lambda node: (_strangers(node, job, held, users), load[node], -node))
            held[job].append(node)
            load[node] += 1
    return {job: tuple(sorted(nodes)) for job, nodes in held.items()}


def _strangers(node: int, job: str, held: Mapping[str, list[int]], users: Mapping[str, int]) -> int:
    """Return how many jobs of other users have a node."""
    return sum(node in nodes for other, nodes in held.items() if users.get(other) != users.get(job))


def place_beside_shared(
    counts: Mapping[str, int],
    shared: Collection[str],
    usable: Mapping[str, int],
    before: Mapping[str, tuple[int, ...]],
    io_nodes: int,
    users: Mapping[str, int] = _NOBODYS,
) -> dict[str, tuple[int, ...]]:
    """Return the I/O nodes of every job where the node of index 0 is shared by those in `shared`.

    The others are as :func:`place` has them; a job with delegates on node 0 only, or in a pool of one, shares as well.
    """
    sharing = {job for job in counts if job in shared or usable[job] < 2 or io_nodes < 2}
    own = {job: count for job, count in counts.items() if job not in sharing}
    had = {job: tuple(node - 1 for node in nodes if node > 0) for job, nodes in before.items()}
    placed = place(own, {job: usable[job] - 1 for job in own}, had, io_nodes - 1, users)
    return {job: (0,) if job in sharing else tuple(node + 1 for node in placed[job]) for job in sorted(counts)}


def _make_room(
    job: str,
    nodes: Iterable[int],
    held: dict[str, list[int]],
    wanted: Mapping[str, int],
    usable: Mapping[str, int],
    load: Counter[int],
    io_nodes: int,
) -> int:
    """Move another job from one of these nodes to a free one. Returns the node; -1: no such node."""
    if all(load[node] > 0 for node in range(io_nodes)):
        return -1
    for node in nodes:
        for other in wanted:
            if other == job or node not in held[other] or load[node] != 1:
                continue
            free = [each for each in range(min(usable[other], io_nodes)) if load[each] == 0]
            if free:
                held[other][held[other].index(node)] = free[-1]
                load[node] -= 1
                load[free[-1]] += 1
                return node
    return -1
