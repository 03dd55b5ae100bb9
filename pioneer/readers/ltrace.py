"""ltrace and LANL-Trace: library calls (MPI-IO) and the system calls inside of them, one file a rank.

Problem.    A call with calls inside is cut into <unfinished ...> and <... resumed>, and so is any call that another
            thread interrupts. Times have no date. Each host has its own clock.
Algorithm.  Lines by the parser in C (csrc/tools/pioneer/mpiox_rawtrace_text.h): a stack for each thread gives
            ``depth``.
            LANL-Trace's timing file has lines "7: host (PID) Entered barrier at SECONDS", which give rank and host. The
            times at which a rank leaves (else enters) barriers give offset and drift of its clock against that of rank
            0 (`mpiio_ext.pioneer.clocks`); times are corrected by them. Open MPI's handles of predefined objects are
            addresses. The symbols of the program, `nm PROGRAM` in a file beside the traces, show which they are, and so
            the sizes of datatypes.
Ranks.      By the timing file: the number of the process, in the lines or in the name of the file. Else by the number
            in the names of the files that goes from 0 to n - 1. Else by the order of the names.
Guarantee.  Every line is a row, part of one, a signal or exit, or is counted in Loss.
Missing.    Arguments of functions whose prototype ltrace does not know: it prints the first four or five words. File
            names are addresses then, which the sanitization resolves where it can; ``prototypes`` writes them
            (docs/reference/trace-formats.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from mpiio_ext.pioneer.clocks import corrected, fit
from mpiio_ext.pioneer.readers._files import begin_of, chunks_of, content_of, files_of, ranks_by_name, samples
from mpiio_ext.pioneer.readers._functions import DATATYPES
from mpiio_ext.pioneer.readers._processes import Family, Threads
from mpiio_ext.pioneer.readers._rawtrace import RawTrace, text_of
from mpiio_ext.pioneer.readers.strace import clock_of
from mpiio_ext.pioneer.table import SCHEMA, Clock, Source, TraceInfo

NAME = "ltrace"
_DAY_NS = 86400 * 10**9
LACKS = ["arguments of functions whose prototype ltrace does not know", "dates"]
_LINE = re.compile(
    rb"^(?:\[pid\s+\d+\] |\d+ +)?(?:\d{9,}(?:\.\d+)?|\d\d:\d\d:\d\d(?:\.\d+)?|\d+\.\d+) "
    rb"(?:SYS_\w+\(|[^ \n(]*->\w+\(|\w+@SYS\(|P?MPI_\w+\()",
    re.MULTILINE,
)
_SYMBOL = re.compile(rb"^([0-9a-f]{8,16}) [A-Za-z] (ompi_mpi_\w+)\r?$", re.MULTILINE)
_COMMUNICATORS = {"comm_world": "MPI_COMM_WORLD", "comm_self": "MPI_COMM_SELF"}
#: Names of Open MPI's objects that differ from those of the datatypes.
_OBJECTS = {
    "unsigned": "MPI_UNSIGNED",
    "long_long_int": "MPI_LONG_LONG_INT",
    "dblprec": "MPI_DOUBLE_PRECISION",
    "cplex": "MPI_COMPLEX",
    "dblcplex": "MPI_DOUBLE_COMPLEX",
}
_BARRIER = re.compile(
    rb"^\s*(\d{1,9}):\s+(\S{1,255})\s+\((\d{1,9})\)\s+(Entered|Exited|Left)\s+barrier\s+at\s+(\d{1,12}(?:\.\d+)?)",
    re.MULTILINE,
)


def recognizes(path: Path) -> bool:
    """Return whether a file, or any of the first files of a folder, has lines of ltrace with times."""
    if path.is_dir():
        return any(recognizes(item) for item in samples(files_of([path]), 8))
    begin = begin_of(path)
    return b"\0" not in begin and _LINE.search(begin) is not None


@dataclass
class Timing:
    """What the barrier lines of LANL-Trace show about the ranks.

    Attributes
    ----------
    ranks : process -> rank.
    hosts : rank -> host.
    entered, left : rank -> times of its barriers, ns since 1970.
    """

    ranks: dict[int, int] = field(default_factory=dict)
    hosts: dict[int, str] = field(default_factory=dict)
    entered: dict[int, list[int]] = field(default_factory=dict)
    left: dict[int, list[int]] = field(default_factory=dict)

    def add(self, text: bytes) -> None:
        """Take in the barrier lines of a text."""
        for rank_text, host, process, what, seconds in _BARRIER.findall(text):
            rank = int(rank_text)
            self.ranks[int(process)] = rank
            self.hosts[rank] = text_of(host)
            whole, _, fraction = seconds.partition(b".")
            times = self.entered if what == b"Entered" else self.left
            times.setdefault(rank, []).append(int(whole) * 10**9 + int(fraction.ljust(9, b"0")[:9] or b"0"))

    def clock(self, rank: int) -> Clock:
        """Return the relation of a rank's clock to the clock of rank 0; without points if unknown."""
        for times in (self.left, self.entered):
            own, first = times.get(rank, []), times.get(0, [])
            if own and len(own) == len(first):
                return fit(own, first, rank=rank, host=self.hosts.get(rank, ""))
        return Clock(rank=rank, host=self.hosts.get(rank, ""))


def _is_timing(path: Path) -> bool:
    return _BARRIER.search(begin_of(path)) is not None


def _is_symbols(path: Path) -> bool:
    """Return whether a file begins as the output of `nm`."""
    return re.match(rb"(?:[0-9a-f]{8,16}| {8,16}) [A-Za-z] \S", begin_of(path, 256)) is not None


def _name_objects(trace: RawTrace, symbols: bytes) -> None:
    """Give a parser the communicators and datatypes of Open MPI by their addresses."""
    for address, symbol in _SYMBOL.findall(symbols):
        name = symbol.decode().removeprefix("ompi_mpi_")
        value = int(address, 16)
        if name in _COMMUNICATORS:
            trace.name_constant("comm", value, _COMMUNICATORS[name])
        else:
            datatype = _OBJECTS.get(name, f"MPI_{name.upper()}")
            if datatype in DATATYPES:
                trace.name_datatype(value, datatype, DATATYPES[datatype])


def _pid_of(path: Path, ranks: dict[int, int]) -> int | None:
    """Return the process of a raw trace that the timing file knows."""
    line = re.match(rb"(?:\[pid\s+)?(\d+)[ \]]", begin_of(path, 256))
    found = [int(line[1])] if line else []
    found += [int(number) for number in re.findall(r"\d+", path.name) if len(number) < 10]
    return next((number for number in found if number in ranks), None)


def _ranks_of(files: Sequence[Path], timing: Timing) -> list[int]:
    processes = [_pid_of(path, timing.ranks) for path in files]
    known = [timing.ranks[process] for process in processes if process is not None]
    if len(known) == len(files) and len(set(known)) == len(known):
        return known
    by_name = ranks_by_name([path.name for path in files])
    return by_name if by_name is not None else list(range(len(files)))


def _day_ns(batch: pa.RecordBatch, clock: Clock) -> int:
    """Return the midnight in UTC, ns since 1970, that times of day count from if they are of the barriers' day."""
    return clock.origin_ns // _DAY_NS * _DAY_NS if len(batch) and batch["timestamp"][0].as_py() < _DAY_NS else 0


def _moved(batch: pa.RecordBatch, clock: Clock) -> pa.RecordBatch:
    if clock.points == 0 or (clock.offset_ns == 0 and clock.drift == 0):
        return batch
    day = _day_ns(batch, clock)
    times = corrected(batch["timestamp"].to_numpy(zero_copy_only=False) + day, clock) - day
    return pa.record_batch([pa.array(times), *batch.columns[1:]], schema=SCHEMA)


def read(paths: Sequence[Path]) -> tuple[TraceInfo, Iterator[pa.RecordBatch]]:
    """Return the facts of a trace, and its rows; see `Reader.read`. One rank follows the other."""
    every = files_of(paths)
    timing, files = Timing(), []
    barriers = [path for path in every if _is_timing(path)]
    for path in barriers:
        timing.add(content_of(path))
    symbols = [path for path in every if path not in barriers and _is_symbols(path)]
    objects = b"\n".join(content_of(path) for path in symbols)
    others = {*barriers, *symbols}
    # Of a folder: LANL-Trace's summary of calls is no raw trace.
    files = [path for path in every if path not in others and (path in paths or recognizes(path))]
    pairs = sorted(zip(_ranks_of(files, timing), files, strict=True))
    info = TraceInfo(format=NAME, lacks=list(LACKS), clock=clock_of([path for _, path in pairs]))
    info.ranks = max(len(pairs), len(timing.hosts))
    info.clocks = [timing.clock(rank) for rank, _ in pairs] if barriers else []
    info.sources = [Source(path=str(path), rank=rank, host=timing.hosts.get(rank, "")) for rank, path in pairs]
    for path in every:
        if path not in others and path not in files:
            info.sources.append(Source(path=str(path)))
            info.sources[-1].loss.add(0, "not read: no lines of ltrace with times", count=0)

    def rows() -> Iterator[pa.RecordBatch]:
        for (rank, path), source in zip(pairs, info.sources, strict=False):
            threads = Threads(Family(), None, rank)
            trace = RawTrace(nested=True)
            _name_objects(trace, objects)
            for batch in trace.batches("text", chunks_of(path, source), source, threads):
                yield _moved(batch, timing.clock(rank))
            if source.lines == 0:
                source.loss.truncated = True
                source.loss.add(0, "empty file", count=0)

    return info, rows()
