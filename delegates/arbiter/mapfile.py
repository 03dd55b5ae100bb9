"""The map: which I/O nodes every job has; written whole, read only when whole.

Problem. Jobs read the map while it is replaced, and the arbiter may be killed at any moment. Format.
csrc/iod/arbiter/mpiox_map.h: lines of text, a generation, the number of jobs and a checksum at the end.
Guarantees. A reader sees the old map or the new one. The partial file of a killed arbiter never counts as a map.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mpiio_ext.common.files import read_plain, write_whole
from mpiio_ext.errors import MpiioExtError

#: Indices of I/O nodes are below this.
MOST_NODES = 576
_MOST_BYTES = 4 << 20  # as mpiox_map.h has it


class MapError(MpiioExtError, ValueError):
    """A file is no map; the message names the reason."""


@dataclass(frozen=True, slots=True)
class Map:
    """A generation (1 or more; 0: before the first map), and job -> indices of its I/O nodes."""

    generation: int = 0
    jobs: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Return the file's content."""
        lines = ["mpiox-map 1", f"generation {self.generation}"]
        lines += [f"job {name} {','.join(map(str, nodes)) or '-'}" for name, nodes in sorted(self.jobs.items())]
        body = "".join(f"{line}\n" for line in lines).encode()
        return body + f"end {len(self.jobs)} {checksum(body):016x}\n".encode()


def checksum(content: bytes) -> int:
    """Return FNV-1a, 64 bits."""
    value = 0xCBF29CE484222325
    for byte in content:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def _nodes(words: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    if len(words) != 3 or words[0] != "job":
        raise MapError("a line is no 'job NAME nodes'")
    nodes = (
        ()
        if words[2] == "-"
        else tuple(int(word) if word.isascii() and word.isdigit() else -1 for word in words[2].split(","))
    )
    if len(set(nodes)) != len(nodes) or any(not 0 <= node < MOST_NODES for node in nodes):
        raise MapError(f"the I/O nodes of job {words[1]!r} are not different numbers below {MOST_NODES}")
    return words[1], nodes


def decode(content: bytes) -> Map:
    """Return the map in a file's content.

    Raises
    ------
    MapError
        The content is cut off, damaged, or no map.
    """
    body, newline, last = content.removesuffix(b"\n").rpartition(b"\n")
    body += newline
    try:
        lines = body.decode("ascii").splitlines()
        end = last.decode("ascii").split(" ")
    except UnicodeDecodeError as error:
        raise MapError("it is no text") from error
    if not content.endswith(b"\n") or len(end) != 3 or end[0] != "end":
        raise MapError("it is cut short: the line 'end' is missing")
    if end[2] != f"{checksum(body):016x}":
        raise MapError("its checksum is wrong")
    number = lines[1].removeprefix("generation ") if len(lines) > 1 else ""
    if lines[:1] != ["mpiox-map 1"] or not number.isdigit() or int(number) < 1:
        raise MapError("it does not begin with 'mpiox-map 1' and a generation")
    jobs = dict(_nodes(line.split(" ")) for line in lines[2:])
    if str(len(lines) - 2) != end[1] or len(jobs) != len(lines) - 2:
        raise MapError("the number of jobs in its last line is wrong")
    return Map(int(number), jobs)


def read(folder: Path) -> Map:
    """Return the map of an arbiter's folder; an empty one of generation 0 if there is none.

    Raises
    ------
    MapError
        The file is no map.
    OSError
        The file cannot be read.
    """
    try:
        content = read_plain(folder / "map", _MOST_BYTES)
    except FileNotFoundError:
        return Map()
    if content is None:
        raise MapError(f"it is no plain file of {_MOST_BYTES} bytes at most")
    return decode(content)


def write(folder: Path, content: Map) -> None:
    """Replace the map: whole, on stable storage before it can be seen.

    Raises
    ------
    OSError
        The folder is not writable, or full; the old map is still there.
    """
    write_whole(folder / "map", content.encode(), follow=False, mode=0o644)
