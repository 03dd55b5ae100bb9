"""Cutting a workload path into units and bursts, which stay together when a path is synthesized.

Problem.   A path is one stream in which sessions of several files mix. Drawing its operations one by one would tear
           what belongs together: a stat before the open, a wait behind the access it ends, a run of writes.
Algorithm. A unit is an open session with the operations of column 1 that belong to it: those on the same file right
           before its open, and right behind one of its operations; and waits. All other operations of column 1 form
           units of their own, one for each run on the same file. A burst is a run of successive operations of one unit.
Guarantee. Every operation belongs to exactly one burst; the bursts in order are the path.

Source: He, Du, Narasimhamurthy, "PIONEER", sections IV-B (dependencies), V-C (sessions) and V-D (what fills holes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpiio_ext.pioneer.operations import Role
from mpiio_ext.pioneer.path import WorkloadPath
from mpiio_ext.pioneer.profile.characterize import NO_FILE
from mpiio_ext.pioneer.profile.sessions import OUTSIDE, Session, find_sessions, flags_of


@dataclass(slots=True)
class Unit:
    """A session with its operations, or a run of operations outside of sessions.

    Attributes
    ----------
    file, owner, layer : as in the path; the file is None where the operations name none.
    session : whether it is an open session.
    rows : of its operations, ascending.
    first, last : indices in `rows` of the first and last operation of the session; of the unit where it is none.
    """

    file: str | None
    owner: str
    layer: str
    session: bool
    rows: NDArray[np.int64]
    first: int = 0
    last: int = 0

    @property
    def begin(self) -> int:
        """Global sequence ID of its session's first operation."""
        return int(self.rows[self.first])

    @property
    def end(self) -> int:
        """Global sequence ID of its session's last operation."""
        return int(self.rows[self.last])


def _take_prologues(
    unit: NDArray[np.int64],
    sessions: Sequence[Session],
    files: Sequence[str | None],
    outside: NDArray[np.int64],
    waits: NDArray[np.bool_],
) -> None:
    """Give operations on a file right before the first operation of its session to that session."""
    for at in range(outside.size - 1, -1, -1):
        row = int(outside[at])
        if waits[row] or row + 1 >= unit.size or unit[row + 1] == OUTSIDE:
            continue
        session = sessions[unit[row + 1]]
        if files[at] is not None and session.file == files[at] and session.first > row:
            unit[row] = unit[row + 1]


def _take_others(
    unit: NDArray[np.int64],
    sessions: Sequence[Session],
    files: Sequence[str | None],
    outside: NDArray[np.int64],
    waits: NDArray[np.bool_],
) -> None:
    """Give waits, and operations on the file of the operation before, to the session of the operation before."""
    count = following = len(sessions)
    last: str | None = None
    for at, row in enumerate(outside.tolist()):
        if unit[row] != OUTSIDE:
            continue
        before = int(unit[row - 1]) if row else OUTSIDE
        same = waits[row] or files[at] == sessions[before].file if OUTSIDE < before < count else files[at] == last
        if before != OUTSIDE and same:
            unit[row] = before
        else:
            unit[row], following = following, following + 1
        last = files[at]


def _of_session(rows: NDArray[np.int64], session: Session) -> Unit:
    first, last = np.searchsorted(rows, [session.first, session.last])
    return Unit(session.file, session.owner, session.layer, True, rows, int(first), int(last))


def find_units(path: WorkloadPath) -> list[Unit]:
    """Return the units of a workload path, in the order of their first operations."""
    found = find_sessions(path)
    sessions, unit = found.sessions, found.of.copy()
    outside = np.flatnonzero(unit == OUTSIDE)
    files, owners, layers = (path.words(name)[outside].tolist() for name in ("file", "owner", "layer"))
    waits = flags_of(path, Role.WAIT)
    _take_prologues(unit, sessions, files, outside, waits)
    _take_others(unit, sessions, files, outside, waits)
    order = np.argsort(unit, kind="stable")
    units = []
    for rows in np.split(order, np.flatnonzero(np.diff(unit[order])) + 1) if order.size else []:
        number = int(unit[rows[0]])
        if number < len(sessions):
            units.append(_of_session(rows, sessions[number]))
        else:
            at = int(np.searchsorted(outside, rows[0]))
            units.append(Unit(files[at], owners[at] or NO_FILE, layers[at], False, rows, 0, rows.size - 1))
    units.sort(key=lambda item: int(item.rows[0]))
    return units
