"""A group of subcommands that are imported when they are called.

``mpiio-ext run`` starts every rank of a program and must load neither numpy nor mpi4py nor rich; the help of a group
needs nothing but names and lines.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem

__all__ = ["LazyGroup", "complete_command", "complete_hint"]

#: Types of hints whose allowed values are a list of words.
_WITH_LIST = frozenset({"boolean", "choice"})


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called.

    Parameters
    ----------
    subcommands : mapping of str to (str, str, str)
        Name -> (module, attribute that is the command, help line), in the order of the help.
    """

    def __init__(self, *arguments: Any, subcommands: Mapping[str, tuple[str, str, str]], **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._subcommands = dict(subcommands)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of the subcommands."""
        return list(self._subcommands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a subcommand; None where there is none of this name."""
        if cmd_name not in self._subcommands:
            return None
        module, attribute, _ = self._subcommands[cmd_name]
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the names of subcommands that begin so, without importing them; else the options."""
        names = [name for name in self._subcommands if name.startswith(incomplete)]
        found = [CompletionItem(name, help=self._subcommands[name][2]) for name in names]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the table of subcommands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in self._subcommands.items()])


def complete_command(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let the shell complete the words of a program's command line as names of files."""
    return [CompletionItem(incomplete, type="file")]


def complete_hint(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let the shell complete ``[GLOB:]NAME=VALUE``: names of hints, and values where a hint has but a few."""
    from mpiio_ext.hints import registry

    glob, colon, pair = incomplete.rpartition(":")
    name, equals, value = pair.partition("=")
    if not equals:
        found = [spec for spec in registry() if spec.name.startswith(name)]
        return [CompletionItem(f"{glob}{colon}{spec.name}=", help=spec.description) for spec in found]
    lists = [spec.values.split(" | ") for spec in registry() if spec.name == name and spec.type in _WITH_LIST]
    values = [word for words in lists for word in words if word.startswith(value)]
    return [CompletionItem(f"{glob}{colon}{name}={word}") for word in values]
