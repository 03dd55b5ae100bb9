"""DFTracer: JSON lines, ``.pfw`` and ``.pfw.gz``, one file a process or several processes in one.

Problem.    Names are hashes whose table may come after their first use; three schemas are in use (names and quoted
            numbers of 2023, numbers and letters of 2024, texts and numbers later); a call is written when it is over.
Algorithm.  Two passes: the tables, ranks and units of all files; then the events, by the scanner in C
            (csrc/tools/pioneer/mpiox_rawtrace_dftracer.h), sorted by their beginning.
Ranks.      Of the record ``PR`` (``rank``) or ``process_name`` "Rank N" of a process; else the processes in the order
            of their numbers.
Guarantee.  Every event of POSIX, STDIO and MPI is a row or is counted in Loss, with its line; so is one whose size,
            offset, result or handle is no number. Events of applications are no calls: they are named with their
            number, and not counted as lost.
Missing.    ``depth``; of opens of streams their handle; ``offset`` of calls that use the file's position.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mpiio_ext.pioneer.readers._files import begin_of, chunks_of, files_of, samples
from mpiio_ext.pioneer.readers._order import ordered
from mpiio_ext.pioneer.readers._rawtrace import RawTrace, text_of
from mpiio_ext.pioneer.table import Loss, Source, TraceInfo

NAME = "dftracer"
LACKS = ["depth", "handles of streams", "offsets of calls that use the position of the file"]
_SUFFIXES = (".pfw", ".pfw.gz")
_EVENT = re.compile(rb'^\[?\s*\{"id":[^{}]*"cat":"|^\[?\s*\{"name":[^{}]*"cat":"dftracer"')
_HOST = re.compile(rb'"hostname":"([^"\\]*)"')  # of 2023: in each event


def recognizes(path: Path) -> bool:
    """Return whether a file, or a folder with at least one, begins as DFTracer's do."""
    if path.is_dir():
        return any(recognizes(item) for item in samples(files_of([path], _SUFFIXES)))
    return _EVENT.match(begin_of(path)) is not None


@dataclass
class _Tables:
    """The results of the first pass."""

    ranks: dict[int, int] = field(default_factory=dict)
    hosts: dict[str, str] = field(default_factory=dict)
    host_of: dict[int, str] = field(default_factory=dict)
    processes: dict[int, None] = field(default_factory=dict)

    def add(self, note: dict[str, Any]) -> None:
        """Take in a record of metadata."""
        args = note.get("args")
        number = str(note.get("pid"))  # 2023: in quotes
        if not isinstance(args, dict) or not number.isascii() or not number.isdigit() or len(number) > 18:
            return
        pid, name, value = int(number), str(args.get("name", "")), str(args.get("value", ""))
        self.processes[pid] = None
        rank = value if name == "rank" else name.removeprefix("Rank ") if value == "process_name" else ""
        if rank.isascii() and rank.isdigit() and len(rank) < 10:
            self.ranks[pid] = int(rank)
        if note.get("name") == "HH":
            self.hosts[value] = name
        self.host_of.setdefault(pid, str(args.get("hhash", value if note.get("name") == "HH" else "")))

    def rank_of(self, pid: int) -> int:
        """Return the rank of a process; processes without one follow, in the order of their queries."""
        if pid not in self.ranks:
            self.ranks[pid] = max(self.ranks.values(), default=-1) + 1
        return self.ranks[pid]


_LAST = np.iinfo(np.int64).max  # larger than every number of a process or thread


def _index(sorted_values: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the place of each value, the last place for a missing one."""
    places = np.searchsorted(sorted_values[:-1], values)
    return np.where(sorted_values[places] == values, places, len(sorted_values) - 1)


class _Placement:
    """Ranks and threads of rows; threads of a process are numbered in the order of the lines on which they show.

    Attributes
    ----------
    tables : of the first pass.
    seen : processes that rows were of.
    """

    def __init__(self, tables: _Tables) -> None:
        self.tables = tables
        self.seen: set[int] = set()
        self._threads: dict[tuple[int, int], int] = {}
        self._count: dict[int, int] = {}
        self._tabulate()

    def _add(self, pid: int, tid: int) -> None:
        """Number a thread."""
        if (pid, tid) not in self._threads:
            self._threads[pid, tid] = self._count.get(pid, 0)
            self._count[pid] = self._threads[pid, tid] + 1

    def _tabulate(self) -> None:
        """Make the arrays in which the pairs are found: numbers of processes and of threads, and codes of both."""
        pairs = list(self._threads)
        self._pids = np.array([*sorted({pid for pid, _ in pairs}), _LAST], np.int64)
        self._tids = np.array([*sorted({tid for _, tid in pairs}), _LAST], np.int64)
        each = np.array(pairs, np.int64).reshape(len(pairs), 2)
        codes = self._codes(each[:, 0], each[:, 1])
        order = np.argsort(codes)
        self._known = np.array([*codes[order].tolist(), _LAST], np.int64)
        found = [(self.tables.rank_of(pid), number, pid) for (pid, _), number in self._threads.items()]
        self._found = np.array(found, np.int64).reshape(len(pairs), 3)[order]

    def _codes(self, processes: np.ndarray, threads: np.ndarray) -> np.ndarray:
        codes: np.ndarray = _index(self._pids, processes) * len(self._tids) + _index(self._tids, threads)
        return codes

    def __call__(self, processes: np.ndarray, threads: np.ndarray, lines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ranks and threads of rows."""
        places = _index(self._known, self._codes(processes, threads))
        new = np.flatnonzero(places == len(self._known) - 1)
        if new.size:
            pairs = np.stack([processes[new], threads[new]], axis=1)[np.argsort(lines[new], kind="stable")]
            every, first = np.unique(pairs, axis=0, return_index=True)
            for pid, tid in every[np.argsort(first)].tolist():
                self._add(pid, tid)
            self._tabulate()
            places = _index(self._known, self._codes(processes, threads))
        used = np.flatnonzero(np.bincount(places, minlength=len(self._found)))
        self.seen.update(self._found[used, 2].tolist())
        return self._found[places, 0], self._found[places, 1]


def _first_pass(parser: RawTrace, paths: Sequence[Path]) -> _Tables:
    tables = _Tables()
    for path in paths:
        source = Source(path=str(path))  # the second pass reports problems
        for note in parser.notes("dftracer tables", chunks_of(path, source), source):
            try:
                tables.add(json.loads(text_of(note)))
            except (ValueError, AttributeError):
                continue
    for pid in sorted(tables.processes):
        tables.rank_of(pid)
    return tables


def _host_of(path: Path) -> str:
    """Return the host that the first events of a file name, "": they name no host."""
    found = _HOST.search(begin_of(path))
    return "" if found is None else text_of(found[1])


def _one_file(parser: RawTrace, path: Path, source: Source, placement: _Placement) -> Iterator[pa.RecordBatch]:
    placement.seen.clear()
    before = parser.others()
    batches = parser.batches("dftracer", chunks_of(path, source), source, placement)
    yield from ordered(batches, source)
    pids = sorted(placement.seen)
    if len(pids) == 1:
        source.rank = placement.tables.rank_of(pids[0])
        source.host = placement.tables.hosts.get(placement.tables.host_of.get(pids[0], ""), "") or _host_of(path)
    if source.lines == 0:
        source.loss.truncated = True
        source.loss.add(0, "empty file", count=0)
    for category, count in parser.others().items():
        if count > before.get(category, 0):
            more = count - before.get(category, 0)
            source.loss.add(0, f"{more} events of the category {category!r} are no calls", count=0)


def read(paths: Sequence[Path]) -> tuple[TraceInfo, Iterator[pa.RecordBatch]]:
    """Return the facts of a trace, and its rows; see `Reader.read`. One file follows the other."""
    files = files_of(paths, _SUFFIXES)
    parser = RawTrace()
    tables = _first_pass(parser, files)
    info = TraceInfo(format=NAME, lacks=list(LACKS), ranks=len(set(tables.ranks.values())))
    info.sources = [Source(path=str(path), loss=Loss()) for path in files]
    placement = _Placement(tables)

    def rows() -> Iterator[pa.RecordBatch]:
        for path, source in zip(files, info.sources, strict=True):
            yield from _one_file(parser, path, source, placement)
        info.ranks = len(set(tables.ranks.values()))

    return info, rows()
