"""``mpiio-ext hints``: what there is, what is in force, and where it came from."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from mpiio_ext.hints import HintValue

__all__ = ["hints"]

#: Columns of a table that goes into a pipe or a file.
_PIPE_COLUMNS = 400
#: From here on there is room for the type and the default.
_WIDE_COLUMNS = 110


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--path", default="", metavar="FILE", help="Name by which the program opens the file.")
@click.option("--set", "only_set", is_flag=True, help="Only what somebody has set: hints whose source is not default.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--markdown", is_flag=True, help="Print the table of docs/hints.md: every hint and its default.")
def hints(path: str, only_set: bool, as_json: bool, markdown: bool) -> None:
    """List every hint with its type, default, value in force and the source of that value.

    Sources, weakest first: default, /etc/romio-hints, openmpi-mca-params.conf, site file, Open MPI parameter (--mca,
    OMPI_MCA_NAME), ROMIO_HINTS, MPI_Info (the program's; unknown here), MPICH_MPIIO_HINTS, MPIOX_HINTS_FILE,
    MPIOX_HINTS. Problems in files and variables are told on standard error and make the exit status 1.
    """
    from mpiio_ext import hints as library

    if markdown:
        click.echo(library.markdown_table(), nl=False)
        return
    values = [item for item in library.in_force(path) if not only_set or item.source != "default"]
    if as_json:
        rows = [
            {
                "name": item.spec.name,
                "type": item.spec.type,
                "values": item.spec.values,
                "default": item.spec.default,
                "value": item.value,
                "source": item.source,
                "description": item.spec.description,
            }
            for item in values
        ]
        click.echo(json.dumps({"path": path, "hints": rows}, indent=2))
    elif values or not only_set:
        _print_table(values, path)
    else:
        click.echo("no hint is set: all have their defaults")
    found = library.problems(path)
    for line in found:
        click.echo(f"mpiio-ext: {line}", err=True)
    if found:
        raise SystemExit(1)


def _print_table(values: Sequence[HintValue], path: str) -> None:
    """Print hints as a table whose names are never broken: people search them; a pipe gets lines of any length."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else _PIPE_COLUMNS)
    wide = console.width >= _WIDE_COLUMNS
    table = Table(title=f"Hints for {path}" if path else "Hints", title_justify="left")
    for title in ("hint", *(["type"] if wide else []), "value", "source", *(["default"] if wide else []), "meaning"):
        table.add_column(title, overflow="fold", no_wrap=title == "hint")
    for item in values:
        spec = item.spec
        style = None if item.source == "default" else "bold"
        more = ([spec.type], [spec.default]) if wide else ([], [])
        table.add_row(spec.name, *more[0], item.value, item.source, *more[1], spec.description, style=style)
    console.print(table, markup=False)
