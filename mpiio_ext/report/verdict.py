"""What all rows together say, by rules that the page states.

A row of the extension is compared with ``native`` inside each repetition, so a slow minute of the machine hits both.
It is "at least as fast within the spread" when the largest of its ratios reaches 1: in some repetition it was not
slower. It is "faster beyond the spread" when even the smallest exceeds 1. A row that was measured once has no spread
and is judged by its one ratio.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mpiio_ext.report.rows import Measured, Spread
from mpiio_ext.report.words import ratio, ratio_spread, row_title

__all__ = ["GOAL", "Tally", "judge", "sentences", "tally"]

#: Gain that noncontiguous access should reach.
GOAL = 1.3


def judge(spread: Spread | None) -> str:
    """Return "faster", "level" or "slower" than native, or "" when native was not measured."""
    if spread is None:
        return ""
    if spread.low > 1:
        return "faster"
    return "level" if spread.high >= 1 else "slower"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Rows of the extension counted.

    Attributes
    ----------
    title : which methods
    rows : rows with a ratio
    reached, beyond : at least as fast within the spread; faster beyond it
    noncontiguous, noncontiguous_at_goal : rows of noncontiguous access; those whose median gain reaches `GOAL`
    noncontiguous_median : median of their median gains; None without such rows
    best, worst : rows with the largest and the smallest median gain
    single : rows measured once
    """

    title: str
    rows: int
    reached: int
    beyond: int
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
    judged = [judge(row.ratio) for row in rows]
    gains = [_median_ratio(row) for row in rows if row.last.noncontiguous]
    return Tally(
        title=title,
        rows=len(rows),
        reached=sum(word != "slower" for word in judged),
        beyond=judged.count("faster"),
        noncontiguous=len(gains),
        noncontiguous_at_goal=sum(gain >= GOAL for gain in gains),
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
        f"{item.reached:,} of {item.rows:,} rows are at least as fast as native within the spread; "
        f"{item.beyond:,} are faster beyond it."
    ]
    if item.noncontiguous_median is not None:
        out.append(
            f"Noncontiguous access: median gain {ratio(item.noncontiguous_median)}×; "
            f"{item.noncontiguous_at_goal:,} of {item.noncontiguous:,} rows reach {GOAL}×."
        )
    out.append(f"Worst row: {_named(item.worst)}.")
    if item.best is not item.worst:
        out.append(f"Best row: {_named(item.best)}.")
    if item.single:
        out.append(f"{item.single:,} rows were measured once: they have no spread, and their one ratio decides.")
    return out
