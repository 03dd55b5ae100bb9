"""Charts: one definition (`chart`), one theme (`theme`), one drawing (`draw`), static and interactive (`files`).

Importing this package imports no library of drawing.
"""

from mpiio_ext.common.plots.chart import (
    Area,
    Axis,
    Bars,
    Boxes,
    Chart,
    Line,
    Mark,
    Panel,
    Rule,
    Segments,
    Spans,
    Text,
    Tiles,
    corners,
    cumulative,
)
from mpiio_ext.common.plots.files import png, save, svg, svg_file
from mpiio_ext.common.plots.theme import DARK, LIGHT, SERIES, THEMES, Look, Theme, look

__all__ = ["DARK", "LIGHT", "SERIES", "THEMES", "Area", "Axis", "Bars", "Boxes", "Chart", "Line", "Look", "Mark",
           "Panel", "Rule", "Segments", "Spans", "Text", "Theme", "Tiles", "corners", "cumulative", "look", "png",
           "save", "svg", "svg_file"]  # fmt: skip
