"""Which view each rank sets, of the views that the representatives have set.

Problem.   A view that differs between ranks gives each rank its part of an array. The path has those of representatives
           alone; and there may be more ranks than the array has parts.
Algorithm. With N ranks in the trace, rank r has the part of rank r modulo N, in copy r / N of the file. Each copy lies
           behind everything that N ranks touch through views or at offsets, at a multiple of 1 MiB. The part of a rank
           that is no representative is reckoned from the root's and the one of its group's representative: tiles of
           arrays by their numbers (`next_tile`), anything else by the distance of the first bytes. Plain views are no
           parts: they move by that distance, however many ranks there are, unless what ranks access through them lies
           among one another (`extents`). So do offsets (`offsets_of_copy`). In a file that a part of the ranks have
           opened together a rank counts by its place among these (`parts`).
Guarantee. Of N ranks that are all representatives each copy has every view as it was. No view is made up that MPI
           refuses: its bytes ascend where those of the path's views do, and its displacement is not negative. A rank
           whose view the MPI library refuses leaves the collective, and all others hang in it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mpiio_ext.pioneer.engine.extents import Extents, extents_of, own_values
from mpiio_ext.pioneer.engine.parts import Parts
from mpiio_ext.pioneer.file_types import next_tile
from mpiio_ext.pioneer.operations import Operation
from mpiio_ext.pioneer.path import Template, WorkloadPath
from mpiio_ext.pioneer.path.document import PathInfo
from mpiio_ext.pioneer.path.views import View, views_of_groups
from mpiio_ext.pioneer.profile.sessions import Sessions


def _differ(views: Sequence[View]) -> bool:
    return any((view.displacement, view.text) != (views[0].displacement, views[0].text) for view in views)


def _likely_group(views: Sequence[View], group: int, place: int, info: PathInfo, taking_part: int) -> int:
    """Return the group of a rank that was traced, if it has a view that `group` can use; else that one."""
    near = next((number for number, ranks in enumerate(info.members) if place in ranks), group)
    return near if taking_part >> near & 1 and views[near].type.size == views[group].type.size else group


def view_of_rank(
    views: Sequence[View], group: int, rank: int, info: PathInfo, taking_part: int = -1, *, among: bool = False
) -> tuple[View, int]:
    """Return the view of a rank of a group, in the first copy of the file, and the number of its copy.

    Parameters
    ----------
    views : of the representatives.
    group : of the rank.
    rank : may be beyond those that were traced.
    info : of the path.
    taking_part : groups that set a view, bit by bit; the others' are not known.
    among : the parts of the ranks lie among one another (`extents`).
    """
    own = views[group]
    if rank == info.representatives[group]:
        return own, 0
    copy, place = 0, rank
    if _differ(views) and (among or not all(view.type.is_plain for view in views)):
        copy, place = divmod(rank, info.traced)
        group = _likely_group(views, group, place, info, taking_part)
        own = views[group]
    other, root = info.representatives[group], views[0]
    if group == 0 or place == other:
        return own, copy
    dealt = next_tile(own.type, root.type, other, place)
    if dealt is not None:
        return View(own.displacement, dealt.text, dealt), copy
    apart = own.first - root.first
    displacement = own.displacement + apart // other * (place - other) if apart % other == 0 else own.displacement
    return (View(displacement, own.text, own.type) if displacement >= 0 else own), copy


class RankViews:
    """The views that one rank of a group sets, going along a path."""

    def __init__(
        self, path: WorkloadPath, kinds: Sequence[Operation], sessions: Sessions, parts: Parts | None = None
    ) -> None:
        self._path, self._kinds, self._sessions, self._parts = path, kinds, sessions, parts
        self._extents: Extents | None = None

    @property
    def extents(self) -> Extents:
        """The bytes that the traced ranks touch; read once, and only for further ranks."""
        if self._extents is None:
            self._extents = extents_of(self._path, self._kinds, self._sessions.of.tolist(), self._ends)
        return self._extents

    def set_by(self, row: int, group: int, rank: int) -> tuple[View, bool] | None:
        """Return the view that an MPI_File_set_view sets, and whether views differ between ranks; None: unknown."""
        views = views_of_groups(self._path.table["extra"][row].as_py(), self._path.group_count)
        if views is None:
            return None
        taking_part = self._path.table["groups"][row].as_py()
        info, place = self._seen(row) or (self._path.info, rank)
        file = self._path.table["file"][row].as_py()
        among = place >= info.traced and file in self.extents.among
        view, copy = view_of_rank(views, group, place, info, taking_part, among=among)
        if copy and file is not None and not Template(file).has_rank:
            view = View(view.displacement + copy * self.extents.lengths[file], view.text, view.type)
        return view, _differ(views)

    def _seen(self, row: int) -> tuple[PathInfo, int] | None:
        """Return ranks by their places in the communicator of a file; None if the file is all ranks' or one rank's."""
        return None if self._parts is None else self._parts.seen(row)

    def _ends(self, row: int) -> list[list[View]] | None:
        """Return of each group the views of its first and last rank; None if unknown."""
        info, _ = self._seen(row) or (self._path.info, 0)
        views = views_of_groups(self._path.table["extra"][row].as_py(), self._path.group_count)
        if views is None:
            return None
        return [
            [view, view_of_rank(views, group, max(info.members[group], default=0), info)[0]]
            for group, view in enumerate(views)
        ]

    def offsets_of_copy(self, own: NDArray[np.int64], rank: int, group: int) -> NDArray[np.int64]:
        """Return the offsets of a rank, `own`, of which those beyond the ranks that were traced are in a copy.

        Parameters
        ----------
        own : by the distance of the accesses, however many ranks there are; -1 if they are not known.
        rank, group : whose.
        """
        info = self._path.info
        copy, place = divmod(rank, info.traced)
        rows = self.extents.by_offset if copy else np.zeros(0, np.int64)
        if not rows.size:
            return own
        near = next((number for number, ranks in enumerate(info.members) if place in ranks), group)
        sizes, likely = (own_values(self._path, "size", place, one)[rows] for one in (group, near))
        moved, other = (own_values(self._path, "offset", place, one)[rows] for one in (group, near))
        moved = np.where((other >= 0) & (sizes == likely), other, moved)
        files = self._path.words("file")[rows].tolist()
        found: NDArray[np.int64] = own.copy()
        found[rows] = np.where(
            own[rows] >= 0, moved + copy * np.array([self.extents.lengths[file] for file in files]), own[rows]
        )
        return found
