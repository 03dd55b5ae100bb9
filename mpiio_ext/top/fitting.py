"""Tables in the columns and lines of a terminal.

Problem. A table of a busy job is wider than 80 columns and longer than 24 lines; the part that is cut off at the right
edge may be the part that the user needs.

Algorithm. A table that is wider than the terminal gets headings of two lines, and loses empty columns. Then its longest
texts are shortened (paths from the left: the name is at their end). Then it loses the columns that it can spare, in the
order that the table says. Lines are shared out so that a table that needs few leaves its share to the others.

Guarantees. No part of a row exceeds the edge; the first column and the indispensable columns stay as long as they fit.
Where no line is left out there is room for all; where some are, no line of the terminal is left free.
"""

from __future__ import annotations

from collections.abc import Sequence

from mpiio_ext.top.tables import Table

_GAP = "  "
_NOTHING = frozenset({"", "–", "0 B"})
#: Least characters of a long text while there are empty columns, then while there are others to spare, and at last.
_ALL, _KEPT, _LEAST = 1 << 30, 24, 8


def shares(needs: Sequence[int], room: int) -> list[int]:
    """Return how many lines of `room` each gets: no more than it needs; the others get the rest."""
    given = [0] * len(needs)
    for left, index in zip(
        range(len(needs), 0, -1), sorted(range(len(needs)), key=lambda one: needs[one]), strict=True
    ):
        given[index] = min(needs[index], max(0, room) // left)
        room -= given[index]
    return given


def shortened(text: str, width: int, *, at_start: bool) -> str:
    """Return a text of at most `width` characters, with an ellipsis where some are left out."""
    if len(text) <= width:
        return text
    return f"…{text[len(text) - width + 1 :]}" if at_start else f"{text[: width - 1]}…"


class _Grid:
    """Cells of a table while it is made to fit."""

    def __init__(self, table: Table, rows: Sequence[Sequence[str]]) -> None:
        self._table, self._rows = table, rows
        self.names = list(table.columns)
        self._heads = {name: ("", name) for name in self.names}
        self._long = max(map(len, self._cells(table.long)), default=0) if table.long else 0

    def _cells(self, name: str) -> list[str]:
        column = self._table.columns.index(name)
        return [row[column] for row in self._rows]

    def _width_of(self, name: str) -> int:
        texts = [*self._heads[name], *self._cells(name)]
        if name == self._table.long:
            texts = [text[: self._long] for text in texts]
        return max(map(len, texts))

    def beyond(self, width: int) -> int:
        """Return by how much it is wider."""
        return sum(map(self._width_of, self.names)) + len(_GAP) * (len(self.names) - 1) - width

    def break_headings(self) -> None:
        """Put the rest of a heading of several words below its first one."""
        for name in self.names:
            first, _, rest = name.partition(" ")
            self._heads[name] = (first, rest) if rest else ("", first)

    def shorten(self, width: int) -> None:
        """Shorten the long texts as far as it is too wide."""
        self._long = max(min(_LEAST, self._long), self._long - max(0, self.beyond(width)))

    def leave_out(self, width: int, names: Sequence[str], kept: int) -> None:
        """Leave out columns, one after the other, while it is too wide with `kept` characters of the long texts."""
        for name in names:
            if name in self.names and self.beyond(width) > max(0, self._long - kept):
                self.names.remove(name)

    def empty(self) -> list[str]:
        """Return the empty columns; columns of rates only if no bytes moved so far, since rates come and go."""
        found = {name for name in self.names[1:] if set(self._cells(name)) <= _NOTHING}
        return [name for name in self.names if name in found and {f"{name} so far"} & set(self.names) <= found]

    def lines(self) -> list[str]:
        """Return headings and rows."""
        table, widths = self._table, {name: self._width_of(name) for name in self.names}
        texts = table.columns[: table.texts]
        broken = any(self._heads[name][0] for name in self.names)
        columns = [[*(self._heads[name] if broken else [name]), *self._cells(name)] for name in self.names]
        found = []
        for cells in zip(*columns, strict=True):
            whole = [
                shortened(cell, widths[name], at_start=table.cut_at_start)
                for name, cell in zip(self.names, cells, strict=True)
            ]
            found.append(
                _GAP.join(
                    cell.ljust(widths[name]) if name in texts else cell.rjust(widths[name])
                    for name, cell in zip(self.names, whole, strict=True)
                ).rstrip()
            )
        return found


def fitted(table: Table, rows: Sequence[Sequence[str]], width: int | None) -> tuple[list[str], list[str]]:
    """Return lines of a table, and the columns with something in them that are left out.

    Parameters
    ----------
    rows : those that are shown.
    width : of the terminal; None: any.
    """
    if not rows:
        return ["none"], []
    grid = _Grid(table, rows)
    if width is None or grid.beyond(width) <= 0:
        return grid.lines(), []
    grid.break_headings()
    empty = grid.empty()
    grid.leave_out(width, empty, _ALL)
    grid.leave_out(width, table.spare, _KEPT)
    grid.shorten(width)
    return grid.lines(), [name for name in table.columns if name not in grid.names and name not in empty]
