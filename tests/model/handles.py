"""Open files and requests under way, as the oracle follows them; and what makes a program erroneous."""

from __future__ import annotations

from dataclasses import dataclass

from differential.typetree import Offsets
from model.consistency import Agent, Reading
from model.history import Op, View, groups_of


class Illegal(Exception):
    """The program would be erroneous; ``needs``: a fence before the call would make it legal."""

    def __init__(self, reason: str, *, fence: bool = False) -> None:
        super().__init__(reason)
        self.fence = fence


@dataclass(slots=True)
class Request:
    """A nonblocking call under way."""

    number: int
    h: int
    rank: int
    write: bool
    at: Offsets
    reading: Reading | None


class Handle:
    """An open file: one number, one opening for each group of ranks."""

    def __init__(self, op: Op, ranks: int, first: int) -> None:
        self.op = op
        self.groups = groups_of(op["comm"], ranks)
        self.group = {rank: g for g, members in enumerate(self.groups) for rank in members}
        self.first = first
        self.views = {rank: View() for rank in self.group}
        self.own = dict.fromkeys(self.group, 0)
        self.shared = [0] * len(self.groups)
        self.same_view = True
        self.atomic = False

    @property
    def readable(self) -> bool:
        """Tell whether the mode allows reads."""
        return "wronly" not in self.op["mode"]

    @property
    def writable(self) -> bool:
        """Tell whether the mode allows writes."""
        return "rdonly" not in self.op["mode"]

    @property
    def openings(self) -> list[int]:
        """The numbers of its openings."""
        return [self.first + g for g in range(len(self.groups))]

    def agent(self, rank: int) -> Agent:
        """Return the agent that a rank is on this handle."""
        return self.first + self.group[rank], rank
