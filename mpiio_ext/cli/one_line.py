"""Commands whose errors are a line each, and exit status 2."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import click

from mpiio_ext.errors import MpiioExtError

__all__ = ["OneLineCommand", "OneLineErrors"]


@contextlib.contextmanager
def _said() -> Iterator[None]:
    try:
        yield
    except MpiioExtError as error:
        for line in str(error).splitlines() or [type(error).__name__]:
            click.echo(f"mpiio-ext: {line}", err=True)
        raise SystemExit(2) from error


class OneLineErrors(click.Group):
    """A group that says what was wrong with what it was given: a line of standard error, or one for each mistake."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; exit with 2 when what it was given cannot be used."""
        with _said():
            return super().invoke(ctx)


class OneLineCommand(click.Command):
    """A command by itself that does the same."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; exit with 2 when what it was given cannot be used."""
        with _said():
            return super().invoke(ctx)
