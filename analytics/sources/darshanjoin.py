"""Joins the records of Darshan logs: one row a file, one row of sums and one of scalars a log.

Problem. A file has a record for each module that saw it, and either one shared record, when every rank opened it, or
one for each rank. The store has one row a file. Scalars of the whole log connect a job with the counters of the
servers: bytes and requests by record, the time of the slowest rank, the interface that moved most.

Algorithm. Records of many logs are stacked; a sort by log and ID gives the row of each. Tables say which counters join
which columns: added up, highest, first (the smallest time but 0, which means never), last. A negative counter is absent
(Darshan's -1, also for counters that the log's version lacks) and changes nothing, so that a column which no record has
is absent in the result. Ranks are counted by sorting the pairs (file, rank) of the records that say "opened". A file is
written until its last sync ends, as far as the time in its writes shows. Of each observed counter of POSIX a log has
the sum, the number of records, the least and the greatest value. A shared record (rank -1) gives the time of its
slowest rank. Of the others the times in metadata, reading and writing are added up by rank, and the greatest of these
sums counts. So do darshan-parser's "slowest_rank_io_time" of unique files and "time_by_slowest" of shared ones.

Guarantees. Absent are `ABSENT` among whole numbers and NaN among times. Sums of whole numbers end at the highest one;
times are added up in the order of the records. No step a record, and none a log.

Source: darshan-util, darshan-parser.c (performance by the slowest rank); TOKIO, summarize_job (which counters).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from mpiio_ext.analytics.tables.arrays import Flags, Numbers, Whole
from mpiio_ext.analytics.tables.schema import SIZE_BINS
from mpiio_ext.common.darshanfile import place_of

ABSENT = int(np.iinfo(np.int64).min)
_HIGHEST = int(np.iinfo(np.int64).max)
#: Columns of whole numbers (int64) or times (float64), by name.
Columns: TypeAlias = dict[str, Any]

#: Column -> counter: added up over POSIX and STDIO; highest over both; added up over POSIX; added up over MPI-IO.
_SUMS = {name: name.upper() for name in ("bytes_read", "bytes_written", "reads", "writes", "opens")}
_TIMES = {name: name.upper() for name in ("read_time", "write_time", "meta_time")}
_ENDS = {f"{way}_{end}": f"{way}_{end}_TIMESTAMP".upper() for end in ("start", "end") for way in ("read", "write")}
_HIGHEST_OF = {"max_offset_read": "MAX_BYTE_READ", "max_offset_written": "MAX_BYTE_WRITTEN"}
_POSIX_SUMS = {
    **{f"{how}_{way}": f"{how}_{way}".upper() for how in ("consec", "seq") for way in ("reads", "writes")},
    **{f"{way}_size_{size}": f"SIZE_{way}_{size}".upper() for way in ("read", "write") for size in SIZE_BINS},
    "unaligned": "FILE_NOT_ALIGNED",
}
_MPIIO_CALLS = [f"{how}_{way}" for how in ("indep", "coll", "nb") for way in ("reads", "writes")]
_MPIIO_SUMS = {f"mpiio_{name}": name.upper() for name in (*_MPIIO_CALLS, "bytes_read", "bytes_written")}
#: Of shared records: bytes and rank, times.
_EXTREMES = {name: name.upper() for name in ("fastest_rank_bytes", "slowest_rank_bytes", "slowest_rank")}
_EXTREME_TIMES = {name: name.upper() for name in ("fastest_rank_time", "slowest_rank_time")}
#: What is absent where POSIX, which a log has, cannot be read: STDIO alone is nearly nothing.
ACTIVITY = (*_SUMS, *(name for name in _POSIX_SUMS if name[:4] in ("cons", "seq_")), *_TIMES)
_FORGOTTEN = (*ACTIVITY, "ranks", "root_bytes_written", *_ENDS, *_HIGHEST_OF)
#: Counters of POSIX of which a log has sum, number, least and greatest: whole numbers, times.
_OBSERVED = (
    *("bytes_read", "bytes_written", "reads", "writes", "opens", "seq_reads", "seq_writes", "stats"),
    *("file_not_aligned", "mem_not_aligned"),
)
_OBSERVED_TIMES = ("meta_time", "read_time", "write_time")


class _Groups:
    """Values by group: the group of each, of `count` groups."""

    def __init__(self, of: Whole, count: int) -> None:
        self.of, self.count = of, count
        self._order = np.argsort(of, kind="stable")
        ordered = of[self._order]
        self._starts = np.flatnonzero(np.diff(ordered, prepend=-1))
        self._there = ordered[self._starts]

    def reduced(self, how: np.ufunc, values: Any, empty: Any) -> Any:
        """Return values of each group joined by a ufunc, `empty` for a group without values."""
        out = np.full((self.count, *values.shape[1:]), empty, values.dtype)
        if len(self._starts):
            out[self._there] = how.reduceat(values[self._order], self._starts, axis=0)
        return out

    def highest(self, values: Whole) -> Whole:
        """Return the highest value of each group that is not negative."""
        found = self.reduced(np.maximum, values, -1)
        return np.where(found < 0, ABSENT, found)

    def sums(self, values: Whole) -> Whole:
        """Return the sum of the values that are not negative; it ends at the highest number."""
        there, real = self.reduced(np.maximum, values, -1) >= 0, np.maximum(values, 0)
        if real.size and int(real.max()) * len(real) > _HIGHEST:
            exact = self.reduced(np.add, real.astype(object), 0)
            found = np.minimum(exact, _HIGHEST).astype(np.int64)
        else:
            found = self.reduced(np.add, real, 0)
        return np.where(there, found, ABSENT)

    def counts(self, chosen: Any) -> Whole:
        """Return how many values of each group are chosen (flags)."""
        return np.bincount(self.of[chosen], minlength=self.count).astype(np.int64)

    def seconds(self, times: Numbers) -> Numbers:
        """Return the sum of the times of each group that are known, in their order."""
        real = _known(times)
        found = np.bincount(self.of[real], times[real], self.count)
        return np.where(self.counts(real) > 0, found, np.nan)

    def first(self, times: Numbers) -> Numbers:
        """Return the smallest time but 0."""
        found = self.reduced(np.minimum, np.where(_known(times) & (times > 0), times, np.inf), np.inf)
        return np.where(found < np.inf, found, np.nan)

    def last(self, times: Numbers) -> Numbers:
        """Return the greatest time but 0."""
        found = self.reduced(np.maximum, np.where(_known(times), times, 0.0), 0.0)
        return np.where(found > 0, found, np.nan)


def _known(times: Numbers) -> Flags:
    return np.isfinite(times) & (times >= 0)


class Records:
    """Records of one module of many logs, one log behind the other."""

    def __init__(self, module: str, of_logs: Sequence[Whole | None]) -> None:
        found = [words for words in of_logs if words is not None]
        self.module = module
        width = place_of(module, "VARIANCE_RANK_BYTES") + 1
        self.words = np.concatenate(found) if found else np.zeros((0, width), np.int64)
        self.log = np.repeat(np.arange(len(of_logs)), [0 if words is None else len(words) for words in of_logs])
        self.file, self.rank = self.words[:, 0], self.words[:, 1]

    def whole(self, names: Sequence[str]) -> Whole:
        """Return counters, a column each."""
        return self.words.take([place_of(self.module, name) for name in names], axis=1)

    def times(self, names: Sequence[str]) -> Numbers:
        """Return times (s), a column each."""
        return self.whole(names).view(np.float64)

    def opened(self) -> Flags:
        """Return whether a record shows that its file was opened."""
        names = ("INDEP_OPENS", "COLL_OPENS") if self.module == "MPI-IO" else ("OPENS",)
        return np.asarray((self.whole(names) > 0).any(axis=1))


class Rows:
    """The rows of files: of each its log and its ID, and of each record its row.

    Parameters
    ----------
    parts : log and file of each record of POSIX, MPI-IO, LUSTRE and STDIO; rows are in the order of first records.
    """

    def __init__(self, parts: Sequence[tuple[Whole, Whole]]) -> None:
        log, file = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.lexsort((file, log))
        new = np.ones(len(order), bool)
        new[1:] = (log[order][1:] != log[order][:-1]) | (file[order][1:] != file[order][:-1])
        first = order[new]
        rank = np.lexsort((first, log[first]))
        place = np.empty(len(first), np.int64)
        place[rank] = np.arange(len(first))
        row = np.empty(len(order), np.int64)
        row[order] = place[np.cumsum(new) - 1]
        self.log, self.file = log[first][rank], file[first][rank]
        self.count = len(self.log)
        self.of = np.split(row, np.cumsum([len(each) for each, _ in parts])[:-1])


def files(rows: Rows, posix: Records, mpiio: Records, stdio: Records, jobs: Mapping[str, Any], lost: Flags) -> Columns:
    """Return the columns of rows of files, but those of their layouts.

    Parameters
    ----------
    rows : of the records of POSIX, MPI-IO, LUSTRE and STDIO.
    posix, mpiio, stdio : the records.
    jobs : ``processes``, ``start_time`` (s since 1970) and ``run_time`` (s; NaN: not known) of each log.
    lost : logs of which POSIX cannot be read.
    """
    of_posix, of_mpiio, _, of_stdio = rows.of
    both = _Groups(np.concatenate([of_posix, of_stdio]), rows.count)

    def data(names: Mapping[str, str]) -> Whole:
        return np.concatenate([each.whole(list(names.values())) for each in (posix, stdio)])

    found: Columns = dict(zip(_SUMS, both.sums(data(_SUMS)).T, strict=True))
    found |= zip(_HIGHEST_OF, both.highest(data(_HIGHEST_OF)).T, strict=True)
    found |= zip(_TIMES, map(both.seconds, data(_TIMES).view(np.float64).T), strict=True)
    ends = data(_ENDS).view(np.float64).T
    found |= {
        name: (both.first if name.endswith("start") else both.last)(times)
        for name, times in zip(_ENDS, ends, strict=True)
    }
    alone = _Groups(of_posix, rows.count)
    found |= zip(_POSIX_SUMS, alone.sums(posix.whole(list(_POSIX_SUMS.values()))).T, strict=True)
    found["alignment"] = alone.highest(posix.whole(["FILE_ALIGNMENT"])[:, 0])
    split = np.full((len(of_mpiio), len(_MPIIO_SUMS)), -1, np.int64)
    split[:, 2:4] = mpiio.whole(["SPLIT_READS", "SPLIT_WRITES"])  # collective, too
    calls = np.concatenate([mpiio.whole(list(_MPIIO_SUMS.values())), split])
    found |= zip(_MPIIO_SUMS, _Groups(np.tile(of_mpiio, 2), rows.count).sums(calls).T, strict=True)
    found |= _extremes(both, np.concatenate([posix.rank, stdio.rank]), data)
    found["ranks"] = _ranks(rows, (posix, mpiio, stdio), jobs["processes"])
    synced = alone.counts((posix.whole(["FSYNCS", "FDSYNCS"]) > 0).any(axis=1)) > 0
    _extend_to_syncs(found, synced, jobs["processes"][rows.log], jobs["run_time"][rows.log])
    for name in _ENDS:
        found[name] = found[name] + jobs["start_time"][rows.log]
    for name in _FORGOTTEN:
        found[name] = np.where(lost[rows.log], np.nan if found[name].dtype == np.float64 else ABSENT, found[name])
    return found


def _extremes(both: _Groups, rank: Whole, data: Any) -> Columns:
    """Return the fastest and slowest rank of shared files, and rank 0's bytes in files that are not shared.

    The former are those of a file's first shared record: of POSIX, or else of STDIO.
    """
    shared = rank < 0
    place = both.reduced(np.minimum, np.where(shared, np.arange(len(rank)), len(rank)), len(rank))
    there = place < len(rank)
    found: Columns = {}
    for names, empty in ((_EXTREMES, ABSENT), (_EXTREME_TIMES, np.nan)):
        values = data(names)
        values = values if names is _EXTREMES else values.view(np.float64)
        picked = np.full((both.count, len(names)), empty, values.dtype)
        picked[there] = values[place[there]]
        real = picked >= 0 if names is _EXTREMES else _known(picked)
        found |= zip(names, np.where(real, picked + 0, empty).T, strict=True)  # +0: no -0.0
    found["slowest_rank"] = np.where(found["slowest_rank"] < 1 << 31, found["slowest_rank"], ABSENT)
    written = data({"": "BYTES_WRITTEN"})[:, 0]
    root = np.maximum(both.sums(np.where(rank == 0, written, -1)), 0)
    found["root_bytes_written"] = np.where((both.counts(~shared) > 0) & ~there, root, ABSENT)
    return found


def _ranks(rows: Rows, every: Sequence[Records], processes: Whole) -> Whole:
    """Return how many ranks have opened each file, through any interface."""
    which = [rows.of[0], rows.of[1], rows.of[3]]
    row, rank = np.concatenate(which), np.concatenate([records.rank for records in every])
    opened = np.concatenate([records.opened() for records in every])
    groups = _Groups(row, rows.count)
    by_all = groups.counts(opened & (rank < 0)) > 0
    own = opened & (rank >= 0)
    row, rank = row[own], rank[own]
    order = np.lexsort((rank, row))
    row, rank = row[order], rank[order]
    new = np.ones(len(row), bool)
    new[1:] = (row[1:] != row[:-1]) | (rank[1:] != rank[:-1])
    found = np.where(by_all, processes[rows.log], np.bincount(row[new], minlength=rows.count))
    there = groups.counts(np.ones(len(groups.of), bool)) > 0
    return np.where(there, found, ABSENT)


def opened(rows: Rows, every: Sequence[Records]) -> Flags:
    """Return which files any rank has opened, through any interface; `every`: POSIX, MPI-IO, STDIO."""
    found = np.zeros(rows.count, bool)
    for of, records in zip((rows.of[0], rows.of[1], rows.of[3]), every, strict=True):
        found[of[records.opened()]] = True
    return found


def _extend_to_syncs(found: Columns, synced: Flags, processes: Whole, run_time: Numbers) -> None:
    """Let the writes of files end with their last syncs.

    Darshan adds the time of syncs to that of writes, and does not move the end of the last write. A file is written at
    least for the time that its slowest rank writes and syncs: analytics/diagnosis/ranks.py has the same of any calls.
    """
    share = np.where(found["ranks"] > 0, found["ranks"], np.maximum(processes, 1)).astype(np.float64)
    read, written, meta = (np.nan_to_num(found[name], nan=0.0, posinf=np.inf) for name in _TIMES)
    busy, slowest = written / share, found["slowest_rank_time"]
    longest = np.fmin(np.fmax(slowest - (meta + read) / share, busy), written)
    until = found["write_start"] + np.where(np.isnan(slowest), busy, longest)
    until = np.fmin(until, np.where(run_time >= 0, run_time, np.nan))
    until = np.where(synced & ~np.isnan(found["write_start"]) & (until > 0), until, np.nan)
    found["write_end"] = np.fmax(found["write_end"], until)


def sums(rows: Rows, found: Columns, was_opened: Flags, count: int) -> Columns:
    """Return sums over the files of each of `count` logs, and when any was first and last accessed."""
    groups = _Groups(rows.log, count)
    out: Columns = {name: (groups.seconds if name in _TIMES else groups.sums)(found[name]) for name in ACTIVITY}
    out["files"] = groups.counts(was_opened)
    out["files_read"], out["files_written"] = (groups.counts(found[f"bytes_{way}"] > 0) for way in ("read", "written"))
    for name in _ENDS:
        out[name] = groups.reduced(np.fmin if name.endswith("start") else np.fmax, found[name], np.nan)
    return out


def summary(posix: Records, mpiio: Records, stdio: Records, count: int) -> Columns:
    """Return scalars of each of `count` logs; see `mpiio_ext.analytics.sources.darshan.read_logs`."""
    groups = _Groups(posix.log, count)
    out: Columns = {}
    values = posix.whole([name.upper() for name in _OBSERVED])
    totals, greatest = groups.sums(values), groups.highest(values)
    least = groups.reduced(np.minimum, np.where(values < 0, _HIGHEST, values), _HIGHEST)
    for k, name in enumerate(_OBSERVED):
        number = groups.counts(values[:, k] >= 0)
        out |= {f"tot_{name}": totals[:, k], f"num_{name}": np.where(number > 0, number, ABSENT)}
        out |= {f"min_{name}": np.where(number > 0, least[:, k], ABSENT), f"max_{name}": greatest[:, k]}
    times = posix.times([name.upper() for name in _OBSERVED_TIMES])
    for name, column in zip(_OBSERVED_TIMES, times.T, strict=True):
        real = _known(column)
        number = groups.counts(real)
        least, most = (
            groups.reduced(how, np.where(real, column + 0.0, empty), empty)
            for how, empty in ((np.minimum, np.inf), (np.maximum, -np.inf))
        )
        out |= {f"tot_f_{name}": groups.seconds(column), f"num_f_{name}": np.where(number > 0, number, ABSENT)}
        out |= {
            f"{how}_f_{name}": np.where(number > 0, value, np.nan) for how, value in (("min", least), ("max", most))
        }
    for api, records in (("posix", posix), ("stdio", stdio), ("mpiio", mpiio)):
        of, moved = _Groups(records.log, count), records.whole(["BYTES_READ", "BYTES_WRITTEN"])
        total = of.sums(moved)
        moving = of.sums(np.where(moved < 0, -1, moved > 0))
        for name, both in (("bytes", total), ("records", moving)):
            out |= {f"{api}_{name}_read": both[:, 0], f"{api}_{name}_written": both[:, 1]}
    return out | _slowest(posix, groups, times)


def _slowest(posix: Records, groups: _Groups, times: Numbers) -> Columns:
    """Return the time of the slowest rank on files of its own, and of the slowest ranks of shared files (s)."""
    spent = functools.reduce(np.add, np.where(_known(times), times, 0.0).T)
    own = posix.rank >= 0
    rows = Rows([(posix.log[own], posix.rank[own])])  # a row for each rank of a log
    unique = _Groups(rows.of[0], rows.count).seconds(spent[own])
    longest = _Groups(rows.log, groups.count).reduced(np.maximum, unique, np.nan)
    shared = np.nan_to_num(posix.times(["SLOWEST_RANK_TIME"])[:, 0], nan=0.0, posinf=0.0, neginf=0.0)
    return {"unique_time": longest, "shared_time": groups.seconds(np.where(own, np.nan, np.maximum(shared, 0.0)))}
