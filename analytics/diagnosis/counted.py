"""Counters of a log that are in no table: syncs of each file, and time in MPI-IO calls that open it.

Problem. A program that syncs after each write waits for the storage each time; Darshan counts the syncs, and adds their
time to that of the writes. A collective open makes few calls to the file system, and takes long.

Guarantees. Logs of other versions of the modules, and damaged ones, tell nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpiio_ext.common.darshanfile import Counters, DamagedLogError, DarshanFile

#: Versions of the modules whose counters these are.
_VERSIONS = {"POSIX": 4, "MPI-IO": 3}
#: Where fsync and fdatasync are among the counters of POSIX, and the time of opens and the like among those of MPI-IO.
_SYNCS, _OPENING = slice(8, 10), 10


def _records(log: DarshanFile, module: str) -> Iterator[tuple[int, Counters]]:
    """Yield the records of a module, with the signed numbers of their files; those that are whole of a damaged one."""
    if module not in log.modules or log.modules[module].version != _VERSIONS[module]:
        return
    try:
        for record in log.counters(module):
            yield record.file - (1 << 64) if record.file >= 1 << 63 else record.file, record
    except DamagedLogError:
        return


def syncs_of(log: DarshanFile) -> dict[int, int]:
    """Return file -> syncs of all ranks, of files with any."""
    found: dict[int, int] = {}
    for number, record in _records(log, "POSIX"):
        if count := int(record.counters[_SYNCS].clip(0).sum()):
            found[number] = found.get(number, 0) + count
    return found


def opening_of(log: DarshanFile) -> dict[int, float]:
    """Return file -> time (s) of all ranks in MPI-IO calls that open it, close it, or set views."""
    found: dict[int, float] = {}
    for number, record in _records(log, "MPI-IO"):
        found[number] = found.get(number, 0.0) + max(float(record.times[_OPENING]), 0.0)
    return found
