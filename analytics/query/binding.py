"""Trees of the filter language to Ibis expressions over the columns at hand.

Problem. One text must mean the same on every engine. Ibis writes the SQL. What engines do differently is settled here:
division by zero is NULL (Spark would stop); texts and numbers are never compared (engines would convert either one).
Dates become seconds since 1970 UTC where a column holds those.

Guarantees. A wrong text is an error here, when the query is written, and names near matches of unknown columns. NULL
behaves as in SQL: a comparison with NULL is neither true nor false, and such rows pass no filter.
"""

from __future__ import annotations

import dataclasses
import datetime
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mpiio_ext.analytics import dimensions
from mpiio_ext.analytics.dimensions import INSTANT, NUMBER, PLAIN, UNKNOWN, Unit
from mpiio_ext.analytics.query import language, ost
from mpiio_ext.analytics.query.language import ExpressionError, Literal, Name, Node
from mpiio_ext.common.near import near_names

if TYPE_CHECKING:
    import ibis.expr.types as ir


@dataclasses.dataclass(frozen=True)
class _Value:
    """An Ibis value (or a constant that is not yet one) and its unit."""

    value: Any
    unit: Unit = UNKNOWN

    @property
    def constant(self) -> bool:
        return self.value is None or isinstance(self.value, (bool, int, float, str))

    @property
    def text(self) -> str | None:
        return self.value if isinstance(self.value, str) else None


def unknown_column(name: str, columns: Sequence[str]) -> ExpressionError:
    """Return the error about a column that does not exist, with names that are near."""
    near = near_names(name, columns, 3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(columns)}"
    return ExpressionError(f"there is no column '{name}'; {hint}")


def column(table: ir.Table, name: str) -> ir.Value:
    """Return a column, or raise :class:`ExpressionError` with near matches."""
    if name not in table.columns:
        raise unknown_column(name, table.columns)
    return table[name]


def bind(
    text: str, table: ir.Table, units: Mapping[str, Unit], *, aggregates: bool = False, boolean: bool = False
) -> tuple[ir.Value, Unit]:
    """Return the Ibis expression that `text` means over the columns of `table`, and its unit.

    Parameters
    ----------
    table : ibis Table
    units : units of the columns.
    aggregates : whether ``sum(…)`` and the like are allowed.
    boolean : whether the result must be true or false.

    Raises
    ------
    ExpressionError
    """
    import ibis

    bound = _Binder(text, table, units, aggregates).of(language.parse(text))
    found = bound.value
    value = found if isinstance(found, ibis.expr.types.Value) else ibis.literal(found)
    if boolean and not value.type().is_boolean():
        raise ExpressionError(f"'{text}' is no condition; write for example bytes_written < 1GB")
    return value, bound.unit


class _Binder:
    """Walks a tree; `text` only serves messages."""

    def __init__(self, text: str, table: ir.Table, units: Mapping[str, Unit], aggregates: bool) -> None:
        self.text = text
        self.table = table
        self.units = units
        self.aggregates = aggregates

    def error(self, reason: str) -> ExpressionError:
        if reason.endswith("?"):  # a comma does not follow a question
            return ExpressionError(f"in '{self.text}': {reason}")
        return ExpressionError(f"{reason}, in '{self.text}'")

    def of(self, node: Node) -> _Value:
        if isinstance(node, Literal):
            return _Value(node.value, dimensions.read(node.unit) if node.unit else PLAIN)
        if isinstance(node, Name):
            if node.name not in self.table.columns:
                raise self.error(str(unknown_column(node.name, self.table.columns)))
            return _Value(self.table[node.name], self.units.get(node.name, UNKNOWN))
        if node.operator.endswith("()"):
            return self.function(node.operator[:-2], node.operands)
        operands = [self.of(operand) for operand in node.operands]
        if node.operator in ("and", "or", "not"):
            return self.logic(node.operator, operands)
        if node.operator in _ARITHMETIC or node.operator == "negative":
            return self.arithmetic(node.operator, operands)
        return _Value(self.test(node.operator, operands))

    def logic(self, word: str, operands: Sequence[_Value]) -> _Value:
        for operand in operands:
            if not _is(operand, "boolean"):
                raise self.error(f"an operand of `{word}` is no condition")
        values = [_ibis(operand) for operand in operands]
        if word == "not":
            return _Value(~values[0])
        return _Value(values[0] & values[1] if word == "and" else values[0] | values[1])

    def arithmetic(self, symbol: str, operands: Sequence[_Value]) -> _Value:
        for operand in operands:
            if not _is(operand, "numeric"):
                raise self.error(f"`{'-' if symbol == 'negative' else symbol}` needs numbers")
        left = operands[0]
        if symbol == "negative":
            return _Value(-_ibis(left), UNKNOWN if left.unit == INSTANT else left.unit)
        right = operands[1]
        combined = dimensions.total if symbol in ("+", "-") else dimensions.product
        unit = combined(symbol, left.unit, right.unit)
        if unit is None:
            raise self.misfit(left, right)
        divisor = _ibis(right).nullif(0) if symbol in ("/", "%") else _ibis(right)
        return _Value(_ARITHMETIC[symbol](_ibis(left), divisor), unit)

    def misfit(self, left: _Value, right: _Value) -> ExpressionError:
        return self.error(f"a value in {left.unit} meets one in {right.unit}")

    def test(self, word: str, operands: Sequence[_Value]) -> ir.Value:
        """Return a comparison, or a test by a word."""
        left, rest = operands[0], operands[1:]
        if word in ("is null", "is not null"):
            value = _ibis(left)
            return value.isnull() if word == "is null" else value.notnull()
        if word in ("like", "contains", "startswith", "endswith"):
            return self.text_test(word, left, rest[0])
        if any(operand.constant and operand.value is None for operand in operands):
            raise self.error("nothing compares with null; write `is null` or `is not null`")
        if not rest:
            raise self.error("the list behind `in` is empty")
        pairs = [self.comparable(left, right) for right in rest]
        if word == "between":
            return (pairs[0][0] >= pairs[0][1]) & (pairs[1][0] <= pairs[1][1])
        if word == "in":
            return pairs[0][0].isin([right for _, right in pairs])
        return language.COMPARISONS[word](*pairs[0])

    def comparable(self, left: _Value, right: _Value) -> tuple[Any, Any]:
        """Return both sides as Ibis values of one kind."""
        left, right = self.dated(left, right), self.dated(right, left)
        if not dimensions.suit(left.unit, right.unit):
            raise self.misfit(left, right)
        kinds = [next((kind for kind in _KINDS if _is(side, kind)), "") for side in (left, right)]
        if kinds[0] != kinds[1] or not kinds[0]:
            raise self.error(f"{_described(left)} does not compare with {_described(right)}")
        return _ibis(left), _ibis(right)

    def dated(self, side: _Value, other: _Value) -> _Value:
        """Return a quoted ISO date in the type of `other`: seconds since 1970, or a time stamp."""
        import ibis

        if side.text is None or other.constant:
            return side
        if other.unit == INSTANT and _is(other, "numeric"):
            return _Value(self.instant(side.text).timestamp(), INSTANT)
        if _is(other, "temporal"):
            return _Value(ibis.literal(self.instant(side.text).replace(tzinfo=None)))
        return side

    def instant(self, text: str) -> datetime.datetime:
        try:
            return language.instant(text)
        except ValueError:
            raise self.error(f"'{text}' is no date; write for example '2018-01-28' or '2018-01-28 13:45'") from None

    def text_test(self, word: str, left: _Value, right: _Value) -> ir.Value:
        value = _ibis(left)
        if word == "contains" and value.type().is_array():
            return value.contains(_ibis(right))
        if not value.type().is_string() or right.text is None:
            raise self.error(f"`{word}` needs a column of texts and a quoted text")
        return getattr(value, word)(right.text)

    def function(self, name: str, operands: Sequence[Node]) -> _Value:
        if name == "ost_count" and not operands:
            self.allow_aggregate(name)
            words = [ost.ost_union(self.table[word]) for word in ost.words_of(self.table.columns)]
            return _Value(ost.ost_count(words), NUMBER)
        if name == "count" and not operands:
            self.allow_aggregate(name)
            return _Value(self.table.count(), NUMBER)
        known = _AGGREGATES if name in _AGGREGATES else _FUNCTIONS
        if name not in known:
            near = near_names(name, [*_FUNCTIONS, *_AGGREGATES], 2)
            hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join([*_FUNCTIONS, *_AGGREGATES])}"
            raise self.error(f"there is no function '{name}'; {hint}")
        if known is _AGGREGATES:
            self.allow_aggregate(name)
        call, counts, kind = known[name]
        if len(operands) not in counts:
            raise self.error(f"{name}() takes {' or '.join(map(str, counts))} values, not {len(operands)}")
        values = [self.of(operand) for operand in operands]
        if kind and not all(_is(value, kind) for value in values):
            raise self.error(f"{name}() needs {'numbers' if kind == 'numeric' else 'texts'}")
        unit = values[0].unit
        for value in values[1:] if name == "coalesce" else ():
            if not dimensions.suit(unit, value.unit):
                raise self.misfit(values[0], value)
            unit = dimensions.common(unit, value.unit)
        return _Value(call(*[_ibis(value) for value in values]), dimensions.aggregated(name, unit))

    def allow_aggregate(self, name: str) -> None:
        if not self.aggregates:
            raise self.error(f"{name}() needs a group: .group(keys, new='{name}(…)')")


def _ibis(value: _Value) -> ir.Value:
    import ibis

    return ibis.literal(value.value) if value.constant else value.value


def _is(value: _Value, kind: str) -> bool:
    found = _ibis(value).type()
    return bool(getattr(found, f"is_{kind}")()) or found.is_null()


def _described(value: _Value) -> str:
    return repr(value.value) if value.constant else f"a value of type {value.value.type()}"


def _quantile(value: ir.Value, fraction: ir.Value) -> ir.Value:
    return value.quantile(fraction)


_KINDS = ("boolean", "numeric", "string", "temporal")
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
}
_Function = tuple[Callable[..., Any], Sequence[int], str]


def _methods(kind: str, **names: str) -> dict[str, _Function]:
    return {name: (operator.methodcaller(method), (1,), kind) for name, method in names.items()}


_FUNCTIONS: dict[str, _Function] = {
    **_methods("numeric", abs="abs", round="round", floor="floor", ceil="ceil", sqrt="sqrt", log10="log10"),
    **_methods("string", lower="lower", upper="upper"),
    **_methods("", length="length"),
    "coalesce": (lambda first, *others: first.coalesce(*others), range(1, 9), ""),
}
_AGGREGATES: dict[str, _Function] = {
    **_methods("numeric", sum="sum", mean="mean", avg="mean", median="median", std="std"),
    **_methods("", min="min", max="max", count="count", nunique="nunique", count_distinct="nunique"),
    "quantile": (_quantile, (2,), "numeric"),
}
