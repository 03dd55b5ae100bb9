"""Policies: the paper's Table 4 and formulas, what MCKP adds to them, and properties of any decision."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpiio_ext.delegates.arbitration import (
    Allocation,
    Curve,
    CurveError,
    InfeasibleError,
    Job,
    Machine,
    Mckp,
    Point,
    Policy,
    policy,
    policy_classes,
)
from mpiio_ext.errors import ArgumentError

#: Table 4 of the arbitration paper, and of its text the 18.96 of IOR-MPI; 72 compute nodes in all (Section 5.2).
NODES = {"BT-C": 8, "BT-D": 16, "IOR-MPI": 8, "POSIX-L": 16, "MAD": 8, "S3D": 16}
POINTS = {
    "BT-C": {0: 195.7, 1: 77.6},
    "BT-D": {1: 597.2, 2: 594.2},
    "IOR-MPI": {1: 268.4, 8: 5089.9},
    "POSIX-L": {2: 411.9},
    "MAD": {0: 255.9, 1: 77.8},
    "S3D": {0: 241.3, 2: 48.1},
}
JOBS = [
    Job(name=name, compute_nodes=nodes, processes=8 * nodes, curve=Curve.of(POINTS[name]))
    for name, nodes in NODES.items()
]
MACHINE = Machine(io_nodes=12, compute_nodes=96)


def numbers(allocation: Allocation) -> list[int]:
    return [grant.io_nodes for grant in allocation.grants.values()]


def test_table_4() -> None:
    for name in ("static", "size"):
        found = policy(name).allocate(JOBS, MACHINE)
        assert numbers(found) == [1, 2, 1, 2, 1, 2]
        assert found.bandwidth == pytest.approx(1478.0, abs=0.05)
    best = policy("MCKP").allocate(JOBS, MACHINE)
    assert numbers(best) == [0, 1, 8, 2, 0, 0]
    assert best.bandwidth == pytest.approx(6791.9, abs=0.05)
    assert best.bandwidth / found.bandwidth == pytest.approx(4.59, abs=0.006)
    assert best.bound is not None and best.bound >= best.bandwidth * (1 - 1e-12)


def job(name: str, nodes: int, processes: int, points: dict[int, float] | None, **more: object) -> Job:
    curve = None if points is None else Curve.of(points)
    return Job(name=name, compute_nodes=nodes, processes=processes, curve=curve, **more)  # type: ignore[arg-type]


FLAT = {0: 5.0, 1: 1.0, 2: 2.0, 4: 4.0, 8: 8.0}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("zero", [0, 0, 0]),
        ("one", [1, 1, 1]),
        ("static", [1, 2, 4]),  # R = 64/8: 1, 2, 4
        ("size", [1, 2, 4]),  # 8·8/56 = 1.14, 2.29, 4.57 -> 5 -> 4
        ("process", [4, 2, 1]),  # 8·400/700 = 4.57 -> 5 -> 4; 2.29; 1.14
        ("oracle", [8, 8, 8]),
    ],
)
def test_formulas(name: str, expected: list[int]) -> None:
    jobs = [job("a", 8, 400, FLAT), job("b", 16, 200, FLAT), job("c", 32, 100, FLAT)]
    chosen = policy(name)
    assert isinstance(chosen, Policy) and chosen.name == name.upper()
    assert numbers(chosen.allocate(jobs, Machine(io_nodes=8, compute_nodes=64))) == expected


def test_options_divide_compute_nodes_and_keep_limits() -> None:
    one = job("a", 12, 12, {0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0, 4: 5.0, 5: 99.0, 6: 6.0, 8: 100.0})
    assert numbers(Mckp().allocate([one], Machine(io_nodes=9))) == [6]
    assert numbers(Mckp().allocate([one], Machine(io_nodes=9, divisible=False))) == [8]
    assert numbers(Mckp().allocate([one], Machine(io_nodes=9, most=4))) == [4]
    assert numbers(Mckp().allocate([one], Machine(io_nodes=9, counts=(0, 2, 3)))) == [3]
    assert numbers(Mckp().allocate([job("a", 4, 4, {0: 9.0, 1: 1.0})], Machine(io_nodes=4, direct=False))) == [1]
    with pytest.raises(CurveError, match=r"job 'a'.*pool has 0"):
        Mckp().allocate([one], Machine(io_nodes=0, direct=False))


def test_unknown_jobs_get_the_default_and_are_cut_last() -> None:
    unknown, known = job("u", 32, 64, None), job("k", 32, 64, FLAT)
    machine = Machine(io_nodes=8, compute_nodes=64, direct=False)
    found = Mckp().allocate([unknown, known], machine)
    assert found.grants["u"].io_nodes == 4 and found.grants["u"].bandwidth is None
    assert found.grants["k"].io_nodes == 4
    crowd = [job(f"u{i}", 32, 64, None) for i in range(4)]
    assert sum(numbers(Mckp().allocate([*crowd, known], machine))) <= 8
    assert Mckp().allocate([*crowd, known], machine).grants["k"].io_nodes == 1


def test_shared_node() -> None:
    """Section 3.1: one node's bandwidth over the number of jobs, and N - 1 nodes to give."""
    jobs = [job("a", 8, 8, {1: 80.0, 2: 1000.0}), job("b", 8, 8, {1: 10.0, 2: 20.0})]
    machine = Machine(io_nodes=3, direct=False)
    found = Mckp(shared_node=True).allocate(jobs, machine)
    assert (found.grants["a"].io_nodes, found.grants["a"].shared) == (2, False)
    assert (found.grants["b"].io_nodes, found.grants["b"].shared, found.grants["b"].bandwidth) == (0, True, 5.0)
    assert found.io_nodes == 3 and found.is_within_pool
    with pytest.raises(InfeasibleError):
        Mckp().allocate(jobs, Machine(io_nodes=1, direct=False))
    both = Mckp(shared_node=True).allocate(jobs, Machine(io_nodes=1, direct=False))
    assert all(grant.shared for grant in both.grants.values())


def test_weights() -> None:
    jobs = [job("a", 8, 8, {0: 0.0, 8: 100.0}), job("b", 8, 8, {0: 0.0, 8: 90.0}, weight=2.0)]
    assert numbers(Mckp().allocate(jobs, Machine(io_nodes=8))) == [0, 8]
    assert Mckp().allocate(jobs, Machine(io_nodes=8)).bandwidth == 90.0


def test_floor_and_how_far_it_is_lowered() -> None:
    jobs = [job("a", 8, 8, {0: 10.0, 4: 500.0, 8: 1000.0}), job("b", 8, 8, {0: 1.0, 1: 6.0, 4: 10.0})]
    assert numbers(Mckp().allocate(jobs, Machine(io_nodes=8))) == [8, 0]
    assert numbers(Mckp(floor=0.5).allocate(jobs, Machine(io_nodes=8))) == [4, 4]
    tight = Mckp(floor=0.9).allocate(jobs, Machine(io_nodes=8))
    assert numbers(tight) == [4, 4] and "lowered from 0.9 to 0.5" in tight.notes[0]


def test_noise() -> None:
    """A single lucky measurement does not outweigh a repeated one."""
    sure = Curve(
        {
            0: Point(mean=100, best=100, deviation=1, repetitions=10),
            4: Point(mean=180, best=185, deviation=2, repetitions=10),
        }
    )
    lucky = Curve(
        {
            0: Point(mean=100, best=100, deviation=1, repetitions=10),
            4: Point(mean=200, best=300, deviation=90, repetitions=2),
        }
    )
    jobs = [
        Job(name="lucky", compute_nodes=8, processes=8, curve=lucky),
        Job(name="sure", compute_nodes=8, processes=8, curve=sure),
    ]
    assert numbers(Mckp().allocate(jobs, Machine(io_nodes=4))) == [4, 0]
    assert numbers(Mckp(confidence=0.9).allocate(jobs, Machine(io_nodes=4))) == [0, 4]


def test_migration_cost_and_hysteresis() -> None:
    def decide(mckp: Mckp) -> list[int]:
        jobs = [job("a", 8, 8, {0: 100.0, 4: 200.0}, current=4), job("b", 8, 8, {0: 100.0, 4: 210.0}, current=0)]
        return numbers(mckp.allocate(jobs, Machine(io_nodes=4)))

    assert decide(Mckp()) == [0, 4]
    assert decide(Mckp(migration_cost_s=6, horizon_s=100)) == [4, 0]
    assert decide(Mckp(migration_cost_s=1, horizon_s=100)) == [0, 4]
    assert decide(Mckp(hysteresis=0.05)) == [4, 0]
    assert decide(Mckp(hysteresis=0.03)) == [0, 4]
    newcomer = [job("a", 8, 8, {0: 100.0, 4: 200.0}, current=4), job("b", 8, 8, {0: 0.0, 4: 900.0})]
    kept = Mckp(hysteresis=5).allocate(newcomer, Machine(io_nodes=4))
    assert numbers(kept) == [4, 0] and "keep" in kept.notes[0]


def test_ties_move_nobody() -> None:
    """Jobs without a curve that lack something, and equal curves: what runs stays, with hysteresis and without."""
    for mckp in (Mckp(), Mckp(hysteresis=5, migration_cost_s=60)):
        for points in (None, {0: 0.0, 1: 100.0, 2: 200.0}):
            for has in ((1, 2), (2, 1)):
                jobs = [job("c", 32, 32, points, current=has[0]), job("d", 32, 32, points, current=has[1])]
                found = mckp.allocate(jobs, Machine(io_nodes=3, direct=points is not None))
                assert tuple(numbers(found)) == has and found.value == (0 if points is None else 300)


def test_who_gains_moves_and_others_stay() -> None:
    """c has become better with 4; that a and b could change places for nothing moves neither."""
    jobs = [
        job("a", 8, 8, {1: 50.0, 2: 60.0}, current=1),
        job("b", 8, 8, {1: 50.0, 2: 60.0}, current=2),
        job("c", 8, 8, {1: 10.0, 4: 90.0}, current=1),
    ]
    assert numbers(Mckp().allocate(jobs, Machine(io_nodes=7))) == [1, 2, 4]


def test_an_unknown_job_that_has_too_little_gets_its_default_back() -> None:
    """Hysteresis weighs bandwidths; of a job without a curve there is none to weigh."""
    jobs = [job("a", 32, 32, None, current=2), job("b", 32, 32, {1: 100.0, 2: 101.0}, current=2)]
    machine = Machine(io_nodes=8, compute_nodes=64, direct=False)
    assert numbers(Mckp(hysteresis=0.5).allocate(jobs, machine)) == [4, 2]


def test_a_newcomer_does_not_end_hysteresis() -> None:
    """The pool is full and one more comes: one of three gives way, the other two keep what they have."""
    points = {1: 50.0, 2: 100.0, 4: 205.0}
    jobs = [job(name, 32, 32, points, current=2) for name in "abc"]
    newcomer = job("new", 32, 32, {1: 10.0, 2: 11.0})
    machine = Machine(io_nodes=6, direct=False)
    kept = Mckp(hysteresis=0.2).allocate([*jobs, newcomer], machine)
    assert sorted(numbers(kept)[:3]) == [1, 2, 2] and kept.grants["new"].io_nodes == 1
    free = Mckp().allocate(
        [*(job(name, 32, 32, points) for name in "abc"), newcomer], Machine(io_nodes=7, direct=False)
    )
    assert sorted(numbers(free)[:3]) == [1, 1, 4]


def test_value_and_bound_say_nothing_of_penalties() -> None:
    jobs = [job("u", 32, 32, None), job("v", 32, 32, None), job("k", 32, 32, {1: 80.0, 2: 90.0})]
    found = Mckp().allocate(jobs, Machine(io_nodes=4, direct=False))
    assert numbers(found) == [2, 1, 1] and found.value == 80 and found.bound == pytest.approx(80)


def test_more_unknown_jobs_than_io_nodes_share_one() -> None:
    jobs = [job(f"u{number}", 8, 8, None) for number in range(5)]
    found = Mckp(shared_node=True).allocate(jobs, Machine(io_nodes=3, direct=False))
    assert found.is_within_pool and sum(grant.shared for grant in found.grants.values()) == 3


RUNNING = st.tuples(
    st.sampled_from([4, 8]),
    st.one_of(st.none(), st.lists(st.integers(0, 60), min_size=4, max_size=4)),
    st.one_of(st.none(), st.sampled_from([0, 1, 2, 4])),
)


@settings(deadline=None, max_examples=150)
@given(st.lists(RUNNING, min_size=1, max_size=4), st.integers(0, 9), st.sampled_from([0.0, 0.2]))
def test_against_every_allocation(
    drawn: list[tuple[int, list[int] | None, int | None]], pool: int, hysteresis: float
) -> None:
    """Of all allocations: unknown jobs lack the least, then the largest bandwidth, then the fewest moves."""
    jobs = [
        job(
            f"j{i}",
            nodes,
            8,
            None if values is None else dict(zip((0, 1, 2, 4), map(float, values), strict=True)),
            current=current,
        )
        for i, (nodes, values, current) in enumerate(drawn)
    ]
    machine = Machine(io_nodes=pool, compute_nodes=16)

    def ranked(given: tuple[int, ...]) -> tuple[int, float, int]:
        lacking = sum(
            -(-each.compute_nodes * pool // 16) > count and each.curve is None and default(each) - count
            for each, count in zip(jobs, given, strict=True)
        )
        gained = sum(each.curve.bandwidth(count) for each, count in zip(jobs, given, strict=True) if each.curve)
        moved = sum(each.current is not None and each.current != count for each, count in zip(jobs, given, strict=True))
        return -int(lacking), gained, -moved

    def default(each: Job) -> int:
        wanted = -(-each.compute_nodes * pool // 16)
        return max(count for count in usable(each) if count <= wanted)

    def usable(each: Job) -> list[int]:
        counts = each.curve.counts if each.curve else range(min(pool, each.compute_nodes) + 1)
        return [count for count in counts if count <= pool and (count == 0 or each.compute_nodes % count == 0)]

    sets = [usable(each) if each.curve else [c for c in usable(each) if c <= default(each)] for each in jobs]
    best = max(ranked(given) for given in itertools.product(*sets) if sum(given) <= pool)
    found = Mckp(hysteresis=hysteresis).allocate(jobs, machine)
    given = tuple(numbers(found))
    assert sum(given) <= pool and ranked(given)[0] == best[0]
    assert found.value == pytest.approx(ranked(given)[1]) and found.bound is not None
    assert found.bound >= best[1] - 1e-6
    if hysteresis == 0:
        assert ranked(given) == pytest.approx(best)
    else:
        assert ranked(given)[1] >= best[1] / (1 + hysteresis) - 1e-6


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match="two jobs are called 'a'"):
        policy("size").allocate([job("a", 1, 1, FLAT), job("a", 1, 1, FLAT)], MACHINE)
    with pytest.raises(ArgumentError, match="no policy 'best'"):
        policy("best")
    for bad in ({"confidence": 1.0}, {"floor": 2.0}, {"migration_cost_s": 700.0}, {"hysteresis": -1.0}):
        with pytest.raises(ArgumentError, match=next(iter(bad))):
            Mckp(**bad)  # type: ignore[arg-type]


JOB = st.builds(
    lambda nodes, processes, values: (nodes, processes, dict(zip((0, 1, 2, 4, 8), values, strict=True))),
    st.sampled_from([8, 16, 32]),
    st.integers(1, 512),
    st.lists(st.integers(0, 1000), min_size=5, max_size=5),
)


@settings(deadline=None, max_examples=150)
@given(st.lists(JOB, min_size=1, max_size=6), st.integers(0, 60), st.floats(0, 1), st.randoms())
def test_properties(
    drawn: list[tuple[int, int, dict[int, float]]], pool: int, floor: float, rng: random.Random
) -> None:
    jobs = [job(f"j{i}", *each) for i, each in enumerate(drawn)]
    machine, larger = Machine(io_nodes=pool), Machine(io_nodes=pool + 1)
    best = Mckp().allocate(jobs, machine)
    shuffled = jobs.copy()
    rng.shuffle(shuffled)
    assert Mckp().allocate(shuffled, machine).grants == best.grants
    assert Mckp().allocate(jobs, larger).bandwidth >= best.bandwidth - 1e-6
    assert best.is_within_pool and Mckp(floor=floor).allocate(jobs, machine).is_within_pool
    oracle = policy("oracle").allocate(jobs, machine)
    assert oracle.bandwidth >= best.bandwidth - 1e-6
    for name in policy_classes():
        other = policy(name).allocate(jobs, machine)
        if other.is_within_pool:
            assert best.bandwidth >= other.bandwidth - 1e-6


def test_what_unknown_jobs_cost_is_said() -> None:
    """A job of which nothing is known gets the default first; that a known one loses by it does not go unnoticed."""
    known = Job(name="known", compute_nodes=4, processes=4, curve=Curve.of({1: 100.0, 2: 150.0, 4: 900.0}))
    unknown = Job(name="new", compute_nodes=4, processes=4)
    machine = Machine(io_nodes=5, direct=False, divisible=False)
    found = Mckp().allocate([known, unknown], machine)
    assert (found.grants["known"].io_nodes, found.grants["new"].io_nodes) == (2, 3)
    assert found.notes == (
        "jobs without a curve get 3 I/O nodes, the default (new): with 1 for them the others "
        "would have 750.0 MB/s more than 150.0",
    )
    assert Mckp().allocate([known], machine).notes == () == Mckp().allocate([unknown], machine).notes
    flat = replace(known, curve=Curve.of({1: 100.0, 2: 100.0, 4: 100.0}))
    assert Mckp().allocate([flat, unknown], machine).notes == ()
