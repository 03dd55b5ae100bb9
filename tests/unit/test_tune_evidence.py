"""The decision of `mpiio-ext tune`: exact error rates by enumeration, agreement with SciPy's test, units."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpiio_ext.errors import ArgumentError
from mpiio_ext.tune.evidence import evidence, least_pairs
from support.marks import slow
from support.parts import require

require("scipy")


def from_logs(logs: list[float], confidence: float = 0.95):
    return evidence([math.exp(value) for value in logs], [1.0] * len(logs), confidence)


@pytest.mark.parametrize(("pairs", "confidence"), [(6, 0.95), (7, 0.95), (9, 0.95), *slow((10, 0.99)), (8, 0.5)])
def test_two_equal_settings_win_at_most_as_often_as_the_confidence_says(pairs: int, confidence: float) -> None:
    """Every pattern of signs is equally likely then: count all of them, with sizes that have no ties."""
    sizes = [0.011 * 1.37**index for index in range(pairs)]
    patterns = list(itertools.product((-1, 1), repeat=pairs))
    won = sum(
        from_logs([sign * size for sign, size in zip(signs, sizes, strict=True)], confidence).wins for signs in patterns
    )
    assert 0 < won <= (1 - confidence) / 2 * len(patterns)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.lists(st.integers(-1000, 1000).filter(bool), min_size=6, max_size=20, unique_by=abs))
def test_the_interval_leaves_1_out_exactly_when_the_test_rejects(numbers: list[int]) -> None:
    found = from_logs([number / 997 for number in numbers])
    assert (found.low > 1.0 or found.high < 1.0) == (found.p_value <= 0.05)
    assert found.low <= found.gain <= found.high


def test_least_pairs_is_the_first_number_that_can_decide() -> None:
    for confidence in (0.8, 0.9, 0.95, 0.99):
        least = least_pairs(confidence)
        assert from_logs([0.1 + 0.01 * index for index in range(least)], confidence).wins
        assert 2 * 0.5 ** (least - 1) > 1 - confidence
    assert least_pairs(0.95) == 6


def test_the_gain_is_the_ratio_of_costs_and_has_no_unit() -> None:
    before, after = [2.0, 2.1, 1.9, 2.2, 2.0, 2.05, 1.95], [1.0, 1.02, 0.97, 1.08, 1.01, 1.0, 0.99]
    found, scaled = evidence(before, after), evidence([1e6 * x for x in before], [1e6 * x for x in after])
    assert found.wins and found.gain == pytest.approx(2.0, rel=0.03) and found.pairs == 7
    assert scaled.gain == pytest.approx(found.gain) and scaled.low == pytest.approx(found.low)
    turned = evidence(after, before)
    assert turned.gain == pytest.approx(1 / found.gain) and turned.high == pytest.approx(1 / found.low)
    assert not turned.wins


def test_drift_does_not_matter_inside_pairs() -> None:
    drift = [1.0, 5.0, 0.3, 8.0, 2.0, 0.1, 3.0, 9.0]
    found = evidence([1.10 * x for x in drift], drift)
    assert found.wins and found.gain == pytest.approx(1.10)


def test_equal_costs_do_not_win() -> None:
    found = evidence([1.0] * 8, [1.0] * 8)
    assert not found.wins and found.gain == 1.0 and found.p_value == 1.0


@pytest.mark.parametrize(("before", "after"), [([1.0] * 5, [1.0] * 5), ([1.0] * 7, [1.0] * 6), ([0.0] * 6, [1.0] * 6)])
def test_what_cannot_be_judged_is_refused(before: list[float], after: list[float]) -> None:
    with pytest.raises(ArgumentError):
        evidence(before, after)
