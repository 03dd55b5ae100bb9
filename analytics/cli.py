"""``mpiio-ext analyze``: the analytics of I/O logs on the command line.

Subcommands are imported when they are called. An error of the analytics is one line (a set-up with several mistakes:
one line each) and exit status 2.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from mpiio_ext.common.commands import LazyGroup, output_option
from mpiio_ext.common.limits import VARIABLE
from mpiio_ext.common.options import Size
from mpiio_ext.common.printing import echo

#: Subcommand -> (module, attribute, help line).
_COMMANDS = {
    "init": ("cli_store", "init", "Convert the logs of a period into the store."),
    "manifest": ("cli_store", "manifest", "Show which log gave which rows, and why others gave none."),
    "place": ("cli_layout", "place", "Lay the tables on storage targets, by ranges of jobs."),
    "query": ("cli_store", "query", "Filter, project and sort a table of the store."),
    "report": ("cli_report", "report", "Make one HTML page of the store."),
    "job": ("cli_report", "job", "Diagnose a job: text, JSON, or an HTML page."),
    "logs": ("cli_report", "logs", "Diagnose Darshan logs without a set-up."),
    "applications": ("cli_analyses", "applications", "Rank applications by bytes read and written."),
    "sequential": ("cli_analyses", "sequential", "How sequential the requests of jobs are (Equation 3)."),
    "read-ratio": ("cli_analyses", "read_ratio", "How much of what jobs move is read (Equation 4)."),
    "sharing": ("cli_analyses", "sharing", "How processes share files: N-N, N-M, N-1 (Equation 5)."),
    "middleware": ("cli_analyses", "middleware", "POSIX, MPI-IO and collective I/O by process count."),
    "striping": ("cli_analyses", "striping", "How many jobs use a layout of their own on Lustre."),
    "root-causes": ("cli_analyses", "root_causes", "Why large jobs had a low bandwidth."),
    "interference": ("cli_layout", "interference", "Whose traffic files met on their OSTs (LMT)."),
    "methods": ("cli_analyses", "methods", "Compare methods of the bench, and show why one was slower."),
    "summarize-job": ("cli_summarize", "summarize_job", "Join what is known of the I/O of jobs, a row a job."),
    "umami": ("cli_umami", "umami", "Show one job against the history of jobs like it."),
    "climate": ("cli_climate", "climate", "Watch histories of jobs: what changed, since when."),
    "connector": ("cli_sources", "connector", "Inspect monitoring sources, and check a site."),
}
_SUBCOMMANDS = {
    name: (f"mpiio_ext.analytics.{module}", attribute, line) for name, (module, attribute, line) in _COMMANDS.items()
}


class _Analyses(LazyGroup):
    """The commands of analyses; a path in place of one is that of a log."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is called: `logs` for a path."""
        path = args and args[0] not in _SUBCOMMANDS and Path(args[0]).exists()
        return super().resolve_command(ctx, ["logs", *args] if path else args)


def _set_log_limit(_context: click.Context, _option: click.Parameter, value: int | None) -> None:
    """Let this process, and those that it starts, read logs of so many bytes."""
    if value is not None:
        os.environ[VARIABLE] = str(value)


@click.group(cls=_Analyses, subcommands=_SUBCOMMANDS, invoke_without_command=True)
@click.option(
    "--results",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Results of the bench: compare the methods in them, and add to their report why one was slower.",
)
@output_option(
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="With --results: the report of the bench with what was found.  [default: report.html in DIR]",
)
@click.option(
    "--log-limit",
    type=Size(1),
    envvar=VARIABLE,
    show_envvar=True,
    expose_value=False,
    callback=_set_log_limit,
    metavar="SIZE",
    help="Read logs with so many bytes when they are unpacked.  [default: 512MiB, and 200 times the packed size]",
)
@click.option("--verbose", is_flag=True, help="Show what Spark and Java print when they start.")
@click.pass_context
def analyze(context: click.Context, results: tuple[Path, ...], output: Path | None, verbose: bool) -> None:
    """Analyse logs of jobs, servers, and runs of the bench: Darshan, Slurm, LMT and others.

    \b
      mpiio-ext analyze init setup.json 2018-01-01 2018-01-31
      mpiio-ext analyze report --setup setup.json -o io.html
      mpiio-ext analyze job 4478544 --setup setup.json
      mpiio-ext analyze logs *.darshan
      mpiio-ext analyze --results bench-results/2026-01-02T03-04-05

    Exit status: 0 done, 2 a set-up, a store or a log that cannot be used.
    """  # noqa: D301  (click wants the backspace character itself)
    context.meta["mpiio_ext.analytics.verbose"] = verbose
    if context.invoked_subcommand is not None:
        if results or output:
            raise click.UsageError("--results and its -o go without a subcommand, or behind `methods` (--results)")
        return
    if not results:
        if output:
            raise click.UsageError("-o is for the report of results: name them by --results DIR")
        echo(context.get_help())
        return
    from mpiio_ext.analytics.cli_analyses import methods
    from mpiio_ext.analytics.cli_report import report_of_bench

    if output is None and len(results) > 1:
        raise click.UsageError("several results: name the report by -o FILE")
    context.invoke(methods, results=results)
    report_of_bench(results, output)
