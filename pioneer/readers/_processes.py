"""Which rank and which thread a line of strace or ltrace belongs to.

Problem.    These tracers know numbers of threads. They are given a file for each rank, one for each thread, or one file
            with everything.
Algorithm.  Lines of clone and fork show which thread is of which process. Files that are named alike but for a number
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

#: Larger than every thread.
_LAST = np.iinfo(np.int64).max

#: A line of strace or ltrace about a new process or thread: number of the thread; what is behind the name.
_MADE = re.compile(rb"(?:\[pid\s+(\d+)\] |(\d+) +(?=[\d\[]))?[^(]*?\b(?:SYS_)?(?:clone3?|v?fork)\b(.*)")
_WORDS = (b"clone", b"fork")
_MOST_LINE = 65536
_CHILD = re.compile(rb"= (\d+)(?: <[\d.]+>)?\s*$")


@dataclass
class Family:
    """Threads and the processes that they are of.

    Attributes
    ----------
    process : thread -> the first thread of its process, of threads that were seen being made.
    children : processes that others have made.
    """

    process: dict[int, int] = field(default_factory=dict)
    children: set[int] = field(default_factory=set)

    def add(self, parent: int, child: int, is_thread: bool) -> None:
        """Note that a thread has created another thread, or a process."""
        own = self.process.setdefault(parent, parent)
        self.process[child] = own if is_thread else child
        if not is_thread:
            self.children.add(child)

    def process_of(self, thread: int) -> int:
        """Return the process of a thread; a thread that no other made is a process itself."""
        return self.process.get(thread, thread)


def _lines_with(text: bytes, words: Sequence[bytes], begin: int = 0, stop: int | None = None) -> Iterator[bytes]:
    """Yield the lines of text[begin:stop] that have any of the words: faster than a search for a pattern."""
    stop = len(text) if stop is None else stop
    starts = set()
    for word in words:
        at = text.find(word, begin, stop)
        while at >= 0:
            starts.add(max(text.rfind(b"\n", begin, at) + 1, begin))
            line_end = text.find(b"\n", at, stop)
            at = text.find(word, line_end, stop) if line_end >= 0 else -1
    for start in sorted(starts):
        end = text.find(b"\n", start, stop)
        yield text[start : end if end >= 0 else stop]


def children_of(path: Path, own: int) -> Iterator[tuple[int, int, bool]]:
    """Yield (thread that made it, new thread, whether it is of the same process); `own`: of lines without number."""
    rest = b""
    shares: dict[int, bool] = {}  # of calls in two lines: the flags are on the first
    for chunk in chunks_of(path, Source(path=str(path))):
        first, cut = chunk.find(b"\n") + 1, chunk.rfind(b"\n") + 1
        if cut == 0:
            rest = (rest + chunk)[-_MOST_LINE:]
            continue
        lines = [*_lines_with(rest + chunk[:first], _WORDS), *_lines_with(chunk, _WORDS, first, cut)]
        rest = chunk[cut:][-_MOST_LINE:]
        for line in lines:
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
    family : which threads are of which process.
    ranks : process -> rank; processes that are not in it follow. None: all threads are of one rank.
    rank : that one.
    only : the thread of lines that name none.
    """

    def __init__(self, family: Family, ranks: dict[int, int] | None, rank: int = 0, only: int = 0) -> None:
        self._family = family
        self._ranks = ranks
        self._rank = rank
        self._only = only
        self._numbers: dict[int, tuple[int, int]] = {}
        self._count: dict[int, int] = {}
        self._known = np.array([_LAST], np.int64)  # threads, sorted; and where each is
        self._found = np.zeros((0, 2), np.int64)

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

    def __call__(self, _: np.ndarray, threads: np.ndarray, __: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ranks and threads of rows; see `_rawtrace.Placement`."""
        places = np.searchsorted(self._known, threads)
        new = self._known[places] != threads
        if new.any():
            every, first = np.unique(threads[new], return_index=True)
            for i in np.argsort(first):
                self._place(int(every[i]))
            self._known = np.array([*sorted({*self._known[:-1].tolist(), *every.tolist()}), _LAST], np.int64)
            self._found = np.array([self._place(int(thread)) for thread in self._known[:-1]], np.int64)
            places = np.searchsorted(self._known, threads)
        return self._found[places, 0], self._found[places, 1]


def order_ranks(processes: Sequence[int]) -> dict[int, int]:
    """Return the ranks of processes, in the order of their numbers."""
    return {process: rank for rank, process in enumerate(sorted(set(processes)))}
