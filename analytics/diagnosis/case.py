"""One job in one direction, as the rules of a diagnosis see it."""

from __future__ import annotations

import dataclasses
import functools
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from mpiio_ext.analytics.diagnosis import ranks
from mpiio_ext.analytics.diagnosis.activity import Activity, Calls, Row
from mpiio_ext.analytics.diagnosis.again import from_the_start, moved_on, rewritten
from mpiio_ext.analytics.diagnosis.limits import Limits
from mpiio_ext.analytics.diagnosis.model import CALLED, IN_MPIIO, Claim, Evidence, Finding
from mpiio_ext.analytics.diagnosis.overlap import shared
from mpiio_ext.analytics.diagnosis.words import rounded, where, worded
from mpiio_ext.analytics.factors.catalogue import factors
from mpiio_ext.analytics.factors.files import Files, bins
from mpiio_ext.analytics.factors.storage import count_of_osts
from mpiio_ext.analytics.ledger import Ledger, numbers_of, of_rows
from mpiio_ext.analytics.sweep.intervals import sweep
from mpiio_ext.analytics.tables.arrays import Flags, Numbers, Whole
from mpiio_ext.analytics.tables.schema import SIZE_BINS

if TYPE_CHECKING:
    from mpiio_ext.analytics.diagnosis.cause import Cause
    from mpiio_ext.analytics.tools.health import DiskStates

#: Files and OSTs that a finding names at most.
MOST_NAMES = 5
#: Opens of POSIX that libraries make for one of MPI-IO, at most.
_MOST_OPENS = 4
#: Share of the time of the busiest rank from which on another one is named with it.
_MATTERS = 0.2
#: Share that is nearly all.
_ALL = 0.9
#: Sizes of requests that are named at most, and the share of all requests that they have.
_MOST_SIZES, _MOST_REQUESTS = 3, 0.8
#: How many times as many one of two numbers of calls may be that are called the same.
_AS_MANY = 1.25
#: File systems of one node, which lock no blocks.
OF_ONE_NODE = ("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "tmpfs", "zfs", "overlay", "ramfs")
#: How names of HDF5's files end.
HDF5 = (".h5", ".hdf5", ".he5", ".nc", ".nc4")
#: What stands for a file's name in tables without names; the standard streams are everyone's.
TAKEN_OUT = re.compile(r"file \d+|<STD(?:IN|OUT|ERR)>")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Circumstances:
    """A job's properties beside its rows of files, and the names of files in a diagnosis.

    Attributes
    ----------
    limits : from which values on something is a cause.
    anonymous : names become numbers, values are rounded to two digits.
    osts : OSTs that are known to exist.
    activity : DXT and HEATMAP of the log.
    own_share : the job's bytes over those that its OSTs moved meanwhile.
    disks : states of the file system's disks when the job began.
    without_mpi : no process of the job has initialised MPI.
    """

    limits: Limits
    anonymous: bool = False
    osts: int | None = None
    activity: Activity | None = None
    own_share: float | None = None
    disks: DiskStates | None = None
    without_mpi: bool = False


class Case:
    """Files of one job, in their circumstances."""

    def __init__(self, files: Files, known: Circumstances) -> None:
        self.files, activity = files, known.activity
        self._without_mpi = known.without_mpi
        self.limits, self.anonymous, self.osts = known.limits, known.anonymous, known.osts
        self.write = files.direction == "write"
        self.activity, self.own_share, self.disks = ranks.with_all_bytes(activity, files), known.own_share, known.disks
        processes = self.processes if self.processes > 0 else 1.0
        run_s = float(np.nan_to_num(self.run_time))
        if activity is None or activity.ledger is None:
            self.ledger = of_rows(files, int(processes), run_s, {} if activity is None else activity.traced())
        else:
            self.ledger = activity.ledger.of(numbers_of(files).tolist())
        files.found = shared(*files.intervals(), self._called, files["ranks"], files.found)
        self.swept = float(np.nan_to_num(files.critical_time[0]))
        self.of_time, self.time_meant, self.exclusive = self._in_io()
        self.time = float(self.exclusive.sum())
        self.about: dict[str, Flags] = {}  # cause -> files that its finding is about
        by_time = np.argsort(np.where(files.critical, -files.exclusive, 1.0), kind="stable")
        self.order: list[int] = by_time[: files.critical.sum()].tolist()

    # ---- time in I/O -------------------------------------------------------------------------------------------------

    def _in_io(self) -> tuple[str, str, Numbers]:
        """Return what the time in I/O is, in words, what that means, and its part of each file's exclusive time (s).

        DXT shows when any rank is in a call, HEATMAP the bins of time in which bytes move. Without them a file counts
        from its first to its last access.
        """
        exclusive, seen, any_rank = (
            self.files.exclusive,
            self.activity,
            f"critical time in which any rank {self.files.direction}s",
        )
        if any(self.complete):
            called = np.minimum(exclusive, np.where(self.complete, self._called, np.inf))
            of_all = float(called[self.complete].sum())  # calls on several files at once are one time
            wall = (seen.wall.get(self.write, 0.0) if seen is not None else 0.0) + float(self.syncing.sum())
            called[self.complete] *= wall / of_all if 0 < wall < of_all else 1.0
            return any_rank, "in a call of MPI-IO or POSIX on a critical file; DXT", called
        moving = seen.wall.get(self.write, 0.0) if seen is not None and seen.source == "HEATMAP" else 0.0
        if seen is not None and moving > 0:
            inside = np.maximum(self.in_all_requests, self.in_mpi)  # calls may move no bytes
            moving = max(moving, float(np.nansum(np.minimum(inside, exclusive))))
            if moving < 0.9 * self.swept - seen.resolution:
                known = self.ledger.at(self._numbers, self.ledger.means().most) * (seen.ledger is not None)
                most = np.where(known > 0, known * self.ledger.processes, np.inf)
                of_bins = exclusive * moving / self.swept  # a file has no more of it than its calls take
                meant = "on a critical file: steps of time in which bytes move, and calls that move none; HEATMAP"
                return f"estimated {any_rank}", meant, np.minimum(of_bins, most)
        return "critical time", "from the first to the last access of each critical file, counted once", exclusive

    @functools.cached_property
    def in_requests(self) -> Numbers:
        """Return the time (s) that the slowest rank of each file spends in its reads or writes by POSIX and STDIO."""
        return self._in_calls(self.files.direction)

    @functools.cached_property
    def in_all_requests(self) -> Numbers:
        """Return the time (s) that the slowest rank of each file spends in reads and writes by POSIX and STDIO."""
        return self._in_calls("read", "write")

    def _in_calls(self, *kinds: str) -> Numbers:
        found = sum(self.ledger.likely_of_files(*kinds, layer=layer) for layer in ("POSIX", "STDIO"))
        return self.ledger.at(self._numbers, np.asarray(found))

    def ledger_of(self, chosen: Flags) -> Ledger:
        """Return the ledger of chosen files."""
        return self.ledger.of(self._numbers[chosen].tolist())

    def busiest(self, *kinds: str, layer: str = "", chosen: Flags | None = None) -> float:
        """Return the time (s) of the rank with most of it in calls on chosen files: of a layer, or POSIX and STDIO."""
        ledger = self.ledger if chosen is None else self.ledger_of(chosen)
        layers = (layer,) if layer else ("POSIX", "STDIO")
        return float(np.max(np.sum([ledger.likely(*kinds, layer=each) for each in layers], axis=0), initial=0.0))

    @functools.cached_property
    def _numbers(self) -> Whole:
        return numbers_of(self.files)

    @functools.cached_property
    def _called(self) -> Numbers:
        """Return the time in calls on each file (s): in which any rank is in one, or else the slowest rank's time."""
        found = np.fmax(self.in_requests, self.in_mpi)
        for place, (row, sure) in enumerate(zip(self.rows, self.complete, strict=True)):
            if row is not None and sure:
                found[place] = row.called + self.syncing[place]
        return np.where(found > 0, found, np.nan)

    @functools.cached_property
    def rows(self) -> list[Row | None]:
        """Return what DXT has of each file."""
        if self.activity is None or "file_id" not in self.files.table.schema.names:
            return [None] * len(self.files)
        return [self.activity.rows.get((number, self.write)) for number in self.files.table["file_id"].to_pylist()]

    @functools.cached_property
    def complete(self) -> list[bool]:
        """Return for each file whether DXT has all requests that POSIX has counted."""
        return [
            row is not None and float(row.requests.sum()) >= 0.99 * known > 0
            for row, known in zip(self.rows, self.files.requests(), strict=True)
        ]

    @functools.cached_property
    def calls(self) -> list[Calls]:
        """Return the counters of each file that are in no table; zeros where they are not known."""
        if self.activity is None or "file_id" not in self.files.table.schema.names:
            return [Calls()] * len(self.files)
        unknown = Calls()
        return [self.activity.calls.get(number, unknown) for number in self.files.table["file_id"].to_pylist()]

    @functools.cached_property
    def syncs(self) -> Numbers:
        """Return how often the program syncs each file, by MPI-IO if it opens the file so; 0 if unknown."""
        asked, syncs = (
            np.array([float(getattr(one, name)) for one in self.calls]) for name in ("asked_syncs", "syncs")
        )
        return np.where(self._by_mpi, asked, syncs)

    @functools.cached_property
    def opens(self) -> Numbers:
        """Return how often the program opens each file, by MPI-IO if it does: opens below are the libraries'."""
        asked, handles = (np.array([float(getattr(one, name)) for one in self.calls]) for name in ("opens", "handles"))
        return np.where(self._by_mpi, asked, np.maximum(self.files["opens"] - handles, 0.0))

    @functools.cached_property
    def _by_mpi(self) -> Flags:
        """Return for each file whether the program opens it by MPI-IO, and hardly otherwise."""
        asked = np.array([float(calls.opens) for calls in self.calls])
        return np.asarray((asked > 0) & ~(self.files["opens"] > _MOST_OPENS * asked))

    @functools.cached_property
    def syncing(self) -> Numbers:
        """Return the time (s) that a rank spends in syncs of each file: Darshan's write time that DXT does not have."""
        out = np.zeros(len(self.files))
        for place, (row, calls) in enumerate(zip(self.rows, self.calls, strict=True)):
            if row is not None and self.write and calls.syncs and self.complete[place]:
                own = float(np.nan_to_num(self.files["write_time"][place])) - float(row.busy.sum())
                out[place] = max(0.0, own / max(len(row.ranks), 1))
        return out

    @functools.cached_property
    def in_mpi(self) -> Numbers:
        """Return the time (s) that the slowest rank of each file spends in MPI-IO calls; 0 if unknown."""
        return self.of_mpi(self.files.direction)

    @functools.cached_property
    def mean_in_mpi(self) -> Numbers:
        """Return the same of an average rank."""
        return self.of_mpi(self.files.direction, mean=True)

    def of_mpi(self, *ways: str, mean: bool = False) -> Numbers:
        """Return the time (s) of each file's slowest rank, or an average one, in MPI-IO calls that read, or write.

        If ranks wait in calls of a library above, it is the time in these calls.
        """
        ledger = self.ledger
        asked = ledger.means(*ways, layer="MPI-IO").least if mean else ledger.likely_of_files(*ways, layer="MPI-IO")
        above = [sum(calls.above[way == "write"][not mean] for way in ways) for calls in self.calls]
        return np.maximum(ledger.at(self._numbers, asked), above)

    def inside_mpi(self, chosen: Flags | None) -> float:
        """Return the most time (s) of any rank in MPI-IO calls on chosen files (None: all); 0 if unknown."""
        known = self.busiest(self.files.direction, layer="MPI-IO", chosen=chosen)
        return max(known, float(self.in_mpi[chosen].max(initial=0.0)))

    @functools.cached_property
    def collective(self) -> Flags:
        """Return for each file whether collective MPI-IO calls move its bytes.

        Headers that each rank reads by itself may be more calls than those for the data. The large calls, which have
        nearly all bytes, are of the kind that has as many calls. Where neither has: of the kind that has more. If both
        have, the log does not show the kind, and no rule may treat the calls as collective.
        """
        together, alone = (np.nan_to_num(self.files[name]) for name in ("{collective}", "{independent}"))
        large = np.array([calls.large(self.write) if calls.sizes else 0.0 for calls in self.calls])
        off = [np.abs(np.log(np.maximum(count, 0.5) / np.maximum(large, 1.0))) for count in (together, alone)]
        clear = (large > 0) & (together > 0) & (np.minimum(*off) <= np.log(_AS_MANY))
        more = (self.per_file["no_collective"] <= self.limits.independent) & (together > 0)
        both = clear & (np.maximum(*off) <= np.log(_AS_MANY))
        return np.asarray(np.where(clear, off[0] <= off[1], more) & ~both)

    @functools.cached_property
    def calling(self) -> float:
        """Return the time (s) for I/O of the program's own calls: of the slowest rank, where that is longer.

        MPI-IO calls take longer than their requests, and calls on several files take longer than calls on the critical
        ones.
        """
        slowest = self.ledger.slowest(self.files.direction)
        inside = max(self.inside_mpi(None), slowest.least if slowest.narrow else 0.0)
        return inside if 1.1 * self.time < inside <= 1.1 * self.run_time else self.time

    def saved(self, chosen: Any) -> float:
        """Return the time in I/O that would be saved if the chosen files were not accessed (s)."""
        return (self.swept - self.time_without(chosen)) * self.time / self.swept if self.swept > 0 else 0.0

    def traced(self, chosen: Any) -> list[tuple[int, Row]]:
        """Return the chosen files of which DXT has all requests, most critical first."""
        return [
            (place, row)
            for place in self.order
            if chosen[place] and self.complete[place] and (row := self.rows[place]) is not None
        ]

    # ---- numbers -----------------------------------------------------------------------------------------------------

    @functools.cached_property
    def per_file(self) -> dict[str, Any]:
        """Return the values of every factor that has one a file, with the limits as thresholds."""
        return {
            name: one.values(self.files, self.thresholds)
            for name, one in factors(self.files.direction).items()
            if one.weighting == "exclusive"
        }

    @property
    def thresholds(self) -> dict[str, float]:
        """Return the limits that are thresholds of factors."""
        names = ("small_bytes", "alike_files", "alike_osts", "many_files", "small_file_bytes")
        return {name: getattr(self.limits, name) for name in names}

    @functools.cached_property
    def per_job(self) -> dict[str, float]:
        """Return the value of every factor for the job; NaN if unknown."""
        found = factors(self.files.direction)
        return {name: float(one.of_jobs(self.files, self.thresholds)[0]) for name, one in found.items()}

    @functools.cached_property
    def request_bytes(self) -> Numbers:
        """Return the mean size of a file's POSIX requests (B)."""
        requests = self.files.requests()
        out: Numbers = np.full(len(self.files), np.nan)
        np.divide(self.files["{bytes}"], requests, out=out, where=requests > 0)
        return out

    def common_sizes(self, chosen: Any) -> list[float]:
        """Return the sizes (B) of most requests to chosen files, the commonest first; none if one of them is the mean.

        The log has the sizes that are common in any file: these are the chosen ones' where they are not too many.
        """
        number = float(np.nansum(self.files.requests()[chosen]))
        mean = self.total("{bytes}", chosen) / max(number, 1.0)
        common = {} if self.activity is None else self.activity.common.get("POSIX", {})
        sizes = sorted(common, key=lambda size: -common[size])[:_MOST_SIZES]
        counts = np.cumsum([common[size] for size in sizes])
        enough = int(np.searchsorted(counts, _MOST_REQUESTS * number)) + 1
        if enough > len(sizes) or counts[enough - 1] > number / _MOST_REQUESTS:
            return []
        alike = any(abs(size - mean) <= (1 - _ALL) * mean for size in sizes[:enough])
        return [] if alike else [float(size) for size in sizes[:enough]]

    def commonest(self, requests: float) -> float:
        """Return the size (B) that nearly all of so many POSIX requests have; 0 where none prevails, or not known."""
        common = {} if self.activity is None else self.activity.common.get("POSIX", {})
        size = max(common, key=lambda size: common[size], default=0)
        return float(size) if size and _ALL * requests <= common[size] <= requests / _ALL else 0.0

    def common_request(self, chosen: Any) -> tuple[float, list[str]]:
        """Return the most that most requests to chosen files have (B), and the columns of larger ones.

        NaN where the mean is about as large, or no size prevails.
        """
        counts = np.array([np.nansum(self.files[name][chosen]) for name in bins(self.files.direction)])
        place, number = int(np.argmax(counts)), float(counts.sum())
        mean = self.total("{bytes}", chosen) / max(number, 1.0)
        least, most = ([0.0, *(float(bound or np.inf) for bound in SIZE_BINS.values())][place + way] for way in (0, 1))
        most = min(most, max(self.common_sizes(chosen), default=most))
        if not counts[place] >= 0.5 * number > 0 or 0.5 * least <= mean <= 2 * most:
            return float("nan"), []
        return most, bins(self.files.direction)[place + 1 :]

    def of_large(self, chosen: Any) -> float:
        """Return the most time (s) that requests larger than most of chosen files can take; NaN if unknown.

        No request takes longer than the longest request.
        """
        (_, larger), time = self.common_request(chosen), 0.0
        for place in np.flatnonzero(chosen).tolist():
            count = float(np.nansum([self.files[name][place] for name in larger]))
            time += count * self.calls[place].longest.get(self.write, float("nan")) if count else 0.0
        return time

    def traced_part(self, size: float, chosen: Any) -> float:
        """Return the share of the time in requests that requests of at most `size` (B) have; NaN if DXT lacks any.

        The result is also NaN if the chosen files are not nearly all accessed files, because DXT has the sum over all
        files.
        """
        all_traced = (np.array(self.complete) | ~self.files.critical).all()
        if self.activity is None or not all_traced or self.exclusive[chosen].sum() < _ALL * self.time:
            return float("nan")
        some, spent = self.activity.time_up_to(size, self.write)
        return some / spent if spent > 0 else float("nan")

    def part_up_to(self, size: float, chosen: Any) -> float:
        """Return the same, at least; without DXT what larger ones leave of the time; 0 where that is not known."""
        left = 1 - self.of_large(chosen) / max(self.total("{time}", chosen), 1e-9)
        return max(0.0, float(np.nan_to_num(np.fmax(self.traced_part(size, chosen), left))))

    @property
    def small(self) -> float:
        """Return the share of small requests of the job; 0 where they are as large as the bound on average."""
        requests = float(np.nansum(self.files.requests()[self.files.critical]))
        mean = self.total("{bytes}", self.files.critical) / requests if requests else float("nan")
        return 0.0 if mean >= self.limits.small_bytes / 2 else self.per_job["small"]

    @functools.cached_property
    def busy(self) -> float:
        """Return the share of the critical time that is at most spent in calls, all ranks together; NaN if unknown."""
        inside = np.minimum(self.files["{time}"] + np.nan_to_num(self.files["meta_time"]), self.exclusive)
        known = self.files.critical & ~np.isnan(inside)
        time = float(self.exclusive[known].sum())
        return float(inside[known].sum()) / time if time > 0 else float("nan")

    def total(self, name: str, chosen: Any) -> float:
        """Return the sum of a column over chosen files; NaN if none is known."""
        values = self.files[name][chosen]
        return float(np.nansum(values)) if not np.isnan(values).all() else float("nan")

    def mean(self, values: Any, chosen: Any) -> float:
        """Return the mean of known values over chosen files, weighted by exclusive time."""
        weights = np.where(np.isnan(values) | ~chosen, 0.0, self.exclusive)
        return float(np.nansum(values * weights) / weights.sum()) if weights.sum() else float("nan")

    def time_without(self, chosen: Any) -> float:
        """Return the critical time if the chosen files were not accessed (s)."""
        start, end = self.files.intervals()
        return float(sweep(np.where(chosen, np.nan, start), end).exclusive.sum())

    @functools.cached_property
    def shifted(self) -> Flags:
        """Return for each file whether its bytes are moved within it again and again: read, and written elsewhere.

        A library does so where a header grows. The library moves the bytes from behind, so as not to overwrite bytes
        that it has yet to move. So hardly any request of either direction lies behind the one before, unlike requests
        at random places. Where one request has all of the data, they stay where they are. Of large blocks each rank has
        few: then a rank begins each move behind the one before.
        """
        files, limits, moved, begun = self.files, self.limits, np.ones(len(self.files), bool), moved_on(self)
        for way, done, last in (("read", "read", "max_offset_read"), ("write", "written", "max_offset_written")):
            end, count = np.nan_to_num(files[last]) + 1, files.requests(way)
            moved &= np.nan_to_num(files[f"bytes_{done}"]) >= limits.again * end
            beginnings = np.where(begun, files["ranks"] * files[f"bytes_{done}"] / end, 0.0)
            moved &= files[f"seq_{way}s"] < limits.backward * count + beginnings
            moved &= 2 * files[f"bytes_{done}"] <= count * end
        return moved & (np.nan_to_num(files[f"max_offset_{'written' if self.write else 'read'}"]) > 0)

    @functools.cached_property
    def again(self) -> Numbers:
        """Return how often the bytes of each file up to the last one are moved; NaN where that is less than twice.

        And where ranks do not all read, unless one reads from front to back, again and again. Who reads again in small
        pieces what he has read at random places, or what MPI-IO is about to overwrite, is another thing.
        """
        files, limits = self.files, self.limits
        in_order, several = self.per_file["non_consecutive"] < limits.non_consecutive, files["ranks"] > 1
        in_order |= from_the_start(self)
        in_order |= self.shifted | (self.request_bytes >= limits.small_bytes / 2)
        if self.write:
            return np.where(in_order, rewritten(self), np.nan)
        ends = files["max_offset_read"] + 1
        written = np.nan_to_num(files["bytes_written"]) / np.maximum(files["max_offset_written"] + 1, 1.0)
        versions = np.where(self.shifted, 1.0, np.fmax(written, 1.0))  # of what the job itself writes between reads
        again: Numbers = np.where(ends > 1, files["bytes_read"] / np.maximum(ends, 1.0), np.nan) / versions
        each = (several & (again <= 1.1 * files["ranks"])) | in_order
        least = np.where(several, np.maximum(limits.alike_ranks * files["ranks"], 1.5), 1.0)
        all_read = ~(self.movers < least) & (again >= limits.alike_ranks * files["ranks"])
        all_read |= in_order & self.by_itself(again)
        sieved = (files["bytes_written"] > 0) & (files["mpiio_bytes_written"] > 0)
        own = each & all_read & ~(files["{collective}"] > 0) & ~sieved
        return np.where((own | moved_on(self) & self.shifted) & (again >= limits.again), again, np.nan)

    def by_itself(self, again: Numbers) -> Flags:
        """Return for each file whether its busiest rank moves its bytes many times over, if all do so `again` times.

        If what the busiest rank moves is not known, all ranks count.
        """
        ranks = np.nan_to_num(self.files["ranks"], nan=1.0)
        return np.asarray(again >= self.limits.often * np.where(np.isnan(self.movers), ranks, self.movers))

    @functools.cached_property
    def filled_by_one(self) -> Flags:
        """Return for each file whether one rank writes the whole file, as fill values, beside its share of the data."""
        files, ends = self.files, self.files["max_offset_written"] + 1
        least = files["fastest_rank_bytes"]  # 0: the others may append
        whole = np.abs(files["slowest_rank_bytes"] - least - ends) <= 0.02 * ends
        return np.asarray(self.write & (files["ranks"] > 1) & (least > 0) & whole)

    @functools.cached_property
    def together(self) -> Flags:
        """Return for each file whether ranks fill it together, or read all of it once, from front to back."""
        files, ends = self.files, self.files["max_offset_written" if self.write else "max_offset_read"] + 1
        ahead = files["{sequential}"] >= self.limits.forward * files.requests()
        once = np.abs(files["{bytes}"] - ends) <= 0.1 * ends
        return np.asarray((files["ranks"] > 1) & (self.movers >= 2) & ahead & once)

    @property
    def pending(self) -> Flags:
        """Return for each file whether MPI-IO calls return before their accesses have ended: the program goes on."""
        return self.ledger.at(self._numbers, self.ledger.pending.astype(float)) > 0

    @property
    def file_systems(self) -> list[str | None]:
        """Return the kind of each file's file system; None if unknown."""
        names = self.files.table.schema.names
        return self.files.table["fs_type"].to_pylist() if "fs_type" in names else [None] * len(self.files)

    @property
    def on_one_node(self) -> Flags:
        """Return for each file whether its file system is of one node, and locks no blocks; false where not known."""
        return np.isin(np.array(self.file_systems, dtype=object), OF_ONE_NODE)

    @functools.cached_property
    def bandwidth(self) -> float:
        """Return the bytes moved over the time for I/O (B/s); NaN where they are unknown."""
        moved = float(self.files.sum(self.files["{bytes}"])[0])
        return moved / self.calling if self.calling > 0 else float("nan")

    @functools.cached_property
    def of_distinct(self) -> float:
        """Return the same, with bytes that are moved again and again counted once: the job's gain for its time."""
        moved = np.nan_to_num(self.files["{bytes}"])
        once = moved / np.nan_to_num(self.again, nan=1.0)
        return self.bandwidth * float(once.sum()) / float(moved.sum()) if moved.sum() > 0 else self.bandwidth

    @property
    def of_calling(self) -> str:
        """Return what the time for I/O is, in words."""
        by_mpi = "MPI-IO " if self.inside_mpi(None) >= self.calling else ""
        own = f"time of the slowest rank in {by_mpi}{self.files.direction}s"
        return own if self.calling > self.time else self.of_time

    @functools.cached_property
    def known_osts(self) -> int | None:
        """Return the number of OSTs, if it is known; else None.

        From a store; else from the job's own files.
        """
        own = count_of_osts(np.unique(self.files.ost_pairs[1]).tolist())
        return max((number for number in (self.osts, own) if number is not None), default=None)

    @functools.cached_property
    def processes(self) -> float:
        """Return how many processes run at once; NaN where that is unknown."""
        return ranks.processes(self.files)

    @functools.cached_property
    def movers(self) -> Numbers:
        """Return how many ranks move the bytes of each file."""
        found = ranks.movers(self.files)
        for place, row in self.traced(self.files.critical):
            found[place] = row.moved.sum() / max(float(row.moved.max()), 1.0)
        return found

    @functools.cached_property
    def in_calls(self) -> Numbers:
        """Return the part of each file's exclusive time that its slowest rank spends in data calls (s)."""
        return np.asarray(np.minimum(self.in_requests, self.exclusive))

    @functools.cached_property
    def alone(self) -> tuple[list[int], float, float] | None:
        """Return the ranks that make nearly all metadata calls, the longest time in them (s) and the most opens.

        The busiest is the first; others of which each has hardly any do not count. None if they are more than half.
        Only a log shows it, by the records of files that a rank has for itself.
        """
        times, opens = self.ledger.alone()
        few = np.flatnonzero(times >= _MATTERS * times.max())
        few = few[np.argsort(-times[few], kind="stable")]
        least = self.limits.one_rank * float(np.nansum(self.files["meta_time"]))
        if not times[few].sum() >= least > 0 or 2 * len(few) > len(times):
            return None
        return few.tolist(), float(times[few].max()), float(opens[few].max())

    @functools.cached_property
    def owners(self) -> Whole:
        """Return whose each file is that one rank alone has opened; -1 for others, and where that is not known."""
        return ranks.owners(self.files, self.activity)

    @functools.cached_property
    def of_owners(self) -> Numbers:
        """Return the time (s) in data calls, and the bytes, of each rank in files of its own; zeros if unknown."""
        own = (self.owners >= 0) & self.files.counted
        values = (np.where(own, np.nan_to_num(self.files[name]), 0.0) for name in ("{time}", "{bytes}"))
        count = int(np.nan_to_num(max(self.processes, 1.0 + max(self.owners, default=0))))
        return np.stack([np.bincount(self.owners[own], each[own], count) for each in values])

    @functools.cached_property
    def rank_time(self) -> tuple[float, float]:
        """Return the time that a rank spends in metadata calls and in data calls, of both directions (s).

        If few ranks make nearly all metadata calls, it is the time of the slowest of these ranks.
        """
        meta = self.busiest("meta")
        return (meta if self.alone is None else max(meta, self.alone[1])), self.busiest("read", "write")

    @property
    def metadata(self) -> float:
        """Return the share of metadata calls in the time that a rank spends in calls; NaN if it spends none."""
        meta, data = self.rank_time
        return meta / (meta + data) if meta + data > 0 else float("nan")

    @property
    def lonely(self) -> bool:
        """Whether the job is known to have one process, or no MPI: nothing that ranks do together helps it."""
        return self.processes == 1 or self._without_mpi

    def by_hdf5(self, chosen: Flags) -> bool:
        """Return whether HDF5 has opened each chosen file, or its name ends so: not all logs have calls of HDF5."""
        table = self.files.table
        names = table["file"].to_pylist() if "file" in table.schema.names else [""] * len(self.files)
        each = zip(self.calls, names, chosen, strict=True)
        return all(calls.by_hdf5 or (name or "").endswith(HDF5) for calls, name, it in each if it)

    @property
    def uses_mpiio(self) -> bool:
        """Whether MPI-IO calls move bytes of a critical file: hints, and the tuner, change nothing else."""
        calls = np.nan_to_num(self.files["{independent}"]) + np.nan_to_num(self.files["{collective}"])
        return bool((calls[self.files.critical] > 0).any())

    @functools.cached_property
    def run_time(self) -> float:
        """Return the time in which any log of the job runs (s); NaN if unknown."""
        return ranks.run_time(self.files)

    @functools.cached_property
    def of_run(self) -> float:
        """Return the time for I/O over the run time; NaN where that is unknown."""
        return self.calling / self.run_time if self.run_time > 0 else float("nan")

    @functools.cached_property
    def opening(self) -> Numbers:
        """Return the time (s) of an average rank in MPI-IO calls that open or close each file, without waits."""
        return self.ledger.at(self._numbers, self.ledger.means("meta", layer="MPI-IO").least - self.ledger.waited)

    @functools.cached_property
    def io_time(self) -> float:
        """Return the time that the job needs for I/O at least (s): critical, or of a rank in calls of one kind.

        Calls without data are metadata calls, or calls of MPI-IO that open files, close them or set views.
        """
        meta = max(self.rank_time[0], self.busiest("meta", layer="MPI-IO"))
        times = (meta, self.busiest(self.files.direction, "sync"))
        possible = [time for time in times if not time > 1.1 * self.run_time]  # more is of threads, or of pipes
        return max([self.calling, *possible])

    @functools.cached_property
    def in_all_calls(self) -> float:
        """Return the time (s) in calls of any file, of all ranks together; NaN if MPI-IO may wait beside them."""
        files = self.files
        called = any(
            (files[f"mpiio_{kind}_{way}s"] > 0).any() for kind in ("coll", "indep", "nb") for way in ("read", "write")
        )
        lost = (files["partial"] > 0).any() or np.isnan(files["{time}"][files.timed()]).any()
        if called or lost or self.ledger.mean(layer="MPI-IO").least > 0:
            return float("nan")
        return float(sum(np.nansum(files[name]) for name in ("read_time", "write_time", "meta_time")))

    @property
    def trivial(self) -> bool:
        """Whether the time for I/O is known to be too little of the run time to be worth tuning."""
        return bool(np.fmin(self.io_time, self.in_all_calls) < self.limits.trivial * self.run_time)

    @property
    def fast(self) -> bool:
        """Whether the bandwidth is known and not low: of distinct bytes, as the others need not be moved."""
        return bool(self.of_distinct >= self.limits.fast)

    # ---- words -------------------------------------------------------------------------------------------------------

    def value(self, number: float) -> float:
        """Return a number as it may be said."""
        number = float(number)
        return rounded(number, 2) if self.anonymous else number

    def evidence(self, meaning: str, value: float, unit: str, *, exact: bool = False) -> list[Evidence]:
        """Return a piece of evidence, or none where the value is unknown."""
        return [] if np.isnan(value) else [Evidence(meaning, self.value(value), unit, exact)]

    def in_mpiio(self, chosen: Flags, requests: float) -> list[Evidence]:
        """Return the time in MPI-IO calls on chosen files as evidence, where it is longer than `requests` (s)."""
        inside = self.inside_mpi(chosen)
        return self.evidence(IN_MPIIO, inside, "s") if inside > requests else []

    @functools.cached_property
    def _names(self) -> list[str]:
        table = self.files.table
        names = table["file"].to_pylist() if "file" in table.schema.names else []
        if not names or (self.anonymous and not all(name and TAKEN_OUT.fullmatch(name) for name in names)):
            rank = {row: number for number, row in enumerate(self.order, 1)}
            return [f"file {rank.get(row, len(rank) + row + 1)}" for row in range(len(self.files))]
        return [name if name else "(a file without a name in the log)" for name in names]

    def name(self, row: int) -> str:
        """Return the name of a file, or its number among the critical ones."""
        return self._names[row]

    def named(self, chosen: Any, first: Numbers | None = None) -> list[str]:
        """Return the names of chosen files, most critical, or largest `first`, at the head; the rest as a number."""
        rows = [row for row in self.order if chosen[row]]
        others = np.flatnonzero(chosen & ~self.files.critical)
        rows += others[np.argsort(-self._each[others], kind="stable")].tolist()
        if first is not None:
            known = np.nan_to_num(first).tolist()
            rows.sort(key=lambda row: -known[row])
        more = [f"and {self.value(len(rows) - MOST_NAMES):.0f} more"] if len(rows) > MOST_NAMES else []
        return [self.name(row) for row in rows[:MOST_NAMES]] + more

    @functools.cached_property
    def _each(self) -> Numbers:
        """Return the time (s) of an average rank in calls on each file."""
        return self.ledger.at(self._numbers, self.ledger.means().least)

    @functools.cached_property
    def _of_ahead(self) -> Numbers | None:
        """Return the time (s) of the rank that is far ahead in calls, on each file; None if no rank is."""
        rank = self.ledger.ahead()[1]
        of_files = None if rank is None else self.ledger.cells(rank).seconds.most.sum(axis=0)
        return None if of_files is None else self.ledger.at(self._numbers, of_files)

    def of_slowest(self, chosen: Any) -> Any:
        """Return the chosen files on which the rank that is far ahead in calls spends time; else all chosen files.

        A sentence with the time of that rank thus names no file of other ranks.
        """
        own = chosen if self._of_ahead is None else chosen & (self._of_ahead > 0)
        return own if own.any() else chosen

    def at(self, chosen: Any, word: str = "") -> str:
        """Return chosen files after `word`, or "to" or "from": " to `a` and 3 more files"."""
        names = self.named(self.of_slowest(chosen), self._of_ahead)
        return where(names, word or ("to" if self.write else "from"), self._names)

    def such_as(self, chosen: Any) -> str:
        """Return the chosen file whose metadata calls take the most time: " such as `a`"."""
        return where(self.named(self.of_slowest(chosen), self.files["meta_time"])[:1], "such as", self._names)

    def ost_names(self, osts: Any) -> list[str]:
        """Return the names of OSTs."""
        shown = [str(number) if self.anonymous else str(int(ost)) for number, ost in enumerate(osts, 1)][:MOST_NAMES]
        return shown + ([f"and {len(osts) - MOST_NAMES} more"] if len(osts) > MOST_NAMES else [])

    def time_in(self, cause: Cause, chosen: Flags) -> float:
        """Return the time (s) that the busiest rank spends in calls of a cause on chosen files.

        A row without times has only the moments of its first and last access: then the result is the critical time.
        """
        inside = self.inside_mpi(chosen) if "MPI-IO" in cause.cells.layers else 0.0
        known = max(inside, self.busiest(*cause.cells.of_darshan(self.files.direction), chosen=chosen))
        return known if known > 0 else float(self.exclusive[chosen].sum())

    def most_of_a_rank(self, cause: Cause, chosen: Any) -> float:
        """Return the time (s) that a rank spends in calls of a cause on chosen files, at most; inf: not known.

        Each file's slowest rank may be another one: their times do not add up to a rank's.
        """
        if chosen is None or cause.outside or self.activity is None or self.activity.ledger is None:
            return float("inf")
        most = self.ledger_of(np.asarray(chosen)).slowest(*cause.cells.of_darshan(self.files.direction)).most
        above = [self.calls[place].above[self.write][1] for place in np.flatnonzero(chosen).tolist()]
        return float(max([most, *above]))

    def finding(self, cause: Cause, claim: Claim, *, chosen: Any = None, osts: Any = ()) -> Finding | None:
        """Return the finding of a claim; None if it explains too little of the I/O or of the run, or nothing.

        Parameters
        ----------
        chosen : the files that it is about.
        osts : the OSTs that it is about.
        """
        time = self.time_in(cause, np.asarray(chosen)) if claim.time is None else claim.time
        time, called = min(time, self.most_of_a_rank(cause, chosen)), sum(self.rank_time)
        base = max(self.time, time, 0.0 if cause.moves_data else called)
        least_sure = self.limits.sure if cause.least_sure is None else cause.least_sure
        confidence, reason = claim.confidence, claim.reason
        if confidence == "high" and time < least_sure * max(base, self.calling, called):
            small = f"the time of the finding is less than {worded(least_sure, 'share')} of the time in all I/O calls"
            confidence, reason = "medium", f"{reason}; but {small}"
        share = time / base if base > 0 else 0.0
        least = 0.5 * self.limits.trivial * float(np.nan_to_num(self.run_time))
        least = least if confidence == "high" else max(least, self.limits.least)
        if share < self.limits.reported or time < least:
            return None
        if chosen is not None:
            self.about[cause.name] = np.asarray(chosen)
        what = claim.what or cause.phrase.format(way=self.files.direction, at=self.at(chosen), of=self.at(chosen, "of"))
        return Finding(
            cause=cause.name,
            title=claim.title or f"{what[0].upper()}{what[1:]}.",
            what=what,
            share=self.value(share),
            time=self.value(time),
            confidence=confidence,
            reason=reason,
            evidence=claim.evidence,
            files=[] if chosen is None else self.named(chosen, None if cause.moves_data else self.files["meta_time"]),
            osts=self.ost_names(osts),
            advice=claim.advice,
            at_most=claim.at_most,
            costs=claim.costs or not claim.at_most,
            of=self.of_time if base <= self.time else CALLED,
            of_run=self.value(min(1.0, time / self.run_time)) if self.run_time > 0 else float("nan"),
            lost=self.activity is not None and self.activity.lost,
            by_times=claim.by_times,
            moves_data=cause.moves_data,
        )
