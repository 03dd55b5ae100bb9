"""The exact knapsack: against every combination, HiGHS and OR-Tools, and properties that any instance must have."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpiio_ext.delegates import arbitration as arb
from mpiio_ext.delegates.arbitration import knapsack
from mpiio_ext.errors import ArgumentError, MpiioExtError
from support import fuzz

Classes = list[list[tuple[int, float]]]

OPTION = st.tuples(st.integers(0, 12), st.integers(0, 40).map(lambda v: v / 4))
CLASSES = st.lists(st.lists(OPTION, min_size=1, max_size=5), min_size=0, max_size=6)


def brute(classes: Classes, capacity: int) -> tuple[float, int] | None:
    """Return the best value and its least weight, or None."""
    found = [
        (sum(p for _, p in each), -sum(w for w, _ in each))
        for each in itertools.product(*classes)
        if sum(w for w, _ in each) <= capacity
    ]
    return (max(found)[0], -max(found)[1]) if found else None


def value_of(classes: Classes, solution: arb.Solution) -> tuple[float, int]:
    chosen = [each[k] for each, k in zip(classes, solution.choices.tolist(), strict=True)]
    return sum(p for _, p in chosen), sum(w for w, _ in chosen)


@settings(deadline=None, max_examples=300)
@given(CLASSES, st.integers(0, 40))
def test_is_the_best_of_all_combinations(classes: Classes, capacity: int) -> None:
    expected = brute(classes, capacity)
    if expected is None:
        with pytest.raises(arb.InfeasibleError, match="capacity"):
            arb.solve(classes, capacity)
        return
    solution = arb.solve(classes, capacity)
    assert (solution.value, solution.weight) == expected == value_of(classes, solution)
    assert solution.weight <= capacity
    assert solution.bound >= solution.value


@settings(deadline=None, max_examples=100)
@given(CLASSES.filter(lambda c: all(any(w == 0 for w, _ in each) for each in c)), st.integers(0, 40), st.randoms())
def test_monotone_in_capacity_and_order_does_not_matter(classes: Classes, capacity: int, rng: random.Random) -> None:
    small, large = arb.solve(classes, capacity), arb.solve(classes, capacity + 1)
    assert large.value >= small.value
    order = list(range(len(classes)))
    rng.shuffle(order)
    other = arb.solve([classes[k] for k in order], capacity)
    assert (other.value, other.weight) == (small.value, small.weight)
    solver = arb.Solver(capacity)
    for k in order:  # the order of keys decides, not that of coming
        solver.add(k, [w for w, _ in classes[k]], [p for _, p in classes[k]])
    assert solver.solve().choices.tolist() == small.choices.tolist()


#: Values of the second kind are the same only after rounding: 2^-50 is less than a unit of five classes.
TIED = st.tuples(st.integers(0, 5), st.integers(-1, 3).map(float) | st.integers(0, 2).map(lambda k: 1 + k * 2.0**-50))


def units(value: float) -> int:
    """Return a value up to 4 as a number of units; a sum of up to 31 values is exact in them."""
    return round(value * 2.0 ** (52 - 2 - 5))


@settings(deadline=None, max_examples=300)
@given(st.lists(st.lists(TIED, min_size=1, max_size=5), min_size=1, max_size=5), st.integers(0, 16))
def test_ties_take_the_least_weight_then_the_lightest_options_of_the_last_classes(
    classes: Classes, capacity: int
) -> None:
    classes = [[*each, (0, 2.5)] for each in classes]  # the largest value is from 2 to below 4: the unit of units()

    def rank(choice: tuple[int, ...]) -> tuple[object, ...]:
        taken = [each[k] for each, k in zip(classes, choice, strict=True)]
        # of options of one weight the best as given, of those the first; from the last class on
        of_class = [(w, -p, k) for (w, p), k in zip(taken, choice, strict=True)]
        return (
            -sum(units(p) for _, p in taken),
            sum(w for w, _ in taken),
            [w for w, _ in reversed(taken)],
            of_class[::-1],
        )

    fitting = [
        choice
        for choice in itertools.product(*(range(len(each)) for each in classes))
        if sum(each[k][0] for each, k in zip(classes, choice, strict=True)) <= capacity
    ]
    assert tuple(arb.solve(classes, capacity).choices.tolist()) == min(fitting, key=rank)


def draw(rng: np.random.Generator) -> tuple[Classes, int]:
    capacity = int(rng.integers(1, 200))
    classes: Classes = []
    for _ in range(int(rng.integers(1, 25))):
        counts = sorted({0, *rng.integers(0, capacity + 3, int(rng.integers(1, 9))).tolist()})
        scale = float(rng.integers(1, 1000))
        noise = rng.random(len(counts))
        classes.append([(w, float(round(scale * w**0.7 * n))) for w, n in zip(counts, noise.tolist(), strict=True)])
    return classes, capacity


def test_agrees_with_highs_on_random_instances() -> None:
    import scipy.optimize

    rng = np.random.default_rng(20261123)
    for _ in range(fuzz.examples(60)):
        classes, capacity = draw(rng)
        of = np.repeat(np.arange(len(classes)), [len(each) for each in classes])
        weights, values = np.array([option for each in classes for option in each]).T
        found = scipy.optimize.milp(
            -values,
            integrality=np.ones(of.size),
            bounds=scipy.optimize.Bounds(0, 1),
            options={"mip_rel_gap": 0},
            constraints=[
                scipy.optimize.LinearConstraint(weights[None, :], -np.inf, capacity),
                scipy.optimize.LinearConstraint(of == np.arange(len(classes))[:, None], 1, 1),
            ],
        )
        assert found.success
        most = np.column_stack([np.zeros(of.size), weights <= capacity])  # what does not fit alone is no option
        relaxed = scipy.optimize.linprog(
            -values,
            weights[None, :],
            capacity,
            of == np.arange(len(classes))[:, None],
            np.ones(len(classes)),
            bounds=most,
        )
        solution = arb.solve(classes, capacity)
        assert solution.value == round(-found.fun)
        assert solution.bound == pytest.approx(-relaxed.fun, rel=1e-9)


def test_agrees_with_cp_sat_on_random_instances() -> None:
    cp_model = pytest.importorskip("ortools.sat.python.cp_model")
    rng = np.random.default_rng(20261122)
    for _ in range(fuzz.examples(500)):
        classes, capacity = draw(rng)
        model = cp_model.CpModel()
        takes = [[model.NewBoolVar("") for _ in each] for each in classes]
        for each in takes:
            model.AddExactlyOne(each)
        flat = [(x, w, p) for xs, each in zip(takes, classes, strict=True) for x, (w, p) in zip(xs, each, strict=True)]
        model.Add(sum(x * w for x, w, _ in flat) <= capacity)
        model.Maximize(sum(x * int(p) for x, _, p in flat))
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        assert solver.Solve(model) == cp_model.OPTIMAL
        assert arb.solve(classes, capacity).value == solver.ObjectiveValue()


def test_solutions_do_not_depend_on_those_before() -> None:
    """Memory is kept between calls: of instances of all sizes, and of calls that were refused."""
    rng = np.random.default_rng(11)
    instances = [[draw(rng)[0][0] for _ in range(count)] for count in (40, 1, 200, 7, 40)]
    found = [arb.solve(classes, 60) for classes in instances]
    with pytest.raises(ArgumentError, match="class 1"):
        arb.solve([[(0, 1.0)], [(-1, 1.0)]], 60)
    for classes, one in zip(reversed(instances), reversed(found), strict=True):
        again = arb.solve(classes, 60)
        assert again.choices.tolist() == one.choices.tolist()
        assert (again.value, again.weight) == (one.value, one.weight)


def test_what_came_and_went_does_not_matter() -> None:
    rng = np.random.default_rng(7)
    solver = arb.Solver(100)
    there: dict[int, list[tuple[int, float]]] = {}
    for _ in range(300):
        key = int(rng.integers(0, 40))
        if key in there:
            solver.remove(key)
            del there[key]
        else:
            there[key] = draw(rng)[0][0]
            solver.add(key, [w for w, _ in there[key]], [p for _, p in there[key]])
        expected = arb.solve([there[k] for k in sorted(there)], 100)
        got = solver.solve()
        assert solver.keys.tolist() == sorted(there)
        assert got.choices.tolist() == expected.choices.tolist()
        assert (got.value, got.weight, len(solver)) == (expected.value, expected.weight, len(there))


def test_profiles_are_the_solutions_of_every_capacity() -> None:
    rng = np.random.default_rng(3)
    classes = [draw(rng)[0][0] for _ in range(12)]
    first = np.cumsum([0, *(len(each) for each in classes)])
    flat = [option for each in classes for option in each]
    members = rng.integers(0, 12, (20, 5))
    table = arb.profiles(first, [w for w, _ in flat], [p for _, p in flat], members, 60)
    assert table.shape == (20, 61)
    for row, chosen in zip(table, members.tolist(), strict=True):
        for capacity in (0, 1, 7, 33, 60):
            assert row[capacity] == arb.solve([classes[k] for k in chosen], capacity).value


def test_large_instance_equals_its_profile() -> None:
    rng = np.random.default_rng(5)
    weights = np.tile(np.arange(0, 40, 4), 800)
    values = np.floor(np.sort(rng.random((800, 10)), axis=1) * rng.integers(1, 5000, (800, 1))).ravel()
    first = np.arange(801) * 10
    solution = arb.solve_arrays(first, weights, values, 700)
    table = arb.profiles(first, weights, values, np.arange(800)[None, :], 700)
    assert solution.value == table[0, 700]
    assert solution.core < 800  # most classes are decided without the tables


def test_rows_in_blocks_and_options_in_parts_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little memory: only some rows of the table are kept, and few options are compared at once."""
    rng = np.random.default_rng(17)
    for count in (1, 2, 23, 64, 101):
        first = np.arange(count + 1) * 9
        weights = rng.integers(0, 30, (count, 9))
        weights[:, 0] = 0
        values = np.where(rng.random((count, 9)) < 0.9, 3.0 * weights, 2.0 * weights)  # nothing can be left out
        with monkeypatch.context() as patch:
            whole = arb.solve_arrays(first, weights.ravel(), values.ravel(), 150)
            patch.setattr(knapsack, "_MOST_ROWS", 1)
            patch.setattr(knapsack, "_AT_ONCE", 400)
            parts = arb.solve_arrays(first, weights.ravel(), values.ravel(), 150)
        assert parts.choices.tolist() == whole.choices.tolist()
        assert parts[:3] == whole[:3]


def test_large_capacities_and_weights() -> None:
    classes = [[(0, 1.0), (1, 2.0), (7, 8.0)], [(2, 0.0), (2**20, 9.0)]]
    for capacity, expected in ((2**20, (10.0, 2**20, [0, 1])), (2**24, (17.0, 2**20 + 7, [2, 1]))):
        solution = arb.solve(classes, capacity)
        assert (solution.value, solution.weight, solution.choices.tolist()) == expected
    assert arb.solve([[(0, 0.0), (2**31 - 1, 1.0)]], 5).choices.tolist() == [0]


def test_values_of_any_size() -> None:
    for scale in (2.0**-900, 1.0, 2.0**990):
        solution = arb.solve([[(0, scale), (1, 3 * scale)], [(0, -scale), (1, 0.0)]], 1)
        assert (solution.value, solution.choices.tolist()) == (2 * scale, [1, 0])
    assert arb.solve([], 3)[:3] == (0.0, 0.0, 0)


def test_too_little_memory_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(knapsack, "_rows", full)
    with pytest.raises(MpiioExtError, match="memory"):
        arb.solve([[(0, 1.0), (1, 2.0)], [(0, 1.0), (1, 2.0)]], 1)


def test_refusals_name_the_class() -> None:
    solver = arb.Solver(5)
    solver.add(3, [0, 1], [1.0, 2.0])
    for weights, values in (([], []), ([-1], [1.0]), ([0], [float("nan")]), ([0], [float("inf")])):
        with pytest.raises(ArgumentError, match="class 4"):
            solver.add(4, weights, values)
    with pytest.raises(ArgumentError, match="class 3"):
        solver.add(3, [0], [1.0])
    with pytest.raises(ArgumentError, match="no class 4"):
        solver.remove(4)
    with pytest.raises(ArgumentError, match="class 1"):
        arb.solve([[(0, 1.0)], [(0, float("nan"))]], 4)
    for capacity in (-1, 2**24 + 1, 1.5, True):
        with pytest.raises(ArgumentError, match="capacity"):
            arb.Solver(capacity)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="first"):
        arb.solve_arrays([0, 2, 1], [0], [1.0], 4)
    with pytest.raises(ArgumentError, match="ascend"):
        arb.profiles([0, 2], [3, 1], [1.0, 1.0], [[0]], 4)
    with pytest.raises(ArgumentError, match="members"):
        arb.profiles([0, 2], [1, 3], [1.0, 1.0], [[1]], 4)
