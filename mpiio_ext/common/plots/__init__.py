"""Charts: panels that functions draw (`panel`) in a layout (`chart`), one theme (`theme`), and files (`files`).

The whole is a figure of Matplotlib (`draw`), and its numbers are CSV (`data`).

Importing this package imports no library of drawing.
"""

from mpiio_ext.common.plots.chart import SCALE as SCALE
from mpiio_ext.common.plots.chart import WIDTH as WIDTH
from mpiio_ext.common.plots.chart import Axis as Axis
from mpiio_ext.common.plots.chart import Chart as Chart
from mpiio_ext.common.plots.chart import corners as corners
from mpiio_ext.common.plots.chart import cumulative as cumulative
from mpiio_ext.common.plots.chart import phone as phone
from mpiio_ext.common.plots.chart import shortened as shortened
from mpiio_ext.common.plots.files import png as png
from mpiio_ext.common.plots.files import save as save
from mpiio_ext.common.plots.files import svg as svg
from mpiio_ext.common.plots.files import svg_file as svg_file
from mpiio_ext.common.plots.files import with_numbers as with_numbers
from mpiio_ext.common.plots.panel import Bar as Bar
from mpiio_ext.common.plots.panel import Panel as Panel
from mpiio_ext.common.plots.theme import DARK as DARK
from mpiio_ext.common.plots.theme import LIGHT as LIGHT
from mpiio_ext.common.plots.theme import SERIES as SERIES
from mpiio_ext.common.plots.theme import THEMES as THEMES
from mpiio_ext.common.plots.theme import Lettering as Lettering
from mpiio_ext.common.plots.theme import Look as Look
from mpiio_ext.common.plots.theme import Theme as Theme
from mpiio_ext.common.plots.theme import look as look
