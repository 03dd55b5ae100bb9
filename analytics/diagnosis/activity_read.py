"""Read what ranks did when from a log: DXT, HEATMAP, and counters that are in no table.

Problem. DXT of many ranks is millions of requests, too many for a step of Python each, or for the memory.

Algorithm. Requests are looked at in batches of many records, by array arithmetic; sums by file, rank and direction are
kept. Durations are counted by size, window of time and length, in quarter and half octaves.

Guarantees. Memory is bounded; blocks that ranks share are sampled where they are many. Losses of DXT are reported
(:attr:`.activity.Activity.partial`), and show in the comparison with the counters of POSIX.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mpiio_ext.analytics.diagnosis.activity import (
    BANDS,
    BINS,
    WINDOWS,
    Activity,
    Calls,
    Layout,
    Line,
    Row,
    Union,
    merged,
)
from mpiio_ext.analytics.diagnosis.late import Late, all_but_one
from mpiio_ext.analytics.tables.arrays import Numbers, Whole
from mpiio_ext.common.darshanfile import COUNTERS, Access, DamagedLogError, DarshanFile, Requests

if TYPE_CHECKING:
    import pyarrow as pa

#: Requests that are looked at together; blocks that are kept of a file.
_BATCH = 1 << 18
_MOST_BLOCKS = 1 << 20
#: Times without a request that are kept of a file.
_MOST_PAUSES = 1 << 12
#: Requests of a file from which on the longest one is kept.
_MANY = 100
#: Sizes of accesses that are taken from each of the pieces in which records come.
_MOST_COMMON = 64
#: Versions of modules from which on their counters are looked at: those that diagnoses were compared with.
#: In the counters of H5D and PNETCDF_VAR, and in the times of both (darshan-hdf5-log-format.h and
#: darshan-pnetcdf-log-format.h): the file, calls, and fastest rank, its bytes, slowest rank, its bytes.
_FILE = 0
_H5D_COLLECTIVE, _H5D_SPREAD = 89, slice(91, 95)
_PNETCDF_INDEPENDENT, _PNETCDF_COLLECTIVE, _PNETCDF_SPREAD = slice(2, 4), slice(4, 6), slice(117, 121)
_VARIABLE_TIMES = [8, 9, 10, 13, 14]  # reading, writing, metadata; of the fastest and of the slowest rank
_OLDEST = {"POSIX": 3, "STDIO": 2, "MPI-IO": 2}
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
    found.bands, found.lost = min(BANDS, processes), "POSIX" in log.modules and log.partial("POSIX")
    found.line, found.moved = np.zeros((3, found.bands, BINS)), np.zeros((2, found.bands, BINS))
    if "HEATMAP" in log.modules:
        try:
            _add_heat(found, log)
        except DamagedLogError:
            found.heat, found.partial = {}, True
    if found.source == "DXT":
        _add_requests(found, log, layouts)
    with contextlib.suppress(DamagedLogError):
        _add_calls(found, log)
    with contextlib.suppress(DamagedLogError):
        _add_hdf5(found, log)
    with contextlib.suppress(DamagedLogError):
        for part in log.counters("PNETCDF_VAR") if "PNETCDF_VAR" in log.modules else ():
            _add_waits(found, part, "PnetCDF")
    return found


def _counters(log: DarshanFile, module: str) -> Iterator[Requests]:
    """Yield the records of a module; none of versions that are too old."""
    if module in log.modules and log.version_of(module) >= _OLDEST[module]:
        yield from log.counters(module)


def _add_calls(found: Activity, log: DarshanFile) -> None:
    """Take in counters of POSIX and MPI-IO."""
    found.alone, shared = np.zeros((2, found.processes)), _shared_by_mpi(log)
    for part in _counters(log, "STDIO"):
        _add_alone(found, part, 0, shared)
        for file, flushes in zip(part["file"].tolist(), part["counters"][:, 5].tolist(), strict=True):
            if flushes > 0:
                found.calls.setdefault(signed(file), Calls()).flushes += int(flushes)
    for part in _counters(log, "POSIX"):
        _add_metadata(found, part)
        _add_common(found, part, "POSIX")
        _add_alone(found, part, 10, shared)
        some = np.maximum(part["counters"][:, [6, 7, 22, 8, 9]], 0)  # POSIX_STATS, maps, switches, syncs; -1: not known
        for file, (stats, maps, switches, *syncs) in zip(part["file"].tolist(), some.tolist(), strict=True):
            if stats or maps or switches or any(syncs):
                calls = found.calls.setdefault(signed(file), Calls())
                calls.stats += stats
                calls.maps += maps
                calls.switches += switches
                calls.syncs += sum(syncs)
        _add_unmoved(found, part)
        _add_requests_of(found, part)
    seen: set[int] = set()
    for part in _counters(log, "MPI-IO"):
        read, write, meta, slowest = 8, 9, 10, 14
        times = part["times"][:, [read, write, meta, slowest, read - 1, slowest - 1]].astype(float)
        spread = part["counters"][:, 47:51].astype(np.int64).tolist()  # fastest rank and its bytes, slowest and its
        opens = part["counters"][:, :2].astype(np.int64).sum(axis=1)  # independent and collective ones
        syncs, views = part["counters"][:, [10, 12]].astype(np.int64).T
        shares = _largest_shares(part, found.processes)
        _add_sizes(found, part)
        _add_common(found, part, "MPI-IO")
        for file, rank, opened, synced, viewed, timed, (first, least, last, most) in zip(
            part["file"].tolist(),
            part["rank"].tolist(),
            opens.tolist(),
            syncs.tolist(),
            views.tolist(),
            times.tolist(),
            spread,
            strict=True,
        ):
            reading, writing, rest, longest, closed, shortest = timed
            calls = found.calls.setdefault(signed(file), Calls())
            calls.opens += max(opened, 0)
            calls.asked_syncs += max(synced, 0)
            calls.views += max(viewed, 0)
            calls.given = shares.pop(0)
            calls.unclosed = closed <= 0 and (calls.unclosed or signed(file) not in seen)
            seen.add(signed(file))
            mpi, ranks = calls.mpi, found.processes if rank < 0 else 1
            calls.mean[False] += reading / found.processes
            calls.mean[True] += writing / found.processes
            calls.opening = max(calls.opening, rest / ranks)
            if rank < 0 and longest > 0:
                calls.apart = (shortest, (reading + writing + rest) / ranks, longest)
                calls.first, calls.last, calls.alike, calls.more = first, last, least == most > 0, float(most - least)
            for way, own, other in ((False, reading, writing + rest), (True, writing, reading + rest)):
                inside = max(own / ranks, min(own, longest - other / ranks)) if rank < 0 else own
                mpi[way] = max(mpi[way], inside)


def _add_hdf5(found: Activity, log: DarshanFile) -> None:
    """Add which files HDF5 opens, how often it flushes them, and what it moves of datasets, where all is known."""
    there = [name for name in ("H5F", "H5D") if name in log.modules]
    if "H5F" not in there or not all(log.knows(name) and not log.partial(name) for name in there):
        return
    moved: collections.defaultdict[int, Numbers] = collections.defaultdict(lambda: np.zeros(4))
    chunks: collections.defaultdict[int, float] = collections.defaultdict(float)
    for part in log.counters("H5D") if "H5D" in there else ():
        known = part["counters"].astype(np.int64)
        chunked = (known[:, 84] > 0) * np.maximum(known[:, 83:89].astype(float), 1.0).prod(
            axis=1
        )  # with size of a type
        for (file, *each), chunk in zip(known[:, [0, 2, 3, 5, 6]].tolist(), chunked.tolist(), strict=True):
            moved[signed(file % (1 << 64))] += np.maximum(each, 0)  # H5D_READS, _WRITES, and bytes of both
            chunks[signed(file % (1 << 64))] = max(chunk, chunks[signed(file % (1 << 64))])
        _add_waits(found, part)
    for part in log.counters("H5F"):
        for file, (opens, flushes, _) in zip(part["file"].tolist(), part["counters"].tolist(), strict=True):
            calls = found.calls.setdefault(signed(file), Calls())
            calls.by_hdf5, calls.hdf5_flushes = calls.by_hdf5 + max(opens, 0), calls.hdf5_flushes + max(flushes, 0)
            asked = moved[signed(file)].tolist()
            calls.dataset_calls, calls.datasets = dict(enumerate(asked[:2])), dict(enumerate(asked[2:]))
            calls.chunk = chunks[signed(file)]


def _add_waits(found: Activity, part: Requests, within: str = "HDF5") -> None:
    """Take the times of a library's collective calls on datasets where all ranks but one are in them for as long.

    HDF5 and PnetCDF let ranks wait for one another before they call MPI-IO, whose times then do not show it.
    """
    counters, times = part["counters"].astype(np.int64), part["times"].astype(float)
    shared = part["rank"].astype(np.int64) < 0
    if within == "PnetCDF":  # calls by their kinds
        collective = (counters[:, _PNETCDF_COLLECTIVE] > 0).any(axis=1)
        collective &= (counters[:, _PNETCDF_INDEPENDENT] <= 0).all(axis=1)
        spread = counters[:, _PNETCDF_SPREAD]
    else:
        collective, spread = np.greater(counters[:, _H5D_COLLECTIVE], 0), counters[:, _H5D_SPREAD]
    for place in np.flatnonzero(shared & collective).tolist():
        first, of_first, last, of_last = spread[place].tolist()
        reading, writing, meta, least, most = times[place, _VARIABLE_TIMES].tolist()
        own = {False: reading, True: writing}
        calls = found.calls.setdefault(signed(int(counters[place, _FILE]) % (1 << 64)), Calls())
        mean, way = (reading + writing + meta) / found.processes, writing > reading
        if of_first == of_last > 0 and all_but_one(least, mean, most, found.processes) > max(calls.mean[way], 0.0):
            calls.apart, calls.within = (least, mean, most), within
            calls.first, calls.last, calls.alike, calls.more = first, last, True, 0.0
            calls.mean[way] = own[way] / found.processes
            calls.mpi[way] = max(calls.mpi[way], most * own[way] / (reading + writing + meta))


def _add_unmoved(found: Activity, part: Requests) -> None:
    """Add how long files are open that no call reads or writes: that are mapped, or where POSIX_MMAPS is not known."""
    counters, times = part["counters"].astype(np.int64), part["times"].astype(float)
    lasting = np.where((counters[:, 3:5] <= 0).all(axis=1) & (counters[:, 7] != 0), times[:, 7] - times[:, 0], 0.0)
    for place in np.flatnonzero(lasting > 0).tolist():
        calls = found.calls.setdefault(signed(int(part["file"][place])), Calls())
        calls.unmoved = max(calls.unmoved, float(lasting[place]))


def _add_requests_of(found: Activity, part: Requests) -> None:
    """Add the longest request in each direction, and those at common distances, of files with many."""
    counters, times = part["counters"].astype(np.int64), part["times"].astype(float)
    for place in np.flatnonzero((counters[:, 3:5] >= _MANY).any(axis=1)).tolist():
        calls = found.calls.setdefault(signed(int(part["file"][place])), Calls())
        calls.strided += int(np.maximum(counters[place, 53:57], 0)[counters[place, 49:53] > 0].sum())
        for way in (False, True):
            calls.longest[way] = max(calls.longest.get(way, 0.0), float(times[place, 11 + way]))


def _add_sizes(found: Activity, part: Requests) -> None:
    """Add the sizes of calls of MPI-IO."""
    counts = np.maximum(part["counters"][:, 19:39].astype(float), 0.0)
    for file, each in zip(part["file"].tolist(), counts, strict=True):
        sizes = found.calls.setdefault(signed(file), Calls()).sizes
        for way, some in ((False, each[:10]), (True, each[10:])):
            sizes[way] = sizes.get(way, np.zeros(10)) + some


def _add_common(found: Activity, part: Requests, module: str) -> None:
    """Add the sizes that are common among the accesses of each file."""
    first = COUNTERS[module][0].index("ACCESS1_ACCESS")
    sizes, counts = (part["counters"][:, at : at + 4].astype(np.int64).ravel() for at in (first, first + 4))
    known = counts > 0
    every, which = np.unique(sizes[known], return_inverse=True)
    sums = np.bincount(which, counts[known], len(every))
    into = found.common.setdefault(module, {})
    for place in np.argsort(-sums, kind="stable")[:_MOST_COMMON].tolist():
        into[int(every[place])] = into.get(int(every[place]), 0) + int(sums[place])


def _largest_shares(part: Requests, processes: int) -> list[float]:
    """Return the least share of a shared file's bytes that its busiest rank can have; 0 where it is not known.

    The log has the variance of the ranks' bytes: their squares add up to at most the bytes of the busiest times all.
    """
    moved = np.maximum(part["counters"][:, 14:16].astype(float), 0.0).sum(axis=1)
    variance, shared = part["times"][:, -1].astype(float), part["rank"].astype(np.int64) < 0
    squared = np.where(shared & (moved > 0), moved, np.inf) ** 2
    least = processes * np.maximum(variance, 0.0) / squared + shared * (moved > 0) / processes
    return np.asarray(np.minimum(least, 1.0)).tolist()  # type: ignore[no-any-return]


def _shared_by_mpi(log: DarshanFile) -> set[int]:
    """Return the files that several ranks have opened by MPI-IO: for them one rank may make the calls of all."""
    opened: collections.Counter[int] = collections.Counter()
    for part in _counters(log, "MPI-IO"):
        for file, rank in zip(part["file"].tolist(), part["rank"].tolist(), strict=True):
            opened[file] += 2 if rank < 0 else 1
    return {file for file, ranks in opened.items() if ranks > 1}


def _add_alone(found: Activity, part: Requests, place: int, shared: set[int]) -> None:
    """Add whose files are that a rank has for itself, with metadata time, at `place` among the times, and opens."""
    rank = part["rank"].astype(np.int64)
    own = (rank >= 0) & (rank < found.processes)
    found.owners.update(zip(map(signed, part["file"][own].tolist()), rank[own].tolist(), strict=True))
    own &= np.array([file not in shared for file in part["file"].tolist()], bool)
    for into, values in zip(found.alone, (part["times"][:, place], part["counters"][:, 0]), strict=True):
        np.add.at(into, rank[own], np.maximum(values[own].astype(float), 0.0))


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
        self.file = np.array([signed(each.file) for each in self.records], np.int64)

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


def signed(number: int) -> int:
    """Return the number of a file as tables have it: 64 bits with a sign."""
    return number - (1 << 64) if number >= 1 << 63 else number


def _batches(log: DarshanFile, module: str, found: Activity) -> Iterator[_Batch]:
    """Yield the records of a module, many at once; a damaged module is as good as one that ran out of memory."""
    kept: list[Access] = []
    size = 0
    found.partial |= log.partial(module)
    try:
        for access in log.accesses(module):
            if not np.isfinite(access.requests["start"] + access.requests["end"]).all():
                found.partial = True
                continue
            kept.append(access)
            size += len(access.requests)
            if size >= _BATCH:
                yield _Batch(kept)
                kept, size = [], 0
    except DamagedLogError:
        found.partial = True
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
    opened = _opened(log)
    ways = {False: Union(), True: Union()}
    found.durations = {way: np.zeros((_SIZES, WINDOWS, _DURATIONS), np.int64) for way in ways}
    for batch in _batches(log, "DXT_POSIX", found):
        _add_records(sums, batch, layouts, opened)
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


def _opened(log: DarshanFile) -> dict[int, float]:
    """Return when the last rank had opened each file by MPI-IO (s), for logs that show it."""
    found: dict[int, float] = {}
    with contextlib.suppress(DamagedLogError):
        for part in _counters(log, "MPI-IO"):
            for file, end in zip(part["file"].tolist(), part["times"][:, 4].tolist(), strict=True):
                if end >= 0:
                    found[signed(file)] = max(end, found.get(signed(file), 0.0))
    return found


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
        calls = found.calls.setdefault(file, Calls())
        calls.asked[bool(way)] = calls.asked.get(bool(way), np.zeros(5)) + value
        if moves:
            calls.askers.add(int(rank))


def _regular(batch: _Batch, after: Whole, distance: Whole) -> Numbers:
    """Return for each pair whether it has the distance of the pair before: strides repeat, random places do not."""
    same = np.zeros(len(after), bool)
    same[1:] = (distance[1:] == distance[:-1]) & (batch.of[after[1:]] == batch.of[after[:-1]])
    return same.astype(float)


def _add_places(into: _Sums, batch: _Batch, part: slice, access: Access) -> None:
    """Add which blocks a record shares with others, and how long its requests to each stripe take."""
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
    _spread(found.line, found.run_time, rows, batch.start, batch.end, np.ones(len(rows)))
    took = np.maximum(batch.end - batch.start, found.run_time * 1e-9)
    _spread(found.moved, found.run_time, rows, batch.start, batch.start + took, batch.length / took)


def _spread(line: Line, run_time: float, rows: Whole, start: Numbers, end: Numbers, rate: Numbers) -> None:
    """Add to rows of a time line, in each bin, the seconds of it that lie between start and end, times a rate."""
    scale = BINS / run_time
    start, end = (np.clip(times * scale, 0, BINS - 1e-9) for times in (start, end))
    first, last = start.astype(np.int64), end.astype(np.int64)
    flat, whole, rows = line.reshape(-1), np.zeros(line.size + 1), rows * BINS
    one = first == last
    np.add.at(flat, rows + first, rate * np.where(one, end - start, first + 1 - start) / scale)
    several = ~one
    np.add.at(flat, (rows + last)[several], (rate * (end - last))[several] / scale)
    np.add.at(whole, (rows + first)[several] + 1, rate[several])
    np.add.at(whole, (rows + last)[several], -rate[several])
    flat += np.cumsum(whole)[:-1] / scale


def _add_metadata(found: Activity, part: Requests) -> None:
    """Add the time in metadata calls of POSIX, evenly from the first open of a file to its last close."""
    opened, closed, meta = (part["times"][:, place].astype(float) for place in (0, 7, 10))
    rank = part["rank"].astype(np.int64)
    known = (closed > opened) & (meta > 0) & np.isfinite(closed + meta) & (rank < found.processes)
    for shared in (False, True):
        here = known & ((rank < 0) == shared)
        start, end, rate = opened[here], closed[here], (meta / np.where(known, closed - opened, 1.0))[here]
        rows = 2 * found.bands + rank[here] * found.bands // found.processes
        if shared:  # of all ranks: each band has its part
            rows = np.tile(2 * found.bands + np.arange(found.bands), here.sum())
            start, end, rate = (np.repeat(each, found.bands) for each in (start, end, rate / found.bands))
        _spread(found.line, found.run_time, rows, start, end, rate)


def _add_durations(found: Activity, batch: _Batch, chosen: npt.NDArray[np.bool_], way: bool) -> None:
    """Count requests by size, window of time and duration."""
    length, start = batch.length[chosen], batch.start[chosen]
    took = np.maximum(batch.end[chosen] - start, 1e-9)
    sizes = np.clip(4 * np.log2(np.maximum(length, 1)), 0, _SIZES - 1).astype(np.int64)
    windows = np.clip(start / found.run_time * WINDOWS, 0, WINDOWS - 1).astype(np.int64)
    lengths = np.clip(2 * (np.log2(took) - _SHORTEST), 0, _DURATIONS - 1).astype(np.int64)
    np.add.at(found.durations[way], (sizes, windows, lengths), 1)
