"""Kinds of values of the command line: lists, names, hints; each reports in one line what is wrong with a value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click

from mpiio_ext.common.near import near_names
from mpiio_ext.common.options import ParamType, Size
from mpiio_ext.errors import ArgumentError


class ListType(ParamType):
    """A comma-separated list without repetitions."""

    name = "list"
    several = True

    def __init__(self, item: Callable[[str], Any], metavar: str, *, everything: Iterable[str] = ()) -> None:
        self._item = item
        self._everything = tuple(everything)
        self.name = metavar

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        """Return the items."""
        if isinstance(value, tuple):
            return value
        items = [text.strip() for text in str(value).split(",") if text.strip()]
        if not items:
            self.fail("the list is empty", param, ctx)
        if items == ["all"] and self._everything:
            return self._everything
        try:
            return tuple(dict.fromkeys(self._item(text) for text in items))
        except (ValueError, click.BadParameter) as error:
            self.fail(str(error), param, ctx)


def one_of(names: Iterable[str]) -> Callable[[str], str]:
    """Return a function that lets pass one of the names, and names the nearest one otherwise."""
    names = list(names)

    def choose(text: str) -> str:
        if text in names:
            return text
        nearest = near_names(text, names)
        hint = f"did you mean '{nearest[0]}'?" if nearest else f"one of {', '.join(names)}"
        raise ValueError(f"unknown name '{text}', {hint}")

    return choose


def positive_size(text: str) -> int:
    """Return a size of at least one byte."""
    size = Size().convert(text, None, None)
    if size < 1:
        raise ValueError("a block must have at least one byte")
    return size


class HintType(ParamType):
    """``name=value``; values of the library's own hints are checked, others may be the native library's."""

    name = "name=value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Return (name, value)."""
        if isinstance(value, tuple):
            return value
        name, equals, text = str(value).partition("=")
        if not equals or not name or not text:
            self.fail(f"'{value}' is not of the form name=value", param, ctx)
        from mpiio_ext.hints import check, registry  # they load the library

        try:
            if any(name == known.name for known in registry()):
                check(name, text)
        except ArgumentError as error:
            self.fail(str(error), param, ctx)
        return name, text
