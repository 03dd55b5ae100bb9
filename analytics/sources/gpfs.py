"""Output of GPFS' administration commands with ``-Y``: lines of fields between colons, behind a line that names them.

Problem. Every release adds fields, and a command has several kinds of lines (``mmdf:nsd``, ``mmdf:inode``). A colon or
a blank inside a value is written as ``%3A``.

Algorithm. A line ``command:section:HEADER:…`` names the fields of the lines of its section; those come by name.

Guarantees. A line with fewer fields than its names, or of a section that was not named, raises ValueError.
"""

from __future__ import annotations

import re
import urllib.parse

from mpiio_ext.analytics.sources.mmperfmon import UNITS
from mpiio_ext.analytics.sources.numbers import count

_WITH_UNIT = re.compile(r"([0-9]+(?:\.[0-9]+)?)([BKMGTPE]?)B?")
_LINE = re.compile(r"(?P<command>mm[a-z]+):(?P<section>[A-Za-z]*):(?P<kind>HEADER|[0-9]+):(?P<fields>.*)")
_WHOLE = re.compile(r"-?[0-9]{1,9}")
_ESCAPED = re.compile(r"%[0-9A-Fa-f]{2}")


class Colons:
    """The lines of one command.

    Parameters
    ----------
    command : its name: lines of others are none.
    """

    def __init__(self, command: str) -> None:
        self._command = command
        self._names: dict[str, list[str]] = {}

    def fields(self, text: str) -> tuple[str, dict[str, str]] | None:
        """Return section and fields by name; None for other lines, and no fields for one that names them.

        Raises
        ------
        ValueError
            The line has not the fields that its section has.
        """
        match = _LINE.fullmatch(text)
        if match is None or match["command"] != self._command:
            return None
        section, values = match["section"], match["fields"].split(":")
        if match["kind"] == "HEADER":
            self._names[section] = [name for name in values if name]
            return section, {}
        names = self._names.get(section)
        if names is None:
            raise ValueError(f"no line {self._command}:{section}:HEADER above it names its fields")
        if len(values) < len(names):
            raise ValueError(f"{len(values)} fields, and {len(names)} are named")
        return section, {
            name: _ESCAPED.sub(lambda code: urllib.parse.unquote(code[0]), value)
            for name, value in zip(names, values, strict=False)
        }


def yes(text: str) -> bool:
    """Return whether a ``Yes`` or ``No`` is ``Yes``.

    Raises
    ------
    ValueError
        The text is neither ``Yes`` nor ``No``.
    """
    if text.lower() not in ("yes", "no"):
        raise ValueError(f"{text[:20]!r} is neither Yes nor No")
    return text.lower() == "yes"


def whole(text: str) -> int:
    """Return a whole number, as failure groups are, which may be -1.

    Raises
    ------
    ValueError
        The text is no whole number.
    """
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is no whole number")
    return int(text)


def kib(text: str, unit: str = "KB") -> int:
    """Return a size in KiB, of a column in KB, MB, GB or TB: powers of 1024; of ``auto``, with a unit behind it.

    Raises
    ------
    ValueError
        The text is no size, or the size is too large.
    """
    if unit == "auto":
        match = _WITH_UNIT.fullmatch(text)
        if match is None:
            raise ValueError(f"{text[:40]!r} is no size with a unit")
        found = round(float(match[1]) * 1024.0 ** ("BKMGTPE".index(match[2] or "B") - 1))
    else:
        found = count(text) * (UNITS[unit] // UNITS["KB"])
    if found >= 2**62:
        raise ValueError(f"{text} {unit} is no size")
    return found
