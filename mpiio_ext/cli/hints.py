"""``mpiio-ext hints``: all hints, their values in force, and the sources of these."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from mpiio_ext.cli.tables import print_table, terminal_columns
from mpiio_ext.cli.words import complete_name
from mpiio_ext.common.commands import Command, json_option, warn
from mpiio_ext.common.printing import echo

if TYPE_CHECKING:
    from mpiio_ext.hints import HintValue

#: From here on there is room for the type and the default.
_WIDE_COLUMNS = 110


@click.command(cls=Command)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_name)
@click.option("--path", default="", metavar="FILE", help="Name by which the program opens the file.")
@click.option("--changed", "only_set", is_flag=True, help="Only hints that are set: those whose source is not default.")
@json_option()
@click.option("--markdown", is_flag=True, help="Print the table of the page reference/hints: every hint, its default.")
def hints(names: tuple[str, ...], path: str, only_set: bool, as_json: bool, markdown: bool) -> None:
    """List every hint, or those of the NAMEs, with type, default, value in force and the source of that value.

    Sources, weakest first: default, /etc/romio-hints, openmpi-mca-params.conf, site file, Open MPI parameter (--mca,
    OMPI_MCA_NAME), ROMIO_HINTS, MPI_Info (the program's; unknown here), MPICH_MPIIO_HINTS, MPIOX_HINTS_FILE,
    MPIOX_HINTS. Problems in files and variables are printed on standard error and make the exit status 1.
    """
    from mpiio_ext import hints as library

    if markdown:
        echo(library.markdown_table(), nl=False)
        return
    known = {item.name for item in library.registry()}
    for name in names:
        if name not in known:
            library.check(name, "")  # names the nearest one
            raise click.BadParameter(f"{name} is passed on to the MPI library, which alone knows its value")
    values = [
        item
        for item in library.in_force(path)
        if (not only_set or item.source != "default") and (not names or item.spec.name in names)
    ]
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
        echo(json.dumps({"path": path, "hints": rows}, indent=2))
    elif values or not only_set:
        _print_table(values, path)
    else:
        echo("no hint is set: all have their defaults")
    found = library.problems(path)
    for line in found:
        warn(line)
    if found:
        raise SystemExit(1)


def _print_table(values: Sequence[HintValue], path: str) -> None:
    """Print hints; type and default if there is room for them."""
    wide = terminal_columns() >= _WIDE_COLUMNS
    rows = [
        [
            spec.name,
            *([spec.type] if wide else []),
            item.value,
            item.source,
            *([spec.default] if wide else []),
            spec.description,
        ]
        for item in values
        for spec in [item.spec]
    ]
    heads = ["hint", *(["type"] if wide else []), "value", "source", *(["default"] if wide else []), "meaning"]
    chosen = {number for number, item in enumerate(values) if item.source != "default"}
    print_table(heads, rows, title=f"Hints for {path}" if path else "Hints", bold=chosen)
