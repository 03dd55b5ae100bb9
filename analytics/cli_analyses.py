"""``mpiio-ext analyze ANALYSIS``: one subcommand for each analysis."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mpiio_ext.analytics.cli_output import (
    FILE_PATH,
    areas_of,
    figure_option,
    miner_of,
    origin_option,
    output_options,
    show,
    store_options,
)
from mpiio_ext.common.commands import Command, all_of
from mpiio_ext.common.options import Bandwidth

if TYPE_CHECKING:
    import pyarrow as pa

    from mpiio_ext.analytics.analyses.result import Result


def _every_fifth(table: pa.Table) -> pa.Table:
    return table.take(list(range(0, table.num_rows, 5)))


def _with_jobs(table: pa.Table) -> pa.Table:
    import pyarrow.compute as pc

    return table.filter(pc.greater(table["jobs"], 0))


#: What the terminal shows of tables with a row for each percent.
_SHORT: dict[str, Callable[[pa.Table], pa.Table]] = {"sequential": _every_fifth, "read-ratio": _with_jobs}


def _result(
    name: str, *, setup: Path, anonymous: bool, areas: Path | None, origin: str, named: bool, **parameters: Any
) -> Result:
    """Return the result of an analysis; `named`: its result has names, which it can leave out."""
    from mpiio_ext.analytics.analyses import analysis

    if named:
        found_areas = areas_of(areas)
        parameters |= {"areas": found_areas, "anonymous": anonymous or found_areas is not None}
    with miner_of(setup) as miner:
        result: Result = analysis(name)(miner, origin=None if origin == "all" else origin, **parameters)
    return result


def _shortened(result: Result) -> Result:
    """Return a result with the rows that the terminal shows."""
    shown = _SHORT[result.name](result.table)
    note = f"{shown.num_rows} of {result.table.num_rows} rows are shown; --json, --csv and --parquet have all."
    return dataclasses.replace(result, table=shown, caption=f"{result.caption}\n{note}")


def _command(name: str, text: str, options: Sequence[Any] = (), *, named: bool = False) -> click.Command:
    def command(*, as_json: bool, csv: Path | None, parquet: Path | None, figure: Path | None, **given: Any) -> None:
        result = _result(name, named=named, **given)
        if not (as_json or csv or parquet) and name in _SHORT:
            result = _shortened(result)
        show(result, as_json=as_json, csv=csv, parquet=parquet, figure=figure, most=120)

    command = store_options(output_options(origin_option(figure_option(command))))
    made = click.command(name, cls=Command, help=text)(all_of(command, options))
    assert isinstance(made, click.Command)
    return made


applications = _command(
    "applications",
    "Rank applications by bytes read and by bytes written.",
    [click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="Applications to name.")],
    named=True,
)
sequential = _command(
    "sequential",
    "Return the distribution of sequential requests over the jobs (Equation 3).",
    [
        click.option(
            "--counter",
            type=click.Choice(["consec", "seq"]),
            default="consec",
            show_default=True,
            help="Darshan's counter: requests that begin where the one before ended, or anywhere behind it.",
        )
    ],
)
read_ratio = _command("read-ratio", "Return how many jobs read which share of what they move (Equation 4).")
sharing = _command("sharing", "Return how many jobs share files in which pattern (Equation 5).")
middleware = _command("middleware", "Return through which interface jobs of which size do their I/O.")
striping = _command("striping", "Return how many jobs and files have a Lustre layout that is not the default.")
root_causes = _command(
    "root-causes",
    "Return the contributing factors of large jobs with a low bandwidth.",
    [
        click.option(
            "--processes",
            type=click.IntRange(min=0),
            default=1000,
            show_default=True,
            help="Only jobs of more processes.",
        ),
        click.option(
            "--from-bandwidth",
            type=Bandwidth(),
            default="0",
            show_default=True,
            help="Only jobs of this bandwidth or more.",
        ),
        click.option(
            "--osts",
            type=click.IntRange(min=0),
            default=0,
            help="Only jobs whose files lie on at least this many OSTs.",
        ),
        click.option(
            "--bandwidth",
            type=Bandwidth(),
            default="1GB/s",
            show_default=True,
            help="Bandwidth below which a job is slow; inf: any.",
        ),
        click.option(
            "--bandwidth-over",
            "time",
            type=click.Choice(["critical", "span"]),
            default="critical",
            show_default=True,
            help="Time by which bytes are divided: the time in which files are accessed, or the span from the first "
            "access to the last, pauses included (Equation 1).",
        ),
        click.option(
            "--each-job",
            is_flag=True,
            help="A row for each job, instead of the median job of each application and the ranges.",
        ),
    ],
    named=True,
)


@click.command("methods", cls=Command)
@click.option(
    "--results",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Results of the bench; instead of a store.",
)
@click.option("--setup", type=FILE_PATH, default=None, help="Set-up of a store that holds results.")
@click.option("--slower", metavar="METHOD", help="The method in question: why was it slower …")
@click.option("--faster", metavar="METHOD", help="… than this one?")
@click.option("--pattern", metavar="NAME", help="Only this pattern or kernel.")
@output_options
@figure_option
def methods(
    results: tuple[Path, ...],
    setup: Path | None,
    slower: str | None,
    faster: str | None,
    pattern: str | None,
    **shown: Any,
) -> None:
    """Compare methods of the bench by their measurements, and print why one was slower.

    \b
      mpiio-ext analyze methods --results bench-results/2026-01-02T03-04-05 --slower even --faster group_cyclic
    """  # noqa: D301  (click wants the backspace character itself)
    from mpiio_ext.analytics.analyses.methods import methods as compare
    from mpiio_ext.analytics.analyses.methods import tables_of_results

    if bool(results) == (setup is not None):
        raise click.UsageError("name either --results DIR or --setup FILE")
    if setup is not None:
        with miner_of(setup) as miner:
            result = compare(miner, slower=slower, faster=faster, pattern=pattern)
    else:
        result = compare(tables_of_results(results), slower=slower, faster=faster, pattern=pattern)
    show(result, most=200, **shown)
