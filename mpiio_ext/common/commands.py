"""What all commands share: groups whose commands are imported late, old spellings, errors and exit status, options.

Problem. Dozens of commands in many packages have to behave as one program. Each rank of ``mpirun mpiio-ext run`` pays
for what the command line imports.

Algorithm. A group knows name, module and help line of its commands, and imports one when it is called. Errors of the
package reach the group, which prints them and chooses the exit status. An option of many commands is declared here.

Guarantees. Exit status 0: done; 1: a failure, or a negative finding; 2: what was given cannot be used. An error is one
line of standard error, or a line for each mistake. Old spellings of a command do the same as the new ones.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from mpiio_ext.common.extras import needing
from mpiio_ext.errors import MpiioExtError

__all__ = ["FAILED", "HELP", "UNUSABLE", "LazyGroup", "all_of", "json_option"]

#: Exit status: a failure or a negative finding; what was given cannot be used.
FAILED, UNUSABLE = 1, 2
#: `context_settings` of every command.
HELP = {"help_option_names": ["-h", "--help"]}

Command = TypeVar("Command", bound=Callable[..., Any])


def all_of(function: Command, options: Sequence[Any]) -> Command:
    """Put options on a command, the first one first in its help."""
    for option in reversed(options):
        function = option(function)
    return function


def json_option(what: str = "Print JSON.") -> Callable[[Command], Command]:
    """Return ``--json``: the result as JSON on standard output."""
    return click.option("--json", "as_json", is_flag=True, help=what)


@contextlib.contextmanager
def _said() -> Iterator[None]:
    try:
        yield
    except MpiioExtError as error:
        for line in str(error).splitlines() or [type(error).__name__]:
            click.echo(f"mpiio-ext: {line}", err=True)
        raise SystemExit(getattr(error, "exit_status", UNUSABLE)) from error


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called, and whose errors are lines.

    Parameters
    ----------
    subcommands : mapping of str to (str, str, str)
        Name -> (module, attribute that is the command, help line), in the order of the help.
    extras : mapping of str to str
        Name -> extra whose packages the command needs.
    old : mapping of str to str
        Old name -> new words. An old name is not listed; it works and says the new one.
    """

    def __init__(
        self, *arguments: Any, subcommands: Mapping[str, tuple[str, str, str]], extras: Mapping[str, str] | None = None,
        old: Mapping[str, str] | None = None, **named: Any,
    ) -> None:  # fmt: skip
        super().__init__(*arguments, **named)
        self._subcommands, self._extras, self._old = dict(subcommands), dict(extras or {}), dict(old or {})

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of the subcommands."""
        return list(self._subcommands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a subcommand; None where there is none of this name."""
        if cmd_name not in self._subcommands:
            return None
        module, attribute, _ = self._subcommands[cmd_name]
        with self._needing(cmd_name):
            command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is called; an old spelling is told with its new one."""
        new = self._old.get(args[0]) if args else None
        if new is not None:
            if not ctx.resilient_parsing:
                path = ctx.command_path
                click.echo(f"{path}: `{path} {args[0]}` is now `{path} {new}`; the old spelling goes with the next "
                           "release", err=True)
            args = [*new.split(), *args[1:]]
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error of the package is a line for each mistake, and the exit status."""
        with _said():
            try:
                return super().invoke(ctx)
            except ModuleNotFoundError:
                with self._needing(ctx.invoked_subcommand or ""):
                    raise

    def _needing(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Let a package that a command needs and that is missing be told."""
        return needing(self._extras[name], f"`{name}`") if name in self._extras else contextlib.nullcontext()

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the names of subcommands that begin so, without importing them; else the options."""
        names = [name for name in self._subcommands if name.startswith(incomplete)]
        found = [CompletionItem(name, help=self._subcommands[name][2]) for name in names]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the table of subcommands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in self._subcommands.items()])
