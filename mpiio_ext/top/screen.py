"""Tables on a terminal: lines of a width, the screen again and again until Ctrl-C or the end of the job."""

from __future__ import annotations

import shutil
import sys
import textwrap
import time
from collections.abc import Sequence

from mpiio_ext.common.printing import echo
from mpiio_ext.top.fitting import fitted, shares
from mpiio_ext.top.snapshot import Follower, Snapshot
from mpiio_ext.top.tables import job_list, notes, tables

_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _LINE_END, _BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
_STEP_S = 0.1
#: Lines of rows where a terminal has hardly any.
_FEWEST = 2


def _wrapped(text: str, width: int | None) -> list[str]:
    return [text] if width is None else textwrap.wrap(text, max(width, 20))


def lines(seen: Snapshot, *, width: int | None = None, height: int | None = None) -> list[str]:
    """Return the output: for one job its tables, for several a list.

    Parameters
    ----------
    width, height : columns and lines that there is room for; None: any number.
    """
    single = seen.jobs[0] if len(seen.jobs) == 1 else None
    below = [line for text in notes(seen, single) for line in _wrapped(text, width)]
    if not seen.jobs:
        return below
    parts = tables(seen, single) if single is not None else (job_list(seen),)
    if single is None:
        below.append("One of them: mpiio-ext top JOB")
    above = [_wrapped(table.title, width) for table in parts]
    tried = [fitted(table, table.rows[:height], width) for table in parts]
    spared = dict.fromkeys(name for _, left_out in tried for name in left_out)
    below += _wrapped(f"In a wider window: {', '.join(spared)}", width) if spared else []
    room = [len(table.rows) for table in parts]
    if height is not None:
        headings = sum(len(body) - len(table.rows[:height]) for table, (body, _) in zip(parts, tried, strict=True))
        fixed = sum(map(len, above)) + headings + len(parts) - 1 + (1 + len(below) if below else 0)
        room = [max(_FEWEST, lent) for lent in shares(room, height - fixed)]
    found: list[str] = []
    for table, title, most in zip(parts, above, room, strict=True):
        shown = table.rows if len(table.rows) <= most else table.rows[: most - 1]
        hidden = len(table.rows) - len(shown)
        found += [*([""] if found else []), *title, *fitted(table, shown, width)[0]]
        found += [f"… {hidden} more"] if hidden else []
    return [*found, "", *below] if below else found


def once(seen: Snapshot) -> str:
    """Return the output of --once: on a terminal as wide as that, and as long as it is."""
    return "\n".join(lines(seen, width=shutil.get_terminal_size().columns if sys.stdout.isatty() else None))


def live(follower: Follower, interval_s: float) -> None:
    """Show the screen anew at each interval, and when the window has another size, until the user interrupts.

    If the requested job ends, its last numbers stay on the terminal.
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
                    _draw(lines(seen, width=size.columns, height=size.lines - 1), size.columns, size.lines)
                time.sleep(min(_STEP_S, max(0.0, next_s - time.monotonic())))
            seen = follower.look()
    except KeyboardInterrupt:
        pass
    finally:
        out.write(_LEAVE)
        out.flush()
    if follower.is_over(seen):
        echo(once(seen))


def _draw(shown: Sequence[str], columns: int, rows: int) -> None:
    text = "".join(f"{line[:columns]}{_LINE_END}\r\n" for line in shown[: rows - 1])
    sys.stdout.write(f"{_HOME}{text}{_BELOW}")
    sys.stdout.flush()
