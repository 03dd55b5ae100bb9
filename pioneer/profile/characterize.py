"""Phase C: the characteristics of a workload path.

Content.   Table III of the paper, for each file class separately: ISG, IRG, D, OT, FS, RT1, RT2, OFF, SIZE, SEQ, AM, OS
           and ST, as empirical distributions. All distances are differences of global sequence IDs.
Choices.   D counts all operations of a session, its open and close included. The distance from the beginning of the
           path to a file's first session is kept apart from ISG (`first`), though the paper's algorithm draws both from
           one: they are of different size. SEQ is the share of data operations, the first of a session excluded, that
           begin where the session's data operation before has ended. Properties that differ between groups come from
           the lowest group that takes part: from the root's, if it takes part.

Source: He, Du, Narasimhamurthy, "PIONEER", sections IV-C and V-C.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from mpiio_ext.common.shown import Shown
from mpiio_ext.pioneer.operations import DATA, Operation, Role, operation_of
from mpiio_ext.pioneer.path import OWNERS, WorkloadPath
from mpiio_ext.pioneer.profile.distributions import Distribution
from mpiio_ext.pioneer.profile.extended import extended_names
from mpiio_ext.pioneer.profile.sessions import OUTSIDE, Session, Sessions, find_sessions, flags_of

#: Class of operations that name no file.
NO_FILE = "none"
#: Sequentiality is stored in thousandths.
SCALE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassProfile:
    """The characteristics of the files of one class.

    Attributes
    ----------
    files : OS, number of files that are opened.
    opened : OT, open sessions of a file.
    first : global sequence ID of the first operation of a file's first session.
    session_gap : ISG, global sequence IDs from the last operation of a session to the first of the file's next one.
    request_gap : IRG, global sequence IDs from one operation of a session to the next.
    duration : D, operations of a session.
    file_size : FS, bytes: the largest offset + size of a file.
    inside : RT1, how often each extended operation occurs in sessions, without opens and closes.
    outside : RT2, how often each operation occurs outside of sessions.
    offset : OFF, bytes, of data operations whose offset is known.
    size : SIZE, bytes, of data operations.
    sequentiality : SEQ, thousandths, of sessions with two data operations at least.
    access_mode : AM, how many sessions read, write, do both ("read_write") or neither ("none").
    slack : ST, ns.
    rank_step : bytes between the accesses of a rank and those of the next one to the same file, the median; None: not
        known, or files of one rank. (The paper's engine moves offsets of shared files by rank, section V-E.)
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
    rank_step: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Profile(Shown):
    """The characteristics of a workload path.

    Attributes
    ----------
    operations : number of operations of the path.
    span : one more than the highest global sequence ID.
    ranks : of the program that was traced; 0: not known.
    classes : characteristics by file class, and of operations that name no file.
    shapes : what the characteristics have in common, as JSON (`synthesis.document`); None: they are independent.
    """

    operations: int
    span: int
    ranks: int
    classes: Mapping[str, ClassProfile]
    shapes: Mapping[str, Any] | None = None

    def rows(self) -> list[dict[str, Any]]:
        """Return the counts of each class of files."""
        return [
            {
                "class": name,
                "files": each.files,
                "open_sessions": sum(each.access_mode.values()),
                "operations": sum(each.inside.values()) + sum(each.outside.values()),
            }
            for name, each in self.classes.items()
        ]

    def lines(self) -> list[str]:
        """Return a line for each class of files."""
        return [
            f"{row['class']}: {row['files']} files, {row['open_sessions']} open sessions, "
            f"{row['operations']:,} operations"
            for row in self.rows()
        ]


# ---- columns ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Columns:
    """The path as numpy arrays; -1 if a number is not known."""

    names: NDArray[np.object_]
    owners: NDArray[np.object_]
    files: NDArray[np.object_]
    offset: NDArray[np.int64]
    size: NDArray[np.int64]
    slack: NDArray[np.int64]
    data: NDArray[np.bool_]
    structure: NDArray[np.bool_]
    reads: NDArray[np.bool_]
    writes: NDArray[np.bool_]
    sessions: Sessions
    steps: NDArray[np.float64]


def _steps(path: WorkloadPath) -> NDArray[np.float64]:
    """Return how far the access of the first subgroup is from the root's, in bytes for each rank; NaN: not known."""
    found = np.full(path.table.num_rows, np.nan)
    if path.group_count < 2:
        return found
    first, second = (pc.fill_null(path.table[f"offset_{group}"], -1).to_numpy() for group in (0, 1))
    ranks = path.info.representatives[1] - path.info.representatives[0]
    known = (first >= 0) & (second >= 0)
    found[known] = (second[known] - first[known]) / (ranks or 1)
    return found


def _of_lowest_group(path: WorkloadPath, name: str) -> NDArray[np.int64]:
    columns = [path.table[f"{name}_{group}"] for group in range(path.group_count)]
    found = pc.fill_null(pc.coalesce(*columns), -1)
    return np.asarray(found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found)


def _moving(path: WorkloadPath, operations: Sequence[Operation], role: Role) -> NDArray[np.bool_]:
    """Return which operations read, or write; first halves of split collectives count for both halves."""
    found = flags_of(path, role)
    for row in np.flatnonzero(flags_of(path, Role.BEGIN)).tolist():
        found[row] = operations[row].writes == (role is Role.WRITE)
    return found


def _columns_of(path: WorkloadPath) -> _Columns:
    sessions = find_sessions(path)
    kinds: dict[tuple[str, str], Operation] = {}
    pairs = zip(path.words("layer"), path.words("operation"), strict=True)
    operations = [kinds.get(pair) or kinds.setdefault(pair, operation_of(*pair)) for pair in pairs]
    owners = path.words("owner")
    owners[pc.is_null(path.table["owner"]).to_numpy()] = NO_FILE
    names = np.array(extended_names(operations, sessions), object)
    return _Columns(
        names=names,
        owners=owners,
        files=path.words("file"),
        offset=_of_lowest_group(path, "offset"),
        size=_of_lowest_group(path, "size"),
        slack=_of_lowest_group(path, "slack"),
        data=flags_of(path, *DATA),
        structure=flags_of(path, Role.OPEN, Role.CLOSE),
        reads=_moving(path, operations, Role.READ),
        writes=_moving(path, operations, Role.WRITE),
        sessions=sessions,
        steps=_steps(path),
    )


# ---- of sessions -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _OfSessions:
    """The counts of each session; arrays have an element for each, in their order.

    Attributes
    ----------
    owner : class of the file.
    duration : operations.
    sequentiality : thousandths of its data operations that begin where the one before has ended; -1: fewer than two.
    mode : name of what its operations do.
    gaps, gap_owner : from each operation to the next one of the same session, and the class of the file.
    """

    owner: NDArray[np.object_]
    duration: NDArray[np.int64]
    sequentiality: NDArray[np.int64]
    mode: NDArray[np.object_]
    gaps: NDArray[np.int64]
    gap_owner: NDArray[np.object_]


def _sequentiality(columns: _Columns, rows: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return the sequentiality of each session; `rows` are those of all sessions, session by session."""
    known = rows[columns.data[rows] & (columns.offset[rows] >= 0) & (columns.size[rows] >= 0)]
    session = columns.sessions.of[known]
    same = session[1:] == session[:-1]
    follows = columns.offset[known[1:]] == columns.offset[known[:-1]] + columns.size[known[:-1]]
    pairs = np.bincount(session[1:][same], minlength=count)
    following = np.bincount(session[1:][same & follows], minlength=count)
    return np.where(pairs > 0, SCALE * following // np.maximum(pairs, 1), -1)


def _samples_of(columns: _Columns) -> _OfSessions:
    """Return the counts of each session, in one pass over the operations of all."""
    sessions = columns.sessions.sessions
    count = len(sessions)
    inside = np.flatnonzero(columns.sessions.of != OUTSIDE)
    rows = inside[np.argsort(columns.sessions.of[inside], kind="stable")]
    session = columns.sessions.of[rows]
    owner = np.array([item.owner for item in sessions], object)
    some = [np.bincount(session[flags[rows]], minlength=count) > 0 for flags in (columns.reads, columns.writes)]
    same = session[1:] == session[:-1]
    return _OfSessions(
        owner=owner,
        duration=np.bincount(session, minlength=count),
        sequentiality=_sequentiality(columns, rows, count),
        mode=np.array(["none", "read", "write", "read_write"], object)[some[0] + 2 * some[1]],
        gaps=np.diff(rows)[same],
        gap_owner=owner[session[1:][same]],
    )


def _by_file(sessions: Sequence[Session], owner: str) -> list[list[Session]]:
    """Return the sessions of each file of a class."""
    found: dict[tuple[str, str], list[Session]] = defaultdict(list)
    for session in sessions:
        if session.owner == owner:
            found[session.layer, session.file].append(session)
    return list(found.values())


def _file_sizes(columns: _Columns, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the largest end of an operation in each file."""
    numbers: dict[str, int] = {}
    files = np.array([numbers.setdefault(name, len(numbers)) for name in columns.files[rows].tolist()], np.int64)
    largest = np.zeros(len(numbers), np.int64)
    np.maximum.at(largest, files, columns.offset[rows] + columns.size[rows])
    return largest


def _counted(names: NDArray[np.object_]) -> dict[str, int]:
    found = Counter(names.tolist())
    found.pop(None, None)
    return dict(sorted(found.items()))


def _rank_step(steps: NDArray[np.float64]) -> int | None:
    known = np.sort(steps[~np.isnan(steps)])
    return round(float(known[known.size // 2])) if known.size else None


def _class_profile(
    columns: _Columns,
    rows: NDArray[np.int64],
    samples: _OfSessions,
    owner: str,
    of: Callable[[ArrayLike], Distribution],
) -> ClassProfile:
    inside = rows[columns.sessions.of[rows] != OUTSIDE]
    outside = rows[columns.sessions.of[rows] == OUTSIDE]
    data = inside[columns.data[inside]]
    placed = data[(columns.offset[data] >= 0) & (columns.size[data] >= 0)]
    slack = columns.slack[rows]
    mine = samples.owner == owner
    by_file = _by_file(columns.sessions.sessions, owner)
    gaps = [after.first - before.last for several in by_file for before, after in itertools.pairwise(several)]
    sequential = samples.sequentiality[mine]
    return ClassProfile(
        files=len(by_file),
        opened=of([len(several) for several in by_file]),
        first=of([several[0].first for several in by_file]),
        session_gap=of(gaps),
        request_gap=of(samples.gaps[samples.gap_owner == owner]),
        duration=of(samples.duration[mine]),
        file_size=of(_file_sizes(columns, placed)),
        inside=_counted(columns.names[inside[~columns.structure[inside]]]),
        outside=_counted(columns.names[outside]),
        offset=of(columns.offset[data][columns.offset[data] >= 0]),
        size=of(columns.size[data][columns.size[data] >= 0]),
        sequentiality=of(sequential[sequential >= 0]),
        access_mode=_counted(samples.mode[mine]),
        slack=of(slack[slack >= 0]),
        rank_step=_rank_step(columns.steps[data]) if owner == "shared" else None,
    )


def characterize(path: WorkloadPath, *, fits: bool = False) -> Profile:
    """Return the characteristics of a workload path.

    Parameters
    ----------
    path : what is characterized.
    fits : also find known distributions that the samples do not contradict; some seconds at most.
    """
    of = Distribution.fitted if fits else Distribution.of
    columns = _columns_of(path)
    samples = _samples_of(columns)
    classes = {}
    for owner in (*OWNERS, NO_FILE):
        rows = np.flatnonzero(columns.owners == owner)
        if rows.size:
            classes[owner] = _class_profile(columns, rows, samples, owner, of)
    count = path.table.num_rows
    span = 1 + int(pc.max(path.table["id"]).as_py()) if count else 0
    return Profile(operations=count, span=span, ranks=path.info.ranks, classes=classes)
