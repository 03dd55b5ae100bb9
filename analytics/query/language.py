"""The language of filters and computed columns: text to a tree. It only reads, and never executes anything.

Problem. ``filter("bytes_written < 1GB and app like 'vasp%'")`` must be safe with any text, know units, and state the
exact fault of a text, because the user sees no stack trace of this library.

Grammar, from the weakest operator to the strongest; words in any case::

    or | and | not | = == != <> < <= > >= in not-in between not-between is-null is-not-null like not-like
       contains starts-with… | + - | * / % | - | values

Values are numbers (``1_000``, ``1e6``), numbers with units (``1GB``, ``5min``, ``1.5TiB/s``), texts in single or double
quotes (a quote inside is doubled), ``true``, ``false``, ``null``. Names of columns are values (with odd letters: in
backquotes), so are calls of the functions that :mod:`mpiio_ext.analytics.query.binding` knows, and all of these in
parentheses.

A date without quotes, such as 2018-01-28, would be a subtraction: the error advises quotes.
"""

from __future__ import annotations

import dataclasses
import datetime
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.common import units


class ExpressionError(AnalyticsError, ValueError):
    """A filter or a computed column that cannot be understood, or does not suit the columns."""


@dataclasses.dataclass(frozen=True)
class Literal:
    """A value of the text; `unit` is ``B``, ``s``, ``B/s`` or empty."""

    value: int | float | str | bool | None
    unit: str = ""


@dataclasses.dataclass(frozen=True)
class Name:
    """A column."""

    name: str


@dataclasses.dataclass(frozen=True)
class Call:
    """An operator or a function with its operands; functions have names with ``()``."""

    operator: str
    operands: tuple[Node, ...]


Node = Literal | Name | Call


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Token:
    kind: str
    text: str
    start: int


_TOKENS = re.compile(
    r"""\s*(?:
    (?P<date>\d{4}-\d\d?-\d\d?(?:[T ]\d\d?:\d\d[\d:.]*Z?)?(?![\w.]))
  | (?P<number>(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:\s?[A-Za-zµ]+(?:/s\b)?)?)
  | (?P<name>[A-Za-z_]\w*)
  | `(?P<quoted>[^`]+)`
  | (?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
  | (?P<operator><=|>=|==|!=|<>|[-+*/%(),<>=])
  | (?P<end>$)
    )""",
    re.VERBOSE,
)
_WORDS = frozenset(
    ("and", "or", "not", "in", "between", "is", "null", "like", "contains", "true", "false", "startswith", "endswith")
)
_COMPARISONS = {"=": "==", "==": "==", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
#: What comparisons do, by their names in a tree.
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_CONSTANTS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_DEPTH = 100


def parse(text: str) -> Node:
    """Return the tree of an expression.

    Raises
    ------
    ExpressionError
        With the place in the text where it cannot be understood.
    """
    parser = _Parser(text, _tokens(text))
    tree = parser.either()
    parser.expect("end", "the end")
    return tree


def instant(text: str) -> datetime.datetime:
    """Return the time that a text names, of UTC without a zone; ValueError if it names none."""
    found = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return found if found.tzinfo else found.replace(tzinfo=datetime.timezone.utc)


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    position = 0
    while not found or found[-1].kind != "end":
        match = _TOKENS.match(text, position)
        if match is None:
            start = position + len(text[position:]) - len(text[position:].lstrip())
            if text[start] in "'\"`":
                raise _error(text, start, "a quote is opened and not closed")
            raise _error(text, start, f"'{text[start]}' is not understood")
        kind = str(match.lastgroup)
        position = match.end()
        token = _Token(kind=kind, text=match.group(kind), start=match.start(kind))
        if kind == "number":
            token, position = _number(text, token)
        elif kind == "date":
            raise _error(text, token.start, f"a date needs quotes: '{token.text}'")
        elif kind == "name" and token.text.lower() in _WORDS:
            token = _Token(kind="word", text=token.text.lower(), start=token.start)
        found.append(token)
    return found


def _number(text: str, token: _Token) -> tuple[_Token, int]:
    """Give back the letters behind a number where they are the next word: ``5 and``, ``5 in``."""
    match = re.fullmatch(r"([\d_.]+(?:[eE][+-]?\d+)?)(\s?)([A-Za-zµ/]*)", token.text)
    assert match is not None
    letters = match.group(3)
    if match.group(2) and letters.lower() not in units.known():
        short = match.group(1)
        return _Token(kind="number", text=short, start=token.start), token.start + len(short)
    following = text[token.start + len(token.text) :]
    if re.match(r"[\w.]", following):
        raise _error(text, token.start, f"'{token.text}{following.split()[0]}' is not a number with a unit")
    return token, token.start + len(token.text)


def _error(text: str, start: int, reason: str) -> ExpressionError:
    where = f"cannot understand the expression at position {start + 1}"
    return ExpressionError(f"{where}: {reason}\n  {text}\n  {' ' * start}^")


class _Parser:
    """One function a level of precedence."""

    def __init__(self, text: str, tokens: Sequence[_Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.at = 0
        self.depth = 0

    @property
    def token(self) -> _Token:
        return self.tokens[self.at]

    def take(self, kind: str, *texts: str) -> str | None:
        """Go on if the next token is of this kind, and one of these texts where any are given."""
        token = self.token
        if token.kind != kind or (texts and token.text not in texts):
            return None
        self.at += 1
        return token.text

    def expect(self, kind: str, what: str, *texts: str) -> str:
        found = self.take(kind, *texts)
        if found is None:
            here = f"'{self.token.text}'" if self.token.kind != "end" else "nothing"
            raise _error(self.text, self.token.start, f"expected {what}, found {here}")
        return found

    def either(self) -> Node:
        self.depth += 1
        if self.depth > _DEPTH:
            raise _error(self.text, self.token.start, f"more than {_DEPTH} levels of parentheses")
        node = self.both()
        while self.take("word", "or"):
            node = Call("or", (node, self.both()))
        self.depth -= 1
        return node

    def both(self) -> Node:
        node = self.negation()
        while self.take("word", "and"):
            node = Call("and", (node, self.negation()))
        return node

    def negation(self) -> Node:
        count = 0
        while self.take("word", "not"):
            count += 1
        node = self.comparison()
        return Call("not", (node,)) if count % 2 else node

    def comparison(self) -> Node:
        left = self.total()
        if sign := self.take("operator", *_COMPARISONS):
            node: Node = Call(_COMPARISONS[sign], (left, self.total()))
            if self.token.kind == "operator" and self.token.text in _COMPARISONS:
                raise _error(self.text, self.token.start, "comparisons do not chain; join them by `and`")
            return node
        if self.take("word", "is"):
            absent = self.take("word", "not") is None
            self.expect("word", "null", "null")
            return Call("is null" if absent else "is not null", (left,))
        negated = self.take("word", "not") is not None
        found = self.membership(left)
        if found is None:
            if negated:
                raise _error(self.text, self.token.start, "expected in, between, like or contains behind not")
            return left
        return Call("not", (found,)) if negated else found

    def membership(self, left: Node) -> Node | None:
        """Return the test by a word that follows `left`, or None."""
        if self.take("word", "between"):
            low = self.total()
            self.expect("word", "`and` of between", "and")
            return Call("between", (left, low, self.total()))
        if self.take("word", "in"):
            self.expect("operator", "a list in parentheses behind in", "(")
            return Call("in", (left, *self.operands()))
        word = self.take("word", "like", "contains", "startswith", "endswith")
        return Call(word, (left, self.total())) if word else None

    def operands(self) -> tuple[Node, ...]:
        """Read a list up to the closing parenthesis."""
        if self.take("operator", ")"):
            return ()
        found = [self.either()]
        while self.take("operator", ","):
            found.append(self.either())
        self.expect("operator", "a comma or ')'", ")")
        return tuple(found)

    def total(self) -> Node:
        node = self.product()
        while operator := self.take("operator", "+", "-"):
            node = Call(operator, (node, self.product()))
        return node

    def product(self) -> Node:
        node = self.sign()
        while operator := self.take("operator", "*", "/", "%"):
            node = Call(operator, (node, self.sign()))
        return node

    def sign(self) -> Node:
        negative = False
        while operator := self.take("operator", "-", "+"):
            negative ^= operator == "-"
        node = self.value()
        if not negative:
            return node
        if isinstance(node, Literal) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
            return Literal(-node.value, node.unit)
        return Call("negative", (node,))

    def value(self) -> Node:
        if number := self.take("number"):
            try:
                quantity = units.parse(number)
            except units.UnitError as error:
                raise _error(self.text, self.tokens[self.at - 1].start, str(error)) from None
            return Literal(quantity.value, quantity.unit)
        if text := self.take("text"):
            return Literal(text[1:-1].replace(text[0] * 2, text[0]))
        if word := self.take("word", *_CONSTANTS):
            return Literal(_CONSTANTS[word])
        if self.take("operator", "("):
            node = self.either()
            self.expect("operator", "')'", ")")
            return node
        if name := self.take("quoted"):
            return Name(name)
        name = self.expect("name", "a column, a number, a quoted text or '('")
        if not self.take("operator", "("):
            return Name(name)
        if self.take("operator", "*"):
            self.expect("operator", "')'", ")")
            return Call(f"{name.lower()}()", ())
        return Call(f"{name.lower()}()", self.operands())
