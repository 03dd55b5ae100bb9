"""``mpiio-ext pioneer timeline``: a trace for Perfetto and Chrome's tracing."""

from __future__ import annotations

from pathlib import Path

import click

from mpiio_ext.common.commands import Command, output_option, reporting, warn
from mpiio_ext.common.options import Existing
from mpiio_ext.common.printing import echo
from mpiio_ext.pioneer.cli_loss import say_loss

#: Without a terminal, interval of the lines that report the progress.
_EVERY_S = 15.0


@click.command(cls=Command, short_help="Make a time line for Perfetto of a trace.")
@click.argument("trace", nargs=-1, required=True, type=Existing(path_type=Path))
@output_option(
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Target of the time line, such as run.pftrace; a name that ends in .gz is compressed.",
)
@click.option("--format", "name", metavar="NAME", help="Format of the trace.  [default: detected]")
def timeline(trace: tuple[Path, ...], output: Path, name: str | None) -> None:
    """Make a time line of a TRACE, which https://ui.perfetto.dev and chrome://tracing open.

    It has tracks for each rank, aggregator, delegate and file; arrows lead from MPI-IO calls to their requests.
    """
    from mpiio_ext.common.files import check_target
    from mpiio_ext.common.progress import progress
    from mpiio_ext.pioneer.timeline import write_timeline

    with reporting(OSError, ValueError):
        check_target(output)
        with progress(1, step="call", every_s=_EVERY_S, name="pioneer timeline") as advance:
            written = write_timeline(trace, output, name, progress=lambda done, whole: advance(to=done, of=whole))
    say_loss(written.info)
    for line in written.notes:
        warn(line)
    echo(f"wrote {output}: {written.text()}")
