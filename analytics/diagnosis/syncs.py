"""How often each file is synced: counters of POSIX that are in no table.

Problem. A program that syncs after each write waits for the storage each time. Darshan counts the syncs, and adds their
time to that of the writes.

Guarantees. Logs of other versions of the module, and damaged ones, tell nothing.
"""

from __future__ import annotations

from mpiio_ext.common.darshanfile import DamagedLogError, DarshanFile

#: Version of the module whose counters these are, and where fsync and fdatasync are among them.
_VERSION, _SYNCS = 4, slice(8, 10)


def syncs_of(log: DarshanFile) -> dict[int, int]:
    """Return file (signed number) -> syncs of all ranks, of files with any."""
    found: dict[int, int] = {}
    if "POSIX" not in log.modules or log.modules["POSIX"].version != _VERSION:
        return found
    try:
        for record in log.counters("POSIX"):
            count = int(record.counters[_SYNCS].clip(0).sum())
            if count:
                number = record.file - (1 << 64) if record.file >= 1 << 63 else record.file
                found[number] = found.get(number, 0) + count
    except DamagedLogError:
        return {}
    return found
