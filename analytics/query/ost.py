"""Bitmaps of OSTs inside an engine: the union over rows, and how many OSTs are in it.

Problem. "How many OSTs did this job use?" must not count an OST twice that several files use. Lists of OSTs would have
to be unnested (248 rows a file); a bitmap of a few words is a bitwise OR for each row.

Algorithm. ``darshan_file`` has the words ``ost_word_0``, ``ost_word_1`` … of 62 bits each (no engine meets a sign bit).
``bit_or`` and ``bit_count`` have the same names in DuckDB and Spark and are declared to Ibis as built-in functions.

Guarantees. A job of whose files nothing is known has a count of NULL, not 0: unknown words are NULL, and OR skips them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mpiio_ext.analytics.query.language import ExpressionError

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["ost_count", "ost_union", "words_of"]

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
def _functions() -> tuple[Any, Any]:
    import ibis

    @ibis.udf.agg.builtin(name="bit_or", signature=(("int64",), "int64"))
    def bit_or(word):  # type: ignore[no-untyped-def] # Ibis declares it by the signature
        ...

    @ibis.udf.scalar.builtin(name="bit_count", signature=(("int64",), "int32"))
    def bit_count(word):  # type: ignore[no-untyped-def]
        ...

    return bit_or, bit_count


def ost_union(word: ir.Value) -> ir.Value:
    """Return the bitwise OR of one word of the bitmap over the rows of a group; NULL where all are NULL."""
    return _functions()[0](word)


def ost_count(words: Sequence[ir.Value]) -> ir.Value:
    """Return the number of OSTs in a bitmap of these words; NULL where all are NULL."""
    bit_count = _functions()[1]
    # Words that only later logs have are NULL in the rows of earlier ones; there they have no bits.
    counts = [bit_count(word).cast("int64") for word in words]
    total = counts[0].coalesce(0)
    known = counts[0].notnull()
    for count in counts[1:]:
        total = total + count.coalesce(0)
        known = known | count.notnull()
    return known.ifelse(total, None)
