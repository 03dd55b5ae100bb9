"""One file of the oracle: its bytes, and who used which of them since everybody last agreed on the content."""

from __future__ import annotations

import copy

import numpy as np

from differential.state import MAX_FILE_BYTES, Bytes, Illegal, Marks, Mask
from differential.typetree import Offsets

RANKS = 64  # an agent is instance * RANKS + rank
FENCED = 100_000  # + instance: any rank of that (atomic) open may go on from here
SEVERAL = 200_000  # + instance: several ranks of one open
MIXED = -2  # several opens


def sized(content: Bytes, size: int) -> Bytes:
    """Return a content cut, or continued by zeros, to a size."""
    return np.concatenate([content[:size], np.zeros(max(0, size - len(content)), np.uint8)])


class File:
    """The content of one file and the marks that tell conflicts.

    Attributes
    ----------
    written : False in gaps that nobody wrote: zero by us, undefined by MPI.
    writer, reader : agent that wrote (read) a byte since the last sync, -1 none.
    settled : size at the last sync; ``tops``: the end of what each agent wrote since.
    met_end : agents whose reads since the last sync went past the end, and the smallest size that they met.
    resized : the size was set and not synced yet.
    alone : there were accesses since the last sync that were no collectives.
    synced : the content at the last sync.
    others : what the file may hold in place of `data`, each byte by itself, after a death or failed writes.
    """

    def __init__(self, data: Bytes, *, exists: bool) -> None:
        self.exists = exists
        self.data = data
        self.written: Mask = np.ones(len(data), bool)
        self.others: list[Bytes] = []
        self.sync()

    def sync(self) -> None:
        """Everybody now agrees on content and size."""
        self.synced = self.data.copy()
        self.writer: Marks = np.full(0, -1, np.int32)
        self.reader: Marks = np.full(0, -1, np.int32)
        self.settled = len(self.data)
        self.tops: dict[int, int] = {}
        self.met_end: dict[int, int] = {}
        self.resized = False
        self.dirty = False
        self.alone = False

    def copy(self) -> File:
        """Return an independent copy."""
        twin = copy.copy(self)
        twin.data, twin.written = self.data.copy(), self.written.copy()
        twin.others = [other.copy() for other in self.others]
        twin.writer, twin.reader = self.writer.copy(), self.reader.copy()
        twin.tops, twin.met_end = dict(self.tops), dict(self.met_end)
        return twin

    def fence(self, instance: int) -> None:
        """The ranks of one open in atomic mode have met in a barrier."""
        for marks in (self.writer, self.reader):
            owner = np.where(marks >= FENCED, marks % FENCED, marks // RANKS)
            marks[(owner == instance) & (marks >= 0)] = FENCED + instance
        own = [agent for agent in self.tops if agent // RANKS == instance or agent == FENCED + instance]
        if own:
            self.tops[FENCED + instance] = max(self.tops.pop(agent) for agent in own)

    def grow(self, size: int) -> None:
        """Make the file at least ``size`` bytes long."""
        if size > MAX_FILE_BYTES:
            raise Illegal("file too large for the model")
        if size > len(self.data):
            more = size - len(self.data)
            self.data = np.concatenate([self.data, np.zeros(more, np.uint8)])
            self.written = np.concatenate([self.written, np.zeros(more, bool)])

    def put(self, target: Offsets, values: Bytes) -> None:
        """Write bytes at offsets."""
        if not len(target):
            return
        top = int(target.max()) + 1
        self.grow(top)
        self.data[target] = values
        self.written[target] = True
        self.others = [sized(other, max(top, len(other))) for other in self.others]
        for other in self.others:
            other[target] = values

    def may_be(self, other: Bytes) -> None:
        """Each byte, and the size, is from now on as in `data` or as in this content."""
        self.others.append(other.copy())

    @property
    def sizes(self) -> tuple[int, int]:
        """The least and the largest size that the file may have."""
        found = [len(content) for content in (self.data, *self.others)]
        return min(found), max(found)

    def is_sure(self, target: Offsets) -> Mask:
        """Return which bytes at these offsets have one value only."""
        sure = np.ones(len(target), bool)
        for other in self.others:
            sure &= other[target] == self.data[target]
        return sure

    def differs(self, held: Bytes) -> Mask:
        """Return which of the bytes that `held` and `data` both have are none of those that the file may hold."""
        common = min(len(held), len(self.data))
        wrong: Mask = held[:common] != self.data[:common]
        for other in self.others:
            wrong &= held[:common] != sized(other, common)
        return wrong

    def resize(self, size: int) -> None:
        """Set the size; not under those who have learnt it (MPI-4.1, section 14.6.10: a sync orders the two)."""
        if self.met_end:
            raise Illegal("size changes after somebody learnt it without sync")
        self.grow(size)
        self.data, self.written = self.data[:size].copy(), self.written[:size].copy()
        self.others = [sized(other, size) for other in self.others]
        self.resized = self.dirty = True

    def extend_marks(self, top: int) -> None:
        """Make the marks reach to ``top``."""
        if top > MAX_FILE_BYTES:
            raise Illegal("file too large for the model")
        if top > len(self.writer):
            more = np.full(max(top, len(self.data)) - len(self.writer), -1, np.int32)
            self.writer, self.reader = np.concatenate([self.writer, more]), np.concatenate([self.reader, more])

    def check(self, agent: int, verb: str, target: Offsets) -> None:
        """Refuse an access that conflicts with an earlier one by somebody else."""
        instance, top = agent // RANKS, int(target.max()) + 1
        allowed = (-1, agent, FENCED + instance)
        for marks in (self.writer, self.reader) if verb == "write" else (self.writer,):
            if not np.isin(marks[target], allowed).all():
                raise Illegal("conflict without sync")
        if verb == "write":  # a size that changes while somebody reads at the end is a conflict, too
            if any(top > size for reader, size in self.met_end.items() if reader != agent):
                raise Illegal("file grows after a read past its end without sync")
            return
        known = max(self.settled, self.tops.get(agent, 0), self.tops.get(FENCED + instance, 0))
        others = set(self.tops) - {agent, FENCED + instance}
        if top > known and others and len(self.data) > self.settled:
            raise Illegal("read past the end of the file at the last sync")

    def note(self, agent: int, verb: str, target: Offsets) -> None:
        """Remember an access; before it is carried out."""
        self.dirty = True
        if not len(target):
            return
        instance, top = agent // RANKS, int(target.max()) + 1
        marks = self.writer if verb == "write" else self.reader
        before = marks[target]
        owner = np.where(before >= FENCED, before % FENCED, before // RANKS)
        shared = np.where(owner == instance, SEVERAL + instance, MIXED)
        free = (before == -1) | (before == agent) | (before == FENCED + instance)
        marks[target] = np.where(free, agent, shared)
        if verb == "write" and top > self.settled:
            self.tops[agent] = max(top, self.tops.get(agent, 0))
        if verb == "read" and top > len(self.data):
            self.saw_end(agent)

    def saw_end(self, agent: int) -> None:
        """The agent has learnt the size."""
        self.met_end[agent] = min(len(self.data), self.met_end.get(agent, len(self.data)))
