"""The I/O of one rank on each file, as the counters of Darshan's records.

Problem. Darshan's runtime updates a record at every call. A trace of millions of calls has to become the same numbers
in seconds, and in memory that depends on the files alone.

Algorithm. Calls come in batches, in the order of their starts. The calls of a batch are sorted by record. A counter
that needs the call before (its end, or whether it read or wrote) finds it in the neighbouring row, or in the values
stored of the batch before. Sums, extremes and running maxima are then steps over all calls at once.

Guarantees. Counters are those of Darshan's runtime (darshan-posix.c, -mpiio.c, -stdio.c): the same buckets, the same
32 sizes and strides that are followed at most, and the same time for calls that overlap (counted once). Times are
whole nanoseconds until they are written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mpiio_ext.pioneer.darshan.log import counter_names
from mpiio_ext.pioneer.darshan.meanings import Kind

Integers: TypeAlias = npt.NDArray[np.int64]

#: Values that are followed of a record at most, as Darshan's runtime does.
_MOST_VALUES = 32
#: Where buckets of sizes end, in bytes.
_EDGES = np.array([101, 1025, 10241, 102401, 1048577, 4194305, 10485761, 104857601, 1073741825])
#: Columns of the state between batches: ends of the last read and write, kind of the last access, end of the last
#: call of each kind of time.
_READ_BYTE, _WRITTEN_BYTE, _ACCESS, _META_END, _READ_END, _WRITE_END = range(6)


class Layout:
    """Where the counters of a module are.

    Parameters
    ----------
    module : name of the module: POSIX, MPI-IO or STDIO.
    """

    def __init__(self, module: str) -> None:
        self.module = module
        self.counters, self.times = counter_names(module)
        self._prefix = self.counters[0].partition("_")[0]
        self._places = {name: at for names in (self.counters, self.times) for at, name in enumerate(names)}

    def at(self, name: str) -> int:
        """Return the place of a counter among its kind; -1: the module has no counter of this name."""
        return self._places.get(f"{self._prefix}_{name}", -1)


@dataclass(slots=True)
class Calls:
    """Calls of a module, in the order of their starts; arrays of equal length.

    Attributes
    ----------
    record : place of the record.
    kind : of `Kind`.
    counter : what grows by one; -1: nothing.
    offset, size : of accesses, bytes.
    start, end : ns since the job's start.
    """

    record: Integers
    kind: Integers
    counter: Integers
    offset: Integers
    size: Integers
    start: Integers
    end: Integers

    def take(self, chosen: npt.NDArray[Any]) -> Calls:
        """Return some of the calls."""
        return Calls(*(getattr(self, name)[chosen] for name in self.__slots__))


class _Groups:
    """Runs of equal values in a sorted array that is not empty."""

    def __init__(self, records: Integers) -> None:
        first = np.ones(len(records), bool)
        first[1:] = records[1:] != records[:-1]
        self.heads = np.flatnonzero(first)
        self.tails = np.append(self.heads[1:], len(records)) - 1
        self.records = records[self.heads]
        self.number = np.cumsum(first) - 1

    def before(self, values: Integers, kept: Integers) -> Integers:
        """Return the value of the call before each; for the first of a record the value that was `kept`."""
        found = np.empty_like(values)
        found[1:] = values[:-1]
        found[self.heads] = kept[self.records]
        return found

    def running_maximum(self, values: Integers) -> Integers:
        """Return the largest value of its record so far, for each call."""
        order = np.argsort(values, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        base = self.number * len(order)
        found: Integers = values[order][np.maximum.accumulate(base + rank) - base]
        return found


def common(seen: dict[int, int]) -> list[tuple[int, int]]:
    """Return the four most frequent values but 0, with how often; of equals the larger first."""
    found = [(count, value) for value, count in seen.items() if value != 0]
    return [(value, count) for count, value in sorted(found, reverse=True)[:4]]


@dataclass(slots=True)
class Records:
    """The records of one module of one rank.

    Attributes
    ----------
    layout : where the counters are.
    names : name of a file -> place of its record.
    counters, times : rows of records; times in ns, also moments, since the job's start.
    sizes, strides : of each record, value -> how often.
    """

    layout: Layout
    names: dict[str, int] = field(default_factory=dict)
    counters: Integers = field(init=False)
    times: Integers = field(init=False)
    sizes: list[dict[int, int]] = field(default_factory=list)
    strides: list[dict[int, int]] = field(default_factory=list)
    _kept: Integers = field(init=False)

    def __post_init__(self) -> None:
        self.counters = np.zeros((0, len(self.layout.counters)), np.int64)
        self.times = np.zeros((0, len(self.layout.times)), np.int64)
        self._kept = np.zeros((0, 6), np.int64)

    def place(self, name: str) -> int:
        """Return the place of a file's record, which is made when it is not there."""
        found = self.names.setdefault(name, len(self.names))
        if found == len(self.sizes):
            self.sizes.append({})
            self.strides.append({})
            if found == len(self.counters):
                more = max(found, 16)
                for each in ("counters", "times", "_kept"):
                    array = getattr(self, each)
                    setattr(self, each, np.concatenate([array, np.zeros((more, array.shape[1]), np.int64)]))
        return found

    def add(self, calls: Calls) -> None:
        """Count calls."""
        if len(calls.record) == 0:
            return
        calls = calls.take(np.argsort(calls.record, kind="stable"))
        counted = calls.counter >= 0
        np.add.at(self.counters, (calls.record[counted], calls.counter[counted]), 1)
        kind = calls.kind
        for name, kinds in (
            ("OPEN", (Kind.OPEN, Kind.REOPEN)),
            ("READ", (Kind.READ,)),
            ("WRITE", (Kind.WRITE,)),
            ("CLOSE", (Kind.CLOSE,)),
        ):
            self._moments(name, calls.take(np.isin(kind, kinds)))
        self._busy("META_TIME", _META_END, calls.take(np.isin(kind, (Kind.OPEN, Kind.REOPEN, Kind.META, Kind.CLOSE))))
        self._busy("READ_TIME", _READ_END, calls.take(kind == Kind.READ))
        self._busy("WRITE_TIME", _WRITE_END, calls.take((kind == Kind.WRITE) | (kind == Kind.SYNC)))
        access = calls.take((kind == Kind.READ) | (kind == Kind.WRITE))
        if len(access.record) > 0:
            self._accesses(access)
        if self.layout.at("SEQ_READS") >= 0:
            self._places(calls)

    def _moments(self, name: str, calls: Calls) -> None:
        """Note when calls of a kind began first and ended last."""
        first, last = self.layout.at(f"F_{name}_START_TIMESTAMP"), self.layout.at(f"F_{name}_END_TIMESTAMP")
        if len(calls.record) == 0:
            return
        groups = _Groups(calls.record)
        start = self.times[groups.records, first]
        earliest = np.minimum.reduceat(calls.start, groups.heads)
        self.times[groups.records, first] = np.where(start == 0, earliest, np.minimum(start, earliest))
        latest = np.maximum.reduceat(calls.end, groups.heads)
        self.times[groups.records, last] = np.maximum(self.times[groups.records, last], latest)

    def _busy(self, name: str, column: int, calls: Calls) -> None:
        """Add the time in which at least one of the calls was under way."""
        if len(calls.record) == 0:
            return
        groups = _Groups(calls.record)
        ends = calls.end.copy()
        ends[groups.heads] = np.maximum(ends[groups.heads], self._kept[groups.records, column])
        running = groups.running_maximum(ends)
        free = groups.before(running, self._kept[:, column])
        spent = np.maximum(calls.end - np.maximum(calls.start, free), 0)
        self.times[groups.records, self.layout.at(f"F_{name}")] += np.add.reduceat(spent, groups.heads)
        self._kept[groups.records, column] = running[groups.tails]

    def _accesses(self, calls: Calls) -> None:
        """Count the values that every module counts for reads and writes."""
        at = self.layout.at
        for kind, verb, done in ((Kind.READ, "READ", "BYTES_READ"), (Kind.WRITE, "WRITE", "BYTES_WRITTEN")):
            some = calls.take(calls.kind == kind)
            if len(some.record) == 0:
                continue
            np.add.at(self.counters[:, at(done)], some.record, some.size)
            agg = "_AGG" if at(f"SIZE_{verb}_0_100") < 0 else ""
            if (bucket := at(f"SIZE_{verb}{agg}_0_100")) >= 0:
                np.add.at(self.counters, (some.record, bucket + np.searchsorted(_EDGES, some.size, "right")), 1)
            if (most := at(done.replace("BYTES", "MAX_BYTE"))) >= 0:
                np.maximum.at(self.counters[:, most], some.record, some.offset + some.size - 1)
            if (longest := at(f"F_MAX_{verb}_TIME")) >= 0:
                self._longest(some, longest, at(f"MAX_{verb}_TIME_SIZE"))
        groups = _Groups(calls.record)
        if (switches := at("RW_SWITCHES")) >= 0:
            before = groups.before(calls.kind, self._kept[:, _ACCESS])
            switched = (before != 0) & (before != calls.kind)
            self.counters[groups.records, switches] += np.add.reduceat(switched.astype(np.int64), groups.heads)
        self._kept[groups.records, _ACCESS] = calls.kind[groups.tails]
        if at("ACCESS1_ACCESS") >= 0:
            self._follow(self.sizes, calls.record, calls.size)

    def _longest(self, calls: Calls, time: int, size: int) -> None:
        """Note the first of the longest calls, and its size."""
        took = calls.end - calls.start
        order = np.lexsort((np.arange(len(took)), -took, calls.record))
        first = order[_Groups(calls.record[order]).heads]
        first = first[took[first] > self.times[calls.record[first], time]]
        self.times[calls.record[first], time] = took[first]
        self.counters[calls.record[first], size] = calls.size[first]

    def _places(self, calls: Calls) -> None:
        """Count how accesses follow each other in the file; opening and closing begins anew."""
        at = self.layout.at
        steps, which = [], []
        for kind, verb, column in ((Kind.READ, "READS", _READ_BYTE), (Kind.WRITE, "WRITES", _WRITTEN_BYTE)):
            chosen = np.flatnonzero(np.isin(calls.kind, (kind, Kind.OPEN, Kind.CLOSE)))
            if len(chosen) == 0:
                continue
            some = calls.take(chosen)
            groups, mine = _Groups(some.record), some.kind == kind
            last = np.where(mine, some.offset + some.size - 1, 0)
            before = groups.before(last, self._kept[:, column])
            self._kept[groups.records, column] = last[groups.tails]
            later = mine & (some.offset > before)
            np.add.at(self.counters[:, at(f"SEQ_{verb}")], some.record[later], 1)
            next_to = mine & (some.offset == before + 1)
            np.add.at(self.counters[:, at(f"CONSEC_{verb}")], some.record[next_to], 1)
            steps.append(np.where(later & (before != 0), some.offset - before - 1, 0)[mine])
            which.append(chosen[mine])
        if steps:
            places = np.concatenate(which)
            order = np.argsort(places, kind="stable")
            self._follow(self.strides, calls.record[places[order]], np.concatenate(steps)[order])

    @staticmethod
    def _follow(seen: list[dict[int, int]], records: Integers, values: Integers) -> None:
        """Count how often each value occurs in its record, in the order in which they occur."""
        order = np.lexsort((np.arange(len(values)), values, records))
        first = np.ones(len(order), bool)
        first[1:] = (records[order][1:] != records[order][:-1]) | (values[order][1:] != values[order][:-1])
        heads = np.flatnonzero(first)
        counts = np.diff(np.append(heads, len(order)))
        place = order[heads]
        by_place = np.argsort(place)
        for at, count in zip(place[by_place].tolist(), counts[by_place].tolist(), strict=True):
            one, value = seen[int(records[at])], int(values[at])
            if value in one or len(one) < _MOST_VALUES:
                one[value] = one.get(value, 0) + count
