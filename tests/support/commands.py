"""All commands of the command line that do something, by their words."""

from __future__ import annotations

from collections.abc import Iterator

import click

from mpiio_ext.cli import main


def leaves(
    command: click.Command, context: click.Context, words: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    """Yield the words of all commands that do something, and the commands."""
    if not isinstance(command, click.Group):
        yield " ".join(words), command
        return
    for name in command.list_commands(context):
        one = command.get_command(context, name)
        assert one is not None
        yield from leaves(one, click.Context(one, info_name=name, parent=context), (*words, name))
    if command.invoke_without_command:
        yield " ".join(words), command


COMMANDS = dict(leaves(main, click.Context(main, info_name="mpiio-ext")))
