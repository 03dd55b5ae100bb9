"""``mpiio-ext analyze umami``: a job against the history of its application, file system, motif and processes.

Only the columns of the rows that are drawn are read, and SciPy is not imported: the figure shall be
there in a second and a half.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mpiio_ext.analytics.cli_histories import check_suffix, row_options, rules_of, save_figure
from mpiio_ext.analytics.cli_output import FILE_PATH
from mpiio_ext.common.commands import Command, json_option, output_option
from mpiio_ext.common.options import Duration
from mpiio_ext.common.printing import echo

if TYPE_CHECKING:
    from mpiio_ext.analytics.jobs.filters import Filter, Step
    from mpiio_ext.analytics.jobs.table import Jobs
    from mpiio_ext.analytics.jobs.umami import Umami


def _columns(metrics: tuple[str, ...]) -> set[str]:
    """Return the columns of the metrics, and those that identify a job."""
    from mpiio_ext.analytics.jobs.coverage import terms
    from mpiio_ext.analytics.jobs.derived import SOURCES
    from mpiio_ext.analytics.jobs.metrics import DEFAULT_ROWS
    from mpiio_ext.analytics.jobs.table import FILE, ID, LOG, LOG_ID, MOTIF, PERFORMANCE, START, SYSTEM, TRUE_START

    wanted = {FILE, ID, LOG, LOG_ID, MOTIF, SYSTEM, START, TRUE_START, PERFORMANCE, "darshan_total_gibs_posix"}
    wanted |= {*(metrics or DEFAULT_ROWS), *SOURCES[MOTIF]}
    return wanted | {column for name in metrics or DEFAULT_ROWS for column in (*SOURCES.get(name, ()), *terms(name))}


def _table(options: dict[str, Any], metrics: tuple[str, ...], rules: Filter) -> tuple[Jobs, list[Step]]:
    from mpiio_ext.analytics.jobs import HistoryError, read, select
    from mpiio_ext.analytics.jobs.filters import emptied

    # Every column shows whether a row is complete.
    table = read(options["history"], None if rules.complete else _columns(metrics), slices=False)
    if options["log"] is not None:
        from mpiio_ext.analytics.jobs.umami import has_log, with_log

        if not has_log(table, options["log"]):
            table = with_log(table, options["log"], options["system"])
    kept, steps = select(table, rules)
    if not len(kept):
        raise HistoryError(emptied(table.source, steps))
    return kept, steps


def _write(found: Umami, output: Path, theme: str) -> None:
    from mpiio_ext.analytics.jobs.umami import show
    from mpiio_ext.analytics.jobs.umami.show import chart

    if output.suffix.lower() != ".html":
        save_figure(output, chart(found, heading=True), theme)
        return
    from mpiio_ext.analytics.cli_output import save

    save(output, show.page(found))


@click.command("umami", cls=Command)
@click.option(
    "--history",
    required=True,
    type=click.Path(path_type=Path),
    metavar="TABLE",
    help="Jobs, a row per job: Parquet, SQLite, CSV, CSV.gz or HDF5 (.h5).",
)
@click.option("--job", default="last", show_default=True, metavar="ID", help="Job ID, or last.")
@click.option(
    "--darshan-log",
    "log",
    type=FILE_PATH,
    metavar="FILE",
    help="The job of a Darshan log instead; if it is not in the table, the figure adds it.",
)
@click.option("--motif", metavar="NAME", help="Kind of I/O, such as ior_fpp_write, if a job has several rows.")
@click.option("--file-system", "system", metavar="NAME", help="File system, if a job has rows on several.")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="COLUMN",
    help="Metric to show; may be repeated, in the order of the rows.  [default: 9 to 12 of those known]",
)
@click.option("--within", type=Duration(), metavar="TIME", help="Only jobs within this time of it, as 90d.")
@click.option("--later", is_flag=True, help="Also jobs that began after it.")
@row_options
@output_option(type=FILE_PATH, metavar="FILE", help="Figure (.svg, .png), or page with figure (.html).")
@click.option(
    "--theme",
    type=click.Choice(["light", "dark"]),
    default="light",
    show_default=True,
    help="Of a PNG; SVG and HTML follow the reader's choice.",
)
@json_option()
def umami(**options: Any) -> None:
    """Show one job against the history of its application, file system, motif and processes (UMAMI).

    For each metric a time line beside a box plot: was this job slow, and what else was unusual while it ran?
    Without -o the same as a table on the terminal.

    \b
      mpiio-ext analyze umami --history year.parquet --job last -o umami.html
      mpiio-ext analyze umami --history year.csv.gz --job 8480839 --metric performance -o umami.svg

    Exit status: 0 done, 2 a table, a job or a file that cannot be used.
    """  # noqa: D301  (click wants the backspace character itself)
    from mpiio_ext.analytics.jobs.metrics import alias

    output, as_json, theme = options.pop("output"), options.pop("as_json"), options.pop("theme")
    if output is not None:
        check_suffix(output)
    metrics = tuple(alias(name) for name in options["metrics"])
    rules = rules_of(options)
    found = _found(*_table(options, metrics, rules), options, metrics)
    if len(found.times) == 1:
        echo(f"job {found.job} has no history: {_why_alone(found, options)}", err=True)
    if output is not None:
        _write(found, output, theme)
    _print(found, as_json, quiet=output is not None)


def _why_alone(found: Umami, options: dict[str, Any]) -> str:
    """Return why a job has no history."""
    from mpiio_ext.analytics.jobs.derived import UNKNOWN_SCALE

    if not found.system and options["log"] is not None:
        return "the log does not know its file system; --file-system names it as the table does"
    if not (found.system and found.motif):
        return f"its {'motif' if found.system else 'file system'} is not known"
    if found.scale == UNKNOWN_SCALE:
        return "its number of processes is not known"
    more = "" if options["later"] else " (--later: also those after it)"
    return f"there is no job of this motif, file system and number of processes before it{more}"


def _print(found: Umami, as_json: bool, quiet: bool) -> None:
    """Print JSON, or the weather as a table unless that is in a file."""
    from mpiio_ext.analytics.jobs.umami import show

    if as_json:
        from mpiio_ext.analytics.cli_output import dumps

        echo(dumps(show.document(found)))
    elif not quiet:
        echo(show.text(found))


def _found(table: Jobs, steps: list[Step], options: dict[str, Any], metrics: tuple[str, ...]) -> Umami:
    """Return the UMAMI of the job that the options select."""
    from mpiio_ext.analytics.jobs.umami import find, find_log, history_of, other_scales
    from mpiio_ext.analytics.jobs.umami import umami as rows_of

    chosen = {"motif": options["motif"], "system": options["system"]}
    place = (
        find(table, options["job"], **chosen) if options["log"] is None else find_log(table, options["log"], **chosen)
    )
    others = other_scales(table, place)
    within = options["within"]
    history, place = history_of(table, place, later=options["later"], days=within / 86400 if within else None)
    found = rows_of(history, place, list(metrics) or None)
    return dataclasses.replace(found, left_out=steps, other_scales=others)
