"""A workload path as text: what a person reads, searches and pages through.

Problem.   A path is a table of many columns, most of them null, in a binary file. A person wants to see at a glance who
           does what to which file, and what the extraction has found out about it.
Content.   One item a line, and the kind of the item is the first word, so that ``grep ^session`` or ``grep
           root-exclusive`` find what they should: ``path``, ``group``, ``file`` with its rank fields, ``session``,
           ``op``.
           An operation says who makes it (mimicked: all groups; root-exclusive; child-exclusive), its place in its
           session, offset and size in bytes, slack and execution time in microseconds, the file, and annotations: how
           far offsets in a shared file move from rank to rank, values of other groups, arguments of the call.
Folding.   Successive operations that differ in their offsets alone, by a constant step, are one line, if that is asked
           for.
Guarantee. The same path gives the same text, and no line depends on what else is selected. What is null is "-". A
           control character of a name is shown escaped: every item is one line.
"""

from __future__ import annotations

import fnmatch
import itertools
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpiio_ext.pioneer.engine.plan import group_of_rank
from mpiio_ext.pioneer.operations import DATA, operation_of
from mpiio_ext.pioneer.path import Template, WorkloadPath
from mpiio_ext.pioneer.profile import Sessions, find_sessions

__all__ = ["Selection", "show"]

_NULL = "-"
_AMODES = ("CREATE", "RDONLY", "WRONLY", "RDWR", "DELETE_ON_CLOSE", "UNIQUE_OPEN", "EXCL", "APPEND", "SEQUENTIAL")
_OPEN_FLAGS = ("O_CREAT", "O_EXCL", "O_TRUNC", "O_APPEND", "O_NONBLOCK", "O_SYNC", "O_DSYNC", "O_DIRECT", "O_DIRECTORY",
               "O_CLOEXEC", "O_NOFOLLOW")  # fmt: skip
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which operations are shown.

    Attributes
    ----------
    first, last : global sequence IDs, the last one included; None: without that end.
    file : part of the name of the file, or a pattern with * and ?; "": all.
    rank : only what this rank makes, with its names of files; None: of all.
    """

    first: int | None = None
    last: int | None = None
    file: str = ""
    rank: int | None = None


def _line(text: str) -> str:
    """Return text without characters that would break its line."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _ranges(ranks: Sequence[int]) -> str:
    """Return ranks in few words: 1-3,7."""
    parts = []
    for _, run in itertools.groupby(enumerate(sorted(ranks)), lambda item: item[1] - item[0]):
        numbers = [rank for _, rank in run]
        parts.append(str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}")
    return ",".join(parts) or _NULL


# ---- annotations -----------------------------------------------------------------------------------------------------


def _bits(value: int, names: Sequence[tuple[int, str]]) -> str:
    """Return the names of bits, and the rest as a number."""
    found = []
    for bit, name in names:
        if bit and value & bit == bit:
            found.append(name)
            value &= ~bit
    return "|".join(found + ([f"{value:#x}"] if value or not found else []))


def _open_flags(value: int) -> str:
    access = {os.O_RDONLY: "O_RDONLY", os.O_WRONLY: "O_WRONLY", os.O_RDWR: "O_RDWR"}.get(value & os.O_ACCMODE)
    known = [(int(getattr(os, name, 0)), name) for name in _OPEN_FLAGS]
    rest = value & ~os.O_ACCMODE
    return "|".join([access or "O_ACCMODE", *([_bits(rest, known)] if rest else [])])


def _arguments(layer: str, extra: str | None) -> list[str]:
    """Return the arguments of a call as words; what is no JSON object stands as it is."""
    try:
        found = json.loads(extra) if extra else {}
    except json.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        return [f"extra={extra}"]
    words = []
    for name, value in found.items():
        if name == "flags" and layer == "posix" and isinstance(value, int):
            text = _open_flags(value)
        elif name == "amode" and isinstance(value, int):
            text = _bits(value, [(1 << at, item) for at, item in enumerate(_AMODES)])
        elif name == "mode" and layer == "posix" and isinstance(value, int):
            text = f"{value:#o}"
        else:
            text = value if isinstance(value, str) and " " not in value else json.dumps(value, separators=(",", ":"))
        words.append(f"{name}={text}")
    return words


# ---- the path --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Item:
    """An operation, ready to be printed; `same` is what folded lines have in common."""

    id: int
    who: str
    session: str
    place: str
    name: str
    offset: int | None
    size: int | None
    slack: int
    duration: int
    file: str
    notes: str

    @property
    def same(self) -> tuple[Any, ...]:
        return self.who, self.session, self.name, self.size, self.file, self.notes


class _Text:
    """The lines of one path."""

    def __init__(self, path: WorkloadPath, selection: Selection) -> None:
        self.path, self.selection = path, selection
        self.sessions: Sessions = find_sessions(path)
        self.files = path.words("file")
        self.groups = path.table["groups"].to_numpy()
        info = path.info
        rank = selection.rank
        self.group = None if rank is None else _group_of(rank, path)
        self.labels: dict[str, str] = {}
        for name in self.files.tolist():
            if name is not None and name not in self.labels:
                self.labels[name] = f"f{len(self.labels)}"
        self.children = sum(1 << group for group in range(1, path.group_count))
        self.representatives = info.representatives
        self.place_in = self._places()
        names = {file: self.name(file).rpartition("/")[2] for file in self.labels}
        self.short = {file: f"{label}:{names[file]}" for file, label in self.labels.items()}

    def _places(self) -> NDArray[np.int64]:
        """Return the place of each operation in its session, from 1."""
        found = np.zeros(self.groups.size, np.int64)
        for session in self.sessions.sessions:
            found[session.members] = np.arange(1, 1 + len(session.members))
        return found

    def rows(self) -> NDArray[np.int64]:
        """Return the rows that are selected."""
        chosen = self.selection
        kept = np.ones(self.groups.size, bool)
        ids = self.path.table["id"].to_numpy()
        if chosen.first is not None:
            kept &= ids >= chosen.first
        if chosen.last is not None:
            kept &= ids <= chosen.last
        if chosen.file:
            names = {name for name in self.labels if _fits(name, chosen.file)}
            kept &= np.fromiter((name in names for name in self.files.tolist()), bool, self.files.size)
        if self.group is not None:
            kept &= self.groups >> self.group & 1 == 1
        return np.flatnonzero(kept)

    def name(self, file: str) -> str:
        """Return a file's name: that of the rank which is selected."""
        rank = self.selection.rank
        return _line(file if rank is None else Template(file).name(rank))

    def who(self, groups: int) -> str:
        """Return who makes an operation."""
        if not self.children:
            return "root"
        if groups == 1 | self.children:
            return "mimicked"
        if groups == 1:
            return "root-exclusive"
        if not groups & 1 and groups == self.children:
            return "child-exclusive"
        listed = ",".join(str(group) for group in range(self.path.group_count) if groups >> group & 1)
        return f"{'groups' if groups & 1 else 'child-exclusive:groups'}={listed}"

    # ---- heads

    def head(self, name: str, shown: int) -> Iterator[str]:
        """Yield the lines of the path and of its groups."""
        info, total = self.path.info, self.path.table.num_rows
        ranks = f"{info.ranks} ranks" if info.ranks else "an unknown number of ranks"
        least = "the fewest differences" if info.minimal else "perhaps more differences than needed"
        yield _line(f"path      {name}: {total} operations, {shown} shown; of {ranks}; {least}")
        for group, members in enumerate(info.members):
            kind = "root" if group == 0 else "children"
            own = int((self.groups >> group & 1).sum())
            yield (f"group {group:<3} {kind:<8}  ranks {_ranges(members)}  represented by rank "
                   f"{info.representatives[group]}  {own} operations")  # fmt: skip

    def file_lines(self, rows: NDArray[np.int64]) -> Iterator[str]:
        """Yield a line for each file of these rows."""
        owners = self.path.words("owner")
        count: dict[str, int] = {}
        owner: dict[str, str] = {}
        for row in rows.tolist():
            file = self.files[row]
            if file is not None:
                count[file] = count.get(file, 0) + 1
                owner.setdefault(file, owners[row] or _NULL)
        opened: dict[str, int] = {}
        for session in self.sessions.sessions:
            opened[session.file] = opened.get(session.file, 0) + 1
        for file, operations in count.items():
            template = Template(file)
            fields = f"  rank 1 has {_line(template.name(1))}" if template.has_rank else ""
            yield (f"file {self.labels[file]:<4} {owner[file]:<8}{operations:>7} operations "
                   f"{opened.get(file, 0):>4} sessions  {_line(file)}{fields}")  # fmt: skip

    def session_lines(self, rows: NDArray[np.int64]) -> Iterator[str]:
        """Yield a line for each session that one of these rows belongs to."""
        ids = self.path.table["id"].to_numpy()
        names, layers = self.path.words("operation"), self.path.words("layer")
        numbers = np.unique(self.sessions.of[rows])
        for number in numbers[numbers >= 0].tolist():
            session = self.sessions.sessions[number]
            kinds = [operation_of(layers[row], names[row]) for row in session.members]
            reads = sum(kind.role in DATA and not kind.writes for kind in kinds)
            writes = sum(kind.role in DATA and bool(kind.writes) for kind in kinds)
            ends = " ".join([*(["no-open"] if not session.has_open else []),
                             *(["no-close"] if not session.has_close else [])])  # fmt: skip
            yield (f"session s{number:<4} {self.labels[session.file]:<4} {session.layer:<6} {session.owner:<8} "
                   f"ids {ids[session.first]}..{ids[session.last]}  {len(kinds)} operations  {reads} reads  "
                   f"{writes} writes  {ends}").rstrip()  # fmt: skip

    # ---- operations

    def items(self, rows: NDArray[np.int64]) -> Iterator[_Item]:
        """Yield operations, some tens of thousands at a time."""
        for begin in range(0, rows.size, _CHUNK):
            part = rows[begin : begin + _CHUNK]
            taken = self.path.table.take(part)
            for row, values in zip(part.tolist(), taken.to_pylist(), strict=True):
                yield self._item(row, values)

    def _item(self, row: int, values: dict[str, Any]) -> _Item:
        groups = int(values["groups"])
        mine = [group for group in range(self.path.group_count) if groups >> group & 1]
        first = self.group if self.group is not None else mine[0] if mine else 0
        number = int(self.sessions.of[row])
        file = values["file"]
        own = {name: values[f"{name}_{first}"] for name in ("offset", "size", "slack", "duration")}
        notes = self._notes(values, [] if self.group is not None else mine, first)
        label = _NULL if file is None else self.short[file]
        length = len(self.sessions.sessions[number].members) if number >= 0 else 0
        return _Item(values["id"], self.who(groups), f"s{number}" if number >= 0 else _NULL,
                     f"{self.place_in[row]}/{length}" if number >= 0 else "", values["operation"], own["offset"],
                     own["size"], own["slack"] or 0, own["duration"] or 0, label, " ".join(notes))  # fmt: skip

    def _notes(self, values: dict[str, Any], groups: Sequence[int], first: int) -> list[str]:
        """Return the annotations: what other groups have of their own, then the arguments of the call."""
        notes = []
        for group in groups:
            if group == first:
                continue
            apart = self.representatives[group] - self.representatives[first]
            for name in ("offset", "size"):
                one, other = values[f"{name}_{first}"], values[f"{name}_{group}"]
                if one == other or other is None:
                    continue
                step = other - one if one is not None else 1
                if name == "offset" and one is not None and values["owner"] == "shared" and step % max(1, apart) == 0:
                    tag = "" if self.path.group_count == 2 else f"g{group}:"
                    notes.append(f"{tag}{step // max(1, apart):+d}/rank")
                else:
                    notes.append(f"g{group}:{name}={other}")
        return [_line(word) for word in [*notes, *_arguments(values["layer"], values["extra"])]]


def _group_of(rank: int, path: WorkloadPath) -> int:
    """Return the group of a rank: the one that it was found in; else the one that it would have in a replay."""
    info = path.info
    found = next((group for group, members in enumerate(info.members) if rank in members), None)
    return group_of_rank(rank, max(info.ranks, rank + 1), info.members) if found is None else found


def _fits(name: str, wanted: str) -> bool:
    return fnmatch.fnmatchcase(name, wanted) if set(wanted) & set("*?") else wanted in name


def _joins(run: Sequence[_Item], item: _Item) -> bool:
    """Return whether an operation continues a run: the same but for its offset, which goes on by the same step."""
    if run[-1].same != item.same or (run[-1].offset is None) != (item.offset is None):
        return False
    if len(run) < 2 or item.offset is None:
        return True
    return item.offset - (run[-1].offset or 0) == (run[1].offset or 0) - (run[0].offset or 0)


def _op(run: Sequence[_Item]) -> str:
    """Return the line of one operation, or of several that are folded."""
    one, last = run[0], run[-1]
    offset = _NULL if one.offset is None else str(one.offset)
    ids, place = str(one.id), one.place
    notes = [one.notes] if one.notes else []
    if len(run) > 1:
        ids = f"{one.id}..{last.id}"
        place = f"{place.partition('/')[0]}-{last.place}" if place else ""
        step = f" step={(run[1].offset or 0) - (one.offset or 0):+d}" if one.offset is not None else ""
        notes.insert(0, f"times={len(run)}{step}")
    slack = sum(item.slack for item in run) / 1000 / len(run)
    took = sum(item.duration for item in run) / 1000 / len(run)
    size = _NULL if one.size is None else str(one.size)
    return (f"op {ids:<9} {one.who:<15} {one.session:<4} {place:<9} {one.name:<24} {offset:>11} {size:>9} "
            f"{slack:>11.1f} {took:>9.1f}  {one.file}  {' '.join(notes)}").rstrip()  # fmt: skip


def _folded(items: Iterator[_Item]) -> Iterator[str]:
    run: list[_Item] = []
    for item in items:
        if run and not _joins(run, item):
            yield _op(run)
            run = []
        run.append(item)
    if run:
        yield _op(run)


def show(
    path: WorkloadPath, name: str, selection: Selection | None = None, *, fold: bool = False, brief: bool = False
) -> Iterator[str]:
    """Yield the lines of a workload path.

    Parameters
    ----------
    path : what is shown.
    name : by which the first line calls it.
    selection : which operations; None: all. Files and sessions are those of these operations.
    fold : successive operations that differ in their offsets alone, by a constant step, are one line; times are means.
    brief : without the operations.

    Raises
    ------
    ValueError
        The rank that is selected is negative, or a file's name is no template.
    """
    selection = selection or Selection()
    if selection.rank is not None and selection.rank < 0:
        raise ValueError(f"rank {selection.rank}: ranks are counted from 0")
    text = _Text(path, selection)
    rows = text.rows()
    yield from text.head(name, rows.size)
    yield from text.file_lines(rows)
    yield from text.session_lines(rows)
    if brief or not rows.size:
        return
    yield (f"#  {'id':<9} {'who':<15} {'sess':<4} {'place':<9} {'operation':<24} {'offset[B]':>11} {'size[B]':>9} "
           f"{'slack[us]':>11} {'time[us]':>9}  file  annotations")  # fmt: skip
    items = text.items(rows)
    yield from _folded(items) if fold else (_op([item]) for item in items)
