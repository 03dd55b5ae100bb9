"""Changes of level, outliers, corrections, differences: on series with known changes, and on noise."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpiio_ext.analytics.jobs import Jobs
from mpiio_ext.analytics.jobs.statistics.changes import (
    _cusum,
    _p_value,
    breaks,
    change_points,
    dependences,
    ranked,
    sure_changes,
    whitened,
)
from mpiio_ext.analytics.jobs.statistics.correlation import correlate, correlation_table
from mpiio_ext.analytics.jobs.statistics.moved import (
    LIMIT,
    adjusted,
    compared,
    corrected,
    effect_of,
    modified_z,
    sided_z,
)
from support.job_histories import steps
from support.parts import require

require("ruptures")


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("counts", [(60, 60), (20, 100), (100, 10), (40, 40, 40)])
def test_known_changes_are_found_within_a_job(counts: tuple[int, ...], seed: int) -> None:
    levels = [(count, level) for count, level in zip(counts, (100.0, 70.0, 130.0), strict=False)]
    found = change_points(steps(levels, seed=seed))
    places = np.cumsum(counts)[:-1].tolist()
    assert len(found) == len(places)
    for change, place in zip(found, places, strict=True):
        assert abs(change.place - place) <= 1 and change.p <= 0.01
    assert found[0].before == pytest.approx(100, rel=0.03) and found[0].after == pytest.approx(70, rel=0.03)
    assert found[0].ratio == pytest.approx(0.7, rel=0.05)


def test_noise_alone_has_changes_about_as_often_as_the_level_says() -> None:
    random = np.random.default_rng(3)
    alarms = sum(bool(change_points(100 + random.standard_normal(120), step=0.0)) for _ in range(100))
    assert alarms <= 6  # one is expected


def _dependent(random: np.random.Generator, count: int, phi: float) -> Any:
    """Return performances of an autoregression of the first order, without a change."""
    waves = np.empty(count)
    waves[0] = random.standard_normal()
    for at in range(1, count):
        waves[at] = phi * waves[at - 1] + math.sqrt(1 - phi * phi) * random.standard_normal()
    return 1000 * np.exp(0.12 * waves)


def test_values_that_depend_on_those_before_them_make_few_changes() -> None:
    """Taken as independent, more than half of such series have a change."""
    random = np.random.default_rng(19)
    every = [_dependent(random, 120, 0.5) for _ in range(60)]
    assert sum(bool(change_points(values)) for values in every) <= 5
    assert sum(bool(change_points(values, dependence=0.0)) for values in every[:20]) >= 8
    assert sum(bool(changes) for changes in sure_changes(every)) <= 1


def test_a_fall_is_found_in_a_series_that_depends_on_itself() -> None:
    random = np.random.default_rng(23)
    found = 0
    for _ in range(20):
        values = _dependent(random, 120, 0.3)
        values[-40:] *= 0.8
        found += bool(change_points(values))
    assert found >= 18


@pytest.mark.parametrize("phi", [0.0, 0.3, 0.6])
def test_the_dependence_is_estimated_with_a_margin(phi: float) -> None:
    random = np.random.default_rng(29)
    every = [_dependent(random, 100, phi) for _ in range(80)]
    for values in every:
        values[50:] *= 0.8  # a change of level is no dependence
    found = dependences(every)
    assert phi - 0.05 <= np.median(found) <= phi + 0.12 and max(found) <= 0.9
    assert np.std(found) < np.std([dependences([values])[0] for values in every])
    assert dependences([np.ones(30), np.array([]), np.array([1.0])]) == pytest.approx([0.5 * 31**-0.5] * 3)
    assert dependences([]) == []


def test_whitened_values_keep_the_step_and_lose_the_dependence() -> None:
    random = np.random.default_rng(31)
    ranks = ranked(_dependent(random, 4000, 0.6))
    left = whitened(ranks, dependences([ranks])[0])
    assert abs(np.corrcoef(left[1:], left[:-1])[0, 1]) < 0.08 and len(left) == 3999
    assert whitened(np.array([0.0, 0, 2, 2]), 0.5).tolist() == [0, 2, 1] and len(whitened(np.array([]), 0.5)) == 0
    assert ranked(np.ones(3)).tolist() == [0, 0, 0]


def test_slow_jobs_are_no_change_however_slow() -> None:
    values = steps([(120, 100.0)])
    values[[10, 40, 41, 80, 119]] = 0.5
    assert change_points(values) == []


def test_the_form_of_the_distribution_does_not_matter() -> None:
    random = np.random.default_rng(5)
    heavy = random.standard_cauchy(200)
    heavy[100:] += 8
    assert [abs(change.place - 100) <= 2 for change in change_points(heavy)] == [True]


def test_a_change_below_the_smallest_step_does_not_count() -> None:
    values = steps([(60, 100.0), (60, 97.0)], noise=0.002)
    assert change_points(values) == []
    assert [change.place for change in change_points(values, step=0.01)] == [60]


def test_too_short_or_constant_series_have_no_changes() -> None:
    assert change_points(np.array([])) == [] and breaks(np.ones(50)) == []
    assert change_points(np.arange(13.0)) == []


@settings(max_examples=25)
@given(st.lists(st.floats(1, 1000), min_size=14, max_size=70), st.integers(3, 7), st.floats(0.1, 50))
def test_levels_are_long_enough_and_do_not_depend_on_the_unit(values: list[float], least: int, factor: float) -> None:
    series = np.array(values)
    found = change_points(series, least=least, level=0.5)
    bounds = [0, *(change.place for change in found), len(series)]
    assert all(end - begin >= least for begin, end in itertools.pairwise(bounds))
    assert found == change_points(series, least=least, level=0.5)
    scaled = change_points(np.round(series * factor, 9), least=least, level=0.5)
    if len(np.unique(np.round(series * factor, 9))) == len(np.unique(series)):
        assert [change.place for change in scaled] == [change.place for change in found]
    for change in found:
        assert change.begin < change.place < change.end and 0 < change.p <= 0.5


def _brute_cusum(values: Any, least: int) -> float:
    count, best = len(values), 0.0
    for at in range(least, count - least + 1):
        left, right = values[:at].mean(), values[at:].mean()
        best = max(best, abs(left - right) * math.sqrt(at * (count - at) / count))
    return best


def test_the_cusum_is_the_largest_scaled_difference_of_means() -> None:
    random = np.random.default_rng(9)
    table = random.standard_normal((4, 25))
    assert _cusum(table, 3) == pytest.approx([_brute_cusum(row, 3) for row in table])


def test_the_p_value_is_that_of_scipys_permutation_test() -> None:
    import scipy.stats

    random = np.random.default_rng(13)
    for shift in (0.0, 0.6, 1.2):
        values = random.standard_normal(40)
        values[20:] += shift
        found = scipy.stats.permutation_test(
            (values,),
            lambda x, axis: _cusum(np.moveaxis(x, axis, -1), 5),
            axis=0,
            permutation_type="pairings",
            vectorized=True,
            n_resamples=4999,
            alternative="greater",
            rng=np.random.default_rng(1),
        )
        # Three standard errors of 999 orders.
        assert _p_value(values, 5, enough=1000) == pytest.approx(found.pvalue, abs=0.045)


# ---- outliers, correction, differences -------------------------------------------------------------------------------


def test_outliers_are_beyond_iglewicz_and_hoaglins_limit() -> None:
    import scipy.stats

    values = np.array([9.0, 10, 11, 10, 9, 11, 10, 30])
    distances = values - np.median(values)
    scale = scipy.stats.median_abs_deviation(values, scale="normal")
    np.testing.assert_allclose(modified_z(distances), distances / scale, rtol=1e-4)
    assert np.flatnonzero(np.abs(modified_z(distances)) > LIMIT).tolist() == [7]
    skewed = np.array([-40.0, -25.0, -10.0, -6.0, 0.0, 1.0, 2.0, 3.0, 9.0])
    wanted = [*(skewed[:5] / (1.4826 * 10)), *(skewed[5:] / (1.4826 * 2))]
    np.testing.assert_allclose(sided_z(skewed), wanted)
    assert np.flatnonzero(np.abs(modified_z(skewed)) > LIMIT).tolist() == [0]
    assert len(sided_z(np.array([]))) == 0 and sided_z(np.zeros(4)).tolist() == [0.0] * 4
    assert modified_z(np.zeros(5)).tolist() == [0.0] * 5 and len(modified_z(np.array([]))) == 0
    assert modified_z(np.array([1.0, 1.0]), np.array([0.0, 0.1])).tolist() == pytest.approx([0.0, 10 / 1.4826])


def test_the_correction_is_benjamini_and_hochbergs_and_leaves_what_was_not_tested() -> None:
    given_values = [0.001, math.nan, 0.04, 0.03, 0.5]
    found = corrected(given_values)
    assert math.isnan(found[1])
    assert [found[at] for at in (0, 2, 3, 4)] == pytest.approx([0.004, 0.16 / 3, 0.16 / 3, 0.5])
    assert corrected([]) == []


def test_an_effect_is_the_share_of_pairs_that_are_larger_minus_smaller() -> None:
    first, second = np.array([1.0, 2, 3, 7]), np.array([2.0, 8, 9])
    pairs = [int(a < b) - int(a > b) for a in first for b in second]
    assert effect_of(first, second)[0] == pytest.approx(sum(pairs) / len(pairs))
    assert effect_of(first, first + 10)[0] == 1.0 and effect_of(first + 10, first)[0] == -1.0


def test_metrics_that_are_tested_together_have_the_results_of_each_alone() -> None:
    random = np.random.default_rng(17)
    first = {name: np.round(random.standard_normal(30), 1) for name in "abcd"}
    second = {name: np.round(random.standard_normal(12) + more, 1) for more, name in enumerate("abcd")}
    first["d"][:25] = np.nan  # five values: tested by itself
    found = compared(Jobs(first), Jobs(second), list("abcd"))
    assert len(found) == 4
    for item in found:
        one, two = (values[item.metric][~np.isnan(values[item.metric])] for values in (first, second))
        assert (item.effect, item.p) == pytest.approx(effect_of(one, two))


def test_metrics_are_compared_where_both_sets_know_them() -> None:
    few = [1.0, 1, math.nan, math.nan, math.nan]
    one = Jobs({"_jobid": range(5), "a": [1.0, 2, 3, 4, 5], "b": [1.0] * 5, "c": few})
    two = Jobs({"_jobid": range(5), "a": [11.0, 12, 13, 14, 15], "b": [1.0] * 5, "c": [2.0] * 5})
    found = compared(one, two, ["b", "a", "c", "d"])
    assert [(item.metric, item.before, item.after, item.effect) for item in found] == [("a", 3.0, 13.0, 1.0)]
    assert adjusted([found, []])[0][0].p_corrected == found[0].p


def test_correlations_that_cannot_be_told_are_nan_and_perfect_ones_have_no_width() -> None:
    line = np.arange(10.0)
    assert all(map(math.isnan, correlate(line, np.ones(10), "pearson")))
    assert all(map(math.isnan, correlate(line[:3], line[:3], "spearman")))
    assert correlate(line, line**3, "spearman")[:3] == pytest.approx((1, 1, 1))


def test_an_interval_is_fishers_and_that_of_ranks_is_wider() -> None:
    """As Bonett and Wright have it (2000): of ten ranks the variance is (1 + r²/2) / 7."""
    ranks = np.array([2.0, 1, 4, 3, 6, 5, 8, 7, 10, 9])
    for method, factor in (("pearson", 1.0), ("spearman", 1 + (31 / 33) ** 2 / 2)):
        r, low, high, _ = correlate(np.arange(1.0, 11), ranks, method)
        half = 1.959964 * math.sqrt(factor / 7)
        assert r == pytest.approx(31 / 33)
        assert (math.atanh(low), math.atanh(high)) == pytest.approx((math.atanh(r) - half, math.atanh(r) + half))


def test_kinds_of_io_that_differ_make_a_correlation_that_none_of_them_has() -> None:
    random = np.random.default_rng(37)
    x = np.concatenate([random.standard_normal(80), 9 + random.standard_normal(80)])
    y = np.concatenate([-x[:80], 20 - x[80:]]) + 0.5 * random.standard_normal(160)
    table = Jobs(
        {
            "_jobid": range(160),
            "_file_system": np.array(["s"] * 160, dtype=object),
            "x": x,
            "y": y,
            "_benchmark_id": np.array(["a"] * 80 + ["b"] * 80, dtype=object),
        }
    )
    for one in correlation_table(table, ["x"], target="y"):
        parts = [correlate(x[rows], y[rows], one.method)[0] for rows in (slice(0, 80), slice(80, 160))]
        assert one.coefficient > 0.5 > 0 > one.within and one.reversed_within
        assert one.within == pytest.approx(math.tanh(np.mean(np.arctanh(parts))))
    (alone, _) = correlation_table(table.take(np.arange(80)), ["x"], target="y")
    assert alone.within == pytest.approx(alone.coefficient) and not alone.reversed_within


@pytest.mark.parametrize("method", ["pearson", "spearman"])
def test_intervals_hold_the_true_coefficient_as_often_as_they_say(method: str) -> None:
    random = np.random.default_rng(11)
    truth = 0.6 if method == "pearson" else 6 / math.pi * math.asin(0.3)  # Spearman's of a normal pair
    held = 0
    for _ in range(300):
        x = random.standard_normal(60)
        y = 0.6 * x + 0.8 * random.standard_normal(60)
        _, low, high, _ = correlate(x, y, method)
        held += low <= truth <= high
    assert 270 <= held <= 298  # 285 are expected
