"""The calls of a run by rank, kind, function, file and outcome: what the records of its recordings have in one sum.

Problem. A record has one time for all calls on metadata of a file, and neither calls that fail nor those for which
Darshan has no counter: locks, unlink, msync. Algorithm. The recorder has tallies of these beside its records
(``csrc/tools/trace/mpiox_recording_tally.h``); the tallies of all ranks are the rows of one table, in columns. The
table of I/O calls names the kind of a function.

Guarantees. Times are sums over calls, also of calls that threads make at the same time. Reads and writes that a record
counts are in no row, but for those of MPI-IO.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from mpiio_ext.common.iocalls import CALLS, Call
from mpiio_ext.pioneer.darshan.meanings import Kind, meaning
from mpiio_ext.pioneer.darshan.names import clean
from mpiio_ext.pioneer.darshan.recordings import Recording

_KINDS = {"close": "open", "duplicate": "open", "begin": "write", "end": "write", "query": "stat", "map": "mapping"}
_KINDS |= {"unmap": "mapping", **{each: each for each in ("open", "read", "write", "sync")}}
#: Functions whose kind is not that of what they do to a file.
_NAMED = {
    "stat": "stat lstat fstatat statx access faccessat readlink readlinkat statfs statvfs getxattr",
    "rename": "rename renameat",
    "unlink": "unlink unlinkat remove rmdir MPI_File_delete",
    "lock": "flock lockf fcntl",
}


@cache
def _calls() -> dict[str, Call]:
    return {call.name: call for call in CALLS}


@cache
def _special() -> dict[str, str]:
    return {function: kind for kind, functions in _NAMED.items() for function in functions.split()}


def kind_of(function: str) -> str:
    """Return the kind of a function: open, stat, rename, unlink, read, write, sync, lock, mapping or other."""
    call = _calls().get(function)
    return _special().get(function) or _KINDS.get(call.role if call is not None else "", "other")


def is_counted(function: str, error: str) -> bool:
    """Return whether the time of a call is in the record of its file, where there is one."""
    call = _calls().get(function)
    return not error and call is not None and kind_of(function) != "lock" and meaning(call)[0] not in (0, Kind.COUNT)


@dataclass(frozen=True, slots=True)
class Tallies:
    """Columns of one table, each an array with an entry for each row.

    Attributes
    ----------
    rank : which has made the calls.
    layer : "mpiio", "mpi", "posix" or "stdio".
    kind : of the calls, as `kind_of` has it.
    function : its name, without "_c" of large counts.
    file : its name; "" if the calls are of several files, or of none.
    error : "" if the calls succeeded, else their errno (ENOSPC) or the error class of MPI (MPI_ERR_NO_SPACE).
    inside : made inside of a call of MPI-IO, whose time has theirs.
    counted : a record has their time, if the file has one.
    calls, seconds : how many they are, and their time.
    """

    rank: npt.NDArray[np.int64]
    layer: npt.NDArray[np.object_]
    kind: npt.NDArray[np.object_]
    function: npt.NDArray[np.object_]
    file: npt.NDArray[np.object_]
    error: npt.NDArray[np.object_]
    inside: npt.NDArray[np.bool_]
    counted: npt.NDArray[np.bool_]
    calls: npt.NDArray[np.int64]
    seconds: npt.NDArray[np.float64]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.calls)

    def where(self, chosen: npt.NDArray[np.bool_]) -> Tallies:
        """Return some of the rows."""
        return Tallies(*(getattr(self, column.name)[chosen] for column in fields(self)))

    def by_rank(self, processes: int) -> npt.NDArray[np.float64]:
        """Return the seconds of each rank."""
        found = np.zeros(processes)
        np.add.at(found, np.minimum(self.rank, processes - 1), self.seconds)
        return found


def rows_of(recording: Recording, rank: int) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a recording as `of_rows` takes them."""
    for row in recording.tallies:
        function = bytes(row["operation"]).decode(errors="replace").removesuffix("_c")
        number, of_mpi = int(row["error"]), bytes(row["class"]).decode(errors="replace")
        error = of_mpi or errno.errorcode.get(number, "an error") if number else ""
        call = _calls().get(function)
        yield (
            rank,
            call.layer if call is not None else "",
            kind_of(function),
            function,
            clean(recording.names.get(int(row["name"]), "")),
            error,
            bool(row["inside"]),
            is_counted(function, error),
            int(row["calls"]),
            int(row["ns"]) / 1e9,
        )


def of_rows(rows: Sequence[tuple[Any, ...]] = ()) -> Tallies:
    """Return the table of some rows."""
    types = (np.int64, *(object,) * 5, np.bool_, np.bool_, np.int64, np.float64)
    columns = zip(*rows, strict=True) if rows else ((),) * len(types)
    return Tallies(*(np.array(column, kind) for column, kind in zip(columns, types, strict=True)))
