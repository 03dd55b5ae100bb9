"""Recordings of ``mpiio-ext run --report`` and ``--darshan``: counters of each process in a file of bounded size.

Problem. A trace grows with the calls; a recording does not. It is read while its process lives, after that was killed,
and when the file is damaged.
Algorithm. The tracer's library writes it (``csrc/tools/trace/mpiox_recording_format.h``): a header, and items one
behind the other, each with its kind and length. All items are processed at once; records become those of `records`,
with moments since the start of the job.

Guarantees. The reader reads a file whatever its bytes are, or ValueError reports that it is no recording. `problem`
names the parts that could not be read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mpiio_ext.pioneer.readers.own import Head
from mpiio_ext.pioneer.table import LeftOut

SUFFIX = ".mpioxrec"
_ACCOUNT = ".mpioxnode"
#: Modules and classes of time, by number: calls on files; of MPI-IO calls what is left, by who carries them out; and
#: what the library has reported, waits for other ranks and messages between nodes.
MODULES = ("POSIX", "MPI-IO", "STDIO")
CLASSES = ("read", "write", "metadata", "MPI library", "this library", "waiting", "messages")

Structured: TypeAlias = npt.NDArray[np.void]

_MAGIC, _VERSION, _HEADER_BYTES = b"MPIOXREC", 4, 4096
_RUNNING = 0
_FEW, _MORE, BINS = 4, 28, 200
_NAME, _RECORD, _VALUES, _LANE, _SEGMENTS, _STEPS, _NOTHING, _VIEW, _TALLY = range(1, 10)
_THREADS, _LEVELS = 4, 2
_DOING_TYPE = np.dtype(
    [("start", "i8"), ("part_start", "i8"), ("name", "i4"), ("class", "i4"), ("part", "i4"), ("own", "i4")]
)
_HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("version", "u4"),
        ("header_bytes", "u4"),
        ("state", "u4"),
        ("changing", "u4"),
        ("capacity", "u8"),
        ("used", "u8"),
        ("unix_minus_monotonic", "i8"),
        ("started", "i8"),
        ("stopped", "i8"),
        ("last", "i8"),
        ("pid", "i8"),
        ("parent", "i8"),
        ("rank", "i4"),
        ("ranks", "i4"),
        ("others", "u8"),
        ("unkept", "u8"),
        ("bin_ns", "i8"),
        ("step_ns", "i8"),
        ("host", "S256"),
        ("command", "S2048"),
        ("counts", "S256", 3),
        ("exited", "u4"),
        ("exit_status", "i4"),
        ("cpu", "i8", 2),
        ("queued", "i8", 2),
        ("switches", "i8", 2),
        ("left", "i8"),
        ("aborted", "i8"),
        ("abort_code", "i4"),
        ("heard", "u4"),
        ("doing", _DOING_TYPE, (_THREADS, _LEVELS)),
        ("operation", "S32", _THREADS),
        ("opened", "S400"),
        ("left_out", [("calls", "i8"), ("ns", "i8"), ("files", "i4"), ("name", "i4")]),
    ]
)
_ITEM = [("kind", "u4"), ("bytes", "u4")]
_HEAD_OF_ITEM = struct.Struct("=II")
_RECORD_TYPE = np.dtype(
    [
        *_ITEM,
        ("module", "u4"),
        ("name", "u4"),
        ("values", "u4", 2),
        ("more", "u4", 2),
        ("counts", "i8", 16),
        ("mode", "i8"),
        ("renamed_from", "i8"),
        ("done", "i8", 2),
        ("max_byte", "i8", 2),
        ("consecutive", "i8", 2),
        ("sequential", "i8", 2),
        ("switches", "i8"),
        ("buckets", "i8", (2, 10)),
        ("aligned", "i8", 17),
        ("first", "i8", 4),
        ("last", "i8", 4),
        ("busy", "i8", 3),
        ("waited", "i8", 2),
        ("unrecorded", "i8"),
        ("longest", "i8", 2),
        ("longest_size", "i8", 2),
        ("value", "i8", (2, _FEW)),
        ("often", "i8", (2, _FEW)),
        ("last_byte", "i8", 2),
        ("busy_until", "i8", 3),
        ("last_kind", "i8"),
    ]
)
_VALUES_TYPE = np.dtype([*_ITEM, ("value", "i8", _MORE), ("often", "i8", _MORE)])
_LANE_TYPE = np.dtype([*_ITEM, ("lane", "i8"), ("bin", "i8", BINS)])
_SEGMENT_TYPE = np.dtype(
    [
        ("offset", "i8"),
        ("length", "i8"),
        ("start", "i8"),
        ("duration", "i8"),
        ("name", "u4"),
        ("module", "u4"),
        ("writes", "u4"),
        ("reserved", "u4"),
    ]
)
STEP_TYPE = np.dtype(
    [("start", "i8"), ("end", "i8"), ("busy", "i8"), ("bytes", "i8"), ("calls", "i8"), ("name", "u4"), ("class", "u4")]
)
TALLY_TYPE = np.dtype(
    [
        *_ITEM,
        ("name", "u4"),
        ("next", "u4"),
        ("inside", "u4"),
        ("error", "i4"),
        ("calls", "i8"),
        ("ns", "i8"),
        ("operation", "S32"),
        ("class", "S32"),
    ]
)
#: Bytes of an item of each kind, or of its head where it has an array behind that.
_LENGTHS = {
    _NAME: 16,
    _RECORD: _RECORD_TYPE.itemsize,
    _VALUES: _VALUES_TYPE.itemsize,
    _LANE: _LANE_TYPE.itemsize,
    _SEGMENTS: 16,
    _STEPS: 16,
    _NOTHING: 8,
    _VIEW: 16,
    _TALLY: TALLY_TYPE.itemsize,
}
_FIRST_POWER = 9
#: Share of the bytes of the program with the most that is hardly anything.
_HARDLY = 0.01


@dataclass(frozen=True, slots=True)
class Run:
    """The recordings of a run.

    Attributes
    ----------
    folder : where they are.
    origin_ns : when the run began (ns since 1970); None: with its first rank.
    ends : by host and process, when those that were killed had ended (ns since 1970), "" for all others; calls that
        they were in last until then.
    """

    folder: Path
    origin_ns: int | None = None
    ends: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Recording:
    """The recording of one process; moments in ns since 1970, but for those of rows (`since_ns`).

    Attributes
    ----------
    head : of the process; it has ended or not.
    since_ns : what is added to the moments of records, segments and steps for ns since 1970.
    started_ns, stopped_ns, last_ns : since when calls count, since when they do not (MPI_Finalize; None: it was not
        reached), and when the last one ended.
    names : number of a name -> name of a file.
    records : rows of `_RECORD_TYPE`.
    more : place of an item -> further sizes or strides, value -> how often.
    bin_ns, lanes : width of a bin, and lane -> bins: bytes read and written by module, then ns of each of `CLASSES`.
    step_ns, steps : what a step does not separate, and calls of a class that follow each other closely.
    tallies : rows of `TALLY_TYPE`: the calls of a function on a file with an outcome, of MPI-IO and all other calls but
        accesses that `records` counts.
    segments : accesses as they were.
    views : number of a name, and one of the first views of that file: name of the etype, a space, the file type.
    others : files without a record of their own.
    unkept : accesses without a segment.
    doing, operations, opened : calls that threads are in, as the header has them; names of those of MPI; and the name
        of a file that is in none of `names`.
    problem : what could not be read; "" for nothing.
    """

    head: Head
    since_ns: int
    started_ns: int
    stopped_ns: int | None
    last_ns: int
    counts: tuple[tuple[str, ...], ...]
    bin_ns: int
    step_ns: int
    others: int
    unkept: int
    problem: str = ""
    names: dict[int, str] = field(default_factory=dict)
    records: Structured = field(default_factory=lambda: np.zeros(0, _RECORD_TYPE))
    more: dict[int, Structured] = field(default_factory=dict)
    lanes: dict[int, npt.NDArray[np.int64]] = field(default_factory=dict)
    steps: Structured = field(default_factory=lambda: np.zeros(0, STEP_TYPE))
    tallies: Structured = field(default_factory=lambda: np.zeros(0, TALLY_TYPE))
    segments: Structured = field(default_factory=lambda: np.zeros(0, _SEGMENT_TYPE))
    views: list[tuple[int, str]] = field(default_factory=list)
    doing: Structured = field(default_factory=lambda: np.zeros((_THREADS, _LEVELS), _DOING_TYPE))
    operations: Sequence[str] = ("",) * _THREADS
    opened: str = ""

    def values(self, record: Any, which: int) -> dict[int, int]:
        """Return the sizes (0) or strides (1) of a record, with how often each occurs."""
        count = int(record["values"][which])
        found = dict(zip(record["value"][which][:count].tolist(), record["often"][which].tolist(), strict=False))
        further = self.more.get(int(record["more"][which]))
        if further is not None and count > _FEW:
            some = slice(0, min(count - _FEW, _MORE))
            found |= dict(zip(further["value"][some].tolist(), further["often"][some].tolist(), strict=True))
        return found


class WithoutMPI:
    """Processes that have no ranks, as if they had: those that follow each other are one, those side by side several.

    The processes of a script do one thing after the other; their times add up to no more than the run's. Those that a
    launcher has started do the same at the same time. `count`: how many there are.
    """

    def __init__(self) -> None:
        self._until: list[int] = []

    @property
    def count(self) -> int:
        """Return the number of processes so far."""
        return len(self._until)

    def number(self, recording: Recording) -> int:
        """Return the number of the process that a recording is of; the earliest recordings come first."""
        moments = np.concatenate([recording.records[name].ravel() for name in ("first", "last")])
        moments = moments[moments > 0] + recording.since_ns
        first, last = (int(moments.min()), int(moments.max())) if len(moments) else (0, 0)
        found = next((at for at, until in enumerate(self._until) if not first or until <= first), self.count)
        self._until[found : found + 1] = [max([last, *self._until[found : found + 1]])]
        return found


def misaligned(aligned: npt.NDArray[np.int64], block: int) -> int:
    """Return how many accesses did not begin at a multiple of a block, by the powers of two that divide their places.

    Parameters
    ----------
    aligned : of a record.
    block : bytes; below 2, none.
    """
    if block < 2:
        return 0
    power = (block & -block).bit_length() - 1
    return int(aligned[: min(max(power - _FIRST_POWER + 1, 1), len(aligned) - 1)].sum())


def _text(data: bytes) -> str:
    return data.partition(b"\0")[0].decode(errors="replace")


def _header(data: bytes) -> Any:
    if len(data) < _HEADER_BYTES or data[: len(_MAGIC)] != _MAGIC:
        raise ValueError("no recording")
    header = np.frombuffer(data, _HEADER, 1)[0]
    if header["version"] != _VERSION or header["header_bytes"] != _HEADER_BYTES:
        raise ValueError("a recording of another version of mpiio_ext")
    return header


def _head(path: Path, header: Any) -> Head:
    since = int(header["unix_minus_monotonic"])
    return Head(
        path=path,
        rank=max(int(header["rank"]), -1),
        ranks=max(int(header["ranks"]), 0),
        host=_text(bytes(header["host"])),
        pid=int(header["pid"]),
        command=_text(bytes(header["command"])),
        started_ns=_sum(int(header["started"]), since),
        running=bool(header["state"] == _RUNNING),
    )


def _sum(moment: int, since: int) -> int:
    """Return a moment since 1970; damaged ones are brought into the range of 64 bits."""
    return min(max(moment + since, 0), 1 << 62)


def _items(data: bytes, used: int) -> Iterator[tuple[int, int, int]]:
    """Yield kind, place and bytes of each item; the last one's kind is 0 where the rest cannot be read."""
    at = _HEADER_BYTES
    while at + 8 <= used:
        kind, length = _HEAD_OF_ITEM.unpack_from(data, at)
        exact = kind in (_RECORD, _VALUES, _LANE, _TALLY)
        least = _LENGTHS.get(kind, used + 1)
        if length % 8 or length < least or at + length > used or (exact and length != least):
            yield 0, at, 0
            return
        yield kind, at, length
        at += length


def _array(data: bytes, at: int, length: int, kind: np.dtype[np.void]) -> Structured:
    """Return the rows of an item that counts them."""
    room = (length - 16) // kind.itemsize
    count = min(max(int(np.frombuffer(data, "i8", 1, at + 8)[0]), 0), room)
    return np.frombuffer(data, kind, count, at + 16)


def _fill(found: Recording, data: bytes, used: int) -> None:
    records, segments, tallies = list[bytes](), list[bytes](), list[bytes]()
    for kind, at, length in _items(data, used):
        if kind == 0:
            found.problem = found.problem or f"its bytes behind {at:,} are damaged"
        elif kind == _NAME:
            found.names[int(np.frombuffer(data, "i8", 1, at + 8)[0])] = _text(data[at + 16 : at + length])
        elif kind == _VIEW:
            found.views.append((int(np.frombuffer(data, "i8", 1, at + 8)[0]), _text(data[at + 16 : at + length])))
        elif kind == _RECORD:
            records.append(data[at : at + length])
        elif kind == _TALLY:
            tallies.append(data[at : at + length])
        elif kind == _VALUES:
            found.more[at] = np.frombuffer(data, _VALUES_TYPE, 1, at)[0]
        elif kind == _LANE:
            lane = np.frombuffer(data, _LANE_TYPE, 1, at)[0]
            found.lanes[int(lane["lane"])] = lane["bin"]
        elif kind == _SEGMENTS:
            segments.append(_array(data, at, length, _SEGMENT_TYPE).tobytes())
        elif kind == _STEPS:
            steps = _array(data, at, length, STEP_TYPE)
            found.steps = steps[(steps["class"] < len(CLASSES)) & (steps["end"] >= steps["start"])]
    if records:
        found.records = np.frombuffer(b"".join(records), _RECORD_TYPE)  # concatenate() compares the types of each
        there = np.isin(found.records["name"], list(found.names)) & (found.records["module"] < len(MODULES))
        found.records = found.records[there]
    if tallies:
        found.tallies = np.frombuffer(b"".join(tallies), TALLY_TYPE)
    if segments:
        found.segments = np.frombuffer(b"".join(segments), _SEGMENT_TYPE)


def read(path: Path) -> Recording:
    """Read the recording of a process.

    Raises
    ------
    ValueError
        The file is no recording, or a recording of another version.
    OSError
        The file cannot be read.
    """
    data = path.read_bytes()
    header = _header(data)
    since, used, stopped = int(header["unix_minus_monotonic"]), int(header["used"]), int(header["stopped"])
    found = Recording(
        _head(path, header),
        since,
        _sum(int(header["started"]), since),
        _sum(stopped, since) if stopped else None,
        _sum(int(header["last"]), since),
        tuple(tuple(_text(bytes(each)).split()[:16]) for each in header["counts"]),
        max(int(header["bin_ns"]), 1),
        int(header["step_ns"]),
        int(header["others"]),
        int(header["unkept"]),
    )
    if found.head.running:
        found.doing, found.opened = header["doing"], _text(bytes(header["opened"]))
        found.operations = [_text(bytes(each)) for each in header["operation"]]
    if not _HEADER_BYTES <= used <= len(data):
        found.problem = f"it is cut: {len(data):,} of {used:,} bytes are there"
    _fill(found, data, min(max(used, _HEADER_BYTES), len(data)))
    if header["changing"] and not found.problem:
        found.problem = "its process was killed while it changed the resolution of its time line"
    return found


def refused(folder: Path) -> int:
    """Return how many processes have no recording, since those of their node use the whole area."""
    found = 0
    for path in folder.glob(f"*{_ACCOUNT}"):
        with suppress(OSError):
            found += int.from_bytes(path.read_bytes()[8:16], "little")
    return found


def given(folder: Path) -> list[tuple[int, int, int]]:
    """Return of each rank that has begun MPI_Finalize the ns since MPI_Init, those on a CPU, and those without one."""
    found = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        with suppress(ValueError, OSError), path.open("rb") as file:
            header = _header(file.read(_HEADER_BYTES))
            if header["rank"] >= 0 and header["stopped"]:
                cpu, waited = (int(header[name][1] - header[name][0]) for name in ("cpu", "queued"))
                found.append((int(header["stopped"] - header["started"]), max(cpu, 0), max(waited, 0)))
    return found


def left_out(paths: Sequence[Path]) -> LeftOut:
    """Return the calls on files of the system that are in no record, of the process with most time in them."""
    every, headers = heads(paths), []
    for head in every:
        with suppress(ValueError, OSError), head.path.open("rb") as file:
            if head.rank >= 0 or all(each.rank < 0 for each in every):
                headers.append((_header(file.read(_HEADER_BYTES))["left_out"], head.path))
    found, path = max(headers, key=lambda one: int(one[0]["ns"]), default=(None, Path()))
    if found is None or found["calls"] <= 0:
        return LeftOut()
    operations, files, ns = (max(int(found[each]), 0) for each in ("calls", "files", "ns"))
    return LeftOut(operations=operations, files=files, ns=ns, name=read(path).names.get(int(found["name"]), ""))


def moved_beside(paths: Sequence[Path]) -> list[tuple[str, tuple[str, int], tuple[str, int]]]:
    """Return the bytes of programs without MPI beside one that has it, as (command, ("read", B), ("written", B)).

    Programs of the same command line count as one; programs that have moved hardly any bytes compared with the others
    are left out.

    Parameters
    ----------
    paths : files and folders with recordings.
    """
    every = heads(paths)
    found: dict[str, list[int]] = {}
    for head in every if any(head.rank >= 0 for head in every) else ():
        if head.rank >= 0:
            continue
        recording = read(head.path)
        for row in recording.records[recording.records["module"] != MODULES.index("MPI-IO")]:
            name = recording.names[int(row["name"])]
            if name.startswith("/"):
                sums = found.setdefault(head.command, [0, 0])
                sums[:] = [had + int(more) for had, more in zip(sums, row["done"], strict=True)]
    order = sorted(found.items(), key=lambda item: -sum(item[1]))
    return [
        (command, ("read", done[0]), ("written", done[1]))
        for command, done in order
        if sum(done) > _HARDLY * sum(order[0][1])
    ]


def heads(paths: Sequence[Path]) -> list[Head]:
    """Return the heads of the recordings among files and folders, by rank and start.

    What is no recording of this version is left out.
    """
    found: list[Head] = []
    for path in paths:
        for each in sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else [path]:
            with suppress(ValueError, OSError), each.open("rb") as file:
                found.append(_head(each, _header(file.read(_HEADER_BYTES))))
    return sorted(found, key=lambda head: (head.rank, head.started_ns))
