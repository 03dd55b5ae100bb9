"""Lists of numbers of options: numbers, ranges, series."""

from __future__ import annotations

import pytest

from mpiio_ext.common.counts import counts
from mpiio_ext.errors import ArgumentError


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("7", [7]),
        ("64,128,...,1024", [64, 128, 256, 512, 1024]),
        ("5, 64,128,…,512, 60", [5, 60, 64, 128, 256, 512]),
        ("3,9,...,81,100", [3, 9, 27, 81, 100]),
        ("1,2,...,6", [1, 2, 3, 4, 5, 6]),  # no power of two: by the difference
        ("10,20,...,50", [10, 20, 30, 40, 50]),
        ("156,64,64", [64, 156]),
        ("1..3,8,64..320:128", [1, 2, 3, 8, 64, 192, 320]),
        ("1..40", [1, 9, 17, 25, 33]),  # a long range
    ],
)
def test_series(text: str, numbers: list[int]) -> None:
    assert counts(text, least=1, most=2**24, terms=1000) == tuple(numbers)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "-4",
        "64,",
        "64,...,128",
        "...,4",
        "1,2,...",
        "1,2,...,...,9",
        "1,3,...,8",
        "8,4,...,2",
        "4,4,...,8",
        "1,2,...,x",
        "2e3",
        "٣",
        "16777217",
        "1,3,...,9999",
        "1,...,3,...,9",
        "4..1",
        "1..9:0",
        "1..9999:1",
        "1..4,5,...,9",
    ],
)
def test_what_is_no_series_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError):
        counts(text, least=1, most=2**24, terms=1000)
