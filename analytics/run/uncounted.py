"""Calls that a Darshan log does not have, and of which its counters show that the program may well make them.

Problem. A log has no locks, no failed calls, and no calls of `stat` of programs built with glibc 2.33 or newer. It has
the time of views only if they have hints. So its time in I/O is a lower bound, which may be little of the truth.

Algorithm. Ranks append to a file by POSIX, or overwrite the same bytes: they need a lock. Or some ranks read a file
while others write it, and are seldom in calls on it: they wait for new data. Or ranks set views again and again.

Guarantees. Nothing is stated of how long these calls take.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from mpiio_ext.analytics.diagnosis.limits import Limits
from mpiio_ext.analytics.diagnosis.words import short_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpiio_ext.analytics.diagnosis.activity import Activity
    from mpiio_ext.analytics.factors.files import Files
    from mpiio_ext.analytics.tables.arrays import Flags

#: Share of the run time for which ranks read a file while others write it.
_LONG = 0.5


def _in_turn(files: Files) -> Flags:
    """Return for each file whether ranks append to it, or overwrite the same bytes: each writes as much as it has.

    A log has places of appended bytes by what the rank has written: each of its writes follows the one before.
    """
    written, ends = np.nan_to_num(files["bytes_written"]), files["max_offset_written"] + 1
    moved = np.maximum(np.nan_to_num(files["bytes_read"]) + written, 1.0)
    each = np.fmin(files["slowest_rank_bytes"], files["fastest_rank_bytes"]) * written / moved
    found = (files["ranks"] > 1) & ~(files["mpiio_bytes_written"] > 0) & (2 * each > ends)
    writes = files.requests("write")
    found &= (files["consec_writes"] >= writes - files["ranks"]) | (ends * writes <= 2 * written)
    return np.asarray(found & (writes >= Limits.many_opens * files["ranks"]))


def _followed(files: Files, switches: Sequence[int], run_s: float) -> Flags:
    """Return for each file whether some ranks read it while others write it, and are seldom in calls on it."""
    both = np.minimum(files["read_end"], files["write_end"]) - np.maximum(files["read_start"], files["write_start"])
    found = (files["ranks"] > 1) & (both >= _LONG * run_s) & (files["slowest_rank_time"] < 0.5 * both)
    found &= (files.requests("read") >= Limits.many_opens * (files["ranks"] - 1)) & (np.array(switches) == 0)
    return np.asarray(found & ~(files["mpiio_bytes_written"] > 0))


def sentence(files: Files, activity: Activity, run_s: float, names: Sequence[str]) -> str:
    """Return the calls that may take time that the log does not have; "" if its counters show none."""
    from mpiio_ext.analytics.diagnosis.activity import Calls

    calls = list(map(activity.calls.get, files.table["file_id"].to_pylist(), itertools.repeat(Calls())))
    views = np.array([one.views for one in calls]) / np.maximum(np.nan_to_num(files["ranks"]), 1.0)
    often = int(views.max(initial=0.0))
    for which, words, missing in (
        (_in_turn(files), "Ranks append to `{}`, or overwrite it, in turn", "the time that they wait for locks"),
        (
            _followed(files, [one.switches for one in calls], run_s),
            "Ranks read `{}` while another rank writes it",
            "the time that they wait for new data",
        ),
        (views >= Limits.some_collectives, f"A rank sets {often:,} views of `{{}}`", "the time of such calls"),
    ):
        if which.any():
            place = int(np.argmax(np.where(which, np.nan_to_num(files["slowest_rank_time"]), -1.0)))
            name = files.table["file"].to_pylist()[place] or "a file"
            return f"{words.format(short_name(name, names))}: the log does not have {missing}."
    return ""
