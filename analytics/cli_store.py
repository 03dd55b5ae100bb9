"""``mpiio-ext analyze init``, ``manifest`` and ``query``: fill a store, list its contents, query it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mpiio_ext.analytics.cli_output import FILE_PATH, dumps, miner_of, output_options, show_table, store_options
from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.common.commands import Command
from mpiio_ext.common.printing import echo

if TYPE_CHECKING:
    import pyarrow as pa

    from mpiio_ext.analytics.miner import IOMiner
    from mpiio_ext.analytics.query.tuples import Tuples

#: Rows of a query for the terminal: more than it shows, so that it can print that there are more.
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
    return [
        f"{len(found):,} {status}: {reason}" + (f" ({found[0]}{' …' if len(found) > 1 else ''})" if paths else "")
        for (status, reason), found in ordered
    ]


@click.command("init", cls=Command)
@click.argument("setup", type=FILE_PATH)
@click.argument("start", required=False, metavar="[START]")
@click.argument("end", required=False, metavar="[END]")
def init(setup: Path, start: str | None, end: str | None) -> None:
    """Convert the logs of the days from START to END, both included, into the store of SETUP.

    Days are written 2018-01-31. Without them all logs are converted. Logs that the store has already are not converted
    again.
    """
    with miner_of(setup) as miner:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the report has it
            report = miner.init_stores(start, end)
        echo(str(report))
        lines = _reasons(_logs(miner))
    for line in lines[:_SHOWN_REASONS]:
        echo(f"  {line}")
    if len(lines) > _SHOWN_REASONS:
        echo(f"  … {len(lines) - _SHOWN_REASONS:,} more reasons: mpiio-ext analyze manifest --setup {setup}")


@click.command("manifest", cls=Command)
@store_options
@output_options
@click.option("--all", "every", is_flag=True, help="Also complete logs, and logs of no period so far.")
def manifest(
    setup: Path, anonymous: bool, areas: Path | None, as_json: bool, csv: Path | None, parquet: Path | None, every: bool
) -> None:
    """Show which logs the store knows, how many rows each gave, and why logs are partial or were skipped."""
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
        echo(dumps(summary) if as_json else _counted(counts))
        return
    fine = pc.is_in(logs["status"], value_set=pa.array(["whole", "outside"]))
    shown = logs if every else logs.filter(pc.invert(fine))
    kept = ["kind", "path", "status", "reason", *(name for name in logs.column_names if name.startswith("rows_"))]
    if as_json or csv is not None or parquet is not None:
        show_table(shown.select(kept), as_json=as_json, csv=csv, parquet=parquet)
        return
    echo("\n".join([_counted(counts), *(f"note: {note}" for note in notes)]))
    if shown.num_rows:
        show_table(shown.select(["kind", "path", "status", "reason"]), most=200)


def _counted(counts: dict[str, int]) -> str:
    return "logs: " + (", ".join(f"{count:,} {status}" for status, count in sorted(counts.items())) or "none")


def _named(text: str, option: str, form: str) -> tuple[str, str]:
    """Return the name of a new column, and its expression."""
    new, found, made = text.partition("=")
    if not found or not new.strip().isidentifier() or not made.strip():
        raise click.UsageError(f"{option} {text!r}: write {form}")
    return new.strip(), made.strip()


def _grouped(tuples: Tuples, bins: Sequence[str], group: str | None, computed: Sequence[str]) -> Tuples:
    """Return tuples with the columns of bins, and one tuple for each group if requested."""
    if computed and group is None:
        raise click.UsageError("--compute makes columns of groups; name the groups by --group COLUMNS")
    for text in bins:
        form = "NEW=COLUMN:EDGES, such as size=bytes_read:1GB,1TB"
        new, made = _named(text, "--bin", form)
        column, _, edges = made.partition(":")
        if not edges:
            raise click.UsageError(f"--bin {text!r}: write {form}")
        tuples = tuples.bin(new, [edge.strip() for edge in edges.split(",")], column.strip())
    if group is None:
        return tuples
    values = dict(_named(text, "--compute", "NEW=AGGREGATE, such as moved=sum(bytes_read)") for text in computed)
    return tuples.group([name.strip() for name in group.split(",")], values or {"rows": "count()"})


def _asked(miner: IOMiner, table: str, options: dict[str, Any]) -> Tuples:
    """Return all tuples that the options select."""
    tuples = miner.load(table)
    if options["filters"]:
        tuples = tuples.filter(*options["filters"])
    for other in options["joins"]:
        name, _, key = other.partition(":")
        tuples = tuples.join(miner.load(name), key or "job_id")
    tuples = _grouped(tuples, options["bins"], options["group"], options["computed"])
    if options["sorts"]:  # before the projection, which may leave the column out
        tuples = tuples.sort(*options["sorts"])
    if options["percentiles"]:
        return tuples.percentile(options["percentiles"])
    if options["columns"]:
        return tuples.project(*(name.strip() for group in options["columns"] for name in group.split(",")))
    return tuples


@click.command("query", cls=Command)
@click.argument("table")
@click.option("--filter", "filters", multiple=True, metavar="CONDITION", help='Such as "bytes_written < 1GB".')
@click.option("--join", "joins", multiple=True, metavar="TABLE[:COLUMN]", help="Join another table, by job_id.")
@click.option(
    "--bin",
    "bins",
    multiple=True,
    metavar="NEW=COLUMN:EDGES",
    help='New column: how many of the edges are not above the value: "size=bytes_read:1GB,1TB".',
)
@click.option("--group", metavar="COLUMNS", help="One row for each of the values of these columns, with commas.")
@click.option(
    "--compute",
    "computed",
    multiple=True,
    metavar="NEW=AGGREGATE",
    help='Column of a group, such as "moved=sum(bytes_read)".  [default: rows=count()]',
)
@click.option("--project", "columns", multiple=True, metavar="COLUMNS", help="Columns, with commas between them.")
@click.option("--percentile", "percentiles", metavar="COLUMN", help="The percentiles of a column.")
@click.option("--sort", "sorts", multiple=True, metavar="COLUMN", help="Order; -COLUMN: largest first.")
@click.option("--limit", type=click.IntRange(min=1), help="Rows at most; default: all, on the terminal the first.")
@click.option(
    "--sql", "as_sql", is_flag=True, help="Print the query as SQL of the store's engine; do not carry it out."
)
@store_options
@output_options
def query(table: str, **options: Any) -> None:
    """Filter, join, bin, group, project and sort TABLE: darshan_job, darshan_file, slurm, lmt, runs.

    \b
      mpiio-ext analyze query darshan_job --filter "bytes_written > 10GB" --project job_id,app --sort -bytes_written
      mpiio-ext analyze query darshan_job --group app --compute "moved=sum(bytes_written)" --sort -moved
    """  # noqa: D301  (click wants the backspace character itself)
    if options["areas"] is not None:
        raise click.UsageError("--areas: only analyses name science areas; --anonymous leaves applications out")
    if options["percentiles"] and (options["columns"] or options["sorts"]):
        raise click.UsageError("--percentile has columns and an order of its own; not with --project or --sort")
    if options["anonymous"] and (options["bins"] or options["computed"]):
        raise click.UsageError("--bin and --compute give columns names of their own; not with --anonymous")
    on_terminal = not (options["as_json"] or options["csv"] or options["parquet"])
    if options["as_sql"] and (options["anonymous"] or not on_terminal):
        raise click.UsageError("--sql prints a query, and no rows; not with --anonymous, --json, --csv or --parquet")
    with miner_of(options["setup"]) as miner:
        tuples = _asked(miner, table, options)
        if options["limit"] or (on_terminal and not options["as_sql"]):
            tuples = tuples.limit(options["limit"] or _MOST_ROWS)
        if options["as_sql"]:
            echo(tuples.sql())
            return
        rows = tuples.arrow()
    if options["anonymous"]:
        from mpiio_ext.analytics.anonymous import without_secrets

        rows = without_secrets(rows)
        if not rows.column_names:
            raise AnalyticsError("--anonymous leaves nothing: all columns name someone, a job or a time")
    show_table(
        rows,
        as_json=options["as_json"],
        csv=options["csv"],
        parquet=options["parquet"],
        most=101 if options["percentiles"] else 60,
    )
    if on_terminal and not options["limit"] and rows.num_rows == _MOST_ROWS:
        echo(f"Only {_MOST_ROWS:,} rows were requested; --limit, --json, --csv and --parquet return more.")
