"""Whether files of a Lustre layout can meet a condition: so that rows with the common layouts need not be read.

Problem. ``stripe_size != 1MiB or stripe_count != 1`` is true for few rows, and which layouts nearly all rows have is
known for each file of the store (:mod:`mpiio_ext.analytics.store.layouts`).

Algorithm. The tree of the condition is computed with the values of a layout. The result is the set of what may come
out: true, false, NULL. What needs other columns, or is not understood here (arithmetic, functions, texts), may be any
of them.

Guarantees. Where :func:`may_meet` is false, no row with this layout meets the condition, on any engine.

What it pays. One row in 2,000, of four million in four files (processor time, medians of interleaved runs): 0.03 s on
DuckDB and 0.34 s on Spark, where the statistics in Parquet alone take 0.06 s and 0.58 s. Of 64 files with 16,000 rows
each it takes as long as these. Hive partitions by stripe count were faster, but leave no order by job.
"""

from __future__ import annotations

from collections.abc import Mapping

from mpiio_ext.analytics.query import language
from mpiio_ext.analytics.query.language import Call, Literal, Name, Node

_Outcomes = frozenset[bool | None]

_ANY: _Outcomes = frozenset((True, False, None))
#: What stands for a value that is not known here.
_UNKNOWN = object()


def may_meet(text: str, layout: Mapping[str, int | None]) -> bool:
    """Return whether a condition may be true for rows whose columns of the layout have these values.

    Raises
    ------
    ExpressionError
        `text` is no expression.
    """
    return True in _outcomes(language.parse(text), layout)


def _outcomes(node: Node, layout: Mapping[str, int | None]) -> _Outcomes:
    if not isinstance(node, Call):
        return _ANY
    name, operands = node.operator, node.operands
    if name in ("and", "or"):
        left, right = (_outcomes(operand, layout) for operand in operands)
        combine = _both if name == "and" else _either
        return frozenset(combine(one, other) for one in left for other in right)
    if name == "not":
        return frozenset(None if one is None else not one for one in _outcomes(operands[0], layout))
    values = [_value(operand, layout) for operand in operands]
    if any(value is _UNKNOWN for value in values):
        return _ANY
    if name in language.COMPARISONS:
        return frozenset((_compared(name, *values),))
    if name == "between":
        first = _compared(">=", values[0], values[1])
        return frozenset((_both(first, _compared("<=", values[0], values[2])),))
    if name == "in":
        found: bool | None = False
        for value in values[1:]:
            found = _either(found, _compared("==", values[0], value))
        return frozenset((found,))
    if name in ("is null", "is not null"):
        return frozenset(((values[0] is None) == (name == "is null"),))
    return _ANY


def _value(node: Node, layout: Mapping[str, int | None]) -> object:
    if isinstance(node, Name) and node.name in layout:
        return layout[node.name]
    if isinstance(node, Literal) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        return node.value
    return _UNKNOWN


def _compared(name: str, left: object, right: object) -> bool | None:
    return None if left is None or right is None else language.COMPARISONS[name](left, right)


def _both(one: bool | None, other: bool | None) -> bool | None:
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def _either(one: bool | None, other: bool | None) -> bool | None:
    if one or other:
        return True
    return None if one is None or other is None else False
