"""Tables as plain text: columns as wide as their longest cell, two blanks apart, under a line of dashes."""

from __future__ import annotations

from collections.abc import Sequence


def aligned(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table: names of the columns, dashes, a line for each row."""
    every = [columns, *rows]
    widths = [max(len(row[at]) for row in every) for at in range(len(columns))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in every]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]
