"""What the SDCI project's page says of its Figure 2 (sources: docs/explanation/file-domains.md), as claims.

S = 3 I/O servers; six aggregators for (a) to (c), five for (d). The text speaks of servers S0.. and aggregators P0...
"""

from __future__ import annotations

import numpy as np
import pytest

from mpiio_ext.partitioning import Geometry, Plan, choose, plan

MIB = 2**20


def figure(method: str, *, stripes: int = 36, servers: int = 3, aggregators: int = 6) -> Plan:
    return plan(Geometry.of_stripes(stripes, servers=servers, aggregators=aggregators), method)


def owners(p: Plan) -> np.ndarray:
    """Owner of every stripe, by stripe."""
    return p.owner(np.arange(p.geometry.stripes) * p.geometry.stripe_size_bytes)


def servers_of(p: Plan, aggregator: int) -> set[int]:
    return set((np.flatnonzero(owners(p) == aggregator) % p.geometry.servers).tolist())


def on_server(p: Plan, server: int) -> list[int]:
    """Owners of the stripes of one server, in file order."""
    return owners(p)[server :: p.geometry.servers].tolist()


def test_even_shares_stripes_and_aligned_does_not() -> None:
    """'If file domains are not partitioned at the file stripe boundaries, lock contentions will occur.'"""
    geometry = Geometry(start_bytes=100, end_bytes=10 * MIB + 7, stripe_size_bytes=MIB, servers=3, aggregators=6)

    def shared(method: str) -> int:
        pieces = plan(geometry, method).pieces()
        return len(pieces) - len(np.unique(pieces["stripe"]))

    assert shared("even") == 5
    assert shared("aligned") == 0
    for a in range(1, 6):
        assert plan(geometry, "aligned").extents(a)["offset"][0] % MIB == 0


def test_static_cyclic_multiple_of_servers_keeps_to_one_server() -> None:
    """'aggregator P0's file domain covers the stripes that belong to server S0 only'"""
    p = figure("static_cyclic")
    assert [servers_of(p, a) for a in range(6)] == [{0}, {1}, {2}, {0}, {1}, {2}]


def test_static_cyclic_interleaves_p0_and_p3_on_s0() -> None:
    """'at server S0, stripes from aggregator P0 are interleaved with the ones from P3'"""
    p = figure("static_cyclic")
    assert on_server(p, 0) == [0, 3] * 6
    assert p.owner_changes().tolist() == [11, 11, 11]


def test_static_cyclic_factor_of_servers_gives_each_server_one_aggregator() -> None:
    """'each I/O server will receive requests from one and only aggregator'"""
    p = figure("static_cyclic", servers=6, aggregators=3)
    for server in range(6):
        assert set(on_server(p, server)) == {server % 3}
    assert p.owner_changes().tolist() == [0] * 6


def test_static_cyclic_does_not_change_between_collectives() -> None:
    """'In this method, the association of file stripes to I/O aggregators does not change.'"""
    offsets = np.arange(20, 30) * MIB
    regions = [(0, 36 * MIB), (20 * MIB, 30 * MIB), (17 * MIB + 5, 99 * MIB + 3)]
    seen = [
        plan(
            Geometry(start_bytes=a, end_bytes=b, stripe_size_bytes=MIB, servers=3, aggregators=6), "static_cyclic"
        ).owner(offsets)
        for a, b in regions
    ]
    assert all((s == seen[0]).all() for s in seen)


def test_group_cyclic_separates_p0_and_p3_into_two_sub_regions() -> None:
    """Groups of as many aggregators as servers, each with a sub-region of its own, static-cyclic inside."""
    p = figure("group_cyclic")
    assert on_server(p, 0) == [0] * 6 + [3] * 6
    assert p.sub_regions().tolist() == [(0, 18 * MIB), (18 * MIB, 18 * MIB)]
    assert owners(p).tolist() == [0, 1, 2] * 6 + [3, 4, 5] * 6
    assert p.owner_changes().tolist() == [1, 1, 1]
    assert [servers_of(p, a) for a in range(6)] == [{0}, {1}, {2}, {0}, {1}, {2}]


@pytest.mark.parametrize(("aggregators", "used"), [(7, 6), (5, 3), (3, 3), (2, 1), (1, 1)])
def test_group_cyclic_adjusts_the_number_of_aggregators(aggregators: int, used: int) -> None:
    """It 'can minimize lock extent conflicts only when the number of aggregators is either a factor or a multiple'."""
    p = figure("group_cyclic", aggregators=aggregators)
    assert p.aggregators_used == used
    assert set(owners(p).tolist()) == set(range(used))


def test_transpose_deals_columns() -> None:
    """'the first three stripes in Server S0 are assigned to aggregator P0, followed by the fourth one to P1'"""
    p = figure("transpose", stripes=12, aggregators=5)
    assert on_server(p, 0) == [0, 0, 0, 1]
    assert on_server(p, 1) == [1, 1, 2, 2]  # 'continues to the second column, the stripes in Server S1'
    assert on_server(p, 2) == [3, 3, 4, 4]
    assert [int((owners(p) == a).sum()) for a in range(5)] == [3, 3, 2, 2, 2]


def test_transpose_has_one_conflict_per_server() -> None:
    """'there is only one lock extent conflict per I/O server in this example'"""
    p = figure("transpose", stripes=12, aggregators=5)
    assert p.owner_changes().tolist() == [1, 1, 1]
    assert p.aggregators_used == 5  # 'does not require any adjustment to the number of aggregators'


@pytest.mark.parametrize(
    ("lock", "servers", "aggregators", "stripes", "method"),
    [
        ("server", 3, 6, 36, "group_cyclic"),
        ("server", 6, 6, 36, "static_cyclic"),
        ("server", 6, 3, 36, "static_cyclic"),
        ("server", 3, 5, 36, "group_cyclic"),  # says the model; the page: transpose
        ("server", 160, 77, 10_000, "transpose"),
        ("server", 16, 33, 10_000, "group_cyclic"),  # one idle aggregator is cheaper than conflicts
        ("server", 3, 6, 5, "static_cyclic"),
        ("token", 3, 6, 36, "static_cyclic"),  # six domains of six stripes all begin at server 0
        ("none", 3, 6, 36, "static_cyclic"),
        ("token", 7, 6, 360, "aligned"),
        ("local", 1, 4, 36, "aligned"),
        ("local", 1, 4, 3, "even"),
        ("local", 1, 4, 0, "even"),
    ],
)
def test_choice(lock: str, servers: int, aggregators: int, stripes: int, method: str) -> None:
    geometry = Geometry.of_stripes(stripes, servers=servers, aggregators=aggregators)
    choice = choose(geometry, lock=lock, coherent=lock == "local")
    assert choice.method == method
    assert len(choice.reason) > 20
