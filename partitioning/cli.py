"""``mpiio-ext partitioning``: show how a method cuts a file region, as a picture, as text, or as JSON."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import click

from mpiio_ext.common.commands import Command, json_option
from mpiio_ext.common.options import Size
from mpiio_ext.common.printing import echo, echo_styled
from mpiio_ext.partitioning._auto import LOCKS, Choice, choose, rules_markdown
from mpiio_ext.partitioning._draw import TERMINAL_COLOURS, draw_figure, draw_text
from mpiio_ext.partitioning._plan import MAX_OFFSET_BYTES, MAX_PARTIES, Geometry, Plan, methods, plan

_SIZE = Size(most=MAX_OFFSET_BYTES)
_METHODS = [m.name for m in methods()]
_PARTIES = click.IntRange(1, MAX_PARTIES)


def _region(stripes: int | None, start: int, end: int | None, stripe_size: int) -> tuple[int, int]:
    """Return the half-open region that the options name, or raise a usage error."""
    if (stripes is None) == (end is None):
        raise click.UsageError("give the region as either --stripes or --end (both may go with --start)")
    if end is None:
        assert stripes is not None
        end = start + stripes * stripe_size
        if end > MAX_OFFSET_BYTES:
            raise click.UsageError(f"{stripes} stripes of {stripe_size} bytes end beyond 2^62 bytes")
    if end < start:
        raise click.UsageError(f"the region ends at {end} before it starts at {start}")
    return start, end


def _as_json(plans: list[Plan], choice: Choice | None) -> dict[str, Any]:
    """Return geometry and plans as plain data; sizes in bytes."""
    return {
        "geometry": dataclasses.asdict(plans[0].geometry),
        "auto": None if choice is None else dataclasses.asdict(choice),
        "plans": [
            {
                "method": p.method,
                "aggregators_used": p.aggregators_used,
                "sub_regions": [{"offset_bytes": o, "length_bytes": n} for o, n in p.sub_regions().tolist()],
                "domains": [
                    {
                        "aggregator": a,
                        "bytes": int(total),
                        "sets": [
                            {"offset_bytes": o, "length_bytes": n, "stride_bytes": d, "count": c}
                            for o, n, d, c in sets.tolist()
                        ],
                    }
                    for a, (sets, total) in enumerate(zip(p.domains, p.sets().bytes, strict=True))
                ],
            }
            for p in plans
        ],
    }


def _print_text(plans: list[Plan]) -> None:
    """Print the drawings; coloured on a terminal."""
    for number, each in enumerate(plans):
        if number:
            echo()
        for line, spans in draw_text(each):
            parts: list[tuple[object, dict[str, Any]]] = []
            done = 0
            for start, end, aggregator in spans:
                colour = TERMINAL_COLOURS[aggregator % len(TERMINAL_COLOURS)]
                parts += [(line[done:start], {}), (line[start:end], {"fg": colour})]
                done = end
            echo_styled([*parts, (line[done:], {})])


def _print_rules(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    """Print the rules of ``auto``, and end."""
    if wanted:
        echo(rules_markdown(), nl=False)
        context.exit()


@click.command(cls=Command, context_settings={"show_default": True})
@click.option("--servers", type=_PARTIES, required=True, help="I/O servers of the file (columns of the drawing).")
@click.option("--aggregators", type=_PARTIES, required=True, help="Processes that carry out the I/O.")
@click.option("--stripes", type=click.IntRange(0), help="Length of the region in stripes.")
@click.option("--start", type=_SIZE, default=0, help="First byte of the region.")
@click.option("--end", type=_SIZE, help="One past the last byte of the region, instead of --stripes.")
@click.option("--stripe-size", type=_SIZE, default="1M", help="Bytes of a stripe.")
@click.option(
    "--method",
    type=click.Choice([*_METHODS, "auto", "all"]),
    default="all",
    help="Partition method; all: side by side.",
)
@click.option(
    "--lock", type=click.Choice(LOCKS), default="server", help="Lock protocol of the file system, for --method auto."
)
@click.option("--operation", type=click.Choice(["write", "read"]), default="write", help="For --method auto.")
@click.option(
    "--nodes",
    type=click.IntRange(0, MAX_PARTIES),
    default=0,
    help="For --method auto: nodes that the aggregators may lie on, to choose their number; 0: it is settled.",
)
@click.option(
    "--window",
    "window_bytes",
    type=_SIZE,
    default=0,
    help="For --method auto: bytes of a collective buffer; 0: chosen.",
)
@click.option(
    "--rules",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_rules,
    help="Print the rules of auto as a table, and exit.",
)
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Write a picture (.svg, .png, .pdf).")
@json_option("Write the domains as JSON to standard output.")
def main(
    servers: int,
    aggregators: int,
    stripes: int | None,
    start: int,
    end: int | None,
    stripe_size: int,
    method: str,
    lock: str,
    plot: Path | None,
    as_json: bool,
    **of_auto: Any,
) -> None:
    """Show which I/O aggregator owns which stripes of a file region.

    Columns are I/O servers, rows are stripe rows: the file runs from left to right, then down. Sizes are bytes, or
    numbers with k, M, G, T, P (powers of 1024).

    \b
    Example:
      mpiio-ext partitioning --servers 3 --aggregators 6 --stripes 36 --method group_cyclic --plot out.svg
    """  # noqa: D301 (click's mark for a paragraph that is not to be wrapped)
    if stripe_size < 1:
        raise click.BadParameter("a stripe has at least one byte", param_hint="--stripe-size")
    region = _region(stripes, start, end, stripe_size)
    geometry = Geometry(
        start_bytes=region[0],
        end_bytes=region[1],
        stripe_size_bytes=stripe_size,
        servers=servers,
        aggregators=aggregators,
    )
    choice = None
    if method == "auto":
        choice = choose(geometry, lock=lock, coherent=lock == "local", **of_auto)
        geometry = dataclasses.replace(geometry, aggregators=choice.aggregators)
    names = _METHODS if method == "all" else [choice.method if choice is not None else method]
    plans = [plan(geometry, name) for name in names]
    if plot is not None:
        draw_figure(plans, plot)
    if as_json:
        echo(json.dumps(_as_json(plans, choice), indent=2))
        return
    if choice is not None:
        echo(f"auto takes {choice.reason}")
        requests = "stripe-size I/O" if choice.stripe_size_io else f"windows of {choice.window_bytes} bytes"
        echo(f"{choice.aggregators_used} of {aggregators} aggregators, {requests}")
    if plot is None:
        _print_text(plans)
    else:
        echo(f"wrote {plot}")
