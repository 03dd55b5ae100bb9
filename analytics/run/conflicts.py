"""What the writes of a run cost in locks, on file systems that grant them: by the recorded requests, and by the model.

Problem. Ranks that write into the same stripe, or block, make the file system revoke locks from one another, and the
program does not detect it.

Algorithm. Recorded writes of a file are put into order of time by lock unit. A write to a unit that another rank wrote
last has to take the lock from that rank. For collective writes the plan in force (method, aggregators, stripe size,
servers) goes through :mod:`mpiio_ext.partitioning.locks`, and the other methods likewise.

Guarantees. File systems without locks between clients, and files of unknown layout, are left out. Memory and time are
bounded: the module makes no statement about more than `_MOST_UNITS` units, or a plan of more than `_MOST_STRIPES`
stripes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mpiio_ext.analytics.run import library
from mpiio_ext.common.darshanfile import DamagedLogError, DarshanFile
from mpiio_ext.partitioning import Geometry, methods
from mpiio_ext.partitioning.locks import FileSystem, gpfs, lustre, simulate

#: Lock protocols as layouts name them, and who has them.
_SYSTEMS = {"server": lustre, "token": gpfs}
_MOST_UNITS, _MOST_STRIPES = 1 << 22, 1 << 20

Document = Mapping[str, Any]
#: Recorded writes: of each its rank, when it began (s), and the first and the last byte.
_Writes = list[np.ndarray[Any, Any]]


def table(
    log: Path, numbers: Mapping[str, int], storage: Sequence[Document], statistics: Sequence[Document]
) -> list[dict[str, Any]]:
    """Return a row for each file with writes on a file system that grants locks.

    Parameters
    ----------
    log : with the recorded requests (DXT), as far as there was room.
    numbers : of files in it, by name.
    storage, statistics : how files lie on servers, and what the library did, as the page has them.
    """
    there = [row for row in storage if row["lock_protocol"] in _SYSTEMS and row["stripe_size"]]
    if not there:
        return []
    writes = _recorded(log, {numbers[row["file"]] for row in there if row["file"] in numbers})
    out = []
    for row in there:
        unit, made = int(row["stripe_size"]), _SYSTEMS[row["lock_protocol"]]()
        seen = writes.get(numbers.get(row["file"], -1))
        counted = None if seen is None else _counted(seen, unit)
        did = next((one for one in statistics if library.is_of(one, row["file"])), None)
        planned = None if did is None else _planned(did, row, made, 0 if seen is None else len(np.unique(seen[0])))
        if counted is not None or planned is not None:
            out.append(
                {"file": row["file"], "locks": f"{made.name}: {row['lock_protocol']}", "unit_bytes": unit}
                | (counted or dict.fromkeys(("writes", "units", "shared_units", "conflicts")))
                | (
                    planned
                    or dict.fromkeys(
                        ("method", "plan_lock_requests", "plan_conflicts", "least_method", "least_conflicts")
                    )
                )
            )
    return out


def _recorded(log: Path, files: set[int]) -> dict[int, _Writes]:
    """Return the recorded writes of files; nothing if DXT had no room for some requests, or the log is damaged."""
    found: dict[int, list[_Writes]] = {}
    try:
        opened = DarshanFile(log)
        if "DXT_POSIX" not in opened.modules or opened.partial("DXT_POSIX"):
            return {}
        for one in opened.accesses("DXT_POSIX"):
            number = one.signed
            if one.write and number in files:
                first, length = (one.requests[name].astype(np.int64) for name in ("offset", "length"))
                ranks, start = np.full(len(first), one.rank), one.requests["start"].astype(np.float64)
                found.setdefault(number, []).append([ranks, start, first, first + np.maximum(length, 1) - 1])
    except DamagedLogError:
        return {}
    return {number: [np.concatenate(each) for each in zip(*parts, strict=True)] for number, parts in found.items()}


def _counted(writes: _Writes, unit: int) -> dict[str, int] | None:
    """Return the number of lock units that writes have touched, and of changes of a unit's writer."""
    rank, start, *bounds = writes
    first, last = (each // unit for each in bounds)
    each = last - first + 1
    if int(each.sum()) > _MOST_UNITS:
        return None
    which = np.repeat(np.arange(len(first)), each)
    units = first[which] + np.arange(len(which)) - np.repeat(np.cumsum(each) - each, each)
    order = np.lexsort((start[which], units))
    units, ranks = units[order], rank[which][order]
    changes = (units[1:] == units[:-1]) & (ranks[1:] != ranks[:-1])
    return {
        "writes": len(first),
        "units": len(np.unique(units)),
        "shared_units": len(np.unique(units[1:][changes])),
        "conflicts": int(changes.sum()),
    }


def _planned(did: Document, layout: Document, system: FileSystem, writers: int) -> dict[str, Any] | None:
    """Return the model's result for collective writes under the plan in force, and under the best plan."""
    count, written = did["collective_writes"], did["bytes_written"] - did["direct_bytes_written"]
    names = [each.name for each in methods()]
    stripe = int(layout["stripe_size"])
    if did["write_partition"] not in names or not count or written < count or not writers:
        return None
    if len(names) * (written // stripe + count) > _MOST_STRIPES:
        return None
    geometry = Geometry(
        end_bytes=written // count,
        stripe_size_bytes=stripe,
        aggregators=writers,
        servers=int(layout["servers"] or layout["stripe_count"] or 1),
    )
    window = -(-written // (writers * max(did["rounds"], count)))  # bytes of an aggregator in a round
    found = {
        name: simulate(geometry, name, file_system=system, window_bytes=window, collectives=count) for name in names
    }
    mine, least = found[did["write_partition"]], min(names, key=lambda name: found[name].total_conflicts)
    better = found[least].total_conflicts < mine.total_conflicts
    return {
        "method": did["write_partition"],
        "plan_lock_requests": mine.total_lock_requests,
        "plan_conflicts": mine.total_conflicts,
        "least_method": least if better else None,
        "least_conflicts": found[least].total_conflicts if better else None,
    }
