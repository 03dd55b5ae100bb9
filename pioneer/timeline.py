"""A trace as a time line for Perfetto and Chrome's tracing: JSON of the Trace Event Format.

Problem. A trace has millions of calls of many ranks. A drawing to scale shows for each rank the ranks that it waited
for, and for each call its requests. Viewers for such drawings exist, and open this format.

Algorithm. Two passes over the rows, batch by batch. The first one finds the begin of the run, the files and the clocks
(`sanitize.survey`). The second one writes each call as a slice. Calls of a thread nest, as their times do; one that
overlaps others without being inside of one, as of two threads that the trace takes for one, gets a further track. The
slices are on the tracks of their ranks. Those below are there a second time, to be seen side by side:

  files        requests to the operating system, by file and rank; of files to or from which bytes were moved, but
               those that the MPI library keeps for itself
  aggregators  of each rank that makes requests for others: the rounds of two-phase, and the requests in them
  delegates    what the library does for them in a rank; and once, not twice, threads of ranks that are delegates

An arrow leads from an MPI-IO call to each of its requests on these tracks.

Guarantees. Each row is one slice of a rank's or delegate's track, with the row's begin and duration, to the ns. One
that its process did not finish has no end. Memory does not depend on the number of rows, but on that of files, ranks
and threads.
"""

from __future__ import annotations

import contextlib
import gzip
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TextIO

import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext.common.files import replacing
from mpiio_ext.pioneer.readers import own
from mpiio_ext.pioneer.sanitize.survey import Survey, Surveyor
from mpiio_ext.pioneer.sanitize.system_files import OF_MPI, matcher
from mpiio_ext.pioneer.traces import open_trace

if TYPE_CHECKING:
    from mpiio_ext.pioneer.table import TraceInfo

_REQUESTS = frozenset({"posix", "stdio"})
_TRANSFERS = "read|write|put|gets|printf|sendfile|copy_file"
_ROUNDS = frozenset({"write_round", "read_round"})
_OF_DELEGATES = frozenset({"flush_barrier", "remap", "direct_write", "direct_read"})
_ENDLESS = 1 << 62
#: Groups behind those of the ranks, in this order.
_AGGREGATORS, _DELEGATES, _FILES = 1 << 24, (1 << 24) + 1, (1 << 24) + 2
_GZIP_LEVEL = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The counts of the written time line.

    Attributes
    ----------
    events : rows of the trace, each a slice of its rank.
    ranks, files : of which there are tracks.
    info : of the trace, with what could not be read.
    notes : what people have to know of clocks and names, a line each.
    """

    events: int
    ranks: int
    files: int
    info: TraceInfo
    notes: tuple[str, ...]

    def lacks(self) -> list[str]:
        """Return what could not be read, a line for all ranks with the same problem."""
        ranks = defaultdict[str, list[int]](list)
        for source in self.info.sources:
            for problem in source.loss.problems:
                ranks[problem.why].append(source.rank)
        others = {why: f" and {len(found) - 1:,} others" if len(found) > 1 else "" for why, found in ranks.items()}
        return [f"rank {found[0]}{others[why]}: {why}" if found[0] >= 0 else why for why, found in ranks.items()]

    def text(self) -> str:
        """Return the counts as a sentence."""
        return (
            f"{self.events:,} calls of {self.ranks:,} rank{'' if self.ranks == 1 else 's'}, requests to "
            f"{self.files:,} file{'' if self.files == 1 else 's'}; https://ui.perfetto.dev opens it"
        )


class _Row(NamedTuple):
    """A row of a trace: the columns that a time line has."""

    timestamp: int
    duration: int | None
    rank: int
    thread: int | None
    depth: int | None
    layer: str
    operation: str
    file: str | None
    offset: int | None
    size: int | None
    result: int | None
    extra: str | None


@dataclass(slots=True)
class _Call:
    """A call that is going on; `text`: of a part of two-phase, for the track of an aggregator that may not have it."""

    start: int
    end: int
    layer: str = ""
    flow: str = ""
    text: str = ""
    copied: bool = False


@dataclass(slots=True)
class _Lane:
    """A track, and the calls that are going on at it, each inside of the one before."""

    place: str
    calls: list[_Call] = field(default_factory=list)


@dataclass(slots=True)
class _Lanes:
    """Tracks of one title; as many as there are calls that overlap."""

    group: int
    title: str
    order: int
    lanes: list[_Lane] = field(default_factory=list)


class _Writer:
    """Writes events; makes groups and tracks as they come up."""

    def __init__(self, stream: TextIO, begin: int, moved: Collection[str]) -> None:
        self._stream, self._begin, self._between = stream, begin, ""
        self.files = {name: number for number, name in enumerate(sorted(moved))}
        self._groups, self._tracks, self._flows = set[int](), 0, 0
        self._threads = dict[tuple[int, int], _Lanes]()
        self._copies = dict[tuple[int, int], _Lanes]()
        self._names = dict[str | None, str]()
        self.ranks, self.events = set[int](), 0

    # ---- groups and tracks

    def _meta(self, kind: str, group: int, track: int, **values: object) -> None:
        self._event(f'"ph":"M","name":"{kind}","pid":{group},"tid":{track},"args":{json.dumps(values)}')

    def _event(self, text: str) -> None:
        self._stream.write(f"{self._between}{{{text}}}")
        self._between = ",\n"

    def _group(self, group: int, title: str) -> None:
        if group not in self._groups:
            self._groups.add(group)
            self._meta("process_name", group, group, name=title)
            self._meta("process_sort_index", group, group, sort_index=group)

    def _lane(self, lanes: _Lanes, start: int, end: int) -> _Lane:
        """Return the track on which this call nests, and only there; remove calls that have ended from it."""
        for lane in lanes.lanes:
            calls = lane.calls
            while calls and calls[-1].end <= start:
                calls.pop()
            if not calls or calls[-1].end >= end:
                return lane
        self._tracks += 1
        title = lanes.title if not lanes.lanes else f"{lanes.title}, at the same time ({len(lanes.lanes) + 1})"
        track = _FILES * 2 + self._tracks  # no number of a group
        self._meta("thread_name", lanes.group, track, name=title)
        self._meta("thread_sort_index", lanes.group, track, sort_index=lanes.order)
        lanes.lanes.append(_Lane(f'"pid":{lanes.group},"tid":{track}'))
        return lanes.lanes[-1]

    def _thread_of(self, rank: int, thread: int, operation: str, depth: int) -> _Lanes:
        """Return the tracks of a thread; one of the library's own that opens files is a delegate."""
        found = self._threads.get((rank, thread))
        if found is None:
            self._group(rank + 1, f"rank {rank}")
            group, title = rank + 1, "calls" if thread == 0 else f"thread {thread}"
            if depth > 0 and thread > 0:
                title = f"thread {thread} of the library"
                if operation.startswith("open"):
                    self._group(_DELEGATES, "delegates")
                    group, title = _DELEGATES, f"delegate: thread {thread} of rank {rank}"
            found = self._threads[rank, thread] = _Lanes(group, title, (rank << 16) + thread)
        return found

    def _beside(self, group: int, name: str, rank: int, title: str) -> _Lanes:
        found = self._copies.get((group, rank))
        if found is None:
            self._group(group, name)
            found = self._copies[group, rank] = _Lanes(group, title, rank)
        return found

    # ---- slices

    def _text(self, name: str | None) -> str:
        if name not in self._names:
            self._names[name] = json.dumps(name)
        return self._names[name]

    def row(self, row: _Row) -> None:
        """Write one row of a trace."""
        start, layer, extra = row.timestamp, row.layer, row.extra
        unfinished = row.duration is None and extra is not None and '"unfinished"' in extra
        end = _ENDLESS if unfinished else start + (row.duration or 0)
        text = self._slice(row, unfinished)
        self.events += 1
        self.ranks.add(row.rank)
        lane = self._lane(self._thread_of(row.rank, row.thread or 0, row.operation, row.depth or 0), start, end)
        call, flow = _Call(start, end, layer), ""
        if layer == "mpiio":
            self._flows += 1
            call.flow = f',"bind_id":"0x{self._flows:x}","flow_in":true'
            flow = f',"bind_id":"0x{self._flows:x}","flow_out":true'
        elif layer == "extension" and (row.operation in _ROUNDS or (extra is not None and '"two_phase"' in extra)):
            call.text = text
        self._event(f"{lane.place}{flow},{text}")
        if layer in _REQUESTS and row.file in self.files:
            self._request(start, end, row.rank, row.file, text, lane.calls)
        elif row.operation in _OF_DELEGATES:
            beside = self._beside(_DELEGATES, "delegates", row.rank, f"rank {row.rank}, for its delegates")
            self._copy(beside, start, end, text, _flow(lane.calls))
        lane.calls.append(call)

    def _slice(self, row: _Row, unfinished: bool) -> str:
        values = (
            ("file", row.file and self._text(row.file)),
            ("offset", row.offset),
            ("size", row.size),
            ("result", row.result),
            ("details", row.extra),
        )
        arguments = ",".join(f'"{name}":{value}' for name, value in values if value is not None)
        span = '"ph":"B"' if unfinished else f'"ph":"X","dur":{_us(row.duration or 0)}'
        return (
            f'{span},"ts":{_us(row.timestamp - self._begin)},"cat":"{row.layer}","name":{self._text(row.operation)},'
            f'"args":{{{arguments}}}'
        )

    def _copy(self, lanes: _Lanes, start: int, end: int, text: str, flow: str) -> None:
        lane = self._lane(lanes, start, end)
        lane.calls.append(_Call(start, end))
        self._event(f"{lane.place}{flow},{text}")

    def _request(self, start: int, end: int, rank: int, file: str, text: str, around: Sequence[_Call]) -> None:
        """Write a request once more: to its file, and to the rank that makes it in an exchange."""
        flow = _flow(around)
        group = _FILES + self.files[file]
        of_file = self._copies.get((group, rank))  # most requests, and so without the texts
        if of_file is None:
            of_file = self._beside(group, f"file {Path(file).name} ({file})", rank, f"rank {rank}")
        self._copy(of_file, start, end, text, flow)
        exchange = [call for call in around if call.text]
        if exchange:
            beside = self._beside(_AGGREGATORS, "aggregators", rank, f"rank {rank}")
            for call in exchange:
                if not call.copied:
                    self._copy(beside, call.start, call.end, call.text, "")
                call.copied = True
            self._copy(beside, start, end, text, flow)


def _flow(around: Sequence[_Call]) -> str:
    """Return the arrow that comes from the innermost MPI-IO call."""
    return next((call.flow for call in reversed(around) if call.layer == "mpiio"), "")


def _us(ns: int) -> str:
    """Return microseconds. Readers multiply them by 1000 and cut off: without the fifth of a ns some would lose one."""
    return f"{ns // 1000}.{ns % 1000:03d}2"


# ---- the whole -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _First:
    """The results of the first pass."""

    info: TraceInfo
    survey: Survey
    rows: int
    begin: int
    moved: frozenset[str]  # files to or from which bytes went


def _first(sources: Sequence[Path], name: str | None) -> _First:
    info, batches = open_trace(sources, name)
    surveyor, begins, moved, rows = Surveyor(), list[int](), set[str](), 0
    others = matcher(() if info.format == own.NAME else OF_MPI)  # the tracer has left them out
    for batch in batches:
        if "mask" not in batch.schema.names:
            surveyor.add(batch)
        rows += batch.num_rows
        if batch.num_rows:
            begins.append(pc.min(batch["timestamp"]).as_py())
            begins[:] = [min(begins)]
            moved.update(name for name in _moved(batch) if not others.match(name))
    survey = surveyor.survey(info)
    ahead = max((abs(clock.offset_ns) for clock in survey.clocks.values()), default=0)
    begin = min(begins, default=0) - ahead  # corrected times do not lie before it
    return _First(info, survey, rows, begin, frozenset(moved))


def _moved(batch: pa.RecordBatch) -> Iterator[str]:
    requests = pc.is_in(batch["layer"].cast(pa.string()), pa.array(sorted(_REQUESTS)))
    transfers = pc.match_substring_regex(batch["operation"].cast(pa.string()), _TRANSFERS)
    moves = pc.and_kleene(pc.and_(requests, transfers), pc.greater(batch["size"], 0))
    names = pc.unique(batch["file"].filter(pc.fill_null(moves, False)))
    return (name for name in names.to_pylist() if name is not None)


def _rows(batch: pa.RecordBatch) -> Iterator[_Row]:
    return map(_Row._make, zip(*(batch[name].to_pylist() for name in _Row._fields), strict=True))


@contextlib.contextmanager
def _stream(path: Path, *, packed: bool) -> Iterator[TextIO]:
    with contextlib.ExitStack() as stack:
        if packed:
            yield stack.enter_context(gzip.open(path, "wt", compresslevel=_GZIP_LEVEL, encoding="utf-8"))
        else:
            yield stack.enter_context(path.open("w", encoding="utf-8", buffering=1 << 20))


def write_timeline(
    sources: Sequence[Path],
    target: Path,
    name: str | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Written:
    """Write the time line of a trace; see the head of this module.

    Parameters
    ----------
    sources : files or folders of one run, or one table in Parquet.
    target : what is written; packed by gzip where the name ends with ``.gz``.
    name : format of the trace; None: it is found out.
    progress : receives how many rows have been written, of how many.

    Raises
    ------
    OSError, ValueError
        The trace cannot be read, or the file not be written.
    """
    first = _first(sources, name)
    info, batches = open_trace(sources, name)
    if first.survey.corrects:
        batches = first.survey.apply(batches)
    with replacing(target) as part, _stream(part, packed=target.suffix == ".gz") as stream:
        about = {"producer": "mpiio_ext", "format": info.format, "begin_ns": first.begin, "clock": info.clock}
        stream.write(f'{{"displayTimeUnit":"ns","otherData":{json.dumps(about)},"traceEvents":[\n')
        writer = _Writer(stream, first.begin, first.moved)
        for batch in batches:
            for row in _rows(batch):
                writer.row(row)
            if progress is not None:
                progress(writer.events, first.rows)
        stream.write("]}\n")
    return Written(
        events=writer.events,
        ranks=len(writer.ranks),
        files=len(writer.files),
        info=info,
        notes=tuple(first.survey.report()),
    )
