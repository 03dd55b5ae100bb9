"""Cutting a workload path into units and bursts: what is kept together when a path is synthesized.

Problem.   A path is one stream in which sessions of several files mix. Drawing its operations one by one would tear
           what belongs together: a stat before the open, a wait behind the access it ends, a run of writes.
Algorithm. A unit is an open session with the operations of column 1 that belong to it: those on the same file right
           before its open, and right behind one of its operations; and waits. All other operations of column 1 form
           units of their own, one for each run on the same file. A burst is a run of successive operations of one unit.
           Units of one file that overlap get lanes of their own, so that the units of a lane follow each other.
Guarantee. Every operation belongs to exactly one burst; the bursts in order are the path.

Source: He, Du, Narasimhamurthy, "PIONEER", sections IV-B (dependencies), V-C (sessions) and V-D (what fills holes).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpiio_ext.pioneer.operations import Operation, Role
from mpiio_ext.pioneer.path import WorkloadPath
from mpiio_ext.pioneer.profile.characterize import NO_FILE
from mpiio_ext.pioneer.profile.sessions import OUTSIDE, Sessions, find_sessions, operations_of

__all__ = ["Unit", "Units", "find_units"]


@dataclass(slots=True)
class Unit:
    """A session with what belongs to it, or a run of operations outside of sessions.

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


@dataclass(frozen=True, slots=True)
class Units:
    """A path in units.

    Attributes
    ----------
    units : in the order of their first operations.
    sessions : that they were made of.
    operations : of each row.
    """

    units: tuple[Unit, ...]
    sessions: Sessions
    operations: list[Operation]


def _take_prologues(unit: NDArray[np.int64], sessions: Sessions, files: list[str | None], roles: list[Role]) -> None:
    """Give operations on a file right before the first operation of its session to that session."""
    for row in np.flatnonzero(unit == OUTSIDE)[::-1]:
        if roles[row] is Role.WAIT or row + 1 >= unit.size or unit[row + 1] == OUTSIDE:
            continue
        session = sessions.sessions[unit[row + 1]]
        if files[row] is not None and session.file == files[row] and session.first > row:
            unit[row] = unit[row + 1]


def _take_others(unit: NDArray[np.int64], sessions: Sessions, files: list[str | None], roles: list[Role]) -> None:
    """Give waits, and operations on the file of the operation before, to the session of the operation before."""
    count = len(sessions.sessions)
    following = count
    for row in np.flatnonzero(unit == OUTSIDE):
        before = unit[row - 1] if row else OUTSIDE
        in_session = OUTSIDE < before < count
        if in_session and (roles[row] is Role.WAIT or files[row] == sessions.sessions[before].file):
            unit[row] = before
        elif row and before >= count and files[row] == files[row - 1]:
            unit[row] = before
        else:
            unit[row], following = following, following + 1


def _of_session(rows: NDArray[np.int64], sessions: Sessions, number: int) -> Unit:
    session = sessions.sessions[number]
    first, last = np.searchsorted(rows, [session.first, session.last])
    return Unit(session.file, session.owner, session.layer, True, rows, int(first), int(last))


def find_units(path: WorkloadPath) -> Units:
    """Return the units of a workload path."""
    sessions = find_sessions(path)
    operations = operations_of(path)
    roles = [operation.role for operation in operations]
    files, owners = path.table["file"].to_pylist(), path.table["owner"].to_pylist()
    unit = sessions.of.copy()
    _take_prologues(unit, sessions, files, roles)
    _take_others(unit, sessions, files, roles)
    order = np.argsort(unit, kind="stable")
    cuts = np.flatnonzero(np.diff(unit[order])) + 1
    found = []
    for rows in np.split(order, cuts) if order.size else []:
        number, row = int(unit[rows[0]]), int(rows[0])
        if number < len(sessions.sessions):
            found.append(_of_session(rows, sessions, number))
        else:
            found.append(Unit(files[row], owners[row] or NO_FILE, operations[row].layer, False, rows, 0, rows.size - 1))
    found.sort(key=lambda item: int(item.rows[0]))
    return Units(tuple(found), sessions, operations)
