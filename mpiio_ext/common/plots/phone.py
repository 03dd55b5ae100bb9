"""A chart for a phone: as wide as that, with words as large as those of the text beside it.

Algorithm. Panels that stood beside each other stand under each other, each as high as before. Words are larger, long
ones are broken or shortened in the middle, and names below an axis are turned where they would not fit. Legends stand
below.
"""

from __future__ import annotations

import dataclasses
import textwrap

from mpiio_ext.common.plots.chart import Axis, Chart, Mark, Panel, Text

#: Width of a phone less the margins of a page, in points of 96 to the inch; and how much larger words are.
WIDTH, SCALE = 336 * 0.75, 1.3
#: Letters on a line across, of a name at the side, and of one in the legend; points that a letter takes.
_ACROSS, _SIDE, _KEY, _LETTER = 38, 14, 34, 5.6
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
        return dataclasses.replace(axis, most=min(axis.most or 4, 4))
    named = [(place, " ".join(text.split())) for place, text in axis.ticks if text]
    if sum(len(text) + 2 for _, text in named) * _LETTER < WIDTH - 60:
        return dataclasses.replace(axis, turn=0)
    step = -(-len(named) // _MOST_NAMES)
    return dataclasses.replace(axis, ticks=[(at, shortened(text, 22)) for at, text in named[::step]], turn=50)


def _beside(axis: Axis) -> Axis:
    names = axis.ticks and [(place, shortened(text, _SIDE)) for place, text in axis.ticks]
    return dataclasses.replace(axis, ticks=names, label=_broken(axis.label, 26))


def _mark(mark: Mark) -> Mark:
    return dataclasses.replace(mark, size=mark.size * SCALE) if isinstance(mark, Text) else mark


def _panel(panel: Panel, first: Panel, last: Panel) -> Panel:
    """Return a panel that stands alone; where axes were in common, it has the labels of the first and the last."""
    y = panel.y if panel.y.label else dataclasses.replace(panel.y, label=first.y.label)
    x = panel.x if panel.x.label or panel.x.ticks else dataclasses.replace(panel.x, label=last.x.label)
    return dataclasses.replace(panel, marks=[_mark(mark) for mark in panel.marks], legend=False, x=_below(x),
                               y=_beside(y), title=_broken(panel.title, _ACROSS))  # fmt: skip


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
                found.append([_panel(one, first, below or one)])
                tall.append(max(height, 1.2) + 0.35)
    legends = chart.legend or any(panel.legend for row in chart.panels for panel in row if panel)
    keys = [(shortened(name, _KEY), look, width) for name, look, width in chart.keys]
    return dataclasses.replace(
        chart, name=f"{chart.name}-narrow", panels=found, width=WIDTH / 72, height=sum(tall) + 0.5 * bool(legends),
        heights=tall, widths=(), margins=None, gaps=(0, 0), legend="below" if legends else "", keys=keys, columns=1,
        heading="", share=False, scale=SCALE)  # fmt: skip
