"""Names of Lustre targets, ``snx11035-OST001f_UUID``, and lines ``BEGIN 1489998203`` between snapshots of a file."""

from __future__ import annotations

import re

from mpiio_ext.analytics.sources.numbers import count
from mpiio_ext.analytics.tables.schema import Column

_TARGET = re.compile(r"(?P<fs>[^\s-]\S*)-(?P<kind>OST|MDT)(?P<index>[0-9a-fA-F]{4,7})(?P<rest>.*)")
_BEGIN = re.compile(r"\s*BEGIN\s+([0-9]+)\s*")
#: The column of these times.
SNAPSHOT = Column("time", "float64", "s since 1970 UTC", "of the snapshot, from its line BEGIN; NULL without one")
#: Seconds of the year 2242: later ones are damaged digits.
_LATEST = 2**33


def target_of(text: str, rest: str) -> tuple[str, str, str, int] | None:
    """Return file system, target, kind and index of a name that ends in what `rest` matches; None of others."""
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
        It begins one, and its time is none.
    """
    if not text.lstrip().startswith("BEGIN"):
        return None
    match = _BEGIN.fullmatch(text)
    if match is None or count(match[1]) >= _LATEST:
        raise ValueError(f"{text.strip()[:40]!r} begins a snapshot, and its time is none")
    return float(match[1])
