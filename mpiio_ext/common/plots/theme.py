"""Colours of charts by what they mean, on light and on dark ground, and what tells series apart beside them.

Problem. A page follows the reader's choice of light or dark, and so shall the charts in it, also those that are files
of their own. A program other than a browser, which knows no such choice, must still show an SVG.

Algorithm. Charts are drawn in the light colours. Where the reader prefers dark, a style sheet in the page, or in the
file, replaces each light colour by the dark one of the same meaning: it selects elements by the colour they have.
A PNG has one of the two, drawn in its colours.

Guarantees. Each colour of the light theme occurs in it once, so that the replacement is unambiguous. Colours are those
of M. Okabe and K. Ito, "Color Universal Design" (2008), lighter on dark ground. What a colour says, a word, a line
style, a mark or a hatch says too.
"""

from __future__ import annotations

import dataclasses

Dash = str | tuple[int, tuple[float, ...]]
#: Line styles and marks of series, in their order. Dots stand for what is not known, and are of no series.
_DASHES: tuple[Dash, ...] = ("-", "--", "-.", (0, (9, 2)), (0, (2, 1)), (0, (6, 1, 1, 1, 1, 1)), (0, (4, 4)),
                             (0, (1, 1)))  # fmt: skip
_MARKS, _HATCHES = "osv^DPX*", ("", "///", "\\\\\\", "xx", "--", "||", "++", "..")
#: Series that look different from each other.
SERIES = 8


@dataclasses.dataclass(frozen=True, slots=True)
class Look:
    """How a mark looks.

    Attributes
    ----------
    colour : str
        What it means: a field of `Theme` such as ``ink``, or ``series0``, ``quarter3``; or a colour, such as ``#000``.
    dash : str or tuple
        Line style as Matplotlib names it; ``""`` is no line.
    marker, hatch : marks of points and hatch of areas as Matplotlib names them; "" is none.
    """

    colour: str = "ink"
    dash: Dash = "-"
    marker: str = ""
    hatch: str = ""


def look(number: int) -> Look:
    """Return how the series of a number looks; those of `SERIES` numbers in a row differ by each of the three."""
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
    page="#ffffff", ink="#16191d", soft="#555c66", line="#d5d9df", data="#0072b3", average="#7a4fa3", changed="#b3155c",
    neutral="#5f646b", low="#fbe3d3", high="#dceefa", quarter=("#c44400", "#b97a00", "#2b8fc4", "#00609c"),
    series=("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7b828c", "#f0e442"),
)  # fmt: skip
DARK = Theme(
    page="#14171a", ink="#e8eaed", soft="#a8afb8", line="#3a4047", data="#5ab4ea", average="#c5a3e8", changed="#ff86b8",
    neutral="#c0c5cb", low="#4a2a17", high="#17374d", quarter=("#ff8a4c", "#f0b840", "#7cc6f2", "#a9d8ff"),
    series=("#4aa8e0", "#f08a42", "#2fc497", "#e09cc2", "#8accf2", "#f0b441", "#98a0aa", "#e8dd5a"),
)  # fmt: skip
THEMES = {"light": LIGHT, "dark": DARK}


def dark_style(scope: str) -> str:
    """Return the style sheet that makes charts of the light theme dark where the reader prefers that.

    Parameters
    ----------
    scope : selector of the elements around, or of, the charts, such as ``.drawing``.
    """
    rules = [f'{scope} :is([style*="{kind}: {light}"], [{kind}="{light}"]) {{ {kind}: {dark} !important }}'
             for light, dark in zip(LIGHT.colours(), DARK.colours(), strict=True) for kind in ("fill", "stroke")]
    return "@media screen and (prefers-color-scheme: dark) {\n" + "\n".join(rules) + "\n}"
