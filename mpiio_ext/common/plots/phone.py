"""A chart for a phone: as wide as that, with words as large as those of the text beside it.

Algorithm. Panels that stood beside each other stand under each other, each as high as before. Words are larger, long
ones are broken or shortened in the middle, and names below an axis are turned where they would not fit. Legends stand
below.
"""

from __future__ import annotations

import dataclasses
import math
import textwrap

from mpiio_ext.common.plots.chart import Axis, Chart, Panel
from mpiio_ext.common.plots.marks import Bars, Mark, Text

#: Width of a phone less the margins of a page, in points of 96 to the inch; and how much larger words are.
WIDTH, SCALE = 336 * 0.75, 1.3
#: Letters of a line across, of a name at the side, and of one in the legend; points that a letter takes.
_ACROSS, _SIDE, _KEY, _LETTER = 28, 14, 34, 6.5
#: Bars that can be told by notes at their ends; inches that turned names take.
_MOST_NOTES, _TURNED = 4, 0.8
#: Names below an axis.
_MOST_NAMES = 16


def shortened(text: str, most: int) -> str:
    """Return a text shortened in its middle: the ends of names tell them apart."""
    return text if len(text) <= most else f"{text[: most // 2 - 1]}…{text[-(most // 2) :]}"


def _broken(text: str, most: int) -> str:
    return "\n".join(textwrap.wrap(text, most)) if len(text) > most else text


def _below(axis: Axis) -> Axis:
    """Return an axis below: few round numbers, or names that are turned where they are long."""
    axis = dataclasses.replace(axis, label=_broken(axis.label, _ACROSS))
    if axis.ticks is None:
        return dataclasses.replace(axis, most=3)
    named = [(place, " ".join(text.split())) for place, text in axis.ticks if text]
    crowded = (1 + max((len(text) for _, text in named), default=0)) * _LETTER * len(named) / (WIDTH - 60)
    if crowded < 1 or axis.date:  # of times some are enough
        return dataclasses.replace(axis, ticks=axis.ticks if crowded < 1 else named[:: math.ceil(crowded)], turn=0)
    step = -(-len(named) // _MOST_NAMES)
    return dataclasses.replace(axis, ticks=[(at, shortened(text, 22)) for at, text in named[::step]], turn=50)


def _beside(axis: Axis) -> Axis:
    names = axis.ticks and [(place, shortened(text, _SIDE)) for place, text in axis.ticks]
    return dataclasses.replace(axis, ticks=names, label=_broken(axis.label, 26))


def _mark(mark: Mark) -> Mark:
    if isinstance(mark, Bars) and not mark.across and len(mark.at) > _MOST_NOTES:
        return dataclasses.replace(mark, notes=())
    return dataclasses.replace(mark, size=mark.size * SCALE) if isinstance(mark, Text) else mark


def _panel(panel: Panel, first: Panel, last: Panel) -> Panel:
    """Return a panel that stands alone; where axes were in common, it has the labels of the first and the last."""
    y = panel.y if panel.y.label else dataclasses.replace(panel.y, label=first.y.label)
    x = panel.x if panel.x.label or panel.x.ticks else dataclasses.replace(panel.x, label=last.x.label)
    above = any(isinstance(mark, Text) and mark.inside != "data" and mark.y >= 1 for mark in panel.marks)
    return dataclasses.replace(
        panel,
        marks=[_mark(mark) for mark in panel.marks],
        legend=False,
        x=_below(x),
        y=_beside(y),
        title=_broken(panel.title, _ACROSS) or " " * above,
    )


def phone(chart: Chart) -> Chart:
    """Return a chart as wide as a phone; its name ends in ``-narrow``."""
    heights = chart.heights or [1.0] * len(chart.panels)
    each = [chart.height * height / sum(heights) for height in heights]
    columns = range(max(map(len, chart.panels)))
    found, tall = [], []
    for column in columns:
        for row, height in zip(chart.panels, each, strict=True):
            one = row[column] if column < len(row) else None
            if one is not None:
                shared = chart.share
                first = row[0] if shared and row[0] is not None else one
                below = chart.panels[-1][column] if shared else one
                panel = _panel(one, first, below or one)
                found.append([panel])
                tall.append(max(height, 1.2) + 0.35 + (_TURNED if panel.x.turn else 0))
    legends = chart.legend or any(panel.legend for row in chart.panels for panel in row if panel)
    keys = [(shortened(name, _KEY), look, width) for name, look, width in chart.keys]
    return dataclasses.replace(
        chart,
        name=f"{chart.name}-narrow",
        panels=found,
        width=WIDTH / 72,
        height=sum(tall) + 0.5 * bool(legends),
        heights=tall,
        widths=(),
        margins=None,
        gaps=(0, 0),
        legend="below" if legends else "",
        keys=keys,
        columns=1,
        heading="",
        share=False,
        scale=SCALE,
    )
