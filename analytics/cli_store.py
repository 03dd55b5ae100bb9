"""``mpiio-ext analyze init``, ``manifest`` and ``query``: fill a store, look what is in it, ask it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mpiio_ext.analytics.cli_output import HELP, dumps, miner_of, output_options, show_table, store_options
from mpiio_ext.analytics.errors import AnalyticsError

if TYPE_CHECKING:
    import pyarrow as pa

    from mpiio_ext.analytics.miner import IOMiner

__all__ = ["init", "manifest", "query"]

_SETUP = click.Path(path_type=Path, dir_okay=False)
#: Rows of a query that the terminal asks for: more than it shows, so that it can say that there are more.
_MOST_ROWS = 1000
#: Reasons that are printed after a fill; the manifest has all of them.
_SHOWN_REASONS = 5


def _logs(miner: IOMiner) -> pa.Table:
    """Return the store's table of logs: kind, path, status, reason, rows of each table."""
    from mpiio_ext.analytics.store.logtable import read_logs

    catalog = miner.catalog
    return read_logs(catalog.folder, catalog.manifest.logs)


def _reasons(logs: pa.Table, *, paths: bool = True) -> list[str]:
    """Return a line for each reason why logs are not whole, the most frequent first."""
    counts: dict[tuple[str, str], list[str]] = {}
    for row in logs.select(["status", "reason", "path"]).to_pylist():
        if row["status"] not in ("whole", "outside"):
            counts.setdefault((row["status"], row["reason"] or "no reason given"), []).append(row["path"])
    ordered = sorted(counts.items(), key=lambda item: (-len(item[1]), item[0]))
    return [f"{len(found):,} {status}: {reason}" + (f" ({found[0]}{' …' if len(found) > 1 else ''})" if paths else "")
            for (status, reason), found in ordered]  # fmt: skip


@click.command("init", context_settings=HELP)
@click.argument("setup", type=_SETUP)
@click.argument("start", required=False, metavar="[START]")
@click.argument("end", required=False, metavar="[END]")
@click.option("--quiet", is_flag=True, help="No progress.")
def init(setup: Path, start: str | None, end: str | None, quiet: bool) -> None:
    """Convert the logs of the days from START to END, both included, into the store of SETUP.

    Days are written 2018-01-31. Without them all logs are converted. What the store has already is not converted again.
    """
    with miner_of(setup) as miner:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the report says it
            report = miner.init_stores(start, end, quiet=True if quiet else None)
        click.echo(str(report))
        lines = _reasons(_logs(miner))
    for line in lines[:_SHOWN_REASONS]:
        click.echo(f"  {line}")
    if len(lines) > _SHOWN_REASONS:
        click.echo(f"  … {len(lines) - _SHOWN_REASONS:,} more reasons: mpiio-ext analyze manifest --setup {setup}")


@click.command("manifest", context_settings=HELP)
@store_options
@output_options
@click.option("--all", "every", is_flag=True, help="Also logs that are whole, or of no period so far.")
def manifest(
    setup: Path, anonymous: bool, areas: Path | None, as_json: bool, csv: Path | None, parquet: Path | None, every: bool
) -> None:
    """Say which logs the store knows, what each gave, and why logs are partial or were skipped."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if areas is not None:
        raise click.UsageError("--areas: a manifest names no applications")
    with miner_of(setup) as miner:
        logs, notes = _logs(miner), miner.catalog.manifest.notes
    counts = {row["values"]: row["counts"] for row in pc.value_counts(logs["status"]).to_pylist()}
    if anonymous:
        if csv is not None or parquet is not None:
            raise click.UsageError("--anonymous: a table of logs consists of names; without a file it is counts alone")
        summary = {"logs": logs.num_rows, "status": counts}
        click.echo(dumps(summary) if as_json else _counted(counts))
        return
    fine = pc.is_in(logs["status"], value_set=pa.array(["whole", "outside"]))
    shown = logs if every else logs.filter(pc.invert(fine))
    kept = ["kind", "path", "status", "reason", *(name for name in logs.column_names if name.startswith("rows_"))]
    if as_json or csv is not None or parquet is not None:
        show_table(shown.select(kept), as_json=as_json, csv=csv, parquet=parquet)
        return
    click.echo("\n".join([_counted(counts), *(f"note: {note}" for note in notes)]))
    if shown.num_rows:
        show_table(shown.select(["kind", "path", "status", "reason"]), most=200)


def _counted(counts: dict[str, int]) -> str:
    return "logs: " + (", ".join(f"{count:,} {status}" for status, count in sorted(counts.items())) or "none")


@click.command("query", context_settings=HELP)
@click.argument("table")
@click.option("--filter", "filters", multiple=True, metavar="CONDITION", help='Such as "bytes_written < 1GB".')
@click.option("--join", "joins", multiple=True, metavar="TABLE[:COLUMN]", help="Join another table, by job_id.")
@click.option("--project", "columns", multiple=True, metavar="COLUMNS", help="Columns, with commas between them.")
@click.option("--percentile", "percentiles", metavar="COLUMN", help="The percentiles of a column.")
@click.option("--sort", "sorts", multiple=True, metavar="COLUMN", help="Order; -COLUMN: largest first.")
@click.option("--limit", type=click.IntRange(min=1), help="Rows at most; default: all, on the terminal the first.")
@click.option("--explain", is_flag=True, help="Print the plan of the engine instead of the rows.")
@store_options
@output_options
def query(
    table: str,
    filters: tuple[str, ...],
    joins: tuple[str, ...],
    columns: tuple[str, ...],
    percentiles: str | None,
    sorts: tuple[str, ...],
    limit: int | None,
    explain: bool,
    setup: Path,
    anonymous: bool,
    areas: Path | None,
    as_json: bool,
    csv: Path | None,
    parquet: Path | None,
) -> None:
    """Filter, join, project and sort TABLE: darshan_job, darshan_file, slurm, lmt, runs.

    \b
      mpiio-ext analyze query darshan_job --filter "bytes_written > 10GB" --project job_id,app --sort -bytes_written
    """  # noqa: D301  (click wants the backspace character itself)
    if areas is not None:
        raise click.UsageError("--areas: only analyses name science areas; --anonymous leaves applications out")
    if percentiles and (columns or sorts):
        raise click.UsageError("--percentile has columns and an order of its own; not with --project or --sort")
    if anonymous and explain:
        raise click.UsageError("--explain prints conditions and paths; not with --anonymous")
    with miner_of(setup) as miner:
        tuples = miner.load(table)
        if filters:
            tuples = tuples.filter(*filters)
        for other in joins:
            name, _, key = other.partition(":")
            tuples = tuples.join(miner.load(name), key or "job_id")
        if sorts:  # before the projection, which may leave the column out
            tuples = tuples.sort(*sorts)
        if percentiles:
            tuples = tuples.percentile(percentiles)
        elif columns:
            tuples = tuples.project(*(name.strip() for group in columns for name in group.split(",")))
        on_terminal = not (as_json or csv or parquet)
        if limit or on_terminal:
            tuples = tuples.limit(limit or _MOST_ROWS)
        if explain:
            click.echo(tuples.explain())
            return
        rows = tuples.arrow()
    if anonymous:
        from mpiio_ext.analytics.anonymous import without_secrets

        rows = without_secrets(rows)
        if not rows.column_names:
            raise AnalyticsError("--anonymous leaves nothing: all columns name someone, a job or a time")
    show_table(rows, as_json=as_json, csv=csv, parquet=parquet, most=101 if percentiles else 60)
    if on_terminal and not limit and rows.num_rows == _MOST_ROWS:
        click.echo(f"Only {_MOST_ROWS:,} rows were asked for; --limit, --json, --csv and --parquet go further.")
