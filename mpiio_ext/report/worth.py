"""How the page begins: a sentence, and a dot for each row at its ratio to native.

Problem. A reader wants to know first whether the extension is worth it on this machine, and for what.

Algorithm. Of results of the bench the sentence is the verdict of each kind of access, and each row is a dot at its
ratio to native. Results of ``bench compare`` have no number of repetitions; for them it is the range of the ratios to
the best native peer, without a verdict.

Guarantees. The data of the picture are the ratios that are drawn.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from mpiio_ext.common import page
from mpiio_ext.common.page import Figure
from mpiio_ext.common.plots import Axis, Chart, Lettering, Look, Panel
from mpiio_ext.common.results import Measured
from mpiio_ext.common.units import digits_text
from mpiio_ext.report import verdict, words
from mpiio_ext.report.load import PeerSet, ResultSet

#: Judgment of rows -> symbol, and class of the style sheet, if it has one.
SYMBOLS = {"faster": "▲", "level": "≈", "within noise": "≈", "slower": "▼", "not judged": "·", "": ""}
CLASSES = {"faster": "up", "slower": "dn"}
_COLUMNS = ("kind of access", "row", "bandwidth over native [×]", "smallest", "largest", "repetitions", "judgment")
_LOOKS = {"faster": Look("series0", "", "o"), "slower": Look("series1", "", "o", hollow=True)}
_OTHER = Look("neutral", "", "o")
_CAPTION = (
    "Each row is a dot: filled if it is faster, a ring if slower, grey if noise or too few repetitions forbid a "
    "judgement. The line is at 1; the numbers beside the names are medians of the judged rows."
)
_UNJUDGED = "A dot for each row. The line is 1; beside the names stand the medians of the rows."

#: Rows of a line of dots: ratio, and judgment.
_Dots = Sequence[tuple[float, str]]


def _finding(rows: Sequence[Measured]) -> str:
    """Return the message of the picture: how many rows are faster and slower."""
    found = [verdict.judge(row.ratio) for row in rows]
    faster, slower, unjudged = (found.count(word) for word in ("faster", "slower", "not judged"))
    rest = f", {unjudged:,} measured too few times to judge" if unjudged else ""
    return f"{faster:,} of {len(rows):,} rows faster than native, {slower:,} slower{rest}"


def _strip(lines: Mapping[str, _Dots], label: str, **rest: Any) -> Chart:
    """Return a line of dots for each kind of access, below its name."""
    ratios = [ratio for dots in lines.values() for ratio, _ in dots]
    low, high = min(*ratios, 1 / 1.1) / 1.05, max(*ratios, 1.1) * 1.05

    def draw(panel: Panel) -> None:
        panel.rule(1)
        for at, (name, dots) in enumerate(lines.items()):
            for judgment in dict.fromkeys(judgment for _, judgment in dots):
                own = [ratio for ratio, one in dots if one == judgment]
                panel.line(own, [at] * len(own), _LOOKS.get(judgment, _OTHER), clip=False)
            panel.text(low, at - 0.2, name, Lettering(colour="ink", boxed=True), align=("left", "bottom"))
        x = Axis(label=f"{label} [×], logarithmic", scale="log", low=low, high=high, form=digits_text)
        panel.frame(x, Axis(low=len(lines) - 0.6, high=-0.9, ticks=(), line=False))

    return Chart(panels=[[draw]], height=0.7 + 0.4 * len(lines), **rest)


def of_results(item: ResultSet, name: str) -> tuple[str, Figure | None]:
    """Return the lead of the page of results, a sentence and a chart of this name; None if there are no ratios."""
    found = verdict.kinds(item.rows)
    lines: dict[str, _Dots] = {}
    rows = []
    for kind in found:
        known = [(row, row.ratio, verdict.judge(row.ratio)) for row in kind.rows if row.ratio is not None]
        gain = f"{SYMBOLS[kind.judgment]} {words.ratio(kind.rounds.median)}×" if kind.rounds else words.DASH
        lines[f"{kind.title}: {gain}"] = [(ratio.median, judgment) for _, ratio, judgment in known]
        for row, ratio, judgment in known:
            ends = (f"{value:.10g}" for value in (ratio.median, ratio.low, ratio.high))
            rows.append((kind.title, words.case_title(row.last.label, row.key), *ends, ratio.count, judgment))
    sentence = verdict.worth(found) or "Worth it on this machine: not known, for nothing was measured beside native."
    if not rows:
        return sentence, None
    title = _finding([row for kind in found for row in kind.rows])
    label = "bandwidth over native’s, median of the repetitions"
    return sentence, page.drawn(_strip(lines, label, name=name, title=title, table=(_COLUMNS, rows)), caption=_CAPTION)


def of_peers(item: PeerSet, name: str) -> tuple[str, Figure | None]:
    """Return the beginning of the page of ``bench compare``."""
    found = [
        (result.op, result.pattern, result.ratio_native)
        for result in item.results
        if result.ratio_native is not None and result.ratio_native > 0
    ]
    if not found:
        return f"{len(item.peers)} ways of MPI-IO were measured, none of them native.", None
    ratios = [ratio for _, _, ratio in found]
    lines: dict[str, _Dots] = {}
    for operation in dict.fromkeys(operation for operation, _, _ in found):
        some = [ratio for one, _, ratio in found if one == operation]
        lines[f"{operation}: {words.ratio(statistics.median(some))}×"] = [(ratio, "") for ratio in some]
    number = f"{len(found)} row{'s' * (len(found) > 1)}"
    span = words.ratio(ratios[0])
    if len(found) > 1:
        span = f"{words.ratio(min(ratios))} to {words.ratio(max(ratios))}"
    sentence = f"This library has {span} times the bandwidth of the best native MPI-IO here, in {number}"
    sentence += f"; {words.ratio(statistics.median(ratios))} in the median." if len(found) > 1 else "."
    columns = ("operation", "pattern", "bandwidth over the best native peer [×]")
    table = columns, [(operation, pattern, f"{ratio:.10g}") for operation, pattern, ratio in found]
    title = f"{sum(ratio > 1 for ratio in ratios)} of {number} above 1, by their medians"
    chart = _strip(lines, "bandwidth over the best native peer’s", name=name, title=title, table=table)
    return sentence, page.drawn(chart, caption=_UNJUDGED)
