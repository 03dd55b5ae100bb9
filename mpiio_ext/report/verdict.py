"""What all rows together say, by rules that the page states.

A row of the extension is compared with ``native`` inside each repetition, so a slow minute of the machine hits both.
Rows are counted by the median of these ratios, which more repetitions make surer but not larger: it reaches 1; or it
is below 1, but some repetition reached 1 (within the spread); or every repetition was below 1. A row that was measured
once has no spread and is judged by its one ratio. All ratios are taken to two decimals, as they are shown, so that
counts and symbols agree with the figures beside them.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mpiio_ext.common.results import Measured, Spread
from mpiio_ext.report.words import ratio, ratio_spread, row_title

#: Gain that noncontiguous access should reach.
GOAL = 1.3


def _shown(value: float) -> float:
    """Return a ratio as the page shows it, to two decimals."""
    return round(value, 2)


def judge(spread: Spread | None) -> str:
    """Return how a row compares with native over its repetitions, or "" when native was not measured.

    Returns
    -------
    str
        "faster" or "slower" in every repetition, else "level".
    """
    if spread is None:
        return ""
    if _shown(spread.low) > 1:
        return "faster"
    return "level" if _shown(spread.high) >= 1 else "slower"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Rows of the extension counted.

    Attributes
    ----------
    title : which methods
    rows : rows with a ratio
    reached : rows whose median reaches 1
    within : rows whose median is below 1, though some repetition reached it
    slower : rows that were below 1 in every repetition; the three add up to `rows`
    noncontiguous, noncontiguous_at_goal : rows of noncontiguous access; those whose median gain reaches `GOAL`
    noncontiguous_median : median of their median gains; None without such rows
    best, worst : rows with the largest and the smallest median gain
    single : rows measured once
    """

    title: str
    rows: int
    reached: int
    within: int
    slower: int
    noncontiguous: int
    noncontiguous_at_goal: int
    noncontiguous_median: float | None
    best: Measured
    worst: Measured
    single: int


def _median_ratio(row: Measured) -> float:
    assert row.ratio is not None
    return row.ratio.median


def _tally(title: str, rows: Sequence[Measured]) -> Tally | None:
    rows = [row for row in rows if row.ratio is not None]
    if not rows:
        return None
    reached = sum(_shown(_median_ratio(row)) >= 1 for row in rows)
    slower = sum(judge(row.ratio) == "slower" for row in rows)
    gains = [_median_ratio(row) for row in rows if row.last.noncontiguous]
    return Tally(
        title=title,
        rows=len(rows),
        reached=reached,
        within=len(rows) - reached - slower,
        slower=slower,
        noncontiguous=len(gains),
        noncontiguous_at_goal=sum(_shown(gain) >= GOAL for gain in gains),
        noncontiguous_median=statistics.median(gains) if gains else None,
        best=max(rows, key=_median_ratio),
        worst=min(rows, key=_median_ratio),
        single=sum(row.ratio is not None and row.ratio.count == 1 for row in rows),
    )


def tally(rows: Iterable[Measured]) -> list[Tally]:
    """Return the tally of the default method, if it was measured, and that of all methods of the extension together."""
    ours = [row for row in rows if not row.native]
    default = [row for row in ours if row.key.strategy == "auto"]
    found = [_tally("auto, the default method", default)]
    if len(default) < len(ours):
        found.append(_tally("every method of the extension", ours))
    return [item for item in found if item is not None]


def _named(row: Measured) -> str:
    assert row.ratio is not None
    spread = f" ({ratio_spread(row.ratio)})" if row.ratio.count > 1 else ""
    return f"{row_title(row)}: {ratio(row.ratio.median)}×{spread}"


def sentences(item: Tally) -> list[str]:
    """Return the tally in plain words."""
    out = [
        f"{item.reached:,} of {item.rows:,} rows: median at least native’s speed (ratio ≥ 1.00).",
        f"Within the spread (median below native’s speed, but some repetition reached it): {item.within:,} more.",
        f"Slower than native in every repetition: {item.slower:,}.",
    ]
    if item.noncontiguous_median is not None:
        out.append(
            f"Noncontiguous access: median gain {ratio(item.noncontiguous_median)}×; "
            f"the medians of {item.noncontiguous_at_goal:,} of {item.noncontiguous:,} rows reach {GOAL}×."
        )
    out.append(f"Worst row: {_named(item.worst)}.")
    if item.best is not item.worst:
        out.append(f"Best row: {_named(item.best)}.")
    if item.single:
        out.append(f"{item.single:,} rows were measured once: they have no spread, and their one ratio decides.")
    return out
