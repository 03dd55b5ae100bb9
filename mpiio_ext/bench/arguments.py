"""Kinds of values of the command line: sizes, lists, names, hints; each says in one line what is wrong with a value."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType  # not generic before click 8.2

__all__ = ["HintType", "ListType", "SizeType", "one_of", "positive_size"]


class SizeType(_ParamType):
    """Bytes: a number with an optional unit."""

    name = "size"
    _UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}  # noqa: RUF012

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the bytes."""
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)(b?)\s*", str(value).lower())
        if match is None or (match[3] and not match[2]):
            self.fail(f"'{value}' is not a size; write for example 4096, 64KiB, 64MiB or 1.5GiB", param, ctx)
        decimal = match[2] and match[4] and not match[3]
        unit = 1000 ** " kmgt".index(match[2]) if decimal else self._UNITS[match[2]]
        return int(float(match[1]) * unit)


class ListType(_ParamType):
    """A comma-separated list without repetitions."""

    name = "list"

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
        nearest = difflib.get_close_matches(text, names, n=1)
        hint = f"did you mean '{nearest[0]}'?" if nearest else f"one of {', '.join(names)}"
        raise ValueError(f"unknown name '{text}', {hint}")

    return choose


def positive_size(text: str) -> int:
    """Return a size of at least one byte."""
    size = SizeType().convert(text, None, None)
    if size < 1:
        raise ValueError("a block must have at least one byte")
    return size


class HintType(_ParamType):
    """``name=value``."""

    name = "name=value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Return (name, value)."""
        if isinstance(value, tuple):
            return value
        name, equals, text = str(value).partition("=")
        if not equals or not name or not text:
            self.fail(f"'{value}' is not of the form name=value", param, ctx)
        return name, text
