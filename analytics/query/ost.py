"""Bitmaps of OSTs inside an engine: the union and the intersection over rows, and which and how many OSTs are in it.

Problem. "How many OSTs did this job use?" must not count an OST twice that several files use. Lists of OSTs would have
to be unnested (248 rows a file); a bitmap of a few words is a bitwise OR for each row.

Algorithm. ``darshan_file`` has the words ``ost_word_0``, ``ost_word_1`` … of 62 bits each (no engine meets a sign bit).
``bit_or``, ``bit_and`` and ``bit_count`` have the same names in DuckDB and Spark and are declared to Ibis as built-in
functions. The list of OSTs is made last, of one bitmap a group.

Guarantees. A job with no known file has NULL, not 0 OSTs: unknown words are NULL, and OR and AND skip them. A word that
only later logs have is 0 in a row whose other words are known.

Source: IOMiner, Section II-B: "users can easily calculate the OST count used by each job by performing a union
operation on all bitmaps of its files. They can also find the OSTs used by a selected set of jobs by performing
intersection operations on the bitmaps of each job."
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from mpiio_ext.analytics.query.language import ExpressionError
from mpiio_ext.analytics.tables.schema import OST_WORD_BITS

if TYPE_CHECKING:
    import ibis.expr.types as ir

_WORD = re.compile(r"ost_word_(\d+)")


def words_of(columns: Sequence[str]) -> list[str]:
    """Return the columns that are words of a bitmap, in order.

    Raises
    ------
    ExpressionError
        When there is none.
    """
    found = {int(match.group(1)): name for name in columns if (match := _WORD.fullmatch(name))}
    if not found:
        raise ExpressionError(
            "there is no OST bitmap (columns ost_word_0 …) among the columns: it is in darshan_file, where the logs"
            " have Lustre records"
        )
    return [found[number] for number in sorted(found)]


@functools.cache
def _functions() -> tuple[Any, Any, Any]:
    import ibis

    @ibis.udf.agg.builtin(name="bit_or", signature=(("int64",), "int64"))
    def bit_or(word):  # type: ignore[no-untyped-def] # Ibis declares it by the signature
        ...

    @ibis.udf.agg.builtin(name="bit_and", signature=(("int64",), "int64"))
    def bit_and(word):  # type: ignore[no-untyped-def]
        ...

    @ibis.udf.scalar.builtin(name="bit_count", signature=(("int64",), "int32"))
    def bit_count(word):  # type: ignore[no-untyped-def]
        ...

    return bit_or, bit_and, bit_count


def ost_union(word: ir.Value) -> ir.Value:
    """Return the bitwise OR of one word of the bitmap over the rows of a group; NULL if all are NULL."""
    return _functions()[0](word)


def ost_count(words: Sequence[ir.Value]) -> ir.Value:
    """Return the number of OSTs in a bitmap of these words; NULL if all are NULL."""
    bit_count = _functions()[2]
    # Words that only later logs have are NULL in the rows of earlier ones; there they have no bits.
    counts = [bit_count(word).cast("int64") for word in words]
    total = counts[0].coalesce(0)
    known = counts[0].notnull()
    for count in counts[1:]:
        total = total + count.coalesce(0)
        known = known | count.notnull()
    return known.ifelse(total, None)


def combined(table: ir.Table, keys: Mapping[str, ir.Value], how: Literal["union", "intersection"]) -> ir.Table:
    """Return the union or the intersection of the bitmaps of each group, as a list and as a bitmap.

    Parameters
    ----------
    table : ibis Table
    keys : columns of the groups; none: one group of all rows.
    how : {"union", "intersection"}

    Returns
    -------
    ibis Table
        The keys; ``osts``, ascending (NULL: of no row is anything known); ``with_osts`` and ``without_osts``, the
        numbers of rows of which OSTs are known and of which not; the words of the bitmap.

    Raises
    ------
    ExpressionError
        The table has no bitmap.
    """
    names = words_of(table.columns)
    merge = _functions()[0 if how == "union" else 1]
    known = table[names[0]].notnull()
    for name in names[1:]:
        known = known | table[name].notnull()
    words = {name: merge(known.ifelse(table[name].coalesce(0), None)) for name in names}
    counts = {"with_osts": table.count(where=known), "without_osts": table.count(where=~known)}
    # Without any row Spark's count of some rows is NULL.
    counts = {name: count.coalesce(0).cast("int64") for name, count in counts.items()}
    found = table.aggregate(by=[value.name(name) for name, value in keys.items()], **counts, **words)
    lists = [_set_bits(found[name].coalesce(0), number) for number, name in enumerate(names)]
    osts = lists[0].concat(*lists[1:]) if len(lists) > 1 else lists[0]
    return found.select(
        *keys, osts=(found["with_osts"] > 0).ifelse(osts, None), **{name: found[name] for name in (*counts, *names)}
    )


def _set_bits(word: ir.Value, number: int) -> ir.ArrayValue:
    """Return the OSTs in a word of a bitmap, the `number`-th one."""
    import ibis

    first = OST_WORD_BITS * number
    bits = ibis.range(0, OST_WORD_BITS).filter(lambda bit: ((word >> bit) & 1) == 1)
    return bits.map(lambda bit: (bit + first).cast("int64"))
