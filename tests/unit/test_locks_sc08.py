"""The ranking of methods that SC08 (Liao and Choudhary) found on Lustre and GPFS, as far as the lock model gives it.

What it does not give, and why, is in docs/explanation/locks.md; the last tests here state it.
"""

from __future__ import annotations

import dataclasses

import pytest

from mpiio_ext.partitioning import Geometry, methods
from mpiio_ext.partitioning.locks import FileSystem, Outcome, cached, gpfs, lustre, simulate, uncached

MIB = 2**20
EACH = 64  # stripes of an aggregator


def run(system: FileSystem, servers: int, aggregators: int, window_mib: int) -> dict[str, Outcome]:
    """Return the outcome of each method; one stripe more than a multiple, so that `even` cuts stripes."""
    geometry = Geometry.of_stripes(EACH * aggregators + 1, servers=servers, aggregators=aggregators)
    return {m.name: simulate(geometry, m.name, file_system=system, window_bytes=window_mib * MIB) for m in methods()}


@pytest.mark.parametrize("window_mib", [4, 16])
@pytest.mark.parametrize("servers", [64, 144, 156])
def test_lustre_group_cyclic_first_and_even_behind_the_cyclic_methods(servers: int, window_mib: int) -> None:
    for aggregators in (servers // 2, servers, 2 * servers, 4 * servers, 8 * servers):
        found = run(uncached(lustre()), servers, aggregators, window_mib)
        time_s = {name: o.time_s for name, o in found.items()}
        assert time_s["group_cyclic"] <= 1.01 * min(time_s.values()), aggregators
        assert time_s["even"] > 1.02 * time_s["group_cyclic"], aggregators
        assert 1.01 * time_s["even"] > time_s["static_cyclic"], aggregators
        revoked = {name: o.total_revocations for name, o in found.items()}
        assert revoked["group_cyclic"] <= min(revoked["even"], revoked["static_cyclic"]), aggregators
        assert revoked["group_cyclic"] <= 2 * servers  # a change of groups at each server, not one for each stripe


@pytest.mark.parametrize("servers", [64, 156])
@pytest.mark.parametrize(("each", "more"), [(64, 0), (37, 1), (101, 13)])
def test_lustre_ranking_on_regions_of_other_lengths(each: int, more: int, servers: int) -> None:
    """Group-cyclic first whatever the length; contiguous domains last from as many aggregators as servers on.

    With half as many transpose is last: aggregators of one column work at one server at a time.
    """
    for aggregators in (servers // 2, servers, 2 * servers, 4 * servers, 8 * servers):
        geometry = Geometry.of_stripes(each * aggregators + more, servers=servers, aggregators=aggregators)
        time_s = {
            m.name: simulate(geometry, m.name, file_system=uncached(lustre()), window_bytes=4 * MIB).time_s
            for m in methods()
        }
        assert time_s["group_cyclic"] <= 1.01 * min(time_s.values()), aggregators
        last = max(time_s, key=lambda name: time_s[name])
        if aggregators >= servers:
            assert last in ("even", "aligned"), (aggregators, time_s)
            assert min(time_s["even"], time_s["aligned"]) >= time_s["group_cyclic"]
        else:
            assert time_s["transpose"] > 1.8 * time_s["group_cyclic"]


def test_where_numbers_do_not_match_transpose_may_be_last() -> None:
    """1 TiB, 156 servers, powers of two: some columns have an aggregator more, and take so much longer."""
    geometry = Geometry.of_stripes(2**20, servers=156, aggregators=1024)
    time_s = {
        m.name: simulate(geometry, m.name, file_system=uncached(lustre()), window_bytes=16 * MIB).time_s
        for m in methods()
    }
    assert max(time_s, key=lambda name: time_s[name]) == "transpose"
    assert min(time_s, key=lambda name: time_s[name]) != "transpose"


@pytest.mark.parametrize("system", [uncached(gpfs()), cached(gpfs())], ids=["uncached", "cached"])
@pytest.mark.parametrize("window_mib", [4, 16])
@pytest.mark.parametrize("aggregators", [16, 27, 32, 54, 64, 108, 128, 216, 256, 512])
def test_gpfs_aligned_suffices(aggregators: int, window_mib: int, system: FileSystem) -> None:
    found = run(system, 54, aggregators, window_mib)
    assert found["aligned"].time_s <= 1.1 * min(o.time_s for o in found.values())
    assert found["aligned"].total_revocations == min(o.total_revocations for o in found.values()) == aggregators - 1
    assert found["aligned"].totals["shared_units"] == 0
    assert found["static_cyclic"].total_revocations > 30 * found["aligned"].total_revocations


def test_where_the_model_says_otherwise() -> None:
    """Windows in lockstep: domains of a multiple of the servers' stripes all begin at one server, locks or none."""
    resonant = run(uncached(gpfs()), 32, 128, 16)
    assert resonant["aligned"].total_revocations == 127 < resonant["static_cyclic"].total_revocations
    assert resonant["aligned"].time_s > 2 * resonant["static_cyclic"].time_s
    few = run(uncached(lustre()), 156, 16, 4)  # neither a factor nor a multiple: group-cyclic idles 3 of 16
    assert few["group_cyclic"].aggregators_used == 13 and few["group_cyclic"].total_revocations == 0
    assert few["even"].time_s < few["group_cyclic"].time_s


@pytest.mark.parametrize("window_mib", [4, 16])
@pytest.mark.parametrize("servers", [64, 144, 156])
def test_caches_take_the_distances_away(servers: int, window_mib: int) -> None:
    """With 32 MiB of cache for each server: servers are busy to the end, whoever meets whom.

    From twice as many aggregators as servers on; with fewer, windows that meet at a server still cost up to a quarter.
    """
    for aggregators in (2 * servers, 4 * servers, 8 * servers):
        with_caches = run(cached(lustre()), servers, aggregators, window_mib)
        without = run(uncached(lustre()), servers, aggregators, window_mib)
        best_s = min(o.time_s for o in with_caches.values())
        for name, o in with_caches.items():
            assert o.time_s <= 1.15 * best_s, (name, aggregators)
            assert o.total_revocations == without[name].total_revocations, (name, aggregators)


@pytest.mark.parametrize("window_mib", [4, 16])
@pytest.mark.parametrize("system", [uncached(lustre()), cached(lustre())], ids=["uncached", "cached"])
def test_a_commit_makes_interleaving_dear(system: FileSystem, window_mib: int) -> None:
    """A disk's seek (10 ms) before each answer: static-cyclic waits for it stripe by stripe, group-cyclic does not."""
    for servers in (64, 144, 156):
        found = run(dataclasses.replace(system, commit_s=0.01), servers, 2 * servers, window_mib)
        assert found["static_cyclic"].time_s > 1.4 * found["group_cyclic"].time_s
        assert found["group_cyclic"].time_s <= 1.05 * min(o.time_s for o in found.values())
