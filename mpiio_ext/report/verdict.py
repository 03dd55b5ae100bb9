"""What all rows together say, by rules that the page states.

A row of the extension is compared with ``native`` inside each repetition, so a slow minute of the machine hits both.
Its ratios say something when there are at least `ENOUGH` of them, all lie on one side of 1, and their median is farther
from 1 than the smallest is from the largest, both as factors: 1.3, 1.4 and 1.5 are a gain, 1.05, 1.1 and 1.9 are noise.
All ratios are taken to two decimals, as they are shown, so that counts and symbols agree with the figures beside them.

A kind of access (noncontiguous or contiguous, write or read) is worth it when more than half of its judged rows are
faster, and not when more than half are slower; in between there is no clear answer.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mpiio_ext.common.results import ENOUGH, Measured, Spread
from mpiio_ext.report.words import ratio, ratio_spread, row_title

#: Gain that noncontiguous access should reach.
GOAL = 1.3
_NOT_JUDGED = "not judged"


def _shown(value: float) -> float:
    """Return a ratio as the page shows it, to two decimals."""
    return round(value, 2)


def judge(spread: Spread | None) -> str:
    """Return how a row compares with native over its repetitions, or "" when native was not measured.

    Returns
    -------
    str
        "faster", "slower", "level" (within the noise), or "not judged": too few repetitions.
    """
    if spread is None:
        return ""
    if spread.count < ENOUGH:
        return _NOT_JUDGED
    low, median, high = _shown(spread.low), _shown(spread.median), _shown(spread.high)
    if low > 1 and median * low > high:
        return "faster"
    return "slower" if high < 1 and low > median * high else "level"


# ---- kinds of access -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of access.

    Attributes
    ----------
    title : "noncontiguous writes"
    rows : of the default method, judged or not
    judged, faster, slower : how many of them
    gain : median of the judged rows' median ratios; None without
    """

    title: str
    rows: tuple[Measured, ...]
    judged: int
    faster: int
    slower: int
    gain: float | None

    @property
    def judgment(self) -> str:
        """Return "faster", "slower", "level" or "not judged"."""
        if not self.judged:
            return _NOT_JUDGED
        if 2 * self.faster > self.judged:
            return "faster"
        return "slower" if 2 * self.slower > self.judged else "level"

    @property
    def words(self) -> str:
        """Return the kind with what was seen of it."""
        if self.gain is None:
            return self.title
        slower = f", {self.slower:,} slower" if self.slower else ""
        return f"{self.title} ({ratio(self.gain)}×: {self.faster:,} of {self.judged:,} rows faster{slower})"


def _kind_of(row: Measured) -> str:
    operations = {"write": "writes", "read": "reads"}.get(row.key.operation, "writes and reads together")
    noncontiguous = row.last.noncontiguous
    return operations if noncontiguous is None else f"{'non' if noncontiguous else ''}contiguous {operations}"


def _of_default_method(rows: Iterable[Measured]) -> list[Measured]:
    ours = [row for row in rows if not row.native and row.ratio is not None]
    return [row for row in ours if row.key.strategy == "auto"] or [
        row for row in ours if row.key.strategy == ours[0].key.strategy
    ]


def kinds(rows: Iterable[Measured]) -> list[Kind]:
    """Return the kinds of access of the default method, or of the first one that was measured; the best first."""
    groups: dict[str, list[Measured]] = {}
    for row in _of_default_method(rows):
        groups.setdefault(_kind_of(row), []).append(row)
    found = []
    for title, group in groups.items():
        judgments = [judge(row.ratio) for row in group]
        gains = [_median_ratio(row) for row, word in zip(group, judgments, strict=True) if word != _NOT_JUDGED]
        found.append(
            Kind(
                title=title,
                rows=tuple(group),
                judged=len(gains),
                faster=judgments.count("faster"),
                slower=judgments.count("slower"),
                gain=statistics.median(gains) if gains else None,
            )
        )
    return sorted(found, key=lambda kind: -(kind.gain or 0))


def worth(found: Sequence[Kind]) -> str:
    """Return in one sentence for which kinds of access it is worth it; "" where nothing was compared."""
    if not found:
        return ""
    named = {
        word: " and ".join(kind.words for kind in found if kind.judgment == word)
        for word in ("faster", "slower", "level", _NOT_JUDGED)
    }
    if not any(kind.judged for kind in found):
        return f"Worth it on this machine: not known, for no row was measured {ENOUGH} times."
    parts = [f"yes, for {named['faster']}" if named["faster"] else "no" if named["slower"] else "no difference seen"]
    parts += [f"not for {named['slower']}, which it slows down"] if named["slower"] else []
    parts += [f"no clear answer for {named['level']}"] if named["level"] else []
    parts += [f"measured too few times: {named[_NOT_JUDGED]}"] if named[_NOT_JUDGED] else []
    counts = [row.ratio.count for kind in found for row in kind.rows if row.ratio and row.ratio.count >= ENOUGH]
    times = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    rows = "row" if all(kind.judged == len(kind.rows) for kind in found) else "judged row"
    return f"Worth it on this machine: {'; '.join(parts)}. Times native’s speed, {times} repetitions of each {rows}."


# ---- all rows --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Rows of the extension counted.

    Attributes
    ----------
    title : which methods
    rows : rows with a ratio
    faster, level, slower, unjudged : by `judge`; the four add up to `rows`
    noncontiguous, noncontiguous_at_goal : judged rows of noncontiguous access; those whose median gain reaches `GOAL`
    noncontiguous_median : median of their median gains; None without such rows
    best, worst : judged rows with the largest and the smallest median gain; None without such rows
    """

    title: str
    rows: int
    faster: int
    level: int
    slower: int
    unjudged: int
    noncontiguous: int
    noncontiguous_at_goal: int
    noncontiguous_median: float | None
    best: Measured | None
    worst: Measured | None


def _median_ratio(row: Measured) -> float:
    assert row.ratio is not None
    return row.ratio.median


def _tally(title: str, rows: Sequence[Measured]) -> Tally | None:
    rows = [row for row in rows if row.ratio is not None]
    if not rows:
        return None
    judgments = [judge(row.ratio) for row in rows]
    judged = [row for row, word in zip(rows, judgments, strict=True) if word != _NOT_JUDGED]
    gains = [_median_ratio(row) for row in judged if row.last.noncontiguous]
    return Tally(
        title=title,
        rows=len(rows),
        faster=judgments.count("faster"),
        level=judgments.count("level"),
        slower=judgments.count("slower"),
        unjudged=judgments.count(_NOT_JUDGED),
        noncontiguous=len(gains),
        noncontiguous_at_goal=sum(_shown(gain) >= GOAL for gain in gains),
        noncontiguous_median=statistics.median(gains) if gains else None,
        best=max(judged, key=_median_ratio, default=None),
        worst=min(judged, key=_median_ratio, default=None),
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
    return f"{row_title(row)}: {ratio(row.ratio.median)}× ({ratio_spread(row.ratio)})"


def sentences(item: Tally) -> list[str]:
    """Return the tally in plain words."""
    out = [
        f"{item.faster:,} of {item.rows:,} rows are faster than native beyond their noise, {item.slower:,} slower; "
        f"of {item.level:,} the noise is larger than the difference."
    ]
    if item.unjudged:
        out.append(f"{item.unjudged:,} rows were measured fewer than {ENOUGH} times, and are not judged.")
    if item.noncontiguous_median is not None:
        out.append(
            f"Noncontiguous access: median gain {ratio(item.noncontiguous_median)}×; "
            f"the medians of {item.noncontiguous_at_goal:,} of {item.noncontiguous:,} judged rows reach {GOAL}×."
        )
    if item.worst is not None:
        out.append(f"Worst row: {_named(item.worst)}.")
    if item.best is not None and item.best is not item.worst:
        out.append(f"Best row: {_named(item.best)}.")
    return out
