"""``mpiio-ext delegates arbiter slurm-watch``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from mpiio_ext.common.commands import Command, warn
from mpiio_ext.common.options import Duration
from mpiio_ext.common.printing import echo
from mpiio_ext.delegates.arbiter.command import repeat, stopping
from mpiio_ext.errors import MpiioExtError

_FOLDER = click.Path(path_type=Path)


class _Watch:
    """Repeats the query; a failure is reported when it begins."""

    def __init__(self, folder: Path, command: tuple[str, ...], source: Path | None, whole: bool) -> None:
        self._folder, self._command, self._source, self._whole = folder, command, source, whole
        self._reported: set[str] = set()

    def _text(self) -> str:
        from mpiio_ext.delegates.arbiter.slurm.connector import query

        if self._source is None:
            return query(self._command)
        if str(self._source) == "-":
            return sys.stdin.read()
        return self._source.read_text(encoding="utf-8", errors="replace")

    def step(self) -> None:
        """Look.

        Raises
        ------
        MpiioExtError, OSError
            There is no list, or the folder cannot be written.
        """
        from mpiio_ext.delegates.arbiter.slurm.connector import sync

        changed, bad = sync(self._folder, self._text(), whole=self._whole)
        for line in changed:
            echo(line)
        for line in bad:
            if line not in self._reported:
                warn(f"left out: {line}")
        self._reported = set(bad)


@click.command("slurm-watch", cls=Command)
@click.option("--dir", "folder", type=_FOLDER, required=True, metavar="FOLDER", help="The arbiter's.")
@click.option(
    "--interval",
    type=Duration(least=1),
    default="10s",
    show_default=True,
    help="Time between two queries of the controller.",
)
@click.option("--once", is_flag=True, help="Query once, and exit.")
@click.option(
    "--command",
    "words",
    metavar="TEXT",
    help="Command to run instead of squeue: it prints a list of jobs with the names of its columns, separated by |, "
    "or JSON.",
)
@click.option(
    "--input",
    "source",
    type=_FOLDER,
    metavar="FILE",
    help="Read a list from a file, or from - (standard input), and exit.",
)
@click.option("--part", is_flag=True, help="The list is not of all jobs: jobs that it does not name stay as they are.")
def watch(folder: Path, interval: float, once: bool, words: str | None, source: Path | None, part: bool) -> None:
    """Report to the arbiter which jobs Slurm runs, and which have ended, until interrupted.

    \b
      mpiio-ext delegates arbiter slurm-watch --dir /scratch/arbiter
      sacct --allusers --allocations --parsable2 --format=JobIDRaw,JobID,State,NNodes,NTasks,AllocCPUS,JobName |
        mpiio-ext delegates arbiter slurm-watch --dir /scratch/arbiter --input - --part

    The first line of a list names its columns: no --noheader (-n). A job ends when Slurm gives it an end state, such as
    COMPLETED. A job that two lists in a row do not name is no longer expected, but has its I/O nodes for as long as it
    runs.

    Exit status with --once and --input: 0 done, 2 there is no list of jobs, or the folder cannot be written.
    """  # noqa: D301  (click wants the backspace character itself)
    from mpiio_ext.delegates.arbiter.slurm.connector import COMMAND

    if words is not None and source is not None:
        raise click.UsageError("--command and --input exclude each other")
    if not folder.is_dir():
        raise click.BadParameter(f"{folder}: no such folder; start the arbiter first", param_hint="'--dir'")
    looker = _Watch(folder, tuple(shlex.split(words)) if words else COMMAND, source, whole=not part)
    if once or source is not None:
        try:
            looker.step()
        except (MpiioExtError, OSError) as error:
            warn(error)
            raise SystemExit(2) from error
        return
    # The controller restarts, the disk is full: the earlier facts stay.
    repeat(looker.step, stopping(), interval, MpiioExtError)
