"""The files of a source in a range of time, by the date-templated paths of a site.

Problem. A day's records of a file system are one file, under a path with the day in it, in the time zone of the machine
that wrote them. A range of time may begin and end in the middle of days, and a day may be there in one form or another.

Algorithm. The range is cut into the periods of a template, hours if it has %H, else days, in the clock's time zone. Of
each period the first of the templates that has files counts.

Guarantees. Every file comes once, in the order of periods. A period without any file is named.
"""

from __future__ import annotations

import dataclasses
import datetime
import glob
import zoneinfo
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.site import Clock, Site, SourceFiles

#: Periods of one question, at most: 30 years of days.
_MOST_PERIODS = 12_000


@dataclasses.dataclass(frozen=True)
class Found:
    """A file of a source, and the site's facts about it.

    Attributes
    ----------
    source : connector that reads it; None: to be recognised.
    time_zone : of its stamps without zone; empty: not known.
    file_system, host : whose it is.
    clock : name of the clock that its stamps are of (:meth:`~mpiio_ext.analytics.site.Site.correct`).
    stamps : {"begin", "end", ""}
        Whether a stamp begins or ends its interval, of sources that do not say it; empty: the site does not, either.
    metrics : tuple of (str, tuple of str)
        Quantity, and the names of metrics that are it; empty: those that are known.
    between : (float, float) or None
        The part that is read, in seconds since 1970 UTC; None: all of it.
    """

    path: Path
    source: str | None
    time_zone: str
    file_system: str | None = None
    host: str | None = None
    clock: str | None = None
    stamps: Literal["begin", "end", ""] = ""
    metrics: tuple[tuple[str, tuple[str, ...]], ...] = ()
    between: tuple[float, float] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class FoundFiles:
    """Files that are there, and paths at which one was expected; of several forms the first is named."""

    found: tuple[Found, ...]
    missing: tuple[str, ...]


def _periods(clock: Clock, start: float, end: float, hourly: bool) -> Iterator[datetime.datetime]:
    """Yield the days or hours that a range meets, in the clock's time zone."""
    zone = zoneinfo.ZoneInfo(clock.time_zone)
    if hourly:
        # Hours of the clock begin at half hours of UTC in some zones, and where its time changes some are longer.
        at, before = start + clock.offset_s, ""
        while at < end + clock.offset_s:
            here = datetime.datetime.fromtimestamp(at, zone)
            hour = here.replace(minute=0, second=0, microsecond=0)
            if hour.isoformat() != before:
                yield hour
            before = hour.isoformat()
            at += 3600 - (60 * here.minute + here.second + here.microsecond / 1e6)
        return
    day = datetime.datetime.fromtimestamp(start + clock.offset_s, zone).date()
    last = datetime.datetime.fromtimestamp(max(start, end - 1e-3) + clock.offset_s, zone).date()
    while day <= last:
        yield datetime.datetime.combine(day, datetime.time(), zone)
        day += datetime.timedelta(days=1)


def _of_period(paths: Sequence[str], period: datetime.datetime) -> tuple[list[str], str]:
    """Return the files of a period, and the path at which the first form of them was expected."""
    wanted = [period.strftime(path) for path in paths]
    for template in wanted:
        if found := sorted(glob.glob(template)):  # noqa: PTH207  (patterns of several levels)
            return found, wanted[0]
    return [], wanted[0]


def _hourly(files: SourceFiles) -> bool:
    return any("%H" in path.replace("%%", "") for path in files.paths)


def find_files(
    site: Site, source: str, start: float, end: float, *, file_system: str | None = None, host: str | None = None
) -> FoundFiles:
    """Return the files in which a source has data between two times.

    Parameters
    ----------
    source : name of a connector.
    start, end : the half-open range, seconds since 1970 UTC.
    file_system : only files of this one, and those of the whole machine.
    host : only files of this one, and those of several.

    Raises
    ------
    AnalyticsError
        The range is empty, or longer than 30 years of days.
    """
    if not start < end or (end - start) / 86400 > _MOST_PERIODS:
        raise AnalyticsError(f"from {start:g} to {end:g} is no range of times in which to search for files")
    found: dict[Path, Found] = {}
    missing: dict[str, None] = {}
    for files in site.files:
        if files.source != source or (file_system is not None and files.file_system not in (None, file_system)):
            continue
        if host is not None and files.host not in (None, host):
            continue
        clock = site.clock(files.clock)
        for period in _periods(clock, start, end, _hourly(files)):
            names, expected = _of_period(files.paths, period)
            if not names:
                missing[expected] = None
            for name in names:
                file = Found(
                    Path(name),
                    source,
                    clock.time_zone,
                    files.file_system,
                    files.host,
                    files.clock,
                    files.stamps,
                    tuple(files.metrics.items()),
                )
                found.setdefault(file.path, file)
    return FoundFiles(found=tuple(found.values()), missing=tuple(missing))
