"""The bytes of a file that are moved again, by their numbers, places and order.

Problem. A log has the number of bytes read and written, and the last place, but not the bytes themselves.
Algorithm. More bytes than there are places were moved again, unless the counters show another reason: appends, gaps,
turns of one rank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpiio_ext.analytics.diagnosis import ranks
from mpiio_ext.analytics.tables.arrays import Flags, Numbers

if TYPE_CHECKING:
    from mpiio_ext.analytics.diagnosis.case import Case

#: Share of the reads of a file that its writes follow, and of the bytes read that are written again, where a library
#: moves its bytes; the file grows by no more than the rest.
_MOVED = 0.9


def moved_on(case: Case) -> Flags:
    """Return for each file whether each read is followed by a write of as much, and the file's end grows by a bit.

    The program writes at most as many bytes as it reads, plus the whole file once. If MPI-IO calls write the file,
    MPI-IO calls also read it.
    """
    files, switches = case.files, np.array([float(calls.switches) for calls in case.calls])
    read, written, end = files["bytes_read"], files["bytes_written"], files["max_offset_written"] + 1
    grown = files["max_offset_written"] - files["max_offset_read"]
    found = (switches >= 2 * _MOVED * files.requests("read")) & (grown > 0) & (grown <= (1 - _MOVED) * end)
    found &= (written >= read) & (written <= read + end / _MOVED)
    own = ~(files["mpiio_bytes_written"] > 0) | (files["mpiio_bytes_read"] >= _MOVED * read)
    return np.asarray(found & own)


def from_the_start(case: Case) -> Flags:
    """Return for each file whether the C library reads it from front to back: few seeks or opens, many reads."""
    files = case.files
    jumps = np.array([float(calls.seeks) for calls in case.calls]) + np.nan_to_num(case.opens)
    by_streams = ~(files.requests("read") + files.requests("write") > 0)
    known = np.array([calls.streamed for calls in case.calls], bool)
    few = jumps < (1 - case.limits.non_consecutive) * np.nan_to_num(files["{requests}"])
    return np.asarray(by_streams & known & few)


def rewritten(case: Case) -> Numbers:
    """Return how often the bytes of each file up to the last one are written; NaN where that is less than twice.

    Of appended bytes Darshan counts the places from where a rank, or an open, begins: these are not written again.
    Nor are gaps, which MPI-IO has not asked for.
    """
    files, ends = case.files, case.files["max_offset_written"] + 1
    again: Numbers = np.where(ends > 1, files["bytes_written"] / np.maximum(ends, 1.0), np.nan)
    busiest = np.fmax(files["slowest_rank_bytes"], files["fastest_rank_bytes"])
    in_turn = files["consec_writes"] >= 0.9 * files.requests("write")
    opens = np.nan_to_num(case.opens) / np.maximum(np.nan_to_num(files["ranks"]), 1.0)
    appended = ranks.appended(files) & ~case.filled_by_one
    appended |= (files["ranks"] > 1) & in_turn & np.isnan(busiest)
    appended |= (opens >= 2) & (opens >= 0.9 * again)
    filled = files["bytes_written"] >= case.limits.amplified * files["mpiio_bytes_written"]
    return np.where((again >= case.limits.again) & ~appended & ~filled, again, np.nan)
