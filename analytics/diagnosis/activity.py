"""The activity of ranks over time: requests of DXT, bytes by time of HEATMAP, and counters that are in no table.

Problem. Counters are sums over ranks, and some counters are in no table. Counters do not show whether ranks are active
at the same time, whether all of that time has I/O, whether equal requests need equal times, or which ranks share a
block.

Content. :class:`Activity` of a log has a :class:`Row` for each file and direction, :class:`Calls` of each file, and a
time line of bands of ranks. :mod:`.activity_read` makes it. Time with I/O is a :class:`Union` of intervals.

Guarantees. The stored data do not grow with the number of requests: unions of more than :data:`_MOST_PARTS` parts fill
their shortest gaps.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from mpiio_ext.analytics.ledger import Ledger, Traced
from mpiio_ext.analytics.ledger.records import KINDS
from mpiio_ext.analytics.tables.arrays import Numbers, Whole

#: Bands of ranks and bins of time of a time line; windows of time in which durations are compared.
BANDS, BINS, WINDOWS = 48, 120, 24
#: Bytes of a call in each part of Darshan's histogram, roughly; and the share of the bytes that is nearly all.
_SIZES, _NEARLY = np.array([50, 300, 3e3, 3e4, 3e5, 2e6, 6e6, 3e7, 3e8, 2e9]), 0.9
#: Parts that a union keeps; requests of a sample.
_MOST_PARTS, _MOST_PLACES = 1 << 19, 1 << 13

Line = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Layout:
    """Known properties of a file: block of the file system (B), size (B) and number of its stripes; 0 if unknown."""

    block: int = 0
    stripe_bytes: int = 0
    stripes: int = 0


class Union:
    """Time covered by intervals."""

    def __init__(self) -> None:
        self._start: list[Numbers] = []
        self._end: list[Numbers] = []
        self._parts = 0

    def add(self, start: Numbers, end: Numbers) -> None:
        """Add intervals (s)."""
        self._start.append(start)
        self._end.append(end)
        self._parts += len(start)
        if self._parts > 2 * _MOST_PARTS:
            self._merge()

    def _merge(self) -> None:
        if len(self._start) > 1 or self._parts:
            start, end = merged(np.concatenate(self._start), np.concatenate(self._end))
            if len(start) > _MOST_PARTS:
                gaps = start[1:] - end[:-1]
                kept = gaps > np.partition(gaps, -_MOST_PARTS // 2)[-_MOST_PARTS // 2]
                start, end = start[np.append(True, kept)], end[np.append(kept, True)]
            self._start, self._end, self._parts = [start], [end], len(start)

    def parts(self) -> tuple[Numbers, Numbers]:
        """Return the starts and ends of what is covered, in order."""
        if not self._start:
            return np.zeros(0), np.zeros(0)
        self._merge()
        return self._start[0], self._end[0]

    @property
    def seconds(self) -> float:
        """Return how long it is."""
        start, end = self.parts()
        return float((end - start).sum())


def merged(start: Numbers, end: Numbers) -> tuple[Numbers, Numbers]:
    """Return the union of intervals as starts and ends, in order."""
    if len(start) < 2:
        return start, end
    if (start[1:] < start[:-1]).any():
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    end = np.maximum.accumulate(end)
    apart = start[1:] > end[:-1]
    return start[np.append(True, apart)], end[np.append(apart, True)]


def spread(line: Line, run_time: float, rows: Whole, start: Numbers, end: Numbers, rate: Numbers) -> None:
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


@dataclasses.dataclass
class Row:
    """One file in one direction: a value for each rank that moves its bytes, and the properties that all ranks share.

    Attributes
    ----------
    ranks : array
    requests, moved, busy, first, last : array
        Of each rank: number, bytes, seconds in requests, times of the first and the end of the last one (s).
    unaligned, consecutive, forward, regular, pairs : int
        Requests that do not begin at a block; of `pairs` of a rank's successive requests, those that are adjacent, that
        lie behind, and that have the distance that is the most common one of their batch.
    wall, called : seconds in which any rank is in a request, and in which any is in a request or an MPI-IO call.
    calls : array
        Of each rank: seconds in MPI-IO calls; 0 without them.
    late, late_rank, late_share : float, int, float
        Seconds that each other rank waits, on average, in the MPI-IO calls for the one that makes its call last,
        because of what that rank does between its calls. Then the rank for which they wait most, and its share of that.
        0 where ranks make not equally many calls.
    extent : bytes from the first one that a request moves to the last one.
    blocks, shared : blocks of which a request covers a part, and those that several ranks cover so (of a sample).
    stripe_time, stripe_bytes : array
        Seconds and bytes of requests within one stripe, for each place of the layout.
    pauses : array
        The longest times between requests in which no rank is in one (s).
    """

    ranks: Whole
    requests: Numbers
    moved: Numbers
    busy: Numbers
    first: Numbers
    last: Numbers
    unaligned: int = 0
    consecutive: int = 0
    forward: int = 0
    regular: int = 0
    pairs: int = 0
    wall: float = 0.0
    called: float = 0.0
    calls: Numbers = dataclasses.field(default_factory=lambda: np.zeros(0))
    extent: float = 0.0
    blocks: int = 0
    shared: int = 0
    late: float = 0.0
    late_rank: int = -1
    late_share: float = 0.0
    stripe_time: Numbers = dataclasses.field(default_factory=lambda: np.zeros(0))
    stripe_bytes: Numbers = dataclasses.field(default_factory=lambda: np.zeros(0))
    pauses: Numbers = dataclasses.field(default_factory=lambda: np.zeros(0))

    @property
    def together(self) -> float:
        """Return how many ranks are in requests at once, on average over the time in which any is."""
        return float(self.busy.sum()) / self.wall if self.wall > 0 else 0.0

    @property
    def waits(self) -> float:
        """Return how long a rank is in MPI-IO calls beyond its requests, at most (s); 0 where calls are not known."""
        return float(np.max(self.calls - self.busy, initial=0.0)) if self.calls.any() else 0.0

    @property
    def called_for(self) -> float:
        """Return the time in MPI-IO calls over that in their requests, of all ranks; 0 where calls are not known."""
        return float(self.calls.sum()) / max(float(self.busy.sum()), 1e-9)


@dataclasses.dataclass
class Calls:
    """Counters of one file that are in no table.

    Attributes
    ----------
    syncs, stats, flushes, maps : calls of fsync and fdatasync, of stat, of fflush, and of mmap, of all ranks.
    handles : opens that POSIX counts, and that are further descriptors of an open file (fileno, dup), of all ranks.
    streamed, seeks : whether the C library accesses it; its calls that seek, of all ranks.
    unmoved : seconds from its first open to its last close, where no call reads or writes it, and mmap is called, or
        the log does not count calls of mmap; else 0.
    switches : how often ranks read after a write of POSIX, or write after a read.
    opens, asked_syncs, views : calls that open it, that sync it, and that set a view, by MPI-IO, of all ranks.
    above : mapping of bool to tuple of float, float
        Seconds that an average rank, and its slowest one, spend in collective calls of HDF5 or PnetCDF that read
        (False) and write (True), if they wait there before they call MPI-IO; else zeros.
    given : share of its bytes that the rank with most of them gives to MPI-IO calls, or gets; 0 if not known.
    apart : tuple of float, float, float
        Seconds in MPI-IO calls of any kind: of the rank with least, of an average rank, and of the rank with most;
        zeros if unknown.
    within : of whose calls `apart` is: of collective ones of HDF5 or PnetCDF, where one rank spends far less time in
        these.
    first, last : the rank with least of them, and that with most; -1 if not known.
    more : bytes that the last one moves by MPI-IO beyond the first one.
    alike : that rank and the one with most move the same number of bytes by MPI-IO, and any.
    unclosed : MPI-IO has opened it, and no call has closed it.
    asked : mapping of bool to array (5)
        Of calls of MPI-IO that read (False) or write (True): pairs of successive ones of a rank, with places that are
        known. Those of them that are adjacent, that lie behind, and that have the distance of the pair before. Calls
        whose place is not known.
    askers : ranks that move bytes by MPI-IO.
    strided : requests of POSIX that lie behind the one before at one of the four commonest distances, where there are
        many.
    by_hdf5, hdf5_flushes : calls of HDF5 that open it, and that flush it, of all ranks.
    datasets, dataset_calls : mapping of bool to float
        Bytes that HDF5 reads from its datasets (False), or writes to them (True), of a file that it opens; its calls.
    arrays : datasets of HDF5 that the log has of it: all, if their calls are known.
    chunk : bytes of the largest chunk of these datasets; 0 without chunks.
    longest : mapping of bool to float
        Seconds of the longest request of POSIX that reads (False) or writes (True), where there are many.
    sizes : mapping of bool to array (10)
        Calls of MPI-IO that read (False) or write (True), of each size of Darshan's histogram; empty if not known.
    """

    syncs: int = 0
    stats: int = 0
    flushes: int = 0
    maps: int = 0
    handles: int = 0
    streamed: bool = False
    seeks: int = 0
    unmoved: float = 0.0
    switches: int = 0
    opens: int = 0
    asked_syncs: int = 0
    views: int = 0
    above: dict[bool, tuple[float, float]] = dataclasses.field(
        default_factory=lambda: {False: (0.0, 0.0), True: (0.0, 0.0)}
    )
    given: float = 0.0
    apart: tuple[float, float, float] = (0.0, 0.0, 0.0)
    within: str = "MPI-IO"
    first: int = -1
    last: int = -1
    more: float = 0.0
    alike: bool = False
    unclosed: bool = False
    asked: dict[bool, Numbers] = dataclasses.field(default_factory=dict)
    askers: set[int] = dataclasses.field(default_factory=set)
    strided: int = 0
    by_hdf5: int = 0
    hdf5_flushes: int = 0
    datasets: Mapping[int, float] = dataclasses.field(default_factory=lambda: {False: 0.0, True: 0.0})
    dataset_calls: Mapping[int, float] = dataclasses.field(default_factory=lambda: {False: 0.0, True: 0.0})
    arrays: int = 0
    chunk: float = 0.0
    longest: dict[bool, float] = dataclasses.field(default_factory=dict)
    sizes: dict[bool, Numbers] = dataclasses.field(default_factory=dict)

    def large(self, write: bool) -> float:
        """Return how many calls of MPI-IO, the largest ones, have nearly all of the bytes; 0 if not known."""
        if write not in self.sizes:
            return 0.0
        counts = self.sizes[write][::-1]
        moved = np.cumsum(counts * _SIZES[::-1])
        return float(counts[np.append(0.0, moved[:-1]) < _NEARLY * moved[-1]].sum())


class Places:
    """A sample of requests: of all that are added every k-th one, so that at most :data:`_MOST_PLACES` are kept.

    Each has the file's number, rank, whether it writes, offset (B), and start (s).
    """

    def __init__(self) -> None:
        self.every, self._met = 1, 0
        self._kept: list[Numbers] = []
        self._files: list[Whole] = []

    def add(self, file: Whole, rank: Whole, write: Whole, offset: Whole, start: Numbers) -> None:
        """Add requests."""
        first, self._met = -self._met % self.every, self._met + len(file)
        chosen = slice(first, None, self.every)
        self._files.append(file[chosen])
        self._kept.append(np.stack([each[chosen].astype(float) for each in (rank, write, offset, start)]))
        while sum(map(len, self._files)) > _MOST_PLACES:
            self.every *= 2
            files, kept = self.of_all()
            self._files, self._kept = [files[::2]], [kept[:, ::2]]

    def of_all(self) -> tuple[Whole, Line]:
        """Return the files' numbers, and an array (4, requests) of ranks, whether they write, offsets and starts."""
        if not self._files:
            return np.zeros(0, np.int64), np.zeros((4, 0))
        return np.concatenate(self._files), np.concatenate(self._kept, axis=1)

    def renamed(self, numbers: Mapping[int, int]) -> Places:
        """Return the same with other numbers of files."""
        out = Places()
        files, kept = self.of_all()
        out.every = self.every
        out._files, out._kept = [np.array([numbers.get(file, file) for file in files.tolist()], np.int64)], [kept]
        return out


@dataclasses.dataclass
class Activity:
    """What ranks did when.

    Attributes
    ----------
    source : {"DXT", "HEATMAP", ""}
    rows : mapping of (file, write) to Row
        By the file's number; empty without DXT.
    calls : mapping of int to Calls
    owners : mapping of int to int
        By the file's number: a rank that has records of it for itself.
    wall : mapping of bool to float
        Seconds in which any rank is in a call that reads (False) or writes (True): of HEATMAP, of the bins of time with
        bytes.
    busy : pair of arrays
        Starts and ends (s since the start of the log) of the time in which any rank is in a call, or moves bytes.
    resolution : seconds by which these can be too long.
    line : array (3, bands, bins)
        Of reads and writes: seconds in requests (DXT), or bytes (HEATMAP); of metadata calls: seconds, spread evenly
        over the time in which a file is open.
    moved : array (2, bands, bins)
        Bytes read and written by requests of DXT; zeros without it.
    bands : bands of ranks in them.
    heat : mapping of bool to array
        Bytes by rank, of HEATMAP; empty without it.
    in_turn : mapping of bool to tuple
        Of HEATMAP: how many ranks move bytes in a bin that has any, on average, and the number of these bins. Ranks of
        which one begins in the bin in which another ends count as one, where all of them do so.
    most_bins : mapping of bool to int
        Of HEATMAP: the bins in which the rank that moves bytes in most of them does so.
    durations : mapping of bool to array (sizes, windows, durations)
    common : mapping of str to mapping of int to int
        Of MPI-IO and of POSIX: sizes (B) that are common among the accesses of a file, and how many have them.
    places : Places
        A sample of the requests of DXT.
    partial : DXT ran out of memory, or it or HEATMAP is damaged.
    damaged : modules of which bytes are cut off or damaged, or gone: all numbers are lower bounds then.
    full : Darshan ran out of memory for records of files, or their version is not known.
    ledger : the time of ranks in calls, by the log's counters and DXT; None if it cannot be read.
    """

    source: str
    processes: int
    run_time: float
    rows: dict[tuple[int, bool], Row] = dataclasses.field(default_factory=dict)
    calls: dict[int, Calls] = dataclasses.field(default_factory=dict)
    owners: dict[int, int] = dataclasses.field(default_factory=dict)
    wall: dict[bool, float] = dataclasses.field(default_factory=dict)
    busy: tuple[Numbers, Numbers] = dataclasses.field(default_factory=lambda: (np.zeros(0), np.zeros(0)))
    resolution: float = 0.0
    line: Line = dataclasses.field(default_factory=lambda: np.zeros((3, 1, BINS)))
    moved: Line = dataclasses.field(default_factory=lambda: np.zeros((2, 1, BINS)))
    bands: int = 1
    heat: dict[bool, Numbers] = dataclasses.field(default_factory=dict)
    in_turn: dict[bool, tuple[float, int]] = dataclasses.field(default_factory=dict)
    most_bins: dict[bool, int] = dataclasses.field(default_factory=dict)
    durations: dict[bool, Whole] = dataclasses.field(default_factory=dict)
    common: dict[str, dict[int, int]] = dataclasses.field(default_factory=dict)
    places: Places = dataclasses.field(default_factory=lambda: Places())
    partial: bool = False
    damaged: set[str] = dataclasses.field(default_factory=set)
    full: bool = False
    ledger: Ledger | None = None

    def calls_of(self, file: int) -> Calls:
        """Return the counters of a file, to be filled."""
        return self.calls.setdefault(int(file), Calls())

    @property
    def lost(self) -> bool:
        """Return whether calls may have been made that the log does not have."""
        return self.full or bool(self.damaged)

    def time_up_to(self, size: float, write: bool) -> tuple[float, float]:
        """Return the time (s) of all ranks in requests of DXT of at most that size (B), and in all; else zeros."""
        if (counts := self.durations.get(write)) is None:
            return 0.0, 0.0
        spent = (counts.sum(axis=1) * 2.0 ** (np.arange(counts.shape[2]) / 2 - 24)).sum(axis=1)
        return float(spent[2.0 ** (np.arange(len(spent)) / 4) <= size].sum()), float(spent.sum())

    def traced(self) -> dict[tuple[int, str], Traced]:
        """Return the seconds of ranks in requests and in MPI-IO calls on files, as DXT has them, by file and layer."""
        found: dict[tuple[int, str], Traced] = {}
        for file in {file for file, _ in self.rows}:
            for layer in ("POSIX", "MPI-IO"):
                seconds: dict[int, Numbers] = {}
                for way in (False, True):
                    if (row := self.rows.get((file, way))) is not None and len(row.calls):
                        times = row.busy if layer == "POSIX" else row.calls
                        for rank, time in zip(row.ranks.tolist(), times.tolist(), strict=True):
                            seconds.setdefault(rank, np.zeros(len(KINDS)))[int(way)] = time
                if seconds:
                    found[file, layer] = Traced(np.array(list(seconds), np.int64), np.array(list(seconds.values())))
        return found

    def renamed(self, numbers: Mapping[int, int]) -> Activity:
        """Return the same with other numbers of files."""
        rows = {(numbers.get(file, file), write): row for (file, write), row in self.rows.items()}
        calls = {numbers.get(file, file): one for file, one in self.calls.items()}
        owners = {numbers.get(file, file): rank for file, rank in self.owners.items()}
        ledger = None if self.ledger is None else self.ledger.renamed(numbers)
        return dataclasses.replace(
            self, rows=rows, calls=calls, owners=owners, places=self.places.renamed(numbers), ledger=ledger
        )
