"""Which column of which table of the store a column of a query is.

Problem. The factors need the files' tuples out of a join. Names do not tell: behind ``jobs.join(files, …)`` the column
``bytes_written`` is the job's, and the files' has another name; the other way round it is the file's; and where the
files were projected before, a column of the job may stand there alone.

Algorithm. Follow the column through the query's relations down to the table that was loaded. A key of a join is a
column of both sides. Casts are looked through; computed columns have no origin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["Origin", "origins"]

#: (table of the store, column in it)
Origin = tuple[str, str]


def origins(
    table: ir.Table, sources: Mapping[Any, str], merged: Mapping[tuple[Any, str], Any]
) -> dict[str, set[Origin]]:
    """Return the origins of each column; a merged key has several, a computed column none.

    Parameters
    ----------
    table : ibis Table
    sources : mapping
        Relation (an Ibis operation) of each loaded table -> name of the table.
    merged : mapping
        (relation of a join, key) -> relation of its right side.
    """
    import ibis.expr.operations as ops

    def of_value(value: Any) -> Iterator[Origin]:
        if isinstance(value, ops.Field):
            yield from of_field(value.rel, value.name)
        elif isinstance(value, ops.Cast):
            yield from of_value(value.arg)
        elif isinstance(value, ops.Coalesce):
            for argument in value.arg:
                yield from of_value(argument)

    def of_field(relation: Any, name: str) -> Iterator[Origin]:
        while True:
            if relation in sources:
                yield sources[relation], name
                return
            if (relation, name) in merged:
                yield from of_field(merged[relation, name], name)
            if isinstance(relation, ops.Reference):
                relation = relation.parent
                continue
            value = relation.values.get(name)
            if value is not None:
                yield from of_value(value)
            return

    relation = table.op()
    return {name: set(of_field(relation, name)) for name in table.columns}
