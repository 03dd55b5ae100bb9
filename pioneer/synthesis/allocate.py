"""Allocating global sequence IDs: which burst stands where in a synthetic path.

Problem.   Distances (ISG, IRG) that are drawn for each file by itself put several operations at one ID and leave other
           IDs empty. Moving them then spoils the distances, the span, and the order in which files take turns.
Algorithm. The IDs are filled in order, a burst at a time. Bursts of sessions under way are due where their shapes say.
           Any other ID goes to a unit whose distance from the unit before it on its file is then one of those that are
           still to be used; each distance is used as often as it was drawn. Of several such units it is one that was
           seen to follow what stands before that ID, as long as it has not followed as often as it was seen to. Of
           these it is the one with the longest distance, which is met by chance most rarely. Where there is none, the
           unit that is due next, or overdue, is put there, and the nearest distance counts as used.
Guarantee. Each ID is given once, there is no hole: the span is the number of operations. Units of a file begin in
           their order, those that do not overlap follow each other, bursts of a unit too. Every choice among equals is
           drawn.

Source: He, Du, Narasimhamurthy, "PIONEER", section V-D, Algorithm 1, Figure 4.
"""

from __future__ import annotations

import bisect
import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpiio_ext.pioneer.synthesis.model import Archetype, Pair, Shape

#: By archetype, shape and kind of an operation, and of the one behind it.
Follows = Mapping[tuple[int, ...], int]

#: Distances of a file that are tried at a time.
_MOST_DISTANCES = 24
#: Works that are late among which one is drawn.
_MOST_LATE = 32


@dataclass(frozen=True, slots=True)
class Work:
    """One file, to be placed.

    Attributes
    ----------
    number : of its archetype; works with the same number share their distances.
    archetype : its archetype.
    """

    number: int
    archetype: Archetype


@dataclass(frozen=True, slots=True)
class Placed:
    """Bursts in the order of their IDs.

    Attributes
    ----------
    work : index of the work of each burst.
    unit : which unit of its track.
    burst : which burst of its unit.
    """

    work: NDArray[np.int64]
    unit: NDArray[np.int64]
    burst: NDArray[np.int64]


class _Distances:
    """Distances that are still to be used, for works of the same archetype."""

    def __init__(self, counted: Counter[int]) -> None:
        self._left = +counted
        self._order = sorted(self._left)

    def has(self, distance: int) -> bool:
        return distance in self._left

    def some(self, random: np.random.Generator) -> list[int]:
        """Return the different distances, or as many as are tried at a time."""
        count = len(self._order)
        if count <= _MOST_DISTANCES:
            return self._order
        return [self._order[at] for at in set(random.integers(0, count, _MOST_DISTANCES).tolist())]

    def use(self, distance: int) -> None:
        """Count a distance as used, or that nearest to it."""
        if not self._order:
            return
        at = bisect.bisect_left(self._order, distance)
        if at == len(self._order) or (at and distance - self._order[at - 1] < self._order[at] - distance):
            at -= 1
        nearest = self._order[at]
        self._left[nearest] -= 1
        if not self._left[nearest]:
            del self._left[nearest], self._order[at]


@dataclass(slots=True)
class _State:
    """A file while IDs are given.

    Attributes
    ----------
    next : number of the unit that begins next.
    begin, end : IDs of the first and last operation of the session of the unit before; 0 before the first.
    waiting : that unit may begin as soon as a distance fits.
    pending : IDs at which it may begin, and which have not been looked at.
    """

    next: int = 0
    begin: int = 0
    end: int = 0
    waiting: bool = True
    pending: int = 0


@dataclass(slots=True)
class _Cut:
    """A shape as far as the allocation needs it: for each burst its place, its length and the kind of its end."""

    places: list[int]
    lengths: list[int]
    last_kinds: list[int]
    first: int
    last_place: int

    @classmethod
    def of(cls, shape: Shape) -> _Cut:
        starts = shape.bursts
        lengths = np.diff(np.append(starts, shape.kinds.size))
        ends = shape.kinds[starts + lengths - 1]
        return cls(
            shape.places[starts].tolist(),
            lengths.tolist(),
            ends.tolist(),
            int(shape.places[shape.first]),
            int(shape.places[shape.last]),
        )


class _Allocation:
    """IDs under way."""

    def __init__(
        self, works: Sequence[Work], shapes: Sequence[Shape], follows: Follows, random: np.random.Generator
    ) -> None:
        self._works, self._random = works, random
        self._follows = Counter(follows)
        self._first_kinds = [int(shape.kinds[0]) for shape in shapes]
        self._before = (-1, -1, -1)  # archetype, shape and kind of the operation before
        self._cuts = [_Cut.of(shape) for shape in shapes]
        self._states = [_State() for _ in works]
        self._distances: dict[tuple[int, Pair | None], _Distances] = {}
        self._due: list[tuple[int, int, int, int]] = []  # bursts of units under way: ID, work, unit, burst
        self._possible: dict[int, list[tuple[int, int, int]]] = {}  # by ID: work, unit, distance
        self._possible_ids: list[int] = []
        self._late: list[int] = []
        self._now = 0
        self.placed: list[tuple[int, int, int]] = []

    # ---- units that wait ----

    def _shape(self, work: int) -> int:
        """Return the shape of the unit that begins next."""
        return self._works[work].archetype.track[self._states[work].next].shape

    def _distances_of(self, work: int) -> _Distances:
        item, unit = self._works[work], self._states[work].next
        track = item.archetype.track
        pair = (track[unit - 1], track[unit]) if unit else None
        found = self._distances.get((item.number, pair))
        if found is None:
            counted = item.archetype.first if pair is None else item.archetype.gaps[pair]
            found = self._distances.setdefault((item.number, pair), _Distances(counted))
        return found

    def _reference(self, work: int) -> int:
        """Return the ID that the next unit's distance counts from."""
        state = self._states[work]
        return state.begin if self._works[work].archetype.track[state.next].overlaps else state.end

    def wait(self, work: int) -> None:
        """Note at which IDs the next unit of a file may begin."""
        state = self._states[work]
        earliest, following, pending = self._now, state.next, 0
        begin = self._reference(work) - self._cuts[self._shape(work)].first
        possible, ids = self._possible, self._possible_ids
        for distance in self._distances_of(work).some(self._random):
            at = begin + distance
            if at >= earliest:
                there = possible.get(at)
                if there is None:
                    there = possible[at] = []
                    heapq.heappush(ids, at)
                there.append((work, following, distance))
                pending += 1
        state.waiting, state.pending = True, pending
        if not pending:
            self._late.append(work)

    def _candidates(self, at: int) -> list[tuple[int, int]]:
        """Return the works that may begin at an ID, with their distances; each ID is queried once."""
        found = []
        for work, unit, distance in self._possible.pop(at, ()):
            state = self._states[work]
            if state.waiting and state.next == unit:
                state.pending -= 1
                if self._distances_of(work).has(distance):
                    found.append((work, distance))
                elif not state.pending:
                    self._late.append(work)
        return found

    def _fitting(self, works: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return the works whose first burst ends before another one is due; all if there is no such work."""
        if not self._due:
            return list(works)
        room = self._due[0][0] - self._now
        fit = [item for item in works if self._length(item[0]) <= room]
        return fit or list(works)

    def _step(self, work: int) -> tuple[int, ...]:
        """Return the operations before the next ID, and the one that would follow if a work began there."""
        shape = self._shape(work)
        return (*self._before, self._works[work].number, shape, self._first_kinds[shape])

    def _following(self, works: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return the works that followed the same operations before, and not yet as often; all if there are none."""
        return [item for item in works if self._follows[self._step(item[0])] > 0] or list(works)

    def _length(self, work: int) -> int:
        return self._cuts[self._shape(work)].lengths[0]

    def _exact(self) -> int | None:
        """Return a work that may begin now, None without one."""
        found = self._candidates(self._now)
        if not found:
            return None
        fitting = self._following(self._fitting(found)) if len(found) > 1 else found
        longest = max(distance for _, distance in fitting)
        best = [work for work, distance in fitting if distance == longest]
        chosen = best[0] if len(best) == 1 else best[int(self._random.integers(len(best)))]
        for work, _ in found:
            if work != chosen and not self._states[work].pending:
                self._late.append(work)
        return chosen

    def _next_late(self) -> int | None:
        """Return a work all of whose IDs have passed, if its first burst fits in."""
        if not self._late:
            return None
        self._late = [work for work in self._late if self._states[work].waiting and not self._states[work].pending]
        late = [(work, 0) for work in self._late[:_MOST_LATE]]
        if not late or (self._due and min(self._length(work) for work, _ in late) > self._due[0][0] - self._now):
            return None
        fitting = self._fitting(late)
        return fitting[int(self._random.integers(len(fitting)))][0]

    def _nearest(self) -> int | None:
        """Return the work that is due next, unless a unit under way is due before."""
        while self._possible_ids:
            at = self._possible_ids[0]
            if self._due and self._due[0][0] <= at:
                return None
            heapq.heappop(self._possible_ids)
            if at >= self._now and (found := self._candidates(at)):
                chosen = found[int(self._random.integers(len(found)))][0]
                for work, _ in found:
                    if work != chosen and not self._states[work].pending:
                        self._late.append(work)
                return chosen
            if at < self._now:
                self._candidates_passed(at)
        return None

    def _candidates_passed(self, at: int) -> None:
        for work, _ in self._candidates(at):
            if not self._states[work].pending:
                self._late.append(work)

    # ---- placing ----

    def _put(self, work: int, unit: int, burst: int) -> None:
        """Give the next IDs to a burst."""
        state, track = self._states[work], self._works[work].archetype.track
        shape, at = track[unit].shape, self._now
        cut = self._cuts[shape]
        self.placed.append((work, unit, burst))
        place, length = cut.places[burst], cut.lengths[burst]
        self._before = (self._works[work].number, shape, cut.last_kinds[burst])
        if unit + 1 == state.next and place <= cut.last_place < place + length:
            state.end = at + cut.last_place - place
        self._now = at + length
        if burst + 1 < len(cut.places):
            # Counted from this burst, which may have come late or early itself.
            heapq.heappush(self._due, (at - place + cut.places[burst + 1], work, unit, burst + 1))
        elif unit + 1 == state.next < len(track) and not track[unit + 1].overlaps:
            self.wait(work)

    def _begin(self, work: int) -> None:
        """Give the next IDs to the first burst of the unit that begins next."""
        state, track = self._states[work], self._works[work].archetype.track
        begin = self._now + self._cuts[self._shape(work)].first
        self._distances_of(work).use(begin - self._reference(work))
        self._follows[self._step(work)] -= 1
        unit, state.begin = state.next, begin
        state.waiting, state.next = False, unit + 1
        self._put(work, unit, 0)
        if state.next < len(track) and track[state.next].overlaps:
            self.wait(work)

    def run(self) -> None:
        """Give all IDs."""
        for work in range(len(self._works)):
            self.wait(work)
        while True:
            if self._due and self._due[0][0] <= self._now:
                self._put(*heapq.heappop(self._due)[1:])
                continue
            chosen = self._exact()
            if chosen is None:
                chosen = self._next_late()
            if chosen is None:
                chosen = self._nearest()
            if chosen is not None:
                self._begin(chosen)
            elif self._due:
                self._put(*heapq.heappop(self._due)[1:])
            else:
                chosen = self._any_late()
                if chosen is None:
                    return
                self._begin(chosen)

    def _any_late(self) -> int | None:
        self._late = [work for work in self._late if self._states[work].waiting]
        return self._late.pop() if self._late else None


def allocate(works: Sequence[Work], shapes: Sequence[Shape], follows: Follows, random: np.random.Generator) -> Placed:
    """Return all bursts of all works, in the order of their global sequence IDs 0, 1, 2, ...

    Parameters
    ----------
    works : files.
    shapes : that their tracks refer to.
    follows : how often the first operation of a unit follows another operation: by archetype, shape and kind of both.
    random : for choices among equals.
    """
    allocation = _Allocation(works, shapes, follows, random)
    allocation.run()
    table = np.array(allocation.placed, np.int64).reshape(-1, 3)
    return Placed(table[:, 0], table[:, 1], table[:, 2])
