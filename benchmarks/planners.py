"""How long the planners take: a plan of 100,000 aggregators by every method, with its flat arrays, from Python.

``python benchmarks/planners.py`` prints milliseconds: of making the plan, of ``Plan.sets()`` (stripe sets, bytes and
servers of every aggregator), and of ``Plan.domains`` (one view for each aggregator). Best and median of some runs.
Needs neither MPI nor a file.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import TypeVar

import click
from rich.console import Console
from rich.table import Table

from mpiio_ext.partitioning import Geometry, methods, plan

T = TypeVar("T")


def timed(function: Callable[[], T]) -> tuple[float, T]:
    """Return the milliseconds that a call takes, and its result."""
    begun = time.perf_counter()
    result = function()
    return 1e3 * (time.perf_counter() - begun), result


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--aggregators", type=click.IntRange(1), default=100_000)
@click.option("--servers", type=click.IntRange(1), default=1344)
@click.option("--stripes", type=click.IntRange(1), default=10_000_000, help="Length of the region.")
@click.option("--runs", type=click.IntRange(1), default=7)
def main(aggregators: int, servers: int, stripes: int, runs: int) -> None:
    """Print the times of the planners."""
    size = 2**20
    geometry = Geometry(
        start_bytes=size // 2, end_bytes=stripes * size - size // 2, stripe_size_bytes=size, servers=servers,
        aggregators=aggregators,
    )  # fmt: skip
    table = Table(title=f"{aggregators} aggregators, {servers} servers, {stripes} stripes; ms, best / median of {runs}")
    for head in ("method", "plan", "sets()", "plan + sets()", "domains", "sets"):
        table.add_column(head, justify="left" if head == "method" else "right")
    for method in methods():
        rows = []
        for _ in range(runs):
            made, p = timed(lambda name=method.name: plan(geometry, name))  # type: ignore[misc]
            flat, sets = timed(p.sets)
            views, _domains = timed(lambda p=p: p.domains)  # type: ignore[misc]
            rows.append((made, flat, made + flat, views))
        columns = [f"{min(c):.1f} / {statistics.median(c):.1f}" for c in zip(*rows, strict=True)]
        table.add_row(method.name, *columns, str(len(sets.rows)))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
