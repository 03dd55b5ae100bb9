"""When the job of a Darshan log began, out of the log's first bytes.

Problem. Which logs belong to a period must be known before any is converted, for logs whose paths have no date. The
time of a file's last change is that of a copy.

Algorithm. A log begins with its version (8 bytes), a magic number that tells the byte order, the kind of compression,
and flags. Then come the place and length of the table of names and of each module, and the version of each. There are
16 modules; since format 3.41 there are 64, and all is 8 bytes later. The record of the job lies behind that,
compressed; in all versions its second number is the start. Darshan's own library is not asked: it can crash or hang on
a damaged log, and a few bytes need no child process.

Guarantees. None for what is no log, is damaged, or has another form: never an error.

Source: darshan-util, darshan-log-format.h.
"""

from __future__ import annotations

import bz2
import struct
import zlib
from pathlib import Path

_MAGIC = 6567223
#: Length of the header: by formats before 3.41, and since.
_OLD, _NEW = 24 + 16 * 17 + 4 * 16, 32 + 16 * 65 + 4 * 64
#: Bytes of a log that hold its job; more where the command line is long, but the start is in front.
_BYTES = 1 << 14
_LATEST = 1 << 36


def start_of(path: str | Path) -> float | None:
    """Return the start of a log's job in s since 1970 UTC; None where it cannot be told.

    Raises
    ------
    OSError
        The file cannot be read.
    """
    with Path(path).open("rb") as stream:
        head = stream.read(_BYTES)
    if len(head) < _OLD:
        return None
    order = next((order for order in "<>" if struct.unpack_from(f"{order}q", head, 8)[0] == _MAGIC), None)
    if order is None:
        return None
    try:
        new = float(head[:8].rstrip(b"\0")) >= 3.41
    except ValueError:
        return None
    record = _inflated(head[_NEW if new else _OLD :], head[16])
    if len(record) < 16:
        return None
    start: int = struct.unpack_from(f"{order}q", record, 8)[0]
    return float(start) if 0 < start < _LATEST else None


def _inflated(data: bytes, how: int) -> bytes:
    """Return the first numbers of the job's record; empty where they are not there."""
    try:
        if how == 0:
            return zlib.decompressobj().decompress(data, 16)
        return bz2.BZ2Decompressor().decompress(data, 16) if how == 1 else data[:16]
    except (zlib.error, OSError, ValueError):
        return b""
