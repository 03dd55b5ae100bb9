"""Charts: one definition (`chart`), one theme (`theme`), one drawing (`draw`), static and interactive (`files`).

Importing this package imports no library of drawing.
"""

from mpiio_ext.common.plots.chart import (
    Area as Area,
    Axis as Axis,
    Bars as Bars,
    Boxes as Boxes,
    Chart as Chart,
    Line as Line,
    Mark as Mark,
    Panel as Panel,
    Rule as Rule,
    Segments as Segments,
    Spans as Spans,
    Text as Text,
    Tiles as Tiles,
    corners as corners,
    cumulative as cumulative,
)
from mpiio_ext.common.plots.files import png as png, save as save, svg as svg, svg_file as svg_file
from mpiio_ext.common.plots.theme import DARK as DARK, LIGHT as LIGHT, SERIES as SERIES, THEMES as THEMES, Look as Look, Theme as Theme, look as look
