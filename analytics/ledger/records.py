"""What one source knows of the time in calls: one record for each layer, file and rank, or group of ranks.

Problem. Darshan's counters, DXT, tables of a store and recordings have different kinds of times: times of one rank, or
sums of all ranks together with the times of the slowest and the fastest rank.

Content. :data:`RECORD` has the times as the source has them. A record of one rank is exact. If `rank` is :data:`ALL`,
seconds and counts are sums over all ranks of the job. If `rank` is :data:`SOME`, they are sums over `ranks` of them,
and the source does not show which ranks.

Guarantees. Seconds are finite and not negative. An unknown number of calls is 0, an unknown rank is -1.

Source: darshan-runtime, darshan-posix.c, darshan-mpiio.c, darshan-stdio.c (reduction of shared records).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mpiio_ext.analytics.tables.arrays import Numbers
from mpiio_ext.common.darshanfile import Columns, DamagedLogError, DarshanFile

#: Layers, by number. A call of a layer may make calls of POSIX, which are inside of it.
LAYERS = ("POSIX", "STDIO", "MPI-IO")
#: Kinds of calls. Darshan adds the time of syncs to "write", and that of open, close, seek and stat to "meta", with the
#: time in which a rank waits for others in these calls: "waiting", if recordings show it.
KINDS = ("read", "write", "meta", "sync", "lock", "rename", "unlink", "mapping", "other", "waiting")
#: Ranks of records that are of several ranks.
ALL, SOME = -1, -2

RECORD = np.dtype(
    [
        ("layer", "i1"),
        ("file", "i8"),
        ("rank", "i4"),
        ("ranks", "i4"),
        ("seconds", "f8", (len(KINDS),)),
        ("calls", "i8", (len(KINDS),)),
        ("bytes", "i8", (2,)),  # read, written
        ("opens", "i8"),
        ("stats", "i8"),
        ("renames", "i8"),
        ("pending", "i8"),  # calls that return before their access has ended: nonblocking ones
        ("slowest", "i4"),  # -1: not known
        ("slowest_s", "f8"),
        ("fastest", "i4"),
        ("fastest_s", "f8"),
        ("first", "f8"),  # begin of the first call, end of the last one (s since the start of the job); 0: not known
        ("last", "f8"),
        ("inside", "?"),  # of a file of the MPI library: calls on it are inside of MPI-IO calls on another file
    ]
)
Records = npt.NDArray[np.void]

_SHARED_POINTER = re.compile(r"/\.[^/]+\.shfp\.\d+")
_SPANS = ("OPEN", "READ", "WRITE", "CLOSE")
#: Of each layer the counters of calls: of the first four kinds; that open; that inspect a file by its
#: name; that rename it; that return before their access has ended.
_COUNTED: dict[str, tuple[Sequence[str], ...]] = {
    "POSIX": (
        ("READS",),
        ("WRITES",),
        ("OPENS", "SEEKS", "STATS"),
        ("FSYNCS", "FDSYNCS"),
        ("OPENS",),
        ("STATS",),
        ("RENAME_SOURCES",),
        (),
    ),
    "STDIO": (("READS",), ("WRITES",), ("OPENS", "SEEKS"), ("FLUSHES",), ("OPENS",), (), (), ()),
    "MPI-IO": (
        ("INDEP_READS", "COLL_READS", "SPLIT_READS", "NB_READS"),
        ("INDEP_WRITES", "COLL_WRITES", "SPLIT_WRITES", "NB_WRITES"),
        ("INDEP_OPENS", "COLL_OPENS", "VIEWS"),
        ("SYNCS",),
        ("INDEP_OPENS", "COLL_OPENS"),
        (),
        (),
        ("NB_READS", "NB_WRITES", "SPLIT_READS", "SPLIT_WRITES"),
    ),
}


def empty(count: int) -> Records:
    """Return so many records without any call."""
    found = np.zeros(count, RECORD)
    found["ranks"], found["slowest"], found["fastest"] = 1, -1, -1
    return found


def of_log(log: DarshanFile, processes: int) -> tuple[Records, bool]:
    """Return the records of a Darshan log, and whether records lack: damaged, or without room in Darshan's memory."""
    found, partial = [empty(0)], False
    for number, layer in enumerate(LAYERS):
        if layer not in log.modules:
            continue
        partial |= log.partial(layer)
        try:
            for part in log.counters(layer):
                found.append(of_part(part, number, layer, processes))  # what stands before a damage counts
        except DamagedLogError:
            partial = True
    every = np.concatenate(found)
    if "MPI-IO" in log.modules:
        every["inside"] = np.isin(every["file"].view(np.uint64), _of_the_library(log))
    return every, partial


def _of_the_library(log: DarshanFile) -> npt.NDArray[np.uint64]:
    """Return the numbers of the files in which ROMIO stores shared file pointers; none if the names are damaged."""
    try:
        found = [number for number, name in log.names() if _SHARED_POINTER.search(name)]
    except DamagedLogError:
        found = []
    return np.array(found, np.uint64)


def of_part(part: npt.NDArray[np.void], number: int, layer: str, processes: int) -> Records:
    """Return records of counters of a layer, whose number among `LAYERS` is `number`, as a log has them."""
    columns = Columns(part, layer)

    def time(name: str) -> Numbers:
        return _known(columns.time(name))

    out = empty(len(part))
    out["layer"], out["file"], out["rank"] = number, columns.file, columns.rank
    shared = out["rank"] < 0
    out["rank"][shared], out["ranks"] = ALL, np.where(shared, processes, 1)
    *calls, opens, stats, renames, pending = (columns.count(*wanted) for wanted in _COUNTED[layer])
    out["calls"][:, : len(calls)] = np.stack(calls, axis=1)
    for kind, name in enumerate(("READ_TIME", "WRITE_TIME", "META_TIME")):
        out["seconds"][:, kind] = time(name)
    out["bytes"] = np.stack([columns.count("BYTES_READ"), columns.count("BYTES_WRITTEN")], axis=1)
    handles = columns.count("FILENOS", "DUPS") if layer == "POSIX" else 0  # further descriptors of open files
    out["opens"], out["stats"], out["pending"] = np.maximum(opens - handles, 0), stats, pending
    out["renames"] = renames
    there = shared & (time("SLOWEST_RANK_TIME") > 0)  # the fastest one may have no time
    for which in ("slowest", "fastest"):
        rank = columns.value(f"{which}_rank".upper())
        known = there & (rank >= 0) & (rank < processes)
        out[which], out[f"{which}_s"] = (
            np.where(known, rank, -1),
            np.where(known, time(f"{which}_rank_time".upper()), 0),
        )
    starts = np.stack([time(f"{name}_START_TIMESTAMP") for name in _SPANS])
    out["first"] = np.where(starts > 0, starts, np.inf).min(axis=0)
    out["first"][np.isinf(out["first"])] = 0.0
    out["last"] = np.max([time(f"{name}_END_TIMESTAMP") for name in _SPANS], axis=0)
    return out


def _known(times: Numbers) -> Numbers:
    return np.where(np.isfinite(times), np.maximum(times, 0.0), 0.0)
