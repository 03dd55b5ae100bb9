"""Files that others than the ranks access: the program's calls stand in place of the recorded requests.

Problem. Delegates carry out requests in processes of their own, which nothing records, or in a thread of some ranks,
which would then seem to move the bytes of all ranks.

Algorithm. The library's statistics name the files. In a run without statistics, they are the files whose bytes ranks
moved by MPI-IO, and not by POSIX, in the one direction or the other. The bytes of these files become the bytes of the
MPI-IO calls. Ranks, places and times of POSIX requests are removed from the rows of these files.

Guarantees. Other files are left as they are. Without numbers of requests no rule of the diagnosis inspects a file.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext.analytics.diagnosis.activity import Activity
from mpiio_ext.analytics.run import library
from mpiio_ext.common.units import count_text, seconds_text

_DELEGATED = ("delegated_calls", "delegated_writes", "delegated_reads")
#: Share of the time in I/O from which on the time in delegates is reported.
_MOST = 0.5
#: Bytes of the library's requests over those of calls from which on some were no calls.
_MORE = 1.1
_WAYS = (("bytes_read", "mpiio_bytes_read"), ("bytes_written", "mpiio_bytes_written"))
#: Columns that requests of POSIX have made, but those of metadata calls.
_OF_REQUESTS = (
    "reads",
    "writes",
    "consec_",
    "seq_",
    "read_",
    "write_",
    "max_offset_",
    "unaligned",
    "fastest_",
    "slowest_",
    "root_bytes_",
)


def delegated(files: pa.Table, statistics: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the numbers of the files that others than the ranks have accessed.

    Parameters
    ----------
    files : rows of ``darshan_file``.
    statistics : files as the library has reported them, by the names that the program calls them.
    """
    theirs = [row for row in statistics if any(row[name] for name in _DELEGATED)]
    found = []
    for row in files.to_pylist():
        named = any(library.is_of(one, row["file"] or "") for one in theirs)
        unseen = not statistics and any((row[asked] or 0) > 0 == (row[moved] or 0) for moved, asked in _WAYS)
        if named or unseen:
            found.append(row["file_id"])
    return found


def mapped(files: pa.Table, statistics: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the numbers of the files that the library has accessed through mapped memory, which is no call.

    Its own statistics have more bytes of requests than calls of POSIX have moved.
    """
    found = []
    for row in files.to_pylist():
        mine = [one for one in statistics if library.is_of(one, row["file"] or "")]
        moved = [sum(one[f"{way}_request_bytes"] for one in mine) for way in ("read", "write")]
        seen = [row[name] or 0 for name, _ in _WAYS]
        if any(more > _MORE * calls for more, calls in zip(moved, seen, strict=True)):
            found.append(row["file_id"])
    return found


def as_asked_for(files: pa.Table, chosen: Collection[int]) -> pa.Table:
    """Return rows of ``darshan_file`` in which the chosen files have the accesses that the program requested."""
    if not chosen:
        return files
    these = pc.is_in(files["file_id"], pa.array(list(chosen), files["file_id"].type))
    for place, name in enumerate(files.schema.names):
        asked = dict(_WAYS).get(name)
        if asked is not None:
            moved = pc.coalesce(files[asked], files[name])
            files = files.set_column(place, name, pc.if_else(these, moved, files[name]))
        elif name.startswith(_OF_REQUESTS):
            nothing = pa.nulls(len(files), files[name].type)
            files = files.set_column(place, name, pc.if_else(these, nothing, files[name]))
    return files


def without_requests(activity: Activity, chosen: Collection[int]) -> None:
    """Remove the requests of the chosen files."""
    for key in [key for key in activity.rows if key[0] in chosen]:
        del activity.rows[key]


def notice(names: Sequence[str], statistics: Sequence[Mapping[str, Any]], processes: int, io_s: float) -> str:
    """Return what a reader has to know of such files.

    Parameters
    ----------
    names : of the files.
    statistics : files as the library has reported them; times are sums over the ranks.
    processes : ranks of the run.
    io_s : time of a rank in I/O.
    """
    more = f" and {count_text(len(names) - 1, 'more file')}" if len(names) > 1 else ""
    said = (
        f"Delegates (processes or threads that carry out accesses for ranks) made the requests to `{names[0]}`{more}."
        " For such files the page shows bytes and times of the program's own calls, and the diagnosis inspects no"
        " requests."
    )
    through_s = sum(row["delegated_s"] + row["flush_barrier_s"] for row in statistics) / max(1, processes)
    if through_s >= _MOST * io_s > 0:
        said += (
            f" On average, a rank spent {seconds_text(through_s)} in accesses through delegates, and in waiting for"
            " delegates. Run the program with `mpiox_delegates=0` to find out whether delegates pay."
        )
    return said
