"""Making the generic workload path: the root's operations, with those of a child of each subgroup merged into them.

Problem.   Children mimic the root; what the root does beyond that, and what children do alone, must be found and kept
           in its place, since it tells how the two are correlated (paper, section IV-A).
Algorithm. Of each operation only its name, its layer and its file count, with the rank taken out of the file's name:
           the shadow sequence. The root's is compared with the first child's (`diff.compare`); what corresponds is
           mimicked, what the child has alone is inserted behind what precedes it. The result is compared with the next
           subgroup's child, and so on. What corresponds is through the same handle of its file (`handles`).
Guarantee. Leaving out what a group takes no part in gives back its representative's operations, in order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mpiio_ext.pioneer.path.diff import EFFORT, Difference, compare
from mpiio_ext.pioneer.path.handles import NONE, busy_files, first_rows, pair_sessions, sessions_of, tags_of
from mpiio_ext.pioneer.path.names import Template, find_templates
from mpiio_ext.pioneer.path.workload_path import PER_GROUP, PathInfo, WorkloadPath

__all__ = ["extract", "names_of", "slack_of"]

_NO_FILE = "\0"


def _parsed(text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text) if text else {}
    except json.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def names_of(table: pa.Table) -> set[str]:
    """Return the names of the files in a trace table, also the second ones of calls that have two."""
    names = {name for name in pc.unique(table["file"]).to_pylist() if name is not None}
    extras = pc.unique(table["extra"])
    twice = extras.filter(pc.fill_null(pc.match_substring(extras, '"file2"'), False)).to_pylist()
    seconds = {_parsed(text).get("file2") for text in twice}
    return names | {name for name in seconds if isinstance(name, str) and name}


def slack_of(table: pa.Table) -> NDArray[np.int64]:
    """Return the time in ns from the end of each operation's predecessor to its start; 0 where they overlap.

    The first operation has none: 0. An operation without a duration ends when it starts.
    """
    start = table["timestamp"].to_numpy()
    duration = pc.fill_null(table["duration"], 0).to_numpy()
    slack = np.zeros(start.size, np.int64)
    ends = np.maximum.accumulate(start + duration)
    slack[1:] = np.maximum(0, start[1:] - ends[:-1])
    return slack


@dataclass(slots=True)
class _Sequence:
    """Operations of one representative.

    Attributes
    ----------
    table : its trace.
    tokens : shadow sequence; equal numbers are equal operations on the same file of the path.
    sessions : number of the session of each operation, `NONE` where it is not told.
    """

    table: pa.Table
    tokens: NDArray[np.int32]
    sessions: NDArray[np.int64]


class _Shadows:
    """Numbers for operations without what differs between ranks."""

    def __init__(self, templates: Mapping[str, Template]) -> None:
        self._templates = templates
        self._numbers: dict[tuple[str, str, str, int], int] = {}

    def _number(self, key: tuple[str, str, str, int]) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def of(self, table: pa.Table, tags: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the shadow sequence of a trace table; `tags` are those of its handles."""
        columns = [table[name].combine_chunks().dictionary_encode() if not pa.types.is_dictionary(table[name].type)
                   else table[name].unify_dictionaries().combine_chunks() for name in ("layer", "operation", "file")]
        indices = [np.asarray(pc.fill_null(column.indices, -1)) for column in columns]
        words = [column.dictionary.to_pylist() for column in columns]
        texts = [self._templates[name].text if name in self._templates else name for name in words[2]]
        codes = np.stack([*indices, tags], axis=1) if table.num_rows else np.zeros((0, 4), np.int64)
        unique, inverse = np.unique(codes, axis=0, return_inverse=True)
        numbers = [
            self._number((words[0][layer], words[1][operation], texts[file] if file >= 0 else _NO_FILE, tag))
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
    rows : for each group the row of each operation, -1 where it takes no part.
    minimal : the differences are the fewest.
    """

    tokens: NDArray[np.int32]
    sessions: NDArray[np.int64]
    begins: NDArray[np.bool_]
    rows: list[NDArray[np.int64]]
    minimal: bool = True

    def _compared(self, other: _Sequence, effort: int) -> tuple[Difference, NDArray[np.int64]]:
        """Return what corresponds, and the sessions of the other's operations by their numbers here."""
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
    merged = _Merged(first.tokens, first.sessions, first_rows(first.sessions),
                     [np.arange(first.tokens.size, dtype=np.int64)])  # fmt: skip
    for sequence in sequences[1:]:
        merged.add(sequence, effort)
    return merged


def _in_order(sessions: NDArray[np.int64]) -> pa.Array:
    """Return the sessions by numbers in the order of their first operations, null where there is none."""
    numbers, first, inverse = np.unique(sessions, return_index=True, return_inverse=True)
    place = np.empty(numbers.size, np.int64)
    place[np.argsort(np.where(numbers < 0, sessions.size, first), kind="stable")] = np.arange(numbers.size)
    return pa.array(place[inverse.reshape(-1)], mask=sessions < 0)


def _sequences_of(tables: Sequence[pa.Table], templates: Mapping[str, Template]) -> list[_Sequence]:
    """Return the shadow sequences of representatives."""
    sessions = [sessions_of(table) for table in tables]
    files = [[None if name is None else templates[name].text for name in table["file"].cast(pa.string()).to_pylist()]
             for table in tables]  # fmt: skip
    layers = [table["layer"].cast(pa.string()).to_pylist() for table in tables]
    busy = set().union(*map(busy_files, sessions, layers, files))
    shadows = _Shadows(templates)
    return [_Sequence(table, shadows.of(table, tags_of(table, own, names, busy)), own)
            for table, own, names in zip(tables, sessions, files, strict=True)]  # fmt: skip


# ---- the table -------------------------------------------------------------------------------------------------------


def _taken(column: pa.ChunkedArray, rows: NDArray[np.int64]) -> pa.Array:
    """Return the values of these rows; null for -1."""
    return column.combine_chunks().take(pa.array(rows, mask=rows < 0))


def _first_known(columns: Sequence[pa.Array]) -> pa.Array:
    return pc.coalesce(*columns) if len(columns) > 1 else columns[0]


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.string())


def _owners(
    files: list[str | None], groups: NDArray[np.int64], templates: Mapping[str, Template], users: Mapping[str, int]
) -> list[str | None]:
    """Return the class of the file of each row: by its template, and by who uses it anywhere in the path."""
    masks: dict[str, int] = {}
    for file, mask in zip(files, groups, strict=True):
        if file is not None:
            masks[file] = masks.get(file, 0) | int(mask)
    private = {template.text for template in templates.values() if template.has_rank}

    def owner(file: str) -> str:
        if file in private:
            return "private"
        if masks[file] == 1 and users.get(file, 1) <= 1:
            return "root"
        return "child" if not masks[file] & 1 and users.get(file, 1) <= 1 else "shared"

    known = {file: owner(file) for file in masks}
    return [None if file is None else known[file] for file in files]


def _extra_of(texts: Sequence[str | None], templates: Mapping[str, Template]) -> str | None:
    """Return what the column `extra` of a row is to say: `texts` are those of the groups, None where they have none.

    The first group's object, with the template of a second name. A view that the groups have not in common is in the
    list "groups", in which each has its own object.
    """
    first = next((text for text in texts if text is not None), None)
    found = _parsed(first)
    if "file2" in found and found["file2"] in templates:
        found["file2"] = templates[found["file2"]].text
    elif len({text for text in texts if text is not None}) > 1 and "displacement" in found:
        found["groups"] = [None if text is None else _parsed(text) for text in texts]
    else:
        return first
    return json.dumps(found, separators=(",", ":"))


def _extras_of(
    sequences: Sequence[_Sequence], rows: Sequence[NDArray[np.int64]], templates: Mapping[str, Template]
) -> pa.Array:
    columns = [_taken(_plain(sequence.table["extra"]), own) for sequence, own in zip(sequences, rows, strict=True)]
    common = _first_known(columns)
    special = pc.fill_null(pc.match_substring_regex(common, '"(file2|displacement)"'), False).to_numpy(
        zero_copy_only=False)  # fmt: skip
    if not special.any():
        return common
    texts = common.to_pylist()
    for row in np.flatnonzero(special):
        texts[row] = _extra_of([column[int(row)].as_py() for column in columns], templates)
    return pa.array(texts, pa.string())


def _table_of(
    merged: _Merged, sequences: Sequence[_Sequence], templates: Mapping[str, Template], users: Mapping[str, int]
) -> pa.Table:
    groups = np.zeros(merged.tokens.size, np.int64)
    for number, rows in enumerate(merged.rows):
        groups |= np.where(rows >= 0, 1 << number, 0)
    taken = {
        name: _first_known([_taken(_plain(sequence.table[name]), rows)
                            for sequence, rows in zip(sequences, merged.rows, strict=True)])
        for name in ("operation", "file", "layer")
    }  # fmt: skip
    files = [None if name is None else templates[name].text if name in templates else name
             for name in taken["file"].to_pylist()]  # fmt: skip
    columns: dict[str, pa.Array] = {
        "id": pa.array(np.arange(merged.tokens.size, dtype=np.int64)),
        "operation": taken["operation"],
        "file": pa.array(files, pa.string()),
        "owner": pa.array(_owners(files, groups, templates, users), pa.string()),
        "groups": pa.array(groups),
        "session": _in_order(merged.sessions),
        "layer": taken["layer"],
        "extra": _extras_of(sequences, merged.rows, templates),
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
    names: Mapping[int, set[str]] | None = None,
    ranks: int = 0,
    effort: int = EFFORT,
) -> WorkloadPath:
    """Return the generic workload path of traces.

    Parameters
    ----------
    tables : trace table (`pioneer.table.SCHEMA`) by rank, of the representatives at least: of each group the lowest
        rank that is here.
    members : ranks of each group, the root's first (`groups.find_groups`).
    names : names of files by rank, for the rank fields; more ranks than `tables` has make them more certain.
    ranks : of the program that was traced.
    effort : see `diff.compare`.

    Raises
    ------
    ValueError
        A group has no trace, or there is none.
    """
    representatives = [next((rank for rank in sorted(group) if rank in tables), None) for group in members]
    if not representatives or None in representatives:
        raise ValueError(f"of the groups {[tuple(group) for group in members]} not each has a rank that was traced")
    chosen = [rank for rank in representatives if rank is not None]
    by_rank = {rank: names_of(table) for rank, table in tables.items()} | dict(names or {})
    templates = find_templates(by_rank)
    users: dict[str, int] = {}
    for used in by_rank.values():
        for name in used:
            text = templates[name].text
            users[text] = users.get(text, 0) + 1
    sequences = _sequences_of([tables[rank] for rank in chosen], templates)
    merged = _merge(sequences, effort)
    info = PathInfo(representatives=tuple(chosen), members=tuple(tuple(group) for group in members), ranks=ranks,
                    minimal=merged.minimal)  # fmt: skip
    return WorkloadPath(_table_of(merged, sequences, templates, users), info)
