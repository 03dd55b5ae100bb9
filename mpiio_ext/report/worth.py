"""How the page begins: a sentence, and a strip of dots for each kind of access.

Problem. A reader wants to know first whether the extension is worth it on this machine, and for what.

Algorithm. Of results of the bench the sentence is the verdict of each kind of access, and each row is a dot at its
ratio to native. Of ``bench compare``, which does not say how often it has measured, it is the range of the ratios to
the best native peer, without a verdict.

Guarantees. The data of the strip are the ratios that are drawn.
"""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mpiio_ext.common.results import Measured
from mpiio_ext.report import verdict, words
from mpiio_ext.report.charts import LogScale
from mpiio_ext.report.load import PeerSet, ResultSet

#: Judgment of rows -> symbol, and class of the style sheet.
SYMBOLS = {"faster": "▲", "level": "≈", "within noise": "≈", "slower": "▼", "not judged": "·", "": ""}
CLASSES = {"faster": "up", "level": "eq", "within noise": "eq", "slower": "dn", "not judged": "no", "": "no"}
_COLUMNS = ("kind of access", "row", "bandwidth over native [×]", "smallest", "largest", "repetitions", "judgment")


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The first sentence of a set, and its picture.

    Attributes
    ----------
    name : of the set, where there are several.
    sentence, title : what is said, and what is seen in the picture.
    lines : title, style and gain of each kind of access, and its dots: place, style and words of each row.
    ticks : places and words of the axis below.
    label : of the axis, with its unit; `one`: where 1 is on it.
    data : the ratios as CSV.
    judged : whether the rows are.
    """

    name: str
    sentence: str
    title: str
    lines: list[tuple[str, str, str, list[tuple[float, str, str]]]]
    ticks: list[tuple[float, str]]
    label: str
    one: float
    data: str
    judged: bool = True


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(columns)
    lines.writerows(rows)
    return out.getvalue()


def _finding(rows: Sequence[Measured]) -> str:
    """Return what the picture shows: how many rows are faster and slower."""
    found = [verdict.judge(row.ratio) for row in rows]
    faster, slower, unjudged = (found.count(word) for word in ("faster", "slower", "not judged"))
    rest = f", {unjudged:,} measured too few times to say" if unjudged else ""
    return f"{faster:,} of {len(rows):,} rows faster than native, {slower:,} slower{rest}"


def ticks(scale: LogScale) -> list[tuple[float, str]]:
    """Return places and words of the ticks of a scale."""
    return [(scale.at(value), f"{value:g}") for value in scale.ticks()]


def of_results(item: ResultSet, scale: LogScale, *, several: bool) -> Opening:
    """Return how the page of results begins."""
    found = verdict.kinds(item.rows)
    lines, rows = [], []
    for kind in found:
        dots = []
        for row in kind.rows:
            if row.ratio is None:
                continue
            title, judgment = words.case_title(row.last.label, row.key), verdict.judge(row.ratio)
            spread = f" ({words.ratio_spread(row.ratio)})" if row.ratio.count > 1 else ""
            dots.append(
                (scale.at(row.ratio.median), CLASSES[judgment], f"{title}: {words.ratio(row.ratio.median)}×{spread}")
            )
            ends = (f"{value:.10g}" for value in (row.ratio.median, row.ratio.low, row.ratio.high))
            rows.append((kind.title, title, *ends, row.ratio.count, judgment))
        gain = f"{SYMBOLS[kind.judgment]} {words.ratio(kind.gain)}×" if kind.gain is not None else words.DASH
        lines.append((kind.title, CLASSES[kind.judgment], gain, dots))
    sentence = verdict.worth(found) or "Worth it on this machine: not known, for nothing was measured beside native."
    return Opening(
        name=item.name if several else "",
        sentence=sentence,
        lines=lines,
        ticks=ticks(scale),
        one=scale.at(1),
        title=_finding([row for kind in found for row in kind.rows]),
        data=_table(_COLUMNS, rows),
        label="bandwidth over native’s, median of the repetitions [×], logarithmic",
    )


def of_peers(item: PeerSet, *, several: bool) -> Opening:
    """Return how the page of ``bench compare`` begins."""
    found = [
        (result.operation, result.pattern, result.ratio_native)
        for result in item.results
        if result.ratio_native is not None and result.ratio_native > 0
    ]
    name = item.name if several else ""
    label = "bandwidth over the best native peer’s [×], logarithmic"
    if not found:
        return Opening(
            name=name,
            sentence=f"{len(item.peers)} ways of MPI-IO were measured, none of them native.",
            title="",
            lines=[],
            ticks=[],
            one=0,
            label=label,
            data="",
            judged=False,
        )
    ratios = [ratio for _, _, ratio in found]
    ends = min(*ratios, 1.0) / 1.05, max(*ratios, 1.0) * 1.05
    scale, lines = LogScale(*ends), []
    for operation in dict.fromkeys(operation for operation, _, _ in found):
        some = [(pattern, ratio) for one, pattern, ratio in found if one == operation]
        dots = [(scale.at(ratio), "no", f"{pattern} {operation}: {words.ratio(ratio)}×") for pattern, ratio in some]
        lines.append((operation, "no", f"{words.ratio(statistics.median(ratio for _, ratio in some))}×", dots))
    number = f"{len(found)} row{'s' * (len(found) > 1)}"
    span = words.ratio(ratios[0])
    if len(found) > 1:
        span = f"{words.ratio(min(ratios))} to {words.ratio(max(ratios))}"
    sentence = f"This library has {span} times the bandwidth of the best native MPI-IO here, in {number}"
    sentence += f"; {words.ratio(statistics.median(ratios))} in the median." if len(found) > 1 else "."
    return Opening(
        name=name,
        sentence=sentence,
        lines=lines,
        ticks=ticks(scale),
        one=scale.at(1),
        label=label,
        judged=False,
        title=f"{sum(ratio > 1 for ratio in ratios)} of {number} above 1, by their medians",
        data=_table(
            ("operation", "pattern", "bandwidth over the best native peer [×]"),
            ((operation, pattern, f"{ratio:.10g}") for operation, pattern, ratio in found),
        ),
    )
