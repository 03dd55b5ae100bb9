"""A section that others add to the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Added"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """Paragraphs, a figure and a table of words, which the template escapes.

    Attributes
    ----------
    anchor : name within the page; letters, digits and hyphens
    title : heading, and what the contents at the top say
    sentences : paragraphs above the table
    figure, caption : an SVG, shown as an image, and what it shows; "" = none
    columns, rows : the table; none without rows
    note : a line below it
    """

    anchor: str
    title: str
    sentences: Sequence[str] = ()
    figure: str = ""
    caption: str = ""
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    note: str = ""
