"""Tables of the commands that need no more than click: drawn by rich where that is installed, else in plain columns."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Sequence

from mpiio_ext.common.printing import aligned, echo, make_console, printable

#: Columns of a table that goes into a pipe or a file.
_PIPE_COLUMNS = 400


def terminal_columns() -> int:
    """Return the columns that a table has: those of the terminal; in a pipe, lines of any length."""
    import shutil

    return shutil.get_terminal_size().columns if sys.stdout.isatty() or "COLUMNS" in os.environ else _PIPE_COLUMNS


def print_table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "", bold: Collection[int] = ()
) -> None:
    """Print a table whose first column is never broken: people search for its names.

    Parameters
    ----------
    heads : of the columns.
    rows : a cell for each column.
    title : above the table.
    bold : indices of rows that stand out.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    try:
        from rich.table import Table
    except ModuleNotFoundError:
        for line in [*([title] if title else []), *aligned([heads, *rows])]:
            echo(line)
        return
    table = Table(title=title or None, title_justify="left")
    for number, head in enumerate(heads):
        table.add_column(head, overflow="fold", no_wrap=number == 0)
    for number, row in enumerate(rows):
        table.add_row(*row, style="bold" if number in bold else None)
    make_console(width=terminal_columns()).print(table)
