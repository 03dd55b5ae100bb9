"""One file of the model: which values a byte may have for whom, by MPI's consistency rules (MPI-4.1, section 14.6).

An *agent* is a rank with a handle that it opened together with others: (opening, rank). A write is kept as an *entry*
until everybody has seen it, then it becomes part of the content. What an agent may read at a byte:

- An entry is *known* to an agent that made it, or when it was made visible: the opening that wrote it has synced (or
  closed), then there was a barrier, then the reader's opening has synced (or was opened). In atomic mode a barrier
  alone is enough for the ranks of the same opening.
- A known entry hides the content and every entry that its writer knew. What is not hidden may be read.
- Writes that come later in the list of calls, but with no barrier between, may be read as well: ranks go on their own.

So a byte that nobody else touched has one value, the result of a conflict has few, and a lost or torn or stale byte has
one that is not among them. The first rank that reads the result of a settled conflict decides for all that come later.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from differential.typetree import Offsets
from model.history import BLANK, Bytes

Agent = tuple[int, int]
Mask = npt.NDArray[np.bool_]
MOST_BYTES = 1 << 19


@dataclass(slots=True, eq=False)
class Entry:
    """One rank's write: where, what, who knew which earlier entries, and how far it has come.

    ``synced``: its opening has synced since; ``met``: and then there was a barrier. ``seen``: openings that know it.
    """

    agent: Agent
    at: Offsets
    data: Bytes
    knew: frozenset[int]
    atomic: bool
    done: bool
    synced: bool = False
    met: bool = False
    seen: set[int] = field(default_factory=set)

    @property
    def top(self) -> int:
        """One past the last byte."""
        return int(self.at[-1]) + 1


@dataclass(slots=True, eq=False)
class Layer:
    """The other values that settled conflicts may have left: at some file offsets, where they are still possible."""

    at: Offsets
    data: Bytes
    alive: Mask

    def clear(self, at: Offsets) -> None:
        """These bytes are known now."""
        common = meet(self.at, at)
        if common:
            self.alive[common[0]] = False

    def over(self, at: Offsets) -> tuple[Mask, Bytes] | None:
        """Return at which of these offsets there are other values, and which; None for none."""
        common = meet(at, self.at)
        if common is None or not self.alive[common[1]].any():
            return None
        mask, option = np.zeros(len(at), bool), np.zeros(len(at), np.uint8)
        mask[common[0]] = self.alive[common[1]]
        option[common[0]] = self.data[common[1]]
        return mask, option


@dataclass(slots=True, eq=False)
class Reading:
    """A read: what each byte may be, and the sizes that the file may have had.

    Attributes
    ----------
    at : file offset of each byte.
    options : pairs (positions at which it is possible, or None for everywhere; values).
    unsure : likewise, what settled conflicts may have left.
    least, sizes : the size that the reader knows, and what else it may have met.
    done : the call has returned (or will, before the next call of this rank).
    several_calls : it stands for several calls, between which the end of the file may move.
    """

    agent: Agent
    at: Offsets
    options: list[tuple[Mask | None, Bytes]]
    unsure: list[tuple[Mask, Bytes]]
    least: int
    sizes: set[int]
    done: bool = True
    several_calls: bool = False

    def allow_blanks(self) -> int:
        """Allow what several calls leave that met the end in several places; the most bytes that they have read."""
        mask = np.ones(len(self.at), bool)
        mask[: self.shortest] = False
        self.options.append((mask, np.full(len(self.at), BLANK, np.uint8)))
        return self.longest

    @property
    def shortest(self) -> int:
        """The fewest bytes that the read may have moved."""
        return int(np.searchsorted(self.at, self.least))

    @property
    def longest(self) -> int:
        """The most; anything between, while others move the end of the file."""
        return int(np.searchsorted(self.at, max(self.sizes)))

    def check(self, got: Bytes, n: int) -> str | None:
        """Return what is wrong with the first n bytes of what was read."""
        if not self.shortest <= n <= self.longest:
            return f"{n} bytes of {len(self.at)} were read, possible: {self.shortest} to {self.longest}"
        fine = np.zeros(n, bool)
        for mask, data in [*self.options, *self.unsure]:
            same = got[:n] == data[:n]
            fine |= same if mask is None else same & mask[:n]
        wrong = np.flatnonzero(~fine)
        if not len(wrong):
            return None
        p, q = int(wrong[0]), int(wrong[-1])
        allowed = {int(data[p]) for mask, data in [*self.options, *self.unsure] if mask is None or mask[p]}
        return (
            f"{len(wrong)} of {n} bytes are wrong, the first at {p} (file offset {int(self.at[p])}), the last at {q} "
            f"(file offset {int(self.at[q])}): there is {got[p]}, possible: {sorted(allowed)}"
        )

    def taught(self, n: int) -> npt.NDArray[np.int64]:
        """Return the positions whose values decide a settled conflict: not those that others write meanwhile."""
        decides = np.zeros(len(self.at), bool)
        for mask, _ in self.unsure:
            decides |= mask
        for other, _ in self.options[1:]:
            decides &= False if other is None else ~other
        return np.flatnonzero(decides[:n])


@dataclass(slots=True, eq=False)
class Sizing:
    """A question for the size: what it may be."""

    agent: Agent
    least: int
    sizes: set[int]


def meet(one: Offsets, other: Offsets) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
    """Return where in each of two ascending lists the common offsets are, None when there are none."""
    if not len(one) or not len(other) or one[-1] < other[0] or other[-1] < one[0]:
        return None
    place = np.searchsorted(other, one)
    place[place == len(other)] = 0
    mine = np.flatnonzero(other[place] == one)
    return (mine, place[mine]) if len(mine) else None


class File:
    """The content of one file, the entries on top of it, and the reads that are still open to later writes."""

    def __init__(self, data: Bytes, *, exists: bool) -> None:
        self.exists = exists
        self.data = data.copy()
        self.layers: list[Layer] = []
        self.entries: list[Entry] = []
        self.readings: list[Reading] = []
        self.sizings: list[Sizing] = []
        self.openings: set[int] = set()
        self.ended: set[Agent] = set()  # who has gone to the end of the file since the last barrier
        self.resized_by: int | None = None  # an opening that has changed the size; the others do not know
        self.is_new = False  # made since the last barrier

    @property
    def busy(self) -> bool:
        """Tell whether anything was done since everybody last agreed."""
        return bool(self.entries or self.readings or self.sizings or self.ended or self.resized_by is not None)

    def known(self, agent: Agent) -> frozenset[int]:
        """Return the entries that an agent knows, by index."""
        return frozenset(i for i, e in enumerate(self.entries) if (e.agent == agent and e.done) or agent[0] in e.seen)

    def least(self, agent: Agent) -> int:
        """Return the size that an agent knows."""
        return max([len(self.data), *(self.entries[i].top for i in self.known(agent))])

    def sizes(self, agent: Agent) -> set[int]:
        """Return the sizes that an agent may meet."""
        least = self.least(agent)
        return {least} | {entry.top for entry in self.entries if entry.top > least}

    def write(self, agent: Agent, at: Offsets, data: Bytes, *, atomic: bool, done: bool) -> None:
        """Add a write."""
        if not len(at):
            return
        for reading in self.readings:
            if reading.agent == agent and reading.done:
                continue
            common = meet(reading.at, at)
            if common:
                mask = np.zeros(len(reading.at), bool)
                mask[common[0]] = True
                option = np.zeros(len(reading.at), np.uint8)
                option[common[0]] = data[common[1]]
                reading.options.append((mask, option))
        top = int(at[-1]) + 1
        for question in [*self.readings, *self.sizings]:
            if top > question.least and question.agent != agent:
                question.sizes.add(top)
        self.entries.append(Entry(agent, at, data, self.known(agent), atomic, done))

    def read(self, agent: Agent, at: Offsets, *, done: bool = True) -> Reading:
        """Return what a read may find; it stays open to later writes until the next barrier."""
        known = self.known(agent)
        base = np.zeros(len(at), np.uint8)
        inside = int(np.searchsorted(at, len(self.data)))
        base[:inside] = self.data[at[:inside]]
        visible = np.ones(len(at), bool)  # the content is not hidden
        touched: list[tuple[int, Mask, Bytes]] = []
        for i, entry in enumerate(self.entries):
            common = meet(at, entry.at)
            if common:
                mask = np.zeros(len(at), bool)
                mask[common[0]] = True
                option = np.zeros(len(at), np.uint8)
                option[common[0]] = entry.data[common[1]]
                touched.append((i, mask, option))
                if i in known:
                    visible &= ~mask
        options: list[tuple[Mask | None, Bytes]] = [(None if visible.all() else visible, base)]
        for i, mask, option in touched:
            alive = mask.copy()
            for j, other, _ in touched:
                if j in known and i in self.entries[j].knew:
                    alive &= ~other
            options.append((alive, option))
        unsure = [over for layer in self.layers if (over := layer.over(at)) is not None]
        unsure = [(mask & visible, option) for mask, option in unsure]
        reading = Reading(agent, at, options, unsure, self.least(agent), self.sizes(agent), done)
        self.readings.append(reading)
        return reading

    def ask(self, agent: Agent) -> Sizing:
        """Return what a question for the size may be answered."""
        sizing = Sizing(agent, self.least(agent), self.sizes(agent))
        self.sizings.append(sizing)
        return sizing

    def learn(self, reading: Reading, got: Bytes) -> str | None:
        """What a rank reads of a settled conflict is its result; returns what is wrong if others read otherwise."""
        positions = reading.taught(len(got)) if reading.unsure else []
        if not len(positions):
            return None
        at, data = reading.at[positions], got[positions]
        fine = self.data[at] == data
        for layer in self.layers:
            over = layer.over(at)
            if over is not None:
                fine |= over[0] & (over[1] == data)
        if not fine.all():
            p = int(np.flatnonzero(~fine)[0])
            return (
                f"{int((~fine).sum())} bytes, the first at file offset {at[p]}, are {data[p]} after others have read "
                f"{self.data[at[p]]}"
            )
        self.put(at, data)
        return None

    def put(self, at: Offsets, data: Bytes) -> None:
        """Everybody knows these bytes."""
        self.data[at] = data
        for layer in self.layers:
            layer.clear(at)

    # ---- what makes writes known ----------------------------------------------------------------------------------

    def sync(self, opening: int) -> None:
        """An opening has synced, or was opened, or closed."""
        for entry in self.entries:
            if entry.agent[0] == opening and entry.done:
                entry.synced = True
            if entry.met:
                entry.seen.add(opening)

    def barrier(self) -> None:
        """All ranks have met: what was read before is not open to later writes."""
        self.readings = [reading for reading in self.readings if not reading.done]
        self.sizings = []
        self.ended = set()
        for entry in self.entries:
            if entry.synced:
                entry.met = True
            if entry.atomic and entry.done:
                entry.seen.add(entry.agent[0])
        self.settle()

    def settle(self) -> None:
        """What everybody knows becomes content."""
        if self.readings or not all(e.met and self.openings <= e.seen for e in self.entries):
            return
        if not self.entries:
            return
        entries, self.entries = self.entries, []
        self.layers = [layer for layer in self.layers if layer.alive.any()]
        size = max(len(self.data), max(entry.top for entry in entries))
        if size > len(self.data):
            self.data = np.concatenate([self.data, np.zeros(size - len(self.data), np.uint8)])
        for i, entry in enumerate(entries):
            self.put(entry.at, entry.data)
            self.conflicts(entries, i)

    def conflicts(self, entries: list[Entry], i: int) -> None:
        """Remember the bytes of entry i that an earlier entry, unknown to its writer, may have instead."""
        for j in range(i):
            if j in entries[i].knew:
                continue
            common = meet(entries[i].at, entries[j].at)
            if common is None:
                continue
            mine, theirs = common
            alive = np.ones(len(mine), bool)
            for k, entry in enumerate(entries):
                if k not in (i, j) and j in entry.knew:
                    alive &= ~np.isin(entries[i].at[mine], entry.at)
            if alive.any():
                data = entries[j].data[theirs[alive]]
                self.layers.append(Layer(entries[i].at[mine[alive]], data, np.ones(len(data), bool)))

    def resize(self, size: int, *, opening: int, shrink: bool) -> None:
        """Set the size; nothing else is under way."""
        if size > len(self.data):
            self.data = np.concatenate([self.data, np.zeros(size - len(self.data), np.uint8)])
        elif shrink:
            gone = np.arange(size, len(self.data))
            self.put(gone, self.data[gone])
            self.data = self.data[:size].copy()
        self.resized_by = opening

    def content(self) -> tuple[Bytes, list[Mask]]:
        """Return what :meth:`restore` needs to take back what :meth:`adopt` did."""
        return self.data.copy(), [layer.alive.copy() for layer in self.layers]

    def restore(self, before: tuple[Bytes, list[Mask]]) -> None:
        """Take back everything since :meth:`content`."""
        self.data = before[0].copy()
        for layer, alive in zip(self.layers, before[1], strict=True):
            layer.alive = alive.copy()

    def adopt(self, at: Offsets, data: Bytes) -> None:
        """Everybody knows this content."""
        if len(at):
            size = int(at[-1]) + 1
            if size > len(self.data):
                self.data = np.concatenate([self.data, np.zeros(size - len(self.data), np.uint8)])
            self.put(at, data)

    def compare(self, held: Bytes) -> str | None:
        """Return what is wrong with the final bytes."""
        if len(held) != len(self.data):
            return f"the file has {len(held)} bytes, expected {len(self.data)}"
        fine = held == self.data
        everywhere = np.arange(len(held))
        for layer in self.layers:
            over = layer.over(everywhere)
            if over is not None:
                fine |= over[0] & (over[1] == held)
        wrong = np.flatnonzero(~fine)
        if not len(wrong):
            return None
        first, last = int(wrong[0]), int(wrong[-1])
        return (
            f"{len(wrong)} of {len(held)} bytes of the file are wrong, the first at {first}, the last at {last}: there "
            f"is {held[first]}, expected {self.data[first]}"
        )
