"""One table of where the time of a run went: rank × layer × kind of call × file, each with bounds.

Problem. A job's counters are sums over ranks, over calls, and over layers of which one calls the other. Sums of such
counters give times that cannot be.

Algorithm. :class:`Ledger` has the records of a source (:mod:`.records`). A question names kinds of calls, files, and a
layer or none; the answer is the time of each rank within bounds (:mod:`.bounds`). Without a layer, a POSIX call inside
of an MPI-IO call counts once. An MPI library makes all POSIX calls on a file inside of the program's MPI-IO calls. If
POSIX has calls outside of the time in which MPI-IO calls were made, or a rank has more time in POSIX calls, or POSIX
has more opens than an MPI library makes, then the program accesses the file by itself as well: the time of POSIX may
come beside that of MPI-IO. It may, too, if MPI-IO calls return before their accesses have ended. If POSIX has calls of
stat, or opens that are the program's or a second one of the library, metadata calls of POSIX may come beside.
The time on a file of the MPI library, with a shared file pointer, is inside of MPI-IO calls on another file.

Limit. An MPI library that opens a file on some ranks only leaves room for as many opens of the program, which its
counters do not show.

Guarantees. A rank's times on files add up to its time on all of them. No rank has more time than the run. If the calls
of a rank take more time than the run, calls of its threads overlap. Then the rank is in calls for at least its longest
time in one kind of calls on one file, and at most for the whole run. Threads whose calls take less time than the run do
not show. An average rank's time has the exact sums of the source.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from mpiio_ext.analytics.ledger import bounds
from mpiio_ext.analytics.ledger.records import ALL, KINDS, LAYERS, SOME, Records, empty
from mpiio_ext.analytics.tables.arrays import Flags, Numbers, Whole

_POSIX, _STDIO, _MPI = range(3)
_META, _SYNC, _WAITING = (KINDS.index(kind) for kind in ("meta", "sync", "waiting"))
#: Rounding of moments (s) and of sums. A rank has one clock for all of its records.
_CLOCK_S, _ROUNDING = 1e-6, 1.001
#: Opens of POSIX that libraries make for one of MPI-IO, at most.
_MOST_OPENS = 4


def union(start: Numbers, end: Numbers) -> bounds.Pair:
    """Return what intervals cover, as starts and ends in order."""
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    apart = start[1:] > end[:-1]
    return start[np.append(True, apart)[: len(start)]], end[np.append(apart, True)[: len(end)]]


@dataclasses.dataclass(frozen=True)
class Bounds:
    """Seconds, at least and at most: of one thing, or arrays of many."""

    least: Numbers
    most: Numbers

    def at(self, place: int) -> Interval:
        """Return the bounds of one of many."""
        return Interval(float(self.least[place]), float(self.most[place]))

    @property
    def highest(self) -> Interval:
        """Return the bounds of the largest one; zeros without any."""
        return Interval(float(np.max(self.least, initial=0.0)), float(np.max(self.most, initial=0.0)))


@dataclasses.dataclass(frozen=True)
class Interval:
    """A number of seconds: at least, at most."""

    least: float
    most: float

    @property
    def narrow(self) -> bool:
        """Whether the bounds differ by no more than a tenth: then one number is printed."""
        return self.most <= 1.1 * self.least

    @property
    def middle(self) -> float:
        """Return the number that is as far from one bound as from the other."""
        return (self.least + self.most) / 2

    def rounded(self, digits: int) -> Interval:
        """Return the same with so many significant digits: of the lower bound no more, of the upper bound no less."""
        scale = 10.0 ** (digits - 1 - np.floor(np.log10(self.most))) if self.most > 0 else 1.0
        return Interval(float(np.floor(self.least * scale) / scale), float(np.ceil(self.most * scale) / scale))

    def over(self, whole: float) -> Interval:
        """Return the same as shares of so many seconds, at most 1."""
        return Interval(*(min(1.0, each / whole) if whole > 0 else 0.0 for each in (self.least, self.most)))


@dataclasses.dataclass(frozen=True)
class Traced:
    """Seconds of single ranks in calls on a file, of kinds of which a trace has all calls.

    Attributes
    ----------
    ranks : array (n)
    seconds : array (n, kinds)
        In the order of :data:`.records.KINDS`.
    """

    ranks: Whole
    seconds: Numbers


@dataclasses.dataclass(frozen=True)
class Measured:
    """Seconds of each rank that recordings have measured: arrays (processes).

    Attributes
    ----------
    working : those in which it waits for no rank, at most.
    every : those in any call; None: not known, as of some files alone.
    """

    working: Numbers
    every: Bounds | None


@dataclasses.dataclass(frozen=True)
class Cells:
    """One rank's seconds, calls and bytes of each kind of calls on each file: arrays (kinds, files).

    Calls and bytes of a file that the program accesses by MPI-IO are those of MPI-IO. Ranks of a group have equal
    shares of them: then those of the file are not `exact` (an array of files).
    """

    seconds: Bounds
    calls: Numbers
    bytes: Numbers
    exact: Flags


class Ledger:
    """The time of ranks in calls.

    Parameters
    ----------
    records : see :data:`.records.RECORD`.
    processes : ranks of the job.
    run_s : seconds from its start to its end; if calls end in the second after it, until the end of the last one.
    partial : the source lacks records: every upper bound is the run's time.
    traced : by number of the file and layer.
    measured : if the source has measured ranks.
    uncounted : records, each of one rank
        Calls that no counter has, and that lie outside of all calls in `records`. They are of no layer.
    """

    def __init__(
        self,
        records: Records,
        processes: int,
        run_s: float,
        *,
        partial: bool = False,
        traced: Mapping[tuple[int, str], Traced] | None = None,
        measured: Measured | None = None,
        uncounted: Records | None = None,
    ) -> None:
        last_s = float(records["last"].max(initial=0.0))
        whole_seconds = run_s < last_s <= run_s + 1  # as logs before Darshan 3.4 have the job's start and end
        self.records, self.processes, self.partial = records, max(processes, 1), partial
        self.run_s = last_s if whole_seconds and run_s > 0 else run_s
        self.traced, self.measured = traced or {}, measured
        self._every = None if measured is None else measured.every
        self.uncounted = empty(0) if uncounted is None else uncounted
        self.files = np.unique(np.append(records["file"], self.uncounted["file"]))
        self._place = np.searchsorted(self.files, records["file"])
        self._spreads: dict[tuple[tuple[str, ...], str | None], bounds.RankTimes] = {}
        self._layer_spreads: dict[tuple[int, tuple[int, ...]], bounds.RankTimes] = {}

    def _with(self, **changed: Any) -> Ledger:
        """Return the ledger with some of its parts changed."""
        names = ("records", "partial", "traced", "measured", "uncounted")
        return Ledger(
            processes=self.processes, run_s=self.run_s, **{each: getattr(self, each) for each in names} | changed
        )

    def of(self, files: Collection[int]) -> Ledger:
        """Return the ledger of some files."""
        chosen = self.files[np.isin(self.files, np.array(list(files), np.int64))]
        if len(chosen) == len(self.files):
            return self
        records, more = (each[np.isin(each["file"], chosen)] for each in (self.records, self.uncounted))
        measured = None if self.measured is None else dataclasses.replace(self.measured, every=None)
        return self._with(records=records, uncounted=more, measured=measured)

    def renamed(self, numbers: Mapping[int, int]) -> Ledger:
        """Return the ledger with other numbers of files."""
        records, more = self.records.copy(), self.uncounted.copy()
        for each in (records, more):
            each["file"] = [numbers.get(file, file) for file in each["file"].tolist()]
        traced = {(numbers.get(file, file), layer): one for (file, layer), one in self.traced.items()}
        return self._with(records=records, traced=traced, uncounted=more)

    def recorded(
        self, in_mpi: Mapping[int, Traced], measured: Bounds, working: Numbers, uncounted: Records | None = None
    ) -> Ledger:
        """Return the ledger with what recordings have: each rank's seconds in MPI-IO calls on files, and in any call.

        Of these files, the records have the same seconds, by their kinds: those of a wait are no others.
        """
        records, traced = self.records.copy(), {(file, "MPI-IO"): one for file, one in in_mpi.items()}
        for row in np.flatnonzero((records["layer"] == _MPI) & np.isin(records["file"], list(in_mpi))).tolist():
            one, rank = in_mpi[int(records["file"][row])], records["rank"][row]
            records["seconds"][row] = one.seconds[(one.ranks == rank) | (rank < 0)].sum(axis=0)
        known, of_ranks = {**self.traced, **traced}, Measured(working, measured)
        return self._with(records=records, traced=known, measured=of_ranks, uncounted=uncounted)

    def at(self, files: Whole, values: Numbers) -> Numbers:
        """Return values of this ledger's files for files by their numbers; 0 for a file that it does not have."""
        if not len(self.files):
            return np.zeros(len(files))
        place = np.searchsorted(self.files, files).clip(0, len(self.files) - 1)
        return np.where(self.files[place] == files, values[place], 0.0)

    # ---- answers -----------------------------------------------------------------------------------------------------

    def ranks(self, *kinds: str, layer: str | None = None) -> Bounds:
        """Return the seconds of each rank in calls of some kinds (none: all), of one layer, or of all."""
        if self._every is not None and not kinds and layer is None:
            return self._within_run(self._every)
        found, threads = self._sums_of_ranks(kinds, layer), self.overlapped
        if threads.any():
            longest = np.where(threads, self._longest(kinds, layer), found.least)
            found = Bounds(longest, np.where(threads, self.run_s, found.most))
        return self._within_run(found)

    def slowest(self, *kinds: str, layer: str | None = None) -> Interval:
        """Return the seconds of the rank with most of them."""
        found, mean = self.ranks(*kinds, layer=layer).highest, self.mean(*kinds, layer=layer)
        return Interval(max(found.least, mean.least), max(found.most, mean.least))

    def slowest_rank(self) -> int | None:
        """Return the rank with most time in calls; None if it may be another one."""
        found = self.ranks()
        rank = int(np.argmax(found.least))
        others = np.delete(found.most, rank)
        return rank if np.all(others <= found.least[rank]) else None

    def ahead(self) -> tuple[bool, int | None]:
        """Return whether a rank is known to spend far more time in calls than an average one, and which, if known."""
        slowest, mean = self.slowest(), self.mean()
        found = self.processes > 1 and slowest.narrow and slowest.least > 1.1 * mean.most
        return found, self.slowest_rank() if found else None

    def mean(self, *kinds: str, layer: str | None = None) -> Interval:
        """Return the seconds of a rank on average: the sum over all ranks, over their number."""
        if self._every is not None and not kinds and layer is None:
            return Interval(float(self._every.least.mean()), float(self._every.most.mean()))
        if self.overlapped.any():
            found = self.ranks(*kinds, layer=layer)
            return Interval(float(found.least.mean()), float(found.most.mean()))
        found = self.means(*kinds, layer=layer)
        return self._within_run(Bounds(*(np.array([each.sum()]) for each in (found.least, found.most)))).at(0)

    def total(self, *kinds: str) -> Interval:
        """Return the seconds of all ranks together."""
        mean = self.mean(*kinds)
        return Interval(mean.least * self.processes, mean.most * self.processes)

    def means(self, *kinds: str, layer: str | None = None) -> Bounds:
        """Return of each file the seconds of a rank of the job on average."""
        per_layer = [self._sums(number, kinds or KINDS) / self.processes for number in self._layers(layer)]
        if len(per_layer) == 1:
            return Bounds(per_layer[0], per_layer[0])
        posix, stdio, mpi = per_layer
        meta, files = self._sums(_POSIX, _meta_of(kinds)) / self.processes, np.arange(len(self.files))
        least, most = self._around(
            (mpi, mpi), self._beside((posix, posix), (meta, meta), files), files, every=not kinds
        )
        every = self.means().most if kinds else np.full(len(self.files), np.inf)
        beside = stdio + self._sums_uncounted(kinds or KINDS) / self.processes
        return self._within_run(Bounds(least + beside, _capped(least + beside, most + beside, every)))

    def cells(self, rank: int | None) -> Cells:
        """Return what a rank does in each kind of calls on each file; None: a rank of the job on average."""
        files = np.arange(len(self.files))
        if rank is None:
            means = [self.means(kind) for kind in KINDS]
            pairs = [(found.least, found.most) for found in means]
        else:
            pairs = [self._spread((kind,), None).at(files, np.full(len(files), rank)) for kind in KINDS]
        records = self.records[(self.records["layer"] == _MPI) == self._by_mpi[self._place]]
        place = np.searchsorted(self.files, records["file"])
        several = np.full(len(records), rank is None) | (records["rank"] < 0)
        share = np.where(several, 1 / self.processes, records["rank"] == rank)
        calls, moved = np.zeros((len(KINDS), len(files))), np.zeros((len(KINDS), len(files)))
        np.add.at(calls.T, place, records["calls"] * share[:, None])
        np.add.at(moved.T[:, :2], place, records["bytes"] * share[:, None])
        least, most = (np.stack([pair[end] for pair in pairs]) for end in (0, 1))
        shared = np.bincount(place, (records["rank"] < 0) & (rank is not None), len(files))
        return Cells(Bounds(least, np.maximum(least, most)), calls, moved, shared == 0)

    def slowest_of_files(self, *kinds: str, layer: str | None = None) -> Bounds:
        """Return of each file the seconds of the rank with most of them."""
        found = self._spread(kinds, layer)
        exceptions = np.bincount(found.place[found.rank < self.processes], minlength=len(self.files))
        others = exceptions < self.processes
        out = [np.where(others, each, 0.0) for each in (found.least, found.most)]
        np.maximum.at(out[0], found.place, found.own_least)
        np.maximum.at(out[1], found.place, found.own_most)
        mean = self._means_of_ranks(kinds, layer)
        return self._within_run(Bounds(np.maximum(out[0], mean), np.maximum(out[1], mean)))

    def likely(self, *kinds: str, layer: str | None = None) -> Numbers:
        """Return the seconds of each rank that rules judge by: ranks of a group have equal shares, within the bounds.

        The slowest rank of a group has an equal share of metadata calls, and is slow in the others. More than the run
        are seconds of several threads.
        """
        found = self._spread(kinds, layer)
        some = self.records["rank"] == SOME  # whose they are is not known: evenly of as many ranks as there can be
        side_by_side = float(np.clip(self.records["ranks"][some].sum(), 1, self.processes))
        of_ranks = np.where(self._total(some, some) > 0, side_by_side, self._ranks_of_files(layer))
        mean = self.means(*kinds, layer=layer).least * self.processes / of_ranks
        every = np.clip(mean, found.least, found.most)
        there = found.rank < self.processes
        place, sums = found.place[there], np.full(self.processes, float(every.sum()))
        rest = self.means(layer=layer).least * self.processes / of_ranks - mean
        whole = self._spread((), layer).at(found.place[there], found.rank[there])[0] - rest[place]
        own = mean[place] if set(_meta_of(kinds)) == set(kinds or KINDS) else whole
        own = np.clip(own, found.own_least[there], found.own_most[there])
        np.add.at(sums, found.rank[there], own - every[place])
        return np.asarray(np.maximum(sums, 0.0))

    def likely_of_files(self, *kinds: str, layer: str) -> Numbers:
        """Return of each file the seconds of its slowest rank that rules judge by, within the bounds.

        The slowest rank of a group has an average share of the calls of other kinds.
        """
        found, number = self.slowest_of_files(*kinds, layer=layer), LAYERS.index(layer)
        group = (self.records["layer"] == number) & (self.records["rank"] == ALL)
        slowest = self._total(group, self.records["slowest_s"])
        rest = (self._sums(number, KINDS) - self._sums(number, kinds or KINDS)) / self._ranks_of_files(layer)
        return np.clip(np.where(slowest > 0, slowest - rest, 0.0), found.least, found.most)

    def opening(self) -> Numbers:
        """Return the seconds of each rank in metadata calls, or longer ones of MPI-IO, without waits for others."""
        posix, stdio, mpi = (self.likely("meta", layer=layer) for layer in LAYERS)
        return np.asarray(np.maximum(posix + stdio, mpi - self.waited.sum()))

    def opening_of_files(self) -> Numbers:
        """Return of each file the same of a rank of the job on average."""
        posix, stdio, mpi = (self.means("meta", layer=layer).least for layer in LAYERS)
        return np.maximum(posix + stdio, mpi - self.waited)

    @cached_property
    def waited(self) -> Numbers:
        """Return of each file the seconds that a rank on average waits for a slow one in calls that open or close it.

        All ranks close a file together: who moves data in less time than the slowest rank waits for that one there, if
        not in the data calls, as for an aggregator. Recordings have the time without waits.
        """
        ways, layers = ("read", "write"), ("POSIX", "STDIO")
        moving = np.sum([self.likely_of_files(*ways, layer=layer) for layer in layers], axis=0)
        below, mpi = (
            np.sum([self._means_of_ranks(ways, layer) for layer in layers], axis=0),
            self._means_of_ranks(ways, "MPI-IO"),
        )
        recorded = [file for (file, _), one in self.traced.items() if one.seconds[:, _META].any()]
        each = np.where(np.isin(self.files, recorded), 0.0, moving - np.maximum(below, mpi))
        whole = self.means("meta", layer="MPI-IO").least
        return np.clip(each * self._ranks_of_files("MPI-IO") / self.processes, 0.0, whole)

    def late(self) -> dict[int, tuple[float, int]]:
        """Return how long each other rank waits for one, on average, to open and close a file, and for which rank.

        The rank that waits least for others is late by as much as these wait longer than it is in other calls. Files of
        which that is not known are not there.
        """
        found = {}
        for (file, layer), one in self.traced.items():
            if layer != "MPI-IO" or self.measured is None or len(one.ranks) < 2:
                continue
            waited, mine, count = one.seconds[:, _WAITING], self.measured.working[one.ranks], len(one.ranks)
            late = int(waited.argmin())
            others, more = (float(each.sum() - count * each[late]) / (count - 1) for each in (waited, mine))
            found[file] = max(0.0, others + min(more, 0.0)), int(one.ranks[late])
        return found

    def clock(self, *kinds: str, layer: str | None = None) -> Interval:
        """Return the seconds in which any rank is in a call: at least the slowest rank's, at most those of all."""
        slowest, mean = self.slowest(*kinds, layer=layer), self.mean(*kinds, layer=layer)
        most = min(mean.most * self.processes, max(self.run_s, slowest.least))
        return Interval(slowest.least, max(slowest.least, most))

    def spans(self, layer: str | None = None) -> bounds.Pair:
        """Return the parts of the time (s since the start) outside of which no call is: their starts and ends.

        Each file has one from its first call to the end of its last one. A record without moments has the whole run.
        """
        chosen = np.isin(self.records["layer"], list(self._layers(layer)))
        known, called = self.records["last"] > 0, self.records["seconds"].sum(axis=1) > 0
        if self.partial or np.any(chosen & called & ~known):
            return np.zeros(1), np.full(1, self.run_s)
        first, last = (self.records[name][chosen & known] for name in ("first", "last"))
        return union(first.astype(float), np.maximum(last, first).astype(float))

    def counts(self) -> tuple[dict[str, Numbers], bool]:
        """Return how often each rank opens files, calls stat, renames and seeks, and whether that is exact.

        Ranks of a group have equal shares of its calls: that is not exact. Of a file that the program opens by MPI-IO,
        only these opens count: the MPI library makes the others.
        """
        mpi = self.records["layer"] == _MPI
        asked, below = (self._total(which, self.records["opens"]) for which in (mpi, ~mpi))
        by_mpi = (asked > 0) & (below <= _MOST_OPENS * asked)
        kept = self.records[mpi == by_mpi[self._place]]
        posix, own = kept["layer"] != _MPI, kept["rank"] >= 0
        opens, stats = kept["opens"], kept["stats"] * posix
        found = {}
        for name, values in (
            ("opens", opens),
            ("stats", stats),
            ("renames", posix * kept["renames"]),
            ("seeks", posix * np.maximum(kept["calls"][:, KINDS.index("meta")] - opens - stats, 0)),
        ):
            found[name] = np.full(self.processes, values[~own].sum() / self.processes)
            np.add.at(found[name], kept["rank"][own], values[own])
        return found, bool(own.all())

    def alone(self) -> tuple[Numbers, Numbers]:
        """Return the seconds of each rank in metadata calls of records of its own, and its opens.

        Files that several ranks open by MPI-IO do not count: one rank may make the calls of all.
        """
        rank, alone = self.records["rank"], (self._ranks_of_files("MPI-IO") <= 1)[self._place]
        kept = self.records[alone & (rank >= 0) & (rank < self.processes) & (self.records["layer"] != _MPI)]
        both = (kept["seconds"][:, _META], kept["opens"].astype(float))
        meta, opens = (np.bincount(kept["rank"], each, self.processes).astype(float) for each in both)
        return meta, opens

    @property
    def moves_by_posix_alone(self) -> bool:
        """Whether all calls that are no metadata calls move bytes by POSIX or STDIO: no sync, and no call of MPI-IO."""
        synced = self.records["calls"][:, KINDS.index("sync")].any()
        return not (synced or self._by_mpi.any() or self.partial)

    def moved(self, way: str) -> int:
        """Return the bytes that the program has read, or written: by MPI-IO, of files that it accesses so."""
        number = ("read", "write").index(way)
        by_mpi = self._total(self.records["layer"] == _MPI, self.records["bytes"][:, number])
        below = self._total(self.records["layer"] != _MPI, self.records["bytes"][:, number])
        return int(np.where(by_mpi > 0, by_mpi, below).sum())

    # ---- how records come together -----------------------------------------------------------------------------------

    @cached_property
    def overlapped(self) -> Flags:
        """Return of each rank whether calls of its threads overlap: together they take more time than the run."""
        least = self._sums_of_ranks((), None).least
        return np.asarray((least > _ROUNDING * self.run_s) & (self.run_s > 0))

    def _longest(self, kinds: tuple[str, ...], layer: str | None) -> Numbers:
        """Return of each rank the most time in calls of one kind on one file: a source counts their overlap once."""
        longest, inside = np.zeros(self.processes), self._by_mpi & (layer is None) & bool(kinds)
        for number in self._layers(layer):
            for kind in kinds or KINDS:
                found = self._of_layer(number, (kind,))
                there = (found.rank < self.processes) & ~(inside[found.place] & (number == _POSIX))
                np.maximum.at(longest, found.rank[there], found.own_least[there])
        return longest

    def _sums_of_ranks(self, kinds: tuple[str, ...], layer: str | None) -> Bounds:
        """Return the seconds of each rank, as if no calls of its threads overlapped."""
        found = self._spread(kinds, layer)
        sums = [np.full(self.processes, float(each.sum())) for each in (found.least, found.most)]
        there = found.rank < self.processes
        rank, place = found.rank[there], found.place[there]
        for into, own, every in ((sums[0], found.own_least, found.least), (sums[1], found.own_most, found.most)):
            np.add.at(into, rank, own[there] - every[place])
        return Bounds(*(np.maximum(each, 0.0) for each in sums))

    @cached_property
    def nested(self) -> Flags:
        """Return for each file whether all of its POSIX calls are inside of MPI-IO calls, but for metadata calls."""
        records, mpi = self.records, self.records["layer"] == _MPI
        posix = records["layer"] == _POSIX
        opens, opens_below = (self._total(which, records["opens"]) for which in (mpi, posix))
        rounds = -(-opens // np.maximum(self._total(mpi, records["ranks"]), 1))
        done, done_below = (
            np.stack([self._total(which, each) for each in (*records["bytes"].T, records["calls"][:, _SYNC])])
            for which in (mpi, posix)
        )
        twice = (opens_below == 2 * opens) | (opens_below - 2 * opens == rounds)
        opened = (opens_below <= opens + rounds) | (twice & (done_below <= done).all(axis=0))
        first, last = self._first_and_last(mpi)
        first_below, last_below = self._first_and_last(posix)
        inside = (first_below >= first - _CLOCK_S) & (last_below <= last + _CLOCK_S)
        found = (opens > 0) & opened & inside & ~self._outrun & ~self.pending
        return np.asarray(found)

    @cached_property
    def _outrun(self) -> Flags:
        """Return for each file whether any rank has more time in POSIX calls than in MPI-IO calls."""
        posix, mpi = (self._of_layer(number, KINDS) for number in (_POSIX, _MPI))
        more = bounds.joined(posix, mpi, lambda one, other, _: (one[0], _ROUNDING * other[1]))
        found = more.least > more.most
        found[more.place[more.own_least > more.own_most]] = True
        total, below = (self._sums(number, KINDS) for number in (_MPI, _POSIX))
        return np.asarray(found | (below > _ROUNDING * total))

    @cached_property
    def _meta_nested(self) -> Flags:
        """Return for each file of `nested` whether its metadata calls of POSIX are inside of MPI-IO calls, too."""
        opens, below, stats = (
            self._total(self.records["layer"] == number, self.records[name])
            for number, name in ((_MPI, "opens"), (_POSIX, "opens"), (_POSIX, "stats"))
        )
        return np.asarray((stats == 0) & (below < 2 * opens))

    def _beside(self, posix: bounds.Pair, meta: bounds.Pair, place: Whole) -> bounds.Pair:
        """Return the time in POSIX calls on files, at least, and that which comes beside MPI-IO calls, at most."""
        outside = np.where(self._meta_nested[place], 0.0, meta[1])
        return posix[0], np.where(self.nested[place], outside, posix[1])

    def _around(self, upper: bounds.Pair, lower: bounds.Pair, place: Whole, *, every: bool) -> bounds.Pair:
        """Return the time in MPI-IO calls and in POSIX calls on files, at least and at most; `lower`: of `_beside`.

        `every`: of all kinds. Else a POSIX call of some kind inside of an MPI-IO call is no call of that kind. A POSIX
        access of which an MPI-IO call does not wait for the end takes no time of the rank's.
        """
        aside = self._by_mpi[place] & (self.pending[place] | (not every))
        least = np.where(aside, upper[0], np.maximum(upper[0], lower[0]))
        least = np.where(self._inside[place], 0.0, least)
        return least, np.maximum(least, upper[1] + lower[1])

    @cached_property
    def pending(self) -> Flags:
        """Return for each file whether MPI-IO calls return before their accesses have ended."""
        return self._total(np.ones(len(self.records), bool), self.records["pending"]) > 0

    @cached_property
    def _inside(self) -> Flags:
        return self._total(self.records["inside"], np.ones(len(self.records))) > 0

    @cached_property
    def _by_mpi(self) -> Flags:
        return self._total(self.records["layer"] == _MPI, np.ones(len(self.records))) > 0

    def _layers(self, layer: str | None) -> range:
        return range(3) if layer is None else range(LAYERS.index(layer), LAYERS.index(layer) + 1)

    def _spread(self, kinds: tuple[str, ...], layer: str | None) -> bounds.RankTimes:
        if (kinds, layer) not in self._spreads:
            self._spreads[kinds, layer] = self._joined(kinds, layer)
        return self._spreads[kinds, layer]

    def _joined(self, kinds: Collection[str], layer: str | None) -> bounds.RankTimes:
        parts = [self._of_layer(number, kinds or KINDS) for number in self._layers(layer)]
        if len(parts) == 1:
            return parts[0]
        posix, stdio, mpi = parts
        meta = self._of_layer(_POSIX, _meta_of(kinds))
        posix = bounds.joined(posix, meta, self._beside)
        called = bounds.joined(mpi, posix, lambda one, other, at: self._around(one, other, at, every=not kinds))
        found = bounds.joined(called, stdio, _added)
        if len(self.uncounted):
            found = bounds.joined(found, self._of_uncounted(kinds or KINDS), _added)
        if not kinds:
            return found
        return bounds.joined(found, self._spread((), layer), lambda one, every, _: (one[0], _capped(*one, every[1])))

    def _of_uncounted(self, kinds: Collection[str]) -> bounds.RankTimes:
        place = np.searchsorted(self.files, self.uncounted["file"])
        return bounds.spread(self.uncounted, place, len(self.files), [KINDS.index(each) for each in kinds])

    def _sums_uncounted(self, kinds: Collection[str]) -> Numbers:
        """Return the seconds of all ranks in calls on each file that no counter has."""
        found = self._of_uncounted(kinds)
        return np.bincount(found.place, found.own_least, len(self.files)).astype(float)

    def _of_layer(self, number: int, kinds: Collection[str]) -> bounds.RankTimes:
        wanted = tuple(KINDS.index(each) for each in kinds)
        if (number, wanted) not in self._layer_spreads:
            chosen = self.records["layer"] == number
            found = bounds.spread(self.records[chosen], self._place[chosen], len(self.files), list(wanted))
            found = self._with_traces(found, number, list(wanted)) if self.traced else found
            self._layer_spreads[number, wanted] = found
        return self._layer_spreads[number, wanted]

    def _with_traces(self, found: bounds.RankTimes, number: int, kinds: list[int]) -> bounds.RankTimes:
        """Return the times of ranks with those that were traced; what a trace lacks of a sum may be any rank's."""
        place, rank, least, most = [found.place], [found.rank], [found.own_least], [found.own_most]
        chosen = (self.records["layer"] == number) & (self.records["rank"] == ALL)
        for row in np.flatnonzero(chosen).tolist():
            at, known = self._place[row], self.traced.get((int(self.records["file"][row]), LAYERS[number]))
            if known is not None:
                own = np.zeros(self.processes)
                np.add.at(own, known.ranks, known.seconds[:, kinds].sum(axis=1))
                rest = self.records["seconds"][row, kinds] - known.seconds[:, kinds].sum(axis=0)
                place.append(np.full(self.processes, at))
                rank.append(np.arange(self.processes))
                least.append(np.clip(own, *found.at(place[-1], rank[-1])))
                most.append(np.clip(own + np.maximum(rest, 0.0).sum(), *found.at(place[-1], rank[-1])))
        places, ranks = (np.concatenate(each[::-1]) for each in (place, rank))  # of several the last one counts
        low, high = (np.concatenate(each[::-1]) for each in (least, most))
        return bounds.unique(found.least, found.most, places, ranks, low, high)

    def _within_run(self, found: Bounds) -> Bounds:
        if not self.run_s > 0:
            return found
        most = np.full_like(found.most, self.run_s) if self.partial else np.minimum(found.most, self.run_s)
        return Bounds(np.minimum(found.least, self.run_s), most)

    def _sums(self, number: int, kinds: Collection[str]) -> Numbers:
        wanted = [KINDS.index(each) for each in kinds]
        chosen = self.records["layer"] == number
        return self._total(chosen, self.records["seconds"][:, wanted].sum(axis=1))

    def _total(self, chosen: Flags, values: Numbers | Whole) -> Numbers:
        """Return the sum of values of chosen records for each file."""
        return np.bincount(self._place[chosen], values[chosen].astype(float), len(self.files)).astype(float)

    def _means_of_ranks(self, kinds: Collection[str], layer: str | None) -> Numbers:
        """Return of each file the seconds, at least, of a rank that has a record of it, on average."""
        return self.means(*kinds, layer=layer).least * self.processes / self._ranks_of_files(layer)

    def _ranks_of_files(self, layer: str | None) -> Numbers:
        """Return how many ranks have a record of each file, at most."""
        chosen = np.isin(self.records["layer"], self._layers(layer))
        rank = self.records["rank"]
        own, several = chosen & (rank >= 0), chosen & (rank < 0)
        pairs = np.unique(self._place[own] * self.processes + rank[own].clip(0, self.processes - 1))
        alone = np.bincount(pairs // self.processes, minlength=len(self.files))
        found = alone + self._total(several, self.records["ranks"])
        return np.asarray(np.clip(found, 1, self.processes))

    def _first_and_last(self, chosen: Flags) -> tuple[Numbers, Numbers]:
        first, last = np.full(len(self.files), np.inf), np.zeros(len(self.files))
        known = chosen & (self.records["last"] > 0)
        np.minimum.at(first, self._place[known], self.records["first"][known])
        np.maximum.at(last, self._place[known], self.records["last"][known])
        return first, last


def _added(one: bounds.Pair, other: bounds.Pair, _: Whole) -> bounds.Pair:
    return one[0] + other[0], one[1] + other[1]


def _capped(least: Numbers, most: Numbers, every: Numbers) -> Numbers:
    """Return upper bounds of some kinds of calls: no more than those of all kinds."""
    return np.maximum(least, np.minimum(most, every))


def _meta_of(kinds: Collection[str]) -> Collection[str]:
    """Return the kinds of metadata calls among kinds (none: all)."""
    return [each for each in kinds or KINDS if each not in ("read", "write")]
