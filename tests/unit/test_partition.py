"""mpiio_ext.partitioning: the Python interface, large numbers, bad input."""

from __future__ import annotations

import dataclasses
import gc

import numpy as np
import pytest

from mpiio_ext.errors import ArgumentError, MpiioExtError
from mpiio_ext.partitioning import EXTENT_DTYPE, MAX_OFFSET_BYTES, SET_DTYPE, Geometry, StripeSet, choose, methods, plan

NAMES = [m.name for m in methods()]
EIB4 = 2**62
MIB = 2**20


def test_methods_are_the_five_of_the_definition() -> None:
    assert NAMES == ["even", "aligned", "static_cyclic", "group_cyclic", "transpose"]
    assert all(m.description for m in methods())


def test_domains_are_structured_read_only_arrays() -> None:
    p = plan(Geometry.of_stripes(36, servers=3, aggregators=6), "static_cyclic")
    assert len(p.domains) == 6
    assert p.domains[2].dtype == SET_DTYPE
    assert p.domains[2].tolist() == [(2 * 2**20, 2**20, 6 * 2**20, 6)]
    with pytest.raises(ValueError, match="read-only"):
        p.domains[2]["offset"] = 0
    assert p.stripe_sets(2) == (StripeSet(offset_bytes=2 * 2**20, length_bytes=2**20, stride_bytes=6 * 2**20, count=6),)
    assert p.extents(2).dtype == EXTENT_DTYPE


def test_arrays_outlive_the_plan() -> None:
    p = plan(Geometry.of_stripes(36, servers=3, aggregators=6), "transpose")
    domains, expected = p.domains, [d.tolist() for d in p.domains]
    del p
    gc.collect()
    assert [d.tolist() for d in domains] == expected


def test_flat_arrays_are_read_only_and_outlive_the_plan() -> None:
    p = plan(Geometry.of_stripes(12, servers=3, aggregators=5), "transpose")
    flat = p.sets()
    assert flat is p.sets()
    del p
    gc.collect()
    assert flat.first.tolist() == [0, 1, 3, 4, 5, 6]
    assert flat.rows["count"].tolist() == [3, 1, 2, 2, 2, 2]
    assert flat.bytes.tolist() == [3 * MIB, 3 * MIB, 2 * MIB, 2 * MIB, 2 * MIB]
    assert flat.servers.tolist() == [1, 2, 1, 1, 1]
    for array in (flat.rows, flat.first, flat.bytes, flat.servers):
        assert not array.flags.writeable


@pytest.mark.parametrize("method", NAMES)
def test_flat_arrays_of_many_aggregators(method: str) -> None:
    """10^5 aggregators, 1,344 servers, 10^7 stripes: every byte has one owner, and first says where each begins."""
    geometry = Geometry(
        start_bytes=MIB // 3, end_bytes=10**7 * MIB - 77, stripe_size_bytes=MIB, servers=1344, aggregators=10**5
    )
    p = plan(geometry, method)
    flat = p.sets()
    assert int(flat.bytes.sum()) == geometry.end_bytes - geometry.start_bytes
    assert (np.diff(flat.first) >= 0).all()
    assert (flat.servers[flat.bytes > 0] > 0).all() and (flat.servers[flat.bytes == 0] == 0).all()
    owners = np.repeat(np.arange(10**5), np.diff(flat.first))
    inside = np.clip(flat.rows["offset"], geometry.start_bytes, None)
    assert (p.owner(inside) == owners).all()
    if method == "group_cyclic":
        assert set(flat.servers[: p.aggregators_used].tolist()) == {1}


def test_owner_takes_any_shape_and_integer_type() -> None:
    p = plan(Geometry.of_stripes(36, servers=3, aggregators=6), "static_cyclic")
    offsets = (np.arange(12, dtype=np.int32) * 2**20).reshape(3, 4)
    assert p.owner(offsets).tolist() == [[0, 1, 2, 3], [4, 5, 0, 1], [2, 3, 4, 5]]
    assert p.owner(offsets.T).tolist() == [[0, 4, 2], [1, 5, 3], [2, 0, 4], [3, 1, 5]]
    assert int(p.owner(0)) == 0
    assert p.owner([]).tolist() == []
    with pytest.raises(ArgumentError, match="whole numbers"):
        p.owner([0.5])


@pytest.mark.parametrize("method", NAMES)
def test_empty_region_has_empty_domains(method: str) -> None:
    p = plan(Geometry(start_bytes=12345, end_bytes=12345, stripe_size_bytes=10, servers=3, aggregators=4), method)
    assert [len(d) for d in p.domains] == [0, 0, 0, 0]
    assert p.window_count(1, 7) == 0
    assert list(p.windows(1, 7)) == []
    assert p.owner([12344, 12345]).tolist() == [-1, -1]
    assert p.owner_changes().tolist() == [0, 0, 0]
    assert len(p.sub_regions()) == 0


@pytest.mark.parametrize("method", NAMES)
def test_a_plan_does_not_grow_with_the_stripes(method: str) -> None:
    """2^62 one-byte stripes: as many sets as for a hundred, and every look-up works at both ends."""
    geometry = Geometry(end_bytes=EIB4, stripe_size_bytes=1, servers=7, aggregators=5)
    p = plan(geometry, method)
    assert sum(len(d) for d in p.domains) <= 12
    # Bytes of all domains, in Python's integers, are the region's.
    assert sum(length * count for d in p.domains for _, length, _, count in d.tolist()) == EIB4
    for a in range(p.aggregators_used):
        for offset, length, stride, count in p.domains[a].tolist():
            last = offset + (count - 1) * stride + length - 1
            assert p.owner([offset, last]).tolist() == [a, a]
        windows = p.window_count(a, 2**20)
        total = sum(length * count for _, length, _, count in p.domains[a].tolist())
        assert 0 <= windows - total // 2**20 <= len(p.domains[a]) + 1
        end = p.window(a, 2**20, windows - 1)[-1]
        assert int(p.owner(end["offset"])) == a
        assert len(p.window(a, 2**20, windows)) == 0


@pytest.mark.parametrize("method", NAMES)
def test_one_huge_stripe(method: str) -> None:
    geometry = Geometry(start_bytes=EIB4 - 5, end_bytes=EIB4, stripe_size_bytes=EIB4, servers=3, aggregators=2)
    p = plan(geometry, method)
    found = [e for a in range(2) for e in p.extents(a).tolist()]
    assert sum(length for _, length in found) == 5
    assert min(offset for offset, _ in found) == EIB4 - 5
    for a in range(2):
        windows = [w.tolist() for w in p.windows(a, MAX_OFFSET_BYTES)]
        assert [e for w in windows for e in w] == p.extents(a).tolist()


def test_more_aggregators_than_stripes() -> None:
    geometry = Geometry.of_stripes(2, servers=2, aggregators=1000)
    busy = {name: sum(len(d) > 0 for d in plan(geometry, name).domains) for name in NAMES}
    assert busy == {"even": 1000, "aligned": 2, "static_cyclic": 2, "group_cyclic": 2, "transpose": 2}


WHOLE = Geometry.of_stripes(36, servers=3, aggregators=6, stripe_size_bytes=100)
CLIPPED = Geometry(start_bytes=50, end_bytes=720, stripe_size_bytes=100, servers=2, aggregators=2)


@pytest.mark.parametrize(
    ("geometry", "method", "aggregator", "window_bytes", "windows"),
    [
        # Windows of strided sets hold whole stripes.
        (WHOLE, "static_cyclic", 1, 250, [[(at, 100), (at + 600, 100)] for at in (100, 1300, 2500)]),
        # Windows of stripes that are larger than the buffer are cut inside; [0, 40) is clipped away and not numbered.
        (
            CLIPPED,
            "static_cyclic",
            0,
            40,
            [[(50, 30)], [(80, 20)]]
            + [[(begin + at, length)] for begin in (200, 400, 600) for at, length in ((0, 40), (40, 40), (80, 20))],
        ),
        (
            CLIPPED,
            "static_cyclic",
            1,
            40,
            [[(begin + at, length)] for begin in (100, 300, 500) for at, length in ((0, 40), (40, 40), (80, 20))]
            + [[(700, 20)]],
        ),
        # Windows of contiguous sets are cut at multiples.
        (CLIPPED, "aligned", 0, 150, [[(50, 100)], [(150, 150)], [(300, 100)]]),
    ],
)
def test_windows(
    geometry: Geometry, method: str, aggregator: int, window_bytes: int, windows: list[list[tuple[int, int]]]
) -> None:
    p = plan(geometry, method)
    assert [window.tolist() for window in p.windows(aggregator, window_bytes)] == windows
    assert sum(length for window in windows for _, length in window) == sum(p.extents(aggregator)["length"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"servers": 0}, "servers must be from 1"),
        ({"aggregators": 0}, "aggregators must be from 1"),
        ({"aggregators": 2**24 + 1}, "aggregators must be from 1"),
        ({"stripe_size_bytes": 0}, "stripe_size_bytes must be from 1"),
        ({"start_bytes": -1}, "start_bytes must be from 0"),
        ({"end_bytes": 2**62 + 1}, "end_bytes must be from 0"),
        ({"start_bytes": 11}, "ends at 10 before it starts at 11"),
        ({"servers": 1.5}, "servers must be a whole number"),
        ({"servers": True}, "servers must be a whole number"),
    ],
)
def test_bad_geometry_is_named(change: dict[str, int], message: str) -> None:
    good = {"start_bytes": 0, "end_bytes": 10, "stripe_size_bytes": 4, "servers": 1, "aggregators": 1}
    with pytest.raises(ArgumentError, match=message) as caught:
        Geometry(**(good | change))
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, MpiioExtError)


def test_geometry_is_frozen_and_keyword_only() -> None:
    geometry = Geometry.of_stripes(1, servers=1, aggregators=1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        geometry.servers = 2  # type: ignore[misc]
    with pytest.raises(TypeError):
        Geometry(0, 10, 4, 1, 1)  # type: ignore[misc]


def test_bad_arguments_are_named() -> None:
    geometry = Geometry.of_stripes(4, servers=1, aggregators=2)
    with pytest.raises(ArgumentError, match="unknown partition method 'cyclic': choose from even, aligned"):
        plan(geometry, "cyclic")
    with pytest.raises(ArgumentError, match="unknown lock protocol 'spin'"):
        choose(geometry, lock="spin")
    p = plan(geometry, "even")
    with pytest.raises(ArgumentError, match="aggregator must be from 0 to 1"):
        p.extents(2)
    with pytest.raises(ArgumentError, match="window_bytes must be from 1"):
        p.windows(0, 0)
    with pytest.raises(ArgumentError, match="index must be from 0"):
        p.window(0, 1, -1)
