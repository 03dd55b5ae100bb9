"""``mpiio-ext analyze climate``: histories of jobs over months, and the regression watch for a cron job."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mpiio_ext.analytics.cli_histories import check_suffix, row_options, rules_of
from mpiio_ext.analytics.cli_output import FILE_PATH, print_notes
from mpiio_ext.common.commands import Command, json_option, output_option, warn
from mpiio_ext.common.options import Duration, Existing
from mpiio_ext.common.printing import echo
from mpiio_ext.common.units import amount_text

if TYPE_CHECKING:
    from mpiio_ext.analytics.jobs.climate.study import Study
    from mpiio_ext.analytics.jobs.filters import Step
    from mpiio_ext.analytics.jobs.table import Jobs

EXIT_REGRESSION = 1
#: The command itself failed, by a defect or by a system without memory: no regression, which a cron job must not think.
EXIT_FAILED = 3
_DAY_S = 86400


def _read(paths: Sequence[Path], site: Path | None) -> tuple[Jobs, list[Step]]:
    """Return the rows of tables and of results of the bench together; standard error lists the rest.

    And, where there is more than one table, the rows that were left out because another one has them too.
    """
    from mpiio_ext.analytics.jobs import read
    from mpiio_ext.analytics.jobs.filters import Step
    from mpiio_ext.analytics.jobs.merging import stack

    results = [path for path in paths if path.is_dir() or path.suffix.lower() == ".json"]
    if site is not None and not results:
        raise click.UsageError("--site is for results of the bench, and no TABLE is; summarize-job joins logs with it")
    tables = [read(path, slices=False) for path in paths if path not in results]
    if results:  # the modules that read them and query the sources take a fifth of a second to import
        from mpiio_ext.analytics.jobs.bench import bench_table
        from mpiio_ext.analytics.site import load_site
        from mpiio_ext.analytics.tools.system import System

        table, left_out, notes = bench_table(results, None if site is None else System(load_site(site)))
        tables.append(table)
        for line in left_out:
            warn(f"left out: {line}")
        print_notes((note.source, note.status) for note in notes)
    if len(tables) == 1:
        return tables[0], []
    table, twice = stack(tables, f"{paths[0]} and others")
    return table, [Step("each run once", twice, len(table), "in a later table too")]


def _chosen(table: Jobs, steps: Sequence[Step], motif: str | None, system: str | None) -> Jobs:
    import numpy as np

    from mpiio_ext.analytics.errors import HistoryError
    from mpiio_ext.analytics.jobs.filters import emptied
    from mpiio_ext.analytics.jobs.table import MOTIF, SYSTEM

    if not len(table):
        raise HistoryError(emptied(table.source, steps))
    rows = np.ones(len(table), dtype=np.bool_)
    for wanted, column in ((motif, MOTIF), (system, SYSTEM)):
        if wanted is not None:
            rows &= np.char.find(table.texts(column), wanted) >= 0
    if not rows.any():
        raise HistoryError(f"{table.source}: no row counts: none of {len(table):,} is of --motif and --file-system")
    return table.take(rows)


@contextlib.contextmanager
def _with_status_of_a_defect() -> Iterator[None]:
    """Let an unexpected exception end with another exit status than that of a regression, Python's own 1."""
    import traceback

    from mpiio_ext.errors import MpiioExtError

    try:
        yield
    except (MpiioExtError, click.ClickException, click.exceptions.Exit):
        raise
    except Exception:
        traceback.print_exc()
        raise SystemExit(EXIT_FAILED) from None


@click.command("climate", cls=Command)
@click.argument("tables", nargs=-1, required=True, type=Existing(path_type=Path), metavar="TABLE...")
@output_option(type=FILE_PATH, metavar="FILE.html", help="Make an HTML page.")
@json_option()
@click.option(
    "--save", type=FILE_PATH, metavar="TABLE", help="Write the rows that count (.parquet, .sqlite, .csv, .h5)."
)
@click.option("--motif", metavar="NAME", help="Only motifs whose name contains this.")
@click.option("--file-system", "system", metavar="NAME", help="Only file systems whose name contains this.")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="COLUMN",
    help="Metrics to compare with performance; may be repeated.  [default: all that explain]",
)
@click.option("--watch", "target", default="performance", show_default=True, metavar="COLUMN", help="What is watched.")
@click.option(
    "--within",
    type=Duration(zero=True),
    default="30d",
    show_default=True,
    metavar="TIME",
    help="A fall in this time before the newest job raises an alarm; 0: any fall.",
)
@click.option(
    "--step",
    type=click.FloatRange(0, 1),
    default=0.05,
    show_default=True,
    help="Smallest change of the median that counts, as a share.",
)
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.01,
    show_default=True,
    help="Largest corrected p-value.",
)
@click.option(
    "--short",
    type=Duration(),
    default="14d",
    show_default=True,
    metavar="TIME",
    help="Window of the short moving average.",
)
@click.option(
    "--long",
    type=Duration(),
    default="49d",
    show_default=True,
    metavar="TIME",
    help="Window of the long moving average.",
)
@click.option(
    "--stale",
    type=Duration(),
    metavar="TIME",
    help="Exit status 1 too where the newest job began longer ago than this, counted from now.",
)
@click.option(
    "--site",
    type=FILE_PATH,
    metavar="FILE",
    help="Facts of the site: its sources' data of the same time are joined with results of the bench.",
)
@click.option("--title", default="Climate of an I/O system", show_default=True, help="Heading of the page.")
@row_options
def climate(**options: Any) -> None:
    """Watch histories of jobs: since when performance changed, and which metrics changed with it.

    TABLE is a table of summaries, a row per job (Parquet, SQLite, CSV, CSV.gz, HDF5), or results of the bench: a
    results.json, or a folder of them such as the archive of a suite. Several tables or folders count as one; a run that
    several of them contain counts once, with the values of the last.

    \b
      mpiio-ext analyze climate year.csv.gz --published -o climate.html
      mpiio-ext analyze climate /home/me/tokio/tokio-abc --within 14d     # after the nightly suite
      mpiio-ext analyze climate /home/me/tokio/tokio-abc --site site.json # and what the servers did meanwhile

    Exit status: 0 nothing, 1 a regression (or, with --stale, no new job), 2 a table or a file that cannot be used,
    3 a defect of this program.
    """  # noqa: D301  (click wants the backspace character itself)
    if options["output"] is not None:
        check_suffix(options["output"], (".html", ".htm"))
    if options["short"] >= options["long"]:
        raise click.UsageError("--short must be shorter than --long")
    with _with_status_of_a_defect():
        made = _study(options)
        _tell(made, options)
        old = options["stale"] is not None and _stale(made, options["stale"] / _DAY_S)
    raise SystemExit(EXIT_REGRESSION if made.regressions or old else 0)


def _stale(made: Study, days: float) -> bool:
    """Return whether the newest job is older than so many days, and print that on stderr."""
    import time

    from mpiio_ext.analytics.jobs.climate.watch import newest

    last = newest(made.every)
    age = float("inf") if last is None else (time.time() - last) / _DAY_S
    if age > days:
        echo(
            f"stale: the newest job of {made.table.source} began {age:,.0f} days ago, and --stale is {days:g}d",
            err=True,
        )
    return age > days


def _study(options: dict[str, Any]) -> Study:
    """Return the study for the options."""
    from mpiio_ext.analytics.jobs import select
    from mpiio_ext.analytics.jobs.climate.study import study
    from mpiio_ext.analytics.jobs.climate.watch import Options
    from mpiio_ext.analytics.jobs.metrics import alias
    from mpiio_ext.analytics.jobs.regimes import Rules

    options["zone"] = options["time_zone"]
    table, stacking = _read(options["tables"], options["site"])
    table, steps = select(table, rules_of(options))
    steps = [*stacking, *steps]
    table = _chosen(table, steps, options["motif"], options["system"])
    metrics = [alias(name) for name in options["metrics"]]
    target = alias(options["target"])
    table.need(target, *metrics)
    if options["save"] is not None:
        from mpiio_ext.analytics.jobs.files import write

        echo(f"{options['save']}: {amount_text(write(table, options['save']))}", err=True)
    common = {"target": target, "level": options["level"], "step": options["step"]}
    watching = Options(**common, within_days=options["within"] / _DAY_S or None, metrics=metrics or None)
    rules = Rules(**common, short_days=options["short"] / _DAY_S, long_days=options["long"] / _DAY_S)
    return study(table, steps, watching, rules, whole=options["output"] is not None or options["as_json"])


def _tell(made: Study, options: dict[str, Any]) -> None:
    """Print the findings, and make the page if requested."""
    from mpiio_ext.analytics.cli_output import dumps, save
    from mpiio_ext.analytics.jobs.climate import show
    from mpiio_ext.analytics.jobs.filters import zone_of

    zone = zone_of(options["zone"])
    if options["output"] is not None:
        save(options["output"], show.page(made, options["title"], zone))
    if options["as_json"]:
        from mpiio_ext.analytics.jobs.climate.study import document

        echo(dumps(document(made)))
    else:
        echo(show.text(made, zone))
