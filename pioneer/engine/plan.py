"""The plan of one rank: a workload path with the names, offsets and handles of that rank.

Problem.   A path says what the representatives have done. Another rank has other names and other offsets; and there may
           be more ranks, or fewer, than were traced.
Algorithm. A rank belongs to a group (`path.groups_of_ranks`). Its offset in a shared file is that of the root plus its
           rank times the distance, per rank, of the representative from the root. If this offset is no whole number, or
           the root takes no part, the rank uses the representative's own offset. In a file of a communicator ranks
           count by their places in it (`parts`). Views become those of the rank (`rank_views`); offsets through views
           that differ between ranks do not move. Private files have the offsets of the representative. An operation in
           a session uses the handle of that session, a wait the request of the call that it ends. The handle is closed
           by the last close of its session: those before are of its duplicates, which are left out.
Guarantee. Every operation that is left out is counted, with its reason: the engine does not make it, its session has
           no open, it has no name, or the trace lacks its view. What one rank leaves out of a collective all
           leave out. What cannot be planned is an error that names its operation. All numbers of a plan are in range.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from mpiio_ext.pioneer.access import parsed
from mpiio_ext.pioneer.engine.beside import COPIES, Mappings, mapping_flags, size_of, target_of
from mpiio_ext.pioneer.engine.coverage import (
    BY_DESCRIPTOR,
    LEFT_OUT,
    NAMELESS,
    ONE_NAME,
    OPERATIONS,
    engine_number,
    reason_of,
)
from mpiio_ext.pioneer.engine.existing import existing_files
from mpiio_ext.pioneer.engine.extents import own_values
from mpiio_ext.pioneer.engine.flags import open_flags
from mpiio_ext.pioneer.engine.handles import Requests, handles_of
from mpiio_ext.pioneer.engine.meetings import meetings
from mpiio_ext.pioneer.engine.opens import AT_OFFSETS, IMPLIED, opened
from mpiio_ext.pioneer.engine.parts import Parts
from mpiio_ext.pioneer.engine.places import PlaceError, Placing
from mpiio_ext.pioneer.engine.plain import Columns, States, plain_columns, plain_rows
from mpiio_ext.pioneer.engine.rank_views import RankViews
from mpiio_ext.pioneer.operations import CATALOG, LISTING, SECOND_NAMES, WHENCE, Operation, Role, operation_of
from mpiio_ext.pioneer.path import Template, WorkloadPath
from mpiio_ext.pioneer.path.groups_of_ranks import group_of_rank
from mpiio_ext.pioneer.path.short import MOVED, moved_in_extra
from mpiio_ext.pioneer.path.views import View
from mpiio_ext.pioneer.profile import find_sessions

#: Of an offset, a size in bytes or a slack time in ns: sums of several are still numbers of 64 bits.
MOST = 1 << 60

#: Operations whose offset the plan has although they are neither accesses nor seeks.
_AT_OFFSETS = frozenset({"sync_file_range", "MPI_File_get_byte_offset"})


class PlanError(ValueError):
    """An operation of a path cannot be planned; the message has its ID and its name."""


@dataclass(slots=True)
class Plan:
    """The operations of one rank; arrays have an element for each.

    Attributes
    ----------
    ids : rows of the path, with the opens that it lacks (`opens.with_opens`).
    operation : number of the engine's operation.
    file, second : index in `paths`, -1: none; the other name of calls that have two.
    slot : which open handle, -1: none.
    communicator : of MPI_File_open: index in `communicators`, -1: this rank alone takes part.
    flags : of opens and seeks; of mmap its protection, and `beside.PRIVATE`.
    request : of nonblocking calls and of waits, -1: none, or all.
    other : of calls on mappings which one; of copies the handle of their target; -1: none (`beside`).
    view : of MPI_File_set_view: index in `views`, else -1.
    offset, size : bytes; an offset of -1 is the file pointer; of a view its displacement.
    place : of writes what the bytes are counted from; 0 if that is not known.
    end : of reads the byte of the file that they do not go beyond, -1: not known.
    moved : of reads the bytes that they have moved in the trace, where these are fewer than `size`; else -1.
    slack : ns.
    start_ns : that the rank begins after the first one; not in `slack`.
    failed_before : the call has failed in the trace, too.
    meets : how often all ranks meet before it (`meetings`).
    meets_after : the same behind the last one.
    through : of accesses: which of `in_force` their offsets count in, -1: the file itself.
    stream : of accesses: where in the view, or the file, -1: not known.
    paths : files, as they are named here.
    communicators : their ranks, in the order in which they are made; an empty one is that of all ranks.
    views : texts of file types.
    in_force : views, each time that one is set.
    slots, requests, mappings : numbers of handles, of nonblocking calls that are under way, and of mappings, at a time.
    folders : those of `paths` that are opened as folders.
    existing : those of `paths` that were there before the program, and at least how long, bytes (`existing`).
    together : what all ranks have to make alike, int64 of shape (n, 4): the collective calls on files that all have
        opened: the session, the engine's operation, how often ranks have met before it, and the row in `ids`.
    unknown : how many operations of each name are left out.
    reasons : why, by name.
    """

    ids: NDArray[np.int64]
    operation: NDArray[np.uint8]
    file: NDArray[np.int32]
    second: NDArray[np.int32]
    slot: NDArray[np.int32]
    communicator: NDArray[np.int32]
    flags: NDArray[np.int32]
    request: NDArray[np.int32]
    other: NDArray[np.int32]
    view: NDArray[np.int32]
    offset: NDArray[np.int64]
    size: NDArray[np.int64]
    place: NDArray[np.int64]
    end: NDArray[np.int64]
    through: NDArray[np.int32]
    stream: NDArray[np.int64]
    slack: NDArray[np.int64]
    moved: NDArray[np.int64]
    failed_before: NDArray[np.bool_]
    meets: NDArray[np.int32]
    meets_after: int
    paths: list[str]
    communicators: list[tuple[int, ...]]
    views: list[str]
    in_force: list[View]
    slots: int
    requests: int
    mappings: int = 0
    start_ns: int = 0
    folders: set[str] = field(default_factory=set)
    existing: dict[str, int] = field(default_factory=dict)
    together: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 4), np.int64))
    unknown: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)

    @property
    def bytes_written(self) -> int:
        """Bytes that the plan writes."""
        return int(self.size[np.isin(self.operation, writing_numbers())].sum())


def _moving_numbers(*, writes: bool) -> list[int]:
    moving = {name for (_, name), kind in CATALOG.items() if kind.writes is writes and kind.role is not Role.END}
    return sorted({item for item in map(OPERATIONS.get, moving | COPIES) if item is not None})


def writing_numbers() -> list[int]:
    """Return the engine's numbers of operations that write data."""
    return _moving_numbers(writes=True)


def reading_numbers() -> list[int]:
    """Return the engine's numbers of operations that read data."""
    return _moving_numbers(writes=False)


# ---- offsets ---------------------------------------------------------------------------------------------------------


def _offsets_in_parts(path: WorkloadPath, parts: Parts, group: int, own: NDArray[np.int64]) -> list[int]:
    """Return the offsets of this rank, -1 if they are not known: in files of communicators by its place in them."""
    found: list[int] = own.tolist()
    if not path.info.communicators:
        return found
    columns = [pc.fill_null(path.table[f"offset_{one}"], -1).to_pylist() for one in range(path.group_count)]
    for row in range(len(found)):
        if parts.rule_of(row) is not None:
            moved = parts.offset(row, group, {one: column[row] for one, column in enumerate(columns)})
            found[row] = columns[group][row] if moved is None else moved
    return found


# ---- the plan --------------------------------------------------------------------------------------------------------

_KINDS = {
    "operation": np.uint8,
    **dict.fromkeys(
        ("file", "second", "slot", "communicator", "flags", "request", "other", "view", "through"), np.int32
    ),
}


class Planner:
    """Goes along a path for one rank. Accesses that nothing else depends on are left to `plain`."""

    def __init__(self, path: WorkloadPath, rank: int, ranks: int, places: Placing) -> None:
        table = path.table
        self.path, self.rank, self.ranks, self.places = path, rank, ranks, places
        self.group = group_of_rank(rank, ranks, path.info.members, path.info.communicators)
        self.names = list(zip(path.words("layer").tolist(), path.words("operation").tolist(), strict=True))
        kinds = {pair: operation_of(*pair) for pair in set(self.names)}
        self.kinds = [kinds[pair] for pair in self.names]
        sessions = find_sessions(path)
        mine = (table["groups"].to_numpy() >> self.group & 1).astype(np.bool_).tolist()
        self.sessions, self.handles = sessions, handles_of(sessions, self.kinds, mine)
        self.parts = Parts(path, sessions, rank, ranks)
        self.views = RankViews(path, self.kinds, sessions, self.parts)
        self.meetings = np.array(meetings(path, self.kinds, sessions), np.int64)
        self.requests, self.mappings = Requests(), Mappings()
        self.files, self.extras = path.words("file").tolist(), path.words("extra").tolist()
        self.owners, self.groups = path.words("owner").tolist(), table["groups"].to_numpy()
        # lists, since elements of arrays take several times as long to get
        self.everybody = (self.groups == (1 << path.group_count) - 1).tolist()
        own = self.views.offsets_of_copy(own_values(path, "offset", rank, self.group), rank, self.group)
        self.offsets = _offsets_in_parts(path, self.parts, self.group, own)
        self.in_stream = pc.fill_null(path.table[f"offset_{self.group}"], -1).to_pylist()
        self.implied: set[int] = set()  # sessions whose open is not in the trace
        self.dealt: set[int] = set()  # of `in_force`: views of which each group has its own
        self.sizes = own_values(path, "size", rank, self.group).tolist()
        self.numbers: dict[str, int] = {}
        self.known: dict[str, int] = {}  # the same by the name in the path
        self.view_numbers: dict[str, int] = {}
        self.communicators: dict[tuple[int, ...], int] = {}
        self.in_force: list[View] = []
        self.folders: set[str] = set()
        self.unknown: Counter[str] = Counter()
        self.reasons: dict[str, str] = {}

    def number_of(self, name: str | None) -> int:
        """Return the number of a file of the path, by its name here."""
        if name is None:
            return -1
        if name not in self.known:  # a place is searched on the file system: once
            place = self.places.of(Template(name).name(self.rank, self.ranks))
            self.known[name] = self.numbers.setdefault(str(place), len(self.numbers))
        return self.known[name]

    def leave_out(self, kind: Operation, *, known: bool, why: str | None = None) -> None:
        """Count an operation that is not made."""
        self.unknown[kind.name] += 1
        self.reasons.setdefault(kind.name, why or reason_of(kind.name, known=known))

    def _is_of_duplicate(self, row: int, kind: Operation) -> bool:
        """Return whether this closes a duplicate: a later call closes, too; one that a stream owns has no close."""
        session = self.handles.of[row]
        return session >= 0 and kind.role is Role.CLOSE and row < self.handles.last_close[session]

    def _slot(self, row: int, kind: Operation) -> int:
        session = self.handles.of[row]
        if kind.role is Role.OPEN:
            return self.handles.open(session)
        if kind.role is Role.CLOSE:
            slot = self.handles.close(session)
            self.requests.close(slot)
            return slot
        return self.handles.slot_of.get(session, -1) if session >= 0 else -1

    def _other(self, row: int, kind: Operation, extra: dict[str, Any]) -> int:
        """Return the mapping that a call makes or uses, or the handle that a copy gets; -1 if there is none."""
        session, size = self.handles.of[row], self.sizes[row]
        if kind.role is Role.MAP:
            return self.mappings.add(session, extra, size)
        if kind.role is Role.UNMAP or kind.name == "msync":
            return self.mappings.find(session, extra, size, ends=kind.role is Role.UNMAP)
        if kind.name in COPIES:
            return target_of(self.handles.slot_of, self.sessions.sessions, extra.get("file2"))
        return -1

    def _flags(self, row: int, kind: Operation, extra: dict[str, Any]) -> int:
        if kind.role is Role.OPEN:
            session = self.handles.of[row]
            return open_flags(kind, extra, reads=self.handles.reads[session], writes=self.handles.writes[session])
        if kind.role is Role.SEEK and self.offsets[row] < 0:  # where it leads to is not known
            return 0 if kind.name == "rewind" else WHENCE.get(str(extra.get("whence", 0)), 0)
        if kind.role is Role.MAP:
            return mapping_flags(extra)
        return int(bool(extra.get("value"))) if kind.name == "MPI_File_set_atomicity" else 0

    def _through(self, row: int) -> int:
        """Return the view in which the offsets of an operation count."""
        return self.handles.views.get(self.handles.of[row], -1)

    def _offset(self, row: int, through: int) -> int:
        """Return the offset of an operation; `through` a view that differs between ranks it is the representative's."""
        found: int = (self.in_stream if through in self.dealt else self.offsets)[row]
        return found

    def _at_offset(self, row: int, kind: Operation) -> bool:
        """Return whether an access is made at its offset, since the trace lacks the session's seeks."""
        return (
            kind.name in AT_OFFSETS
            and self.handles.of[row] in self.implied
            and self._offset(row, self._through(row)) >= 0
        )

    def _where(self, row: int, kind: Operation, extra: dict[str, Any]) -> tuple[int, int, int]:
        """Return offset, place and end of an access."""
        through, size = self._through(row), max(0, int(extra.get(MOVED, self.sizes[row])))
        offset = self._offset(row, through)
        view = self.in_force[through] if through >= 0 else None
        explicit = (
            kind.explicit_offset
            or kind.role in (Role.SEEK, Role.RESIZE, Role.MAP)
            or kind.name in _AT_OFFSETS
            or kind.name in COPIES
            or self._at_offset(row, kind)
        )
        if kind.role is Role.SEEK:
            explicit, offset = True, max(offset, 0)
        place = 0 if offset < 0 else offset + (view.first if view is not None else 0)
        end = -1 if offset < 0 else offset + size if view is None else view.end_of(offset + size)
        return (offset if explicit else -1), place, end

    def _view(self, row: int) -> View | None:
        found = self.views.set_by(row, self.group, self.rank)
        if found is None:
            return None
        self.handles.views[self.handles.of[row]] = len(self.in_force)
        if found[1]:
            self.dealt.add(len(self.in_force))
        self.in_force.append(found[0])
        return found[0]

    def _communicator(self, row: int, extra: dict[str, Any]) -> int:
        """Return the number of the communicator of an open; -1: this rank opens it alone."""
        members = self.parts.members(row)
        if members is None:
            template = Template(self.files[row] or "")  # a file with a name for each rank is no file of all
            alone = (
                extra.get("comm") == "self"
                or self.owners[row] in ("private", "root", "child")
                or template.has_rank
                or template.of_part
            )
            if alone or not self.everybody[row]:
                return -1
        elif members == (self.rank,):
            return -1
        whole = members is None or len(members) == self.ranks
        return self.communicators.setdefault(() if whole else members or (), len(self.communicators))

    def existing(self) -> dict[str, int]:
        """Return the files of this rank that were there before the program, and how long, behind its last row."""
        paths, found = list(self.numbers), existing_files(self.path, self.kinds, self.sessions)
        return {paths[self.known[name]]: size for name, size in found.items() if name in self.known}

    def _lacking(self, row: int, kind: Operation) -> str | None:
        """Return why an operation that lacks a name cannot be made, None if it can."""
        if self.files[row] is None and (kind.in_session or kind.role is Role.META):
            return NAMELESS
        second = parsed(self.extras[row]).get("file2") if kind.name in SECOND_NAMES else ""
        return None if isinstance(second, str) else ONE_NAME

    def _is_left_out(self, row: int, kind: Operation, session: int, number: int | None) -> bool:
        """Return whether an operation is not made whatever its arguments are; it is counted then."""
        if self._is_of_duplicate(row, kind):
            self.leave_out(kind, known=True, why=LEFT_OUT["dup"])
            return True
        if kind.name in LISTING and session >= 0 and not self.handles.of_folder[session]:
            self.leave_out(kind, known=True, why=BY_DESCRIPTOR)
            return True
        lacking = None if number is None else self._lacking(row, kind)
        if number is None or lacking is not None or (session >= 0 and not self.handles.has_open[session]):
            self.leave_out(kind, known=number is not None, why=lacking)
            return True
        return False

    def row(self, row: int) -> Columns | None:
        """Return the columns of an operation, without its slack time; None if the operation is left out."""
        kind, session = self.kinds[row], self.handles.of[row]
        number = engine_number(kind.layer, kind.name)
        if self._is_left_out(row, kind, session, number):
            return None
        extra, view, request = parsed(self.extras[row]), -1, -1
        size = size_of(kind.name, extra, self.sizes[row])
        if kind.role is Role.OPEN and extra.get(IMPLIED):
            self.implied.add(session)
        if self._at_offset(row, kind):
            number = OPERATIONS.get(AT_OFFSETS[kind.name])
        other = self._other(row, kind, extra)
        if other < 0 and kind.name in COPIES:
            self.leave_out(kind, known=True)
            return None
        slot, flags = self._slot(row, kind), self._flags(row, kind, extra)
        offset, place, end = self._where(row, kind, extra)
        if kind.name == "MPI_File_set_view":
            set_to = self._view(row)
            if set_to is None:
                self.leave_out(kind, known=True)
                return None
            view, offset = self.view_numbers.setdefault(set_to.text, len(self.view_numbers)), set_to.displacement
        if kind.nonblocking:
            request = self.requests.start(extra, slot, self.files[row])
        elif kind.role is Role.WAIT:
            found = self.requests.wait(extra, self.files[row])
            if found is None:
                self.leave_out(kind, known=True)
                return None
            request = found
        second_name = extra.get("file2")
        file = self.number_of(self.files[row])
        second = self.number_of(second_name if isinstance(second_name, str) else None)
        if kind.name == "opendir" or (kind.role is Role.OPEN and kind.layer == "posix" and flags & os.O_DIRECTORY):
            self.folders.add(next(name for name, known in self.numbers.items() if known == file))
        together = self._communicator(row, extra) if kind.role is Role.OPEN and kind.layer == "mpiio" else -1
        assert number is not None
        if not -(1 << 31) <= flags < 1 << 31 or not -MOST <= offset <= MOST or not 0 <= size <= MOST:
            raise ValueError("flags, offset or size are beyond what files have")
        through = self._through(row)
        return {  # in which names cost nothing
            "ids": row,
            "operation": number,
            "file": file,
            "second": second,
            "slot": slot,
            "communicator": together,
            "flags": flags,
            "request": request,
            "other": other,
            "view": view,
            "offset": offset,
            "size": size,
            "place": place,
            "end": end,
            "through": through,
            "stream": self._offset(row, through),
        }


def _gone_along(
    planner: Planner, rows: Sequence[int], ids: NDArray[np.int64], states: States
) -> list[Mapping[str, Any]]:
    """Return the columns of rows that are planned one by one; the states of their sessions are noted.

    `ids` are those of the path itself.
    """
    found = list[Mapping[str, Any]]()
    for row in rows:
        try:
            columns = planner.row(row)
        except PlaceError as error:
            raise PlaceError(f"operation {ids[row]}: {planner.kinds[row].name}: {error}") from error
        except (ValueError, TypeError, OverflowError, AttributeError, LookupError) as error:
            name, extra = planner.kinds[row].name, planner.extras[row]
            raise PlanError(f"operation {ids[row]}: {name}: {error}; its extra is {str(extra)[:200]}") from error
        session = planner.handles.of[row]
        states.note(session, row, planner.handles.slot_of.get(session, -1), planner.handles.views.get(session, -1))
        if columns is not None:
            found.append(columns)
    return found


def _check_range(path: WorkloadPath, group: int, ids: NDArray[np.int64]) -> None:
    """Raise a PlanError if a number of a group is outside the range of files and clocks."""
    for name in ("offset", "size", "slack"):
        beyond = np.flatnonzero(pc.fill_null(path.table[f"{name}_{group}"], 0).to_numpy() > MOST)
        if beyond.size:
            row = int(beyond[0])
            raise PlanError(f"operation {ids[row]}: {path.words('operation')[row]}: {name}_{group} is beyond {MOST:,}")


def _together(planner: Planner, arrays: dict[str, Any], met: NDArray[np.int32], whole: int) -> NDArray[np.int64]:
    """Return `Plan.together`; `whole` is the number of the communicator of all ranks, -1: there is none."""
    rows = arrays["ids"]
    if whole < 0 or not rows.size:
        return np.zeros((0, 4), np.int64)
    sessions = np.array(planner.handles.of, np.int64)[rows]
    kinds = [planner.kinds[row] for row in rows.tolist()]
    opens = (arrays["communicator"] == whole) & np.array([kind.role is Role.OPEN for kind in kinds])
    alike = np.array([kind.collective for kind in kinds], np.bool_) & np.isin(sessions, sessions[opens])
    return np.stack([sessions, arrays["operation"].astype(np.int64), met.astype(np.int64), rows], axis=1)[alike]


def make_plan(path: WorkloadPath, rank: int, ranks: int, places: Placing) -> Plan:
    """Return the operations of a rank when so many ranks carry out a path.

    Raises
    ------
    PlaceError
        A name of the path leads out of the folder.
    PlanError
        An operation of the path makes no sense: its arguments are of the wrong kind, or beyond what files have.
    """
    path, ids = opened(path)
    planner = Planner(path, rank, ranks, places)
    _check_range(path, planner.group, ids)
    slacks = pc.fill_null(path.table[f"slack_{planner.group}"], 0).to_numpy()
    every = np.flatnonzero(planner.groups >> planner.group & 1).astype(np.int64)
    plain, states = plain_rows(planner, every), States()
    rows = _gone_along(planner, every[~plain].tolist(), ids, states)
    at_once: Mapping[str, Any] = plain_columns(planner, every[plain], states)
    arrays: dict[str, Any] = {
        name: np.append(np.fromiter(map(itemgetter(name), rows), np.int64, len(rows)), column)
        for name, column in at_once.items()
    }
    order = np.argsort(arrays["ids"], kind="stable")
    arrays = {name: column[order].astype(_KINDS.get(name, np.int64)) for name, column in arrays.items()}
    waited = np.cumsum(slacks[every])[np.searchsorted(every, arrays["ids"])]
    arrays["slack"] = np.diff(waited, prepend=0)  # the slack of an operation that is left out is the next one's
    met = np.searchsorted(planner.meetings, arrays["ids"], side="right").astype(np.int32)
    errors = pc.fill_null(pc.match_substring(path.table["extra"].cast("string"), '"errno":'), False).to_numpy()
    return Plan(
        **arrays,
        moved=moved_in_extra(path.table["extra"])[arrays["ids"]],
        failed_before=errors[arrays["ids"]],
        meets=np.diff(met, prepend=np.int32(0)),
        meets_after=planner.meetings.size - int(met.max(initial=0)),
        paths=list(planner.numbers),
        communicators=list(planner.communicators),
        views=list(planner.view_numbers),
        in_force=planner.in_force,
        slots=planner.handles.count,
        requests=planner.requests.count,
        mappings=planner.mappings.count,
        start_ns=path.info.start(planner.group),
        folders=planner.folders,
        existing=planner.existing(),
        unknown=planner.unknown,
        reasons=planner.reasons,
        together=_together(planner, arrays, met, planner.communicators.get((), -1)),
    )
