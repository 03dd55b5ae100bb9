"""Kinds of values that options of every command have: sizes, durations, bandwidths, by the rules of `common.units`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mpiio_ext.common.counts import counts
from mpiio_ext.common.files import cannot_read
from mpiio_ext.common.units import bandwidth, duration, size, size_text

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # not generic before click 8.2


class Existing(click.Path):
    """A file or folder that exists; the arguments are those of `click.Path`."""

    def __init__(self, **named: Any) -> None:
        super().__init__(exists=True, **named)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        try:
            Path(value).stat()
        except OSError as error:
            self.fail(cannot_read(os.fspath(value), error), param, ctx)
        return super().convert(value, param, ctx)


class Size(ParamType):
    """Whole bytes: 65536, 64KiB, 1M, 1.5GB."""

    name = "size"

    def __init__(self, least: int = 0, most: int = 2**63 - 1) -> None:
        self._least, self._most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the bytes."""
        try:
            count = size(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if not isinstance(count, int):
            self.fail(f"'{value}' is no whole number of bytes", param, ctx)
        if not self._least <= count <= self._most:
            bound = f"{self._least} B" if count < self._least else size_text(self._most, exact=True)
            self.fail(f"'{value}' is {'less' if count < self._least else 'more'} than {bound}", param, ctx)
        return count


class Duration(ParamType):
    """Seconds, more than 0 or, with `zero`, from 0 on, and from `least` on: 90, 90s, 5m, 1h30m."""

    name = "duration"

    def __init__(self, *, zero: bool = False, least: float = 0) -> None:
        self._zero, self._least = zero, least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds."""
        try:
            seconds = float(duration(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if not 0 <= seconds < float("inf") or (seconds == 0 and not self._zero):
            self.fail(f"'{value}' is not a duration such as 90s, 5m or 1h30m", param, ctx)
        if seconds < self._least:
            self.fail(f"'{value}' is less than {self._least:g} s", param, ctx)
        return seconds


class Bandwidth(ParamType):
    """Bytes a second: 1GB/s, 1GB; "inf" for no bound."""

    name = "bandwidth"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the bytes a second."""
        try:
            return float("inf") if value == "inf" else float(bandwidth(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Counts(ParamType):
    """Whole numbers: 12, or 0,8,16, or 0..128:16, or 64,128,...,16384, by the rules of `common.counts`."""

    name = "N|A..B[:STEP]"
    several = True

    def __init__(self, **bounds: int) -> None:
        self._bounds = bounds

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Return the numbers, ascending."""
        if isinstance(value, tuple):
            return value
        try:
            return counts(str(value), **self._bounds)
        except ValueError as error:
            self.fail(str(error), param, ctx)
