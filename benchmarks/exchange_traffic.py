"""What each node has in the windows of each other in a round: the data of the simulated exchange, from its geometry.

The file region is cut into equal contiguous domains, one for each aggregator, and these into windows, one for each
round. A pattern says how many bytes of any range of the file belong to the ranks of each node.
Ranks lie on the nodes in blocks, as launchers place them.

Interleaved. Blocks of b bytes are dealt to P ranks in turn, so that R ranks of a node have R b consecutive bytes of
             every P b. Bytes of a node in a range are a difference of two prefix sums in closed form.
Blocks3d.    A cube of doubles, row by row, in a grid of 3-D blocks as `MPI_Dims_create` makes it. A row of the cube
             belongs to the ranks of one column of the grid, so that a range of the file is a few runs of rows.

Which aggregator has which domain: in turn over the nodes, or, as the library places them (`near`), each domain on the
node that accesses most of it.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["Blocks3d", "Exchange", "Flows", "Interleaved", "Pattern", "dims"]

#: Of rounds that are kept, so that several simulations of one exchange compute them once.
KEPT_BYTES = 400 << 20
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def dims(ranks: int) -> tuple[int, int, int]:
    """Return the factors of a balanced 3-D grid, largest first."""
    best = (ranks, 1, 1)
    for x in range(1, round(ranks ** (1 / 3)) + 2):
        if ranks % x:
            continue
        rest = ranks // x
        y = next(y for y in range(int(rest**0.5), 0, -1) if rest % y == 0)
        found = tuple(sorted((x, y, rest // y), reverse=True))
        if found[0] - found[2] < best[0] - best[2]:
            best = (found[0], found[1], found[2])
    return best


class Pattern(Protocol):
    """What the ranks access.

    Attributes
    ----------
    nodes, ranks_per_node, file_bytes : of the access
    piece_bytes : of a contiguous piece of a rank
    period_bytes : from a piece of a rank to the next one behind the widest gaps that come again and again
    """

    nodes: int
    ranks_per_node: int
    file_bytes: int
    piece_bytes: float
    period_bytes: int

    def of_nodes(self, first: Ints, last: Ints) -> Floats:
        """Return the bytes of every node in ranges of the file, [ranges, nodes]."""
        ...

    def ranges(self) -> tuple[Ints, Ints]:
        """Return from where to where in the file the ranks of each node access it, [nodes] each."""
        ...


@dataclass(frozen=True)
class Interleaved:
    """Blocks of `block_bytes` bytes dealt to all ranks in turn."""

    nodes: int
    ranks_per_node: int
    file_bytes: int
    block_bytes: int

    @property
    def piece_bytes(self) -> float:
        """Bytes of a contiguous piece of a rank."""
        return float(self.block_bytes)

    @property
    def period_bytes(self) -> int:
        """Bytes until it is the same rank's turn."""
        return self.block_bytes * self.ranks_per_node * self.nodes

    def _before(self, at: Ints) -> Floats:
        unit = self.ranks_per_node * self.block_bytes
        period = self.period_bytes
        inside = (at % period)[:, None] - np.arange(self.nodes)[None, :] * unit
        return (at // period * unit)[:, None] + np.clip(inside, 0, unit).astype(np.float64)

    def of_nodes(self, first: Ints, last: Ints) -> Floats:
        """Return the bytes of every node in ranges of the file, [ranges, nodes]."""
        return self._before(last) - self._before(first)

    def ranges(self) -> tuple[Ints, Ints]:
        """Return from where to where in the file the ranks of each node access it, [nodes] each."""
        unit = self.ranks_per_node * self.block_bytes
        first = np.arange(self.nodes, dtype=np.int64) * unit
        return first, np.full(self.nodes, self.file_bytes) - first[::-1]


@dataclass(frozen=True)
class Blocks3d:
    """A cube of doubles in 3-D blocks; of a part of a row of the cube its ranks have equal parts."""

    nodes: int
    ranks_per_node: int
    bytes_asked: int

    @functools.cached_property
    def side(self) -> int:
        """Doubles in each direction: a multiple of the grid's, so that all blocks are equal."""
        grid = dims(self.nodes * self.ranks_per_node)
        unit = int(np.lcm.reduce(grid))
        return max(1, round((self.bytes_asked / 8) ** (1 / 3) / unit)) * unit

    @property
    def file_bytes(self) -> int:
        """Bytes of the cube."""
        return 8 * self.side**3

    @property
    def piece_bytes(self) -> float:
        """Bytes of a row of a block."""
        return 8.0 * self.side / dims(self.nodes * self.ranks_per_node)[2]

    @property
    def period_bytes(self) -> int:
        """Bytes of a plane of the cube."""
        return 8 * self.side**2

    def of_nodes(self, first: Ints, last: Ints) -> Floats:
        """Return the bytes of every node in ranges of the file, [ranges, nodes]."""
        x, y, z = dims(self.nodes * self.ranks_per_node)
        row, deep, wide = 8 * self.side, self.side // y, self.side // x
        found = np.zeros((len(first), self.nodes))
        shares = [[(x_at * y + y_at) * z + z_at for z_at in range(z)] for x_at in range(x) for y_at in range(y)]
        column = np.array(shares) // self.ranks_per_node  # [columns of the grid, z]: node of each rank of a column
        for k, (a, b) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
            at = a
            while at < b:
                plane, line = divmod(at // row, self.side)
                end = min(b, (plane * self.side + (line // deep + 1) * deep) * row)
                nodes = column[plane // wide * y + line // deep]
                np.add.at(found[k], nodes, (end - at) / z)
                at = end
        return found

    def ranges(self) -> tuple[Ints, Ints]:
        """Return from where to where in the file the ranks of each node access it, [nodes] each, in whole rows."""
        x, y, z = dims(self.nodes * self.ranks_per_node)
        row, deep, wide = 8 * self.side, self.side // y, self.side // x
        rank = np.arange(self.nodes * self.ranks_per_node, dtype=np.int64)
        at_x, at_y = rank // (y * z), rank // z % y
        first = ((at_x * wide) * self.side + at_y * deep) * row
        last = ((at_x * wide + wide - 1) * self.side + (at_y + 1) * deep) * row
        shape = (self.nodes, self.ranks_per_node)
        return first.reshape(shape).min(axis=1), last.reshape(shape).max(axis=1)


@dataclass(frozen=True)
class Flows:
    """A round, by the node of the windows and the node of the ranks, [nodes, nodes] each.

    Attributes
    ----------
    moved : bytes
    carrying : windows with bytes of the ranks' node
    meeting : windows that meet the range of the file that the ranks' node accesses: its ranks look for data in each
    opening : those of `meeting` that are the first ones of an aggregator and hold nothing of the ranks' node: it says
        there when it sends
    """

    moved: Floats
    carrying: Floats
    meeting: Floats
    opening: Floats


class Exchange:
    """The traffic of a two-phase access, round by round.

    Parameters
    ----------
    pattern : what is accessed
    aggregators : on each node
    window_bytes : of a collective buffer
    near : each domain lies on the node that accesses most of it, as csrc/mpiio/collective/mpiox_owners.c chooses, so
    that
        every node gets `aggregators` of them; else in turn over the nodes
    turned : aggregators begin with windows of their domains that are spread over the pattern's period, and go on with
        the first one after the last, as csrc/mpiio/buffers/mpiox_windows.c does

    Attributes
    ----------
    rounds : windows of an aggregator
    placed : nodes were weighed for each domain
    """

    def __init__(self, pattern: Pattern, aggregators: int, window_bytes: int, *, near: bool = False,
                 turned: bool = False) -> None:
        self.pattern, self.window_bytes = pattern, window_bytes
        self.count = aggregators * pattern.nodes
        self.starts = np.arange(self.count + 1, dtype=np.int64) * pattern.file_bytes // self.count
        self.rounds = -(-int((self.starts[1:] - self.starts[:-1]).max()) // window_bytes)
        self._begin = self._first_windows() if turned else np.zeros(self.count, dtype=np.int64)
        self._ranges = pattern.ranges()
        self.node = np.arange(self.count) % pattern.nodes
        self.placed = near and self._has_choice()
        if self.placed:
            self._place(aggregators)
        self._opened = self._first_rounds()
        self._kept: dict[bytes | int, Flows] = {}
        self._most_kept = max(4, KEPT_BYTES // (32 * pattern.nodes**2))

    def _first_windows(self) -> Ints:
        """Return the window that each aggregator begins with."""
        turn = self.pattern.period_bytes // self.window_bytes
        if turn < 2:
            return np.zeros(self.count, dtype=np.int64)
        number = np.arange(self.count, dtype=np.int64)
        if self.rounds < turn:
            way = math.gcd(max(1, self.pattern.file_bytes // self.count // self.window_bytes), turn)
            places = turn // way
            return number // places * way // -(-self.count // places) % self.rounds
        return (number * turn // self.count - self.starts[:-1] // self.window_bytes) % turn

    def _has_choice(self) -> bool:
        """Tell whether some node's range leaves an eighth of the file or more; else pieces lie in turn."""
        first, last = self._ranges
        return self.pattern.nodes > 1 and bool((last - first <= self.pattern.file_bytes // 8 * 7).any())

    def _place(self, aggregators: int) -> None:
        """Deal domain after domain to the node that accesses most of it and has an aggregator left.

        What a node accesses is its bytes, spread evenly over its range. Among equals the node in turn has precedence.
        """
        first, last = self._ranges
        whole = self.pattern.of_nodes(np.array([0]), np.array([self.pattern.file_bytes]))[0]
        density = whole / np.maximum(1, last - first)
        room = np.full(self.pattern.nodes, aggregators)
        for domain, usual in enumerate(self.node.tolist()):
            common = np.minimum(last, self.starts[domain + 1]) - np.maximum(first, self.starts[domain])
            accessed = np.where(room > 0, np.maximum(common, 0) * density, -1.0)
            best = int(accessed.argmax())
            self.node[domain] = best = usual if accessed[usual] == accessed[best] else best
            room[best] -= 1

    def _first_rounds(self) -> Ints:
        """Return the first round whose window of an aggregator meets a node's range, [aggregators, nodes]; -1: none."""
        first, last = (edge[None, :] for edge in self._ranges)
        start, end = self.starts[:-1, None], self.starts[1:, None]
        low = (np.maximum(first, start) - start) // self.window_bytes
        high = (np.minimum(last, end) - 1 - start) // self.window_bytes
        meets = (start < last) & (end > first) & (start < end)
        begin = self._begin[:, None]
        low = np.where((low <= begin) & (begin <= high), 0, (low - begin) % self.rounds)
        return np.where(meets, low, -1)

    def windows(self, number: int) -> tuple[Ints, Ints]:
        """Return the ranges of the file in the windows of a round, [aggregators] each."""
        at = (number + self._begin) % self.rounds
        first = np.minimum(self.starts[:-1] + at * self.window_bytes, self.starts[1:])
        return first, np.minimum(first + self.window_bytes, self.starts[1:])

    def between(self, number: int) -> Flows:
        """Return what a round moves by the node of the window and the node of the rank."""
        first, last = self.windows(number)
        key = self._key(number, first, last)
        if key not in self._kept:
            shape = (self.pattern.nodes, self.pattern.nodes)
            found = Flows(np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(shape))
            range_first, range_last = self._ranges
            step = max(1, (1 << 21) // self.pattern.nodes)
            for at in range(0, self.count, step):
                part = slice(at, at + step)
                moved = self.pattern.of_nodes(first[part], last[part])
                np.add.at(found.moved, self.node[part], moved)
                np.add.at(found.carrying, self.node[part], moved > 0)
                met = (first[part, None] < range_last) & (last[part, None] > range_first)
                np.add.at(found.meeting, self.node[part], met & (first[part] < last[part])[:, None])
                np.add.at(found.opening, self.node[part], (self._opened[part] == number) & (moved == 0))
            if len(self._kept) >= self._most_kept:
                self._kept.clear()
            self._kept[key] = found
        return self._kept[key]

    def _key(self, number: int, first: Ints, last: Ints) -> bytes | int:
        """Return what the traffic of a round depends on, so that equal rounds of interleaved blocks are found again."""
        if not isinstance(self.pattern, Interleaved) or (self._opened == number).any():
            return number
        period = self.pattern.block_bytes * self.pattern.ranks_per_node * self.pattern.nodes
        return (first % period).tobytes() + (last - first).tobytes()

    def crossing_bytes(self) -> float:
        """Return the bytes whose rank and window lie on different nodes, over all rounds."""
        rounds = (self.between(number).moved for number in range(self.rounds))
        return float(sum(moved.sum() - np.trace(moved) for moved in rounds))
