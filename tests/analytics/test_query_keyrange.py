"""Ranges of keys out of conditions: never narrower than what passes, which is checked row by row."""

from __future__ import annotations

import datetime
import operator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpiio_ext.analytics.query.keyrange import EVERYTHING, KeyRange, key_range


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("job_id = 5", 5, 5),
        ("5 <= job_id and job_id < 9", 5, 9),
        ("job_id between 3 and 7 and app like 'x%'", 3, 7),
        ("job_id in (9, 2, 4)", 2, 9),
        ("job_id = 3 or job_id = 8", 3, 8),
        ("job_id = 3 or bytes_read > 1GB", None, None),
        ("not job_id = 3", None, None),
        ("job_id != 3", None, None),
        ("job_id + 1 < 4", None, None),
        ("job_id in (1, app)", None, None),
        ("job_id is not null", None, None),
        ("other > 3", None, None),
        ("job_id > 1e3", 1000, None),
        ("job_id not between 1 and 2", None, None),
        ("job_id > 4 and job_id < 2 or job_id = 7", 7, 7),
    ],
)
def test_ranges(text: str, low: float | None, high: float | None) -> None:
    assert key_range([text], "job_id") == KeyRange(low, high)


def test_dates_are_seconds() -> None:
    day = datetime.datetime(2018, 1, 28, tzinfo=datetime.timezone.utc).timestamp()
    assert key_range(["time >= '2018-01-28' and time < '2018-01-28T01:00:00Z'"], "time") == KeyRange(day, day + 3600)
    assert key_range(["time >= 'soon'"], "time") == EVERYTHING


_VALUES = st.integers(0, 12)
_TESTS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "!=": operator.ne}
_LEAVES = st.one_of(
    st.tuples(st.just("test"), st.sampled_from(["k", "x"]), st.sampled_from(list(_TESTS)), _VALUES, st.booleans()),
    st.tuples(st.just("between"), _VALUES, _VALUES),
    st.tuples(st.just("in"), st.lists(_VALUES, min_size=1, max_size=3)),
)
_TREES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(st.tuples(st.sampled_from(["and", "or"]), inner, inner), st.tuples(st.just("not"), inner)),
    max_leaves=8,
)


def _text(tree: Any) -> str:
    if tree[0] == "test":
        _, name, sign, value, turned = tree
        return f"{value} {sign} {name}" if turned else f"{name} {sign} {value}"
    if tree[0] == "between":
        return f"k between {tree[1]} and {tree[2]}"
    if tree[0] == "in":
        return f"k in ({', '.join(map(str, tree[1]))})"
    return f"not ({_text(tree[1])})" if tree[0] == "not" else f"({_text(tree[1])} {tree[0]} {_text(tree[2])})"


def _passes(tree: Any, row: dict[str, int]) -> bool:
    if tree[0] == "test":
        _, name, sign, value, turned = tree
        left, right = (value, row[name]) if turned else (row[name], value)
        return bool(_TESTS[sign](left, right))
    if tree[0] == "between":
        return bool(tree[1] <= row["k"] <= tree[2])
    if tree[0] == "in":
        return row["k"] in tree[1]
    if tree[0] == "not":
        return not _passes(tree[1], row)
    both = _passes(tree[1], row), _passes(tree[2], row)
    return all(both) if tree[0] == "and" else any(both)


@given(_TREES)
def test_whatever_passes_is_within_the_range(tree: Any) -> None:
    found = key_range([_text(tree)], "k")
    for key in range(13):
        if any(_passes(tree, {"k": key, "x": other}) for other in range(13)):
            assert found.low is None or found.low <= key
            assert found.high is None or key <= found.high
