"""Charts: one definition (`chart`), one theme (`theme`), one drawing (`draw`), and files (`files`).

Their numbers are CSV (`data`), and each has a form for a phone (`phone`).

Importing this package imports no library of drawing.
"""

from mpiio_ext.common.plots.chart import Axis as Axis
from mpiio_ext.common.plots.chart import Chart as Chart
from mpiio_ext.common.plots.chart import Panel as Panel
from mpiio_ext.common.plots.chart import corners as corners
from mpiio_ext.common.plots.chart import cumulative as cumulative
from mpiio_ext.common.plots.data import csv as csv
from mpiio_ext.common.plots.files import png as png
from mpiio_ext.common.plots.files import save as save
from mpiio_ext.common.plots.files import svg as svg
from mpiio_ext.common.plots.files import svg_file as svg_file
from mpiio_ext.common.plots.marks import Area as Area
from mpiio_ext.common.plots.marks import Bars as Bars
from mpiio_ext.common.plots.marks import Boxes as Boxes
from mpiio_ext.common.plots.marks import Line as Line
from mpiio_ext.common.plots.marks import Mark as Mark
from mpiio_ext.common.plots.marks import Rule as Rule
from mpiio_ext.common.plots.marks import Segments as Segments
from mpiio_ext.common.plots.marks import Spans as Spans
from mpiio_ext.common.plots.marks import Text as Text
from mpiio_ext.common.plots.marks import Tiles as Tiles
from mpiio_ext.common.plots.phone import phone as phone
from mpiio_ext.common.plots.theme import DARK as DARK
from mpiio_ext.common.plots.theme import LIGHT as LIGHT
from mpiio_ext.common.plots.theme import SERIES as SERIES
from mpiio_ext.common.plots.theme import THEMES as THEMES
from mpiio_ext.common.plots.theme import Look as Look
from mpiio_ext.common.plots.theme import Theme as Theme
from mpiio_ext.common.plots.theme import look as look
