"""Units of columns and of values computed from them: which may be compared or added, and the resulting unit.

Problem. ``sum(bytes_written) < 5s`` is a mistake that no engine sees, under whatever name the sum is kept; and
``sum(bytes_written) < 1GB`` is none, though the column may be called ``write_time``.

Rules. A unit is a product of powers of bytes and seconds. Counts, IDs and ratios are numbers; a number without a unit
that stands in a text (``0``, ``1e9``) suits everything. Times since 1970 have a zero of their own: a difference of two
is a duration, a duration may be added to one, and no duration compares with one. What a user's function returns is
unknown and suits everything.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Literal

from mpiio_ext.analytics.tables.schema import TABLES, Table


@dataclasses.dataclass(frozen=True)
class Unit:
    """A product of powers, or one of the special kinds.

    Attributes
    ----------
    bytes, seconds : exponents.
    kind : str
        ``instant``: a time since 1970; ``plain``: a number of a text, which suits everything; ``unknown``.
    """

    bytes: int = 0
    seconds: int = 0
    kind: Literal["", "instant", "plain", "unknown"] = ""

    @property
    def open(self) -> bool:
        """Whether it suits every other."""
        return self.kind in ("plain", "unknown")

    def __str__(self) -> str:
        if self.kind:
            return {"instant": "s since 1970 UTC"}.get(self.kind, f"{self.kind} units")
        above = [_power(name, count) for name, count in (("B", self.bytes), ("s", self.seconds)) if count > 0]
        below = [_power(name, -count) for name, count in (("B", self.bytes), ("s", self.seconds)) if count < 0]
        if not above and not below:
            return "numbers without a unit"
        return "/".join(["*".join(above) or "1", *below])


def _power(name: str, count: int) -> str:
    return name if count == 1 else f"{name}^{count}"


NUMBER, BYTES, SECONDS, RATE = Unit(), Unit(bytes=1), Unit(seconds=1), Unit(bytes=1, seconds=-1)
INSTANT, PLAIN, UNKNOWN = Unit(kind="instant"), Unit(kind="plain"), Unit(kind="unknown")

#: Unit of each column, by name; a name that is not there has an unknown one.
Units = Mapping[str, Unit]

_READ = {"B": BYTES, "s": SECONDS, "B/s": RATE, "s since 1970 UTC": INSTANT}
_NUMBERS = ("", "count", "ratio", "share", "flag")


def read(text: str) -> Unit:
    """Return the unit that the schema, or a factor, gives a column of numbers."""
    return NUMBER if text in _NUMBERS else _READ.get(text, UNKNOWN)


def of_table(table: Table) -> Units:
    """Return the units of a table's columns."""
    return {column.name: read(column.unit) for column in table.columns if column.type in ("int32", "int64", "float64")}


def by_name(name: str) -> Unit:
    """Return the unit of a column of the schema, also where a join has put a table's name behind it."""
    for table in TABLES:
        name = name.removesuffix(f"_{table}")
    return next((found[name] for found in map(of_table, TABLES.values()) if name in found), UNKNOWN)


def suit(left: Unit, right: Unit) -> bool:
    """Return whether two values may be compared."""
    return left.open or right.open or left == right


def common(left: Unit, right: Unit) -> Unit:
    """Return the unit of a value that is one or the other of two that fit each other."""
    if not left.open or not right.open:
        return right if left.open else left
    return UNKNOWN if UNKNOWN in (left, right) else PLAIN


def total(symbol: str, left: Unit, right: Unit) -> Unit | None:
    """Return the unit of a sum or a difference (``+``, ``-``); None if there is none."""
    if INSTANT not in (left, right):
        return common(left, right) if suit(left, right) else None
    if left == right:
        return SECONDS if symbol == "-" else None
    if symbol == "-" and left != INSTANT:
        return UNKNOWN if left.open else None
    other = right if left == INSTANT else left
    if other == UNKNOWN:
        return UNKNOWN if symbol == "-" else INSTANT
    return INSTANT if other in (SECONDS, PLAIN) else None


def product(symbol: str, left: Unit, right: Unit) -> Unit | None:
    """Return the unit of a product, a quotient or a remainder (``*``, ``/``, ``%``); None if there is none."""
    if symbol == "%":
        if left == INSTANT and right in (SECONDS, PLAIN):
            return SECONDS
        return common(left, right) if suit(left, right) else None
    if UNKNOWN in (left, right) or INSTANT in (left, right):
        return UNKNOWN
    if left == right == PLAIN:
        return PLAIN
    sign = 1 if symbol == "*" else -1
    return Unit(left.bytes + sign * right.bytes, left.seconds + sign * right.seconds)


#: Functions whose result has another unit than their first value.
_OTHERS: dict[str, Callable[[Unit], Unit]] = {
    **dict.fromkeys(("count", "nunique", "count_distinct", "length", "log10"), lambda _: NUMBER),
    "sqrt": lambda unit: unit if unit in (NUMBER, PLAIN) else UNKNOWN,
    "std": lambda unit: SECONDS if unit == INSTANT else unit,
    "sum": lambda unit: {INSTANT: UNKNOWN, PLAIN: NUMBER}.get(unit, unit),
}


def aggregated(function: str, unit: Unit) -> Unit:
    """Return the unit of a function of values of one unit."""
    return _OTHERS[function](unit) if function in _OTHERS else unit
