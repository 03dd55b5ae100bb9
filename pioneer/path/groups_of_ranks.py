"""Which subgroup of a path a rank belongs to, when the path is carried out by any number of ranks.

Algorithm. 0 to the root's; with as many ranks as were traced, or a multiple of them, the others to that of the rank
           modulo their number; else to the subgroups in proportion to the numbers of members. Where ranks open files on
           communicators of a part of them (`rules`), only subgroups count whose members have the rank's role in these.
           A rank that is the first one of its half does what the first one of a half has done.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from mpiio_ext.pioneer.path.rules import Rule, roles


@functools.lru_cache(maxsize=8)
def _groups_of_traced(members: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """Return the group of each traced rank, and that of the rank behind the last; empty if one is missing.

    The group behind the last follows the shortest period that the children's groups have: odd and even ranks for one.
    """
    of = {rank: group for group, ranks in enumerate(members) for rank in ranks}
    groups = tuple(of.get(rank, -1) for rank in range(len(of)))
    if -1 in groups or groups[:1] != (0,) or len(groups) < 2:
        return ()
    children = groups[1:]
    period = next(step for step in range(1, len(children) + 1) if children[step:] == children[:-step])
    return (*groups, children[len(children) % period])


@functools.lru_cache(maxsize=8)
def _groups_by_roles(
    members: tuple[tuple[int, ...], ...], rules: tuple[Rule, ...]
) -> dict[tuple[tuple[int, int], ...], list[int]]:
    """Return the subgroups of children whose members have the same roles."""
    traced = sum(map(len, members))
    found: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for group, several in enumerate(members):
        if group and several:
            found.setdefault(roles(rules, min(several), traced), []).append(group)
    return found


def _by_number(rank: int, ranks: int, members: Sequence[Sequence[int]]) -> int:
    traced = _groups_of_traced(tuple(tuple(group) for group in members))
    if traced and ranks % (len(traced) - 1) == 0:
        return traced[rank % (len(traced) - 1) or -1]
    return _in_proportion(rank, ranks, members, range(1, len(members)))


def _in_proportion(rank: int, ranks: int, members: Sequence[Sequence[int]], groups: Sequence[int]) -> int:
    sizes = [max(1, len(members[group])) for group in groups]
    place = (rank - 1) * sum(sizes) / max(1, ranks - 1)
    return groups[min(len(groups) - 1, int(np.searchsorted(np.cumsum(sizes), place, side="right")))]


def group_of_rank(rank: int, ranks: int, members: Sequence[Sequence[int]], rules: Sequence[Rule] = ()) -> int:
    """Return the group of a rank when a path is carried out by so many.

    Parameters
    ----------
    rank, ranks : which one, of how many.
    members : ranks of each group that were traced, the root's first.
    rules : of the path's communicators.
    """
    if rank == 0 or len(members) < 2:
        return 0
    found = _by_number(rank, ranks, members)
    if not rules:
        return found
    known = _groups_by_roles(tuple(tuple(group) for group in members), tuple(rules))
    fitting = known.get(roles(rules, rank, sum(map(len, members))))
    if not fitting or found in fitting:
        return found
    return _in_proportion(rank, ranks, members, fitting)
