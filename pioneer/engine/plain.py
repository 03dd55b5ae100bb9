"""Accesses that change nothing for the operations behind them, planned all at once.

Problem.   Most of a path are reads, writes and seeks on files that are open. Going along it one by one takes some 15 us
           an operation; a program of a million of them waits for its plan.
Algorithm. What an access needs, the slot and the view of its session, changes only where something else is done to the
           session. Those other operations are gone along one by one, and leave a note of the session's state; an access
           finds the last one before it. The first access to a file is one of the others, so that files are numbered in
           the order in which they are used.
Guarantee. The plan is the one that going along every operation makes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

from mpiio_ext.pioneer.engine.beside import COPIES
from mpiio_ext.pioneer.engine.coverage import OPERATIONS
from mpiio_ext.pioneer.engine.opens import AT_OFFSETS, IMPLIED
from mpiio_ext.pioneer.operations import LISTING, Role, operation_of
from mpiio_ext.pioneer.path.short import MOVED

if TYPE_CHECKING:
    from mpiio_ext.pioneer.engine.plan import Planner

_Value = TypeVar("_Value", bound=Hashable)
_PLAIN = frozenset({Role.READ, Role.WRITE, Role.SEEK})
#: Operations that move data and use more than one handle, or a folder.
_OTHERS = COPIES | LISTING
#: Entries of `extra` that make a single access special.
_SPECIAL = tuple(f'"{key}"' for key in (MOVED, IMPLIED, "file2"))


#: A number of one operation, or those of many.
_Numbers = int | NDArray[np.int64]


class Columns(TypedDict):
    """The columns of a plan before its slack times, of one operation or of many; `plan.Plan` has their meanings."""

    ids: _Numbers
    operation: _Numbers
    file: _Numbers
    second: _Numbers
    slot: _Numbers
    communicator: _Numbers
    flags: _Numbers
    request: _Numbers
    other: _Numbers
    view: _Numbers
    offset: _Numbers
    size: _Numbers
    place: _Numbers
    end: _Numbers
    through: _Numbers
    stream: _Numbers


@dataclass(slots=True)
class States:
    """Slot and view of sessions, behind the operations that may have changed them; rows ascend."""

    sessions: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    views: list[int] = field(default_factory=list)

    def note(self, session: int, row: int, slot: int, view: int) -> None:
        """Note the state of a session behind a row."""
        if session >= 0:
            self.sessions.append(session)
            self.rows.append(row)
            self.slots.append(slot)
            self.views.append(view)

    def at(self, sessions: NDArray[np.int64], rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the slots and the views of sessions at rows, -1: none."""
        span = 1 + max(int(rows.max(initial=0)), max(self.rows, default=0))
        noted = np.array(self.sessions, np.int64) * span + np.array(self.rows, np.int64)
        order = np.argsort(noted, kind="stable")
        places = np.searchsorted(noted[order], sessions * span + rows) - 1
        known = places >= 0
        places = order[places[known]] if noted.size else places[known]
        of = np.array(self.sessions, np.int64)[places]
        slots, views = np.full(rows.size, -1, np.int64), np.full(rows.size, -1, np.int64)
        same = of == sessions[known]
        slots[known] = np.where(same, np.array(self.slots, np.int64)[places], -1)
        views[known] = np.where(same, np.array(self.views, np.int64)[places], -1)
        return slots, views


def _codes(values: Sequence[_Value]) -> tuple[NDArray[np.int64], list[_Value]]:
    """Return values as numbers, and the value of each number."""
    numbers: dict[_Value, int] = {}
    codes = [numbers.setdefault(value, len(numbers)) for value in values]
    return np.array(codes, np.int64), list(numbers)


def plain_rows(planner: Planner, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which rows are planned at once."""
    extras, texts = _codes(planner.extras)
    special = [text is not None and any(key in str(text) for key in _SPECIAL) for text in texts]
    implied = any(text is not None and f'"{IMPLIED}"' in str(text) for text in texts)
    codes = _codes(planner.names)[0]
    firsts = np.unique(codes, return_index=True)[1].tolist()
    kinds = [planner.kinds[row] for row in firsts]
    plain = np.array(
        [
            kind.role in _PLAIN
            and not kind.nonblocking
            and OPERATIONS.get(kind.name) is not None
            and kind.name not in _OTHERS
            and not (implied and kind.name in AT_OFFSETS)
            for kind in kinds
        ],
        np.bool_,
    )
    seeks = np.array([kind.role is Role.SEEK for kind in kinds], np.bool_)
    sessions = np.array(planner.handles.of, np.int64)
    opened = np.append(np.array(planner.handles.has_open, np.bool_), False)[np.maximum(sessions, -1)]
    found: NDArray[np.bool_] = plain[codes] & ~np.array(special, np.bool_)[extras] & (sessions >= 0) & opened
    found &= ~(seeks[codes] & (np.array(planner.offsets, np.int64) < 0))  # where it leads to is in its `extra`
    found = found[rows]
    files = _codes(planner.files)[0][rows]
    at = np.flatnonzero(found)
    found[at[np.unique(files[at], return_index=True)[1]]] = False
    return found


def _ends(planner: Planner, views: NDArray[np.int64], behind: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the places in the file that correspond to these ends of accesses in their views."""
    ends: NDArray[np.int64] = behind.copy()
    for at in np.flatnonzero(views >= 0).tolist():
        ends[at] = planner.in_force[views[at]].end_of(int(behind[at]))
    return ends


def plain_columns(planner: Planner, rows: NDArray[np.int64], states: States) -> Columns:
    """Return the columns of plain rows, as `Planner.row` returns those of one; the others have been gone along."""
    codes, names = _codes([planner.names[row] for row in rows.tolist()])
    kinds = [operation_of(*name) for name in names]
    sessions = np.array(planner.handles.of, np.int64)[rows]
    slots, views = states.at(sessions, rows)
    dealt = np.isin(views, list(planner.dealt))
    offsets = np.where(dealt, np.array(planner.in_stream, np.int64)[rows], np.array(planner.offsets, np.int64)[rows])
    sizes = np.maximum(np.array(planner.sizes, np.int64)[rows], 0)
    seeks = np.array([kind.role is Role.SEEK for kind in kinds], np.bool_)[codes]
    explicit = seeks | np.array([kind.explicit_offset for kind in kinds], np.bool_)[codes]
    places = np.where(seeks, np.maximum(offsets, 0), offsets)
    begins = np.array([*(view.first for view in planner.in_force), 0], np.int64)  # -1 is the last one
    none = np.full(rows.size, -1, np.int64)
    numbers = np.array([OPERATIONS.get(kind.name) for kind in kinds], np.int64)[codes]
    files, used = _codes([planner.files[row] for row in rows.tolist()])
    file_numbers = np.array([planner.number_of(file) for file in used], np.int64)[files]
    return {
        "ids": rows,
        "operation": numbers,
        "file": file_numbers,
        "second": none,
        "slot": slots,
        "communicator": none,
        "flags": np.zeros(rows.size, np.int64),
        "request": none,
        "other": none,
        "view": none,
        "offset": np.where(explicit, places, -1),
        "size": sizes,
        "place": np.where(places < 0, 0, places + begins[views]),
        "end": np.where(places < 0, -1, _ends(planner, np.where(places < 0, -1, views), places + sizes)),
        "through": views,
        "stream": offsets,
    }
