"""Joins of two tables by equal columns, with one copy of the keys and clear names for columns that clash.

Problem. Ibis merges a chain of joins into one statement and takes keys of later joins from whichever table had a column
of that name. Behind a right or an outer join it compared the wrong side's key, which is NULL there. It also leaves two
keys that differ.

Algorithm. The right side's columns get names that cannot clash; join; then a projection of its own makes the result:
one key column (of an outer join, the side that has it), the left side's columns, the right side's columns. Since that
is a projection over the finished join, the next join starts from it and cannot see through it.

Guarantees. A column of the right side that clashes is called ``column_table``, with a number behind it if that exists
as well. NULL keys match nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mpiio_ext.analytics.query.binding import column
from mpiio_ext.analytics.query.language import ExpressionError

if TYPE_CHECKING:
    import ibis.expr.types as ir

#: Rows that a join returns.
HOW = ("inner", "left", "right", "outer", "semi", "anti")
_PREFIX = "mpiox_right_"


def join(left: ir.Table, right: ir.Table, keys: Sequence[str], how: str, name: str) -> ir.Table:
    """Return the join of two tables where all `keys` are equal; `name` decides whose clashing columns are renamed.

    Raises
    ------
    ExpressionError
        For an unknown kind of join, an unknown key, or keys of different types.
    """
    if how not in HOW:
        raise ExpressionError(f"a join cannot be '{how}'; choose {', '.join(HOW)}")
    if not keys:
        raise ExpressionError("a join needs at least one key")
    for key in keys:
        kinds = column(left, key).type(), column(right, key).type()
        if kinds[0].is_numeric() != kinds[1].is_numeric() or kinds[0].is_string() != kinds[1].is_string():
            raise ExpressionError(f"the key '{key}' is {kinds[0]} on the left and {kinds[1]} on the right")
    inner = {f"{_PREFIX}{number}": old for number, old in enumerate(right.columns)}
    hidden = {old: new for new, old in inner.items()}
    other = right.select(**{new: right[old] for new, old in inner.items()})
    if how in ("semi", "anti"):
        joined = left.join(other, [left[key] == other[hidden[key]] for key in keys], how=how)
        return joined.select(*left.columns).select(*left.columns)
    both = left.join(other, [left[key] == other[hidden[key]] for key in keys], how=how)
    both = both.select(*left.columns, *inner)
    taken = {key: _key(both, key, hidden[key], how) for key in keys}
    kept = {old: taken.get(old, both[old]) for old in left.columns}
    others = right_names(left.columns, right.columns, keys, name)
    return both.select(**kept, **{fresh: both[hidden[old]] for old, fresh in others.items()})


def _key(both: ir.Table, key: str, hidden: str, how: str) -> ir.Value:
    if how == "right":
        return both[hidden]
    return both[key].coalesce(both[hidden]) if how == "outer" else both[key]


def right_names(left: Sequence[str], right: Sequence[str], keys: Sequence[str], name: str) -> dict[str, str]:
    """Return {column: name in the join} of the right side's columns without the keys: unique names."""
    names = set(left)
    found = {}
    for old in right:
        if old in keys:
            continue
        fresh = old if old not in names else f"{old}_{name}"
        number = 2
        while fresh in names or (fresh != old and fresh in right):
            fresh, number = f"{old}_{name}_{number}", number + 1
        names.add(fresh)
        found[old] = fresh
    return found
