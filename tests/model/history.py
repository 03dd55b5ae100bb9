"""What a history is: plain data, and what follows from it without MPI: groups, views, positions, values.

A history is a dictionary (JSON):

``ranks``
    number of ranks, 1 .. 6.
``files``
    bytes that each file holds before the first open; -1: there is none.
``ops``
    the calls, a list of dictionaries; each has ``op`` and most have ``h``, the number of a handle. The ranks go
    through the list on their own: only collective calls and barriers order them.

==============  =======================================================================================================
open            h, file, comm, mode, hints: MPI_File_open by every group of ``comm`` (:data:`COMMS`)
view            h, disp (by rank), etype (bytes), types (by rank; trees of differential.typetree)
write, read     h, how, and then:

                | ``at``, ``own`` (individual pointer), ``iat``, ``iown`` (nonblocking): rank, n (etypes), at, req, mem
                | ``at_all``, ``all``: n (by rank), at (by rank), mem
                | ``burst``: count, block, at: every rank makes ``count`` calls of ``block`` etypes, interleaved by rank
                | ``shared``: who (ranks), n, all at once; a write is followed by a fence and a look at what it left
race            h, who, at, n: the ranks write the same place at once (atomic mode), then a fence and a look
seek            h, rank, offset, whence
wait            rank, reqs
sync            h: MPI_File_sync
barrier         of all ranks of the history
fence           sync of every file, barrier, sync
atomicity       h, flag
size, allocate  h, bytes: MPI_File_set_size, MPI_File_preallocate
ask             h, rank: MPI_File_get_size
close           h
==============  =======================================================================================================

``at`` counts etypes of the view. ``mem`` is [piece, gap]: memory in pieces of so many bytes, [0, 0] for one piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from differential.typetree import Model, Offsets, Tree, model

History = dict[str, Any]
Op = dict[str, Any]
Bytes = npt.NDArray[np.uint8]

MOST_RANKS = 6
#: What a buffer holds before a read and between its pieces.
BLANK = 0xC3
#: name -> who opens the file together, for n ranks. Ranks in no group do not open it.
COMMS = ("world", "halves", "self", "low", "high")
ACCESS = ("write", "read")
#: Ways of data access by one rank alone; True: nonblocking.
ALONE = {"at": False, "own": False, "iat": True, "iown": True}
COLLECTIVE = ("at_all", "all")
ETYPES = {1: "BYTE", 2: "SHORT", 4: "INT", 8: "DOUBLE"}


def groups_of(comm: str, ranks: int) -> list[list[int]]:
    """Return the groups of ranks that open a file together."""
    everyone, half = list(range(ranks)), (ranks + 1) // 2
    if comm == "self":
        return [[rank] for rank in everyone]
    parts = {"world": [everyone], "halves": [everyone[:half], everyone[half:]]}
    parts |= {"low": [everyone[:half]], "high": [everyone[half:] or everyone]}
    return [part for part in parts[comm] if part]


def etype_tree(size: int) -> Tree:
    """Return the etype of so many bytes."""
    return ["named", ETYPES[size]]


class View:
    """A rank's view: displacement, bytes of the etype, model of the file type."""

    def __init__(self, displacement: int = 0, etype: int = 1, tree: Tree | None = None) -> None:
        self.displacement, self.etype = displacement, etype
        self.type: Model = model(tree if tree is not None else ["named", "BYTE"])

    @property
    def dense(self) -> bool:
        """Tell whether the view has no holes."""
        return self.type.size == self.type.extent

    def offsets(self, at: int, n: int) -> Offsets:
        """Return the file offset of every byte of ``n`` etypes from etype ``at`` on."""
        if self.dense:
            start = self.displacement + at * self.etype
            return np.arange(start, start + n * self.etype, dtype=np.int64)
        return self.displacement + self.type.stream(at * self.etype, n * self.etype)


def values(index: int, rank: int, n: int) -> Bytes:
    """Return what rank writes in call ``index``: n bytes, none of them zero, other calls and ranks other bytes."""
    k = np.arange(n, dtype=np.int64)
    return ((k * 7 + (k >> 8) * 13 + (index * 8 + rank) * 37) % 255 + 1).astype(np.uint8)


def initial(number: int, n: int) -> Bytes:
    """Return what a file holds before the first open."""
    k = np.arange(max(n, 0), dtype=np.int64)
    return ((k * 11 + (k >> 8) * 3 + number * 101) % 251 + 5).astype(np.uint8)


def spread(data: Bytes, mem: list[int]) -> tuple[Bytes, npt.NDArray[np.int64]]:
    """Return a blank buffer for data in pieces, and where in it the data bytes lie."""
    piece, gap = mem if mem[0] and len(data) % mem[0] == 0 else (max(len(data), 1), 0)
    k = np.arange(len(data), dtype=np.int64)
    where = k // piece * (piece + gap) + k % piece
    return np.full(int(where[-1]) + 1 + gap if len(data) else 0, BLANK, np.uint8), where


def turns(op: Op, group: list[int], rank: int) -> Iterator[int]:
    """Yield where (etypes) the calls of a burst of one rank begin."""
    place = group.index(rank)
    for i in range(op["count"]):
        yield op["at"] + (i * len(group) + place) * op["block"]
