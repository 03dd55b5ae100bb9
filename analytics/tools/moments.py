"""Moments and periods without doubt about the time zone.

Problem. Monitoring tools stamp local times, schedulers UTC, Darshan seconds since 1970. A time without zone that is
taken for the wrong one shifts every join by hours, silently: so it happened in the published tables of TOKIO.

Rules. A moment is a number (seconds since 1970 UTC), a datetime with a zone, or an ISO text with a zone. If a zone is
given, a time without a zone is local there; otherwise such a time is refused. A local time that the clock shows twice
is the earlier one unless its ``fold`` says otherwise; one that the clock leaves out in spring is refused.

Source: TOKIO, Section "Data integration", on clocks; errata of tokio-abcutils.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
import zoneinfo

from mpiio_ext.analytics.errors import AnalyticsError

__all__ = ["Moment", "MomentError", "Period", "moment", "shown"]

Moment = float | int | str | datetime.datetime

#: Moments outside (year 1 to 9999) are mistakes, such as milliseconds.
_LATEST = 253_402_300_800.0


class MomentError(AnalyticsError, ValueError):
    """A text is no time, or its zone is not known."""


def moment(when: Moment, time_zone: str | None = None) -> float:
    """Return a moment in seconds since 1970 UTC.

    Parameters
    ----------
    when : number, datetime or str
        Seconds since 1970 UTC, or a date and time, with a zone unless `time_zone` is given.
    time_zone : str, optional
        Of times without zone: a name as America/Los_Angeles.

    Raises
    ------
    MomentError
        The value is no time, has no zone, or does not exist in its zone.
    """
    if isinstance(when, bool):
        raise MomentError(f"{when!r} is no time")
    if isinstance(when, (int, float)):
        if not math.isfinite(when) or abs(when) >= _LATEST:
            raise MomentError(f"{when!r} is no time in seconds since 1970 UTC")
        return float(when)
    if isinstance(when, str):
        text = when
        try:
            when = datetime.datetime.fromisoformat(text.strip().replace("Z", "+00:00").replace("z", "+00:00"))
        except ValueError as error:
            raise MomentError(f"{text[:40]!r} is no time; write for example 2018-01-28T00:00:00-08:00") from error
    if not isinstance(when, datetime.datetime):
        raise MomentError(f"{when!r} is no time; give seconds since 1970 UTC, or a datetime with a zone")
    if when.utcoffset() is not None:
        return when.timestamp()
    if time_zone is None:
        raise MomentError(
            f"{when.isoformat()} has no time zone; write it, as {when.isoformat()}+00:00, or name the site's"
        )
    return _local(when, time_zone)


def _local(when: datetime.datetime, time_zone: str) -> float:
    try:
        zone = zoneinfo.ZoneInfo(time_zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise MomentError(f"{time_zone!r} is no time zone of this machine; take a name as Europe/Berlin") from error
    seconds = when.replace(tzinfo=zone).timestamp()
    if datetime.datetime.fromtimestamp(seconds, zone).replace(tzinfo=None, fold=0) != when.replace(fold=0):
        raise MomentError(f"{when.isoformat()} does not exist in {time_zone}: clocks were put forward over it")
    return seconds


def shown(seconds: float) -> str:
    """Return a moment for people, in UTC: ``2018-01-28 08:00:05Z``."""
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%SZ")


@dataclasses.dataclass(frozen=True)
class Period:
    """The half-open period [start, end), in seconds since 1970 UTC.

    Raises
    ------
    MomentError
        The period ends before it starts, or a bound is no time.
    """

    start: float
    end: float

    def __post_init__(self) -> None:
        for bound in (self.start, self.end):
            moment(bound)
        if self.end < self.start:
            raise MomentError(f"a period from {shown(self.start)} cannot end at {shown(self.end)}, before it")

    @classmethod
    def of(cls, start: Moment, end: Moment, time_zone: str | None = None) -> Period:
        """Return the period between two moments; see :func:`moment`."""
        return cls(moment(start, time_zone), moment(end, time_zone))

    @property
    def seconds(self) -> float:
        """Length in seconds."""
        return self.end - self.start

    def overlap(self, start: float, end: float) -> float:
        """Return how many seconds of [start, end) lie in the period."""
        return max(0.0, min(end, self.end) - max(start, self.start))

    def __str__(self) -> str:
        return f"{shown(self.start)} to {shown(self.end)}"
