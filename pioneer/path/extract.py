"""Making the generic workload path: the root's operations, with those of a child of each subgroup merged into them.

Problem.   Children mimic the root; what the root does beyond that, and what children do alone, must be found and kept
           in its place, since it shows how the two are correlated (paper, section IV-A).
Algorithm. Of each operation only its name, its layer and its file count, with the rank taken out of the file's name:
           the shadow sequence. The root's sequence is compared with the first child's (`diff.compare`). Corresponding
           operations are mimicked; an operation of the child alone is inserted behind the one that precedes it. The
           result is compared with the next subgroup's child, and so on. What corresponds is through the same handle of
           its file (`handles`).
Guarantee. Leaving out what a group takes no part in gives back its representative's operations, in order.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mpiio_ext.pioneer.access import creates, parsed
from mpiio_ext.pioneer.operations import CATALOG, Operation, Role, operation_of
from mpiio_ext.pioneer.path.communicators import Communicators, with_numbers
from mpiio_ext.pioneer.path.diff import EFFORT, Difference, compare
from mpiio_ext.pioneer.path.document import PathInfo
from mpiio_ext.pioneer.path.handles import NONE, busy_files, first_rows, pair_sessions, sessions_of, tags_of
from mpiio_ext.pioneer.path.names import LOOKED, MADE, OPENED, WRITTEN, Template, templates_by_rank
from mpiio_ext.pioneer.path.workload_path import PER_GROUP, WorkloadPath

_NO_FILE = "\0"
OPENS = sorted({operation.name for operation in CATALOG.values() if operation.role is Role.OPEN})


def _level(operation: Operation, extra: str | None) -> int:
    """Return the effect of an operation on its file: WRITTEN, MADE, OPENED or LOOKED."""
    if operation.writes or operation.role is Role.RESIZE or operation.name == "truncate":
        return WRITTEN
    if operation.role is Role.OPEN and creates(operation, extra):
        return MADE
    return OPENED if operation.in_session else LOOKED


def names_of(table: pa.Table) -> dict[str, int]:
    """Return the names of the files in a trace table, also the second ones of calls that have two.

    With each name stands the most that is done to the file: `names.WRITTEN`, `MADE`, `OPENED` or `LOOKED`.
    """
    plain = pa.table({name: _plain(table[name]) for name in ("layer", "operation", "file", "extra")})
    wanted = pc.or_(
        pc.is_in(plain["operation"], pa.array(OPENS)),
        pc.fill_null(pc.match_substring(plain["extra"], '"file2"'), False),
    )
    extra = pc.if_else(wanted, plain["extra"], pa.scalar(None, pa.string()))
    unique = plain.set_column(3, "extra", extra).group_by(["layer", "operation", "file", "extra"]).aggregate([])
    found: dict[str, int] = {}
    for row in unique.to_pylist():
        second = parsed(row["extra"]).get("file2")
        level = _level(operation_of(row["layer"], row["operation"]), row["extra"])
        for name, most in ((row["file"], level), (second, MADE)):
            if isinstance(name, str) and name:
                found[name] = max(found.get(name, LOOKED), most)
    return found


def slack_of(table: pa.Table) -> NDArray[np.int64]:
    """Return the time in ns from the end of each operation's predecessor to its start; 0 if they overlap.

    The first operation has none: 0. An operation without a duration ends when it starts.
    """
    start = table["timestamp"].to_numpy()
    duration = pc.fill_null(table["duration"], 0).to_numpy()
    slack = np.zeros(start.size, np.int64)
    ends = np.maximum.accumulate(start + duration)
    slack[1:] = np.maximum(0, start[1:] - ends[:-1])
    return slack


def _starts(tables: Mapping[int, pa.Table], chosen: Sequence[int]) -> tuple[int, ...]:
    """Return the ns from the first operation of any rank to the first one of each of those chosen.

    Ranks that have nothing in common in time are taken to have clocks that cannot be compared: not known.
    """
    begins = {rank: pc.min(table["timestamp"]).as_py() for rank, table in tables.items() if table.num_rows}
    ends = [pc.max(tables[rank]["timestamp"]).as_py() for rank in begins]
    if not begins or max(begins.values()) > min(ends):
        return ()
    earliest = min(begins.values())
    return tuple(begins.get(rank, earliest) - earliest for rank in chosen)


@dataclass(slots=True)
class _Sequence:
    """Operations of one representative.

    Attributes
    ----------
    table : its trace.
    files, extras : its files as templates, and what it says of each operation, second names as templates, too.
    tokens : shadow sequence; equal numbers are equal operations on the same file of the path.
    sessions : number of the session of each operation, `NONE` if unknown.
    """

    table: pa.Table
    files: pa.Array
    extras: pa.Array
    tokens: NDArray[np.int32]
    sessions: NDArray[np.int64]


class _Shadows:
    """Numbers for operations without the parts in which ranks differ."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str, str, int], int] = {}

    def _number(self, key: tuple[str, str, str, int]) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def of(self, table: pa.Table, files: pa.Array, tags: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the shadow sequence of a trace table; `files` are its templates, `tags` those of its handles."""
        columns = [
            table[name].combine_chunks().dictionary_encode()
            if not pa.types.is_dictionary(table[name].type)
            else table[name].unify_dictionaries().combine_chunks()
            for name in ("layer", "operation")
        ]
        columns.append(files.dictionary_encode())
        indices = [np.asarray(pc.fill_null(column.indices, -1)) for column in columns]
        words = [column.dictionary.to_pylist() for column in columns]
        codes = np.stack([*indices, tags], axis=1) if table.num_rows else np.zeros((0, 4), np.int64)
        unique, inverse = np.unique(codes, axis=0, return_inverse=True)
        numbers = [
            self._number((words[0][layer], words[1][operation], words[2][file] if file >= 0 else _NO_FILE, tag))
            for layer, operation, file, tag in unique.tolist()
        ]
        return np.asarray(numbers, np.int32)[inverse.reshape(-1)] if numbers else np.zeros(0, np.int32)


# ---- merging ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Merged:
    """A path under construction.

    Attributes
    ----------
    tokens, sessions : of each operation.
    begins : it is the first of its session in one of the groups.
    rows : for each group the row of each operation, -1 if it takes no part.
    minimal : the differences are the fewest.
    """

    tokens: NDArray[np.int32]
    sessions: NDArray[np.int64]
    begins: NDArray[np.bool_]
    rows: list[NDArray[np.int64]]
    minimal: bool = True

    def _compared(self, other: _Sequence, effort: int) -> tuple[Difference, NDArray[np.int64]]:
        """Return the pairs that correspond, and the sessions of the other's operations by their numbers here."""
        found = compare(self.tokens, other.tokens, effort=effort)
        here, there = np.flatnonzero(found.common_first), np.flatnonzero(found.common_second)
        begins = self.begins[here] & first_rows(other.sessions)[there]
        stay, of = pair_sessions(self.sessions[here], other.sessions[there], begins)
        found.common_first[here[~stay]] = found.common_second[there[~stay]] = False
        new = int(self.sessions.max(initial=NONE)) + 1
        count = int(other.sessions.max(initial=NONE)) + 1
        numbers = np.array([*(of.get(session, new + session) for session in range(count)), NONE], np.int64)
        self.minimal &= found.minimal and bool(stay.all())
        return found, numbers[other.sessions]

    def add(self, other: _Sequence, effort: int) -> None:
        """Merge the operations of another group."""
        found, sessions = self._compared(other, effort)
        common = np.flatnonzero(found.common_second)
        # The place of each new operation: behind the one of the path that corresponds to what precedes it.
        before = np.concatenate([[-1], np.flatnonzero(found.common_first)])
        place = before[np.cumsum(found.common_second)]
        alone = np.flatnonzero(~found.common_second)
        keys = np.concatenate([np.arange(self.tokens.size), place[alone] + 0.5])
        order = np.argsort(keys, kind="stable")
        own = np.full(self.tokens.size + alone.size, -1, np.int64)
        own[np.flatnonzero(found.common_first)] = common
        own[self.tokens.size :] = alone
        nobody = np.full(alone.size, -1, np.int64)
        begins = first_rows(other.sessions)
        self.begins[np.flatnonzero(found.common_first)] |= begins[common]
        self.tokens = np.concatenate([self.tokens, other.tokens[alone]])[order]
        self.sessions = np.concatenate([self.sessions, sessions[alone]])[order]
        self.begins = np.concatenate([self.begins, begins[alone]])[order]
        self.rows = [np.concatenate([rows, nobody])[order] for rows in self.rows] + [own[order]]


def _merge(sequences: Sequence[_Sequence], effort: int) -> _Merged:
    first = sequences[0]
    merged = _Merged(
        first.tokens, first.sessions, first_rows(first.sessions), [np.arange(first.tokens.size, dtype=np.int64)]
    )
    for sequence in sequences[1:]:
        merged.add(sequence, effort)
    return merged


def _in_order(sessions: NDArray[np.int64]) -> pa.Array:
    """Return the sessions by numbers in the order of their first operations, null without one."""
    numbers, first, inverse = np.unique(sessions, return_index=True, return_inverse=True)
    place = np.empty(numbers.size, np.int64)
    place[np.argsort(np.where(numbers < 0, sessions.size, first), kind="stable")] = np.arange(numbers.size)
    return pa.array(place[inverse.reshape(-1)], mask=sessions < 0)


def _translated(column: pa.ChunkedArray, new: Callable[[str], str]) -> pa.Array:
    """Return a column of text in which each text is another one."""
    encoded = pa.array(_plain(column).combine_chunks()).dictionary_encode()
    words = pa.array([new(text) for text in encoded.dictionary.to_pylist()], pa.string())
    return words.take(encoded.indices)


def _second_name(text: str, templates: Mapping[str, Template]) -> str:
    """Return an object with the template of a second name, if it has one."""
    found = parsed(text) if '"file2"' in text else {}
    if found.get("file2") not in templates:
        return text
    return json.dumps(found | {"file2": templates[found["file2"]].text}, separators=(",", ":"))


def _sequences_of(tables: Sequence[pa.Table], templates: Sequence[Mapping[str, Template]]) -> list[_Sequence]:
    """Return the shadow sequences of representatives; `templates` are those of each."""
    sessions = [sessions_of(table) for table in tables]
    columns = [
        _translated(table["file"], lambda name, own=own: own[name].text)  # type: ignore[misc]
        for table, own in zip(tables, templates, strict=True)
    ]
    extras = [
        _translated(table["extra"], lambda text, own=own: _second_name(text, own))  # type: ignore[misc]
        for table, own in zip(tables, templates, strict=True)
    ]
    files = [column.to_pylist() for column in columns]
    layers = [table["layer"].cast(pa.string()).to_pylist() for table in tables]
    busy = set().union(*map(busy_files, sessions, layers, files))
    shadows = _Shadows()
    return [
        _Sequence(table, column, extra, shadows.of(table, column, tags_of(table, own, names, busy)), own)
        for table, column, extra, own, names in zip(tables, columns, extras, sessions, files, strict=True)
    ]


# ---- the table -------------------------------------------------------------------------------------------------------


def _taken(column: pa.ChunkedArray | pa.Array, rows: NDArray[np.int64]) -> pa.Array:
    """Return the values of these rows; null for -1."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return whole.take(pa.array(rows, mask=rows < 0))


def _first_known(columns: Sequence[pa.Array]) -> pa.Array:
    return pc.coalesce(*columns) if len(columns) > 1 else columns[0]


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.string())


def _owners(files: list[str | None], groups: NDArray[np.int64], users: Mapping[str, int]) -> list[str | None]:
    """Return the class of the file of each row: by its template, and by its users anywhere in the path."""
    masks: dict[str, int] = {}
    for file, mask in zip(files, groups, strict=True):
        if file is not None:
            masks[file] = masks.get(file, 0) | int(mask)
    templates = {file: Template(file) for file in masks}
    private = {file for file, one in templates.items() if one.has_rank or (one.refers and not one.of_part)}

    def owner(file: str) -> str:
        if file in private:
            return "private"
        if masks[file] == 1 and users.get(file, 1) <= 1:
            return "root"
        return "child" if not masks[file] & 1 and users.get(file, 1) <= 1 else "shared"

    known = {file: owner(file) for file in masks}
    return [None if file is None else known[file] for file in files]


def _extra_of(texts: Sequence[str | None]) -> str | None:
    """Return the column `extra` of a row: `texts` are those of the groups, None for groups without one.

    The first group's object. A view that the groups have not in common is in the
    list "groups", in which each has its own object.
    """
    first = next((text for text in texts if text is not None), None)
    found = parsed(first)
    if len({text for text in texts if text is not None}) > 1 and "displacement" in found:
        found["groups"] = [None if text is None else parsed(text) for text in texts]
    else:
        return first
    return json.dumps(found, separators=(",", ":"))


def _extras_of(sequences: Sequence[_Sequence], rows: Sequence[NDArray[np.int64]]) -> pa.Array:
    columns = [_taken(sequence.extras, own) for sequence, own in zip(sequences, rows, strict=True)]
    common = _first_known(columns)
    special = pc.fill_null(pc.match_substring(common, '"displacement"'), False).to_numpy(zero_copy_only=False)
    if not special.any():
        return common
    texts = common.to_pylist()
    for row in np.flatnonzero(special):
        texts[row] = _extra_of([column[int(row)].as_py() for column in columns])
    return pa.array(texts, pa.string())


def _table_of(merged: _Merged, sequences: Sequence[_Sequence], users: Mapping[str, int]) -> pa.Table:
    groups = np.zeros(merged.tokens.size, np.int64)
    for number, rows in enumerate(merged.rows):
        groups |= np.where(rows >= 0, 1 << number, 0)
    taken = {
        name: _first_known(
            [_taken(_plain(sequence.table[name]), rows) for sequence, rows in zip(sequences, merged.rows, strict=True)]
        )
        for name in ("operation", "layer")
    }
    files = _first_known([_taken(sequence.files, rows) for sequence, rows in zip(sequences, merged.rows, strict=True)])
    columns: dict[str, pa.Array] = {
        "id": pa.array(np.arange(merged.tokens.size, dtype=np.int64)),
        "operation": taken["operation"],
        "file": files,
        "owner": pa.array(_owners(files.to_pylist(), groups, users), pa.string()),
        "groups": pa.array(groups),
        "session": _in_order(merged.sessions),
        "layer": taken["layer"],
        "extra": _extras_of(sequences, merged.rows),
    }
    for number, (sequence, rows) in enumerate(zip(sequences, merged.rows, strict=True)):
        values = {name: sequence.table[name] for name in PER_GROUP if name != "slack"}
        values["slack"] = pa.chunked_array([pa.array(slack_of(sequence.table))])
        for name in PER_GROUP:
            columns[f"{name}_{number}"] = _taken(values[name], rows)
    return pa.table(columns).cast(WorkloadPath.schema(len(sequences)))


def extract(
    tables: Mapping[int, pa.Table],
    members: Sequence[Sequence[int]],
    *,
    names: Mapping[int, set[str] | dict[str, int]] | None = None,
    ranks: int = 0,
    effort: int = EFFORT,
    communicators: Communicators | None = None,
) -> WorkloadPath:
    """Return the generic workload path of traces.

    Parameters
    ----------
    tables : trace table (`pioneer.table.SCHEMA`) by rank, of the representatives at least: of each group the lowest
        rank that is here.
    members : ranks of each group, the root's first (`groups.find_groups`).
    names : names of files by rank, for the rank fields, as of `names.find_templates`; more ranks than `tables` has make
        them more certain.
    ranks : of the program that was traced.
    effort : see `diff.compare`.
    communicators : of a part of the ranks, on which files were opened.

    Raises
    ------
    ValueError
        A group has no trace, or there is none.
    """
    representatives = [next((rank for rank in sorted(group) if rank in tables), None) for group in members]
    if not representatives or None in representatives:
        raise ValueError(f"of the groups {[tuple(group) for group in members]} not each has a rank that was traced")
    chosen = [rank for rank in representatives if rank is not None]
    by_rank: dict[int, set[str] | dict[str, int]] = {rank: names_of(table) for rank, table in tables.items()}
    known = communicators or Communicators()
    templates = templates_by_rank(by_rank | dict(names or {}), ranks, known.templates, known.members)
    users = Counter(text for own in templates.values() for text in {template.text for template in own.values()})
    numbered = [with_numbers(tables[rank], known) for rank in chosen]
    sequences = _sequences_of(numbered, [templates[rank] for rank in chosen])
    merged = _merge(sequences, effort)
    info = PathInfo(
        representatives=tuple(chosen),
        members=tuple(tuple(group) for group in members),
        ranks=ranks,
        minimal=merged.minimal,
        starts=_starts(tables, chosen),
        communicators=known.rules,
    )
    return WorkloadPath(_table_of(merged, sequences, users), info)
