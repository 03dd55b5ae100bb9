"""Where marks lie in the drawings of the report."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpiio_ext.common.results import Measured, Spread
from mpiio_ext.report.charts import LogScale, bars, histogram_path, pieces, ratio_scale, shown_buckets
from mpiio_ext.report.load import load
from support import report_results as results

RATIOS = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=5)
COUNTS = st.lists(st.integers(0, 10**12), min_size=48, max_size=48)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(RATIOS, max_size=6))
def test_every_ratio_lies_on_the_scale_in_order(groups):
    spreads = [Spread.of(group) for group in groups]
    scale = ratio_scale(spreads)
    assert scale.low <= 0.5
    assert scale.high >= 2
    for spread in spreads:
        mark = scale.whisker(spread)
        assert 4 <= mark.low <= mark.at + 0.1
        assert mark.at <= mark.low + mark.width + 0.2
        assert mark.low + mark.width <= 96.1
    values = sorted(value for group in groups for value in group)
    assert [scale.at(value) for value in values] == sorted(scale.at(value) for value in values)


def test_half_and_double_lie_alike():
    scale = LogScale(0.25, 4.0)
    assert scale.at(1) == 50
    assert scale.at(2) - 50 == 50 - scale.at(0.5)
    assert (scale.at(0.25), scale.at(0.01), scale.at(4), scale.at(100)) == (4, 4, 96, 96)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.floats(1e-9, 0.5), st.floats(2, 1e9))
def test_ticks_are_few_round_and_hold_one(low, high):
    scale = LogScale(low, high)
    ticks = scale.ticks()
    assert 1.0 in ticks
    assert len(ticks) <= 6
    assert ticks == sorted(set(ticks))
    assert all(low <= tick <= high for tick in ticks)
    assert all(f"{tick:.0e}"[0] in "1235" for tick in ticks)


@pytest.fixture(scope="module")
def rows(tmp_path_factory) -> tuple[Measured, ...]:
    path = tmp_path_factory.mktemp("rows") / "results.json"
    return load(results.write(path, results.large_document(kernels=2, repetitions=3))).rows


def test_bars_are_in_proportion(rows):
    drawn = bars(rows)
    largest = max(row.bandwidth.high for row in rows)
    for row, bar in zip(rows, drawn, strict=True):
        assert bar.at == pytest.approx(100 * row.bandwidth.median / largest, abs=0.06)
        assert bar.low == pytest.approx(100 * row.bandwidth.low / largest, abs=0.06)
        assert bar.low + bar.width == pytest.approx(100 * row.bandwidth.high / largest, abs=0.11)


def test_pieces_follow_each_other_and_are_in_proportion(rows):
    drawn = pieces(rows)
    longest = max(sum(row.seconds[name] for name in ("open", "view", "data", "close")) for row in rows)
    for row, stacked in zip(rows, drawn, strict=True):
        end = 0.0
        for piece in stacked:
            assert piece.width == pytest.approx(100 * row.seconds[piece.name] / longest, abs=0.06)
            assert piece.start == pytest.approx(end, abs=0.25)
            end = piece.start + piece.width
        assert end <= 100.2


def test_nothing_to_draw():
    assert bars([]) == pieces([]) == []
    assert list(shown_buckets([None, [0] * 48])) == []
    assert histogram_path([0] * 48, range(0)) == ""


def columns_of(path: str) -> dict[int, int]:
    """Return {place of the column: height} of a path."""
    return {(int(x) - 1) // 10: int(tall) for x, tall in re.findall(r"M(\d+) 20v-(\d+)h8v\2z", path)}


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(COUNTS)
def test_histogram_shows_every_bucket_that_is_filled(counts):
    buckets = shown_buckets([counts])
    path = histogram_path(counts, buckets)
    columns = columns_of(path)
    assert {buckets[place] for place in columns} == {k for k, count in enumerate(counts) if count}
    fullest = max(counts)
    for place, tall in columns.items():
        assert 1 <= tall <= 20
        assert abs(tall - 20 * counts[buckets[place]] / fullest) <= 1
    assert path.count("M") == len(columns)
