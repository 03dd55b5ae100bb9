"""Points at which all ranks of a replay have to meet, because one rank changes a file that others use.

Problem.   A path has no barriers: they are no I/O. But the root removes a file when the children are done with it, and
           children open what the root has made. Without the program's barriers a rank that is late would find a file
           gone, or not there yet, and everything that needs its handle would be left out.
Algorithm. One pass over the path, the same on all ranks. Of each file that several ranks share it notes which groups
           have used it since the last meeting, which have written to it, and which have changed its name or length.
           Ranks meet before a part of the groups changes a file that others have used; before others use it after that;
           and before a session that only reads begins, on a file that was written. A collective open of all ranks is a
           meeting by itself. Of the private files of ranks, only the files that other ranks refer to count: ranks meet
           before a reference to a changed file, and before a change of a file that was referred to.
Guarantee. A meeting is before a row of the path, whoever makes that row; so all ranks make the same meetings in the
           same order, and none waits endlessly for another. The slack time of the next operation goes on meanwhile, as
           a program's wait at a barrier is part of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mpiio_ext.pioneer.engine.parts import rule_numbers
from mpiio_ext.pioneer.operations import REMOVING, Operation, Role
from mpiio_ext.pioneer.path import Template, WorkloadPath
from mpiio_ext.pioneer.profile.sessions import Sessions

#: Operations that change a name, or the length of a file, without a handle.
_CHANGES = REMOVING | {"truncate", "link", "symlink"}
_ROOT = 1  # as a bit of `groups`
#: Operations whose name is a folder's: the files below it count.
_FOLDERS = frozenset({"rmdir", "rename", "renameat"})


@dataclass(slots=True)
class _State:
    """Groups by file, since the last meeting."""

    used: dict[str, int] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)
    changed: dict[str, int] = field(default_factory=dict)
    own_used: set[str] = field(default_factory=set)
    own_changed: set[str] = field(default_factory=set)
    referred: dict[str, int] = field(default_factory=dict)
    changed_by_others: set[str] = field(default_factory=set)

    def clear(self) -> None:
        """Forget everything: all ranks have met."""
        self.used.clear()
        self.written.clear()
        self.changed.clear()
        self.own_used.clear()
        self.own_changed.clear()
        self.referred.clear()
        self.changed_by_others.clear()

    def private(self, file: Template, kind: Operation, groups: int) -> bool:
        """Note an operation on a file that ranks have for themselves; whether they meet before it."""
        own = file.own.text
        alters = kind.name in _CHANGES or kind.role in (Role.WRITE, Role.BEGIN, Role.RESIZE)
        if file.refers:
            others = self.referred.get(own, 0) & ~(groups & _ROOT)  # the root's own calls are in order
            meet = own in self.own_changed or (alters and (own in self.own_used or others > 0))
        else:
            alters = alters or kind.role is Role.OPEN
            meet = own in self.changed_by_others or (alters and own in self.referred)
        if meet:
            self.clear()
        if file.refers:
            self.referred[own] = self.referred.get(own, 0) | groups
        else:
            self.own_used.add(own)
        if alters:
            (self.changed_by_others if file.refers else self.own_changed).add(own)
        return meet

    def users(self, file: str, *, below: bool) -> int:
        """Return the users of a file, or of the files below a folder."""
        found = self.used.get(file, 0)
        if below:
            for name, groups in self.used.items():
                found |= groups if name.startswith(f"{file}/") else 0
        return found

    def note(self, file: str, groups: int, *, writes: bool, changes: bool) -> None:
        """Note an operation."""
        self.used[file] = self.used.get(file, 0) | groups
        if writes:
            self.written.add(file)
        if changes:
            self.changed[file] = self.changed.get(file, 0) | groups


#: Accesses that alter nothing when they are made again.
_AGAIN = frozenset({Role.READ, Role.WRITE})


def _reading_opens(sessions: Sessions, kinds: Sequence[Operation]) -> set[int]:
    """Return the opens of sessions in which nothing is written and something is read."""
    found = set()
    for session in sessions.sessions:
        if session.has_open:
            roles = {kinds[row].role for row in session.members}
            if roles & {Role.READ, Role.MAP} and not roles & {Role.WRITE, Role.BEGIN, Role.RESIZE}:
                found.add(session.members[0])
    return found


def meetings(path: WorkloadPath, kinds: Sequence[Operation], sessions: Sessions) -> list[int]:
    """Return the rows of the path before which all ranks meet, ascending.

    Parameters
    ----------
    path : what is carried out.
    kinds : what its operations are.
    sessions : its open sessions.
    """
    everybody = (1 << path.group_count) - 1
    reading = _reading_opens(sessions, kinds)
    groups, owners = path.table["groups"].to_pylist(), path.words("owner").tolist()
    templates = {file: Template(file) for file in set(path.words("file")) if file is not None}
    families = {template.own.text for template in templates.values() if template.refers}
    shown = {file for file, template in templates.items() if template.own.text in families}
    private = shown | {file for file, template in templates.items() if template.has_rank or template.refers}
    parts = rule_numbers(path)
    state, found = _State(), []
    before: tuple[object, ...] = ()
    for row, file in enumerate(path.words("file").tolist()):
        if file is None:
            continue
        kind, mask = kinds[row], groups[row]
        this = (file, kind.role, mask)
        if this == before and kind.role in _AGAIN and file not in private:  # it shows nothing that the last one did not
            continue
        before = this
        if file in private:
            if file in shown and state.private(templates[file], kind, mask):
                found.append(row)
            continue
        changes = mask != everybody and (kind.name in _CHANGES or kind.role is Role.OPEN)
        gone = changes and kind.name in _CHANGES and state.users(file, below=kind.name in _FOLDERS) & ~mask
        fresh = file in state.changed and mask & ~state.changed[file]
        if gone or fresh or (row in reading and file in state.written):
            found.append(row)
            state.clear()
        together = (
            kind.layer == "mpiio"
            and kind.role is Role.OPEN
            and mask == everybody
            and owners[row] == "shared"
            and row not in parts
        )
        if together:
            state.clear()
        state.note(file, mask, writes=kind.role in (Role.WRITE, Role.BEGIN), changes=changes)
    return found
