"""What a budget of time holds: never more than fits, and a refusal that names what would do."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpiio_ext.tune.budget import (
    LEAST_CANDIDATES,
    LEAST_CONFIDENCE,
    Costs,
    Refusal,
    Runs,
    choose_runs,
    confidence_for,
    least_seconds,
)
from mpiio_ext.tune.evidence import least_pairs

COSTS = st.builds(
    lambda start_s, io_s, pauses_s: Costs(start_s=start_s, io_s=io_s, run_s=io_s + pauses_s),
    st.floats(0.01, 100),
    st.floats(1e-4, 1e4),
    st.floats(0, 1e4),
)


@settings(deadline=None, max_examples=300, derandomize=True)
@given(budget_s=st.floats(1e-3, 1e6), costs=COSTS, may_fall=st.booleans(), may_shorten=st.booleans())
def test_a_plan_fits_or_the_refusal_names_a_budget_that_does(
    budget_s: float, costs: Costs, may_fall: bool, may_shorten: bool
) -> None:
    found = choose_runs(budget_s, costs, 0.95, may_fall=may_fall, may_shorten=may_shorten)
    if isinstance(found, Refusal):
        assert found.needed_s > budget_s
        again = choose_runs(found.needed_s, costs, 0.95, may_fall=may_fall, may_shorten=may_shorten)
        assert isinstance(again, Runs) and again.seconds <= found.needed_s
        return
    run_s = (costs.run_s if found.pauses else costs.io_s) * found.share
    whole_s = costs.start_s + least_seconds(run_s, found.confidence, found.candidates)
    assert whole_s <= budget_s * (1 + 1e-9) and found.seconds <= budget_s
    assert found.pairs == least_pairs(found.confidence) >= 3 and found.candidates >= LEAST_CANDIDATES
    assert found.confidence == 0.95 or (may_fall and LEAST_CONFIDENCE <= found.confidence < 0.95)
    assert found.share == 1 or may_shorten


@settings(deadline=None, max_examples=100, derandomize=True)
@given(budget_s=st.floats(0.1, 1e5), more=st.floats(1.0, 100), costs=COSTS)
def test_more_time_never_gives_less(budget_s: float, more: float, costs: Costs) -> None:
    few, many = (choose_runs(one, costs, 0.95, may_fall=True) for one in (budget_s, budget_s * more))
    if isinstance(few, Runs):
        assert isinstance(many, Runs)
        assert (many.confidence, many.share, many.pauses) >= (few.confidence, few.share, few.pauses)


def test_what_is_given_up_first() -> None:
    """Candidates, then pauses, then a part of the work, then the confidence."""
    costs, seen = Costs(start_s=3, run_s=2, io_s=1), []
    for budget_s in (300, 60, 30, 20, 10, 5.4, 4):
        found = choose_runs(budget_s, costs, 0.95, may_fall=True)
        seen.append((found.pauses, found.share, found.confidence) if isinstance(found, Runs) else found.needed_s)
    assert seen == [
        (True, 1.0, 0.95),
        (True, 1.0, 0.95),
        (False, 1.0, 0.95),
        (False, 0.5, 0.95),
        (False, 0.25, 0.95),
        (False, 0.125, 0.9),
        pytest.approx(3 + 0.125 * (4 + 9)),
    ]
    wide, narrow = (choose_runs(budget_s, costs, 0.95, may_fall=True) for budget_s in (300, 60))
    assert isinstance(wide, Runs) and isinstance(narrow, Runs) and wide.candidates > narrow.candidates


def test_the_confidence_that_is_left() -> None:
    for left_s, expected in ((30.0, 0.95), (20.0, 0.9), (16.5, 0.875), (12.5, 0.75), (11.9, None)):
        assert confidence_for(left_s, 1.0, 0.95, may_fall=True) == expected
    assert confidence_for(20.0, 1.0, 0.95, may_fall=False) is None
