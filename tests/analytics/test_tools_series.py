"""Moments have a zone or are refused; half-open steps belong to one period each."""

from __future__ import annotations

import datetime
import math
import zoneinfo
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mpiio_ext.analytics.tools.moments import MomentError, Period, moment, shown
from mpiio_ext.analytics.tools.rows import Rows, series_of
from mpiio_ext.analytics.tools.series import Series, SeriesError

ZONES = ["UTC", "America/Los_Angeles", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Kiritimati"]
SECONDS = st.integers(0, 2**32)


# ---- moments ---------------------------------------------------------------------------------------------------------


@given(SECONDS, st.sampled_from(ZONES))
def test_an_instant_is_the_same_in_every_zone(seconds: int, name: str) -> None:
    local = datetime.datetime.fromtimestamp(seconds, zoneinfo.ZoneInfo(name))
    assert moment(local) == moment(seconds) == moment(local.isoformat()) == seconds
    assert moment(local, "Asia/Tokyo") == seconds, "a time with a zone keeps it"


@given(SECONDS, st.sampled_from(ZONES))
def test_a_local_time_with_the_sites_zone_is_that_instant(seconds: int, name: str) -> None:
    local = datetime.datetime.fromtimestamp(seconds, zoneinfo.ZoneInfo(name))
    assert moment(local.replace(tzinfo=None), name) == seconds  # fold tells the two hours of autumn apart
    with pytest.raises(MomentError, match="has no time zone"):
        moment(local.replace(tzinfo=None))
    with pytest.raises(MomentError, match="has no time zone"):
        moment(local.replace(tzinfo=None).isoformat())


def test_clocks_that_are_put_forward_and_back() -> None:
    zone = "America/Los_Angeles"
    with pytest.raises(MomentError, match="does not exist in America/Los_Angeles"):
        moment("2018-03-11T02:30:00", zone)
    twice = datetime.datetime(2018, 11, 4, 1, 30)
    assert moment(twice.replace(fold=1), zone) - moment(twice, zone) == 3600
    assert shown(moment("2018-01-28T00:00:00", zone)) == "2018-01-28 08:00:00Z"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (math.nan, "no time"),
        (math.inf, "no time"),
        (1.5e15, "no time"),
        (True, "no time"),
        ("yesterday", "is no time"),
        (None, "is no time"),
        (datetime.date(2018, 1, 28), "is no time"),
    ],
)
def test_what_is_no_time_is_refused(wrong: Any, message: str) -> None:
    with pytest.raises(MomentError, match=message):
        moment(wrong)
    with pytest.raises(MomentError, match="is no time zone"):
        moment("2018-01-28T00:00:00", "Mars/Olympus")
    with pytest.raises(MomentError, match="before it"):
        Period(10.0, 9.0)


# ---- steps -----------------------------------------------------------------------------------------------------------


def made(values: Any, first: float = 1000.0, step_s: float = 5.0, *, level: bool = False) -> Series:
    values = np.asarray(values, dtype=np.float64)
    names = tuple(f"OST{number:04x}" for number in range(values.shape[1]))
    return Series(quantity="bytes_read", unit="B", level=level, step_s=step_s, first=first, names=names, values=values)


def test_steps_at_the_edges() -> None:
    series = made([[1.0], [2.0], [4.0], [8.0]])  # steps 1000, 1005, 1010, 1015
    period = Period(1002.0, 1011.0)
    assert series.within(period, "begin").values.ravel().tolist() == [2.0, 4.0]
    assert series.within(period, "touch").values.ravel().tolist() == [1.0, 2.0, 4.0]
    assert series.within(period, "share").values.ravel() == pytest.approx([0.6, 2.0, 0.8])
    assert made([[50.0]] * 4, level=True).within(period, "share").values.ravel().tolist() == [50.0] * 3
    assert series.within(Period(1005.0, 1010.0)).values.ravel().tolist() == [2.0], "half open"
    assert series.within(Period(1007.0, 1007.0), "touch").values.shape == (0, 1)
    with pytest.raises(SeriesError, match="choose begin"):
        series.within(period, "nearest")  # type: ignore[arg-type]


def test_what_a_source_does_not_have_is_missing_and_not_zero() -> None:
    part = made([[0.0, 3.0], [1.0, np.nan]]).within(Period(995.0, 1015.0))
    assert (part.first, part.values.shape) == (995.0, (4, 2))
    assert part.missing == 5 / 8
    assert part.zeros == 1 / 3
    assert (part.total(), part.by_component()) == (4.0, {"OST0000": 1.0, "OST0001": 3.0})
    np.testing.assert_array_equal(part.rates(), [np.nan, 0.6, 0.2, np.nan])
    nothing = made([[1.0]]).within(Period(2000.0, 2010.0))
    assert (nothing.known, nothing.total(), nothing.missing) == (False, None, 1.0)


BOUNDS = st.floats(0.0, 300.0, allow_nan=False)


@given(
    st.lists(BOUNDS, min_size=3, max_size=3),
    st.sampled_from(["begin", "share"]),
    st.floats(0.0, 7.0),
    st.sampled_from([1.0, 5.0, 60.0]),
    st.integers(0, 2**32),
)
@example([0.0, 1.192092896e-07, 1.0], "share", 0.0, 1.0, 0)  # a bound that is nearly a step's begin
@example([0.0, 0.9999999, 1.0], "share", 0.0, 1.0, 0)
def test_parts_of_a_period_add_up_to_the_whole(
    bounds: list[float], edges: Any, first: float, step: float, seed: int
) -> None:
    low, middle, high = sorted(bounds)
    values = np.random.default_rng(seed).integers(0, 10**12, (40, 3)).astype(float)
    series = made(values, first=first, step_s=step)
    whole, left, right = (
        series.within(Period(*pair), edges).total() or 0.0 for pair in ((low, high), (low, middle), (middle, high))
    )
    assert left + right == pytest.approx(whole, rel=1e-9, abs=1e-3)


@given(BOUNDS, BOUNDS, st.floats(0.0, 7.0), st.integers(0, 2**32))
def test_edges_against_a_sum_over_the_steps(one: float, other: float, first: float, seed: int) -> None:
    """The same by comparing times, step by step."""
    low, high = sorted((one, other))
    values = np.random.default_rng(seed).integers(1, 1000, 50).astype(float)
    series = made(values[:, None], first=first)
    starts = [first + 5.0 * k for k in range(50)]
    near = [abs(bound - start) for bound in (low, high) for start in starts]
    if min(near) < 1e-3:
        return  # rounding decides there
    begun = sum(value for start, value in zip(starts, values, strict=True) if low <= start < high)
    touched = sum(value for start, value in zip(starts, values, strict=True) if start < high and start + 5 > low)
    shared = sum(
        value * max(0.0, min(start + 5, high) - max(start, low)) / 5
        for start, value in zip(starts, values, strict=True)
    )
    period = Period(low, high)
    found = [series.within(period, edges).total() or 0.0 for edges in ("begin", "touch", "share")]
    assert found == pytest.approx([begun, touched if high > low else 0.0, shared], rel=1e-9, abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from("abc"), st.integers(0, 100)), max_size=40), st.randoms())
def test_rows_in_any_order_give_the_same_series(rows: list[tuple[int, str, int]], random: Any) -> None:
    rows = list({(time, name): (time, name, value) for time, name, value in rows}.values())
    expected = {(1000.0 + 5 * time, name): float(value) for time, name, value in rows}
    random.shuffle(rows)
    given = Rows(
        np.array([1000.0 + 5 * time for time, _, _ in rows]),
        [name for _, name, _ in rows],
        np.array([float(value) for _, _, value in rows]),
        5.0,
    )
    series, dropped = series_of(given, "x", first=1000.0, steps=31, order=list("abc"))
    assert dropped == 0
    found = {
        (start, name): value
        for start, row in zip(series.starts, series.values, strict=True)
        for name, value in zip(series.names, row, strict=True)
        if np.isfinite(value)
    }
    assert found == expected


def test_rows_off_the_grid_are_counted() -> None:
    times = np.array([1000.0, 1005.4, 1012.0, np.nan, 1000.0, 2000.0])
    series, dropped = series_of(Rows(times, ["a"] * 6, np.arange(6.0), 5.0), "x", steps=3)
    np.testing.assert_array_equal(series.values.ravel(), [4.0, 1.0, np.nan])  # the later row of the same place counts
    assert dropped == 4
    with pytest.raises(SeriesError, match="no row has a time"):
        series_of(Rows(np.array([np.nan]), ["a"], np.array([1.0]), 5.0), "x")
