r"""Output of commands: names of files, jobs and programs must not reach a terminal as control sequences.

Problem. A name may hold any byte: an escape sequence in it moves the cursor, sets the title, or types an answer.

Algorithm. Characters that control a terminal, turn the direction of text or are no text at all become ``\u001b``, which
JSON reads as the same character. What we draw ourselves, colours and tables, is styled after that.

Guarantees. Commands print by these functions only (a test finds others). Ends of lines and tabs stay.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import IO, TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

#: C0 and C1 controls, marks and overrides of direction, other ends of lines, lone surrogates (bytes that are no UTF-8).
_NO_TEXT = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]")


def printable(text: object) -> str:
    """Return a text as a terminal may have it."""
    return _NO_TEXT.sub(lambda found: f"\\u{ord(found[0]):04x}", str(text))


def in_one_line(name: object) -> str:
    """Return a name as a terminal may have it, and as one line."""
    return printable(name).replace("\n", "\\u000a")


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines, in columns as wide as their longest cell, two blanks apart."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def under_heads(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table: names of the columns, dashes, a line for each row."""
    dashes = ["-" * max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    return aligned([heads, dashes, *rows])


def echo(text: object = "", file: IO[Any] | None = None, *, nl: bool = True, err: bool = False) -> None:
    """Print a text, as `click.echo` does; a closed standard error is no error of a command."""
    try:
        click.echo(printable(text), file, nl=nl, err=err)
    except OSError:
        if not err:
            raise
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115  (Python's end would fail again)


def echo_styled(
    parts: Iterable[tuple[object, dict[str, Any]]], file: IO[Any] | None = None, *, color: bool | None = None
) -> None:
    """Print a line of parts, each with its arguments of `click.style`; empty arguments are no style."""
    line = "".join(click.style(printable(text), **how) if how else printable(text) for text, how in parts)
    click.echo(line, file, color=color)


def page(blocks: Iterable[str]) -> None:
    """Show texts in a pager."""
    click.echo_via_pager(map(printable, blocks))


def make_console(**named: Any) -> Console:
    """Return a console of rich that interprets no markup in texts; the arguments are those of its class."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class Printable(Console):
        """A console that shows no control character of a text."""

        def render_str(self, text: str, **named: Any) -> Text:  # before a table measures it
            return super().render_str(printable(text), **named)

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else segment._replace(text=printable(segment.text))

    return Printable(**{"markup": False, "emoji": False, **named})
