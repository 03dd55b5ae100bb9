"""Colours of figures on light and on dark ground.

Problem. A page follows the reader's choice of light or dark, and so shall the figures in it, also those that are files
of their own. A program other than a browser, which knows no such choice, must still show an SVG.

Algorithm. Figures are drawn in the light colours. Where the reader prefers dark, a style sheet in the page, or in the
file, replaces each light colour by the dark one of the same meaning: it selects elements by the colour in their style.
A PNG has one of the two, drawn in its colours.

Guarantees. Each colour of the light theme occurs in it once, so that the replacement is unambiguous. Colours are those
of M. Okabe and K. Ito, "Color Universal Design" (2008), lighter on dark ground; what a colour says, a word or a mark
says too.
"""

from __future__ import annotations

import dataclasses

__all__ = ["DARK", "LIGHT", "THEMES", "Theme", "dark_style"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """Colours by what they mean.

    Attributes
    ----------
    page, ink, soft, line : str
        Ground, text, axes, grid.
    data, average, changed : str
        What was measured, a long average, and marks of changes.
    quarters : tuple of str
        From the worst to the best.
    neutral : str
        What is neither good nor bad.
    low, high : str
        Shades behind times of low and of high performance.
    """

    page: str
    ink: str
    soft: str
    line: str
    data: str
    average: str
    changed: str
    quarters: tuple[str, str, str, str]
    neutral: str
    low: str
    high: str

    def colours(self) -> list[str]:
        """Return all colours in a fixed order."""
        plain = [getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "quarters"]
        return [*plain, *self.quarters]


LIGHT = Theme(
    page="#ffffff", ink="#16191d", soft="#555c66", line="#d5d9df", data="#0072b3", average="#7a4fa3", changed="#b3155c",
    quarters=("#c44400", "#b97a00", "#2b8fc4", "#00609c"), neutral="#5f646b", low="#fbe3d3", high="#dceefa",
)  # fmt: skip
DARK = Theme(
    page="#14171a", ink="#e8eaed", soft="#a8afb8", line="#3a4047", data="#5ab4ea", average="#c5a3e8", changed="#ff86b8",
    quarters=("#ff8a4c", "#f0b840", "#7cc6f2", "#a9d8ff"), neutral="#c0c5cb", low="#4a2a17", high="#17374d",
)  # fmt: skip
THEMES = {"light": LIGHT, "dark": DARK}


def dark_style(scope: str) -> str:
    """Return the style sheet that makes figures of the light theme dark where the reader prefers that.

    Parameters
    ----------
    scope : str
        Selector of the elements around, or of, the figures, such as ``.themed``.
    """
    rules = [f'{scope} [style*="{kind}: {light}"] {{ {kind}: {dark} !important }}'
             for light, dark in zip(LIGHT.colours(), DARK.colours(), strict=True) for kind in ("fill", "stroke")]
    return "@media screen and (prefers-color-scheme: dark) {\n" + "\n".join(rules) + "\n}"
