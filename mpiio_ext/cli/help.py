"""``mpiio-ext help``: the pages of the documents, in a terminal."""

from __future__ import annotations

import sys

import click

from mpiio_ext.common import guide
from mpiio_ext.common.commands import HELP
from mpiio_ext.common.printing import aligned, echo, page


@click.command(name="help", context_settings=HELP)
@click.argument("name", metavar="[PAGE]", required=False)
def help_(name: str | None) -> None:
    """Show a PAGE of the documents, such as howto/hdf5; without one, list all pages."""
    if name is None:
        for line in aligned([(each, title) for each, title in guide.titles().items()]):
            echo(line)
        return
    text = guide.text_of(name)
    if sys.stdout.isatty():
        page([text])
    else:
        echo(text, nl=False)
