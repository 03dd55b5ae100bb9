"""``mpiio-ext help``: the pages of the documents, in a terminal."""

from __future__ import annotations

import shutil
import sys

import click

from mpiio_ext.cli.plain import plain
from mpiio_ext.common import guide
from mpiio_ext.common.commands import Command
from mpiio_ext.common.printing import aligned, echo, page
from mpiio_ext.errors import ArgumentError

#: A line that is longer is hard to read; and where no terminal shows the page.
_WIDEST, _WIDTH = 110, 100


@click.command(cls=Command, name="help")
@click.argument("words", metavar="[PAGE]", nargs=-1)
@click.pass_context
def help_(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Show a PAGE of the documents by its name, path or title, such as howto/hdf5; without one, list all pages."""
    if not words:
        for line in aligned([(each, title) for each, title in guide.titles().items()]):
            echo(line)
        return
    try:
        name = guide.page_of(" ".join(words))
    except ArgumentError as error:
        group = ctx.parent and ctx.parent.command
        if isinstance(group, click.Group) and words[0] in group.list_commands(ctx):
            raise ArgumentError(f"{error}; `mpiio-ext {words[0]} --help` describes the command") from error
        raise
    text = plain(guide.text_of(name), name, min(_WIDEST, shutil.get_terminal_size((_WIDTH, 0)).columns))
    if sys.stdout.isatty():
        page([text])
    else:
        echo(text, nl=False)
