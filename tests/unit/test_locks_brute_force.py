"""The lock model in C against one that is slow and obvious (tests/support/lock_server.py): all counts and the time."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpiio_ext.partitioning import Geometry, methods
from mpiio_ext.partitioning.locks import FileSystem, gpfs, lustre, simulate, unlocked
from support.lock_server import NAMES, Model

METHODS = [m.name for m in methods()]


@st.composite
def geometries(draw: st.DrawFn) -> Geometry:
    stripe = draw(st.sampled_from([1, 4, 6, 16]))
    servers = draw(st.integers(1, 7))
    start = draw(st.integers(0, 6 * stripe))
    return Geometry(
        start_bytes=start,
        end_bytes=start + draw(st.integers(0, 60 * stripe)),
        stripe_size_bytes=stripe,
        servers=servers,
        aggregators=draw(st.integers(1, 14)),
    )


@st.composite
def systems(draw: st.DrawFn, protocol: str) -> FileSystem:
    """Rates of a few bytes per second, so that every term of the time shows; small limits of growth."""
    base = {"server": lustre(), "token": gpfs(), "none": unlocked(lustre())}[protocol]
    times = st.sampled_from([0.0, 0.25, 1.0, 3.5])
    return FileSystem(
        name=base.name,
        protocol=protocol,
        granularity_bytes=draw(st.sampled_from([0, 1, 2, 5, 8, 40])),
        growth_bytes=draw(st.sampled_from([0, 1, 6, 16, 50])),
        growth_holders=draw(st.integers(0, 6)),
        forward_holders=draw(st.integers(0, 6)),
        rpc_bytes=draw(st.sampled_from([1, 5, 1000])),
        round_trip_s=draw(times),
        enqueue_s=draw(times),
        lock_service_s=draw(times),
        request_overhead_s=draw(times),
        server_bandwidth_bytes_s=draw(st.sampled_from([0.5, 4.0])),
        client_bandwidth_bytes_s=draw(st.sampled_from([0.5, 4.0])),
        commit_s=draw(times),
        dirty_server_bytes=draw(st.sampled_from([0, 0, 1, 5, 16, 64])),
        dirty_client_bytes=draw(st.sampled_from([0, 0, 1, 20, 100])),
    )


@pytest.mark.parametrize("protocol", ["server", "token", "none"])
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_counts_and_time(protocol: str, data: st.DataObject) -> None:
    geometry = data.draw(geometries(), "geometry")
    method = data.draw(st.sampled_from(METHODS), "method")
    system = data.draw(systems(protocol), "system")
    options = {
        "window_bytes": data.draw(st.sampled_from([1, 3, 8, 16, 33, 10_000]), "window"),
        "stripe_size_io": data.draw(st.booleans(), "stripe_size_io"),
        "operation": data.draw(st.sampled_from(["write", "write", "read"]), "operation"),
        "collectives": data.draw(st.integers(1, 3), "collectives"),
        "synchronise": data.draw(st.booleans(), "synchronise"),
        "order_seed": data.draw(st.none() | st.integers(0, 2**64 - 1), "order_seed"),
    }
    fast = simulate(geometry, method, file_system=system, **options)  # type: ignore[arg-type]
    slow = Model(geometry, method, system, **options).run()  # type: ignore[arg-type]
    assert {name: getattr(fast, name).tolist() for name in NAMES} == slow.counts
    assert fast.request_sizes.tolist() == slow.sizes
    assert fast.time_s == pytest.approx(slow.time, rel=1e-9, abs=1e-12)
