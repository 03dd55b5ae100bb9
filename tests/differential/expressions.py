"""Integer expressions of a case in text: of the rank, the number of ranks, and the place in a list."""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable
from typing import Any

Known = dict[str, int | None]
OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def evaluate(word: str, rank: int | None, ranks: int, i: int | None = None) -> int:
    """Return an integer expression's value for a rank and a place in a list; ValueError if it is none."""
    try:
        return _function(word)({"rank": rank, "ranks": ranks, "i": i})
    except (SyntaxError, ZeroDivisionError, TypeError) as error:
        raise ValueError(word) from error


@functools.cache
def _function(word: str) -> Callable[[Known], int]:
    """Return an expression as a function; a long list has one expression for thousands of numbers."""

    def function(node: ast.expr) -> Callable[[Known], Any]:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            number = node.value
            return lambda _: number
        if isinstance(node, ast.Name) and node.id in ("rank", "ranks", "i"):
            return operator.itemgetter(node.id)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = function(node.operand)
            return lambda known: -inner(known)
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            apply, left, right = OPERATORS[type(node.op)], function(node.left), function(node.right)
            return lambda known: int(apply(left(known), right(known)))
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OPERATORS:
            apply, left, right = OPERATORS[type(node.ops[0])], function(node.left), function(node.comparators[0])
            return lambda known: int(apply(left(known), right(known)))
        raise ValueError(word)

    whole = function(ast.parse(word, mode="eval").body)
    return lambda known: operator.index(whole(known))
