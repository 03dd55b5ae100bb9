"""Commands whose errors are a line each, and exit status 2."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from mpiio_ext.errors import MpiioExtError

__all__ = ["OneLineErrors", "one_line"]


def _tell(error: MpiioExtError) -> SystemExit:
    """Say what was wrong, a line for each mistake; return what ends the command."""
    for line in str(error).splitlines() or [type(error).__name__]:
        click.echo(f"mpiio-ext: {line}", err=True)
    return SystemExit(2)


def one_line(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a command that stands in no such group say what was wrong with what it was given, and exit with 2."""

    @functools.wraps(function)
    def telling(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except MpiioExtError as error:
            raise _tell(error) from error

    return telling


class OneLineErrors(click.Group):
    """A group that says what was wrong with what it was given: a line of standard error, or one for each mistake."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; exit with 2 when what it was given cannot be used."""
        try:
            return super().invoke(ctx)
        except MpiioExtError as error:
            raise _tell(error) from error
