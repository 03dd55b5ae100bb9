"""Names of files and their numbers, as Darshan makes them.

Problem. A record has the number of its file, not its name: logs of several runs, and tools that compare them, take
equal numbers for the same file. Algorithm: the number is the 64-bit hash "lookup8" (Bob Jenkins, public domain) of the
absolute name, without doubled slashes and "/./". Guarantee: the same number as Darshan's runtime gives.
"""

from __future__ import annotations

import os

#: Name of the file that stands for all that had no room for records of their own.
OTHERS = "<other files>"

_MASK = (1 << 64) - 1
#: The twelve steps of a round: bits, and whether to the right.
_STEPS = ((43, 1), (9, 0), (8, 1), (38, 1), (23, 0), (5, 1), (35, 1), (49, 0), (11, 1), (12, 1), (18, 0), (22, 1))


def clean(name: str) -> str:
    """Return a name without doubled slashes and "/./"."""
    while "//" in name:
        name = name.replace("//", "/")
    while "/./" in name:
        name = name.replace("/./", "/")
    return name


def _mix(a: int, b: int, c: int) -> tuple[int, int, int]:
    for bits, right in _STEPS:
        a = (a - b - c) & _MASK
        a ^= (c >> bits) if right else (c << bits) & _MASK
        a, b, c = b, c, a
    return a, b, c


def record_id(name: str) -> int:
    """Return the number of a file's record, 64 bits without sign."""
    data = os.fsencode(name)
    a, b, c = 0, 0, 0x9E3779B97F4A7C13
    whole = len(data) - len(data) % 24
    for at in range(0, whole, 24):
        a = (a + int.from_bytes(data[at : at + 8], "little")) & _MASK
        b = (b + int.from_bytes(data[at + 8 : at + 16], "little")) & _MASK
        c = (c + int.from_bytes(data[at + 16 : at + 24], "little")) & _MASK
        a, b, c = _mix(a, b, c)
    rest = data[whole:]
    a = (a + int.from_bytes(rest[:8], "little")) & _MASK
    b = (b + int.from_bytes(rest[8:16], "little")) & _MASK
    c = (c + len(data) + (int.from_bytes(rest[16:], "little") << 8)) & _MASK  # its lowest byte is the length's
    return _mix(a, b, c)[2]
