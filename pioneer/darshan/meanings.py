"""What a function is to a module of Darshan: the one table of it, for Python and for the recorder in C.

Problem. A trace has every call of three layers; Darshan has modules, which count some functions and leave out others.
Algorithm. A table says of each function what it is to its module and which counter grows. The generator of the tracer
(`csrc/tools/trace/generate.py`) loads this file alone, before the package is there, and writes the table in C.
Guarantee. The standard library suffices.
"""

from __future__ import annotations

import enum
import re


class Kind(enum.IntEnum):
    """What a call is to its record.

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
#: Module -> kind of call -> counter -> functions.
_TABLE: dict[str, dict[Kind, dict[str, str]]] = {
    "POSIX": {
        Kind.OPEN: {"OPENS": "open openat creat mkstemp mkostemp mkstemps mkostemps"},
        Kind.REOPEN: {"DUPS": "dup dup2 dup3 fcntl"},
        Kind.READ: {"READS": "read pread readv preadv preadv2"},
        Kind.WRITE: {"WRITES": "write pwrite writev pwritev pwritev2"},
        Kind.META: {"STATS": "stat lstat fstat fstatat statx", "SEEKS": "lseek", "RENAME_SOURCES": "rename renameat"},
        Kind.SYNC: {"FSYNCS": "fsync", "FDSYNCS": "fdatasync"},
        Kind.CLOSE: {"": "close"},
        Kind.COUNT: {"MMAPS": "mmap"},
        Kind.COPY: {"": "copy_file_range sendfile"},
    },
    "STDIO": {
        Kind.OPEN: {"OPENS": "fopen freopen"},
        Kind.REOPEN: {"FDOPENS": "fdopen"},
        Kind.READ: {"READS": "fread fgets"},
        Kind.WRITE: {"WRITES": "fwrite fputs fputc fprintf vfprintf"},
        Kind.META: {"SEEKS": "fseek fseeko rewind"},
        Kind.SYNC: {"FLUSHES": "fflush"},
        Kind.CLOSE: {"": "fclose"},
    },
    "MPI-IO": {
        Kind.OPEN: {"COLL_OPENS": "open"},
        Kind.SYNC: {"SYNCS": "sync"},
        Kind.CLOSE: {"": "close"},
        Kind.COUNT: {"VIEWS": "set_view"},
    },
}
_MEANINGS = {
    module: {
        name: (kind, counter)
        for kind, counters in kinds.items()
        for counter, names in counters.items()
        for name in names.split()
    }
    for module, kinds in _TABLE.items()
}
_WAYS = ("INDEP", "COLL", "SPLIT", "NB")
#: Counters that grow otherwise: by another call, or by its details.
_MORE = {
    "POSIX": ("RENAME_TARGETS",),
    "STDIO": (),
    "MPI-IO": ("INDEP_OPENS", "HINTS", *(f"{way}_{verb}S" for way in _WAYS for verb in ("READ", "WRITE"))),
}
#: Module -> names of all counters that are sums of calls.
COUNTERS = {
    module: (*(name for counters in _TABLE[module].values() for name in counters if name), *_MORE[module])
    for module in ("POSIX", "MPI-IO", "STDIO")
}


def meaning(module: str, operation: str) -> tuple[int, str]:
    """Return what a function is to a module: kind, 0 for nothing, and the name of its counter."""
    name = operation.removeprefix("MPI_File_").removesuffix("_c") if module == "MPI-IO" else operation
    found = re.fullmatch(r"(i?)(read|write)(_at)?(?:_(all|ordered|shared))?(_begin)?", name)
    if module != "MPI-IO" or found is None:
        return _MEANINGS[module].get(name, (0, ""))
    nonblocking, verb, _, mode, begin = found.groups()
    way = "NB" if nonblocking else "SPLIT" if begin else "COLL" if mode in ("all", "ordered") else "INDEP"
    return Kind[verb.upper()], f"{way}_{verb.upper()}S"
