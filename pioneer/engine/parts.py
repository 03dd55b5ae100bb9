"""Files that a part of the ranks open together: the ranks of a replay that take part, and their numbers there.

Problem.   A path has the rule of a communicator (`path.rules`), and which groups make each call. In a replay all
           members of a communicator have to make the same collective calls, with any number of ranks; a rank that waits
           for one that does not arrive hangs.
Algorithm. The members of an open are the ranks that have the same number by its rule and whose group makes that open.
           Every rank reckons them from the path alone, so all agree. The place of a member among the members determines
           its accesses. Its offset is that of the first one plus its place times the distance, per place, between its
           representative and a first one. Views are those of the place, as in a file that these ranks alone share.
Guarantee. A rank is among the members that it reckons. Members make the communicator in the order of the path, so that
           no two ranks wait for each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mpiio_ext.pioneer.access import parsed
from mpiio_ext.pioneer.path import WorkloadPath
from mpiio_ext.pioneer.path.communicators import NUMBER
from mpiio_ext.pioneer.path.document import PathInfo
from mpiio_ext.pioneer.path.groups_of_ranks import group_of_rank
from mpiio_ext.pioneer.path.rules import FIRST, Rule
from mpiio_ext.pioneer.profile.sessions import Sessions


def rule_numbers(path: WorkloadPath) -> dict[int, int]:
    """Return the rows of a path that open a file on a communicator which the path has, and the number of its rule."""
    found: dict[int, int] = {}
    if not path.info.communicators:
        return found
    for row, extra in enumerate(path.words("extra").tolist()):
        if extra is not None and NUMBER in extra:
            number = parsed(extra).get(NUMBER)
            if isinstance(number, int) and 0 <= number < len(path.info.communicators):
                found[row] = number
    return found


class Parts:
    """The communicators of a path, as one rank of a replay sees them.

    Parameters
    ----------
    path : what is carried out.
    sessions : its open sessions.
    rank, ranks : who sees them, and how many carry it out.
    """

    def __init__(self, path: WorkloadPath, sessions: Sessions, rank: int, ranks: int) -> None:
        info = path.info
        self._path, self._rank, self._ranks, self._traced = path, rank, ranks, info.traced
        self._opens = {row: info.communicators[number] for row, number in rule_numbers(path).items()}
        self._of_session: Mapping[int, Rule] = {int(sessions.of[row]): rule for row, rule in self._opens.items()}
        self._of = sessions.of.tolist() if self._opens else []
        self._groups: list[int] | None = None
        self._masks = path.table["groups"].to_pylist() if self._opens else []
        self._seen: dict[Rule, PathInfo] = {}

    def rule_of(self, row: int) -> Rule | None:
        """Return the rule of the communicator on which the file of an operation was opened; None if it has no rule."""
        return self._of_session.get(self._of[row]) if self._opens else None

    def members(self, row: int) -> tuple[int, ...] | None:
        """Return the ranks that make an open together with this one; None: it names no communicator of a part."""
        rule = self._opens.get(row)
        if rule is None:
            return None
        if self._groups is None:
            info = self._path.info
            self._groups = [
                group_of_rank(rank, self._ranks, info.members, info.communicators) for rank in range(self._ranks)
            ]
        groups, mask = self._groups, self._masks[row]
        found = rule.members(self._rank, self._ranks, self._traced)
        return tuple(rank for rank in found if mask >> groups[rank] & 1) or (self._rank,)

    def offset(self, row: int, group: int, offsets: Mapping[int, int]) -> int | None:
        """Return this rank's offset of an access; None if the file has no communicator of a part, or it is unknown.

        Parameters
        ----------
        row : of the access.
        group : of this rank.
        offsets : those of the representatives that make it, by group, -1 if it is not known.
        """
        rule = self.rule_of(row)
        own = offsets.get(group, -1)
        if rule is None or own < 0:
            return None
        representatives = self._path.info.representatives
        other, place = (rule.place(rank, self._traced) for rank in (representatives[group], self._rank))
        first = next(
            (
                value
                for one, value in offsets.items()
                if value >= 0 and rule.role(representatives[one], self._traced) == FIRST
            ),
            -1,
        )
        if place < 0 or other < 1 or first < 0 or (own - first) % other:
            return own
        return max(0, first + (own - first) // other * place)

    def seen(self, row: int) -> tuple[PathInfo, int] | None:
        """Return ranks as places in their communicators, the path's and this one; None: they stay as they are."""
        rule = self.rule_of(row)
        if rule is None:
            return None
        if rule not in self._seen:
            info, traced = self._path.info, self._traced

            def place(rank: int) -> int:
                return max(0, rule.place(rank, traced))

            largest = max((place(rank) for group in info.members for rank in group), default=0)
            self._seen[rule] = replace(
                info,
                representatives=tuple(map(place, info.representatives)),
                ranks=1 + largest,
                members=tuple(tuple(map(place, group)) for group in info.members),
            )
        return self._seen[rule], max(0, rule.place(self._rank, traced=self._traced))
