"""Line charts of two series as SVG: in a page, or files of their own.

A chart is drawn here, without a plotting library: the page needs to be one file that draws nothing by a program, and
two hundred points a line are few. The first series is a solid line, the second one dashed, so that colour is not needed
to tell them apart. Coordinates have one decimal; a place that is not a number breaks the line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

__all__ = ["Series", "chart", "cumulative", "standalone", "steps"]

WIDTH, HEIGHT = 760, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 26, 12, 44
_LEGEND = 22
_TICKS = 5
_STYLE = """
text { font: 12px system-ui, "Noto Sans", "DejaVu Sans", sans-serif; fill: #333a42; }
.ground { fill: #fff; } .grid { stroke: #d5d9df; fill: none; } .frame { stroke: #555c66; fill: none; }
.a { stroke: #0072b2; } .b { stroke: #d55e00; stroke-dasharray: 6 3; } .a, .b { fill: none; stroke-width: 1.7; }
"""


@dataclass(frozen=True, slots=True)
class Series:
    """One line.

    Attributes
    ----------
    name : in the legend.
    x, y : places, in the units of the axes; a y that is not a number breaks the line.
    """

    name: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]


def steps(name: str, edges: NDArray[np.float64], values: NDArray[np.float64]) -> Series:
    """Return a line that is level in each bin; there is an edge more than values."""
    return Series(name, np.repeat(edges, 2)[1:-1], np.repeat(values, 2))


def cumulative(name: str, values: NDArray[np.float64]) -> Series:
    """Return the cumulative distribution of samples as steps from 0 to 1."""
    known, counts = np.unique(values, return_counts=True)
    if not known.size:
        return Series(name, np.zeros(0), np.zeros(0))
    shares = np.concatenate([[0.0], np.cumsum(counts) / counts.sum()])
    return Series(name, np.repeat(known, 2), np.repeat(shares, 2)[1:-1])


def _ticks(most: float) -> list[float]:
    """Return round values from 0 on, the last one not below `most`."""
    if not most > 0:
        return [0.0, 1.0]
    rough = most / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((factor * power for factor in (1, 2, 2.5, 5) if factor * power >= rough * (1 - 1e-9)), 10 * power)
    return [step * k for k in range(math.ceil(most / step - 1e-9) + 1)]


def _label(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) and abs(value) < 1e6 else f"{value:.4g}"


def _line(series: Series, x_end: float, y_end: float) -> str:
    """Return the data of an SVG path; a point at the same place as the one before, to one decimal, is left out."""
    words: list[str] = []
    before = ""
    for x, y in zip(series.x.tolist(), series.y.tolist(), strict=True):
        if math.isnan(y):
            before = ""
            continue
        across = _LEFT + (WIDTH - _LEFT - _RIGHT) * x / x_end
        down = HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * y / y_end
        place = f"{across:.1f} {down:.1f}"
        if place != before:
            words.append(f"{'L' if before else 'M'}{place}")
        before = place
    return "".join(words)


def _axes(x_ticks: Sequence[float], y_ticks: Sequence[float], x_label: str, y_label: str) -> list[str]:
    right, bottom = WIDTH - _RIGHT, HEIGHT - _BOTTOM
    parts = []
    for value in y_ticks:
        down = bottom - (bottom - _TOP) * value / y_ticks[-1]
        parts.append(f'<path class="grid" d="M{_LEFT} {down:.1f}H{right}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{down + 4:.1f}" text-anchor="end">{_label(value)}</text>')
    for value in x_ticks:
        across = _LEFT + (right - _LEFT) * value / x_ticks[-1]
        parts.append(f'<text x="{across:.1f}" y="{bottom + 17}" text-anchor="middle">{_label(value)}</text>')
    parts.append(f'<path class="frame" d="M{_LEFT} {_TOP}V{bottom}H{right}"/>')
    middle = (_LEFT + right) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x_label)}</text>')
    half = (_TOP + bottom) / 2
    parts.append(f'<text transform="translate(13 {half}) rotate(-90)" text-anchor="middle">{escape(y_label)}</text>')
    return parts


def chart(series: Sequence[Series], *, x_label: str, y_label: str, y_most: float | None = None) -> Markup:
    """Return an SVG element with at most two lines.

    Parameters
    ----------
    series : lines; the first is drawn last, over the other.
    x_label, y_label : what the axes are, with units. Both begin at 0.
    y_most : where the y axis ends; None: behind the largest value.
    """
    known = [one.y[~np.isnan(one.y)] for one in series]
    x_ticks = _ticks(max((float(one.x.max(initial=0)) for one in series), default=0))
    largest = max((float(values.max(initial=0)) for values in known), default=0)
    y_ticks = _ticks(largest if y_most is None else y_most)
    parts = [f'<svg class="chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
             f'aria-label="{escape(y_label)} against {escape(x_label)}">']  # fmt: skip
    parts += _axes(x_ticks, y_ticks, x_label, y_label)
    for style, one in list(zip("ab", series, strict=False))[::-1]:
        line = _line(one, x_ticks[-1], y_ticks[-1])
        parts.append(f'<path class="{style}" d="{line}"><title>{escape(one.name)}</title></path>' if line else "")
    return Markup("".join([*parts, "</svg>"]))


def standalone(drawing: Markup, names: Sequence[str]) -> str:
    """Return a chart as a file of its own, with its style, a white ground and a legend above it."""
    legend, across = [], _LEFT
    for style, name in zip("ab", names, strict=False):
        words = f'<text x="{across + 36}" y="-4">{escape(name)}</text>'
        legend.append(f'<path class="{style}" d="M{across} -8h30"/>{words}')
        across += WIDTH // 4
    head, _, rest = str(drawing).partition(">")
    head = head.replace(f'viewBox="0 0 {WIDTH} {HEIGHT}"', f'viewBox="0 -{_LEGEND} {WIDTH} {HEIGHT + _LEGEND}"')
    ground = f'<path class="ground" d="M0 -{_LEGEND}H{WIDTH}V{HEIGHT}H0z"/>'
    body = rest.removesuffix("</svg>")
    return f"{head}>\n<style>{_STYLE}</style>\n{ground}{body}{''.join(legend)}</svg>\n"
