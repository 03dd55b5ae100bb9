"""Calls that a process was in when it was killed: their kinds, their begins, and their share of the time.

Problem. A call counts when it has ended. A rank that waits in a collective call, or in a write, for minutes, until it
is killed there, would have spent no time in it.

Algorithm. A thread writes into the header of its recording the call that it is in, a call on a file inside of that one,
and the library's activity in it (``csrc/tools/trace/mpiox_recording_format.h``). Each such call becomes a step, which
lasts until the process had ended. Of an MPI-IO call that is what is left without the calls and waits in it, as for
calls that have ended.

Guarantees. Only of a process that has not ended its recording. A call that seems to begin after the end, or whose
fields are damaged, is none. Threads after the first four are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mpiio_ext.pioneer.darshan.recordings import CLASSES, STEP_TYPE, Recording, Structured

_FILE_CLASSES = range(3)
_IN_MPI, _IN_LIBRARY, _WAITING, _MESSAGES = range(3, 7)
_WORDS = {0: "a read", 1: "a write", 2: "a metadata call"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """A call that a rank was in.

    Attributes
    ----------
    what : name of the call of MPI, without "_c" of large counts, or what kind of call on a file it is.
    file : name; "" if it has none, or that is not known.
    within : class of time in which the process was in it, of `recordings.CLASSES`; "" for no I/O (MPI_Barrier).
    since_ns : ns since 1970.
    """

    what: str
    file: str
    within: str
    since_ns: int


def _outermost(recording: Recording) -> list[tuple[int, int]]:
    """Return thread and level of each call that a thread was in, without those inside of another one."""
    kinds = recording.doing["class"]
    found = [
        (thread, level)
        for thread in range(len(kinds))
        for level in range(len(kinds[thread]))
        if 0 < kinds[thread, level] <= len(CLASSES) + 1 and not (level > 0 and kinds[thread, 0] > 0)
    ]
    return [(thread, level) for thread, level in found if recording.doing["start"][thread, level] > 0]


def _inside(recording: Recording, thread: int, level: int) -> tuple[int, int] | None:
    """Return class and begin of the part that runs inside of a call; None: no such part is recorded."""
    mine = recording.doing[thread]
    if level == 0 and 0 < mine["class"][1] <= len(_FILE_CLASSES) and mine["start"][1] >= mine["start"][0]:
        return int(mine["class"][1]) - 1, int(mine["start"][1])
    if mine["part"][level] - 1 in (_WAITING, _MESSAGES) and mine["part_start"][level] >= mine["start"][level]:
        return int(mine["part"][level]) - 1, int(mine["part_start"][level])
    return None


def calls(recording: Recording) -> list[Unfinished]:
    """Return the calls that the threads of a process were in."""
    found = []
    for thread, level in _outermost(recording):
        one = recording.doing[thread, level]
        kind, inside = int(one["class"]) - 1, _inside(recording, thread, level)
        file = recording.opened if one["name"] < 0 else recording.names.get(int(one["name"]), "")
        if kind in (_IN_MPI, _IN_LIBRARY):
            kind = inside[0] if inside else _IN_LIBRARY if one["own"] else _IN_MPI
        found.append(
            Unfinished(
                what=_WORDS.get(int(one["class"]) - 1) or recording.operations[thread].removesuffix("_c"),
                file=file,
                within=CLASSES[kind] if kind < len(CLASSES) else "",
                since_ns=int(one["start"]) + recording.since_ns,
            )
        )
    return found


def steps(recording: Recording, end_ns: int) -> Structured:
    """Return the steps of a recording, and those of calls that had not ended at `end_ns` (since 1970)."""
    until, more = end_ns - recording.since_ns, []
    for thread, level in _outermost(recording):
        one = recording.doing[thread, level]
        kind, start = int(one["class"]) - 1, int(one["start"])
        inside = _inside(recording, thread, level)
        if kind >= len(CLASSES) or start >= until:
            continue
        if inside is not None and inside[1] < until:
            more.append((inside[1], until, until - inside[1], 0, 1, 0, inside[0]))
        busy = until - start
        if kind in (_IN_MPI, _IN_LIBRARY):
            kind = _IN_LIBRARY if one["own"] else _IN_MPI
            busy -= _between(recording.steps, start, until) + (until - inside[1] if inside else 0)
        more.append((start, until, max(busy, 0), 0, 1, max(int(one["name"]), 0), kind))
    return np.concatenate([recording.steps, np.array(more, STEP_TYPE)]) if more else recording.steps


def _between(steps: Structured, start: int, end: int) -> int:
    """Return the ns in calls on files, waits and messages between two moments."""
    some = steps[(steps["class"] < _IN_MPI) | (steps["class"] > _IN_LIBRARY)]
    spans = np.maximum(some["end"] - some["start"], 1)
    common = np.minimum(some["end"], end) - np.maximum(some["start"], start)
    return int((some["busy"] * (common.clip(0) / spans)).sum())
