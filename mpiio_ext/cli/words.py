"""Words that a shell completes where click cannot know them: programs, and hints with their values."""

from __future__ import annotations

from collections.abc import Callable

import click
from click.shell_completion import CompletionItem

from mpiio_ext.common.commands import Decorated, all_of

#: Types of hints whose allowed values are a list of words.
_WITH_LIST = frozenset({"boolean", "choice"})


def complete_command(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let the shell complete the words of a program's command line as names of files."""
    return [CompletionItem(incomplete, type="file")]


#: The program that a command starts, with its arguments.
program_argument = click.argument(
    "command",
    nargs=-1,
    required=True,
    type=click.UNPROCESSED,
    metavar="[--] PROGRAM [ARGS]...",
    shell_complete=complete_command,
)


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


def hint_options(
    hint: str = "Set a hint, for matching files only.",
    file: str = "Take hints from FILE (sections of [GLOB], lines of NAME = VALUE).",
) -> Callable[[Decorated], Decorated]:
    """Return ``-H, --hint`` and ``--hints-file`` with these helps."""
    options = [
        click.option(
            "-H", "--hint", multiple=True, metavar="[GLOB:]NAME=VALUE", shell_complete=complete_hint, help=hint
        ),
        click.option("--hints-file", metavar="FILE", help=file),
    ]
    return lambda function: all_of(function, options)


def complete_name(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let the shell complete the name of a hint."""
    from mpiio_ext.hints import registry

    return [CompletionItem(spec.name, help=spec.description) for spec in registry() if spec.name.startswith(incomplete)]
