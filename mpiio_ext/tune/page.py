"""The result of tuning as a page: the decision, every run as a point, and every setting.

Guarantees. Speeds are over the median of the program as it is. A setting is called faster only if the confirmation has
decided so.
"""

from __future__ import annotations

import shlex
import statistics
from collections.abc import Sequence

from mpiio_ext.common import page
from mpiio_ext.common.plots import Axis, Chart, Look, Panel, look
from mpiio_ext.common.units import digits_text
from mpiio_ext.tune.outcome import Record, Result
from mpiio_ext.tune.report import Subject, gain_words, lines, settings_of
from mpiio_ext.tune.setting import BASELINE

_NONE = "No picture: the program as it is did not run to its end."


def _lead(result: Result) -> str:
    if result.verdict == "wins":
        assert result.evidence is not None
        return f"`{result.candidate}` makes the program {gain_words(result.evidence)}."
    title = "Nothing wins" if result.verdict == "nothing" else "No decision"
    return f"{title}: {result.reason}."


def _title(result: Result) -> str:
    count = len({record.setting for record in result.records})
    if result.verdict != "wins" or result.evidence is None:
        return f"No setting of {count} is shown to be faster than the program as it is"
    found = result.evidence
    return (
        f"{digits_text(found.gain)} times as fast, {digits_text(found.low)} to {digits_text(found.high)} at "
        f"{found.confidence:.0%} confidence"
    )


def chart(result: Result) -> Chart | None:
    """Return every run as a point; None if the program without changes has no cost."""
    known = [(record, record.cost) for record in result.records if record.cost]
    base = [cost for record, cost in known if record.setting == BASELINE]
    if not base:
        return None
    middle, best = statistics.median(base), result.candidate
    names = ("the program as it is", "best setting", "other settings")

    def which(record: Record) -> str:
        return names[0] if record.setting == BASELINE else names[1] if record.setting == best else names[2]

    def draw(panel: Panel) -> None:
        panel.rule(1, across=True)
        for number, name in enumerate(names):
            some = [(record.number, middle / cost) for record, cost in known if which(record) == name]
            own = look(number)
            if some:
                x, y = zip(*some, strict=True)
                panel.line(x, y, Look(own.colour, "", own.marker), name, clip=False)
        panel.frame(
            x=Axis(label="run", whole=True), y=Axis(label="speed over the program as it is [×]", low=0, grid=True)
        )

    return Chart(name="tuning", title=_title(result), panels=[[draw]], legend="above")


def _grids(result: Result, subject: Subject) -> Sequence[page.Grid]:
    settings = [
        (str(setting), f"{len(costs):,}", subject.metric.shown(statistics.median(costs)) if costs else "–")
        for setting, costs in settings_of(result)
    ]
    runs = [
        (
            f"{record.number}",
            record.phase,
            str(record.setting),
            record.status + (f": {record.reason}" if record.reason else ""),
            subject.metric.shown(record.cost) if record.cost is not None else "–",
        )
        for record in result.records
    ]
    return (
        page.Grid(columns=("setting", page.Number("runs with a result"), page.Number("median")), rows=settings),
        page.Grid(
            columns=(page.Number("run"), "phase", "setting", "end", page.Number(subject.metric.name)),
            rows=runs,
            folded=True,
        ),
    )


def tuning_page(result: Result, subject: Subject) -> str:
    """Return the page."""
    drawn = chart(result)
    caption = "Each run of the search, the race, and the confirmation, which alone decides. The line is 1."
    figures = [page.drawn(drawn, caption=caption)] if drawn else []
    sections = [
        page.Section(anchor="result", title="Result", sentences=lines(result, subject), figures=figures),
        page.Section(anchor="runs", title="Settings and runs", grids=_grids(result, subject)),
    ]
    return page.document("Tuning", sections, lead=[_lead(result)], none=_NONE, head=shlex.join(subject.command))
