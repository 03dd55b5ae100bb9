"""``mpirun -n P mpiio-ext bench explore``: the command line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from mpiio_ext.bench.arguments import HintType
from mpiio_ext.bench.explore.explore import Options
from mpiio_ext.bench.explore.spec import PAPER, Spec, parse
from mpiio_ext.common.commands import Command, output_option
from mpiio_ext.common.options import Counts, Size
from mpiio_ext.delegates.arbiter.mapfile import MOST_NODES
from mpiio_ext.errors import ArgumentError

_FOLDER = click.Path(path_type=Path)
#: Set by the patterns and by --io-nodes.
_TAKEN = ("mpiox_enable", "mpiox_delegates", "mpiox_delegate_mode", "mpiox_delegate_owners", "mpiox_arbiter")

_EPILOG = f"""
\b
Patterns: words in any order, separated by commas
  shared | individual, contiguous | strided, write | read, the size of a request, the total size of all ranks,
  seconds of a stonewall as in 5s, direct (O_DIRECT); a request size is needed, the rest has defaults
  {PAPER}: the 21 patterns of the arbitration paper, 3 layouts with 7 request sizes
  FILE.json: a pattern of FORGE, a list of them, or its phases

\b
Examples:
  mpirun -n 4 mpiio-ext bench explore --io-nodes 0,1,2,4 --pattern shared,strided,64KiB,256MiB,5s
  mpirun -n 4 mpiio-ext bench explore --io-nodes 0,1,2 --pattern {PAPER} --size 64MiB --path /lustre/me
  mpirun -n 4 mpiio-ext bench explore --pattern forge.json --path /lustre/me

Exit status: 0 done, 1 a run failed, 2 bad argument or path, 3 wrong data.
"""


def _counts(ctx: click.Context, param: click.Parameter, value: tuple[int, ...] | None) -> tuple[int, ...]:
    if value and max(value) > MOST_NODES:
        raise click.BadParameter(f"{max(value)}: a job has {MOST_NODES} delegates at most", ctx, param)
    return value or ()


class _Asked:
    """The requests of all --pattern options together."""

    def __init__(self, total_bytes: int) -> None:
        self._total_bytes = total_bytes
        self.specs: list[Spec] = []
        self.path: Path | None = None
        self.threads: int | None = None
        self.notes: list[str] = []

    def add(self, text: str) -> None:
        if not text.endswith(".json"):
            self.specs += parse(text, total_bytes=self._total_bytes)
            return
        from mpiio_ext.bench.explore import forge  # with pydantic, which no rank needs otherwise

        found = forge.read(Path(text))
        self.specs += found.specs
        self.path = self.path or found.path
        if self.threads not in (None, found.threads) and found.threads is not None:
            raise ArgumentError(
                f"{text}: dispatchers {found.threads}, and {self.threads} in another file: the "
                "delegates of a run are started once; explore them in runs of their own"
            )
        self.threads = found.threads or self.threads
        self.notes += [f"{text}: {note}" for note in found.notes]


@click.command(
    cls=Command,
    name="mpiio-ext bench explore",
    epilog=_EPILOG,
    context_settings={"max_content_width": 110, "show_default": True},
)
@click.option(
    "--io-nodes",
    type=Counts(),
    metavar="LIST",
    callback=_counts,
    show_default="forwarders of FORGE's files",
    help=f"Numbers of I/O delegates up to {MOST_NODES}, as 0,1,2,4 or 0..8 or 0..64:16; 0 = without.",
)
@click.option(
    "--pattern",
    "patterns",
    multiple=True,
    required=True,
    metavar="WORDS|FILE.json",
    help="Patterns to measure, see below; may be repeated.",
)
@click.option(
    "--size", type=Size(), default="64MiB", metavar="SIZE", help="Total size of all ranks, if the pattern has none."
)
@click.option(
    "-r",
    "--repeats",
    "repetitions",
    type=click.IntRange(min=1),
    default=3,
    metavar="N",
    help="The numbers of delegates alternate inside each.",
)
@click.option(
    "--path",
    type=_FOLDER,
    metavar="FOLDER",
    show_default="that of FORGE's file, or .",
    help="Existing folder on the file system to measure; a temporary folder is made in it.",
)
@output_option(type=_FOLDER, metavar="FOLDER", show_default="./bench-results/explore-<date>", help="Where results go.")
@click.option(
    "--store",
    type=_FOLDER,
    metavar="FILE",
    help="Add the curves to this store, each as a new version, as `arbitrate curves` does.",
)
@click.option(
    "--program",
    default="",
    metavar="NAME",
    show_default="none",
    help="Store the curve of all patterns together under this name, too: for `arbiter --curves`.",
)
@click.option(
    "--delegate-mode",
    type=click.Choice(["spawn", "split", "process", "thread", "auto"]),
    default="spawn",
    help="How delegates are started.",
)
@click.option(
    "-H", "--hint", type=HintType(), multiple=True, metavar="NAME=VALUE", help="Hint for every file; may be repeated."
)
@click.option("--sync", is_flag=True, show_default=False, help="Write the data to stable storage inside the time.")
@click.option("--verify/--no-verify", default=True, help="Compare every byte, outside the time.")
@click.option("--page/--no-page", "report", default=True, help="Draw the curves and make index.html.")
@click.option(
    "--progress/--no-progress",
    default=None,
    show_default="a bar on a terminal, elsewhere lines",
    help="Show progress: the row, of how many, and the time that is left.",
)
def command(
    size: int, hint: tuple[tuple[str, str], ...], patterns: tuple[str, ...], path: Path | None, **values: Any
) -> Options:
    """Measure access patterns with different numbers of I/O delegates, and write bandwidth curves for arbitration.

    The largest number of delegates is started once; each measurement uses as many of them as its point of the curve
    needs. Run it under mpirun; ranks may outnumber processors.
    """
    asked = _Asked(size)
    hints = dict(hint)
    try:
        for text in patterns:
            asked.add(text)
    except ArgumentError as error:
        raise click.BadParameter(str(error), param_hint="'--pattern'") from error
    for name in _TAKEN:
        if name in hints:
            raise click.BadParameter(f"{name} is set by what is explored", param_hint="'--hint'")
    if asked.threads is not None:
        hints.setdefault("mpiox_delegate_threads", str(asked.threads))
    if values["program"] and not re.fullmatch(r"[A-Za-z0-9._+-]{1,63}", values["program"]):
        raise click.BadParameter("letters, digits and ._+- only, 63 at most", param_hint="'--program'")
    return Options(
        specs=tuple(dict.fromkeys(asked.specs)),
        path=path or asked.path or Path(),
        hints=hints,
        notes=tuple(asked.notes),
        **values,
    )
