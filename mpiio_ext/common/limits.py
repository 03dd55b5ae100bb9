"""How many bytes the contents of a log may have: the limit of all readers, and the option that raises it."""

from __future__ import annotations

import os

from mpiio_ext.common.units import size

#: The variable that raises the limit. `mpiio-ext analyze` sets it by its option; processes that read logs inherit it.
VARIABLE, _OPTION = "MPIIO_EXT_LOG_LIMIT", "--log-limit"
#: Contents of a file, at most; a day of a large site is some 100 MB.
_MOST_BYTES = 512 << 20
#: Unpacked over packed, at most: real texts reach 40, zeros 1,032. Contents up to `_SMALL_BYTES` may have any ratio.
_MOST_RATIO, _SMALL_BYTES = 200, 16 << 20


def most_bytes(packed_bytes: int | None = None) -> int:
    """Return how many bytes the contents of a file may have.

    Parameters
    ----------
    packed_bytes : of the file, if it is gzip.

    Raises
    ------
    ArgumentError
        The variable is no size.
    """
    if given := os.environ.get(VARIABLE):
        return int(size(given))
    return _MOST_BYTES if packed_bytes is None else min(_MOST_BYTES, max(_SMALL_BYTES, _MOST_RATIO * packed_bytes))


def limit_text(most: int, packed_bytes: int | None = None) -> str:
    """Return that there are more bytes than the limit, and how to raise it."""
    packed = "" if packed_bytes is None else f", unpacked from {packed_bytes:,}"
    return f"more than {most:,} bytes{packed}; `mpiio-ext analyze {_OPTION} SIZE` or {VARIABLE}=SIZE raises this limit"
