"""Open objects of a plan: the handle slots of sessions, and the places of nonblocking calls that are under way.

A slot or place that is given up is used again, so that the engine's tables are as large as what is open at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mpiio_ext.pioneer.operations import Operation, Role
from mpiio_ext.pioneer.profile.sessions import Sessions


@dataclass(slots=True)
class Handles:
    """Sessions of the path, and the handle slots that they have while they are open, with their views."""

    of: list[int]
    reads: list[bool]
    writes: list[bool]
    has_open: list[bool]
    of_folder: list[bool]
    last_close: list[int]
    free: list[int] = field(default_factory=list)
    slot_of: dict[int, int] = field(default_factory=dict)
    views: dict[int, int] = field(default_factory=dict)
    count: int = 0

    def open(self, session: int) -> int:
        """Return the slot that a session has from now on."""
        slot = self.free.pop() if self.free else self.count
        self.count = max(self.count, slot + 1)
        self.slot_of[session] = slot
        return slot

    def close(self, session: int) -> int:
        """Return the slot that a session gives up; -1: it has no slot."""
        slot = self.slot_of.pop(session, -1)
        self.views.pop(session, None)
        if slot >= 0:
            self.free.append(slot)
        return slot


def handles_of(sessions: Sessions, operations: Sequence[Operation], mine: Sequence[bool]) -> Handles:
    """Return the sessions of a path; `mine` marks the operations of the rank."""
    reads, writes, has_open, of_folder, last_close = [], [], [], [], []
    for session in sessions.sessions:
        kinds = [operations[row] for row in session.members]
        reads.append(any(kind.role in (Role.READ, Role.MAP) or kind.writes is False for kind in kinds))
        writes.append(any(kind.role in (Role.WRITE, Role.RESIZE) or kind.writes is True for kind in kinds))
        has_open.append(session.has_open)
        of_folder.append(kinds[0].name == "opendir")
        last_close.append(
            max(
                (
                    row
                    for row, kind in zip(session.members, kinds, strict=True)
                    if kind.role is Role.CLOSE and mine[row]
                ),
                default=-1,
            )
        )
    return Handles(sessions.of.tolist(), reads, writes, has_open, of_folder, last_close)


@dataclass(slots=True)
class Requests:
    """Places of the nonblocking calls that are under way, by their files and the numbers that the trace gives them."""

    of_number: dict[Any, tuple[int, int]] = field(default_factory=dict)
    free: list[int] = field(default_factory=list)
    count: int = 0
    _nameless: int = 0

    def start(self, extra: dict[str, Any], slot: int, file: str | None) -> int:
        """Return the place of a call; one that was complete at once gives it up for the next call to wait for."""
        place = self.free.pop() if self.free else self.count
        self.count = max(self.count, place + 1)
        if extra.get("complete"):
            self.free.append(place)
            return place
        self._nameless += 1
        number = (file, extra["request"]) if "request" in extra else ("nameless", self._nameless)
        if number in self.of_number:  # no call has waited for that one
            self.free.append(self.of_number.pop(number)[0])
        self.of_number[number] = place, slot
        return place

    def wait(self, extra: dict[str, Any], file: str | None) -> int | None:
        """Return the place of the call that a wait ends; -1: all calls; None: there is no such call."""
        if "request" in extra:
            wanted = extra["request"]
            number = next((key for key in self.of_number if key[1] == wanted and file in (None, key[0])), None)
            found = None if number is None else self.of_number.pop(number)
            if found is None:
                return None
            self.free.append(found[0])
            return found[0]
        self.close(None)
        return -1

    def close(self, slot: int | None) -> None:
        """Free the places of a handle, or all; calls that are under way are waited for."""
        for number, (place, used_by) in list(self.of_number.items()):
            if slot is None or used_by == slot:
                del self.of_number[number]
                self.free.append(place)
