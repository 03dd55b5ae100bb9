"""Regimes: moving averages by counting, a history with a known slump and known slow jobs, and what is named."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpiio_ext.analytics.jobs import History, histories, select
from mpiio_ext.analytics.jobs.regimes import (
    LONG_HIGH,
    LONG_LOW,
    NORMAL,
    REGIMES,
    TRANSIENT_HIGH,
    TRANSIENT_LOW,
    Rules,
    crossings,
    explain,
    moving_average,
    moving_median,
    named,
    partition,
)
from support.job_histories import DAY, START, edison, history, steps

SLUMP = range(150, 180)
SLOW, FAST = (20, 45, 70, 220, 245, 270), 100


def _history(seed: int = 1) -> History:
    """Return 300 nights: a slump of 30 with full OSTs, pairs of slow jobs on a busy metadata server, one fast job."""
    values = steps([(150, 100.0), (30, 70.0), (120, 100.0)], seed=seed)
    fullness, load = steps([(300, 50.0)], seed=seed + 1), steps([(300, 5.0)], seed=seed + 2)
    fullness[SLUMP.start : SLUMP.stop] += 40
    for at in SLOW:
        values[at : at + 2], load[at : at + 2] = 30.0, 60.0
    values[FAST] = 160.0
    more = {
        "fshealth_ost_most_full_pct": fullness,
        "fs_ave_mds_cpu": load,
        "fs_ave_oss_cpu": steps([(300, 9.0)], seed=9),
    }
    return histories(select(history(values, more))[0])[0]


@given(st.lists(st.tuples(st.integers(0, 100), st.floats(-1e3, 1e3)), min_size=1, max_size=40), st.integers(1, 60))
def test_moving_averages_are_those_of_all_jobs_in_a_half_open_window(jobs: list[tuple[int, float]], width: int) -> None:
    jobs.sort(key=lambda job: job[0])
    times, values = np.array([float(job[0]) for job in jobs]), np.array([job[1] for job in jobs])
    inside = [(times >= at - width / 2) & (times < at + width / 2) for at in times]
    expected = [values[rows].mean() for rows in inside]
    np.testing.assert_allclose(moving_average(times, values, float(width)), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(moving_median(times, values, float(width)), [np.median(values[rows]) for rows in inside])


def test_crossings_are_the_first_jobs_on_the_other_side() -> None:
    short, long = np.array([1.0, 3, 3, 1, 1, 2, 4]), np.array([2.0, 2, 2, 2, 2, 2, 2])
    assert crossings(short, long).tolist() == [1, 3, 6]  # equal is not above
    assert crossings(short[:1], long[:1]).tolist() == []


@pytest.mark.parametrize("seed", [1, 11, 21])
def test_a_slump_is_long_term_and_single_jobs_are_transient(seed: int) -> None:
    found = partition(_history(seed))
    regimes = found.regimes
    assert (regimes[SLUMP.start + 2 : SLUMP.stop - 2] == LONG_LOW).mean() > 0.9
    far = np.r_[0 : SLUMP.start - 25, SLUMP.stop + 25 : 300]
    assert not np.isin(regimes[far], [LONG_LOW, LONG_HIGH]).any()
    slow = [at + more for at in SLOW for more in (0, 1)]
    assert (regimes[slow] == TRANSIENT_LOW).all() and regimes[FAST] == TRANSIENT_HIGH
    others = np.setdiff1d(far, [*slow, FAST])
    assert (regimes[others] == NORMAL).mean() > 0.95


def test_regions_cover_the_history_and_lie_on_one_side() -> None:
    found = partition(_history())
    assert found.regions[0].begin == 0 and found.regions[-1].end == 300
    assert [region.begin for region in found.regions[1:]] == [region.end for region in found.regions[:-1]]
    assert [region.bounded for region in found.regions] == [False, *[True] * (len(found.regions) - 2), False]
    for region in found.regions:
        assert ((found.short > found.long)[region.begin : region.end] == region.above).all()
        if region.regime != NORMAL:
            assert region.regime == (LONG_HIGH if region.above else LONG_LOW) and region.p_corrected <= 0.01
            assert region.end - region.begin >= 7
    assert set(found.regimes.tolist()) <= set(REGIMES)


def test_a_step_is_no_regime_of_the_months_before_or_after() -> None:
    """After an upgrade the year before is no norm: only the months around a region are."""
    values = steps([(150, 100.0), (150, 20.0)], noise=0.02)
    found = partition(histories(select(history(values))[0])[0])
    assert (found.regimes[:100] == NORMAL).mean() > 0.9 and (found.regimes[200:] == NORMAL).mean() > 0.9


def test_the_metrics_that_differ_are_named_and_no_others() -> None:
    found = named(explain([partition(_history())]))
    assert {(one.regime, one.moved.metric) for one in found} == {
        (LONG_LOW, "fshealth_ost_most_full_pct"),
        (TRANSIENT_LOW, "fs_ave_mds_cpu"),
    }
    slump = next(one for one in found if one.regime == LONG_LOW)
    assert slump.moved.effect == 1.0 and slump.moved.before == pytest.approx(50, rel=0.02)
    assert slump.moved.after == pytest.approx(90, rel=0.02) and slump.jobs >= 26


def test_a_metric_that_only_drifts_is_not_named() -> None:
    """OSTs fill up all year: against all normal jobs they differ in any region but one in the middle."""
    values = steps([(230, 100.0), (30, 70.0), (40, 100.0)], seed=3)
    fullness = 40 + 0.1 * np.arange(300) + np.random.default_rng(4).normal(0, 0.5, 300)
    made = history(values, {"fshealth_ost_most_full_pct": fullness, "fs_ave_mds_cpu": np.where(values < 85, 60.0, 5.0)})
    found = partition(histories(select(made)[0])[0])
    assert np.sum(found.regimes == LONG_LOW) >= 20
    differences = [one for one in explain([found]) if one.regime == LONG_LOW]
    assert {one.moved.metric for one in differences} == {"fshealth_ost_most_full_pct", "fs_ave_mds_cpu"}
    assert {one.moved.metric for one in named(differences)} == {"fs_ave_mds_cpu"}
    assert all(40 <= one.normal_jobs <= 2 * 28 for one in differences), "the normal ones beside it"


def test_histories_without_variation_or_jobs_are_normal() -> None:
    same = histories(select(history([5.0] * 40))[0])[0]
    found = partition(same)
    assert (found.regimes == NORMAL).all() and len(found.regions) == 1 and explain([found]) == []
    none = partition(History(system="s", motif="m", jobs=same.jobs.take(np.array([], dtype=np.int64))))
    assert len(none.regimes) == 0 and none.regions == []
    one = partition(History(system="s", motif="m", jobs=same.jobs.take(np.array([0]))))
    assert one.regimes.tolist() == [NORMAL]


def test_rules_are_followed() -> None:
    strict = Rules(least=60)
    assert not np.isin(partition(_history(), strict).regimes, [LONG_LOW, LONG_HIGH]).any()
    wide = partition(_history(), Rules(short_days=40, long_days=140))
    assert len(wide.regions) < len(partition(_history()).regions)
    assert wide.history.jobs.times()[0] == START and wide.history.jobs.times()[1] == START + DAY


def test_the_published_year_has_regimes_that_fullness_and_coverage_explain() -> None:
    from mpiio_ext.analytics.jobs import published, read

    found = named(explain([partition(one) for one in histories(published(read(edison()))[0])]))
    low = {(one.moved.metric, one.moved.effect > 0) for one in found if one.regime == LONG_LOW}
    slow = {(one.moved.metric, one.moved.effect > 0) for one in found if one.regime == TRANSIENT_LOW}
    assert ("fshealth_ost_most_full_pct", True) in low and ("coverage_factor_bw", False) in slow
