"""The language of filters: what texts mean, and what is refused with which words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpiio_ext.analytics.query import language
from mpiio_ext.analytics.query.language import Call, ExpressionError, Literal, Name

A, B, C = Name("a"), Name("b"), Name("c")
TREES = {
    "a or b and not c": Call("or", (A, Call("and", (B, Call("not", (C,)))))),
    "1 + 2 * 3 < a": Call("<", (Call("+", (Literal(1), Call("*", (Literal(2), Literal(3))))), A)),
    "a - b - c": Call("-", (Call("-", (A, B)), C)),
    "not not a": A,
    "(a or b) and c": Call("and", (Call("or", (A, B)), C)),
    "-2GB": Literal(-2 * 10**9, "B"),
    "a between 1 and 2 and b": Call("and", (Call("between", (A, Literal(1), Literal(2))), B)),
    "a NOT IN (1, 2)": Call("not", (Call("in", (A, Literal(1), Literal(2))),)),
    "`odd name` is not null": Call("is not null", (Name("odd name"),)),
    "a = 'it''s'": Call("==", (A, Literal("it's"))),
    'a <> "x\'y"': Call("!=", (A, Literal("x'y"))),
    "count(*)": Call("count()", ()),
    "a < 5min": Call("<", (A, Literal(300, "s"))),
    "2018 - 1 - 28": Call("-", (Call("-", (Literal(2018), Literal(1))), Literal(28))),
}


@pytest.mark.parametrize("text", TREES)
def test_precedence(text: str) -> None:
    assert language.parse(text) == TREES[text]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("start_time > 2018-01-28", "a date needs quotes: '2018-01-28'"),
        ("start_time > 2018-1-2", "a date needs quotes"),
        ("a > 1G", "not a unit"),
        ("a > 1GBx", "not a unit"),
        ("a > 1GB.5", "is not a number with a unit"),
        ("a < b < c", "do not chain"),
        ("a <", "expected a column"),
        ("a b", "expected the end, found 'b'"),
        ("a in 5", "expected a list in parentheses"),
        ("a in (5", r"a comma or '\)'"),
        ("a = 'x", "a quote is opened and not closed"),
        ("a not 5", "expected in, between, like or contains"),
        ("a between 1 or 2", "`and` of between"),
        ("__import__('os'); a", "';' is not understood"),
        ("a.b", "is not understood"),
        ("", "found nothing"),
        ("(" * 200 + "a" + ")" * 200, "levels of parentheses"),
    ],
)
def test_refused(text: str, reason: str) -> None:
    with pytest.raises(ExpressionError, match=reason):
        language.parse(text)


_TEXT = "a 1GB 't' ( ) and or not in between is null < == + - * , like 2018-01-28 5 min `q` % f( é 1e ."
_WORDS = [*_TEXT.split(), '"']


@given(st.one_of(st.lists(st.sampled_from(_WORDS), max_size=12).map(" ".join), st.text(max_size=40)))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text does anything but give a tree or an ExpressionError."""
    try:
        language.parse(text)
    except ExpressionError as error:
        assert str(error)
