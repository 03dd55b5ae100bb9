"""The command ``mpiio-ext``.

Subcommands are imported when they are used, so that ``mpiio-ext run``, which starts every rank of a program, loads
neither numpy nor mpi4py nor rich.
"""

from __future__ import annotations

import os

import click

from mpiio_ext.cli.lazy import LazyGroup

__all__ = ["main"]

#: Subcommand -> (module, attribute, help line for `mpiio-ext --help`).
_COMMANDS = {
    "run": ("mpiio_ext.cli.run", "run", "Run an unchanged MPI program with the extension under it."),
    "doctor": ("mpiio_ext.cli.doctor", "doctor", "Examine whether the library works here, and under a program."),
    "trace": ("mpiio_ext.cli.trace", "trace", "Record the I/O calls of an unchanged program."),
    "hints": ("mpiio_ext.cli.hints", "hints", "List every hint, its value in force and where it came from."),
    "layout": ("mpiio_ext.cli.layout", "layout", "Show how files lie on servers, and where each fact came from."),
    "locks": ("mpiio_ext.partitioning.locks.cli", "locks", "Predict what file domains cost under file locks."),
    "tune": ("mpiio_ext.cli.tune", "tune", "Find hints that make a program faster, and prove it before keeping them."),
    "advise": ("mpiio_ext.advise.command", "advise", "Find hints for a program from one traced run of it."),
    "arbiter": ("mpiio_ext.delegates.arbiter.command", "arbiter", "Give the jobs of a machine their I/O nodes."),
    "delegates": ("mpiio_ext.delegates.cli", "delegates", "Watch the I/O delegates of running programs."),
    "arbitrate": ("mpiio_ext.delegates.arbitration.cli", "arbitrate", "Decide which job gets how many I/O nodes."),
    "pioneer": ("mpiio_ext.pioneer.cli", "pioneer", "Make workload paths and profiles of traces, and carry them out."),
    "analyze": ("mpiio_ext.analytics.cli", "analyze", "Analyse I/O logs: Darshan, Slurm, LMT, and runs of the bench."),
    "summarize-job": ("mpiio_ext.analytics.cli_summarize", "summarize_job",
                      "Join what is known of a job's I/O: program, servers, health, scheduler, network."),
    "connector": ("mpiio_ext.analytics.cli_sources", "connector", "Look at monitoring sources, and check a site."),
    "umami": ("mpiio_ext.analytics.cli_umami", "umami", "Show one job against the history of jobs like it."),
    "climate": ("mpiio_ext.analytics.cli_climate", "climate", "Watch histories of jobs: what changed, since when."),
    "completion": ("mpiio_ext.cli.completion", "completion", "Print what makes a shell complete mpiio-ext's words."),
    "report": ("mpiio_ext.cli.report", "report", "Make one HTML page of results of the bench, or compare two sets."),
}


@click.group(cls=LazyGroup, subcommands=_COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mpiio_ext", prog_name="mpiio-ext")
def main() -> None:
    """Collective MPI-IO through file domains that suit the file system, under unchanged programs."""


if "_MPIIO_EXT_COMPLETE" in os.environ:
    from mpiio_ext.cli import bash

    bash.register()
