"""Ibis values from the arguments of operators: texts, functions, edges of bins, percentiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mpiio_ext.analytics import dimensions
from mpiio_ext.analytics.dimensions import UNKNOWN, Unit, Units
from mpiio_ext.analytics.query import binding
from mpiio_ext.analytics.query.language import ExpressionError
from mpiio_ext.common import units

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from mpiio_ext.analytics.query.engines import Engine


def value_of(
    table: ir.Table, given: Any, known: Units, *, aggregates: bool = False, boolean: bool = False
) -> tuple[Any, Unit]:
    """Return the Ibis value that a text, a function of the table, or an Ibis value means, and its unit."""
    import ibis

    if isinstance(given, str):
        return binding.bind(given, table, known, aggregates=aggregates, boolean=boolean)
    if callable(given) and not isinstance(given, (ibis.Deferred, ibis.Expr)):
        given = given(table)
    value = table.bind(given)[0]
    column = value.op()
    return value, known.get(column.name, UNKNOWN) if isinstance(column, ibis.expr.operations.Field) else UNKNOWN


def units_of(values: Mapping[str, tuple[Any, Unit]]) -> dict[str, Unit]:
    """Return the units of columns that are computed."""
    return {name: unit for name, (_, unit) in values.items()}


def wide(value: ir.Value) -> ir.Value:
    """Return whole numbers with 64 bits, others as they are."""
    return value.cast("int64") if value.type().is_integer() else value


def order(table: ir.Table, key: Any, descending: bool, known: Units) -> ir.Value:
    """Return a key of a sort; a name with - in front is descending."""
    import ibis

    if isinstance(key, str):
        descending, key = (True, key[1:]) if key.startswith("-") else (descending, key)
    value, _ = value_of(table, key, known)
    return ibis.desc(value) if descending else ibis.asc(value)


def edge_of(edge: str | int | float) -> tuple[int | float, Unit]:
    """Return the edge of a bin, and its unit."""
    quantity = units.parse(edge) if isinstance(edge, str) else units.Quantity(edge)
    return quantity.value, dimensions.read(quantity.unit) if quantity.unit else dimensions.PLAIN


def fit_edges(given: Sequence[Any], edges: Sequence[tuple[Any, Unit]], name: str, known: Units) -> None:
    """Raise where an edge has another unit than the column."""
    unit = known.get(name, UNKNOWN)
    for text, (_, other) in zip(given, edges, strict=True):
        if not dimensions.suit(unit, other):
            raise ExpressionError(f"the edge '{text}' is in {other}, and '{name}' is in {unit}")


def bin_number(table: ir.Table, edges: Sequence[int | float], columns: Sequence[str]) -> ir.Value:
    """Return how many of ascending edges are not above the value of a column."""
    if len(columns) != 1 or not edges or list(edges) != sorted(set(edges)):
        raise ExpressionError("bins need ascending edges and one column")
    value = binding.column(table, columns[0])
    if not value.type().is_numeric():
        raise ExpressionError(f"bins need a column of numbers; '{columns[0]}' is {value.type()}")
    number = (value >= edges[0]).cast("int64")
    for edge in edges[1:]:
        number = number + (value >= edge).cast("int64")
    return number


def quantiles(
    engine: Engine, table: ir.Table, columns: Sequence[str], percents: Sequence[float], approximate: bool
) -> ir.Table:
    """Return one row a percentile: the engine computes an array for each column, and each row takes its element."""
    import pyarrow as pa

    fractions = [percent / 100 for percent in percents]
    arrays = {}
    for number, name in enumerate(columns):
        value = binding.column(table, name)
        if not value.type().is_numeric():
            raise ExpressionError(f"percentile needs a column of numbers; '{name}' is {value.type()}")
        value = value.cast("float64")
        arrays[f"q{number}"] = value.approx_quantile(fractions) if approximate else value.quantile(fractions)
    numbers = pa.array(range(1, len(percents) + 1), pa.int32())
    places = engine.table(pa.table({"place": numbers, "percentile": percents}))
    both = places.cross_join(table.aggregate(**arrays))
    both = both.select(*both.columns)
    values = {name: engine.item(both[f"q{number}"], both.place) for number, name in enumerate(columns)}
    return both.select(percentile=both.percentile, **values).order_by("percentile")
