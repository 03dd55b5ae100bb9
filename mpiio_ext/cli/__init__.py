"""The command ``mpiio-ext``.

Subcommands are imported when they are used, so that ``mpiio-ext run``, which starts every rank of a program, loads
neither numpy nor mpi4py nor rich.
"""

from __future__ import annotations

import os

import click

from mpiio_ext.common.commands import LazyGroup

__all__ = ["main"]

#: Subcommand -> (module, attribute, help line for `mpiio-ext --help`).
_COMMANDS = {
    "run": ("mpiio_ext.cli.run", "run", "Run an unchanged MPI program with the extension under it."),
    "doctor": ("mpiio_ext.cli.doctor", "doctor", "Check whether the library works here, and under a program."),
    "report": ("mpiio_ext.cli.runreport", "report", "Make the page of a run that was killed, or of a Darshan log."),
    "top": ("mpiio_ext.top.command", "top", "Watch your running MPI programs: ranks, files, bandwidth, delegates."),
    "hints": ("mpiio_ext.cli.hints", "hints", "List every hint, its value in force and where it came from."),
    "layout": ("mpiio_ext.cli.layout", "layout", "Show how files lie on servers, and where each fact came from."),
    "subfiles": ("mpiio_ext.subfiles.cli", "main", "Merge, check and show files that are stored as several."),
    "bench": ("mpiio_ext.bench.__main__", "command", "Measure methods on a file system, and report the results."),
    "tune": (
        "mpiio_ext.cli.tune",
        "tune",
        "Find hints that make a program faster, and prove the gain before writing them.",
    ),
    "advise": ("mpiio_ext.advise.command", "advise", "Find hints for a program from one traced run of it."),
    "trace": ("mpiio_ext.cli.trace", "trace", "Record the I/O calls of an unchanged program."),
    "pioneer": ("mpiio_ext.pioneer.cli", "pioneer", "Make workload paths and profiles of traces, and carry them out."),
    "analyze": ("mpiio_ext.analytics.cli", "analyze", "Analyse logs of jobs, servers, and runs of the bench."),
    "delegates": ("mpiio_ext.delegates.cli", "delegates", "Watch I/O delegates, and share I/O nodes among jobs."),
    "locks": ("mpiio_ext.partitioning.locks.cli", "locks", "Predict what file domains cost under file locks."),
    "partitioning": ("mpiio_ext.partitioning.cli", "main", "Show how a method cuts a file region."),
    "help": ("mpiio_ext.cli.help", "help_", "Show a page of the documents."),
    "completion": (
        "mpiio_ext.cli.completion",
        "completion",
        "Print a script with which a shell completes mpiio-ext's words.",
    ),
}
#: Subcommand -> extra that it needs; the others need none.
EXTRAS = {
    "doctor": "doctor",
    "bench": "bench",
    "tune": "tune",
    "advise": "tune",
    "pioneer": "pioneer",
    "analyze": "analytics",
    "report": "analytics",
    "locks": "bench",
    "partitioning": "bench",
}


@click.group(cls=LazyGroup, subcommands=_COMMANDS, extras=EXTRAS)
@click.version_option(package_name="mpiio_ext", prog_name="mpiio-ext")
def main() -> None:
    """Collective MPI-IO through file domains that suit the file system, under unchanged programs.

    Exit status: 0 done, 1 a failure or a negative finding, 2 an argument or file cannot be used.
    """


if "_MPIIO_EXT_COMPLETE" in os.environ:
    from mpiio_ext.cli import bash

    bash.register()
