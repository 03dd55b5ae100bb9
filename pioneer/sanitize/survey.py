"""A first pass over a trace: what the sanitization has to know before its first row.

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
from dataclasses import dataclass, field
from statistics import median_low

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext.pioneer.clocks import LEAST, corrected, fit
from mpiio_ext.pioneer.table import SCHEMA, Clock, TraceInfo

__all__ = ["MOST_POINTS", "Survey", "take_survey"]

MOST_POINTS = 4096
#: Lengths at which tracers cut texts unless they are told otherwise.
SUSPECT_BYTES = 32
#: From fewer than `LEAST` moments a clock is corrected only if it is farther off than ranks leave a barrier late.
_UNSURE_NS = 10_000_000
_COMMON = ("MPI_Barrier", "MPI_File_open")
_ALL = r'"comm":\s*"(?:MPI_COMM_WORLD|world)"'
_SELF = r'"comm":'


@dataclass(slots=True)
class _Moments:
    """Ends of the collective calls of a rank, thinned out in the same way on every rank."""

    count: int = 0
    step: int = 1
    times: list[int] = field(default_factory=list)

    def add(self, when: int) -> None:
        if self.count % self.step == 0:
            self.times.append(when)
        self.count += 1
        if len(self.times) > MOST_POINTS:
            self.times = self.times[::2]
            self.step *= 2


@dataclass(slots=True)
class Survey:
    """What was found.

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
        """Yield what people have to know, a line each."""
        for rank, clock in sorted(self.clocks.items()):
            if clock.offset_ns or clock.drift:
                yield (f"rank {rank}: its clock is {clock.offset_ns / 1e6:.3f} ms ahead and gains "
                       f"{clock.drift * 1e6:.2f} us a second, from {clock.points} moments, "
                       f"give or take {clock.spread_ns / 1e3:.1f} us: "
                       "times are corrected")  # fmt: skip
        if self.whole:
            yield f"{len(self.whole)} names that the tracer had cut were found whole"
        if self.cut:
            rank, name = self.cut[0]
            yield (f"{len(self.cut)} names are cut, and nothing tells how they go on: files that begin alike are one, "
                   f"as {name!r} of rank {rank}; trace again with longer texts (-s 4096)")  # fmt: skip
        if self.suspects:
            yield (f"{len(self.suspects)} names have exactly {SUSPECT_BYTES} bytes, none is longer: the tracer may "
                   f"have cut them, as {self.suspects[0]!r}; private files then look shared")  # fmt: skip

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


def _is_cut(batch: pa.RecordBatch) -> np.ndarray:
    found = pc.match_substring_regex(batch["extra"], r'"cut":\s*true')
    return np.asarray(pc.and_(found.fill_null(False), batch["file"].is_valid()).to_numpy(zero_copy_only=False))


def _common_calls(batch: pa.RecordBatch) -> Iterator[tuple[str, int, int]]:
    """Yield (function, rank, time of its end) of the calls that all processes make together."""
    words = batch["operation"].dictionary.to_pylist()
    wanted = [place for place, word in enumerate(words) if word in _COMMON]
    if not wanted:
        return
    chosen = batch.filter(pc.and_(pc.is_in(batch["operation"].indices, pa.array(wanted, pa.int32())),
                                  batch["duration"].is_valid()))  # fmt: skip
    if not chosen.num_rows:
        return
    everyone = pc.match_substring_regex(chosen["extra"], _ALL).fill_null(False).to_pylist()
    some = pc.match_substring_regex(chosen["extra"], _SELF).fill_null(False).to_pylist()
    columns = [chosen[name].to_pylist() for name in ("operation", "rank", "timestamp", "duration", "depth")]
    for all_of_them, told, name, rank, begin, duration, depth in zip(everyone, some, *columns, strict=True):
        if (all_of_them or (not told and name == "MPI_Barrier")) and not depth:
            yield name, rank, begin + duration


@dataclass(slots=True)
class _Names:
    """Names of a rank, and which of them are cut."""

    all: set[str] = field(default_factory=set)
    cut: set[str] = field(default_factory=set)

    def add(self, batch: pa.RecordBatch) -> None:
        used = pc.unique(batch["file"].drop_null()).cast(pa.string()).to_pylist()
        rows = np.flatnonzero(_is_cut(batch))
        cut = set(batch["file"].take(pa.array(rows)).to_pylist()) if rows.size else set()
        self.cut |= cut
        self.all |= set(used) - cut


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
    """Return the clock of every rank; without points where the trace does not tell."""
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
    times = {host: [median_low(column) for column in zip(*(own[rank].times for rank in members), strict=True)]
             for host, members in of_host.items()}  # fmt: skip
    first = times[next(iter(of_host))]
    found = []
    for host, members in of_host.items():
        clock = fit(times[host], first, rank=members[0], host=hosts.get(members[0], ""))
        if clock.points < LEAST and abs(clock.offset_ns) < _UNSURE_NS:
            clock.offset_ns = 0
        found += [Clock(rank=rank, host=clock.host, points=clock.points, origin_ns=clock.origin_ns,
                        offset_ns=clock.offset_ns, drift=clock.drift, spread_ns=clock.spread_ns)
                  for rank in members]  # fmt: skip
    return sorted(found, key=lambda clock: clock.rank)


def take_survey(info: TraceInfo, batches: Iterable[pa.RecordBatch]) -> Survey:
    """Return what a trace tells of its clocks and names; all of its batches are taken.

    Parameters
    ----------
    info : of the reader; gets the estimates of the clocks.
    batches : of `table.SCHEMA`.
    """
    survey = Survey()
    moments: dict[tuple[str, int], _Moments] = defaultdict(_Moments)
    names: dict[int, _Names] = defaultdict(_Names)
    for batch in batches:
        for name, rank, when in _common_calls(batch):
            moments[name, rank].add(when)
        for rank in pc.unique(batch["rank"]).to_pylist():
            alone = batch if batch.num_rows and pc.all(pc.equal(batch["rank"], rank)).as_py() else batch.filter(
                pc.equal(batch["rank"], rank))  # fmt: skip
            names[rank].add(alone)
    hosts = {source.rank: source.host for source in info.sources if source.rank >= 0 and source.host}
    clocks = _clocks(moments, names, hosts) if len(names) > 1 else []
    survey.clocks = {clock.rank: clock for clock in clocks if clock.points}
    if clocks:
        info.clocks = clocks
    _resolve(survey, names)
    return survey
