"""From drawn numbers to a legal history: hypothesis draws a list of plain tuples, :func:`legal` makes calls of them.

A tuple says what to do and a few numbers; what these mean depends on what is open then, so that a list stays meaningful
when hypothesis leaves out or simplifies parts of it. What would make the program erroneous gets a fence before it, or
is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from differential.typetree import Tree
from model.handles import Handle, Illegal
from model.history import ETYPES, MOST_RANKS, History, Op, etype_tree
from model.oracle import MOST_AT_ONCE, Oracle

#: What is drawn, and how often.
KINDS: dict[str, int] = {
    "burst": 10,
    "at": 8,
    "own": 4,
    "iat": 3,
    "iown": 2,
    "at_all": 4,
    "all": 2,
    "shared": 2,
    "race": 2,
    "wait": 2,
    "view": 4,
    "seek": 2,
    "fence": 4,
    "sync": 2,
    "barrier": 2,
    "ask": 3,
    "size": 2,
    "allocate": 1,
    "atomicity": 2,
    "open": 4,
    "close": 2,
}
DRAWN = [kind for kind, often in KINDS.items() for _ in range(often)]
PAGE = 4096
PARTS = 3
Raw = tuple[str, int, int, int, int, int, int]

NUMBER = st.integers(0, 1 << 16)
RAW = st.tuples(st.sampled_from(DRAWN), NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER)


def raws(ranks: int = MOST_RANKS, calls: int = 45) -> st.SearchStrategy[tuple[int, list[int], list[Raw]]]:
    """Return the strategy of what histories are made of: ranks, sizes of the files, tuples."""
    sizes = st.lists(st.one_of(st.just(-1), st.integers(0, 70_000)), min_size=1, max_size=2)
    part = st.lists(RAW, max_size=-(-calls // PARTS))  # hypothesis keeps single lists short
    return st.builds(
        lambda n, files, parts: (n, files, [one for several in parts for one in several]),
        st.integers(1, ranks),
        sizes,
        st.tuples(*[part] * PARTS),
    )


def legal(raw: tuple[int, list[int], list[Raw]], hints: Sequence[Mapping[str, str]] = ({},)) -> History:
    """Return the history that tuples stand for; ``hints``: what opens may pass to MPI."""
    ranks, sizes, tuples = raw
    writer = Writer({"ranks": ranks, "files": list(sizes), "ops": []}, hints)
    writer.add({"op": "open", "h": 0, "file": 0, "comm": "world", "mode": ["rdwr", "create"], "hints": {}})
    for one in tuples:
        writer.draw(*one)
    writer.finish()
    return writer.history


class Writer:
    """Writes one history, with the oracle at hand."""

    def __init__(self, history: History, hints: Sequence[Mapping[str, str]]) -> None:
        self.history, self.hints = history, hints
        self.oracle = Oracle(history)
        self.ranks = history["ranks"]
        self.numbers = 0

    def add(self, op: Op) -> bool:
        """Add a call, after a fence if it needs one; whether it was added."""
        for _ in range(2):
            try:
                self.oracle.apply(op)
            except Illegal as refusal:
                if not refusal.fence:
                    return False
                self.complete()
                self.add({"op": "fence"})
                continue
            self.history["ops"].append(op)
            return True
        return False

    def complete(self, number: int | None = None) -> None:
        """Wait for the requests of one handle or all."""
        for rank in range(self.ranks):
            mine = [r.number for r in self.oracle.requests.values() if r.rank == rank and number in (None, r.h)]
            if mine:
                self.add({"op": "wait", "rank": rank, "reqs": mine})

    def finish(self) -> None:
        """Complete what is under way."""
        self.complete()

    # ---- what the numbers mean --------------------------------------------------------------------------------------

    def draw(self, kind: str, *n: int) -> None:
        """Add the call that a tuple stands for."""
        if kind == "open":
            self.open(*n)
            return
        if not self.oracle.handles:
            return
        names = sorted(self.oracle.handles)
        number = names[n[0] % len(names)]
        handle = self.oracle.handles[number]
        if kind == "wait":
            self.wait(n[1], n[2])
        elif kind in ("barrier", "fence"):
            if kind == "fence":
                self.complete()
            self.add({"op": kind})
        elif kind in ("view", "sync", "close", "atomicity", "size", "allocate", "shared", "race"):
            self.complete(None if kind in ("size", "allocate", "shared", "race") else number)
            self.add(getattr(self, kind)(number, handle, *n[1:]))
        else:
            rank = sorted(handle.group)[n[1] % len(handle.group)]
            self.add(getattr(self, kind)(number, handle, rank, *n[2:]))

    def open(self, which: int, comm: int, mode: int, hints: int, *_: int) -> None:
        """Open a file once more, or another."""
        free = next(i for i in range(8) if i not in self.oracle.handles)
        modes = [["rdwr", "create"]] * 8 + [["rdwr"], ["rdonly"], ["wronly", "create"], ["rdwr", "create", "append"]]
        modes += [["rdwr", "create", "delete"]]
        self.add(
            {
                "op": "open",
                "h": free,
                "file": which % len(self.oracle.files),
                "comm": ["world", "self", "halves", "low", "high"][comm % 5],
                "mode": modes[mode % len(modes)],
                "hints": dict(self.hints[hints % len(self.hints)]),
            }
        )

    def wait(self, rank: int, some: int) -> None:
        """Complete requests of one rank: all or some."""
        mine = [r.number for r in self.oracle.requests.values() if r.rank == rank % self.ranks]
        if mine:
            self.add({"op": "wait", "rank": rank % self.ranks, "reqs": mine[: some % len(mine) + 1]})

    def place(self, handle: Handle, rank: int, way: int, x: int) -> int:
        """Return where an access begins (etypes): anywhere near the start, around pages, around the end of the file."""
        view = handle.views[rank]
        file = self.oracle.file(handle)
        size = max([len(file.data), *(entry.top for entry in file.entries)])
        byte = [
            x % 64,
            max(x // 9 % 9 * PAGE + x % 9 - 4, 0),
            x % 40_000,
            max(size - x % 200, 0),
            max(size + x % 5000 - 100, 0),
        ][way % 5]
        inside = max(byte - view.displacement, 0)
        return inside * view.type.size // view.type.extent // view.etype

    @staticmethod
    def length(handle: Handle, rank: int, way: int, x: int) -> int:
        """Return the etypes of an access."""
        byte = [x % 20, x % 300, PAGE - 4 + x % 9, x % 3 * PAGE, x % 13_000, x % 40_000][way % 6]
        return -(-byte // handle.views[rank].etype)

    @staticmethod
    def memory(x: int) -> list[int]:
        """Return how memory is laid out."""
        return [x // 4 % 40 + 1, x % 7 + 1] if x % 4 == 3 else [0, 0]

    def verb(self, x: int) -> str:
        """Return write or read."""
        return "write" if x % 2 == 0 else "read"

    def at(self, number: int, handle: Handle, rank: int, way: int, x: int, y: int, z: int) -> Op:
        """Access at an offset."""
        return {
            "op": self.verb(way),
            "h": number,
            "how": "at",
            "rank": rank,
            "at": self.place(handle, rank, way // 2, x),
            "n": self.length(handle, rank, z % 6, y),
            "mem": self.memory(z // 6),
        }

    def own(self, number: int, handle: Handle, rank: int, way: int, x: int, y: int, z: int) -> Op:
        """Access at the individual pointer."""
        op = self.at(number, handle, rank, way, x, y, z) | {"how": "own"}
        del op["at"]
        return op

    def iat(self, number: int, handle: Handle, rank: int, way: int, x: int, y: int, z: int) -> Op:
        """Start an access at an offset."""
        self.numbers += 1
        return self.at(number, handle, rank, way, x, y, z) | {"how": "iat", "req": self.numbers}

    def iown(self, number: int, handle: Handle, rank: int, way: int, x: int, y: int, z: int) -> Op:
        """Start an access at the individual pointer."""
        self.numbers += 1
        return self.own(number, handle, rank, way, x, y, z) | {"how": "iown", "req": self.numbers}

    def at_all(self, number: int, handle: Handle, rank: int, way: int, x: int, y: int, z: int) -> Op:
        """Access by all ranks: side by side, or each somewhere."""
        n = [0] * self.ranks
        at = [0] * self.ranks
        first = self.place(handle, rank, way // 2, x)
        for i, r in enumerate(sorted(handle.group)):
            n[r] = self.length(handle, r, z + i * (z // 64 % 2), y + i * (z // 128 % 2))
            at[r] = first + i * n[r] if z // 16 % 4 else self.place(handle, r, way // 2 + i, x + 37 * i)
        return {"op": self.verb(way), "h": number, "how": "at_all", "at": at, "n": n, "mem": self.memory(z // 6)}

    def all(self, number: int, handle: Handle, rank: int, way: int, x: int, y: int, z: int) -> Op:
        """Access by all ranks at their pointers."""
        op = self.at_all(number, handle, rank, way, x, y, z) | {"how": "all"}
        del op["at"]
        return op

    def burst(self, number: int, handle: Handle, rank: int, way: int, x: int, y: int, z: int) -> Op:
        """Many small calls of all ranks, interleaved."""
        block = [1, 3, 8, 40, 200, 1000][y % 6]
        most = max(12_000 // (block * len(handle.group)), 1)
        return {
            "op": self.verb(way),
            "h": number,
            "how": "burst",
            "at": self.place(handle, rank, way // 2, x),
            "block": block,
            "count": min(z % 30 + 1, most),
        }

    def shared(self, number: int, handle: Handle, way: int, x: int, y: int, z: int, _: int = 0) -> Op:
        """Access at the shared pointer by one rank or several."""
        members = handle.groups[way // 2 % len(handle.groups)]
        who = members[: z % min(len(members), MOST_AT_ONCE) + 1]
        return {
            "op": self.verb(way),
            "h": number,
            "how": "shared",
            "who": who,
            "n": max(self.length(handle, who[0], x, y), 1),
            "mem": self.memory(x // 6),
        }

    def race(self, number: int, handle: Handle, way: int, x: int, y: int, z: int, _: int = 0) -> Op:
        """Several ranks write the same place, in atomic mode (which is switched on)."""
        if not handle.atomic:
            self.add({"op": "atomicity", "h": number, "flag": True})
        who = sorted(handle.group)[: z % MOST_AT_ONCE + 1]
        n = max(self.length(handle, who[0], x, y), 1)
        return {"op": "race", "h": number, "who": who, "at": self.place(handle, who[0], way, z), "n": n}

    def seek(self, number: int, handle: Handle, rank: int, way: int, x: int, *_: int) -> Op:
        """Move the individual pointer."""
        whence = ["set", "cur", "end"][way % 3]
        there = self.place(handle, rank, way // 3, x)
        offset = there if whence == "set" else x % 400 - 200
        return {"op": "seek", "h": number, "rank": rank, "offset": offset, "whence": whence}

    def sync(self, number: int, *_: Any) -> Op:
        """MPI_File_sync."""
        return {"op": "sync", "h": number}

    def close(self, number: int, *_: Any) -> Op:
        """Close a handle."""
        return {"op": "close", "h": number}

    def ask(self, number: int, _handle: Handle, rank: int, *_: int) -> Op:
        """Ask for the size."""
        return {"op": "ask", "h": number, "rank": rank}

    def atomicity(self, number: int, handle: Handle, x: int, *_: int) -> Op:
        """Switch atomic mode."""
        return {"op": "atomicity", "h": number, "flag": not handle.atomic if x % 8 else handle.atomic}

    def size(self, number: int, handle: Handle, way: int, x: int, *_: int) -> Op:
        """Set the size."""
        now = len(self.oracle.file(handle).data)
        near = [now + x % 9000, max(now - x % 50, 0), -(-now // PAGE) * PAGE + x % 9, max(now - x % 5000, 0)]
        return {"op": "size", "h": number, "bytes": [*near, *near, x % 20 * PAGE, now // 2, 0][way % 11]}

    def allocate(self, number: int, handle: Handle, way: int, x: int, *_: int) -> Op:
        """Make sure of a size."""
        return self.size(number, handle, way, x) | {"op": "allocate"}

    def view(self, number: int, handle: Handle, kind: int, a: int, b: int, c: int, d: int) -> Op:
        """Set views: interleaved blocks, columns of an array, gaps, displaced; or back to bytes."""
        etype = sorted(ETYPES)[a // 2 % 4]
        unit: Tree = etype_tree(etype)
        disp = [[0, b % 300, b % 9 * PAGE, b % 60_000][c % 4] // etype * etype] * self.ranks
        types: list[Tree] = [unit] * self.ranks
        place = {rank: i for i, rank in enumerate(sorted(handle.group))}
        n = len(place)
        for rank, i in place.items():
            block = a % 40 + 1 if d % 3 else [1, 512, 1024][a % 3]
            if kind % 6 == 1:  # ranks take turns
                types[rank] = ["resized", 0, n * block * etype, ["contiguous", block, unit]]
                disp[rank] += i * block * etype
            elif kind % 6 == 2:  # columns of an array
                shape = [b % 5 + 2, n * (block % 16 + 1)]
                types[rank] = ["subarray", shape, [shape[0], block % 16 + 1], [0, i * (block % 16 + 1)], "C", unit]
            elif kind % 6 == 3:  # a vector in a tile, the same for all
                vector: Tree = ["vector", b % 4 + 2, block, block + c % 50 + 1, unit]
                types[rank] = ["resized", 0, ((b % 4 + 2) * (block + c % 50 + 1)) * etype, vector]
            elif kind % 6 == 4:  # regions of their own
                disp[rank] += i * (b % 5 + 1) * 3000 // etype * etype
            elif kind % 6 == 5:  # irregular, each rank its own
                lengths = [(a >> s) % 5 + 1 + i % 2 for s in (0, 3, 6)]
                starts = [(b >> s) % 7 for s in (0, 3, 6)]
                places = [starts[0], starts[0] + lengths[0] + starts[1], 0]
                places[2] = places[1] + lengths[1] + starts[2]
                whole = places[2] + lengths[2] + c % 30
                types[rank] = ["resized", 0, whole * etype, ["indexed", lengths, places, unit]]
        return {"op": "view", "h": number, "disp": disp, "etype": etype, "types": types}
