"""Which rank and which thread a line of strace or ltrace belongs to.

Problem.    These tracers know numbers of threads. They are given a file for each rank, one for each thread, or one file
            with everything.
Algorithm.  Lines of clone and fork tell which thread is of which process. Files that are named alike but for a number
            0 ... n - 1 are ranks; else each process is one, in the order of their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mpiio_ext.pioneer.readers._files import chunks_of
from mpiio_ext.pioneer.table import Source

__all__ = ["Family", "Threads", "children_of"]

#: A line of strace or ltrace about a new process or thread: number of the thread; what is behind the name.
_MADE = re.compile(rb"(?:\[pid\s+(\d+)\] |(\d+) +(?=[\d\[]))?[^(]*?\b(?:SYS_)?(?:clone3?|v?fork)\b(.*)")
_CHILD = re.compile(rb"= (\d+)(?: <[\d.]+>)?\s*$")


@dataclass
class Family:
    """Threads and the processes that they are of.

    Attributes
    ----------
    process : thread -> the first thread of its process, of threads that were seen being made.
    """

    process: dict[int, int] = field(default_factory=dict)

    def add(self, parent: int, child: int, is_thread: bool) -> None:
        """Take in that a thread has made another, or a process."""
        own = self.process.setdefault(parent, parent)
        self.process[child] = own if is_thread else child

    def process_of(self, thread: int) -> int:
        """Return the process of a thread; one that nobody has made is one itself."""
        return self.process.get(thread, thread)


def _lines_with(text: bytes, words: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the lines of a text that have any of the words; a search for words is faster than one for a pattern."""
    starts = set()
    for word in words:
        at = text.find(word)
        while at >= 0:
            starts.add(text.rfind(b"\n", 0, at) + 1)
            at = text.find(word, max(text.find(b"\n", at), at + 1))
    for start in sorted(starts):
        end = text.find(b"\n", start)
        yield text[start : end if end >= 0 else len(text)]


def children_of(path: Path, own: int) -> Iterator[tuple[int, int, bool]]:
    """Yield (thread that made it, new thread, whether it is of the same process); `own`: of lines without number."""
    rest = b""
    shares: dict[int, bool] = {}  # of calls in two lines: the flags are on the first
    for chunk in chunks_of(path, Source(path=str(path))):
        text = rest + chunk
        cut = text.rfind(b"\n") + 1
        rest = text[cut:][-65536:]
        for line in _lines_with(text[:cut], (b"clone", b"fork")):
            made = _MADE.match(line)
            if made is None:
                continue
            parent = int(made[1] or made[2] or own)
            child = _CHILD.search(made[3])
            shared = b"CLONE_THREAD" in made[3] or shares.pop(parent, False)
            if b"<unfinished" in made[3]:
                shares[parent] = shared
            elif child is not None and child[1] != b"0":
                yield parent, int(child[1]), shared


class Threads:
    """Numbers of the threads of each rank, in the order in which they show.

    Parameters
    ----------
    rank_of : process or, where a file is a rank, nothing -> rank.
    """

    def __init__(self, family: Family, ranks: dict[int, int] | None, rank: int = 0, only: int = 0) -> None:
        self._family = family
        self._ranks = ranks
        self._rank = rank
        self._only = only
        self._numbers: dict[int, tuple[int, int]] = {}
        self._count: dict[int, int] = {}

    def _place(self, thread: int) -> tuple[int, int]:
        thread = thread or self._only
        if thread not in self._numbers:
            rank = self._rank
            if self._ranks is not None:
                process = self._family.process_of(thread)
                rank = self._ranks.setdefault(process, max(self._ranks.values(), default=-1) + 1)
            self._numbers[thread] = rank, self._count.get(rank, 0)
            self._count[rank] = self._numbers[thread][1] + 1
        return self._numbers[thread]

    def __call__(self, _: np.ndarray, threads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ranks and threads of rows; see `_rawtrace.Placement`."""
        every, first, inverse = np.unique(threads, return_index=True, return_inverse=True)
        found = np.zeros((2, len(every)), np.int64)
        for i in np.argsort(first):
            found[:, i] = self._place(int(every[i]))
        places = inverse.reshape(-1)
        return found[0, places], found[1, places]


def order_ranks(processes: Sequence[int]) -> dict[int, int]:
    """Return the ranks of processes, in the order of their numbers."""
    return {process: rank for rank, process in enumerate(sorted(set(processes)))}
