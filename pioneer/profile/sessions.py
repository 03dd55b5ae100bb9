"""The framework of file open sessions: it assigns each operation of a path to an opening of a file.

Problem.   The order of a workload path mixes operations on many files. What happens to a file between an open and a
           close is one unit of behaviour (He, Du, Narasimhamurthy, "PIONEER", section IV-C, Figure 2).
Algorithm. Operations with one number in the path's column `session` are one session: those through one handle, and
           duplicates of it. Their layer is that of the first one, since what goes through the descriptor of a stream
           belongs to the stream. Where there is none, one pass: an open begins a session of its file and layer; later
           operations of column 2 on that file belong to the session that was begun last and is not ended; a close ends
           it. Where a trace has no opens (Darshan DXT), or a descriptor was inherited, the first operation on the file
           begins a session that has no open, and its last one ends it.
Guarantee. Every operation of column 2 that names a file belongs to exactly one session. All others belong to none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from mpiio_ext.pioneer.operations import Role, operation_of
from mpiio_ext.pioneer.path import WorkloadPath
from mpiio_ext.pioneer.table import encoded

#: In place of the number of a session.
OUTSIDE = -1


@dataclass(slots=True)
class Session:
    """One open session.

    Attributes
    ----------
    file, layer : what was opened, and how.
    owner : class of the file.
    members : global sequence IDs of its operations, in order; the open is the first and the close the last where there
        are any.
    has_open, has_close : whether there are. Groups that open by different calls have an open each.
    """

    file: str
    layer: str
    owner: str
    members: list[int]
    has_open: bool
    has_close: bool = False

    @property
    def first(self) -> int:
        """ID of its first operation."""
        return self.members[0]

    @property
    def last(self) -> int:
        """ID of its last operation."""
        return self.members[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sessions:
    """All sessions of a path.

    Attributes
    ----------
    sessions : in the order of their first operations.
    of : for each operation the number of its session, or OUTSIDE.
    """

    sessions: tuple[Session, ...]
    of: NDArray[np.int64]


def _nested(given: NDArray[np.int64], opens: NDArray[np.bool_], closes: NDArray[np.bool_]) -> list[int]:
    """Return the sessions' numbers of successive operations on one file, as they are counted from 0.

    The file is opened again before it is closed. An operation belongs to the session whose number it has, or, without a
    number, to the session that was begun last.
    """
    numbers: list[int] = []
    under_way: list[int] = []
    known: dict[int, int] = {}
    count = 0
    for number, begins, ends in zip(given.tolist(), opens.tolist(), closes.tolist(), strict=True):
        session = known.get(number, OUTSIDE) if number >= 0 else OUTSIDE if begins or not under_way else under_way[-1]
        if session == OUTSIDE:
            session, count = count, count + 1
            under_way.append(session)
            if number >= 0:
                known[number] = session
        numbers.append(session)
        if ends and session in under_way:
            under_way.remove(session)
    return numbers


@dataclass(slots=True)
class _Members:
    """Operations of column 2, sorted by layer and file, and by their order in each.

    Attributes
    ----------
    rows : where they are in the path.
    given : the number of the session that the path has, or OUTSIDE.
    fresh : the layer or the file is another one than before.
    opens, closes : they begin or end a session.
    """

    rows: NDArray[np.int64]
    given: NDArray[np.int64]
    fresh: NDArray[np.bool_]
    opens: NDArray[np.bool_]
    closes: NDArray[np.bool_]

    def numbers(self) -> NDArray[np.int64]:
        """Return a number for each operation that only those of the same session have."""
        starts = np.append(np.flatnonzero(self.fresh), self.rows.size)
        group = np.cumsum(self.fresh) - 1
        numbered = self.given >= 0
        ended = np.concatenate([[False], self.closes[:-1]])
        found = np.cumsum(self.fresh | self.opens | ended) - 1
        # A file some of whose operations have numbers, and one without that is opened again before it is closed.
        shares = np.bincount(group, numbered, minlength=starts.size - 1) / np.diff(starts)
        loops = (shares > 0) & (shares < 1)
        loops[group[self.opens & ~self.fresh & ~ended & ~numbered]] = True
        count = int(self.given.max(initial=0)) + 1
        found = np.where(numbered, self.rows.size + group * count + self.given, found)
        above = int(found.max(initial=0)) + 1
        for number in np.flatnonzero(loops).tolist():
            part = slice(int(starts[number]), int(starts[number + 1]))
            inner = _nested(self.given[part], self.opens[part], self.closes[part])
            found[part] = above + part.start + np.array(inner, np.int64)
        return np.asarray(np.unique(found, return_inverse=True)[1].reshape(-1), np.int64)


def flags_of(path: WorkloadPath, *roles: Role) -> NDArray[np.bool_]:
    """Return for each operation of a path whether it has one of the roles; without roles, that of column 2."""
    numbers, names = encoded(path.table["operation"])
    layers, layer_names = encoded(path.table["layer"])
    code = layers * (len(names) + 1) + numbers
    pairs, inverse = np.unique(code, return_inverse=True)
    kinds = [operation_of(layer_names[pair // (len(names) + 1)], names[pair % (len(names) + 1)]) for pair in pairs]
    chosen = np.array([kind.role in roles if roles else kind.in_session for kind in kinds], bool)
    return chosen[inverse.reshape(-1)] if kinds else np.zeros(0, bool)


def _members_of(path: WorkloadPath, files: NDArray[np.int64], layers: NDArray[np.int64]) -> _Members:
    rows = np.flatnonzero(flags_of(path) & (files >= 0))
    given = np.asarray(pc.fill_null(path.table["session"], OUTSIDE))[rows]
    numbered = np.flatnonzero(given >= 0)
    _, first, which = np.unique(given[numbered], return_index=True, return_inverse=True)
    layer = layers[rows]
    layer[numbered] = layer[numbered[first]][which.reshape(-1)]
    key = layer * (int(files.max(initial=0)) + 1) + files[rows]
    order = np.argsort(key, kind="stable")
    rows, key, given = rows[order], key[order], given[order]
    fresh = np.concatenate([[True], key[1:] != key[:-1]]) if rows.size else np.zeros(0, bool)
    return _Members(rows, given, fresh, flags_of(path, Role.OPEN)[rows], flags_of(path, Role.CLOSE)[rows])


def find_sessions(path: WorkloadPath) -> Sessions:
    """Return the open sessions of a workload path."""
    layers, layer_names = encoded(path.table["layer"])
    files, file_names = encoded(path.table["file"])
    owners, owner_names = encoded(path.table["owner"])
    members = _members_of(path, files, layers)
    of = np.full(files.size, OUTSIDE, np.int64)
    if not members.rows.size:
        return Sessions(sessions=(), of=of)
    numbers = members.numbers()
    order = np.argsort(numbers, kind="stable")
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    rows, opens, closes = members.rows[order], members.opens[order], members.closes[order]
    ends = np.append(starts[1:], rows.size)
    by_first = np.argsort(rows[starts], kind="stable")
    found = []
    for start, end in zip(starts[by_first].tolist(), ends[by_first].tolist(), strict=True):
        row = int(rows[start])
        owner = owner_names[owners[row]] if owners[row] >= 0 else "shared"
        found.append(
            Session(
                file_names[files[row]],
                layer_names[layers[row]],
                owner,
                rows[start:end].tolist(),
                bool(opens[start]),
                bool(closes[start:end].any()),
            )
        )
    ranked = np.empty(by_first.size, np.int64)
    ranked[by_first] = np.arange(by_first.size)
    of[rows] = np.repeat(ranked, ends - starts)
    return Sessions(sessions=tuple(found), of=of)
