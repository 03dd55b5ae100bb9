"""Which bytes of files are touched, by which ranks: the only metric that sees where the accesses of every rank lead.

Problem.   A path has the offsets of representatives, in data streams; distributions of them do not show which bytes of
           a file those are. A rank whose view is that of another rank makes the same operations, of the same sizes, at
           the same offsets of its stream, and writes to the wrong place.
Algorithm. Each access is brought to extents of the file, through the view in force on its handle; of a read that ends
           early it is what it has read. For each class of files, each rank, reads and writes apart, c(x) is how many
           accesses touch byte x of any file of the class. Two workloads differ by the sum over x of their c's
           difference, in relation to the original's sum. Names do not separate files: a replay has other folders,
           and a synthetic workload takes like files in another order.
Guarantee. 0 means that each rank touches the same bytes of each class as often, exactly. 1 that as many bytes differ as
           the original touches; 2 is the most where both touch as many.
Limits.    A view that the trace lacks counts as none: the offsets of its stream are compared. Of an access with
           more than `MOST_PIECES` pieces the range from its first to its last byte is compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mpiio_ext.pioneer.operations import DATA, Operation, Role, operation_of
from mpiio_ext.pioneer.path import WorkloadPath, find_templates
from mpiio_ext.pioneer.path.extract import names_of
from mpiio_ext.pioneer.path.short import moved_in_extra, moved_of
from mpiio_ext.pioneer.path.views import View, views_of_groups
from mpiio_ext.pioneer.profile.sessions import find_sessions
from mpiio_ext.pioneer.table import encoded

#: Pieces of one access that are counted one by one.
MOST_PIECES = 1 << 20

_Numbers = NDArray[np.int64]
_MOVING = DATA | {Role.BEGIN}


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """The extents of a workload.

    Attributes
    ----------
    members : ranks that it is of; of a path its representatives.
    extents : (begins, ends) of all accesses by (class of files, member, whether they write).
    """

    members: tuple[int, ...]
    extents: Mapping[tuple[str, int, bool], tuple[_Numbers, _Numbers]]

    @property
    def classes(self) -> set[str]:
        """Classes of files with any access."""
        return {owner for owner, _, _ in self.extents}

    def distance(self, other: Touched, owner: str) -> float:
        """Return by how much another workload touches other bytes of a class of files; this is the original.

        Ranks count that are members of both: another path may have other representatives.
        """
        both = set(self.members) & set(other.members)
        keys = {key for key in (*self.extents, *other.extents) if key[0] == owner and key[1] in both}
        nothing = np.zeros(0, np.int64), np.zeros(0, np.int64)
        whole = apart = 0
        for key in keys:
            mine, theirs = self.extents.get(key, nothing), other.extents.get(key, nothing)
            whole += int((mine[1] - mine[0]).sum())
            apart += _apart(mine, theirs)
        return apart / whole if whole else float(apart > 0)


def _apart(mine: tuple[_Numbers, _Numbers], theirs: tuple[_Numbers, _Numbers]) -> int:
    """Return the sum over all bytes of how much more often one touches it than the other."""
    places = np.concatenate([mine[0], theirs[1], mine[1], theirs[0]])
    if not places.size:
        return 0
    steps = np.ones(places.size, np.int64)
    steps[mine[0].size + theirs[1].size :] = -1
    order = np.argsort(places, kind="stable")
    more = np.abs(np.cumsum(steps[order])[:-1])
    return int((more * np.diff(places[order])).sum())


# ---- accesses --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Accesses:
    """The accesses of one member; arrays have an element for each of its operations.

    Attributes
    ----------
    owners : classes of files, None: no file.
    offset, size : bytes, -1: not known.
    moves : it reads or writes data.
    writes : it writes.
    views : in force when an operation is made, by its number; without a known view there is no entry.
    """

    owners: NDArray[np.object_]
    offset: _Numbers
    size: _Numbers
    moves: NDArray[np.bool_]
    writes: NDArray[np.bool_]
    views: Mapping[int, View] = field(default_factory=dict)

    def extents(self) -> dict[tuple[str, bool], tuple[_Numbers, _Numbers]]:
        """Return (begins, ends) by class of files and whether they are written."""
        known = self.moves & (self.offset >= 0) & (self.size > 0)
        through = np.zeros(known.size, np.bool_)
        through[list(self.views)] = True
        parts: dict[tuple[str, bool], list[tuple[_Numbers, _Numbers]]] = defaultdict(list)
        for owner in {name for name in self.owners[known].tolist() if name is not None}:
            for writes in (False, True):
                rows = known & ~through & (self.owners == owner) & (self.writes == writes)
                if rows.any():
                    parts[owner, writes].append((self.offset[rows], self.offset[rows] + self.size[rows]))
        for row, view in self.views.items():
            if known[row] and self.owners[row] is not None:
                begin, end = int(self.offset[row]), int(self.offset[row] + self.size[row])
                parts[self.owners[row], bool(self.writes[row])].append(_through(view, begin, end))
        return {
            key: (np.concatenate([part[0] for part in several]), np.concatenate([part[1] for part in several]))
            for key, several in parts.items()
        }


def _through(view: View, begin: int, end: int) -> tuple[_Numbers, _Numbers]:
    """Return the extents of the bytes [begin, end) of a view's stream."""
    if view.type.size == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    tiles = -(-end // view.type.size) - begin // view.type.size
    if not view.type.is_plain and view.type.most_pieces * tiles > MOST_PIECES:
        first = view.displacement + begin // view.type.size * view.type.extent + view.type.first
        return np.array([first], np.int64), np.array([max(first + 1, view.end_of(end))], np.int64)
    places, lengths = view.pieces(begin, end, joined=True)
    return places, places + lengths


def _kinds(layers: Sequence[str], names: Sequence[str]) -> list[Operation]:
    known: dict[tuple[str, str], Operation] = {}
    return [known.get(pair) or known.setdefault(pair, operation_of(*pair)) for pair in zip(layers, names, strict=True)]


def _flags(kinds: Sequence[Operation]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the operations that move data, and the ones among them that write."""
    moves = np.array([kind.role in _MOVING for kind in kinds], np.bool_)
    return moves, np.array([bool(kind.writes) for kind in kinds], np.bool_)


def accesses_of(layers: Sequence[str], names: Sequence[str]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the operations that move data, and the ones among them that write."""
    return _flags(_kinds(layers, names))


def _words(column: pa.ChunkedArray) -> NDArray[np.object_]:
    """Return a column of text, None for null."""
    numbers, words = encoded(column)
    return np.array([*words, None], object)[numbers]  # -1 is the last one


def _known(column: pa.ChunkedArray) -> _Numbers:
    return np.asarray(pc.fill_null(column, -1).to_numpy(), np.int64)


# ---- of paths --------------------------------------------------------------------------------------------------------


def touched_by_groups(path: WorkloadPath) -> Touched:
    """Return the bytes that the representatives of a path touch."""
    kinds = _kinds(path.words("layer").tolist(), path.words("operation").tolist())
    moves, writes = _flags(kinds)
    sessions = find_sessions(path).of
    sets = [row for row, kind in enumerate(kinds) if kind.name == "MPI_File_set_view"]
    views = {row: views_of_groups(path.table["extra"][row].as_py(), path.group_count) for row in sets}
    groups = path.table["groups"].to_numpy()
    through = _in_force(views, sessions) if views else {}
    extents: dict[tuple[str, int, bool], tuple[_Numbers, _Numbers]] = {}
    moved = moved_in_extra(path.table["extra"])
    for group, rank in enumerate(path.info.representatives):
        own = {row: found[group] for row, found in through.items() if found is not None and groups[row] >> group & 1}
        size = np.where(moved >= 0, moved, _known(path.table[f"size_{group}"]))
        accesses = Accesses(
            path.words("owner"),
            _known(path.table[f"offset_{group}"]),
            size,
            moves & (groups >> group & 1 == 1),
            writes,
            own,
        )
        extents |= {(owner, rank, write): found for (owner, write), found in accesses.extents().items()}
    return Touched(members=path.info.representatives, extents=extents)


def _in_force(views: Mapping[int, list[View] | None], sessions: _Numbers) -> dict[int, list[View] | None]:
    """Return for each operation of a session with views those in force then."""
    found: dict[int, list[View] | None] = {}
    now: dict[int, list[View] | None] = {}
    with_views = {int(sessions[row]) for row in views} - {-1}
    for row in np.flatnonzero(np.isin(sessions, list(with_views))).tolist():
        session = int(sessions[row])
        if row in views:
            now[session] = views[row]
        elif now.get(session) is not None:
            found[row] = now[session]
    return found


# ---- of traces -------------------------------------------------------------------------------------------------------


def owners_of(tables: Mapping[int, pa.Table]) -> dict[str, str]:
    """Return the class of each file, as `path.extract` has it, by the names of all ranks."""
    names = {rank: names_of(table) for rank, table in tables.items()}
    templates = find_templates(names)
    users: dict[str, set[int]] = defaultdict(set)
    for rank, used in names.items():
        for name in used:
            users[templates[name].text].add(rank)
    root = min(tables)

    def owner(name: str) -> str:
        if templates[name].has_rank:
            return "private"
        ranks = users[templates[name].text]
        return "shared" if len(ranks) > 1 else "root" if root in ranks else "child"

    return {name: owner(name) for used in names.values() for name in used}


def _views_of_rank(table: pa.Table, kinds: Sequence[Operation]) -> dict[int, View]:
    """Return the view through which each operation of a rank is made, by its number."""
    rows = [row for row, kind in enumerate(kinds) if kind.layer == "mpiio"]
    if not any(kinds[row].name == "MPI_File_set_view" for row in rows):
        return {}
    handles, files, extras = table["handle"].to_pylist(), _words(table["file"]), table["extra"]
    now: dict[tuple[int | None, str | None], View] = {}
    found: dict[int, View] = {}
    for row in rows:
        key, kind = (handles[row], files[row]), kinds[row]
        if kind.name == "MPI_File_set_view":
            views = views_of_groups(extras[row].as_py(), 1)
            now.pop(key, None)
            if views is not None:
                now[key] = views[0]
        elif kind.role in (Role.OPEN, Role.CLOSE):
            now.pop(key, None)
        elif key in now:
            found[row] = now[key]
    return found


def touched_by_ranks(tables: Mapping[int, pa.Table]) -> Touched:
    """Return the bytes that every rank of a workload touches, by its sanitized operations (`traces.tables_of`)."""
    owners = owners_of(tables)
    extents: dict[tuple[str, int, bool], tuple[_Numbers, _Numbers]] = {}
    for rank, table in tables.items():
        kinds = _kinds(_words(table["layer"]).tolist(), _words(table["operation"]).tolist())
        moves, writes = _flags(kinds)
        files = _words(table["file"])
        classes = np.array([None if name is None else owners[name] for name in files.tolist()], object)
        moved = moved_of(table)
        size = np.where(moved >= 0, moved, _known(table["size"]))
        accesses = Accesses(classes, _known(table["offset"]), size, moves, writes, _views_of_rank(table, kinds))
        extents |= {(owner, rank, write): found for (owner, write), found in accesses.extents().items()}
    return Touched(members=tuple(sorted(tables)), extents=extents)
