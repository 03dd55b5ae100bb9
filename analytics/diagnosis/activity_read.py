"""Read the activity of ranks from a log: the requests of DXT, the bytes of HEATMAP; counters are `.activity_counters`'.

Problem. DXT of many ranks is millions of requests, too many for a step of Python each, or for the memory.

Algorithm. Batches of many records are processed by array arithmetic, which adds up sums by file, rank and direction.
Durations are counted by size, window of time and length, in quarter and half octaves.

Guarantees. Memory is bounded; blocks that ranks share are sampled where they are many. Losses of DXT are reported
(:attr:`.activity.Activity.partial`), and show in the comparison with the counters of POSIX.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mpiio_ext.analytics import ledger
from mpiio_ext.analytics.diagnosis.activity import BANDS, BINS, WINDOWS, Activity, Layout, Row, Union, merged, spread
from mpiio_ext.analytics.diagnosis.activity_counters import add_counters, noted, opened
from mpiio_ext.analytics.diagnosis.late import Late
from mpiio_ext.analytics.tables.arrays import Numbers, Whole
from mpiio_ext.common.darshanfile import Access, DamagedLogError, DarshanFile

if TYPE_CHECKING:
    import pyarrow as pa

#: Requests that are looked at together; blocks that are kept of a file.
_BATCH = 1 << 18
_MOST_BLOCKS = 1 << 20
#: Times without a request that are kept of a file.
_MOST_PAUSES = 1 << 12
#: Modules whose records have counters of calls; those that have when requests were.
_OF_CALLS, _OF_TIMES = ("POSIX", "MPI-IO", "STDIO", "DFS", "DAOS"), {"DXT_POSIX", "DXT_MPIIO", "HEATMAP"}
#: Buckets of sizes (quarter octaves) and of durations (half octaves from 2**-24 s).
_SIZES, _DURATIONS, _SHORTEST = 192, 80, -24


def activity_of(path: str | Path, tables: Mapping[str, pa.Table]) -> Activity | None:
    """Return the facts of DXT, HEATMAP and counters of a log that are in no table; `tables` are its rows. Else None."""
    jobs = tables["darshan_job"].to_pylist()
    if len(jobs) != 1:
        return None
    names = ("file_id", "alignment", "stripe_size", "stripe_count")
    files = zip(*(tables["darshan_file"][name].to_pylist() for name in names), strict=True)
    layouts = {number: Layout(*(value or 0 for value in rest)) for number, *rest in files}
    return activity(path, layouts, jobs[0]["processes"] or 1, jobs[0]["run_time"] or 0.0)


def activity(path: str | Path, layouts: Mapping[int, Layout], processes: int, run_time: float) -> Activity | None:
    """Return the facts of DXT, HEATMAP and counters of a log; None if it cannot be read.

    Parameters
    ----------
    path : str or Path
    layouts : by number of the file (signed).
    run_time : seconds.
    """
    try:
        log = DarshanFile(path)
    except (OSError, DamagedLogError, MemoryError):
        return None
    processes, run_time = max(processes, 1), max(run_time, 1e-3)
    source = next((name for name in ("DXT_POSIX", "HEATMAP") if name in log.modules), "").partition("_")[0]
    found = Activity(source, processes, run_time)
    found.bands = min(BANDS, processes)
    found.full = any(log.partial(name) or not log.knows(name) for name in _OF_CALLS if name in log.modules)
    found.damaged.update(name for name in ("names", *log.modules) if log.is_cut(name) or log.has_gap(name))
    found.line, found.moved = np.zeros((3, found.bands, BINS)), np.zeros((2, found.bands, BINS))
    if "HEATMAP" in log.modules:
        with noted(found, "HEATMAP"):
            _add_heat(found, log)
    if found.source == "DXT":
        _add_requests(found, log, layouts)
    add_counters(found, log)
    found.full |= log.left_out > 0
    found.partial |= not found.damaged.isdisjoint(_OF_TIMES)
    found.ledger = ledger.of_log(log, processes, run_time, found.traced(), partial=found.lost)
    return found


def _add_heat(found: Activity, log: DarshanFile) -> None:
    """Take in HEATMAP: bytes by rank, and, without DXT, when there are any."""
    moved = np.zeros((2, found.processes))
    bins: list[Numbers] = []
    width = 0.0
    for heat in log.heat():
        if heat.layer not in ("POSIX", "STDIO") or not 0 <= heat.rank < found.processes:
            continue
        both = np.stack([heat.read, heat.written]).astype(float)
        moved[:, heat.rank] += both.sum(axis=1)
        if heat.layer == "STDIO" or not both.shape[1]:
            continue
        width = max(width, heat.width_s)
        band = heat.rank * found.bands // found.processes
        edges = (np.arange(both.shape[1]) * heat.width_s * BINS / found.run_time).astype(int).clip(0, BINS - 1)
        if found.source == "HEATMAP":
            for way in (0, 1):
                np.add.at(found.line[way, band], edges, both[way])
        bins.append((both > 0).astype(float))
    found.heat = {False: moved[0], True: moved[1]}
    if bins:
        there, begun = np.zeros((2, max(each.shape[1] for each in bins))), np.zeros(2)
        found.most_bins = {bool(way): max(int(each[way].sum()) for each in bins) for way in (0, 1)}
        for each in bins:
            there[:, : each.shape[1]] += each
            begun += np.maximum(np.diff(each, prepend=0.0), 0.0).sum(axis=1)
        any_rank, every = (there > 0).sum(axis=1), there.sum(axis=1)
        over = (every >= 2 * begun) & (every - begun < any_rank)  # where one begins, another ends: in turn
        together = np.where(over & (any_rank > 0), 1.0, every / np.maximum(any_rank, 1))
        found.in_turn = {bool(way): (float(together[way]), int(any_rank[way])) for way in (0, 1)}
        if found.source == "HEATMAP":
            found.wall = {bool(way): float(any_rank[way]) * width for way in (0, 1)}
            moving = (np.flatnonzero((there > 0).any(axis=0)) * width).astype(np.float64)
            found.busy, found.resolution = merged(moving, moving + width), width


# ---- requests --------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class _Batch:
    """Requests of several records, and of each request the number of its record in `records`."""

    records: list[Access]

    def __post_init__(self) -> None:
        counts = [len(each.requests) for each in self.records]
        self.of = np.repeat(np.arange(len(counts)), counts)
        self.ends = np.cumsum(counts)
        every = [each.requests for each in self.records]
        self.offset, self.length, self.start, self.end = (
            np.concatenate([each[name] for each in every]).astype(kind)
            for name, kind in (("offset", "=i8"), ("length", "=i8"), ("start", "=f8"), ("end", "=f8"))
        )
        self.write = np.array([each.write for each in self.records])
        self.rank = np.array([each.rank for each in self.records])
        self.file = np.array([each.signed for each in self.records], np.int64)

    def sum(self, values: Numbers | None = None) -> Numbers:
        """Return the sum of values, or the number of requests, of each record."""
        return np.bincount(self.of, values, len(self.records)).astype(float)

    def place(self, number: int) -> slice:
        """Return where the requests of a record are."""
        return slice(int(self.ends[number] - len(self.records[number].requests)), int(self.ends[number]))

    def part(self, number: int) -> tuple[Numbers, Numbers]:
        """Return the starts and ends of the requests of a record."""
        return self.start[self.place(number)], self.end[self.place(number)]

    def before(self) -> Whole:
        """Return the places of requests that have one of the same record before them."""
        return np.flatnonzero(self.of[1:] == self.of[:-1]) + 1


def _batches(log: DarshanFile, module: str, found: Activity) -> Iterator[_Batch]:
    """Yield the records of a module, many at once; a damaged module is as good as one that ran out of memory."""
    kept: list[Access] = []
    size = 0
    found.partial |= log.partial(module)
    with noted(found, module):
        for access in log.accesses(module):
            if not np.isfinite(access.requests["start"] + access.requests["end"]).all():
                found.damaged.add(module)
                continue
            kept.append(access)
            size += len(access.requests)
            if size >= _BATCH:
                yield _Batch(kept)
                kept, size = [], 0
    if kept:
        yield _Batch(kept)


def _pauses(start: Numbers, end: Numbers) -> Numbers:
    """Return the longest times between intervals, which are apart and in order."""
    return np.sort(start[1:] - end[:-1])[-_MOST_PAUSES:]


class _Sums:
    """Sums of one file in one direction, while batches come."""

    def __init__(self, layout: Layout, opened: float = math.inf) -> None:
        self.layout = layout
        self.ranks: dict[int, Numbers] = {}
        self.sums = np.zeros(5)
        self.low, self.high = math.inf, 0.0
        self.union, self.called = Union(), Union()
        self.calls: collections.defaultdict[int, float] = collections.defaultdict(float)
        self.late = Late(opened)
        self.blocks: list[Whole] = []
        self.kept, self.every = 0, 1
        stripes = layout.stripes if 1 < layout.stripes <= 4096 and layout.stripe_bytes > 0 else 0
        self.stripe = np.zeros((2, stripes))

    def row(self, processes: int) -> Row:
        """Return what is kept of it."""
        ranks = np.array(list(self.ranks), np.int64)
        values = np.array(list(self.ranks.values())).reshape(-1, 5).T
        found: dict[str, Any] = dict(zip(("requests", "moved", "busy", "first", "last"), values, strict=True))
        sums = ("unaligned", "consecutive", "forward", "regular", "pairs")
        found |= zip(sums, map(int, self.sums), strict=True)
        blocks, shared = self._shared()
        self.called.add(*self.union.parts())
        calls = np.array([self.calls.get(rank, 0.0) for rank in self.ranks])
        late, late_rank, late_share = self.late.lost(processes)
        return Row(
            ranks=ranks,
            **found,
            wall=self.union.seconds,
            called=self.called.seconds,
            calls=calls,
            extent=max(0.0, self.high - self.low),
            blocks=blocks,
            shared=shared,
            late=late,
            late_rank=late_rank,
            late_share=late_share,
            stripe_time=self.stripe[0],
            stripe_bytes=self.stripe[1],
            pauses=_pauses(*self.union.parts()),
        )

    def add_blocks(self, blocks: Whole, rank: int) -> None:
        """Add blocks of which a rank covers a part."""
        blocks = np.unique(blocks[blocks % self.every == 0])
        self.blocks.append(np.stack([blocks, np.full(len(blocks), rank)]))
        self.kept += len(blocks)
        if self.kept > _MOST_BLOCKS:
            self.every *= 4
            every = np.concatenate(self.blocks, axis=1)
            self.blocks = [every[:, every[0] % self.every == 0]]
            self.kept = self.blocks[0].shape[1]

    def _shared(self) -> tuple[int, int]:
        if not self.blocks:
            return 0, 0
        blocks = np.concatenate(self.blocks, axis=1)
        if len(self.ranks) == 1:  # as of thousands of files of one rank each
            return len(np.unique(blocks[0])), 0
        pairs = np.unique(blocks, axis=1)
        _, counts = np.unique(pairs[0], return_counts=True)
        return len(counts), int((counts > 1).sum())


def _add_requests(found: Activity, log: DarshanFile, layouts: Mapping[int, Layout]) -> None:
    """Take in DXT."""
    sums: dict[tuple[int, bool], _Sums] = {}
    open_s = opened(found, log)
    ways = {False: Union(), True: Union()}
    found.durations = {way: np.zeros((_SIZES, WINDOWS, _DURATIONS), np.int64) for way in ways}
    for batch in _batches(log, "DXT_POSIX", found):
        _add_records(sums, batch, layouts, open_s)
        _add_line(found, batch)
        found.places.add(batch.file[batch.of], batch.rank[batch.of], batch.write[batch.of], batch.offset, batch.start)
        _add_ways(ways, batch)
        for way in ways:
            _add_durations(found, batch, batch.write[batch.of] == way, way)
    for batch in _batches(log, "DXT_MPIIO", found) if "DXT_MPIIO" in log.modules else ():
        _add_ways(ways, batch)
        _add_asked(found, batch)
        for number, (file, access) in enumerate(zip(batch.file.tolist(), batch.records, strict=True)):
            if (into := sums.get((file, access.write))) is not None:
                start, end = batch.part(number)
                into.calls[access.rank] += float((end - start).sum())
                into.called.add(*merged(start, end))
                into.late.add(start, end, access.rank)
    found.rows = {key: each.row(found.processes) for key, each in sums.items()}
    found.wall = {way: union.seconds for way, union in ways.items()}
    ways[True].add(*ways[False].parts())
    found.busy = ways[True].parts()


def _add_ways(ways: Mapping[bool, Union], batch: _Batch) -> None:
    """Add the requests of a batch to the time in which any rank reads, or writes."""
    for way, union in ways.items():
        chosen = batch.write[batch.of] == way
        union.add(*merged(batch.start[chosen], batch.end[chosen]))


def _add_records(
    sums: dict[tuple[int, bool], _Sums], batch: _Batch, layouts: Mapping[int, Layout], opened: Mapping[int, float]
) -> None:
    """Add the records of a batch to the sums of their files."""
    after = batch.before()
    distance = batch.offset[after] - batch.offset[after - 1] - batch.length[after - 1]
    busy = np.maximum(batch.end - batch.start, 0.0)
    busy[after] = np.clip(batch.end[after] - np.maximum(batch.start[after], batch.end[after - 1]), 0, busy[after])
    block = np.array([layouts.get(int(file), Layout()).block for file in batch.file])
    block = np.where(block > 1, block, 1)
    pairs = np.bincount(batch.of[after], minlength=len(batch.records))
    kinds = [batch.sum((batch.offset % block[batch.of] != 0).astype(float))]
    kinds += [
        np.bincount(batch.of[after], which, len(batch.records)).astype(float)
        for which in (distance == 0, distance >= 0, _regular(batch, after, distance))
    ]
    firsts = batch.ends - np.diff(np.append(0, batch.ends))
    values = np.stack(
        [
            batch.sum(),
            batch.sum(batch.length.astype(float)),
            batch.sum(busy),
            np.minimum.reduceat(batch.start, firsts),
            np.maximum.reduceat(batch.end, firsts),
        ]
    )
    counted = np.stack([*kinds, pairs])
    lowest = np.minimum.reduceat(batch.offset, firsts)
    highest = np.maximum.reduceat(batch.offset + batch.length, firsts)
    for number, access in enumerate(batch.records):
        key = int(batch.file[number]), access.write
        into = sums.setdefault(key, _Sums(layouts.get(key[0], Layout()), opened.get(key[0], math.inf)))
        into.sums += counted[:, number]
        into.low, into.high = min(into.low, float(lowest[number])), max(into.high, float(highest[number]))
        old, new = into.ranks.get(access.rank), values[:, number]
        if old is not None:
            new = np.append(old[:3] + new[:3], (min(old[3], new[3]), max(old[4], new[4])))
        into.ranks[access.rank] = new
        into.union.add(*merged(*batch.part(number)))
        _add_places(into, batch, batch.place(number), access)


def _add_asked(found: Activity, batch: _Batch) -> None:
    """Add how calls of MPI-IO follow each other."""
    after = batch.before()
    after = after[(batch.offset[after] >= 0) & (batch.offset[after - 1] >= 0)]
    distance = batch.offset[after] - batch.offset[after - 1] - batch.length[after - 1]
    counts = [
        np.bincount(batch.of[after], which, len(batch.records))
        for which in (np.ones(len(after)), distance == 0, distance >= 0, _regular(batch, after, distance))
    ]
    values = np.stack([*counts, batch.sum((batch.offset < 0).astype(float))]).T
    moved = batch.sum(batch.length.astype(float)) > 0
    for file, way, rank, moves, value in zip(
        batch.file.tolist(), batch.write.tolist(), batch.rank.tolist(), moved.tolist(), values, strict=True
    ):
        calls = found.calls_of(file)
        calls.asked[bool(way)] = calls.asked.get(bool(way), np.zeros(5)) + value
        if moves:
            calls.askers.add(int(rank))


def _regular(batch: _Batch, after: Whole, distance: Whole) -> Numbers:
    """Return for each pair whether it has the distance of the pair before: strides repeat, random places do not."""
    same = np.zeros(len(after), bool)
    same[1:] = (distance[1:] == distance[:-1]) & (batch.of[after[1:]] == batch.of[after[:-1]])
    return same.astype(float)


def _add_places(into: _Sums, batch: _Batch, part: slice, access: Access) -> None:
    """Add the blocks that a record shares with others, and the times of its requests to each stripe."""
    layout, offset, length = into.layout, batch.offset[part], batch.length[part]
    last = offset + np.maximum(length, 1) - 1
    size = layout.stripe_bytes or layout.block
    if access.write and size > 1:
        ragged = np.concatenate([offset[offset % size != 0], last[(last + 1) % size != 0]])
        if len(ragged):
            into.add_blocks(ragged // size, access.rank)
    if into.stripe.shape[1]:
        within = offset // layout.stripe_bytes == last // layout.stripe_bytes
        places = offset[within] // layout.stripe_bytes % into.stripe.shape[1]
        np.add.at(into.stripe[0], places, (batch.end[part] - batch.start[part])[within])
        np.add.at(into.stripe[1], places, length[within].astype(float))


def _add_line(found: Activity, batch: _Batch) -> None:
    """Add the time that requests take to the bands of their ranks and the bins of their times."""
    rank = np.clip(batch.rank, 0, found.processes - 1) * found.bands // found.processes
    rows = (batch.write.astype(np.int64) * found.bands + rank)[batch.of]
    spread(found.line, found.run_time, rows, batch.start, batch.end, np.ones(len(rows)))
    took = np.maximum(batch.end - batch.start, found.run_time * 1e-9)
    spread(found.moved, found.run_time, rows, batch.start, batch.start + took, batch.length / took)


def _add_durations(found: Activity, batch: _Batch, chosen: npt.NDArray[np.bool_], way: bool) -> None:
    """Count requests by size, window of time and duration."""
    length, start = batch.length[chosen], batch.start[chosen]
    took = np.maximum(batch.end[chosen] - start, 1e-9)
    sizes = np.clip(4 * np.log2(np.maximum(length, 1)), 0, _SIZES - 1).astype(np.int64)
    windows = np.clip(start / found.run_time * WINDOWS, 0, WINDOWS - 1).astype(np.int64)
    lengths = np.clip(2 * (np.log2(took) - _SHORTEST), 0, _DURATIONS - 1).astype(np.int64)
    np.add.at(found.durations[way], (sizes, windows, lengths), 1)
