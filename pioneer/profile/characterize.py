"""Phase C: the characteristics of a workload path.

Content.   Table III of the paper, for each file class separately: ISG, IRG, D, OT, FS, RT1, RT2, OFF, SIZE, SEQ, AM, OS
           and ST, as empirical distributions. All distances are differences of global sequence IDs.
Choices.   D counts all operations of a session, its open and close included. The distance from the beginning of the
           path to a file's first session is kept apart from ISG (`first`), though the paper's algorithm draws both from
           one: they are of different size. SEQ is the share of data operations, the first of a session excluded, that
           begin where the session's data operation before has ended. What differs between groups is taken from the
           lowest group that takes part: the root's, where it does.

Source: He, Du, Narasimhamurthy, "PIONEER", sections IV-C and V-C.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mpiio_ext.pioneer.operations import DATA, Operation, Role, operation_of
from mpiio_ext.pioneer.path import OWNERS, WorkloadPath
from mpiio_ext.pioneer.profile.distributions import Distribution
from mpiio_ext.pioneer.profile.extended import extended_names
from mpiio_ext.pioneer.profile.sessions import OUTSIDE, Session, Sessions, find_sessions

__all__ = ["NO_FILE", "SCALE", "ClassProfile", "Profile", "characterize"]

#: Class of operations that name no file.
NO_FILE = "none"
#: Sequentiality is kept in thousandths.
SCALE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassProfile:
    """The characteristics of the files of one class.

    Attributes
    ----------
    files : OS, number of files that are opened.
    opened : OT, open sessions of a file.
    first : ID of the first operation of a file's first session.
    session_gap : ISG, from the last operation of a session to the first of the file's next one.
    request_gap : IRG, from one operation of a session to the next.
    duration : D, operations of a session.
    file_size : FS, bytes: the largest offset + size of a file.
    inside : RT1, how often each extended operation occurs in sessions, without opens and closes.
    outside : RT2, how often each operation occurs outside of sessions.
    offset : OFF, bytes, of data operations whose offset is known.
    size : SIZE, bytes, of data operations.
    sequentiality : SEQ, thousandths, of sessions with two data operations at least.
    access_mode : AM, how many sessions read, write, do both ("read_write") or neither ("none").
    slack : ST, ns.
    """

    files: int
    opened: Distribution
    first: Distribution
    session_gap: Distribution
    request_gap: Distribution
    duration: Distribution
    file_size: Distribution
    inside: Mapping[str, int]
    outside: Mapping[str, int]
    offset: Distribution
    size: Distribution
    sequentiality: Distribution
    access_mode: Mapping[str, int]
    slack: Distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The characteristics of a workload path.

    Attributes
    ----------
    operations : number of operations of the path.
    span : one more than the highest global sequence ID.
    ranks : of the program that was traced; 0: not known.
    classes : by file class, and `NO_FILE`.
    shapes : what the characteristics have in common, as JSON (`synthesis.document`); None: they are independent.
    """

    operations: int
    span: int
    ranks: int
    classes: Mapping[str, ClassProfile]
    shapes: Mapping[str, Any] | None = None


# ---- columns ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Columns:
    """The path as numpy arrays; -1 where a number is not known."""

    operations: list[Operation]
    names: list[str | None]
    owners: NDArray[np.object_]
    files: NDArray[np.object_]
    offset: NDArray[np.int64]
    size: NDArray[np.int64]
    slack: NDArray[np.int64]
    sessions: Sessions


def _of_lowest_group(path: WorkloadPath, name: str) -> NDArray[np.int64]:
    columns = [path.table[f"{name}_{group}"] for group in range(path.group_count)]
    found = pc.fill_null(pc.coalesce(*columns), -1)
    return np.asarray(found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found)


def _columns_of(path: WorkloadPath) -> _Columns:
    sessions = find_sessions(path)
    kinds: dict[tuple[str, str], Operation] = {}
    pairs = zip(path.words("layer"), path.words("operation"), strict=True)
    operations = [kinds.get(pair) or kinds.setdefault(pair, operation_of(*pair)) for pair in pairs]
    owners = path.words("owner")
    owners[pc.is_null(path.table["owner"]).to_numpy()] = NO_FILE
    names, files = extended_names(operations, sessions), path.words("file")
    return _Columns(operations, names, owners, files, _of_lowest_group(path, "offset"), _of_lowest_group(path, "size"),
                    _of_lowest_group(path, "slack"), sessions)  # fmt: skip


# ---- of sessions -----------------------------------------------------------------------------------------------------


def _sequentiality(columns: _Columns, session: Session) -> int | None:
    """Return the thousandths of its data operations that begin where the one before has ended."""
    rows = [row for row in session.members if columns.operations[row].role in DATA]
    known = [row for row in rows if columns.offset[row] >= 0 and columns.size[row] >= 0]
    if len(known) < 2:
        return None
    ends = columns.offset[known[:-1]] + columns.size[known[:-1]]
    return int(SCALE * int((columns.offset[known[1:]] == ends).sum()) // (len(known) - 1))


def _access_mode(columns: _Columns, session: Session) -> str:
    roles = {columns.operations[row].role for row in session.members}
    writes = {columns.operations[row].writes for row in session.members if columns.operations[row].role is Role.BEGIN}
    reads_some, writes_some = Role.READ in roles or False in writes, Role.WRITE in roles or True in writes
    if reads_some and writes_some:
        return "read_write"
    return "read" if reads_some else "write" if writes_some else "none"


@dataclass(slots=True)
class _OfSessions:
    """Samples of the sessions of one class."""

    by_file: dict[tuple[str, str], list[Session]] = field(default_factory=lambda: defaultdict(list))
    request_gaps: list[NDArray[np.int64]] = field(default_factory=list)
    durations: list[int] = field(default_factory=list)
    sequentialities: list[int] = field(default_factory=list)
    access_modes: Counter[str] = field(default_factory=Counter)

    def add(self, columns: _Columns, session: Session) -> None:
        self.by_file[session.layer, session.file].append(session)
        members = np.asarray(session.members, np.int64)
        self.request_gaps.append(members[1:] - members[:-1])
        self.durations.append(len(session.members))
        share = _sequentiality(columns, session)
        if share is not None:
            self.sequentialities.append(share)
        self.access_modes[_access_mode(columns, session)] += 1

    def firsts(self) -> list[int]:
        return [several[0].first for several in self.by_file.values()]

    def session_gaps(self) -> list[int]:
        return [after.first - before.last for several in self.by_file.values()
                for before, after in itertools.pairwise(several)]  # fmt: skip


def _file_sizes(columns: _Columns, rows: NDArray[np.int64]) -> list[int]:
    largest: dict[str, int] = {}
    ends = columns.offset[rows] + columns.size[rows]
    for file, end in zip(columns.files[rows], ends, strict=True):
        largest[file] = max(largest.get(file, 0), int(end))
    return list(largest.values())


def _counted(names: Iterable[str | None]) -> dict[str, int]:
    return dict(sorted(Counter(name for name in names if name is not None).items()))


def _joined(arrays: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate(arrays) if arrays else np.zeros(0, np.int64)


def _class_profile(columns: _Columns, rows: NDArray[np.int64], samples: _OfSessions) -> ClassProfile:
    inside = rows[columns.sessions.of[rows] != OUTSIDE]
    outside = rows[columns.sessions.of[rows] == OUTSIDE]
    structure = (Role.OPEN, Role.CLOSE)
    data = np.array([row for row in inside if columns.operations[row].role in DATA], np.int64)
    placed = data[(columns.offset[data] >= 0) & (columns.size[data] >= 0)]
    slack = columns.slack[rows]
    return ClassProfile(
        files=len(samples.by_file),
        opened=Distribution.of([len(several) for several in samples.by_file.values()]),
        first=Distribution.of(samples.firsts()),
        session_gap=Distribution.of(samples.session_gaps()),
        request_gap=Distribution.of(_joined(samples.request_gaps)),
        duration=Distribution.of(samples.durations),
        file_size=Distribution.of(_file_sizes(columns, placed)),
        inside=_counted(columns.names[row] for row in inside if columns.operations[row].role not in structure),
        outside=_counted(columns.names[row] for row in outside),
        offset=Distribution.of(columns.offset[data][columns.offset[data] >= 0]),
        size=Distribution.of(columns.size[data][columns.size[data] >= 0]),
        sequentiality=Distribution.of(samples.sequentialities),
        access_mode=dict(sorted(samples.access_modes.items())),
        slack=Distribution.of(slack[slack >= 0]),
    )


def characterize(path: WorkloadPath) -> Profile:
    """Return the characteristics of a workload path."""
    columns = _columns_of(path)
    samples: dict[str, _OfSessions] = defaultdict(_OfSessions)
    for session in columns.sessions.sessions:
        samples[session.owner].add(columns, session)
    classes = {}
    for owner in (*OWNERS, NO_FILE):
        rows = np.flatnonzero(columns.owners == owner)
        if rows.size:
            classes[owner] = _class_profile(columns, rows, samples[owner])
    count = path.table.num_rows
    span = 1 + int(pc.max(path.table["id"]).as_py()) if count else 0
    return Profile(operations=count, span=span, ranks=path.info.ranks, classes=classes)
