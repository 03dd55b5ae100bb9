"""Numbers and local times as tools print them, to values; other texts raise ValueError with a message.

Problem. A damaged digit may still be a number, and Python takes more for one than tools print: ``1_0``, ``٣``, ``inf``.

Rules. A whole number is ASCII digits that fit 63 bits. A local time of the hour that clocks show twice is taken so that
the stamps of a file do not go back, where that is possible.
"""

from __future__ import annotations

import datetime
import re
import zoneinfo
from collections.abc import Sequence

_COUNT = re.compile(r"[0-9]{1,19}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")

#: A date and time behind which no zone stands.
_LOCAL = re.compile(r"(?<!\d)\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?!\d|[.:]\d| ?(?:[Zz]|[+-]\d\d))")


def has_local_time(text: str) -> bool:
    """Return whether a text has a date and time without a zone."""
    return _LOCAL.search(text) is not None


def count(text: str) -> int:
    """Return a whole number of 0 or more.

    Raises
    ------
    ValueError
        The text is no whole number of 0 or more, or the number does not fit into 63 bits.
    """
    if not _COUNT.fullmatch(text) or int(text) >= 2**63:
        raise ValueError(f"{text[:40]!r} is no count")
    return int(text)


def decimal(text: str) -> float:
    """Return a finite number.

    Raises
    ------
    ValueError
        The text is no finite number.
    """
    if not _DECIMAL.fullmatch(text) or abs(value := float(text)) == float("inf"):
        raise ValueError(f"{text[:40]!r} is no number")
    return value


def zone_of(name: str) -> zoneinfo.ZoneInfo:
    """Return a time zone by name.

    Raises
    ------
    ValueError
        This machine does not know it.
    """
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"{name!r} is no time zone of this machine; take a name as Europe/Berlin") from error


class Zone:
    """Local times of one file, in its order, to seconds since 1970 UTC.

    Parameters
    ----------
    name : the time zone.
    formats : of ``strptime``; the first that fits is taken.
    """

    def __init__(self, name: str, formats: Sequence[str]) -> None:
        self._zone = zone_of(name)
        self._formats = formats
        self._known: dict[str, datetime.datetime] = {}
        self._before = float("-inf")

    def restart(self) -> None:
        """Forget the rows before: a table of its own begins."""
        self._before = float("-inf")

    def seconds(self, text: str) -> float:
        """Return the seconds of a stamp.

        Raises
        ------
        ValueError
            The text has none of the forms of this object, or no such time exists.
        """
        local = self._known.get(text) or self._known.setdefault(text, self._parsed(text))
        try:
            seconds = local.timestamp()
            later = local.replace(fold=1).timestamp()
        except OverflowError as error:
            raise ValueError(f"{text[:40]!r} is no time") from error
        if seconds < self._before:
            seconds = later if later >= self._before else seconds
        self._before = seconds
        return seconds

    def _parsed(self, text: str) -> datetime.datetime:
        for form in self._formats if text.isascii() else ():
            try:
                found = datetime.datetime.strptime(text, form)
            except ValueError:
                continue
            return found if found.tzinfo else found.replace(tzinfo=self._zone)
        raise ValueError(f"{text[:40]!r} is no time")
