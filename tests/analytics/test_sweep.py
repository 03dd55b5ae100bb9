"""The sweep line: Figure 3 of the paper, a brute force on random sets with ties, minimality, odd intervals."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mpiio_ext.analytics.sweep import sweep
from mpiio_ext.errors import ArgumentError
from support import cbuild

NAN, INF = float("nan"), float("inf")


def test_c_under_sanitizers() -> None:
    cbuild.passes(cbuild.program("analytics/test_critical_path.c", "analytics"), "1000", "7")


def test_figure_3() -> None:
    """Files 1 to 4: 0-10, 6-12, 4-8, 16-18 s. Critical: 1, 2, 4 with 10, 2, 2 s; 14 s in all, not 18."""
    found = sweep([0, 6, 4, 16], [10, 12, 8, 18], segments=True)
    assert found.exclusive.tolist() == [10, 2, 0, 2]
    assert found.critical.tolist() == [True, True, False, True]
    assert found.exclusive.sum() == 14
    np.testing.assert_array_equal(found.since, [0, 10, NAN, 16])


def brute_force(start: list[float], end: list[float]) -> list[float]:
    """Exclusive times by the definition, in the order of times: no sorting, no heap, O(n^2) and more.

    At each moment at which nobody is responsible for the path, of those that are open then the one that ends last is
    chosen; it stays responsible until it ends. Ties: who started first, then who comes first.
    """
    files = [k for k in range(len(start)) if end[k] > start[k]]
    exclusive = [0.0] * len(start)
    now, current = -INF, None
    while True:
        open_now = [k for k in files if start[k] <= now < end[k]] if current is not None else []
        if not open_now:
            later = [start[k] for k in files if start[k] >= now]
            if not later:
                return exclusive
            now = min(later)
            open_now = [k for k in files if start[k] == now]
        current = min(open_now, key=lambda k: (-end[k], start[k], k))
        exclusive[current] = end[current] - now
        now = end[current]


def random_sets(count: int, seed: int) -> tuple[list[list[float]], list[list[float]]]:
    rng = np.random.default_rng(seed)
    starts, ends = [], []
    for _ in range(count):
        n = int(rng.integers(1, 14))
        width = int(rng.choice([3, 8, 20, 1000]))  # few places: many ties
        start = rng.integers(0, width, n).astype(float)
        length = rng.integers(-1, max(2, width // int(rng.integers(1, 6))), n).astype(float)
        starts.append(start.tolist())
        ends.append((start + length).tolist())
    return starts, ends


def test_against_brute_force() -> None:
    """10^4 random sets as the groups of one call: the same files and times; in any order of the rows."""
    seed = 20261122
    starts, ends = random_sets(10_000, seed)
    group = np.repeat(np.arange(len(starts)), [len(each) for each in starts])
    start, end = np.concatenate(starts), np.concatenate(ends)
    expected = np.concatenate([brute_force(a, b) for a, b in zip(starts, ends, strict=True)])
    found = sweep(start, end, group)
    np.testing.assert_array_equal(found.exclusive, expected, err_msg=f"seed {seed}")
    np.testing.assert_array_equal(found.critical, expected > 0)

    shuffled = np.random.default_rng(seed).permutation(len(group))
    again = sweep(start[shuffled], end[shuffled], group[shuffled], segments=True)
    # Equal intervals are among them, and which of two equal ones is taken depends on the order: times by interval.
    kinds, kind = np.unique(np.stack([group, start, end]), axis=1, return_inverse=True)
    assert kinds.shape[1] < len(group)
    kind = kind.ravel()
    np.testing.assert_array_equal(np.bincount(kind, found.exclusive), np.bincount(kind[shuffled], again.exclusive))
    assert np.array_equal(np.bincount(group[shuffled], again.critical), np.bincount(group, expected > 0))


def union(start: np.ndarray, end: np.ndarray, chosen: tuple[int, ...]) -> set[int]:
    return {cell for k in chosen for cell in range(int(start[k]), int(end[k]))}


def test_no_smaller_set_covers() -> None:
    rng = np.random.default_rng(3)
    for _ in range(300):
        n = int(rng.integers(1, 8))
        start = rng.integers(0, 12, n)
        end = start + rng.integers(1, 6, n)
        found = sweep(start, end)
        everything = union(start, end, tuple(range(n)))
        critical = tuple(int(k) for k in np.flatnonzero(found.critical))
        assert union(start, end, critical) == everything
        assert found.exclusive.sum() == len(everything)
        smaller = itertools.combinations(range(n), len(critical) - 1)
        assert all(union(start, end, chosen) != everything for chosen in smaller)


def test_ties_do_not_depend_on_order() -> None:
    """Of equal ends the earlier start continues; of equal starts the farthest end begins; equal ones: the first."""
    assert sweep([0, 1, 2], [4, 9, 9]).exclusive.tolist() == [4, 5, 0]
    assert sweep([2, 1, 0], [9, 9, 4]).exclusive.tolist() == [0, 5, 4]
    assert sweep([0, 0], [3, 5]).exclusive.tolist() == [0, 5]
    assert sweep([7, 7], [8, 8]).exclusive.tolist() == [1, 0]
    assert sweep([0, 3, 3], [3, 4, 6]).exclusive.tolist() == [3, 0, 3]  # who starts as another ends goes on


def test_what_is_not_counted() -> None:
    start = [5, NAN, 1, 9, -INF, 2, 3]
    end = [5, 7, NAN, 8, 4, INF, 4]
    found = sweep(start, end, segments=True)
    assert found.state.tolist() == [2, 3, 3, 4, 5, 5, 1]
    assert found.exclusive.tolist() == [0, 0, 0, 0, 0, 0, 1]
    assert np.isnan(found.since[:6]).all()
    assert sweep([], []).exclusive.tolist() == []
    assert sweep([], [], []).state.tolist() == []


def test_times_of_today_keep_their_digits() -> None:
    """Seconds since 1970 in float64: 0.25 s are 0.25 s."""
    base = 1_795_305_600.0
    assert sweep([base, base + 0.25], [base + 0.5, base + 0.75]).exclusive.tolist() == [0.5, 0.25]


def test_groups_need_not_be_sorted() -> None:
    found = sweep([0, 0, 1, 5], [2, 3, 4, 6], [9, -3, 9, -3], segments=True)
    assert found.exclusive.tolist() == [2, 3, 2, 1]
    np.testing.assert_array_equal(found.since, [0, 0, 2, 5])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(([1], [2, 3]), "start and end"), (([1], [2], [1, 1]), "group"), (([[1]], [[2]]), "same length")],
)
def test_wrong_lengths(arguments: tuple[list[float], ...], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        sweep(*arguments)
