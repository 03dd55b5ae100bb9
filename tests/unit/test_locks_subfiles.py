"""Locks of Lustre's servers where a file is stored as several: a subfile is an object with locks of its own.

Collectives: the rules of `auto` give each subfile one aggregator, so that nobody meets another one's lock; the same
access of one shared file has conflicts. Independent accesses have no aggregators: ranks that write in turn meet in each
subfile as they meet in one file, unless each rank's pieces are units of a subfile of its own.
"""

from __future__ import annotations

import math

import pytest

from mpiio_ext.partitioning import Geometry, methods
from mpiio_ext.partitioning.locks import FileSystem, lustre, simulate
from support.lock_server import Model

MIB, KIB = 2**20, 2**10
#: Lock units are pages, as of present Lustre.
PAGES = lustre(granularity_bytes=4 * KIB)


def aggregators_of(subfiles: int, capacity: int) -> int:
    """Return the largest factor of the subfiles that is the capacity at most, as the rule says."""
    return max(number for number in range(1, min(subfiles, capacity) + 1) if subfiles % number == 0)


@pytest.mark.parametrize("system", [lustre(), PAGES], ids=["stripes", "pages"])
@pytest.mark.parametrize("capacity", [1, 3, 4, 7, 16, 60])
@pytest.mark.parametrize("subfiles", [1, 4, 6, 7, 16, 60])
def test_a_collective_has_no_conflicts(subfiles: int, capacity: int, system: FileSystem) -> None:
    """Whatever the window and the length of the region; locks stay granted from one collective to the next."""
    used = aggregators_of(subfiles, capacity)
    for units, window in ((subfiles * 8, MIB), (subfiles * 5 + 3, 4 * MIB), (1, MIB), (subfiles * 3 + 1, MIB // 2)):
        for start in (0, 3 * MIB + 17):
            geometry = Geometry(
                start_bytes=start,
                end_bytes=start + units * MIB - 5,
                stripe_size_bytes=MIB,
                servers=subfiles,
                aggregators=used,
            )
            found = simulate(geometry, "static_cyclic", file_system=system, window_bytes=window, collectives=3)
            assert (found.total_conflicts, found.total_revocations) == (0, 0)
            assert found.aggregators.max() == 1 and not found.shared_units.any()
            assert found.total_lock_requests <= subfiles  # a lock for each, which grows over it


def test_the_same_collective_of_one_file_has_conflicts() -> None:
    """Aggregators and stripes that do not match, or match: no method is without; the figures of the note."""
    for aggregators, units, servers in ((60, 60 * 64 + 1, 8), (28, 28 * 64 + 1, 5)):
        geometry = Geometry.of_stripes(units, servers=servers, aggregators=aggregators)
        shared = {m.name: simulate(geometry, m.name, file_system=lustre(), window_bytes=4 * MIB) for m in methods()}
        several = Geometry.of_stripes(units, servers=aggregators, aggregators=aggregators)
        own = simulate(several, "static_cyclic", file_system=lustre(), window_bytes=4 * MIB)
        assert own.total_revocations == 0
        assert min(o.total_revocations for o in shared.values()) > 0, shared


def independent(ranks: int, piece: int, rounds: int, *, unit: int, objects: int) -> dict[str, int]:
    """Return counts of ranks that write pieces in turn, each on its own, to objects by units; by the obvious model."""
    geometry = Geometry(
        start_bytes=0, end_bytes=ranks * piece * rounds, stripe_size_bytes=unit, servers=objects, aggregators=ranks
    )
    model = Model(
        geometry,
        "even",
        PAGES,
        window_bytes=piece,
        stripe_size_io=False,
        operation="write",
        collectives=1,
        synchronise=False,
        order_seed=1,
    )
    assert model.used == ranks
    for number in range(rounds):
        model.round([[((number * ranks + rank) * piece, piece)] for rank in range(ranks)])
    return {name: sum(model.counts[name]) for name in ("data_requests", "lock_requests", "conflicts", "revocations")}


@pytest.mark.parametrize(("ranks", "piece"), [(4, 64 * KIB), (8, 64 * KIB), (6, 48 * KIB)])
def test_ranks_that_write_in_turn_by_themselves(ranks: int, piece: int) -> None:
    """Subfiles alone remove no conflict. A subfile for each rank, of units of the pieces, has none."""
    rounds = 16 * MIB // (ranks * piece)
    shared = independent(ranks, piece, rounds, unit=MIB, objects=1)
    several = independent(ranks, piece, rounds, unit=MIB, objects=ranks)
    own = independent(ranks, piece, rounds, unit=piece, objects=ranks)
    writes = ranks * rounds
    for found in (shared, several):  # nearly each write asks for a lock, and others' are called back
        assert found["lock_requests"] > 0.8 * writes and found["conflicts"] >= rounds // 4
    assert several["conflicts"] >= shared["conflicts"]
    assert (own["conflicts"], own["revocations"], own["lock_requests"]) == (0, 0, ranks)


@pytest.mark.parametrize("objects", [3, 5])
def test_units_of_pieces_do_not_help_where_subfiles_are_not_as_many_as_ranks(objects: int) -> None:
    """Rank r's pieces go round all subfiles where both numbers have no factor in common."""
    assert math.gcd(8, objects) == 1
    found = independent(8, 64 * KIB, 24, unit=64 * KIB, objects=objects)
    assert found["lock_requests"] > 0.8 * 8 * 24 and found["conflicts"] > 24
