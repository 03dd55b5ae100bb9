"""What the SDCI page says of its Figure 2, about the lock model (sources: docs/explanation/file-domains.md)."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpiio_ext.partitioning import Geometry
from mpiio_ext.partitioning.locks import Outcome, gpfs, lustre, simulate, uncached, unlocked

MIB = 2**20


def run(method: str, *, stripes: int = 36, servers: int = 3, aggregators: int = 6, **options: object) -> Outcome:
    geometry = Geometry.of_stripes(stripes, servers=servers, aggregators=aggregators)
    given = {"file_system": lustre(), "window_bytes": MIB, **options}
    return simulate(geometry, method, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("system", [lustre(), gpfs()], ids=lambda s: s.name)
def test_aligned_has_no_false_sharing(system: object) -> None:
    """'If file domains are not partitioned at the file stripe boundaries, lock contentions will occur.'"""
    geometry = Geometry(start_bytes=100, end_bytes=60 * MIB + 7, stripe_size_bytes=MIB, servers=3, aggregators=6)
    even, aligned = (
        simulate(geometry, m, file_system=system, window_bytes=4 * MIB)  # type: ignore[arg-type]
        for m in ("even", "aligned")
    )
    assert even.totals["shared_units"] == 5
    assert aligned.totals["shared_units"] == 0
    assert aligned.total_conflicts < even.total_conflicts


@given(
    start=st.integers(0, 5000), length=st.integers(1, 20000), servers=st.integers(1, 9), aggregators=st.integers(1, 20)
)
def test_aligned_never_has_false_sharing(start: int, length: int, servers: int, aggregators: int) -> None:
    geometry = Geometry(
        start_bytes=start, end_bytes=start + length, stripe_size_bytes=100, servers=servers, aggregators=aggregators
    )
    for system in (lustre(), gpfs()):
        assert simulate(geometry, "aligned", file_system=system, window_bytes=300).totals["shared_units"] == 0


def test_aligned_has_fewer_conflicts_nearly_everywhere() -> None:
    """With tokens everywhere. With server locks, which grow into a neighbour's domain, not quite everywhere."""
    rng = random.Random(4)
    fewer = {"Lustre": 0, "GPFS": 0}
    for _ in range(100):
        start, stripes, servers = rng.randrange(1, 50 * MIB), rng.randint(30, 300), rng.randint(1, 12)
        geometry = Geometry(
            start_bytes=start,
            end_bytes=start + stripes * MIB + rng.randrange(MIB),
            stripe_size_bytes=MIB,
            servers=servers,
            aggregators=rng.randint(2, 24),
        )
        for system in (uncached(lustre()), uncached(gpfs())):
            even, aligned = (
                simulate(geometry, m, file_system=system, window_bytes=4 * MIB) for m in ("even", "aligned")
            )
            fewer[system.name] += aligned.total_conflicts < even.total_conflicts
    assert fewer["GPFS"] == 100
    assert 80 <= fewer["Lustre"] < 100


def test_static_cyclic_each_server_hears_one_aggregator_when_they_are_a_factor() -> None:
    """'each I/O server will receive requests from one and only aggregator': no lock is ever called back."""
    o = run("static_cyclic", servers=6, aggregators=3, collectives=4)
    assert o.aggregators.tolist() == [1] * 6
    assert o.lock_requests.tolist() == [1] * 6  # the association stays over successive collectives
    assert o.total_revocations == 0


def test_interleaving_revokes_and_group_cyclic_does_not() -> None:
    """Interleaved requests revoke 'each other's lock extent'; group-cyclic avoids it: its cost does not grow."""
    short = {m: run(m).total_revocations for m in ("static_cyclic", "group_cyclic")}
    long = {m: run(m, stripes=360).total_revocations for m in ("static_cyclic", "group_cyclic")}
    assert long["static_cyclic"] > 5 * short["static_cyclic"]
    assert long["group_cyclic"] == short["group_cyclic"] < short["static_cyclic"]


def test_transpose_has_one_lock_extent_conflict_per_server() -> None:
    """'there is only one lock extent conflict per I/O server in this example'"""
    o = run("transpose", stripes=12, aggregators=5)
    assert o.owner_changes.tolist() == [1, 1, 1]
    assert o.aggregators.tolist() == [2, 2, 2]


def test_transpose_on_the_lock_server_has_one_conflict_or_a_second_one_from_growth() -> None:
    """What a lock server sees depends on the order of requests: a lock may have grown over what its holder never needs.

    In no order fewer than the one of the page, in none more than two, and in many just that one at every server.
    """
    found = [
        run("transpose", stripes=12, aggregators=5, window_bytes=window_mib * MIB, order_seed=seed).conflicts.tolist()
        for window_mib in (1, 2, 4, 16)
        for seed in (None, *range(1, 30))
    ]
    assert {n for conflicts in found for n in conflicts} == {1, 2}
    assert found.count([1, 1, 1]) > len(found) / 5


@pytest.mark.parametrize("aggregators", [3, 6, 12])
def test_static_cyclic_an_aggregator_goes_to_one_server_when_they_are_a_multiple(aggregators: int) -> None:
    """'the I/O requests from an aggregator will always go to the same I/O server'"""
    o = run("static_cyclic", aggregators=aggregators, collectives=3)
    assert o.aggregators.tolist() == [aggregators // 3] * 3  # nobody is heard by two servers
    other = run("static_cyclic", aggregators=aggregators + 1, collectives=3)
    assert int(other.aggregators.sum()) > aggregators + 1


def test_stripe_size_io_saves_waiting_for_several_locks() -> None:
    """'a single I/O request can result in multiple lock requests'; 'saving the time of waiting for multiple locks'.

    Where another aggregator holds some of the locks: a request of many stripes waits for the slowest of them. Where all
    are free it is the other way round, since their requests are under way together (docs/explanation/locks.md).
    """
    shape = {"stripes": 36, "servers": 3, "aggregators": 3, "window_bytes": 16 * MIB}

    def waited_s(stripe_size_io: bool) -> float:
        with_locks, without = (
            run("aligned", file_system=system, stripe_size_io=stripe_size_io, **shape)  # type: ignore[arg-type]
            for system in (uncached(lustre()), unlocked(uncached(lustre())))
        )
        return with_locks.time_s - without.time_s

    whole = run("aligned", **shape)  # type: ignore[arg-type]
    assert whole.total_lock_requests > whole.requests  # a lock for each server of a request
    assert waited_s(True) < waited_s(False) / 2


def test_group_cyclic_needs_numbers_that_match_and_transpose_does_not() -> None:
    """'This property breaks if the numbers ... are not perfectly aligned'; transpose needs no 'adjustment'."""
    for aggregators in (4, 5, 7, 8):
        group_cyclic, transpose = (run(m, aggregators=aggregators) for m in ("group_cyclic", "transpose"))
        assert group_cyclic.aggregators_used == aggregators // 3 * 3 < transpose.aggregators_used == aggregators
        assert transpose.owner_changes.max() <= -(-aggregators // 3) + 1
