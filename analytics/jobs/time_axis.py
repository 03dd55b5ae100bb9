"""Axes of time, and lines with holes where nothing ran, of charts of histories of jobs."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence

from mpiio_ext.common.plots import Axis

_DAY = 86400.0
#: Jobs that get a mark each; more are a line alone, since marks are most of the bytes of a figure.
MARKED = 120


def date_axis(times: Sequence[float], *, shown: bool = True, most: int = 7) -> Axis:
    """Return an axis of seconds with at most `most` marks at starts of months, or of days on a short axis."""
    zone = datetime.timezone.utc
    first, last = (datetime.datetime.fromtimestamp(end, zone) for end in (min(times), max(times)))
    days = (last - first).total_seconds() / _DAY
    months, marks = days > 62, list[tuple[float, str]]()
    step = max(1, math.ceil(days / (30.4 if months else 1) / most))
    at = datetime.datetime(first.year, first.month, 1 if months else first.day, tzinfo=zone)
    while at <= last + datetime.timedelta(days=not months):
        if at >= first:
            of_month = "%b %Y" if at.month <= step or not marks else "%b"
            marks.append((at.timestamp(), at.strftime(of_month if months else "%d %b")))
        year, month = divmod(at.month - 1 + step, 12)
        ahead = datetime.timedelta(days=step)
        at = at.replace(year=at.year + year, month=month + 1) if months else at + ahead
    room = max((max(times) - min(times)) * 0.02, 3600.0)
    return Axis(
        ticks=[(place, words if shown else "") for place, words in marks],
        low=min(times) - room,
        high=max(times) + room,
        date=True,
    )


def broken(times: Sequence[float], values: Sequence[float], apart: float | None) -> tuple[list[float], list[float]]:
    """Return a line with a hole wherever more than `apart` s pass between two jobs."""
    if apart is None:
        return list(times), list(values)
    across, up = list(times[:1]), list(values[:1])
    for before, at, value in zip(times, times[1:], values[1:], strict=False):
        if at - before > apart:
            across.append((before + at) / 2)
            up.append(float("nan"))
        across.append(at)
        up.append(value)
    return across, up


def alone(values: Sequence[float]) -> list[int]:
    """Return the places of values between two holes, of which a line shows nothing."""
    there = [False, *(value == value for value in values), False]
    return [at for at in range(len(values)) if there[at + 1] and not there[at] and not there[at + 2]]
