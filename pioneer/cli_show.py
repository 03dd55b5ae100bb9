"""``mpiio-ext pioneer show``: a workload path as text."""

from __future__ import annotations

import itertools
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mpiio_ext.common.commands import Command, json_option
from mpiio_ext.common.options import Existing
from mpiio_ext.common.printing import echo, page
from mpiio_ext.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINES = 1000


def _ids(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[int | None, int | None]:
    """Return the ends of a range of global sequence IDs: ``100:200``, ``:50``, ``7``; the last one is included."""
    if value is None:
        return None, None
    found = re.fullmatch(r"(\d*)(:?)(\d*)", value)
    if found is None or value in ("", ":"):
        raise click.BadParameter(f"{value!r} is no range of global sequence IDs; write 100:200, 100:, :200 or 100")
    first, colon, last = found.groups()
    if not colon:
        return int(first), int(first)
    if first and last and int(first) > int(last):
        raise click.BadParameter(f"{value!r}: the first ID is greater than the last one")
    return (int(first) if first else None), (int(last) if last else None)


def _blocks(lines: Iterator[str]) -> Iterator[str]:
    """Yield many lines at a time: writing them one by one takes longer than making them."""
    while block := list(itertools.islice(lines, _LINES)):
        yield "\n".join([*block, ""])


@click.command(cls=Command)
@click.argument("workload_path", metavar="PATH", type=Existing(dir_okay=False, path_type=Path))
@click.option("--operations", callback=_ids, metavar="A:B", help="Global sequence IDs from A to B.")
@click.option(
    "--file", "file", default="", metavar="TEXT", help="Files with TEXT in their names, or like a pattern with * and ?."
)
@click.option("--rank", type=click.IntRange(min=0), metavar="R", help="What rank R makes, with its names of files.")
@click.option("--head", type=click.IntRange(min=0), metavar="N", help="Print only the first N of these operations.")
@click.option("--tail", type=click.IntRange(min=0), metavar="N", help="Print only the last N of these operations.")
@click.option(
    "--fold",
    is_flag=True,
    help="Operations that differ in their offsets alone as one line, a repeated "
    "sequence of up to 8 operations as one line each.",
)
@click.option("--brief", is_flag=True, help="Groups, files and sessions, without the operations.")
@json_option("Print these operations as JSON, a list with one object for each.")
@click.option("--pager/--no-pager", default=None, help="Page through it.  [default: if the output is a terminal]")
def show(
    workload_path: Path,
    operations: tuple[int | None, int | None],
    fold: bool,
    brief: bool,
    as_json: bool,
    pager: bool | None,
    **chosen: Any,
) -> None:
    """Print a workload PATH as text.

    The first word of a line names its kind: path, group, file, session, op.

    \b
      mpiio-ext pioneer show run.parquet --fold
      mpiio-ext pioneer show run.parquet --file "*.nc" | grep root-exclusive
      mpiio-ext pioneer show run.parquet --rank 3 --operations 100:200
      mpiio-ext pioneer show run.parquet --file log --tail 20
    """  # noqa: D301  (click wants the backspace character itself)
    from mpiio_ext.pioneer.path import WorkloadPath
    from mpiio_ext.pioneer.show import Selection, operations_of
    from mpiio_ext.pioneer.show import show as lines_of

    if as_json and (fold or brief):
        raise click.UsageError("--json has every operation: it goes with neither --fold nor --brief")
    selection = Selection(first=operations[0], last=operations[1], **chosen)
    try:
        path = WorkloadPath.load(workload_path)
        if as_json:
            echo(json.dumps(operations_of(path, selection)))
            return
        blocks = _blocks(lines_of(path, str(workload_path), selection, fold=fold, brief=brief))
        if sys.stdout.isatty() if pager is None else pager:
            page(blocks)
        else:
            for block in blocks:
                echo(block, nl=False)
    except BrokenPipeError:  # `| head` has seen enough: click ends quietly
        raise
    except (OSError, ValueError) as error:
        raise ArgumentError(str(error)) from error
