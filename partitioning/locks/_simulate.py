"""The lock model in C seen from Python: there is no second implementation in this package."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from mpiio_ext._tools import ffi, lib
from mpiio_ext.errors import ArgumentError, MpiioExtError
from mpiio_ext.partitioning._plan import MAX_OFFSET_BYTES, Geometry, IntArray, Plan, _check, _fields, check_method
from mpiio_ext.partitioning.locks._outcome import COUNTERS, Outcome
from mpiio_ext.partitioning.locks._systems import PROTOCOLS, FileSystem

_E_NOMEM = -1
#: How often a caller hears how far a simulation is, and the longest that a signal waits for its handler.
_TICK_S = 0.1


def _system(file_system: FileSystem) -> object:
    """Return the C struct of a file system, or raise ArgumentError if it is none."""
    if not isinstance(file_system, FileSystem):
        raise ArgumentError(f"file_system is lustre(), gpfs() or another FileSystem, not {file_system!r}")
    return ffi.new(
        "mpiio_ext_lock_model_system *",
        {
            "protocol": PROTOCOLS.index(file_system.protocol),
            **{
                name: getattr(file_system, name)
                for name in (
                    "granularity_bytes",
                    "growth_bytes",
                    "growth_holders",
                    "forward_holders",
                    "rpc_bytes",
                    "round_trip_s",
                    "enqueue_s",
                    "lock_service_s",
                    "request_overhead_s",
                    "server_bandwidth_bytes_s",
                    "client_bandwidth_bytes_s",
                    "commit_s",
                    "dirty_server_bytes",
                    "dirty_client_bytes",
                )
            },
        },
    )


def _geometry_and_method(geometry_or_plan: Geometry | Plan, method: str | None) -> tuple[Geometry, str]:
    """Return the method to simulate, or raise ArgumentError if there is no such method."""
    if isinstance(geometry_or_plan, Plan):
        return geometry_or_plan.geometry, geometry_or_plan.method if method is None else method
    check_method(method)
    assert method is not None
    return geometry_or_plan, method


def _how(
    geometry: Geometry,
    window_bytes: int,
    stripe_size_io: bool,
    operation: str,
    collectives: int,
    synchronise: bool,
    order_seed: int | None,
) -> dict[str, int]:
    """Return the fields of the C struct with the way to carry out collectives, or raise ArgumentError."""
    if operation not in ("write", "read"):
        raise ArgumentError(f"operation is write or read, not {operation!r}")
    _check("window_bytes", window_bytes, 1, MAX_OFFSET_BYTES)
    _check("collectives", collectives, 1, 2**31 - 1)
    if order_seed is not None:
        _check("order_seed", order_seed, 0, 2**64 - 1)
    if geometry.end_bytes + (collectives - 1) * (geometry.end_bytes - geometry.start_bytes) > MAX_OFFSET_BYTES:
        raise ArgumentError(f"{collectives} regions end beyond 2^62 bytes")
    return {
        "window_bytes": window_bytes,
        "stripe_size_io": int(stripe_size_io),
        "reads": int(operation == "read"),
        "synchronise": int(synchronise),
        "collectives": collectives,
        "shuffle": int(order_seed is not None),
        "seed": order_seed or 0,
    }


def _stoppable(call: Callable[[], int], watch: IntArray, progress: Callable[[int], None] | None) -> int:
    """Return the result of a call of C, made in a thread so that this one can handle signals meanwhile.

    watch: [0] is set to end the call, when a handler (Ctrl-C) or `progress` raises an exception; [1] is how far it is.
    """
    with ThreadPoolExecutor(1) as pool:  # left when the call has ended
        called = pool.submit(call)
        try:
            while not wait([called], _TICK_S).done:
                if progress is not None:
                    progress(int(watch[1]))
        except BaseException:
            watch[0] = 1
            raise
        return called.result()


def _run(
    geometry: Geometry,
    method: str,
    file_system: FileSystem,
    run: dict[str, int],
    progress: Callable[[int], None] | None,
) -> dict[str, Any]:
    """Call the model; return the fields of `Outcome` that it sets."""
    counts = np.zeros((geometry.servers, len(COUNTERS)), np.int64)
    watch = np.zeros(2, np.int64)
    region, system = ffi.new("mpiio_ext_lock_model_geometry *", _fields(geometry)), _system(file_system)
    seen, rows = (ffi.cast("int64_t *", each.ctypes.data) for each in (watch, counts))
    outcome = ffi.new("mpiio_ext_lock_model_outcome *", {"counts": rows})
    how = ffi.new("mpiio_ext_lock_model_run *", {**run, "stop": seen, "done_bytes": seen + 1})
    rc = _stoppable(
        lambda: int(lib.mpiio_ext_lock_model_simulate(method.encode(), region, system, how, outcome)), watch, progress
    )
    if rc == _E_NOMEM:
        raise MpiioExtError(f"not enough memory for the locks of {geometry}")
    if rc != 0:
        raise ArgumentError(f"the lock model refuses {geometry} with {method!r} on {file_system}")
    columns = np.ascontiguousarray(counts.T)
    columns.flags.writeable = False
    sizes = np.array(list(outcome.sizes), np.int64)
    sizes.flags.writeable = False
    return {
        **dict(zip(COUNTERS, columns, strict=True)),
        "request_sizes": sizes,
        "aggregators_used": int(outcome.aggregators_used),
        "rounds": int(outcome.rounds),
        "steps": int(outcome.steps),
        "time_s": float(outcome.time_s),
    }


def simulate(
    geometry_or_plan: Geometry | Plan,
    method: str | None = None,
    *,
    file_system: FileSystem,
    window_bytes: int,
    stripe_size_io: bool = False,
    operation: str = "write",
    collectives: int = 1,
    synchronise: bool = True,
    order_seed: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Outcome:
    """Run the requests of collectives through the locks of a file system.

    Blocks for about 0.2 us for each stripe of each collective; an exception of a signal's handler (Ctrl-C) ends it.

    Parameters
    ----------
    geometry_or_plan : Geometry or Plan
        Region, stripes, servers and aggregators; of a plan they and its method are taken.
    method : str
        Name of a partition method; not needed with a plan.
    file_system : FileSystem
        Its protocol, latencies and bandwidths: `lustre()`, `gpfs()` or one of your own.
    window_bytes : int
        Collective buffer: what an aggregator handles in a round.
    stripe_size_io : bool
        No file-system request is larger than a stripe, or crosses a stripe boundary.
    operation : {"write", "read"}
        Writes take exclusive locks, reads shared ones.
    collectives : int
        So many collectives; each accesses the region behind the one before, as checkpoints do. Locks stay granted.
    synchronise : bool
        Aggregators wait for each other at the end of each round, as two-phase I/O does.
    order_seed : int, optional
        The requests of a step come in a random order of aggregators made of this number; else in ascending order.
    progress : callable, optional
        Called ten times a second with the bytes that have been accessed so far. An exception of it ends the simulation.

    Raises
    ------
    ArgumentError
        A value is out of range, there is no such method, or the last region ends beyond `MAX_OFFSET_BYTES`.
    MpiioExtError
        The model does not fit into memory.
    """
    geometry, name = _geometry_and_method(geometry_or_plan, method)
    run = _how(geometry, window_bytes, stripe_size_io, operation, collectives, synchronise, order_seed)
    numbers = _run(geometry, name, file_system, run, progress)
    return Outcome(
        geometry=geometry,
        method=name,
        file_system=file_system,
        window_bytes=window_bytes,
        stripe_size_io=stripe_size_io,
        operation=operation,
        collectives=collectives,
        **numbers,
    )
