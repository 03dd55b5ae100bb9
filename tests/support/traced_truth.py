"""Calls of a program with rank, layer, file, start and end: how long a rank is in calls, and Darshan's records.

Problem. A log has sums, a bound of a rank's time is derived from them, and only the calls themselves show whether the
bound is right. Algorithm. Calls are rows of one array. The time of a rank in chosen calls is the length of the union of
their intervals. The records are made by the rules of Darshan's runtime (darshan-posix.c, -mpiio.c, -stdio.c of 3.4 and
3.5): a timer of each record and kind of time, which adds a call behind the last one's end in the order of the ends; if
every rank has a record of a file, one shared record with sums, edges, slowest and fastest rank.
Guarantees. Times are whole nanoseconds, as far as a log's numbers can express them.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from mpiio_ext.analytics.ledger import Ledger, records
from mpiio_ext.common.darshanfile import COUNTERS, DarshanFile
from mpiio_ext.pioneer.darshan.meanings import Kind
from mpiio_ext.pioneer.darshan.names import record_id
from mpiio_ext.pioneer.darshan.records import Calls
from mpiio_ext.pioneer.darshan.timeline import Heat, Segments
from support.darshan_logs import Job, make_log

Whole: TypeAlias = npt.NDArray[np.int64]

LAYERS = ("POSIX", "STDIO", "MPI-IO")
POSIX, STDIO, MPIIO = range(3)
KINDS = ("read", "write", "meta")
OPERATIONS = ("open", "close", "stat", "seek", "read", "write", "sync")
OPEN, CLOSE, STAT, SEEK, READ, WRITE, SYNC = range(7)
#: Kind of each operation: its timer.
KIND_OF = np.array([2, 2, 2, 2, 0, 1, 1])
#: Counter of each operation, by layer: of calls that a rank makes alone, and of those that ranks make together.
_COUNTED = {
    "POSIX": (("OPENS", "", "STATS", "SEEKS", "READS", "WRITES", "FSYNCS"),),
    "STDIO": (("OPENS", "", "", "SEEKS", "READS", "WRITES", "FLUSHES"),),
    "MPI-IO": (
        ("INDEP_OPENS", "", "", "", "INDEP_READS", "INDEP_WRITES", "SYNCS"),
        ("COLL_OPENS", "", "", "", "COLL_READS", "COLL_WRITES", "SYNCS"),
    ),
}
_VERSIONS = {"POSIX": 4, "STDIO": 2, "MPI-IO": 3}
_EDGES = np.array([101, 1025, 10241, 102401, 1048577, 4194305, 10485761, 104857601, 1073741825])
BEGIN_S = 1_700_000_000

identity = functools.cache(record_id)

FIELDS = ("rank", "layer", "op", "file", "start", "end", "bytes", "together")
CALL = np.dtype([(name, "i8") for name in FIELDS])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Traced:
    """A program that has run; times in ns since its start.

    Attributes
    ----------
    processes : ranks.
    run_ns : the whole run.
    names : of files, by number.
    calls : rows of `CALL`.
    threads : whether calls of one rank and one layer overlap.
    """

    processes: int
    run_ns: int
    names: tuple[str, ...]
    calls: npt.NDArray[np.void]
    threads: bool = False

    @functools.cached_property
    def inside(self) -> npt.NDArray[np.bool_]:
        """Return of each call whether it is a POSIX call inside of an MPI-IO call of its rank, on any file."""
        calls, base = self.calls, self.calls["rank"] * (2 * self.run_ns + 2)
        upper = np.flatnonzero(calls["layer"] == MPIIO)
        upper = upper[np.argsort((base + calls["start"])[upper], kind="stable")]
        if len(upper) == 0:
            return np.zeros(len(calls), bool)
        at = np.searchsorted((base + calls["start"])[upper], base + calls["start"], side="right") - 1
        around = upper[np.maximum(at, 0)]
        within = (base[around] == base) & (calls["start"] >= calls["start"][around])
        return (calls["layer"] == POSIX) & within & (calls["end"] <= calls["end"][around])

    def chosen(self, kind: str | None = None, file: int | None = None, layer: str | None = None) -> Any:
        """Return the calls of a kind, a file and a layer; None: of all, but a call inside of another has no kind."""
        calls = self.calls
        found = np.ones(len(calls), bool)
        if kind is not None and layer is None:
            found &= ~self.inside
        if kind is not None:
            found &= KIND_OF[calls["op"]] == KINDS.index(kind)
        if file is not None:
            found &= calls["file"] == file
        if layer is not None:
            found &= calls["layer"] == LAYERS.index(layer)
        return calls[found]

    def seconds(self, kind: str | None = None, file: int | None = None, layer: str | None = None) -> Any:
        """Return of each rank the seconds in which it is in any of the calls."""
        calls = self.chosen(kind, file, layer)
        spent = _alone(calls["rank"], calls["start"], calls["end"], self.run_ns)
        return np.bincount(calls["rank"], spent, self.processes) / 1e9

    def clock(self, kind: str | None = None, file: int | None = None, layer: str | None = None) -> float:
        """Return the seconds in which any rank is in any of the calls."""
        calls = self.chosen(kind, file, layer)
        return float(_alone(np.zeros(len(calls), np.int64), calls["start"], calls["end"], self.run_ns).sum()) / 1e9

    def number(self, file: int) -> int:
        """Return the number of a file in a ledger, which has a sign."""
        found = identity(self.names[file])
        return found - (1 << 64) if found >> 63 else found

    def log(self, *, reduced: bool = True, heat: bool = False, dxt: bool = False) -> bytes:
        """Return the log of the run; `reduced`: with shared records, `heat`, `dxt`: with these modules."""
        end = BEGIN_S * 10**9 + self.run_ns
        job = Job(start=BEGIN_S, end=end // 10**9, end_ns=end % 10**9, processes=self.processes, mounts=[("ext4", "/")])
        names = {identity(name): name for name in self.names}
        modules: dict[str | int, tuple[int, bytes]] = {}
        for number, module in enumerate(LAYERS):
            rows = self._records(number, reduced)
            if len(rows):
                modules[module] = (_VERSIONS[module], rows.tobytes())
        heats, segments = b"", {POSIX: b"", MPIIO: b""}
        for number, rank in itertools.product(range(len(LAYERS)), range(self.processes if heat or dxt else 0)):
            some = self._accesses(number, rank)
            if heat:
                module = LAYERS[number].replace("-", "")
                names[identity(f"heatmap:{module}")] = f"heatmap:{module}"
                map_of = Heat()
                map_of.add(some)
                heats += map_of.packed(module, rank, self.run_ns / 1e9)
            if dxt and number in segments:
                kept = Segments()
                kept.add(some)
                segments[number] += kept.packed({name: at for at, name in enumerate(self.names)}, rank, "node")
        modules |= {"HEATMAP": (1, heats)} if heats else {}
        for number, version, data in ((10, 1, segments[POSIX]), (11, 2, segments[MPIIO])):
            modules |= {number: (version, data)} if data else {}
        return make_log(job, names, modules)

    def ledger(self, *, reduced: bool = True) -> Ledger:
        """Return the ledger of the log's records, which no file has."""
        modules = {layer: self._records(number, reduced) for number, layer in enumerate(LAYERS)}
        found, partial = records.of_log(cast("DarshanFile", _InMemory(modules, self.names)), self.processes)
        return Ledger(found, self.processes, self.run_ns / 1e9, partial=partial)

    def _accesses(self, layer: int, rank: int) -> Calls:
        """Return the reads and writes of a rank by a layer."""
        calls = self.calls
        mine = (calls["layer"] == layer) & (calls["rank"] == rank) & np.isin(calls["op"], (READ, WRITE))
        calls = calls[mine][np.argsort(calls[mine]["start"], kind="stable")]
        kind = np.where(calls["op"] == READ, int(Kind.READ), int(Kind.WRITE))
        unknown = np.full(len(calls), -1)
        return Calls(calls["file"], kind, unknown, unknown, calls["bytes"], calls["start"], calls["end"])

    def _records(self, layer: int, reduced: bool) -> npt.NDArray[np.void]:
        """Return the records of a module."""
        calls = self.calls[self.calls["layer"] == layer]
        keys, which = np.unique(calls["file"] * self.processes + calls["rank"], return_inverse=True)
        rows = _Rows(LAYERS[layer], len(keys))
        identities = np.array([identity(name) for name in self.names], np.uint64)
        rows.table["file"], rows.table["rank"] = identities[keys // self.processes], keys % self.processes
        rows.count(calls, which, _COUNTED[LAYERS[layer]])
        files, ranks = np.unique(rows.table["file"], return_counts=True)
        shared = np.isin(rows.table["file"], files[ranks == self.processes]) & reduced
        if not shared.any():
            return rows.table
        return np.concatenate([rows.table[~shared], rows.reduced(shared, self.processes)])


@dataclasses.dataclass(frozen=True)
class _InMemory:
    """Records of modules and names of files, as a log returns them."""

    modules: Mapping[str, npt.NDArray[np.void]]
    files: Sequence[str]

    def names(self) -> Iterator[tuple[int, str]]:
        return ((identity(name), name) for name in self.files)

    def partial(self, module: str) -> bool:
        return False

    def counters(self, module: str) -> Iterator[npt.NDArray[np.void]]:
        yield self.modules[module]


def _alone(group: Whole, start: Whole, end: Whole, run_ns: int) -> Whole:
    """Return of each call the time that no earlier call of its group covers, in the calls' order."""
    if len(group) == 0:
        return np.zeros(0, np.int64)
    base = group * (2 * run_ns + 2)
    order = np.argsort(base + start, kind="stable")
    began, ended = (base + start)[order], (base + end)[order]
    until = np.maximum.accumulate(ended)
    free = np.concatenate([began[:1], until[:-1]])
    found = np.zeros(len(group), np.int64)
    found[order] = np.maximum(ended - np.maximum(began, free), 0)
    return found


def _layout(module: str) -> np.dtype[np.void]:
    counters, times = COUNTERS[module]
    numbers = ("counters", "i8", (len(counters),)), ("times", "f8", (len(times),))
    return np.dtype([("file", "u8"), ("rank", "i8"), *numbers])


class _Rows:
    """Records of one module, one of each file and rank; times in ns."""

    def __init__(self, module: str, count: int) -> None:
        self.counters, self.times = ([str(name) for name in names] for names in COUNTERS[module])
        self.table = np.zeros(count, _layout(module))

    def _column(self, name: str, table: npt.NDArray[np.void] | None = None) -> Any:
        table = self.table if table is None else table
        if name in self.times:
            return table["times"][:, self.times.index(name)]
        return table["counters"][:, self.counters.index(name)]

    def count(self, calls: npt.NDArray[np.void], which: Whole, counted: Sequence[Sequence[str]]) -> None:
        """Count calls; `which`: row of each, `counted`: as in `_COUNTED`."""
        op, size, took = calls["op"], calls["bytes"], calls["end"] - calls["start"]
        for way, names in enumerate(counted):
            for number, name in enumerate(names):
                mine = (op == number) & ((calls["together"] == way) | (len(counted) == 1))
                if name:
                    self._column(name)[:] += np.bincount(which[mine], minlength=len(self.table))
        for number, name in ((OPEN, "OPEN"), (CLOSE, "CLOSE"), (READ, "READ"), (WRITE, "WRITE")):
            mine = op == number
            first = np.full(len(self.table), np.iinfo(np.int64).max)
            np.minimum.at(first, which[mine], calls["start"][mine])
            self._column(f"{name}_START_TIMESTAMP")[:] = np.where(first == np.iinfo(np.int64).max, 0, first) / 1e9
            last = self._column(f"{name}_END_TIMESTAMP")
            np.maximum.at(last, which[mine], calls["end"][mine] / 1e9)
        for number, verb, done in ((READ, "READ", "BYTES_READ"), (WRITE, "WRITE", "BYTES_WRITTEN")):
            mine = op == number
            np.add.at(self._column(done), which[mine], size[mine])
            if f"MAX_{verb}_TIME" in self.times:
                np.maximum.at(self._column(f"MAX_{verb}_TIME"), which[mine], took[mine] / 1e9)
                agg = "AGG_" if f"SIZE_{verb}_AGG_0_100" in self.counters else ""
                bucket = self.counters.index(f"SIZE_{verb}_{agg}0_100") + np.searchsorted(_EDGES, size[mine], "right")
                np.add.at(self.table["counters"], (which[mine], bucket), 1)
        kind = KIND_OF[op]
        timer = which * 3 + kind
        order = np.lexsort((calls["end"], timer))
        sorted_timer, end = timer[order], calls["end"][order]
        before = np.concatenate([[0], end[:-1]])
        before[np.flatnonzero(np.diff(sorted_timer, prepend=-1))] = 0
        spent = end - np.maximum(calls["start"][order], before)
        sums = np.bincount(sorted_timer, spent, 3 * len(self.table)).reshape(-1, 3) / 1e9
        for number, kind_name in enumerate(KINDS):
            self._column(f"{kind_name.upper()}_TIME")[:] = sums[:, number]

    def reduced(self, shared: npt.NDArray[np.bool_], processes: int) -> npt.NDArray[np.void]:
        """Return one record of each file whose rows are `shared`, one of each rank."""
        table = self.table[shared]
        some = table[np.lexsort((table["rank"], table["file"]))].reshape(-1, processes)
        found = np.zeros(len(some), self.table.dtype)
        found["file"], found["rank"] = some["file"][:, 0], -1
        found["counters"], found["times"] = some["counters"].sum(axis=1), some["times"].sum(axis=1)
        times = some["times"]
        for number, name in enumerate(self.times):
            if "_START_" in name:
                least = np.where(times[..., number] > 0, times[..., number], np.inf).min(axis=1)
                found["times"][:, number] = np.where(np.isinf(least), 0.0, least)
            elif "_END_" in name or name.startswith("MAX_"):
                found["times"][:, number] = times[..., number].max(axis=1)
        took = sum(times[..., self.times.index(f"{kind.upper()}_TIME")] for kind in KINDS)
        moved = sum(some["counters"][..., self.counters.index(name)] for name in ("BYTES_READ", "BYTES_WRITTEN"))
        row = np.arange(len(some))
        for name, at in (("FASTEST", took.argmin(axis=1)), ("SLOWEST", took.argmax(axis=1))):
            self._column(f"{name}_RANK", found)[:] = at
            self._column(f"{name}_RANK_BYTES", found)[:] = moved[row, at]
            self._column(f"{name}_RANK_TIME", found)[:] = took[row, at]
        self._column("VARIANCE_RANK_TIME", found)[:] = took.var(axis=1)
        self._column("VARIANCE_RANK_BYTES", found)[:] = moved.var(axis=1)
        return found
