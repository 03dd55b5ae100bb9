"""Further arguments of calls beside their handle: the mapping for munmap and msync, the target of a copy.

Problem.   Programs map a file and close its descriptor; of one descriptor they map several pieces. `sendfile` and
           `copy_file_range` have two descriptors. A plan has one handle for each call.
Algorithm. Mappings are numbered while they last, with the lowest number that is free, as handles are. The mapping that
           a call is about is that of its session with its address; where the trace has none, with its size; else
           the oldest one. A copy goes to the handle of the session of its target that was opened last.
Guarantee. No two mappings that last have one number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mpiio_ext.pioneer.path.short import MOVED
from mpiio_ext.pioneer.profile.sessions import Session

#: Calls that move data from a file to another one.
COPIES = frozenset({"sendfile", "copy_file_range"})
#: Calls that are made with the size that they have moved: fgets ends with the line, which its stand-in does not know;
#: the requested size of a copy is often the largest number that there is.
MOVED_SIZES = COPIES | {"fgets"}


_PROTECTIONS = {"PROT_NONE": 0, "PROT_READ": 1, "PROT_WRITE": 2, "PROT_EXEC": 4}
_KINDS = {"MAP_SHARED": 1, "MAP_PRIVATE": 2, "MAP_SHARED_VALIDATE": 3}  # of the lowest bits of the flags
#: Beside the protection in a plan: the mapping is private, as in mpiox_engine_posix.c. What is mapped so for writing
#: may be of a file that is open for reading.
PRIVATE = 1 << 8


def _number(value: Any, words: Mapping[str, int]) -> int:
    """Return an argument that tracers print as a number, its digits, or names with "|"; unknown names are left out.

    Raises
    ------
    ValueError
        The argument is neither a number nor a text of digits or names.
    """
    if isinstance(value, int):
        return value
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no argument of mmap")
    total = 0
    for part in filter(None, (word.strip() for word in value.split("|"))):
        if part[0].isdigit():
            total |= int(part, 0 if part[:2] in ("0x", "0X") else 8 if part[0] == "0" else 10)
        elif part.startswith(("PROT_", "MAP_")):
            total |= words.get(part, 0)
        else:
            raise ValueError(f"{value!r} is no argument of mmap")
    return total


def mapping_flags(extra: Mapping[str, Any]) -> int:
    """Return the protection of a mapping, as numbers or names give it, and `PRIVATE`; without one PROT_READ."""
    protection = _number(extra.get("protection", 1), _PROTECTIONS) & 7
    private = _number(extra.get("flags", 0), _KINDS) & 15 == _KINDS["MAP_PRIVATE"]
    return protection | (PRIVATE if private else 0)


def size_of(name: str, extra: Mapping[str, Any], size: int) -> int:
    """Return the size in bytes with which a call is made; `size`: the size in the trace, negative if unknown."""
    return max(0, int(extra.get(MOVED, size)) if name in MOVED_SIZES else size)


def target_of(open_sessions: Mapping[int, int], sessions: Sequence[Session], file: str | None) -> int:
    """Return the handle of the session of a file that was opened last; -1: there is no session.

    Parameters
    ----------
    open_sessions : handles of the sessions that are open, in the order in which they were opened.
    sessions : of the path.
    file : the target's name in the path.
    """
    return next(
        (
            slot
            for session, slot in reversed(list(open_sessions.items()))
            if file is not None and sessions[session].file == file
        ),
        -1,
    )


@dataclass(slots=True)
class Mappings:
    """Mappings that last, by their sessions: number, address (None: unknown), bytes."""

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
        """Return the number of the mapping that a call is about, -1: there is none; `ends`: the call removes it."""
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
