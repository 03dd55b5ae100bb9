"""Names of Lustre targets, ``snx11035-OST001f_UUID``; files of lists with ``BEGIN 1489998203`` between snapshots."""

from __future__ import annotations

import re
from typing import Protocol

from mpiio_ext.analytics.sources.base import File
from mpiio_ext.analytics.sources.content import lines_of
from mpiio_ext.analytics.sources.numbers import count
from mpiio_ext.analytics.sources.records import SourceError
from mpiio_ext.analytics.tables.schema import Column

_TARGET = re.compile(r"(?P<fs>[^\s-]\S*)-(?P<kind>OST|MDT)(?P<index>[0-9a-fA-F]{4,7})(?P<rest>.*)")
_BEGIN = re.compile(r"\s*BEGIN\s+([0-9]+)\s*")
#: The column of these times.
SNAPSHOT = Column("time", "float64", "s since 1970 UTC", "of the snapshot, from its line BEGIN; NULL without one")
#: Seconds of the year 2242: later ones are damaged digits.
_LATEST = 2**33


def target_of(text: str, rest: str) -> tuple[str, str, str, int] | None:
    """Return file system, target, kind and index of a name that ends in a match of `rest`; None for others."""
    match = _TARGET.fullmatch(text)
    if match is None or not re.fullmatch(rest, match["rest"]):
        return None
    name = f"{match['fs']}-{match['kind']}{match['index']}"
    return match["fs"], name, match["kind"], int(match["index"], 16)


def begin(text: str) -> float | None:
    """Return the time of a line that begins a snapshot [s since 1970 UTC]; None of another line.

    Raises
    ------
    ValueError
        The line begins a snapshot, and has no valid time.
    """
    if not text.lstrip().startswith("BEGIN"):
        return None
    match = _BEGIN.fullmatch(text)
    if match is None or count(match[1]) >= _LATEST:
        raise ValueError(f"{text.strip()[:40]!r} begins a snapshot, and its time is none")
    return float(match[1])


class ListReader(Protocol):
    """Reader of the lines of such a file; `found`: with a heading among them; `lost`: one line is no text."""

    found: bool

    def line(self, number: int, text: str) -> None: ...
    def lost(self) -> None: ...
    def finish(self) -> None: ...


def read_lists(file: File, reader: ListReader, nothing: str) -> None:
    """Pass the lines of a file to its reader; raises SourceError with the text `nothing` if there is no heading."""
    before = 0
    for number, line in lines_of(file.path, file.problems):
        if number > before + 1:
            reader.lost()
        before = number
        reader.line(number, line)
    reader.finish()
    if not reader.found:
        raise SourceError(str(file.path), 0, nothing)
