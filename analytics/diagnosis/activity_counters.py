"""Read counters of a Darshan log that are in no table: calls of each file, and the activity of single ranks.

Problem. Rules ask for counters that rows of a store do not have, of several layers, for each file.

Algorithm. :data:`_SUMS` names the counters that are added up over the records of a file. What is no sum has a function
of its own. Counters and times have the names that Darshan gives them (:data:`mpiio_ext.common.darshanfile.COUNTERS`).

Guarantees. A module of a version older than :data:`_OLDEST` counts for nothing. Of a damaged module, the records before
the damage count, and :attr:`.activity.Activity.damaged` names the module.
"""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from mpiio_ext.analytics.diagnosis.activity import Activity, spread
from mpiio_ext.analytics.diagnosis.late import all_but_one
from mpiio_ext.analytics.tables.arrays import Numbers
from mpiio_ext.common.darshanfile import Columns, DamagedLogError, DarshanFile, Requests

#: Versions of modules from which on their counters are read: those that diagnoses were compared with.
_OLDEST = {"POSIX": 3, "STDIO": 2, "MPI-IO": 2}
#: Attributes of :class:`.activity.Calls` that are sums over the records of a file, and their counters.
_SUMS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "POSIX": {
        "stats": ["STATS"],
        "maps": ["MMAPS"],
        "switches": ["RW_SWITCHES"],
        "handles": ["FILENOS", "DUPS"],
        "syncs": ["FSYNCS", "FDSYNCS"],
    },
    "STDIO": {"seeks": ["SEEKS"], "flushes": ["FLUSHES"]},
    "MPI-IO": {"opens": ["INDEP_OPENS", "COLL_OPENS"], "asked_syncs": ["SYNCS"], "views": ["VIEWS"]},
}
#: Requests of a file from which on the longest one is kept.
_MANY = 100
#: Sizes of accesses that are taken from each of the pieces in which records come.
_MOST_COMMON = 64
_SIZES = "0_100 100_1K 1K_10K 10K_100K 100K_1M 1M_4M 4M_10M 10M_100M 100M_1G 1G_PLUS".split()
#: In the counters of H5D and PNETCDF_VAR, and in the times of both (darshan-hdf5-log-format.h and
#: darshan-pnetcdf-log-format.h): the file, calls, and fastest rank, its bytes, slowest rank, its bytes.
_FILE = 0
_H5D_COLLECTIVE, _H5D_SPREAD = 89, slice(91, 95)
_PNETCDF_INDEPENDENT, _PNETCDF_COLLECTIVE, _PNETCDF_SPREAD = slice(2, 4), slice(4, 6), slice(117, 121)
_VARIABLE_TIMES = [8, 9, 10, 13, 14]  # reading, writing, metadata; of the fastest and of the slowest rank


def add_counters(found: Activity, log: DarshanFile) -> None:
    """Take in the counters of all modules."""
    for module in ("STDIO", "POSIX"):
        for columns in counters(found, log, module):
            _add_sums(found, columns)
            own = (columns.rank >= 0) & (columns.rank < found.processes)
            found.owners.update(zip(columns.file[own].tolist(), columns.rank[own].tolist(), strict=True))
            if module == "STDIO":
                _add_streams(found, columns)
            else:
                _add_posix(found, columns)
    for columns in counters(found, log, "MPI-IO"):
        _add_sums(found, columns)
        _add_common(found, columns)
        _add_sizes(found, columns)
        _add_apart(found, columns)
    with noted(found, "HDF5"):
        _add_hdf5(found, log)
    with noted(found, "PNETCDF_VAR"):
        for part in log.counters("PNETCDF_VAR") if "PNETCDF_VAR" in log.modules else ():
            _add_waits(found, part, "PnetCDF")


@contextlib.contextmanager
def noted(found: Activity, module: str) -> Iterator[None]:
    """Note a module that is damaged; records before the damage count."""
    try:
        yield
    except DamagedLogError:
        found.damaged.add(module)


def counters(found: Activity, log: DarshanFile, module: str) -> Iterator[Columns]:
    """Yield the records of a module; none if its version is too old."""
    if module in log.modules and log.version_of(module) >= _OLDEST[module]:
        with noted(found, module):
            for part in log.counters(module):
                yield Columns(part, module)


def opened(found: Activity, log: DarshanFile) -> dict[int, float]:
    """Return when the last rank had opened each file by MPI-IO (s), for logs that show it."""
    out: dict[int, float] = {}
    for columns in counters(found, log, "MPI-IO"):
        for file, end in zip(columns.file.tolist(), columns.time("OPEN_END_TIMESTAMP").tolist(), strict=True):
            if end >= 0:
                out[file] = max(end, out.get(file, 0.0))
    return out


def _add_sums(found: Activity, columns: Columns) -> None:
    """Add what :data:`_SUMS` names."""
    fields = _SUMS[columns.module]
    values = np.stack([columns.count(*names) for names in fields.values()], axis=1)
    for place in np.flatnonzero(values.any(axis=1)).tolist():
        calls = found.calls_of(columns.file[place])
        for field, value in zip(fields, values[place].tolist(), strict=True):
            setattr(calls, field, getattr(calls, field) + value)


def _add_streams(found: Activity, columns: Columns) -> None:
    """Add which files the C library reads or writes."""
    for place in np.flatnonzero(columns.count("READS", "WRITES")).tolist():
        found.calls_of(columns.file[place]).streamed = True


def _add_posix(found: Activity, columns: Columns) -> None:
    """Take in counters of POSIX that are no sums."""
    _add_metadata(found, columns)
    _add_common(found, columns)
    _add_unmoved(found, columns)
    _add_requests_of(found, columns)


def _add_metadata(found: Activity, columns: Columns) -> None:
    """Add the time in metadata calls of POSIX, evenly from the first open of a file to its last close."""
    begin, closed, meta = map(columns.time, ("OPEN_START_TIMESTAMP", "CLOSE_END_TIMESTAMP", "META_TIME"))
    rank = columns.rank
    known = (closed > begin) & (meta > 0) & np.isfinite(closed + meta) & (rank < found.processes)
    for shared in (False, True):
        here = known & ((rank < 0) == shared)
        start, end, rate = begin[here], closed[here], (meta / np.where(known, closed - begin, 1.0))[here]
        rows = 2 * found.bands + rank[here] * found.bands // found.processes
        if shared:  # of all ranks: each band has its part
            rows = np.tile(2 * found.bands + np.arange(found.bands), here.sum())
            start, end, rate = (np.repeat(each, found.bands) for each in (start, end, rate / found.bands))
        spread(found.line, found.run_time, rows, start, end, rate)


def _add_common(found: Activity, columns: Columns) -> None:
    """Add the sizes that are common among the accesses of each file."""
    sizes, counts = (
        np.concatenate([columns.value(f"ACCESS{k}_{of}") for k in range(1, 5)]) for of in ("ACCESS", "COUNT")
    )
    known = counts > 0
    every, which = np.unique(sizes[known], return_inverse=True)
    sums = np.bincount(which, counts[known], len(every))
    into = found.common.setdefault(columns.module, {})
    for place in np.argsort(-sums, kind="stable")[:_MOST_COMMON].tolist():
        into[int(every[place])] = into.get(int(every[place]), 0) + int(sums[place])


def _add_unmoved(found: Activity, columns: Columns) -> None:
    """Add how long files are open that no call reads or writes: that are mapped, or where POSIX_MMAPS is not known."""
    open_s = columns.time("CLOSE_END_TIMESTAMP") - columns.time("OPEN_START_TIMESTAMP")
    lasting = np.where((columns.count("READS", "WRITES") == 0) & (columns.value("MMAPS") != 0), open_s, 0.0)
    for place in np.flatnonzero(lasting > 0).tolist():
        calls = found.calls_of(columns.file[place])
        calls.unmoved = max(calls.unmoved, float(lasting[place]))


def _add_requests_of(found: Activity, columns: Columns) -> None:
    """Add the longest request in each direction, and those at common distances, of files with many."""
    strided = np.sum(
        [columns.count(f"STRIDE{k}_COUNT") * (columns.value(f"STRIDE{k}_STRIDE") > 0) for k in range(1, 5)], axis=0
    )
    longest = {False: columns.time("MAX_READ_TIME"), True: columns.time("MAX_WRITE_TIME")}
    many = np.maximum(columns.count("READS"), columns.count("WRITES")) >= _MANY
    for place in np.flatnonzero(many).tolist():
        calls = found.calls_of(columns.file[place])
        calls.strided += int(strided[place])
        for way, times in longest.items():
            calls.longest[way] = max(calls.longest.get(way, 0.0), float(times[place]))


def _add_sizes(found: Activity, columns: Columns) -> None:
    """Add the sizes of calls of MPI-IO."""
    for way, word in ((False, "READ"), (True, "WRITE")):
        counts = np.stack([columns.count(f"SIZE_{word}_AGG_{size}") for size in _SIZES], axis=1).astype(float)
        for file, each in zip(columns.file.tolist(), counts, strict=True):
            sizes = found.calls_of(file).sizes
            sizes[way] = sizes.get(way, np.zeros(len(_SIZES))) + each


def _largest_shares(columns: Columns, processes: int) -> Numbers:
    """Return the least share of a shared file's bytes that its busiest rank can have; 0 if unknown.

    The log has the variance of the ranks' bytes: their squares add up to at most the bytes of the busiest times all.
    """
    moved, shared = columns.count("BYTES_READ", "BYTES_WRITTEN").astype(float), columns.rank < 0
    squared = np.where(shared & (moved > 0), moved, np.inf) ** 2
    variance = np.maximum(columns.time("VARIANCE_RANK_BYTES"), 0.0)
    return np.asarray(np.minimum(processes * variance / squared + shared * (moved > 0) / processes, 1.0))


def _add_apart(found: Activity, columns: Columns) -> None:
    """Add which ranks of each file are the slowest and the fastest in MPI-IO calls, and how much they differ."""
    given = _largest_shares(columns, found.processes)
    whole = np.sum([columns.time(f"{kind}_TIME") for kind in ("READ", "WRITE", "META")], axis=0)
    least_s, most_s = columns.time("FASTEST_RANK_TIME"), columns.time("SLOWEST_RANK_TIME")
    first, of_first, last, of_last = (
        columns.value(f"{which}_RANK{what}") for which in ("FASTEST", "SLOWEST") for what in ("", "_BYTES")
    )
    rank, unclosed, seen = columns.rank, columns.time("CLOSE_END_TIMESTAMP") <= 0, set[int]()
    for place, file in enumerate(columns.file.tolist()):
        calls = found.calls_of(file)
        calls.given = float(given[place])
        calls.unclosed = bool(unclosed[place]) and (calls.unclosed or file not in seen)
        seen.add(file)
        if rank[place] < 0 and most_s[place] > 0:
            calls.apart = (float(least_s[place]), float(whole[place]) / found.processes, float(most_s[place]))
            calls.first, calls.last = int(first[place]), int(last[place])
            calls.alike = bool(of_first[place] == of_last[place] > 0)
            calls.more = float(of_last[place] - of_first[place])


def _add_hdf5(found: Activity, log: DarshanFile) -> None:
    """Add the files that HDF5 opens, its flushes of each, and the bytes of datasets that it moves, if all are known.

    The datasets of each file count also where the log lacks some.
    """
    there = [name for name in ("H5F", "H5D") if name in log.modules]
    if "H5F" not in there or not all(log.knows(name) for name in there):
        return
    whole = not any(log.partial(name) for name in there)
    moved: collections.defaultdict[int, Numbers] = collections.defaultdict(lambda: np.zeros(4))
    chunks: collections.defaultdict[int, float] = collections.defaultdict(float)
    for part in log.counters("H5D") if "H5D" in there else ():
        known = part["counters"].astype(np.int64)
        for file in np.unique(np.stack([known[:, 0], Columns(part, "H5D").file]), axis=1)[0].tolist():
            found.calls_of(file).arrays += 1
        sizes = np.maximum(known[:, 83:89].astype(float), 1.0)  # of a type, and of a chunk in each dimension
        chunked = (known[:, 84] > 0) * sizes.prod(axis=1)
        for (file, *each), chunk in zip(known[:, [0, 2, 3, 5, 6]].tolist(), chunked.tolist(), strict=True):
            moved[file] += np.maximum(each, 0)  # H5D_READS, _WRITES, and bytes of both
            chunks[file] = max(chunk, chunks[file])
        if whole:
            _add_waits(found, part)
    for part in log.counters("H5F") if whole else ():
        for file, (opens, flushes, _) in zip(
            Columns(part, "H5F").file.tolist(), part["counters"].tolist(), strict=True
        ):
            calls = found.calls_of(file)
            calls.by_hdf5, calls.hdf5_flushes = calls.by_hdf5 + max(opens, 0), calls.hdf5_flushes + max(flushes, 0)
            asked = moved[file].tolist()
            calls.dataset_calls, calls.datasets = dict(enumerate(asked[:2])), dict(enumerate(asked[2:]))
            calls.chunk = chunks[file]


def _add_waits(found: Activity, part: Requests, within: str = "HDF5") -> None:
    """Take the times of a library's collective calls on datasets where all ranks but one are in them for as long.

    HDF5 and PnetCDF let ranks wait for one another before they call MPI-IO, whose times then do not show it.
    """
    counters, times = part["counters"].astype(np.int64), part["times"].astype(float)
    shared = part["rank"].astype(np.int64) < 0
    if within == "PnetCDF":  # calls by their kinds
        collective = (counters[:, _PNETCDF_COLLECTIVE] > 0).any(axis=1)
        collective &= (counters[:, _PNETCDF_INDEPENDENT] <= 0).all(axis=1)
        ranks = counters[:, _PNETCDF_SPREAD]
    else:
        collective, ranks = np.greater(counters[:, _H5D_COLLECTIVE], 0), counters[:, _H5D_SPREAD]
    for place in np.flatnonzero(shared & collective).tolist():
        first, of_first, last, of_last = ranks[place].tolist()
        reading, writing, meta, least, most = times[place, _VARIABLE_TIMES].tolist()
        calls = found.calls_of(int(counters[place, _FILE]))
        mean, way = (reading + writing + meta) / found.processes, writing > reading
        if of_first == of_last > 0 and all_but_one(least, mean, most, found.processes) > calls.apart[1]:
            calls.apart, calls.within = (least, mean, most), within
            calls.first, calls.last, calls.alike, calls.more = first, last, True, 0.0
            part = max(reading, writing) / (reading + writing + meta)
            calls.above[way] = part * mean, part * most
