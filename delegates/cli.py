"""``mpiio-ext delegates``: status of the I/O delegates of running programs; commands of arbitration are under it."""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import json
import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from mpiio_ext.common.commands import Command, LazyGroup, json_option
from mpiio_ext.common.options import Duration
from mpiio_ext.common.printing import echo, make_console
from mpiio_ext.common.units import size_text
from mpiio_ext.delegates.cli_draining import final_name

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from mpiio_ext.delegates._status import DelegateFile, DelegateStatus, Observation, Watch

_BARS = "▁▂▃▄▅▆▇█"
_CACHE_CELLS = 10
#: Width of a table that does not go to a terminal.
_PLAIN_COLUMNS = 160
#: Columns of the table by title; on a narrow terminal those with the highest number are left out first.
_COLUMNS = {
    "#": 0,
    "pid": 3,
    "state": 0,
    "up": 4,
    "req/s": 1,
    "access/s": 0,
    "in MB/s": 0,
    "out MB/s": 0,
    "cache": 2,
    "used/dirty/free": 0,
    "hits": 0,
    "fills": 5,
    "ahead used": 3,
    "waits": 5,
    "errors": 1,
    "write requests by size": 2,
}
_LAST_DROPPED = 1


# ---- numbers and bars ------------------------------------------------------------------------------------------------


def _number(value: float) -> str:
    """Return a number of at most five characters or so: 7.5, 812, 12.3k, 4.5M."""
    for limit, unit, divisor in ((1e4, "", 1.0), (1e7, "k", 1e3), (1e10, "M", 1e6)):
        if value < limit:
            scaled = value / divisor
            digits = 1 if scaled < 100 and (unit or scaled != int(scaled)) else 0
            return f"{scaled:,.{digits}f}{unit}"
    return f"{value / 1e9:,.1f}G"


def _percent(part: float | None) -> str:
    return "–" if part is None else f"{100 * part:.1f} %" if part < 0.9995 else "100 %"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def histogram(counts: Sequence[int]) -> str:
    """Return requests by size as bars between the smallest and the largest size that occurs; "" without requests."""
    powers = [power for power, count in enumerate(counts) if count > 0]
    if not powers:
        return ""
    most = max(counts)
    shown = counts[powers[0] : powers[-1] + 1]
    bars = "".join(" " if count <= 0 else _BARS[-(-8 * count // most) - 1] for count in shown)
    first, last = (
        size_text(1 << powers[end], exact=True).replace(" ", "").removesuffix("B").removesuffix("i") for end in (0, -1)
    )  # 64K, as options take it
    return f"{first} {bars}" if len(powers) == 1 else f"{first} {bars} {last}"


def _cache_bar(item: DelegateStatus) -> str:
    """Return the cache as a bar: dirty pages, clean ones, free ones."""
    pages = max(1, item.pages)
    dirty = -(-_CACHE_CELLS * item.pages_dirty // pages)
    used = max(dirty, -(-_CACHE_CELLS * item.pages_used // pages))
    return "█" * dirty + "▒" * (used - dirty) + "·" * (_CACHE_CELLS - used)


def _cells(row: Observation) -> dict[str, str]:
    """Return the row of a delegate by the title of its column."""
    item, speed = row.status, row.rates
    return {
        "#": str(item.delegate),
        "pid": str(item.pid),
        "state": row.state,
        "up": _duration(item.uptime_s),
        "req/s": _number(speed.requests_per_s),
        "access/s": _number(speed.accesses_per_s),
        "in MB/s": _number(speed.written_mb_per_s),
        "out MB/s": _number(speed.read_mb_per_s),
        "cache": _cache_bar(item),
        "used/dirty/free": f"{item.pages_used}/{item.pages_dirty}/{item.pages_free}",
        "hits": _percent(item.hit_fraction),
        "fills": _number(item.counters["fills"]),
        "ahead used": _percent(item.prefetch_used_fraction),
        "waits": _number(item.counters["waits"]),
        "errors": _number(item.counters["errors"]),
        "write requests by size": histogram(item.flush_size_log2),
    }


# ---- the screen ------------------------------------------------------------------------------------------------------


def _titles(rows: Sequence[dict[str, str]], width: int) -> list[str]:
    """Return the columns that a width has room for."""
    titles = list(_COLUMNS)

    def needed() -> int:
        return sum(max(len(title), *(len(cells[title]) for cells in rows)) + 2 for title in titles)

    for rank in range(max(_COLUMNS.values()), _LAST_DROPPED - 1, -1):
        for title in [name for name in titles if _COLUMNS[name] == rank]:
            if needed() > width:
                titles.remove(title)
    return titles


def _heading(item: DelegateStatus) -> str:
    name = f"{item.group}: " if item.group else ""
    mode = f" ({item.mode})" if item.mode else ""
    count = f"{item.delegates} delegate{'' if item.delegates == 1 else 's'}{mode}"
    memory, page = (size_text(each, exact=True) for each in (item.cap_bytes, item.page_bytes))
    return f"{name}{count} on {item.host}, each with {memory} of memory, pages of {page}"


def _group_table(rows: Sequence[Observation], width: int) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    cells = [_cells(row) for row in rows]
    table = Table(
        title=Text(_heading(rows[0].status)),
        title_justify="left",
        title_style="bold",
        box=None,
        padding=(0, 1),
        header_style="dim",
    )
    titles = _titles(cells, width)
    for title in titles:
        left = title in ("state", "cache", "write requests by size")
        table.add_column(title, justify="left" if left else "right", no_wrap=True)
    for row, texts in zip(rows, cells, strict=True):
        serving = row.status.state in ("starting", "serving") and row.answers
        table.add_row(*(Text(texts[title]) for title in titles), style=None if serving else "red")
    return table


def _after_close(parts: Sequence[DelegateFile]) -> str:
    """Return the state of a file that is closed."""
    return "being written" if any(part.draining for part in parts) else ""


def _failing(parts: Sequence[DelegateFile]) -> str:
    """Return why writing a file behind its close does not go on; "": it does."""
    code = next((part.drain_errno for part in parts if part.drain_errno), 0)
    clashes = {errno.EEXIST: "complete, but its name exists", errno.ENODATA: "its .parts was removed"}
    return clashes.get(code, os.strerror(code)) if code else ""


def _file_table(rows: Sequence[Observation]) -> RenderableType | None:
    """Return the open files of a group, each once, however many delegates have it."""
    from rich.table import Table
    from rich.text import Text

    files: dict[str, list[DelegateFile]] = {}
    for row in rows:
        for file in row.status.files:
            if not file.replica:
                files.setdefault(file.path, []).append(file)
    if not files:
        return None
    table = Table(box=None, padding=(0, 1), header_style="dim")
    for title in ("open", "end", "dirty", "errors"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("closed", no_wrap=True)
    table.add_column("file", overflow="fold")
    for path, parts in sorted(files.items()):
        ends = size_text(max(part.end_bytes for part in parts)), size_text(sum(part.dirty_bytes for part in parts))
        errors = sum(part.errors for part in parts)
        failing = _failing(parts)
        closed = failing or _after_close(parts)
        table.add_row(
            str(max(part.openers for part in parts)),
            *ends,
            str(errors),
            closed,
            Text(str(final_name(path))),
            style="red" if errors or failing else None,
        )
    return table


def _collectives(rows: Sequence[Observation]) -> list[str]:
    """Return a line for each file of a group with collectives that did not use the delegates."""
    counts: dict[str, int] = {}
    for file in (file for row in rows for file in row.status.files if file.collectives > 0):
        path = str(final_name(file.path))
        counts[path] = counts.get(path, 0) + file.collectives
    return [
        f"{count} collective accesses of {path} did not use the delegates: collectives are two-phase"
        for path, count in sorted(counts.items())
    ]


def _waiting(rows: Sequence[Observation]) -> list[str]:
    """Return a line for each process that waits for a delegate of a group, the longest wait first."""
    waits = [(waiter.since_unix_s, row.status, waiter) for row in rows for waiter in row.status.waiting]
    lines = []
    for since_unix_s, item, waiter in sorted(waits, key=lambda wait: wait[0]):
        who = f"rank {waiter.rank}" if waiter.rank >= 0 else "a rank of another node"
        page = f", page {waiter.page}" if waiter.page >= 0 else ""
        seconds = max(0.0, item.sampled_unix_s - since_unix_s)
        lines.append(
            f"{who} (process {waiter.pid}) has waited {seconds:.0f} s for delegate {item.delegate}: "
            f"{waiter.request}{f' of {final_name(waiter.path)}' if waiter.path else ''}{page}"
        )
    return lines


def _screen(rows: Sequence[Observation], width: int) -> RenderableType:
    """Return everything that is shown at one moment."""
    from rich.console import Group
    from rich.text import Text

    if not rows:
        return Text("no I/O delegates of this user on this host")
    groups: dict[tuple[str, str], list[Observation]] = {}
    for row in rows:
        groups.setdefault((row.status.group, row.status.host), []).append(row)
    parts: list[RenderableType] = []
    for members in groups.values():
        parts += [Text("")] if parts else []
        parts.append(_group_table(members, width))
        files = _file_table(members)
        parts += [files] if files is not None else []
        parts += [Text(line) for line in _collectives(members)]
        parts += [Text(line, style="red") for line in _waiting(members)]
    return Group(*parts)


def _look(watch: Watch, group: str | None) -> tuple[Observation, ...]:
    """Return the present status, of one group or of all."""
    return tuple(row for row in watch.look() if group is None or fnmatch.fnmatchcase(row.status.group, group))


def _live(console: Console, watch: Watch, group: str | None, interval_s: float) -> None:
    """Show the screen anew until the user interrupts."""
    from rich.live import Live

    with (
        contextlib.suppress(KeyboardInterrupt),
        Live(_screen(_look(watch, group), console.width), console=console, auto_refresh=False, screen=False) as live,
    ):
        while True:
            time.sleep(interval_s)
            live.update(_screen(_look(watch, group), console.width), refresh=True)


def _two_looks(group: str | None, interval_s: float) -> tuple[Observation, ...]:
    """Return the status after an interval, so that the rates are present ones; at once if there are no delegates."""
    from mpiio_ext.delegates._status import Watch

    watch = Watch()
    rows = _look(watch, group)
    if not rows or interval_s <= 0:
        return rows
    time.sleep(interval_s)
    return _look(watch, group)


# ---- the commands ----------------------------------------------------------------------------------------------------


#: Subcommand -> (module, attribute, help line).
_COMMANDS = {
    "status": (__name__, "status", "Show what the I/O delegates of your running programs on this host do."),
    "wait": ("mpiio_ext.delegates.cli_draining", "wait", "Wait until delegates have written all closed files."),
    "recover": ("mpiio_ext.delegates.cli_draining", "recover", "Write the bytes that killed delegates left on a disk."),
    "arbiter": ("mpiio_ext.delegates.arbiter.command", "arbiter", "Give the jobs of a machine their I/O nodes."),
    "arbitrate": ("mpiio_ext.delegates.arbitration.cli", "arbitrate", "Decide which job gets how many I/O nodes."),
}


#: Subcommand -> extra that it needs.
_EXTRAS = {"status": "delegates", "arbiter": "arbitration", "arbitrate": "arbitration"}


@click.group(cls=LazyGroup, subcommands=_COMMANDS, extras=_EXTRAS)
def delegates() -> None:
    """Watch the I/O delegates of running programs, and share I/O nodes among jobs."""


@click.command(cls=Command)
@click.option(
    "--interval",
    type=Duration(zero=True),
    default="1s",
    show_default=True,
    help="Time between two readings; rates are those of the last interval. 0: one reading, rates since the start.",
)
@click.option(
    "--job-group", "group", metavar="GLOB", help="Only the jobs whose group has such a name; it is in the heading."
)
@click.option("--once", is_flag=True, help="Print once and end, as where the output is no terminal.")
@json_option("Print one JSON object and end.")
def status(interval: float, group: str | None, once: bool, as_json: bool) -> None:
    """Show what the I/O delegates of your running programs on this host do.

    Press Ctrl-C to end. The command reads the delegates' shared memory, and does not slow the programs down.
    Meaning of columns and numbers: `mpiio-ext help reference/delegates`.
    """
    from mpiio_ext.delegates import _status

    if as_json:
        echo(json.dumps(_status.as_json(_two_looks(group, interval)), indent=1))
        return
    console = make_console()
    if once or interval <= 0 or not console.is_terminal:
        plain = console if console.is_terminal else make_console(width=_PLAIN_COLUMNS)
        plain.print(_screen(_two_looks(group, interval), plain.width))
        return
    _live(console, _status.Watch(), group, interval)
