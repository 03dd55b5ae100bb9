"""A workload path as text that a person reads, searches and pages through.

Problem.   A path is a table of many columns, most of them null, in a binary file. A user wants to see at a glance which
           rank does what to which file, and what the extraction has found out about it.
Content.   One item a line, and the kind of the item is the first word, so that ``grep ^session`` or ``grep
           root-exclusive`` find what they should: ``path``, ``group``, ``communicator``, ``file`` with its rank fields,
           ``session``, ``op``. An operation has its makers (mimicked: all groups; root-exclusive; child-exclusive), its
           place in its session, and the file. It has offset and size in bytes, slack and execution time in
           microseconds. Annotations show how far offsets in a shared file move from rank to rank, values of other
           groups, and arguments of the call.
Folding.   If that is asked for, successive operations that differ in their offsets alone, by a constant step, are one
           line. So is each operation of a loop of up to eight (`show_folding`): ``times=6 every=2`` is made six times,
           with one other operation between.
Guarantee. The same path gives the same text, and no line depends on what else is selected. What is null is "-". A
           control character of a name is shown escaped: every item is one line.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpiio_ext.pioneer.operations import DATA, operation_of
from mpiio_ext.pioneer.path import Template, WorkloadPath
from mpiio_ext.pioneer.path.groups_of_ranks import group_of_rank
from mpiio_ext.pioneer.profile import find_sessions
from mpiio_ext.pioneer.show_operations import HEAD, NULL, OperationLines, printable, ranges
from mpiio_ext.pioneer.table import encoded


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which operations are shown.

    Attributes
    ----------
    first, last : global sequence IDs, the last one included; None: without that end.
    file : part of the name of the file, or a pattern with * and ?; "": all.
    rank : only what this rank makes, with its names of files; None: of all.
    head, tail : of these the first so many, and of what is left the last; None: all.
    """

    first: int | None = None
    last: int | None = None
    file: str = ""
    rank: int | None = None
    head: int | None = None
    tail: int | None = None


# ---- the path --------------------------------------------------------------------------------------------------------


class _Text:
    """The lines of one path."""

    def __init__(self, path: WorkloadPath, selection: Selection) -> None:
        self.path, self.selection = path, selection
        self.sessions = find_sessions(path)
        self.files, self.file_words = encoded(path.table["file"])
        self.groups = path.table["groups"].to_numpy()
        rank = selection.rank
        self.group = None if rank is None else _group_of(rank, path)
        self.children = sum(1 << group for group in range(1, path.group_count))
        shown, first = np.unique(self.files, return_index=True)
        order = shown[np.argsort(first, kind="stable")]
        #: Number of a file in the path's column -> number by which it is shown, in the order in which files come.
        self.labels = {int(file): number for number, file in enumerate(order[order >= 0].tolist())}

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
            kept &= np.array([*(_fits(name, chosen.file) for name in self.file_words), False], bool)[self.files]
        if self.group is not None:
            kept &= self.groups >> self.group & 1 == 1
        found = np.flatnonzero(kept)
        if chosen.head is not None:
            found = found[: chosen.head]
        if chosen.tail is not None:
            found = found[max(0, found.size - chosen.tail) :]
        return found

    def name(self, file: str) -> str:
        """Return a file's name: that of the rank which is selected."""
        rank = self.selection.rank
        return printable(file if rank is None else Template(file).name(rank, self.path.info.ranks))

    def who(self, groups: int) -> str:
        """Return the groups that make an operation."""
        if not self.children:
            return "root"
        if groups == 1 | self.children:
            return "mimicked"
        if groups == 1:
            return "root-exclusive"
        if not groups & 1 and groups == self.children:
            return "child-exclusive"
        listed = ranges([group for group in range(self.path.group_count) if groups >> group & 1]).replace(" ", "_")
        return f"{'groups' if groups & 1 else 'child-exclusive:groups'}={listed}"

    # ---- heads

    def head(self, name: str, shown: int) -> Iterator[str]:
        """Yield the lines of the path and of its groups."""
        info, total = self.path.info, self.path.table.num_rows
        ranks = f"{info.ranks} ranks" if info.ranks else "an unknown number of ranks"
        least = "the fewest differences" if info.minimal else "perhaps more differences than needed"
        yield printable(f"path      {name}: {total} operations, {shown} shown; of {ranks}; {least}")
        for group, members in enumerate(info.members):
            kind = "children" if group else "root" if 0 in members else "as root"  # rank 0 was not traced
            own = int((self.groups >> group & 1).sum())
            yield (
                f"group {group:<3} {kind:<8}  ranks {ranges(members)}  represented by rank "
                f"{info.representatives[group]}  {own} operations"
                f"{_begins(info.start(group))}"
            )
        for number, rule in enumerate(info.communicators):
            yield f"communicator {number:<3} {rule.words()}"

    def file_lines(self, rows: NDArray[np.int64]) -> Iterator[str]:
        """Yield a line for each file of these rows."""
        owners, owner_words = encoded(self.path.table["owner"])
        opened: dict[str, int] = {}
        for session in self.sessions.sessions:
            opened[session.file] = opened.get(session.file, 0) + 1
        rows = rows[self.files[rows] >= 0]
        shown, first, counts = np.unique(self.files[rows], return_index=True, return_counts=True)
        for place in np.argsort(first, kind="stable").tolist():
            number, file = int(shown[place]), self.file_words[shown[place]]
            owner = int(owners[rows[first[place]]])
            template = Template(file)
            varies = template.has_rank or template.of_part
            fields = f"  rank 1 has {printable(template.name(1, self.path.info.ranks))}" if varies else ""
            yield (
                f"file {f'f{self.labels[number]}':<4} {owner_words[owner] if owner >= 0 else NULL:<8}"
                f"{counts[place]:>7} operations {opened.get(file, 0):>4} sessions  {printable(file)}"
                f"{fields}"
            )

    def _accesses(self) -> NDArray[np.int64]:
        """Return for each operation 1: it reads data, 2: it writes, 0: neither."""
        (names, words), (layers, layer_words) = (encoded(self.path.table[name]) for name in ("operation", "layer"))
        pairs, inverse = np.unique(layers * len(words) + names, return_inverse=True)
        kinds = [operation_of(layer_words[pair // len(words)], words[pair % len(words)]) for pair in pairs.tolist()]
        found = [(2 if kind.writes else 1) if kind.role in DATA else 0 for kind in kinds]
        return np.array([*found, 0], np.int64)[inverse]

    def session_lines(self, rows: NDArray[np.int64]) -> Iterator[str]:
        """Yield a line for each session that one of these rows belongs to."""
        ids = self.path.table["id"].to_numpy()
        numbers = np.unique(self.sessions.of[rows])
        if not numbers.size:
            return
        accesses, of = self._accesses(), self.sessions.of + 1
        reads, writes = (np.bincount(of[accesses == kind], minlength=int(of.max()) + 1) for kind in (1, 2))
        labels = {self.file_words[file]: label for file, label in self.labels.items()}
        for number in numbers[numbers >= 0].tolist():
            session = self.sessions.sessions[number]
            ends = " ".join(
                [*(["no-open"] if not session.has_open else []), *(["no-close"] if not session.has_close else [])]
            )
            yield (
                f"session s{number:<4} {f'f{labels[session.file]}':<4} {session.layer:<6} {session.owner:<8} "
                f"ids {ids[session.first]}..{ids[session.last]}  {len(session.members)} operations  "
                f"{reads[number + 1]} reads  {writes[number + 1]} writes  {ends}"
            ).rstrip()

    # ---- operations

    def operation_lines(self, rows: NDArray[np.int64], *, fold: bool) -> Iterator[str]:
        """Yield the lines of these operations."""
        who = {mask: self.who(mask) for mask in np.unique(self.groups).tolist()}
        files = [NULL] * len(self.file_words)
        for number, label in self.labels.items():
            files[number] = f"f{label}:{self.name(self.file_words[number]).rpartition('/')[2]}"
        yield from OperationLines(self.path, self.sessions, who, files, self.group).lines(rows, fold=fold)


def _begins(start_ns: int) -> str:
    """Return when a group begins, where that is later than the first one."""
    return f"  begins at {start_ns / 1e3:.1f} us" if start_ns else ""


def _group_of(rank: int, path: WorkloadPath) -> int:
    """Return the group of a rank: the one that it was found in; else the one that it would have in a replay."""
    info = path.info
    found = next((group for group, members in enumerate(info.members) if rank in members), None)
    if found is not None:
        return found
    return group_of_rank(rank, max(info.ranks, rank + 1), info.members, info.communicators)


def _fits(name: str, wanted: str) -> bool:
    return fnmatch.fnmatchcase(name, wanted) if set(wanted) & set("*?") else wanted in name


def operations_of(path: WorkloadPath, selection: Selection) -> list[dict[str, object]]:
    """Return the selected operations, each as {column of a workload path: value}."""
    found: list[dict[str, object]] = path.table.take(_Text(path, selection).rows()).to_pylist()
    return found


def show(
    path: WorkloadPath, name: str, selection: Selection | None = None, *, fold: bool = False, brief: bool = False
) -> Iterator[str]:
    """Yield the lines of a workload path.

    Parameters
    ----------
    path : what is shown.
    name : by which the first line calls it.
    selection : which operations; None: all. Files and sessions are those of these operations.
    fold : successive operations that differ in their offsets alone, by a constant step, are one line, and those of
        repeated sequences of up to eight operations are one line each; times are means.
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
    yield HEAD
    yield from text.operation_lines(rows, fold=fold)
