"""Open handles of several representatives: which of one stands for which of another in the path.

Problem.   A file may be open through several handles at a time, one to read and one to write. Numbers of handles differ
           from rank to rank, so they are no part of the shadow sequence; but an operation through one handle must not
           be taken for the same operation through another.
Algorithm. Sessions are numbered by the sanitization: by the open that a handle, or a duplicate of it, comes from. Where
           a representative has several of one file at a time, a number that does not depend on the rank is part of the
           shadow sequence (`tags_of`). The number consists of the access that the open allows and of the first free
           place among opens of its kind. After the comparison sessions are paired (`pair_sessions`): those whose opens
           correspond, then those in which most operations do. What corresponds but is of sessions that are no pair is
           made by each group for itself.
Guarantee. Each session of the path is at most one of each group, and holds that group's operations of it in order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mpiio_ext.pioneer.access import allowed
from mpiio_ext.pioneer.operations import operation_of
from mpiio_ext.pioneer.table import LAYERS

#: In place of a session's number, where none is known.
NONE = -1


def _words(table: pa.Table, name: str) -> tuple[NDArray[np.int64], list[str]]:
    column = table[name].cast(pa.string()).combine_chunks()
    encoded = (
        (column.chunk(0) if isinstance(column, pa.ChunkedArray) else column).dictionary_encode()
        if len(column)
        else pa.array([], pa.string()).dictionary_encode()
    )
    return np.asarray(pc.fill_null(encoded.indices, -1)).astype(np.int64), encoded.dictionary.to_pylist()


def sessions_of(table: pa.Table) -> NDArray[np.int64]:
    """Return the number of the session of each row of a trace table, from 0 on; `NONE` if unknown.

    Layers are apart: `fdopen`'s stream of a descriptor is a session of its own. But what goes through the descriptor of
    a stream that `fopen` has opened belongs to the stream, as all data of C++'s streams does.
    """
    found = np.full(table.num_rows, NONE, np.int64)
    if "session" not in table.column_names or not table.num_rows:
        return found
    given = np.asarray(pc.fill_null(table["session"], NONE))
    layers, layer_names = _words(table, "layer")
    operations, names = _words(table, "operation")
    pairs, inverse = np.unique(layers * len(names) + operations, return_inverse=True)
    inside = np.array(
        [operation_of(layer_names[pair // len(names)], names[pair % len(names)]).in_session for pair in pairs.tolist()],
        bool,
    )[inverse.reshape(-1)]
    numbers = np.array([LAYERS.index(name) for name in layer_names], np.int64)[layers]
    opening = np.array([name in ("fopen", "freopen", "tmpfile") for name in names], bool)[operations]
    rows = np.flatnonzero((given >= 0) & inside)
    numbers[np.isin(given, given[rows[opening[rows]]])] = LAYERS.index("stdio")
    found[rows] = np.unique(given[rows] * len(LAYERS) + numbers[rows], return_inverse=True)[1].reshape(-1)
    return found


def first_rows(sessions: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which rows are the first of their session."""
    found = np.zeros(sessions.size, bool)
    numbers, rows = np.unique(sessions, return_index=True)
    found[rows[numbers >= 0]] = True
    return found


# ---- several of one file at a time -----------------------------------------------------------------------------------


def _spans(sessions: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first and the last row of each session; numbers are 0, 1, ..."""
    rows = np.flatnonzero(sessions >= 0)
    count = int(sessions.max(initial=NONE)) + 1
    first, last = np.full(count, sessions.size, np.int64), np.full(count, -1, np.int64)
    np.minimum.at(first, sessions[rows], rows)
    np.maximum.at(last, sessions[rows], rows)
    return first, last


def busy_files(sessions: NDArray[np.int64], layers: Sequence[str], files: Sequence[str | None]) -> set[tuple[str, str]]:
    """Return the layers and names of the files that are open several times at a time."""
    first, last = _spans(sessions)
    until: dict[tuple[str, str], int] = {}
    found = set()
    for session in np.argsort(first, kind="stable").tolist():
        file = files[first[session]]
        if file is None:
            continue
        key = (layers[first[session]], file)
        if until.get(key, -1) > first[session]:
            found.add(key)
        until[key] = max(until.get(key, -1), int(last[session]))
    return found


def tags_of(
    table: pa.Table, sessions: NDArray[np.int64], files: Sequence[str | None], busy: set[tuple[str, str]]
) -> NDArray[np.int64]:
    """Return for each row the number of its session among those of the file; 0 if the file is not `busy`.

    Parameters
    ----------
    table, sessions : of one representative.
    files : by row, as templates.
    busy : of all representatives.
    """
    tags = np.zeros(int(sessions.max(initial=NONE)) + 2, np.int64)  # the last one is that of no session
    if not busy:
        return tags[sessions]
    first, last = _spans(sessions)
    layers, names = (table[name].cast(pa.string()).to_pylist() for name in ("layer", "operation"))
    taken: dict[tuple[str, str, tuple[bool, bool]], list[int]] = defaultdict(list)
    for session in np.argsort(first, kind="stable").tolist():
        row = int(first[session])
        key = (layers[row], files[row] or "")
        if key not in busy:
            continue
        kind = allowed(operation_of(layers[row], names[row]), table["extra"][row].as_py())
        ends = taken[key[0], key[1], kind]
        slot = next((at for at, end in enumerate(ends) if end < row), len(ends))
        ends[slot : slot + 1] = [int(last[session])]
        tags[session] = 1 + kind[0] + 2 * kind[1] + 4 * slot
    return tags[sessions]


# ---- pairs -----------------------------------------------------------------------------------------------------------


def pair_sessions(
    known: NDArray[np.int64], own: NDArray[np.int64], begins: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], dict[int, int]]:
    """Return which pairs of operations stay pairs, and the session of the path of each session of a representative.

    Parameters
    ----------
    known, own : of each pair the session in the path, and that of the representative.
    begins : both are the first of their session.
    """
    both = (known >= 0) & (own >= 0)
    pairs, where = np.unique(np.stack([known[both], own[both]], axis=1), axis=0, return_inverse=True)
    weight = np.bincount(where.reshape(-1), 1 + begins[both] * float(known.size), minlength=len(pairs))
    of: dict[int, int] = {}
    used: set[int] = set()
    for at in np.argsort(-weight, kind="stable").tolist():
        one, other = (int(number) for number in pairs[at])
        if one not in used and other not in of:
            of[other] = one
            used.add(one)
    partner = np.full(int(own.max(initial=NONE)) + 2, NONE, np.int64)
    partner[list(of)] = list(of.values())
    return np.where(both, partner[own] == known, (known < 0) & (own < 0)), of
