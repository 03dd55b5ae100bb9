"""A first pass over a trace: facts that the sanitization needs before its first row.

Problem.   How far the clocks of the ranks are apart, and which longer name a cut one stands for, is known at the end.
Algorithm. Moments that all ranks have in common are the ends of barriers on all processes; where there are fewer than
           two, those of MPI_File_open on all processes. The k-th of a rank belongs to the k-th of every other, if all
           have equally many. Ranks of one host have one clock. A name that was cut stands for the longer name of the
           same rank that begins with it, if there is one only: another rank's private file does not count.
Guarantee. Memory grows with the number of names and of ranks: of the moments of a rank at most `MOST_POINTS` are kept,
           every one, every second, every fourth... of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from statistics import median_low

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mpiio_ext.pioneer.clocks import LEAST, corrected, fit
from mpiio_ext.pioneer.table import SCHEMA, Clock, TraceInfo

MOST_POINTS = 4096
#: Lengths at which tracers cut texts by default.
SUSPECT_BYTES = 32
#: From fewer than `LEAST` moments a clock is corrected only if it is farther off than ranks leave a barrier late.
_UNSURE_NS = 10_000_000
_COMMON = ("MPI_Barrier", "MPI_File_open")
_ALL = r'"comm":\s*"(?:MPI_COMM_WORLD|world)"'
_SELF = '"comm":'
_OF_COMMON = ("operation", "rank", "timestamp", "duration", "depth", "extra")
_CUT_KEY = b'"cut"'
#: Ranks that lie so close together are numbered by a table.
_MOST_RANKS = 1 << 20


@dataclass(slots=True)
class _Moments:
    """Ends of the collective calls of a rank, thinned out in the same way on every rank."""

    count: int = 0
    step: int = 1
    times: list[int] = field(default_factory=list)

    def add(self, times: NDArray[np.int64]) -> None:
        """Take so many more, in their order."""
        while times.size:
            taken = np.arange(-self.count % self.step, times.size, self.step)
            full = MOST_POINTS + 1 - len(self.times)  # after this many more, every second one is left out
            used = times.size if taken.size < full else int(taken[full - 1]) + 1
            self.times += times[taken[:full]].tolist()
            self.count += used
            if len(self.times) > MOST_POINTS:
                self.times = self.times[::2]
                self.step *= 2
            times = times[used:]


@dataclass(slots=True)
class Survey:
    """The findings of the survey.

    Attributes
    ----------
    clocks : rank -> its clock, of the ranks of which something is known.
    whole : (rank, cut name) -> the name that it stands for.
    cut : (rank, name) of cut names that stand for none or for several.
    suspects : names that may be cut without a mark: the longest ones, of exactly `SUSPECT_BYTES` bytes.
    """

    clocks: dict[int, Clock] = field(default_factory=dict)
    whole: dict[tuple[int, str], str] = field(default_factory=dict)
    cut: list[tuple[int, str]] = field(default_factory=list)
    suspects: list[str] = field(default_factory=list)

    def report(self) -> Iterator[str]:
        """Yield notes for people, a line each."""
        for rank, clock in sorted(self.clocks.items()):
            if clock.offset_ns or clock.drift:
                yield (
                    f"rank {rank}: its clock is {clock.offset_ns / 1e6:.3f} ms ahead and gains "
                    f"{clock.drift * 1e6:.2f} us a second, from {clock.points} moments, "
                    f"give or take {clock.spread_ns / 1e3:.1f} us: "
                    "times are corrected"
                )
        if self.whole:
            yield f"{len(self.whole)} names that the tracer had cut were found whole"
        if self.cut:
            rank, name = self.cut[0]
            yield (
                f"{len(self.cut)} names are cut, and the rest is unknown: files that begin alike are one, "
                f"as {name!r} of rank {rank}; trace again with longer texts (-s 4096)"
            )
        if self.suspects:
            yield (
                f"{len(self.suspects)} names have exactly {SUSPECT_BYTES} bytes, none is longer: the tracer may "
                f"have cut them, as {self.suspects[0]!r}; private files then look shared"
            )

    @property
    def corrects(self) -> bool:
        """Whether `apply` changes anything."""
        return bool(self.whole) or any(clock.offset_ns or clock.drift for clock in self.clocks.values())

    def apply(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows with corrected times and whole names."""
        for batch in batches:
            ranks = batch["rank"].to_numpy(zero_copy_only=False)
            yield self._named(self._timed(batch, ranks), ranks)

    def _timed(self, batch: pa.RecordBatch, ranks: np.ndarray) -> pa.RecordBatch:
        wrong = {rank: clock for rank, clock in self.clocks.items() if clock.offset_ns or clock.drift}
        present = [rank for rank in wrong if (ranks == rank).any()]
        if not present:
            return batch
        times = batch["timestamp"].to_numpy(zero_copy_only=False).copy()
        spans = batch["duration"].fill_null(0).to_numpy(zero_copy_only=False).copy()
        for rank in present:
            mine = ranks == rank
            times[mine] = corrected(times[mine], wrong[rank])
            spans[mine] -= np.rint(wrong[rank].drift * spans[mine]).astype(np.int64)
        unknown = batch["duration"].is_null().to_numpy(zero_copy_only=False)
        columns = {"timestamp": pa.array(times), "duration": pa.array(spans, mask=unknown)}
        return pa.record_batch([columns.get(name, batch[name]) for name in SCHEMA.names], schema=SCHEMA)

    def _named(self, batch: pa.RecordBatch, ranks: np.ndarray) -> pa.RecordBatch:
        if not self.whole:
            return batch
        rows = np.flatnonzero(_is_cut(batch))
        if not rows.size:
            return batch
        files = batch["file"].cast(pa.string()).to_pylist()
        for row in rows:
            files[row] = self.whole.get((int(ranks[row]), files[row]), files[row])
        column = pa.array(files, pa.string()).cast(SCHEMA.field("file").type)
        return pa.record_batch([column if name == "file" else batch[name] for name in SCHEMA.names], schema=SCHEMA)


def _may_be_cut(texts: pa.Array) -> bool:
    """Return whether any of the texts has the mark of a cut name, by one search of the bytes of all."""
    if texts.type != pa.string():
        return True
    _, places, data = texts.buffers()
    if data is None or not len(texts):
        return False
    begin, end = np.frombuffer(places, np.int32)[[texts.offset, texts.offset + len(texts)]].tolist()
    return _CUT_KEY in data.slice(begin, end - begin).to_pybytes()


def _is_cut(batch: pa.RecordBatch) -> NDArray[np.bool_]:
    """Return which rows have a name that the tracer has cut."""
    if not _may_be_cut(batch["extra"]):
        return np.zeros(batch.num_rows, np.bool_)
    found = pc.match_substring_regex(batch["extra"], r'"cut":\s*true')
    return np.asarray(pc.and_(found.fill_null(False), batch["file"].is_valid()).to_numpy(zero_copy_only=False))


def _numbered(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct values, ascending, and the place of each value among them. Does not sort if there are few."""
    lowest, width = int(values.min()), int(values.max()) - int(values.min()) + 1
    if width > _MOST_RANKS:
        found, places = np.unique(values, return_inverse=True)
        return found, places.reshape(-1)
    there = np.zeros(width, np.bool_)
    there[values - lowest] = True
    return np.flatnonzero(there) + lowest, (np.cumsum(there) - 1)[values - lowest]


def _common_calls(batch: pa.RecordBatch) -> Iterator[tuple[str, int, NDArray[np.int64]]]:
    """Yield (function, rank, times of their ends) of the calls that all processes make together."""
    column = batch["operation"]
    wanted = pc.is_in(column.dictionary, pa.array(_COMMON)).to_numpy(zero_copy_only=False)
    if not wanted.any():
        return
    rows = np.flatnonzero(np.append(wanted, False)[column.indices.fill_null(-1).to_numpy(zero_copy_only=False)])
    chosen = pa.RecordBatch.from_arrays(
        [batch[name].take(pa.array(rows)) for name in _OF_COMMON], names=list(_OF_COMMON)
    )
    everyone = pc.match_substring_regex(chosen["extra"], _ALL).fill_null(False).to_numpy(zero_copy_only=False)
    alone = pc.match_substring(chosen["extra"], _SELF).fill_null(False).to_numpy(zero_copy_only=False)
    outside = pc.equal(chosen["depth"].fill_null(0), 0).to_numpy(zero_copy_only=False)
    known = chosen["duration"].is_valid().to_numpy(zero_copy_only=False)
    ends = chosen["timestamp"].to_numpy() + chosen["duration"].fill_null(0).to_numpy()
    ranks = chosen["rank"].to_numpy(zero_copy_only=False)
    for name in _COMMON:
        named = pc.equal(chosen["operation"].cast(pa.string()), name).to_numpy(zero_copy_only=False)
        counts = everyone | ~alone if name == "MPI_Barrier" else everyone
        mine = np.flatnonzero(named & counts & outside & known)
        if mine.size:
            every, of = _numbered(ranks[mine].astype(np.int64))
            for place, rank in enumerate(every.tolist()):
                yield name, rank, ends[mine[of == place]]


@dataclass(slots=True)
class _Names:
    """Names of a rank, with marks of those that are cut."""

    all: set[str] = field(default_factory=set)
    cut: set[str] = field(default_factory=set)


def _add_names(names: dict[int, _Names], batch: pa.RecordBatch) -> None:
    """Add the names of a batch, of all of its ranks in one pass."""
    if not batch.num_rows:
        return
    ranks, of = _numbered(batch["rank"].to_numpy(zero_copy_only=False).astype(np.int64))
    of_rank = [names[rank] for rank in ranks.tolist()]
    words = len(batch["file"].dictionary)
    files = batch["file"].indices.fill_null(words).to_numpy(zero_copy_only=False)
    keys = of * (words + 1) + files
    cut = _is_cut(batch)
    cut_keys = np.zeros(0, np.int64)
    for rows, is_cut in ((cut, True), (~cut, False)):
        used = np.unique(pc.unique(pa.array(keys[rows])).to_numpy(zero_copy_only=False))
        used = np.setdiff1d(used[used % (words + 1) < words], cut_keys, assume_unique=True)
        texts = batch["file"].dictionary.take(pa.array(used % (words + 1))).to_pylist()
        for place, text in zip((used // (words + 1)).tolist(), texts, strict=True):
            (of_rank[place].cut if is_cut else of_rank[place].all).add(text)
        cut_keys = used


def _resolve(survey: Survey, names: Mapping[int, _Names]) -> None:
    longest = 0
    for rank, mine in sorted(names.items()):
        whole = sorted(mine.all - mine.cut)
        longest = max(longest, *(len(name.encode()) for name in whole), 0) if whole else longest
        for name in sorted(mine.cut):
            longer = [each for each in whole if each.startswith(name) and len(each) > len(name)]
            if len(longer) == 1:
                survey.whole[rank, name] = longer[0]
            else:
                survey.cut.append((rank, name))
    if longest == SUSPECT_BYTES:
        every = {name for mine in names.values() for name in mine.all}
        survey.suspects = sorted(name for name in every if len(name.encode()) == SUSPECT_BYTES)


def _clocks(moments: Mapping[tuple[str, int], _Moments], ranks: Iterable[int], hosts: Mapping[int, str]) -> list[Clock]:
    """Return the clock of every rank; without points if the trace has none."""
    every = sorted(ranks)
    for name, least in ((_COMMON[0], 2), (_COMMON[1], 1), (_COMMON[0], 1)):
        own = {rank: moments.get((name, rank), _Moments()) for rank in every}
        if len({each.count for each in own.values()}) == 1 and own[every[0]].count >= least:
            break
    else:
        return []
    of_host: dict[str, list[int]] = defaultdict(list)
    for rank in every:
        of_host[hosts.get(rank) or f"rank {rank}"].append(rank)
    times = {
        host: [median_low(column) for column in zip(*(own[rank].times for rank in members), strict=True)]
        for host, members in of_host.items()
    }
    first = times[next(iter(of_host))]
    found = []
    for host, members in of_host.items():
        clock = fit(times[host], first, rank=members[0], host=hosts.get(members[0], ""))
        if clock.points < LEAST and abs(clock.offset_ns) < _UNSURE_NS:
            clock.offset_ns = 0
        found += [replace(clock, rank=rank) for rank in members]
    return sorted(found, key=lambda clock: clock.rank)


class Surveyor:
    """Takes a survey along the way, of batches that are gone through for another reason."""

    def __init__(self) -> None:
        self._moments: dict[tuple[str, int], _Moments] = defaultdict(_Moments)
        self._names: dict[int, _Names] = defaultdict(_Names)

    def add(self, batch: pa.RecordBatch) -> None:
        """Take the next rows, of `table.SCHEMA`."""
        for name, rank, ends in _common_calls(batch):
            self._moments[name, rank].add(ends)
        _add_names(self._names, batch)

    @property
    def has_cut(self) -> bool:
        """Whether a name was cut so far: most likely the rows have to be gone through again."""
        return any(mine.cut for mine in self._names.values())

    def survey(self, info: TraceInfo) -> Survey:
        """Return the findings, and put the estimates of the clocks into the reader's `info`."""
        survey = Survey()
        hosts = {source.rank: source.host for source in info.sources if source.rank >= 0 and source.host}
        clocks = _clocks(self._moments, self._names, hosts) if len(self._names) > 1 else []
        survey.clocks = {clock.rank: clock for clock in clocks if clock.points}
        if clocks:
            info.clocks = clocks
        _resolve(survey, self._names)
        return survey


def take_survey(info: TraceInfo, batches: Iterable[pa.RecordBatch]) -> Survey:
    """Return what a trace shows about its clocks and names; all of its batches are taken.

    Parameters
    ----------
    info : of the reader; gets the estimates of the clocks.
    batches : of `table.SCHEMA`.
    """
    surveyor = Surveyor()
    for batch in batches:
        surveyor.add(batch)
    return surveyor.survey(info)
