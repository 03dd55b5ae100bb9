"""Lists of whole numbers as values of options: one grammar for numbers of I/O nodes, aggregators and the like.

Forms.      ``12``; ``0,8,16``; ranges ``0..128`` and ``0..128:16``; series ``64,128,...,16384``, which go on by the
            ratio of the two numbers before where that is whole and reaches the last, otherwise by their difference; any
            of them behind each other. A range of more than 32 numbers without a step goes by steps of 8.
Guarantees. Numbers ascend, each once, within the bounds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mpiio_ext.errors import ArgumentError

_RANGE = re.compile(r"([0-9]{1,18})(?:\.\.([0-9]{1,18})(?::([0-9]{1,18}))?)?")
_NUMBER = re.compile(r"[0-9]{1,18}")
_DOTS = ("...", "…")
#: Numbers that a range without a step may have; longer ranges go by `_STEP`.
_EVERY_UP_TO = 32
_STEP = 8


def counts(text: str, *, least: int = 0, most: int = 999_999, terms: int = 1 << 16) -> tuple[int, ...]:
    """Return the numbers of a list.

    Parameters
    ----------
    least, most : bounds of each number
    terms : numbers that a list may have

    Raises
    ------
    ArgumentError
        No such list, a number out of bounds, or too many.
    """
    numbers: list[int] = []
    words = [word.strip() for word in text.split(",")]
    for at, word in enumerate(words):
        found = _series(words, at, terms) if word in _DOTS else _range(word, terms)
        wrong = next((each for each in found if not least <= each <= most), None)
        if wrong is not None:
            raise ArgumentError(f"{text!r}: {wrong} is not from {least} to {most}")
        numbers += found
    if len(set(numbers)) > terms:
        raise ArgumentError(f"{text!r}: {len(set(numbers))} numbers are more than {terms}")
    return tuple(sorted(set(numbers)))


def _range(word: str, terms: int) -> Sequence[int]:
    match = _RANGE.fullmatch(word)
    if match is None:
        raise ArgumentError(
            f"{word!r} is neither a number nor a range as 0..128 or 0..128:16, nor ... of a series 64,128,...,16384"
        )
    low = int(match[1])
    high = low if match[2] is None else int(match[2])
    step = int(match[3]) if match[3] is not None else 1 if high - low < _EVERY_UP_TO else _STEP
    if high < low or step < 1 or (high - low) // step >= terms:
        raise ArgumentError(f"{word!r} is empty, or has more than {terms} numbers")
    return range(low, high + 1, step)


def _series(words: Sequence[str], at: int, terms: int) -> Sequence[int]:
    """Return the numbers that the dots at a place of the list stand for, and the one behind them."""
    around = [*words[max(at - 2, 0) : at], *words[at + 1 : at + 2]]
    if at < 2 or len(around) != 3 or not all(map(_NUMBER.fullmatch, around)):
        raise ArgumentError(f"{','.join(words)!r}: ... stands between two numbers before it and one behind it")
    first, second, last = map(int, around)
    if first > 0 and second > first and second % first == 0:
        found = [second]
        while found[-1] < last:
            found.append(found[-1] * (second // first))
        if found[-1] == last and len(found) > 1:
            return found
    step = second - first
    if step > 0 and last > second and (last - second) % step == 0 and (last - second) // step <= terms:
        return range(second, last + 1, step)
    raise ArgumentError(f"{first},{second},...,{last} is no series: {last} is not reached by a ratio or a difference")
