"""Which ranks are in a communicator together, for any number of ranks.

Kinds.     blocks  k consecutive ranks each: number rank // k. With more ranks there are more of them.
           every   ranks that are equal modulo k: number rank % k. With more ranks they are larger.
           from    all ranks from k on: number 0.
           ranks   those that are listed, and ranks that are equal to them modulo the number of ranks that were traced.
           `which` are the numbers of the communicators that there are, where not all are used: the I/O ranks of a
           program are those equal to 0 modulo k.
Roles.     A rank is in no communicator of a rule, or the first in one, or another one. That is what a representative
           has to be for: the first one of each half does what the root does in its half (`role`).
JSON.      ``{"blocks": 2}``, ``{"every": 4, "which": [0]}``, ``{"from": 1}``, ``{"ranks": [[0, 5], [1, 2]]}``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

KINDS = ("blocks", "every", "from", "ranks")
#: Roles: in no communicator, the first one in it, another one.
OUTSIDE, FIRST, OTHER = range(3)

_Set = tuple[int, ...]


def _is_block(one: _Set, size: int, ranks: int) -> bool:
    """Return whether a set is a block of so many, the last one perhaps shorter."""
    begin = one[0]
    return begin % size == 0 and one == tuple(range(begin, min(begin + size, ranks)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How the members of communicators come about.

    Attributes
    ----------
    kind : one of `KINDS`.
    size : k; of "ranks" 0.
    which : numbers of communicators that are used; None: all.
    ranks : of "ranks": the members of each.
    """

    kind: str
    size: int = 0
    which: tuple[int, ...] | None = None
    ranks: tuple[_Set, ...] = ()

    @classmethod
    def of(cls, sets: Sequence[_Set], ranks: int, traced: Iterable[int]) -> Rule:
        """Return the rule of communicators; with `ranks` ranks it gives these.

        Parameters
        ----------
        sets : their members, ascending; no rank is in two.
        ranks : of the program.
        traced : ranks of which there are traces: a communicator of others may be there and not be seen.
        """
        every = {rank for one in sets for rank in one}
        whole = all(rank in every for rank in traced)
        size = max(map(len, sets))
        steps = {one[1] - one[0] for one in sets if len(one) > 1}
        step = next(iter(steps)) if len(steps) == 1 else 0

        def made(kind: str, k: int, number: Callable[[int], int]) -> Rule:
            return cls(kind=kind, size=k, which=None if whole else tuple(sorted({number(one[0]) for one in sets})))

        if all(_is_block(one, size, ranks) for one in sets):
            return made("blocks", size, lambda rank: rank // size)
        if step > 1 and all(one[0] < step and one == tuple(range(one[0], ranks, step)) for one in sets):
            return made("every", step, lambda rank: rank % step)
        if len(sets) == 1 and sets[0] == tuple(range(sets[0][0], ranks)):
            return cls(kind="from", size=sets[0][0])
        return cls(kind="ranks", ranks=tuple(sorted(sets)))

    def number(self, rank: int, traced: int) -> int | None:
        """Return the number of a rank's communicator; None: it is in none.

        Parameters
        ----------
        rank : whose.
        traced : how many ranks were traced.
        """
        if self.kind == "ranks":
            place = rank % max(1, traced)
            return next((number for number, one in enumerate(self.ranks) if place in one), None)
        found = {
            "blocks": rank // max(1, self.size),
            "every": rank % max(1, self.size),
            "from": 0 if rank >= self.size else -1,
        }[self.kind]
        return None if found < 0 or (self.which is not None and found not in self.which) else found

    def place(self, rank: int, traced: int) -> int:
        """Return the number of a rank among the members of its communicator, from 0 on; -1: it is in none."""
        number = self.number(rank, traced)
        if number is None:
            return -1
        if self.kind == "ranks":
            copy, place = divmod(rank, max(1, traced))
            own = sorted(self.ranks[number])
            return copy * len(own) + own.index(place)
        return {"blocks": rank % max(1, self.size), "every": rank // max(1, self.size), "from": rank - self.size}[
            self.kind
        ]

    def members(self, rank: int, ranks: int, traced: int) -> _Set:
        """Return the ranks that are in one communicator with a rank, itself included; empty: it is in none."""
        number = self.number(rank, traced)
        if number is None:
            return ()
        if self.kind == "blocks":
            return tuple(range(number * self.size, min((number + 1) * self.size, ranks)))
        if self.kind == "every":
            return tuple(range(number, ranks, self.size))
        return tuple(other for other in range(ranks) if self.number(other, traced) == number)

    def role(self, rank: int, traced: int) -> int:
        """Return the role of a rank: `OUTSIDE`, `FIRST` or `OTHER`."""
        place = self.place(rank, traced)
        return OUTSIDE if place < 0 else FIRST if place == 0 else OTHER

    def words(self) -> str:
        """Return the rule in words."""
        only = "" if self.which is None else f"; of these {', '.join(map(str, self.which))}"
        if self.kind == "ranks":
            return f"ranks {'; '.join(', '.join(map(str, one)) for one in self.ranks)}"
        return {
            "blocks": f"{self.size} consecutive ranks each: rank // {self.size}",
            "every": f"ranks equal modulo {self.size}: rank % {self.size}",
            "from": f"all ranks from {self.size} on",
        }[self.kind] + only

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        found: dict[str, Any] = {self.kind: [list(one) for one in self.ranks] if self.kind == "ranks" else self.size}
        return found if self.which is None else found | {"which": list(self.which)}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Rule:
        """Return the rule that a JSON object is.

        Raises
        ------
        ValueError
            The object has none of the kinds, or several of them, or an impossible size.
        """
        kinds = [kind for kind in KINDS if kind in found]
        if len(kinds) != 1:
            raise ValueError(f"it has {', '.join(kinds) or 'none'} of {', '.join(KINDS)}: one of them is needed")
        kind, which = kinds[0], found.get("which")
        chosen = None if which is None else tuple(which)
        if kind == "ranks":
            sets = tuple(tuple(sorted(set(one))) for one in found[kind])
            if not sets or not all(sets) or len({rank for one in sets for rank in one}) < sum(map(len, sets)):
                raise ValueError("there are no ranks, or one is in two communicators")
            return cls(kind=kind, ranks=sets, which=chosen)
        if found[kind] < (0 if kind == "from" else 1):
            raise ValueError(f"{kind} of {found[kind]} ranks")
        return cls(kind=kind, size=found[kind], which=chosen)


# ---- subgroups -------------------------------------------------------------------------------------------------------


def roles(rules: Sequence[Rule], rank: int, traced: int) -> tuple[tuple[int, int], ...]:
    """Return the role of a rank for each rule, and for listed ranks the communicator that it is in."""
    found = []
    for rule in rules:
        listed = rule.number(rank, traced) if rule.kind == "ranks" else None
        found.append((rule.role(rank, traced), -1 if listed is None else listed))
    return tuple(found)


def refined(groups: Sequence[_Set], rules: Sequence[Rule], traced: int) -> tuple[_Set, ...]:
    """Return subgroups whose members have the same roles: the root's as it is, others by their lowest ranks."""
    parts: dict[tuple[int, object], list[int]] = {}
    for number, group in enumerate(groups):
        for rank in group:
            parts.setdefault((number, roles(rules, rank, traced) if number else None), []).append(rank)
    split = sorted(tuple(part) for key, part in parts.items() if key[0])
    return (*(tuple(group) for group in groups[:1]), *split)
