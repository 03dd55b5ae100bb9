"""``mpiio-ext locks``: the cost of every partition method under a file system's locks, by the lock model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mpiio_ext.common.commands import Command, json_file_option, json_option, json_result
from mpiio_ext.common.options import Bandwidth, Counts, Duration, Size
from mpiio_ext.common.printing import echo, make_console
from mpiio_ext.common.progress import progress
from mpiio_ext.common.units import size_text
from mpiio_ext.partitioning._plan import MAX_OFFSET_BYTES, MAX_PARTIES, Geometry
from mpiio_ext.partitioning.locks._figure import draw
from mpiio_ext.partitioning.locks._outcome import Outcome
from mpiio_ext.partitioning.locks._sweep import Variant, check_requests, relation, requests_about, sweep, variants
from mpiio_ext.partitioning.locks._systems import FileSystem, cached, gpfs, lustre, uncached, unlocked

if TYPE_CHECKING:
    from rich.table import Table

_SYSTEMS = {"lustre": lustre, "gpfs": gpfs}
_MIB = 2**20
_AGGREGATORS = Counts(least=1, most=MAX_PARTIES, terms=1000)
_SIZE, _TIME = Size(most=MAX_OFFSET_BYTES), Duration(zero=True)
#: Columns that a narrow terminal does without.
_LESS = ("used", "shared\nunits")


def _system(name: str, cache: bool | None, without_locks: bool, options: dict[str, float | None]) -> FileSystem:
    """Return the file system that the options name."""
    found = _SYSTEMS[name]()
    if cache is not None:
        found = cached(found) if cache else uncached(found)
    changes: dict[str, Any] = {field: value for field, value in options.items() if value is not None}
    found = replace(found, **changes)
    return unlocked(found) if without_locks else found


def _as_json(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return a sweep as plain data; units are in the names."""
    one = outcomes[0]
    return {
        "file_system": asdict(one.file_system),
        "region_bytes": one.geometry.end_bytes - one.geometry.start_bytes,
        "stripe_size_bytes": one.geometry.stripe_size_bytes,
        "servers": one.geometry.servers,
        "window_bytes": one.window_bytes,
        "rows": [{"relation": relation(o.geometry.aggregators, one.geometry.servers), **o.as_dict()} for o in outcomes],
    }


def _short(count: int) -> str:
    """Return a count for a narrow column: 99,999, 123k, 1.05M; JSON has it exactly."""
    if count < 100_000:
        return f"{count:,}"
    return f"{count / 1000:.0f}k" if count < 999_500 else f"{count / 1e6:,.2f}M"


def _cells(o: Outcome, fastest_s: float) -> dict[str, str]:
    """Return the cells of an outcome, by column."""
    best = " *" if o.time_s <= 1.01 * fastest_s else "  "
    return {
        "A": str(o.geometry.aggregators),
        "to\nservers": relation(o.geometry.aggregators, o.geometry.servers),
        "method": Variant(method=o.method, stripe_size_io=o.stripe_size_io).label,
        "used": _short(o.aggregators_used),
        "lock\nrequests": _short(o.total_lock_requests),
        "conflicts": _short(o.total_conflicts),
        "revo-\ncations": _short(o.total_revocations),
        "shared\nunits": _short(int(o.shared_units.sum())),
        "seconds": f"{o.time_s:.3f}",
        "MiB/s": f"{o.bandwidth_bytes_s / _MIB:,.0f}{best}",
    }


def _table(outcomes: Sequence[Outcome], without: Sequence[str] = ()) -> Table:
    """Return a sweep as a table; the fastest method of each number of aggregators is marked."""
    from rich import box
    from rich.table import Table

    fastest: dict[int, float] = {}
    for o in outcomes:
        fastest[o.geometry.aggregators] = min(o.time_s, fastest.get(o.geometry.aggregators, o.time_s))
    caption = "A: aggregators; the method uses some or all of them. *: fastest, or within 1 % of it.\n"
    if without:
        caption += f"Left out, for the terminal is narrow: {', '.join(' '.join(name.split()) for name in without)}.\n"
    caption += "Latencies and bandwidths: --json."
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        padding=0 if without else (0, 1, 0, 0),
        caption_justify="left",
        caption=caption,
    )
    before = None
    for o in outcomes:
        number = o.geometry.aggregators
        cells = {name: text for name, text in _cells(o, fastest[number]).items() if name not in without}
        if before is None:
            for at, name in enumerate(cells):
                table.add_column(name, justify="left" if at < 3 else "right", no_wrap=True)
        elif before != number:
            table.add_section()
        table.add_row(*("" if before == number and at < 2 else text for at, text in enumerate(cells.values())))
        before = number
    return table


def _show(outcomes: Sequence[Outcome]) -> None:
    """Print a sweep as a table that nothing is cut of: with fewer columns where the terminal is narrow."""
    one = outcomes[0]
    console, measuring = make_console(), make_console(width=10_000)
    table = _table(outcomes)
    if console.is_terminal and measuring.measure(table).maximum > console.width:
        table = _table(outcomes, _LESS)
    console.width = max(console.width, measuring.measure(table).maximum)
    head = (
        f"{one.file_system.name}{', caches' if one.file_system.caches else ''}: {one.geometry.servers} servers, "
        f"window {size_text(one.window_bytes, exact=True)}, a collective write of "
        f"{size_text(one.geometry.end_bytes - one.geometry.start_bytes, exact=True)} in stripes of "
        f"{size_text(one.geometry.stripe_size_bytes, exact=True)}"
    )
    console.print(head, soft_wrap=True, highlight=False)
    console.print(table, highlight=False)


def _run(geometries: Sequence[Geometry], compared: Sequence[Variant], **how: Any) -> list[Outcome]:
    """Run the sweep with a bar on standard error, where that is a terminal."""
    each_bytes = [g.end_bytes - g.start_bytes for g in geometries for _ in compared]
    with progress(float(sum(each_bytes))) as advance:
        found: list[Outcome] = []

        def show(geometry: Geometry, variant: Variant, done_bytes: int) -> None:
            before_bytes = sum(each_bytes[: len(found)])
            advance(f"{geometry.aggregators}: {variant.label}", to=before_bytes + done_bytes)

        for outcome in sweep(geometries, compared, progress=show, **how):
            found.append(outcome)
            advance(to=sum(each_bytes[: len(found)]))
        return found


@click.command(cls=Command, context_settings={"show_default": True})
@click.option("--fs", type=click.Choice(sorted(_SYSTEMS)), default="lustre", help="File system: its lock protocol.")
@click.option("--servers", type=click.IntRange(1, MAX_PARTIES), required=True, help="I/O servers of the file.")
@click.option("--aggregators", type=_AGGREGATORS, required=True, help="Numbers of aggregators, as 60,64,128,...,16384.")
@click.option("--region", type=_SIZE, required=True, help="Bytes of one collective.")
@click.option("--stripe-size", "stripe", type=_SIZE, default="1M", help="Bytes of a stripe.")
@click.option("--window", type=_SIZE, default="16M", help="Bytes of a collective buffer.")
@click.option("--method", "names", multiple=True, default=["all"], help="Partition method, or all; may be repeated.")
@click.option(
    "--stripe-size-io",
    type=click.Choice(["aligned", "both", "no", "yes"]),
    default="aligned",
    help="Compare stripe-size I/O too: with aligned alone, with all, not at all; yes: nothing else.",
)
@click.option(
    "--granularity",
    "granularity_bytes",
    type=_SIZE,
    help="Bytes of a lock unit; without it a stripe. Present Lustre: 4k.",
)
@click.option(
    "--cache/--no-cache",
    default=None,
    help="Clients write behind, or not; default: see `mpiio-ext help explanation/locks`.",
)
@click.option("--commit", "commit_s", type=_TIME, help="A server's time to answer what it has written, as 10ms; 0.")
@click.option("--round-trip", "round_trip_s", type=_TIME, help="A small message and its answer, as 20us, 0.1ms.")
@click.option(
    "--server-bandwidth",
    "server_bandwidth_bytes_s",
    type=Bandwidth(),
    help="Bandwidth of one server in bytes per second, as 250MB, 1.5GiB/s.",
)
@click.option("--without-locks", is_flag=True, help="Predict the same latencies and bandwidths without locks.")
@click.option("--force", is_flag=True, help="Compute it even if that takes hours or years; Ctrl-C ends it.")
@json_option("Print the numbers as JSON, and no table.")
@json_file_option()
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Draw them (.svg, .png, .pdf).")
def locks(
    fs: str,
    servers: int,
    aggregators: tuple[int, ...],
    region: int,
    stripe: int,
    window: int,
    names: tuple[str, ...],
    stripe_size_io: str,
    cache: bool | None,
    without_locks: bool,
    force: bool,
    as_json: bool,
    output: Path | None,
    plot: Path | None,
    **of_system: float | None,
) -> None:
    """Predict the cost of partition methods under a file system's locks.

    Counts lock requests, conflicts and revocations, and predicts a time, for each method and number of aggregators.
    No file is read or written except those that the options name. A series a,b,...,z continues by the ratio b / a if
    that is an integer and reaches z, otherwise by the difference. The defaults of the file system's times, bandwidths
    and limits are those of `mpiio-ext help explanation/locks`, which explains the model and their origin; --json lists
    them all.

    \b
    Example:
      mpiio-ext locks --fs lustre --servers 156 --aggregators 64,128,...,16384 --region 1TiB --plot locks.svg
    """  # noqa: D301 (click's mark for a paragraph that is not to be wrapped)
    if region == 0:
        raise click.BadParameter(
            "an empty region costs nothing: give the bytes of a collective, as 1TiB", param_hint="--region"
        )
    with json_result(as_json, output) as put:
        geometries = [
            Geometry(start_bytes=0, end_bytes=region, stripe_size_bytes=stripe, servers=servers, aggregators=number)
            for number in aggregators
        ]
        system = _system(fs, cache, without_locks, of_system)
        compared = variants(names, stripe_size_io)
        if not force:
            check_requests(requests_about(geometries, compared, window))
        outcomes = _run(geometries, compared, file_system=system, window_bytes=window)
        if plot is not None:
            draw(outcomes, plot)
            echo(f"wrote {plot}")
        if as_json:
            put(json.dumps(_as_json(outcomes), indent=2))
        else:
            _show(outcomes)
