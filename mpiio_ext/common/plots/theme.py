"""Colours of charts by what they mean, on light and on dark ground, and marks that separate series without colour.

Problem. A page follows the reader's choice of light or dark, and so shall the charts in it, also those that are files
of their own. A program other than a browser, which knows no such choice, must still show an SVG.

Algorithm. Charts are drawn in the light colours. Where the reader prefers dark, a style sheet in the page, or in the
file, replaces each light colour by the dark one of the same meaning: it selects elements by the colour they have.
A PNG has one of the two, drawn in its colours.

Guarantees. Each colour of the light theme occurs in it once, so that the replacement is unambiguous. Every two colours
that stand in one chart differ by 12 and more (CIEDE2000) for people with all cones and for those who lack one kind.
Each has a contrast of 3 and more to its ground. The first two are those of M. Okabe and K. Ito, "Color Universal
Design" (2008). A word, a line style, a mark or a hatch always repeats the meaning of a colour.
"""

from __future__ import annotations

import dataclasses

Dash = str | tuple[int, tuple[float, ...]]
#: Line styles and marks of series, in their order. Dots stand for what is not known, and are of no series.
_DASHES: tuple[Dash, ...] = (
    "-",
    "--",
    "-.",
    (0, (9, 2)),
    (0, (2, 1)),
    (0, (6, 1, 1, 1, 1, 1)),
    (0, (4, 4)),
    (0, (1, 1)),
)
_MARKS, _HATCHES = "osv^DPX*", ("", "///", "\\\\\\", "xx", "--", "||", "++", "..")
#: Series that look different from each other.
SERIES = 8


@dataclasses.dataclass(frozen=True, slots=True)
class Look:
    """The look of a mark.

    Attributes
    ----------
    colour : str
        What it means: a field of `Theme` such as ``ink``, or ``series0``, ``quarter3``; or a colour, such as ``#000``.
    dash : str or tuple
        Line style as Matplotlib names it; ``""`` is no line.
    marker, hatch : marks of points and hatch of areas as Matplotlib names them; "" is none.
    size : points of a marker.
    hollow : a marker is only an outline.
    edge : colour around a marker; "": its own.
    """

    colour: str = "ink"
    dash: Dash = "-"
    marker: str = ""
    hatch: str = ""
    _: dataclasses.KW_ONLY
    size: float = 4.5
    hollow: bool = False
    edge: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Lettering:
    """The look of words on a panel.

    Attributes
    ----------
    size : points.
    colour : as of a `Look`.
    bold : they are heavy.
    turn : degrees by which they are turned.
    boxed : they stand on a light ground.
    """

    size: float = 8
    colour: str = "soft"
    bold: bool = False
    turn: float = 0
    boxed: bool = False


def look(number: int) -> Look:
    """Return the look of the series of a number; `SERIES` consecutive numbers differ by each of the three."""
    at = number % SERIES
    return Look(f"series{at}", _DASHES[at], _MARKS[at], _HATCHES[at])


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """Colours by what they mean.

    Attributes
    ----------
    page, ink, soft, line : ground, text, axes, grid.
    data, average, changed : what was measured, a long average, and marks of changes.
    neutral : what is neither good nor bad.
    low, high : shades behind times of low and of high performance.
    quarter : from the worst to the best.
    series : of series that are compared.
    """

    page: str
    ink: str
    soft: str
    line: str
    data: str
    average: str
    changed: str
    neutral: str
    low: str
    high: str
    quarter: tuple[str, ...]
    series: tuple[str, ...]

    def colours(self) -> list[str]:
        """Return all colours in a fixed order."""
        fields = [getattr(self, field.name) for field in dataclasses.fields(self)]
        return [colour for field in fields for colour in ([field] if isinstance(field, str) else field)]

    def colour(self, name: str) -> str:
        """Return the colour of a meaning; a name that is a colour stands for itself."""
        if name.startswith("#"):
            return name
        group = name.rstrip("0123456789")
        found = getattr(self, group)
        return str(found if group == name else found[int(name[len(group) :])])


LIGHT = Theme(
    page="#ffffff",
    ink="#16191d",
    soft="#555c66",
    line="#d5d9df",
    data="#0072b3",
    average="#2d0a50",
    changed="#c2185b",
    neutral="#6a7078",
    low="#fbe3d3",
    high="#dceefa",
    quarter=("#8f2d00", "#c07830", "#2490d0", "#004a80"),
    series=("#0072b2", "#d55e00", "#69965a", "#872d5a", "#1e96ff", "#4b4b0f", "#878787", "#3c00e1"),
)
DARK = Theme(
    page="#14171a",
    ink="#e8eaed",
    soft="#a8afb8",
    line="#3a4047",
    data="#5ab4ea",
    average="#9a6ab4",
    changed="#ff7a8a",
    neutral="#d0d4da",
    low="#4a2a17",
    high="#17374d",
    quarter=("#e0705a", "#f0d800", "#3c8cb4", "#a8d8f0"),
    series=("#4aa8e0", "#f08a42", "#c3f0c3", "#ffd2ff", "#697896", "#96693c", "#a5a5a5", "#964be1"),
)
THEMES = {"light": LIGHT, "dark": DARK}


def dark_style(scope: str) -> str:
    """Return the style sheet that makes charts of the light theme dark where the reader prefers that.

    Parameters
    ----------
    scope : selector of the elements around, or of, the charts, such as ``.drawing``.
    """
    rules = [
        f'{scope} :is([style*="{kind}: {light}"], [{kind}="{light}"]) {{ {kind}: {dark} !important }}'
        for light, dark in zip(LIGHT.colours(), DARK.colours(), strict=True)
        for kind in ("fill", "stroke")
    ]
    return "@media screen and (prefers-color-scheme: dark) {\n" + "\n".join(rules) + "\n}"
