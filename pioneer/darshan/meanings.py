"""The role of a function in a module of Darshan, for Python and for the recorder in C.

Problem. A trace has every call of three layers; Darshan has modules, which count some functions and leave out others.
Algorithm. The table of I/O calls (`common.iocalls`) gives for each function its role in its module and the counter that
grows. The generator of the tracer (`csrc/tools/trace/generate.py`) loads this file alone, before the package is there.
Guarantee. The standard library suffices.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpiio_ext.common.iocalls import Call


class Kind(enum.IntEnum):
    """The role of a call in its record.

    COUNT: nothing but its counter; REOPEN: a duplicate of what is open; COPY: a read of its file, and then a write of
    the other one, of which each has half of the time. Darshan's own runtime does not see copies.
    """

    OPEN = 1
    REOPEN = 2
    READ = 3
    WRITE = 4
    META = 5
    SYNC = 6
    CLOSE = 7
    COUNT = 8
    COPY = 9


#: Calls on descriptors and names that make no record of a file that has none; but those of the counters `MAKE` do: a
#: successful look, and syncs, whose time would be lost where the C library has opened the file.
NEED_RECORD = (Kind.META, Kind.SYNC, Kind.CLOSE, Kind.COUNT, Kind.REOPEN)
MAKE = ("STATS", "FSYNCS", "FDSYNCS")
#: The first of these words that an access of MPI-IO has -> how Darshan calls its way; INDEP: it has none.
_WAYS = {"nonblocking": "NB", "begin": "SPLIT", "collective": "COLL"}
#: Module -> names of all counters that are sums of calls. Some grow by another call than that which has them in the
#: table, or by its details.
COUNTERS = {
    "POSIX": tuple("OPENS DUPS READS WRITES STATS SEEKS RENAME_SOURCES FSYNCS FDSYNCS MMAPS RENAME_TARGETS".split()),
    "MPI-IO": (
        *("COLL_OPENS", "SYNCS", "VIEWS", "INDEP_OPENS", "HINTS"),
        *(f"{way}_{verb}S" for way in ("INDEP", "COLL", "SPLIT", "NB") for verb in ("READ", "WRITE")),
    ),
    "STDIO": ("OPENS", "FDOPENS", "READS", "WRITES", "SEEKS", "FLUSHES"),
}


def meaning(call: Call) -> tuple[int, str]:
    """Return the role of a function in its module: kind, 0 for none, and the name of its counter, "" for none."""
    if "darshan" in call.values:
        kind, _, counter = call.values["darshan"].partition("/")
        return Kind[kind], counter
    words = call.words
    if call.layer != "mpiio" or not {"blocking", "nonblocking", "begin"}.intersection(words):
        return 0, ""
    way = next((way for word, way in _WAYS.items() if word in words), "INDEP")
    verb = "WRITE" if "write" in words else "READ"
    return Kind[verb], f"{way}_{verb}S"
