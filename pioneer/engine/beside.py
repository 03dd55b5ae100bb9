"""What calls need beside their own handle: the mapping that munmap and msync are about, the target of a copy.

Problem.   Programs map a file and close its descriptor; of one descriptor they map several pieces. `sendfile` and
           `copy_file_range` have two descriptors. A plan has one handle for each call.
Algorithm. Mappings are numbered while they last, with the lowest number that is free, as handles are. The mapping that
           a call is about is that of its session with its address; where the trace tells none, with its size; else
           the oldest one. A copy goes to the handle of the session of its target that was opened last.
Guarantee. No two mappings that last have one number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mpiio_ext.pioneer.path.short import MOVED
from mpiio_ext.pioneer.profile.sessions import Session

__all__ = ["COPIES", "MOVED_SIZES", "Mappings", "size_of", "target_of"]

#: Calls that move data from a file to another one.
COPIES = frozenset({"sendfile", "copy_file_range"})
#: Calls that are made with the size that they have moved: fgets ends with the line, which its stand-in does not know;
#: what a copy asks for is often the largest number that there is.
MOVED_SIZES = COPIES | {"fgets"}


def size_of(name: str, extra: Mapping[str, Any], size: int) -> int:
    """Return the size that a call is made with, bytes; `size`: that of the trace, negative where it is not known."""
    return max(0, int(extra.get(MOVED, size)) if name in MOVED_SIZES else size)


def target_of(open_sessions: Mapping[int, int], sessions: Sequence[Session], file: str | None) -> int:
    """Return the handle of the session of a file that was opened last; -1: there is none.

    Parameters
    ----------
    open_sessions : handles of the sessions that are open, in the order in which they were opened.
    sessions : of the path.
    file : the target's name in the path.
    """
    return next((slot for session, slot in reversed(list(open_sessions.items()))
                 if file is not None and sessions[session].file == file), -1)  # fmt: skip


@dataclass(slots=True)
class Mappings:
    """Mappings that last, by their sessions: number, address (None: not told), bytes."""

    of: dict[int, list[tuple[int, Any, int]]] = field(default_factory=dict)
    free: list[int] = field(default_factory=list)
    count: int = 0

    def add(self, session: int, extra: Mapping[str, Any], size: int) -> int:
        """Return the number of a new one."""
        number = self.free.pop() if self.free else self.count
        self.count = max(self.count, number + 1)
        self.of.setdefault(session, []).append((number, extra.get("address"), size))
        return number

    def find(self, session: int, extra: Mapping[str, Any], size: int, *, ends: bool) -> int:
        """Return the number of the one that a call is about, -1: there is none; `ends`: the call takes it back."""
        several = self.of.get(session, [])
        address = extra.get("address")
        known = [item for item in several if address is not None and item[1] == address]
        chosen = next(iter(known or [item for item in several if item[2] == size] or several), None)
        if chosen is None:
            return -1
        if ends:
            several.remove(chosen)
            self.free.append(chosen[0])
        return chosen[0]
