"""When the job of a Darshan log began, out of the log's first bytes.

Problem. Which logs belong to a period must be known before any is converted, for logs whose paths have no date. The
time of a file's last change is that of a copy.

Algorithm. The record of the job lies behind the header; in all versions its second number is the start.

Guarantees. None if the file is no log, is damaged, or has another form; the function never raises an error for it.

Source: darshan-util, darshan-log-format.h.
"""

from __future__ import annotations

from pathlib import Path

from mpiio_ext.common.darshanfile import DamagedLogError, DarshanFile

_LATEST = 1 << 36


def start_of(path: str | Path) -> float | None:
    """Return the start of a log's job in s since 1970 UTC; None if unknown.

    Raises
    ------
    OSError
        The file cannot be read.
    """
    try:
        start = DarshanFile(path).start()
    except (DamagedLogError, MemoryError):
        return None
    return float(start) if 0 < start < _LATEST else None
