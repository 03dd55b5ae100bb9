"""``mpiio-ext report``: the page of a run whose writer was killed, or of a Darshan log."""

from __future__ import annotations

from pathlib import Path

import click

from mpiio_ext.common.commands import Command, output_option, warn
from mpiio_ext.common.options import Existing


@click.command(cls=Command)
@click.argument("source", type=Existing(path_type=Path), metavar="RUNDIR")
@output_option(
    type=click.Path(path_type=Path), metavar="FILE.html", default=Path("io.html"), show_default=True, help="The page."
)
def report(source: Path, output: Path) -> None:
    """Make the page of a run that was killed with all its processes, from the folder of its recordings.

    RUNDIR is the folder `.NAME.*.run` beside the page NAME of `mpiio-ext run --report NAME`, which `run` removes once
    the page is made. RUNDIR may also be a Darshan log of any program. This command does not remove it. For pages of the
    bench use `mpiio-ext bench report`.

    \b
      mpiio-ext report .io.html.3f2a90cc17d04e6b.run -o io.html
    """  # noqa: D301  (click wants the backspace character itself)
    from mpiio_ext.analytics.run.shown import document_at
    from mpiio_ext.cli.logged import RunPage
    from mpiio_ext.common.files import check_target

    check_target(output, [source], example=RunPage.example)
    for line in RunPage(target=output).write(document_at(source)):
        warn(line)
