"""``mpiio-ext analyze place`` and ``interference``: where tables lie, and which jobs met on an OST."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, Literal

import click

from mpiio_ext.analytics.cli_output import figure_option, miner_of, output_options, setup_option, show, store_options
from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.common.commands import Command


class _Jobs(click.ParamType):  # type: ignore[type-arg]  # generic in newer releases only
    """A range of job IDs, both ends included: 4478000:4479000, 4478000:, :4479000, or a single one."""

    name = "LOW:HIGH"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int | None, ...]:
        if isinstance(value, tuple):
            return value
        low, colon, high = str(value).partition(":")
        try:
            found = tuple(int(text) if text else None for text in ((low, high) if colon else (low, low)))
        except ValueError:
            self.fail(f"'{value}' is no range of job IDs; write for example 4478000:4479000", param, ctx)
        if None not in found and found[0] > found[1]:  # type: ignore[operator] # neither is None
            self.fail(f"'{value}' ends before it begins", param, ctx)
        return found


_JOBS = click.option(
    "--job-ids", "jobs", type=_Jobs(), default=None, help="Job IDs, both included; one side may be left out."
)


@click.command("place", cls=Command)
@setup_option
@click.option(
    "--target",
    "targets",
    multiple=True,
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="A storage target; several times. Instead of those of the set-up.",
)
@click.option(
    "--ost",
    "osts",
    multiple=True,
    type=click.IntRange(min=0),
    help="The OST of each --target, in the same order: files get one stripe there (Lustre).",
)
@click.option("--subtables", type=click.IntRange(min=1), help="Subtables of each table; default: one a target.")
@click.option("--anew", is_flag=True, help="Compute the bounds of the subtables again, and write all files.")
@click.option("--show", "only_show", is_flag=True, help="Print the placement, and write nothing.")
@output_options
@figure_option
def place(
    setup: Path,
    targets: tuple[Path, ...],
    osts: tuple[int, ...],
    subtables: int | None,
    anew: bool,
    only_show: bool,
    **output: Any,
) -> None:
    """Lay the tables of a store on storage targets, by ranges of jobs, and list which table is on which target.

    `init` does it by itself where the set-up has a placement. Files that a target has already stay there.

    \b
      mpiio-ext analyze place --target /ost1/me --target /ost2/me --subtables 4
    """  # noqa: D301  (click wants the backspace character itself)
    from mpiio_ext.analytics.analyses.placed import placement_of

    with miner_of(setup) as miner:
        if not only_show:
            _place(miner, [str(target.absolute()) for target in targets], osts, subtables, anew)
        elif targets or osts or subtables or anew:
            raise click.UsageError("--show changes nothing; leave --target, --ost, --subtables and --anew out")
        show(placement_of(miner.catalog), **output)


def _place(miner: Any, targets: list[str], osts: tuple[int, ...], subtables: int | None, anew: bool) -> None:
    from mpiio_ext.analytics.setup import PlacementPlan
    from mpiio_ext.analytics.store.placement import place as place_tables

    plan = miner.setup.placement
    if targets:
        plan = PlacementPlan(targets=tuple(targets), subtables=subtables or len(targets), osts=osts)
    elif plan is not None:
        plan = dataclasses.replace(plan, subtables=subtables or plan.subtables, osts=osts or plan.osts)
    else:
        raise AnalyticsError("no storage targets: name them by --target DIR, or under /placement/targets of the set-up")
    if len(set(plan.targets)) < len(plan.targets):
        raise AnalyticsError("a storage target is named twice")
    if plan.subtables % len(plan.targets):
        raise AnalyticsError(f"{plan.subtables} subtables: {len(plan.targets)} targets cannot share them evenly")
    if plan.osts and len(plan.osts) != len(plan.targets):
        raise AnalyticsError(f"{len(plan.osts)} OSTs for {len(plan.targets)} targets; name one for each")
    place_tables(miner.setup.store, plan, anew=anew)


@click.command("interference", cls=Command)
@store_options
@_JOBS
@click.option("--direction", type=click.Choice(["write", "read"]), default="write", show_default=True)
@click.option("--file-system", metavar="NAME", help="LMT's name of the file system; needed where it has several.")
@click.option("--top", type=click.IntRange(min=1), default=20, show_default=True, help="Pairs of file and OST to name.")
@output_options
@figure_option
def interference(
    setup: Path,
    anonymous: bool,
    areas: Path | None,
    jobs: tuple[int | None, int | None] | None,
    direction: Literal["write", "read"],
    file_system: str | None,
    top: int,
    **output: Any,
) -> None:
    """Show each file's share of its OSTs' traffic, and the files whose OSTs had the most traffic of others.

    Needs LMT in the store. The bytes of a file count as spread evenly over its OSTs and over the time of its use.
    """
    if areas is not None:
        raise click.UsageError("--areas: interference names no applications; --anonymous leaves IDs and files out")
    from mpiio_ext.analytics.analyses.interfered import interfered

    with miner_of(setup) as miner:
        found = interfered(miner, direction=direction, jobs=jobs, file_system=file_system, top=top, anonymous=anonymous)
    show(found, **output)
