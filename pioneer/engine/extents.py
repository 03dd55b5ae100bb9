"""Which part of a file all share each representative accesses, and how much of it the ranks that were traced touch.

Problem.   There may be more ranks than were traced. Where the parts of the ranks lie one behind the other, further ones
           follow behind them by the distance of their accesses. Where they lie among one another, as blocks that the
           ranks write in turn, that distance leads rank 4 of 4 to what rank 0 writes in the next round.
Algorithm. One pass over the path, in the bytes of the file, through the views in force. What all groups
           access at one place shows nothing. A file is `among` where the span of a group meets that of another one, or
           where the root has none, and somebody writes it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from mpiio_ext.pioneer.operations import DATA, Operation, Role
from mpiio_ext.pioneer.path import WorkloadPath
from mpiio_ext.pioneer.path.views import View

_ALIGNMENT = 1 << 20
_MOVING = DATA | {Role.BEGIN}


@dataclass(slots=True)
class Extents:
    """The bytes that the traced ranks touch.

    Attributes
    ----------
    lengths : of each file, bytes, rounded up to the alignment.
    among : files in which further ranks have copies of the others' parts.
    by_offset : rows whose offsets alone separate the ranks, in files of `among`.
    """

    lengths: dict[str, int] = field(default_factory=dict)
    among: set[str] = field(default_factory=set)
    by_offset: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))


def own_values(path: WorkloadPath, name: str, rank: int, group: int) -> NDArray[np.int64]:
    """Return offsets or sizes of a rank of a group, -1 if they are not known."""
    own = pc.fill_null(path.table[f"{name}_{group}"], -1).to_numpy()
    other = path.info.representatives[group]
    if group == 0 or name != "offset" or rank == other:
        return np.asarray(own)
    root = pc.fill_null(path.table[f"{name}_0"], -1).to_numpy()
    apart = own - root
    moved = root + apart // max(1, other) * rank
    known = (path.words("owner") == "shared") & (own >= 0) & (root >= 0) & (apart % max(1, other) == 0) & (moved >= 0)
    found: NDArray[np.int64] = np.where(known, moved, own)
    return found


def _meet(spans: dict[int, tuple[int, int]]) -> bool:
    """Return whether the spans of groups meet, or that of the root is missing."""
    ordered = sorted(spans.values())
    return bool(spans) and (0 not in spans or any(one[1] > other[0] for one, other in itertools.pairwise(ordered)))


@dataclass(slots=True)
class _Pass:
    """The known facts of the files so far: see `Extents`."""

    ends: dict[str, int] = field(default_factory=dict)
    spans: dict[str, dict[int, tuple[int, int]]] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)
    rows: list[tuple[int, str]] = field(default_factory=list)

    def end(self, file: str, *places: int) -> None:
        """Note how far a file reaches."""
        self.ends[file] = max((self.ends.get(file, 0), *places))

    def access(self, row: int, file: str, places: dict[int, tuple[int, int]], everyone: int, by_offset: bool) -> None:
        """Note where groups access a file at once: (begin, end) of each; `everyone`: how many groups take part."""
        if everyone > 1 and len(places) == everyone and len({begin for begin, _ in places.values()}) == 1:
            return
        spans = self.spans.setdefault(file, {})
        for group, (begin, end) in places.items():
            known = spans.get(group, (begin, end))
            spans[group] = min(known[0], begin), max(known[1], end)
        if by_offset:
            self.rows.append((row, file))


def extents_of(
    path: WorkloadPath,
    kinds: Sequence[Operation],
    sessions: Sequence[int],
    views_at: Callable[[int], list[list[View]] | None],
) -> Extents:
    """Return the bytes that the traced ranks touch.

    Parameters
    ----------
    path : what is carried out.
    kinds, sessions : of its operations.
    views_at : of a row that sets a view, of each group the views of its first and last rank; None: unknown.
    """
    groups, found = path.group_count, _Pass()
    columns = [
        own_values(path, name, path.info.representatives[group], group).tolist()
        for group in range(groups)
        for name in ("offset", "size")
    ]
    last = [
        own_values(path, "offset", max(path.info.members[group], default=0), group).tolist() for group in range(groups)
    ]
    in_force: dict[int, list[list[View]]] = {}
    masks, owners = path.table["groups"].to_pylist(), path.words("owner").tolist()
    for row, (file, session) in enumerate(zip(path.words("file").tolist(), sessions, strict=True)):
        if file is None:
            continue
        kind, through = kinds[row], in_force.get(session)
        if kind.name == "MPI_File_set_view":
            views = views_at(row)
            if views is not None:
                in_force[session] = views
                found.end(file, *(view.end_of(view.type.size) for pair in views for view in pair))
            continue
        if kind.role not in _MOVING and kind.role is not Role.SEEK:
            continue
        places: dict[int, tuple[int, int]] = {}
        for group in range(groups):
            offset, size = columns[2 * group][row], max(0, columns[2 * group + 1][row])
            if offset < 0 or not masks[row] >> group & 1:
                continue
            behind = max(offset, last[group][row]) + size
            if through is None:
                places[group] = offset, offset + size
                found.end(file, behind if size else 0)
            else:
                first = through[group][0]
                places[group] = first.first + offset, max(first.first + offset, first.end_of(offset + size))
                found.end(file, *(view.end_of(behind) for view in through[group] if size))
        if owners[row] == "shared":
            separate = through is not None and len({(pair[0].displacement, pair[0].text) for pair in through}) > 1
            if kind.role is not Role.SEEK and kind.writes:
                found.written.add(file)
            found.access(row, file, places, masks[row].bit_count(), not separate)
    among = {file for file, spans in found.spans.items() if file in found.written and _meet(spans)}
    return Extents(
        lengths={file: -(-end // _ALIGNMENT) * _ALIGNMENT for file, end in found.ends.items()},
        among=among,
        by_offset=np.array([row for row, file in found.rows if file in among], np.int64),
    )
