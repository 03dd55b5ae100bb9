"""Tables on a terminal: lines of a width, the screen again and again until Ctrl-C or the end of the job."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence

import click

from mpiio_ext.top.snapshot import Follower, Snapshot
from mpiio_ext.top.tables import Table, job_list, notes, tables

_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _LINE_END, _BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
_STEP_S = 0.1
#: Rows of a table that is cut to the terminal's height.
_FEWEST_ROWS = 3


def _table(table: Table, rows: Sequence[Sequence[str]]) -> list[str]:
    cells = [table.columns, *rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(table.columns))]
    last = len(widths) - 1

    def line(row: Sequence[str]) -> str:
        return "  ".join(
            text if column == last and table.last_text
            else text.ljust(width) if column < table.texts
            else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()  # fmt: skip

    return [line(row) for row in cells]


def lines(seen: Snapshot, *, height: int | None = None) -> list[str]:
    """Return what is shown: of one job its tables, of several a list.

    Parameters
    ----------
    seen : Snapshot
    height : lines that there is room for; None: any number.
    """
    if not seen.jobs:
        return list(notes(seen, None))
    single = seen.jobs[0] if len(seen.jobs) == 1 else None
    parts = tables(seen, single) if single is not None else (job_list(seen),)
    below = notes(seen, single)
    if single is None:
        below = (*below, "One of them: mpiio-ext top JOB")
    room = None if height is None else height - len(below) - 1
    found: list[str] = []
    for index, table in enumerate(parts):
        left = len(parts) - index
        share = None if room is None else max(_FEWEST_ROWS, (room - len(found)) // left - 4)
        shown = table.rows if share is None else table.rows[:share]
        found += ["", table.title] if found else [table.title]
        found += _table(table, shown) if table.rows else ["none"]
        hidden = len(table.rows) - len(shown)
        found += [f"… {hidden} more"] if hidden else []
    return [*found, "", *below] if below else found


def live(follower: Follower, interval_s: float) -> None:
    """Show the screen anew at each interval, and when the window has another size, until the user interrupts.

    Where the job that was asked for ends, its last numbers stay on the terminal.
    """
    out = sys.stdout
    seen = follower.look()
    out.write(_ENTER)
    try:
        while not follower.is_over(seen):
            next_s = time.monotonic() + interval_s
            size = None
            while time.monotonic() < next_s:
                now = shutil.get_terminal_size()
                if now != size:
                    size = now
                    _draw(lines(seen, height=size.lines - 1), size.columns, size.lines)
                time.sleep(min(_STEP_S, max(0.0, next_s - time.monotonic())))
            seen = follower.look()
    except KeyboardInterrupt:
        pass
    finally:
        out.write(_LEAVE)
        out.flush()
    if follower.is_over(seen):
        click.echo("\n".join(lines(seen, height=shutil.get_terminal_size().lines - 1)))


def _draw(shown: Sequence[str], columns: int, rows: int) -> None:
    text = "".join(f"{line[:columns]}{_LINE_END}\r\n" for line in shown[: rows - 1])
    sys.stdout.write(f"{_HOME}{text}{_BELOW}")
    sys.stdout.flush()
