"""The verdict of all rows together, by rules that the page states.

A row of the extension is compared with ``native`` inside each repetition, so a slow minute of the machine hits both.
Its ratios say something when there are at least `ENOUGH` of them, all lie on one side of 1, and their median is farther
from 1 than the smallest is from the largest, both as factors: 1.3, 1.4 and 1.5 are a gain, 1.05, 1.1 and 1.9 are noise.
All ratios are taken to two decimals, as they are shown, so that counts and symbols agree with the figures beside them.

A kind of access (noncontiguous or contiguous, write or read) has one ratio in each repetition, the median of its judged
rows: their noise is smaller than that of each. These ratios are judged as a row's are. If there was no difference, n
repetitions would all lie on one given side of 1 with a probability of 2⁻ⁿ: the confidence is at least 1 − 2⁻ⁿ.
"""

from __future__ import annotations

import math
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Rows with a ratio, and their common verdict.

    Attributes
    ----------
    title : a kind of access, "noncontiguous writes", or which methods
    rows : judged or not
    """

    title: str
    rows: tuple[Measured, ...]

    def count(self, judgment: str) -> int:
        """Return how many rows are "faster", "level", "slower" or "not judged"."""
        return sum(judge(row.ratio) == judgment for row in self.rows)

    @property
    def judged(self) -> list[Measured]:
        """Return the rows that are judged."""
        return [row for row in self.rows if judge(row.ratio) != _NOT_JUDGED]

    @property
    def rounds(self) -> Spread | None:
        """Return the median ratio of the judged rows over the repetitions that all of them have; None without."""
        rows = self.judged
        common = set(rows[0].ratios).intersection(*(row.ratios for row in rows)) if rows else ()
        return Spread.of([statistics.median(row.ratios[one] for row in rows) for one in common]) if common else None

    @property
    def judgment(self) -> str:
        """Return the verdict of the judged rows together; "not judged" without any."""
        return judge(self.rounds) or _NOT_JUDGED

    @property
    def words(self) -> str:
        """Return the title with the verdict of the rows."""
        if self.rounds is None:
            return self.title
        counts = {
            word: self.count(judgment) for word, judgment in (("slower", "slower"), ("within the noise", "level"))
        }
        others = "".join(f", {count:,} {word}" for word, count in counts.items() if count)
        faster = f"{self.count('faster'):,} of {len(self.judged):,} rows faster"
        return f"{self.title} ({ratio(self.rounds.median)}×, {ratio_spread(self.rounds)}: {faster}{others})"


def _median_ratio(row: Measured) -> float:
    assert row.ratio is not None
    return row.ratio.median


# ---- kinds of access -------------------------------------------------------------------------------------------------


def _kind_of(row: Measured) -> str:
    operations = {"write": "writes", "read": "reads"}.get(row.key.operation, "writes and reads together")
    noncontiguous = row.last.noncontiguous
    return operations if noncontiguous is None else f"{'non' if noncontiguous else ''}contiguous {operations}"


def _of_default_method(rows: Iterable[Measured]) -> list[Measured]:
    ours = [row for row in rows if not row.native and row.ratio is not None]
    return [row for row in ours if row.key.strategy == "auto"] or [
        row for row in ours if row.key.strategy == ours[0].key.strategy
    ]


def kinds(rows: Iterable[Measured]) -> list[Group]:
    """Return the kinds of access of the default method, or of the first one that was measured; the best first."""
    groups: dict[str, list[Measured]] = {}
    for row in _of_default_method(rows):
        groups.setdefault(_kind_of(row), []).append(row)
    found = [Group(title=title, rows=tuple(group)) for title, group in groups.items()]
    return sorted(found, key=lambda kind: -(kind.rounds.median if kind.rounds else 0))


def worth(found: Sequence[Group]) -> str:
    """Return in one sentence the kinds of access for which the library pays; "" if nothing was compared."""
    if not found:
        return ""
    named = {
        word: " and ".join(kind.words for kind in found if kind.judgment == word)
        for word in ("faster", "slower", "level", _NOT_JUDGED)
    }
    rounds = [kind.rounds for kind in found if kind.rounds is not None]
    if not rounds:
        return f"Worth it on this machine: not known, for no row was measured {ENOUGH} times."
    parts = [f"yes, for {named['faster']}"] if named["faster"] else ["no"] if named["slower"] else []
    parts += [f"not for {named['slower']}, which it slows down"] if named["slower"] else []
    parts += [f"no clear answer for {named['level']}"] if named["level"] else []
    parts += [f"measured too few times: {named[_NOT_JUDGED]}"] if named[_NOT_JUDGED] else []
    counts = [row.ratio.count for kind in found for row in kind.judged if row.ratio]
    # A median far from 1 within noise as large is no sign that there is no difference: no part claims that.
    times = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    least = min(one.count for one in rounds)
    sure = f" Confidence of each yes and not: at least {100 - math.ceil(100 / 2**least)} %."
    return (
        f"Worth it on this machine: {'; '.join(parts)}. Times native’s speed: the median row, and its range over the "
        f"repetitions. {len(counts):,} of {sum(len(kind.rows) for kind in found):,} rows were measured {times} times."
        f"{sure if named['faster'] or named['slower'] else ''}"
    )


# ---- all rows --------------------------------------------------------------------------------------------------------


def tally(rows: Iterable[Measured]) -> list[Group]:
    """Return the rows of the default method, if it was measured, and those of all methods of the extension together."""
    ours = [row for row in rows if not row.native]
    default = [row for row in ours if row.key.strategy == "auto"]
    named = {"auto, the default method": default}
    if len(default) < len(ours):
        named["every method of the extension"] = ours
    found = [
        Group(title=title, rows=tuple(row for row in some if row.ratio is not None)) for title, some in named.items()
    ]
    return [group for group in found if group.rows]


def _named(row: Measured) -> str:
    assert row.ratio is not None
    return f"{row_title(row)}: {ratio(row.ratio.median)}× ({ratio_spread(row.ratio)})"


def sentences(group: Group) -> list[str]:
    """Return the verdict of all rows in plain words."""
    faster, level, slower, unjudged = map(group.count, ("faster", "level", "slower", _NOT_JUDGED))
    out = [
        f"{faster:,} of {len(group.rows):,} rows are faster than native beyond their noise, {slower:,} slower; "
        f"of {level:,} the noise is larger than the difference."
    ]
    if unjudged:
        out.append(f"{unjudged:,} rows were measured fewer than {ENOUGH} times, and are not judged.")
    gains = [_median_ratio(row) for row in group.judged if row.last.noncontiguous]
    if gains:
        out.append(
            f"Noncontiguous access: median gain {ratio(statistics.median(gains))}×; the medians of "
            f"{sum(_shown(gain) >= GOAL for gain in gains):,} of {len(gains):,} judged rows reach {GOAL}×."
        )
    if group.judged:
        worst, best = min(group.judged, key=_median_ratio), max(group.judged, key=_median_ratio)
        out.append(f"Worst row: {_named(worst)}.")
        out += [f"Best row: {_named(best)}."] if best is not worst else []
    return out
