"""Numbers of I/O nodes, and names of policies, on the command line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from mpiio_ext.delegates.arbitration.rules import policy_classes, settings_of
from mpiio_ext.errors import ArgumentError

if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType  # not generic before click 8.2

__all__ = ["CountsType", "PolicyType"]

#: Numbers that a range without a step may have; longer ranges go by `_STEP`.
_EVERY_UP_TO = 32
_STEP = 8


class CountsType(_ParamType):
    """Numbers of I/O nodes: "12", "0,8,16", "0..128", "0..128:16"."""

    name = "N|A..B[:STEP]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a tuple of numbers."""
        if isinstance(value, tuple):
            return value
        found: list[int] = []
        for part in str(value).split(","):
            match = re.fullmatch(r"(\d{1,6})(?:\.\.(\d{1,6})(?::(\d{1,6}))?)?", part.strip())
            if match is None:
                self.fail(f"{part!r} is neither a number nor a range as 0..128 or 0..128:16", param, ctx)
            low = int(match[1])
            high = int(match[2]) if match[2] is not None else low
            step = int(match[3]) if match[3] is not None else 1 if high - low < _EVERY_UP_TO else _STEP
            if high < low or step < 1:
                self.fail(f"{part!r} is empty", param, ctx)
            found += range(low, high + 1, step)
        return tuple(found)


class PolicyType(_ParamType):
    """The name of an arbitration policy, in capitals or not."""

    name = "policy"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:  # noqa: ARG002
        """Return all names."""
        return f"[{'|'.join(policy_classes())}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name in small letters."""
        try:
            settings_of(str(value))
        except ArgumentError as error:
            self.fail(str(error), param, ctx)
        return str(value).lower()
