"""Where marks lie in a drawing, in percent of its width.

The drawings are small SVG elements inside table cells. Their marks have horizontal places in percent, which SVG
understands without a view box: the drawing takes the width that the table leaves it on any screen or sheet, and circles
and line widths keep their shape. Nothing is drawn in a browser by a program, and no drawing says anything that the
numbers beside it do not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mpiio_ext.common.results import OUTER_PHASES, Measured, Spread

#: Room at each end of a logarithmic scale, so that a mark at the end is not cut; percent of the width.
_MARGIN = 4.0


@dataclass(frozen=True, slots=True)
class Whisker:
    """A median and the range around it, from `low`, `width` wide; percent."""

    at: float
    low: float
    width: float


@dataclass(frozen=True, slots=True)
class Piece:
    """One phase of a stacked bar; percent."""

    name: str
    start: float
    width: float


@dataclass(frozen=True, slots=True)
class LogScale:
    """A logarithmic scale between two positive ends, low < high."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """Return the place of a value in percent; values beyond the ends lie at the ends."""
        if value <= self.low:
            return _MARGIN
        if value >= self.high:
            return 100 - _MARGIN
        part = math.log(value / self.low) / math.log(self.high / self.low)
        return _short(_MARGIN + (100 - 2 * _MARGIN) * part)

    def whisker(self, spread: Spread) -> Whisker:
        """Return the places of a spread."""
        return _whisker(self.at(spread.median), self.at(spread.low), self.at(spread.high))

    def ticks(self, most: int = 5) -> list[float]:
        """Return round values inside the scale, at most `most` of them and 1 always, smallest first."""
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for steps in ((1, 2, 5), (1, 3), (1,)):
            found = [step * 10.0**k for k in decades for step in steps if self.low <= step * 10.0**k <= self.high]
            if len(found) <= most:
                return found
        every = math.ceil(len(found) / most)
        one = found.index(1.0)
        return found[one % every :: every]


def ratio_scale(spreads: Iterable[Spread | None]) -> LogScale:
    """Return the scale of all ratios of a page: from the smallest figure, or 1/2, to the largest, or 2."""
    low, high = 0.5, 2.0
    for spread in spreads:
        if spread is not None:
            low = min(low, spread.low) if spread.low > 0 else low
            high = max(high, spread.high)
    return LogScale(low, high)


def _short(percent: float) -> float:
    """Return a place with one decimal, a whole number where there is none: a page has thousands of them."""
    rounded = round(percent, 1)
    return int(rounded) if rounded == int(rounded) else rounded


def _whisker(at: float, low: float, high: float) -> Whisker:
    return Whisker(_short(at), _short(low), _short(high - low))


def bars(rows: Sequence[Measured]) -> list[Whisker]:
    """Return the bandwidth bars of rows that are compared: from zero, the largest figure of all fills the width."""
    largest = max((row.bandwidth.high for row in rows), default=0.0) or 1.0

    def percent(value: float) -> float:
        return 100 * value / largest

    return [
        _whisker(percent(row.bandwidth.median), percent(row.bandwidth.low), percent(row.bandwidth.high)) for row in rows
    ]


def pieces(rows: Sequence[Measured]) -> list[list[Piece]]:
    """Return the stacked bars of open, view, data and close; the longest of all fills the width."""
    longest = max((sum(row.seconds.get(name, 0.0) for name in OUTER_PHASES) for row in rows), default=0.0) or 1.0
    out = []
    for row in rows:
        start, stacked = 0.0, []
        for name in OUTER_PHASES:
            width = 100 * row.seconds.get(name, 0.0) / longest
            if width >= 0.05:  # a tenth of a pixel and less is not drawn
                stacked.append(Piece(name, _short(start), _short(width)))
            start += width
        out.append(stacked)
    return out


def shown_buckets(histograms: Iterable[Sequence[int] | None]) -> range:
    """Return the buckets that any of the histograms fills, as one range for all of them; empty if none does."""
    filled = [k for counts in histograms if counts for k, count in enumerate(counts) if count]
    return range(min(filled), max(filled) + 1) if filled else range(0)


def histogram_path(counts: Sequence[int], buckets: range, height: int = 20) -> str:
    """Return the columns of a histogram as the data of one SVG path.

    Parameters
    ----------
    counts : of requests per bucket.
    buckets : those to show; each is 10 units wide.
    height : of the fullest bucket, in units; a bucket that is not empty has at least 1.
    """
    fullest = max(counts, default=0) or 1
    out = []
    for place, k in enumerate(buckets):
        count = counts[k] if k < len(counts) else 0
        if count:
            tall = max(1, round(height * count / fullest))
            out.append(f"M{10 * place + 1} {height}v-{tall}h8v{tall}z")
    return "".join(out)
