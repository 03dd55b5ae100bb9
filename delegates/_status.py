"""Status of the I/O delegates of running programs, read from the memory that they share with the ranks of their node.

No delegate is queried, and nothing is written. A delegate's memory is a file without a name, which its process has
open. The reader finds the file among the descriptors in ``/proc``, maps it for reading and reads it
(``csrc/entry/api``). That needs no more rights than being the same user, costs the job nothing, and works while the job
is stuck.
"""

from __future__ import annotations

import functools
import json
import math
import os
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpiio_ext._binding import ffi, lib
from mpiio_ext.common.segments import PROC, held

#: The result of readlink() for a segment: a memfd, or the file that takes its place where there is none.
_MEMFD = "/memfd:mpiox"
_FILE = "/mpiox."
_MB = 1e6
#: A delegate raises its beat every 0.1 s; one that has not done so for this time does not run.
SILENT_S = 1.0
#: Time for which the last state of an ended delegate is remembered.
REMEMBERED_S = 5.0
#: Fields of a status that JSON lacks; it has the time of the reading once.
_NOT_SHOWN = ("beat", "flush_size_log2", "sampled_s", "sampled_unix_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """Name, unit and meaning of one number that a delegate counts."""

    name: str
    unit: str
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegateFile:
    """A file that is open at a delegate.

    Attributes
    ----------
    path : absolute name.
    openers : openings that use it.
    readable, writable : how it was opened.
    replica : the delegate holds copies of another delegate's pages of it.
    hidden : its path is the name that it has until all of it is written.
    draining : it has been closed, and is still being written.
    drain_errno : why that does not go on; 0: it does.
    end_bytes : one past the last byte that was deposited; 0: none.
    dirty_bytes : bytes that are not in the file yet.
    errors : file-system errors not yet reported.
    collectives : accesses of ranks of this host in collectives, which did not use the delegates.
    """

    path: str
    openers: int
    readable: bool
    writable: bool
    replica: bool
    hidden: bool
    draining: bool
    drain_errno: int
    end_bytes: int
    dirty_bytes: int
    errors: int
    collectives: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegateWaiter:
    """A process that has waited for a delegate for more than a second.

    Attributes
    ----------
    rank : of the program; -1: not known (a rank of another node, for which the delegate itself waits).
    pid : its process.
    request : what it has asked for.
    path, page : the file, "" if it is none in particular, and the page, -1: none.
    since_unix_s : since when; seconds of the Unix epoch.
    """

    rank: int
    pid: int
    request: str
    path: str
    page: int
    since_unix_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegateStatus:
    """The status of one delegate at one moment.

    Attributes
    ----------
    group : name of the service, which is the job's delegates; "" when it has none.
    delegate, delegates : its index in the service, and how many there are.
    mode : "spawn", "split", "process" or "thread"; "" when it is not known.
    kept : the file that holds its cache, where that has a name; else "".
    host, pid : where it runs. In thread mode the process is a rank of the program.
    state : "starting", "serving", "ended", "dead", "rescued".
    started_unix_s, sampled_unix_s : when it was started, and when this was read; seconds of the Unix epoch.
    sampled_s : as `sampled_unix_s`, of the monotonic clock.
    beat : raised ten times a second while it runs.
    threads, clients, queued : its threads; the processes that use it; requests of processes of its node that it has not
        answered yet.
    page_bytes, cap_bytes : of its cache; the cap is the whole of its shared memory.
    pages, pages_used, pages_dirty, pages_prefetched : of the cache: room for, in use, with bytes that are not in the
        file yet, read ahead and not used yet.
    dirty_bytes : bytes that are not in the file yet.
    counters : totals since its start by name; `counters` of this module gives their meanings.
    flush_size_log2 : element k counts the file-system write requests of 2^k to 2^(k+1)-1 bytes; 48 elements.
    files : the open ones.
    waiting : processes that have waited for it for more than a second.
    """

    group: str
    delegate: int
    delegates: int
    mode: str
    host: str
    kept: str
    pid: int
    state: str
    started_unix_s: float
    sampled_unix_s: float
    sampled_s: float
    beat: int
    threads: int
    clients: int
    queued: int
    page_bytes: int
    cap_bytes: int
    pages: int
    pages_used: int
    pages_dirty: int
    pages_prefetched: int
    dirty_bytes: int
    counters: Mapping[str, int]
    flush_size_log2: tuple[int, ...]
    files: tuple[DelegateFile, ...]
    waiting: tuple[DelegateWaiter, ...] = ()

    @property
    def uptime_s(self) -> float:
        """Seconds since it was started."""
        return max(0.0, self.sampled_unix_s - self.started_unix_s)

    @property
    def pages_free(self) -> int:
        """Pages of the cache that are not in use."""
        return self.pages - self.pages_used

    @property
    def hit_fraction(self) -> float | None:
        """Part of the page accesses so far that found the page in the cache; None without accesses."""
        hits = max(0, self.counters["hits"])  # an access that has just missed is not counted as an access yet
        return _fraction(hits, hits + self.counters["misses"])

    @property
    def prefetch_used_fraction(self) -> float | None:
        """Share of used pages among the pages read ahead whose use is known; None without such pages."""
        used = self.counters["prefetch_used"]
        return _fraction(used, used + self.counters["prefetch_wasted"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """How fast the counters of a delegate move.

    Attributes
    ----------
    interval_s : seconds over which they were taken.
    requests_per_s : requests that it answered, those over the network included.
    accesses_per_s : accesses of its pages, by it or by clients in its memory.
    written_mb_per_s, read_mb_per_s : data bytes that accesses put in and took out; 1 MB is 1,000,000 bytes.
    flushed_mb_per_s, filled_mb_per_s : bytes written to and read from files.
    fills_per_s, prefetches_per_s, waits_per_s : pages read on demand and ahead; requests that waited for room.
    """

    interval_s: float
    requests_per_s: float
    accesses_per_s: float
    written_mb_per_s: float
    read_mb_per_s: float
    flushed_mb_per_s: float
    filled_mb_per_s: float
    fills_per_s: float
    prefetches_per_s: float
    waits_per_s: float


def _fraction(part: int, whole: int) -> float | None:
    return part / whole if whole > 0 else None


@functools.cache
def counters() -> tuple[Counter, ...]:
    """Return name, unit and meaning of everything that a delegate counts, in the library's order."""

    def text(pointer: object) -> str:
        return str(ffi.string(pointer).decode())

    return tuple(
        Counter(
            name=text(lib.mpiio_ext_delegates_counter_name(index)),
            unit=text(lib.mpiio_ext_delegates_counter_unit(index)),
            meaning=text(lib.mpiio_ext_delegates_counter_meaning(index)),
        )
        for index in range(lib.mpiio_ext_delegates_counter_count())
    )


# ---- finding the segments --------------------------------------------------------------------------------------------


def _may_be_ours(target: str) -> bool:
    return target.startswith(_MEMFD) or _FILE in target


def _segments(proc: Path = PROC) -> dict[tuple[int, int], Path]:
    """Return {(device, inode): path} of shared memory that this library may have made, one path each."""
    return {identity: paths[0] for identity, paths in held(_may_be_ours, proc).items()}


class _Segment:
    """The mapped memory of one delegate."""

    def __init__(self, handle: object) -> None:
        self._handle = ffi.gc(handle, lib.mpiio_ext_delegates_close)
        self._room = 8192

    @classmethod
    def open(cls, path: Path) -> _Segment | None:
        """Return the segment behind a path; None if it is not the segment of a delegate."""
        handle = ffi.new("mpiio_ext_delegates **")
        if lib.mpiio_ext_delegates_open(os.fsencode(path), handle) != 0:
            return None
        return cls(handle[0])

    def read(self) -> DelegateStatus | None:
        """Return the present status of the delegate, or None if its memory has been replaced."""
        while True:
            text = ffi.new("char[]", self._room)
            now_s, now_unix_s = time.monotonic(), time.time()
            needed = int(lib.mpiio_ext_delegates_snapshot(self._handle, text, self._room))
            if needed < 0:
                return None
            if needed < self._room:
                break
            self._room = 2 * needed
        values = json.loads(ffi.string(text).decode("utf-8"))
        return _status_of(values, sampled_s=now_s, sampled_unix_s=now_unix_s)


def _status_of(values: Mapping[str, Any], *, sampled_s: float, sampled_unix_s: float) -> DelegateStatus:
    fixed = {
        "flush_size_log2": tuple(values["flush_size_log2"]),
        "files": tuple(DelegateFile(**file) for file in values["files"]),
        "waiting": tuple(DelegateWaiter(**waiter) for waiter in values["waiting"]),
    }
    return DelegateStatus(**{**values, **fixed}, sampled_s=sampled_s, sampled_unix_s=sampled_unix_s)


def read_cache(path: Path) -> DelegateStatus | None:
    """Return the status of a delegate from its cache on a disk, which may outlive it; None if the file is no cache."""
    segment = _Segment.open(path)
    return segment.read() if segment is not None else None


# ---- the public interface --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A delegate as it is watched.

    Attributes
    ----------
    status : what it says now.
    rates : since the last look; the first time since its start.
    answers : its beat has moved within `SILENT_S`, or it is seen for the first time.
    """

    status: DelegateStatus
    rates: Rates
    answers: bool

    @property
    def state(self) -> str:
        """The state of the delegate; "silent" if it should serve and does not answer."""
        running = self.status.state in ("starting", "serving")
        return "silent" if running and not self.answers else self.status.state


class Watch:
    """Looks at the delegates of this user on this host again and again.

    Memory stays mapped between two readings, so that the last values of an ended delegate can still be read; it is
    unmapped `REMEMBERED_S` seconds later.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[int, int], tuple[_Segment, float]] = {}
        self._last: dict[tuple[int, int], DelegateStatus] = {}
        self._moved_s: dict[tuple[int, int], float] = {}

    def look(self) -> tuple[Observation, ...]:
        """Return every delegate, by service and index."""
        self._find()
        found = []
        for identity, (segment, _) in list(self._open.items()):
            now = segment.read()
            if now is None:
                self._forget(identity)
                continue
            before = self._last.get(identity)
            if before is None or before.beat != now.beat:
                self._moved_s[identity] = now.sampled_s
            answers = now.sampled_s - self._moved_s[identity] < SILENT_S
            found.append(Observation(status=now, rates=rates(before, now), answers=answers))
            self._last[identity] = now
        return tuple(
            sorted(found, key=lambda item: (item.status.group, item.status.host, item.status.delegate, item.status.pid))
        )

    def _find(self) -> None:
        """Map new memory, and unmap memory that was last there long ago."""
        now_s = time.monotonic()
        for identity, path in _segments().items():
            segment = self._open[identity][0] if identity in self._open else _Segment.open(path)
            if segment is not None:
                self._open[identity] = (segment, now_s)
        for identity, (_, seen_s) in list(self._open.items()):
            if now_s - seen_s > REMEMBERED_S:
                self._forget(identity)

    def _forget(self, identity: tuple[int, int]) -> None:
        self._open.pop(identity, None)
        self._last.pop(identity, None)
        self._moved_s.pop(identity, None)


def rates(before: DelegateStatus | None, now: DelegateStatus) -> Rates:
    """Return the rates of the counters between two readings of one delegate; without the first, since its start."""
    interval_s = now.sampled_s - before.sampled_s if before is not None else now.uptime_s

    def moved(*names: str, unit: float = 1.0) -> float:
        change = sum(now.counters[name] - (before.counters[name] if before else 0) for name in names)
        return max(0, change) / unit / interval_s if interval_s > 0 else 0.0

    return Rates(
        interval_s=interval_s if math.isfinite(interval_s) else 0.0,
        requests_per_s=moved("requests", "messages"),
        accesses_per_s=moved("writes", "reads"),
        written_mb_per_s=moved("bytes_written", unit=_MB),
        read_mb_per_s=moved("bytes_read", unit=_MB),
        flushed_mb_per_s=moved("flush_bytes", unit=_MB),
        filled_mb_per_s=moved("fill_bytes", unit=_MB),
        fills_per_s=moved("fills"),
        prefetches_per_s=moved("prefetched"),
        waits_per_s=moved("waits"),
    )


def own() -> tuple[DelegateStatus, ...]:
    """Return the present status of the delegates of this process's own job on its node, by index.

    For a program that uses mpiio_ext itself; not after MPI_Finalize.
    """
    found = []
    for index in range(lib.mpiio_ext_group_count()):
        handle = ffi.new("mpiio_ext_delegates **")
        if lib.mpiio_ext_delegates_own(index, handle) == 0:
            item = _Segment(handle[0]).read()
            found += [item] if item is not None else []
    return tuple(found)


def status() -> tuple[DelegateStatus, ...]:
    """Return the present status of this user's I/O delegates on this host, by service and index; empty without any.

    Needs neither MPI nor rights over the job beyond those of its user, and does not disturb it.
    """
    return tuple(item.status for item in Watch().look())


def host_name() -> str:
    """Return the name of this host."""
    return socket.gethostname()


def as_json(rows: Sequence[Observation]) -> dict[str, Any]:
    """Return an object for scripts: every name ends with its unit unless it counts things that it names."""
    units = {counter.name: counter.unit for counter in counters()}

    def with_unit(name: str) -> str:
        unit = units[name]
        return name if unit in name.split("_") or name == unit else f"{name}_{unit}"

    delegates = []
    for row in rows:
        item = row.status
        delegates.append(
            {
                **{name: value for name, value in _fields(item).items() if name not in _NOT_SHOWN},
                "answers": row.answers,
                "uptime_s": round(item.uptime_s, 3),
                **{name: round(value, 3) for name, value in _fields(row.rates).items()},
                "pages_free": item.pages_free,
                "hit_fraction": item.hit_fraction,
                "prefetch_used_fraction": item.prefetch_used_fraction,
                "counters": {with_unit(name): value for name, value in item.counters.items()},
                "flush_requests_by_size": [
                    {"from_bytes": 1 << power, "requests": count}
                    for power, count in enumerate(item.flush_size_log2)
                    if count
                ],
                "files": [_fields(file) for file in item.files],
                "waiting": [_fields(waiter) for waiter in item.waiting],
            }
        )
    return {"host": host_name(), "sampled_unix_s": round(time.time(), 3), "delegates": delegates}


def _fields(item: Any) -> dict[str, Any]:
    return {name: getattr(item, name) for name in item.__dataclass_fields__}
