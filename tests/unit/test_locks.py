"""The lock model: what its interface takes and returns."""

from __future__ import annotations

import dataclasses
import time

import numpy as np
import pytest

from mpiio_ext.errors import ArgumentError
from mpiio_ext.partitioning import Geometry, methods, plan
from mpiio_ext.partitioning.locks import FileSystem, Outcome, cached, gpfs, lustre, simulate, uncached, unlocked

MIB = 2**20
METHODS = [m.name for m in methods()]


def small(method: str, **options: object) -> Outcome:
    geometry = Geometry(start_bytes=3 * MIB, end_bytes=203 * MIB + 17, stripe_size_bytes=MIB, servers=5, aggregators=7)
    given = {"file_system": lustre(), "window_bytes": 4 * MIB, **options}
    return simulate(geometry, method, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("system", [lustre(), gpfs(), unlocked(lustre())], ids=lambda s: s.name)
@pytest.mark.parametrize("method", METHODS)
def test_every_byte_is_served_once(method: str, system: object) -> None:
    for operation in ("write", "read"):
        for stripes in (False, True):
            o = small(method, file_system=system, operation=operation, stripe_size_io=stripes, collectives=3)
            assert o.total_bytes == 3 * (200 * MIB + 17)
            assert (o.grants == o.lock_requests).all()
            assert (o.revocations >= o.conflicts).all()
            assert o.time_s > 0
            assert o.aggregators.max() <= o.aggregators_used
            if operation == "read" or o.file_system.protocol == "none":
                assert o.total_conflicts == 0


def test_the_most_aggregators_of_a_server_are_told() -> None:
    o = small("transpose")
    assert o.as_dict()["aggregators_per_server_max"] == o.aggregators.max() > o.aggregators.min()


def test_stripe_size_io_asks_for_one_stripe_at_a_time() -> None:
    whole, stripes = small("aligned"), small("aligned", stripe_size_io=True)
    assert whole.request_sizes.nonzero()[0].max() > 20  # more than one stripe
    assert stripes.request_sizes.nonzero()[0].max() == 20
    assert stripes.requests == 201  # 200 stripes and one of which 17 bytes are accessed
    assert whole.totals["data_bytes"] == stripes.totals["data_bytes"]


def test_the_same_input_gives_the_same_result_and_a_seed_another_order() -> None:
    def numbers(o: Outcome) -> tuple[object, ...]:
        return (o.time_s, *o.totals.values())

    assert numbers(small("static_cyclic")) == numbers(small("static_cyclic"))
    assert numbers(small("static_cyclic", order_seed=1)) == numbers(small("static_cyclic", order_seed=1))
    assert numbers(small("static_cyclic", order_seed=1)) != numbers(small("static_cyclic"))


def test_a_plan_brings_its_method() -> None:
    geometry = Geometry.of_stripes(36, servers=3, aggregators=6)
    o = simulate(plan(geometry, "group_cyclic"), file_system=lustre(), window_bytes=MIB)
    assert o.method == "group_cyclic"
    assert o.owner_changes.tolist() == plan(geometry, "group_cyclic").owner_changes().tolist()


def test_an_empty_region_costs_nothing() -> None:
    o = simulate(Geometry.of_stripes(0, servers=3, aggregators=6), "even", file_system=lustre(), window_bytes=MIB)
    assert o.time_s == 0
    assert o.bandwidth_bytes_s == 0
    assert o.requests == 0


def test_arrays_are_read_only() -> None:
    o = small("even")
    with pytest.raises(ValueError, match="read-only"):
        o.conflicts[0] = 1
    assert o.conflicts.dtype == np.int64
    assert "bandwidth_bytes_s" in o.as_dict()


@pytest.mark.parametrize(
    "options",
    [
        {"method": "odd"},
        {"window_bytes": 0},
        {"operation": "append"},
        {"collectives": 0},
        {"order_seed": -1},
        {"collectives": 2**31 - 1},
    ],
)
def test_bad_arguments(options: dict[str, object]) -> None:
    geometry = Geometry(end_bytes=2**61, stripe_size_bytes=MIB, servers=3, aggregators=6)
    given = {"method": "even", "file_system": lustre(), "window_bytes": 2**60, **options}
    with pytest.raises(ArgumentError):
        simulate(geometry, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [
        {"protocol": "flock"},
        {"granularity_bytes": -1},
        {"rpc_bytes": 0},
        {"round_trip_s": -1.0},
        {"commit_s": float("inf")},
        {"dirty_server_bytes": -1},
        {"dirty_client_bytes": 1.5},
        {"enqueue_s": float("nan")},
        {"server_bandwidth_bytes_s": 0.0},
        {"client_bandwidth_bytes_s": float("inf")},
    ],
)
def test_bad_file_systems(changes: dict[str, object]) -> None:
    with pytest.raises(ArgumentError):
        dataclasses.replace(lustre(), **changes)  # type: ignore[arg-type]


def test_what_is_no_file_system_is_refused_with_what_is_one() -> None:
    for wrong in ("lustre", None, lustre):
        with pytest.raises(ArgumentError, match=r"lustre\(\), gpfs\(\) or another FileSystem"):
            small("even", file_system=wrong)
    for make in (lustre, gpfs):
        with pytest.raises(ArgumentError, match=r"no 'foo': choose from name, protocol, .*, commit_s"):
            make(foo=1)
    for changes in ({"round_trip_s": "20us"}, {"server_bandwidth_bytes_s": None}, {"commit_s": True}):
        with pytest.raises(ArgumentError, match="must be a finite"):
            lustre(**changes)
    assert lustre(commit_s=1).commit_s == 1


@pytest.mark.parametrize("system", [lustre(), gpfs()], ids=lambda s: s.name)
@pytest.mark.parametrize("method", METHODS)
def test_a_cache_changes_times_and_no_counts(method: str, system: FileSystem) -> None:
    """Who meets whom depends on the order of requests alone; a larger cache is never slower without locks."""
    none = small(method, file_system=uncached(system), collectives=3)
    some = small(method, file_system=cached(system), collectives=3)
    assert none.totals == some.totals
    assert none.time_s != some.time_s
    for like in (uncached(system), cached(system)):
        reads = small(method, file_system=like, operation="read")
        assert reads.time_s == small(method, file_system=uncached(system), operation="read").time_s


def one_server(system: FileSystem, method: str, stripes: int, aggregators: int, window: int = MIB) -> float:
    geometry = Geometry.of_stripes(stripes, servers=1, aggregators=aggregators)
    return simulate(geometry, method, file_system=system, window_bytes=window).time_s


def simple(**changes: object) -> FileSystem:
    """One MiB a second at a server, the client's link so fast that it does not count, no latency at all."""
    none = {"round_trip_s": 0.0, "enqueue_s": 0.0, "lock_service_s": 0.0, "request_overhead_s": 0.0}
    rates = {"server_bandwidth_bytes_s": float(MIB), "client_bandwidth_bytes_s": 1e30}
    return dataclasses.replace(uncached(lustre()), **{**none, **rates, **changes})  # type: ignore[arg-type]


def test_the_time_ends_when_everything_is_on_the_servers() -> None:
    """The file is closed at the end: ten stripes take ten seconds, however much of them a cache may hold."""
    for limit in (0, 1, MIB, 3 * MIB, 100 * MIB):
        assert one_server(simple(dirty_server_bytes=limit), "even", 10, 1) == pytest.approx(10)
        assert one_server(simple(dirty_client_bytes=limit), "even", 10, 1) == pytest.approx(10)


def test_a_commit_is_waited_for_once_a_round_without_a_cache_and_once_with_one() -> None:
    assert one_server(simple(commit_s=2.0), "even", 10, 1) == pytest.approx(10 * (1 + 2))
    assert one_server(simple(commit_s=2.0, dirty_server_bytes=100 * MIB), "even", 10, 1) == pytest.approx(10 + 2)


def test_a_full_cache_makes_a_write_wait() -> None:
    """Room for three stripes; each answer takes 10 s: four are under way or waiting, so that is their rate."""
    took_s = one_server(simple(commit_s=10.0, dirty_server_bytes=3 * MIB), "even", 30, 1)
    assert took_s == pytest.approx(10 * 11 + 2)  # thirds of the stripes: 11 s each, the last third ends 2 s later


def test_a_called_back_lock_waits_for_all_that_was_written_under_it() -> None:
    """Two aggregators, one server. The first has the whole object: the second waits for its stripe and the answer.

    Where they alternate, so does a stripe of every later round for the other's of the round before: 3 s each.
    """
    locked = simple(commit_s=2.0, dirty_server_bytes=100 * MIB)
    assert one_server(locked, "static_cyclic", 2, 2) == pytest.approx(1 + 2 + 1 + 2)
    assert one_server(unlocked(locked), "static_cyclic", 2, 2) == pytest.approx(1 + 1 + 2)
    assert one_server(locked, "static_cyclic", 10, 2) == pytest.approx(1 + 2 + 1 + 2 + 4 * 3)
    assert one_server(unlocked(locked), "static_cyclic", 10, 2) == pytest.approx(10 + 2)


@pytest.mark.parametrize("system", [lustre(), gpfs()], ids=lambda s: s.name)
def test_sizes_of_requests_by_server(system: FileSystem) -> None:
    """Stripes 3 to 202 and 17 bytes of the next, on servers 3, 4, 0, 1, 2 in turn: the short one is on server 3."""
    o = small("aligned", file_system=system, stripe_size_io=True)
    assert o.smallest_request_bytes.tolist() == [MIB, MIB, MIB, 17, MIB]
    assert o.largest_request_bytes.tolist() == [MIB] * 5
    assert o.data_requests.tolist() == [40, 40, 40, 41, 40]
    assert o.mean_request_bytes.tolist() == [MIB, MIB, MIB, (40 * MIB + 17) / 41, MIB]
    assert "smallest_request_bytes" not in o.totals  # it does not add up
    few = simulate(Geometry.of_stripes(2, servers=3, aggregators=1), "even", file_system=system, window_bytes=4 * MIB)
    assert few.smallest_request_bytes.tolist() == few.largest_request_bytes.tolist() == [MIB, MIB, 0]
    assert few.mean_request_bytes.tolist() == [MIB, MIB, 0]


def test_an_exception_ends_a_simulation() -> None:
    """Ten minutes of work end with the first progress that raises; what was done until then has been told."""
    told: list[int] = []

    def tell(done_bytes: int) -> None:
        told.append(done_bytes)
        if len(told) == 3:
            raise TimeoutError

    begun_s = time.monotonic()
    with pytest.raises(TimeoutError):
        small("even", collectives=10**8, progress=tell)
    assert time.monotonic() - begun_s < 30
    assert 0 <= told[0] < told[2] < 10**8 * 200 * MIB
