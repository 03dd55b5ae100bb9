"""File systems of the lock model: protocols, latencies, bandwidths; docs/explanation/locks.md has their sources."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any

from mpiio_ext.errors import ArgumentError
from mpiio_ext.partitioning._plan import MAX_OFFSET_BYTES

#: Lock protocols, as `mpiox_layout` names them; the index is the number that C knows.
PROTOCOLS = ("none", "server", "token")
_MAX_COUNT = 2**31 - 1


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystem:
    """How a file system locks, and how fast its parts are.

    Parameters
    ----------
    name : str
        For people.
    protocol : {"none", "server", "token"}
        No process locks; each server grants extent locks of its object (Lustre); clients negotiate byte-range tokens of
        the file (GPFS).
    granularity_bytes : int
        Lock unit: required ranges are rounded to it. 0: the stripe size of the geometry.
    growth_bytes, growth_holders : int
        server: where more than `growth_holders` locks or requests meet at an object, a lock grows upwards by
        `growth_bytes` at most. 0 bytes: as far as it gets.
    forward_holders : int
        server: where more than this meet, a lock does not grow downwards.
    rpc_bytes : int
        Largest data request on the wire.
    round_trip_s : float
        A small message and its answer, between client and server or two clients.
    enqueue_s : float
        A client's time to send one lock request.
    lock_service_s : float
        The server's or token manager's time for one lock request or one cancel.
    request_overhead_s : float
        The server's time for one data request of at most `rpc_bytes`, besides its transfer.
    server_bandwidth_bytes_s, client_bandwidth_bytes_s : float
        Of one server, of one aggregator.
    commit_s : float
        A server's time from a write's transfer to its answer, in which it may serve others: to commit a journal.
    dirty_server_bytes : int
        Largest amount of written bytes in an aggregator's cache that one server does not have yet; 0: no such limit.
    dirty_client_bytes : int
        The same for all servers together. Both 0: no cache, a round ends when its data is on the servers.
    """

    name: str
    protocol: str
    granularity_bytes: int = 0
    growth_bytes: int = 0
    growth_holders: int = 0
    forward_holders: int = _MAX_COUNT
    rpc_bytes: int = 2**20
    round_trip_s: float
    enqueue_s: float
    lock_service_s: float
    request_overhead_s: float
    server_bandwidth_bytes_s: float
    client_bandwidth_bytes_s: float
    commit_s: float = 0.0
    dirty_server_bytes: int = 0
    dirty_client_bytes: int = 0

    @property
    def caches(self) -> bool:
        """Clients write behind: their dirty data has a limit."""
        return self.dirty_server_bytes > 0 or self.dirty_client_bytes > 0

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise ArgumentError(f"unknown lock protocol {self.protocol!r}: choose from {', '.join(PROTOCOLS)}")
        for name, low, high in (
            ("granularity_bytes", 0, MAX_OFFSET_BYTES),
            ("growth_bytes", 0, MAX_OFFSET_BYTES),
            ("growth_holders", 0, _MAX_COUNT),
            ("forward_holders", 0, _MAX_COUNT),
            ("rpc_bytes", 1, MAX_OFFSET_BYTES),
            ("dirty_server_bytes", 0, MAX_OFFSET_BYTES),
            ("dirty_client_bytes", 0, MAX_OFFSET_BYTES),
        ):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
                raise ArgumentError(f"{name} must be a whole number from {low} to {high}, not {value!r}")
        for name in ("round_trip_s", "enqueue_s", "lock_service_s", "request_overhead_s", "commit_s"):
            value = getattr(self, name)
            if not _is_number(value) or not (value >= 0 and math.isfinite(value)):
                raise ArgumentError(f"{name} must be a finite time of at least 0 s, not {value!r}")
        for name in ("server_bandwidth_bytes_s", "client_bandwidth_bytes_s"):
            value = getattr(self, name)
            if not _is_number(value) or not (value > 0 and math.isfinite(value)):
                raise ArgumentError(f"{name} must be a finite rate above 0, not {value!r}")


#: Whether `lustre()` and `gpfs()` have caches by default: the one place to change it. Not so,
#: since the differences that SC08 measured are there without caches and vanish with them (docs/explanation/locks.md).
CACHED_BY_DEFAULT = False
#: Limits of `cached()` by protocol. server: OSC_MAX_DIRTY_DEFAULT, 8 requests in flight x 4 MiB for each server, in
#: Lustre's lustre/include/obd.h (older versions). token: 64 MiB of page pool for each client, an assumption.
_CACHES: dict[str, dict[str, Any]] = {
    "server": {"dirty_server_bytes": 32 * 2**20},
    "token": {"dirty_client_bytes": 64 * 2**20},
}


def _changed(like: FileSystem, changes: dict[str, Any]) -> FileSystem:
    """Return the file system with other values of some fields, or raise ArgumentError when it has no such field."""
    known = [field.name for field in fields(FileSystem)]
    for name in changes:
        if name not in known:
            raise ArgumentError(f"a file system of the lock model has no {name!r}: choose from {', '.join(known)}")
    return replace(like, **changes)


def cached(like: FileSystem) -> FileSystem:
    """Return the same file system with the usual limits of its clients' caches; without locks: as it was.

    Lustre: 32 MiB for each client and server; GPFS: 64 MiB for each client (docs/explanation/locks.md).
    """
    return replace(like, **_CACHES.get(like.protocol, {}))


def uncached(like: FileSystem) -> FileSystem:
    """Return the same file system without caches: a round of a collective ends when its data is on the servers."""
    return replace(like, dirty_server_bytes=0, dirty_client_bytes=0)


def _with_defaults(system: FileSystem, changes: dict[str, Any]) -> FileSystem:
    """Return the system with its cache, where systems have one by default, and then the changes."""
    return _changed(cached(system) if CACHED_BY_DEFAULT else system, changes)


def lustre(**changes: Any) -> FileSystem:
    """Return Lustre about as on a Cray XT4 of the years of SC08 (Jaguar at ORNL), with `changes` to its fields.

    The source of each number, or a note that it is an assumption: docs/explanation/locks.md. Lock units are stripes, as
    the project's page says; present Lustre locks pages of clients: ``lustre(granularity_bytes=4096)``.
    """
    system = FileSystem(
        name="Lustre",
        protocol="server",
        growth_bytes=32 * 2**20,  # ldlm_extent.c: LDLM_MAX_GROWN_EXTENT...
        growth_holders=32,  # ... with more conflicting locks than this
        forward_holders=4,  # ldlm_extent.c: conflicting > 4
        rpc_bytes=2**20,  # Lustre 1.6 manual, 20.2.1 and data path: 1 MB at most
        round_trip_s=20e-6,  # Henke, lustre-devel 2009-04-01: 50,000 LNet pings a second between two nodes
        enqueue_s=5e-6,  # assumption
        lock_service_s=20e-6,  # assumption
        request_overhead_s=100e-6,  # assumption
        server_bandwidth_bytes_s=250e6,  # Shipman et al., CUG 2010: 240 GB/s / 6; 144 OSTs: at most 278 MB/s each
        client_bandwidth_bytes_s=1.7e9,  # Henke, as above: 1,700 MB/s
    )
    return _with_defaults(system, changes)


def gpfs(**changes: Any) -> FileSystem:
    """Return GPFS about as on the IA-64 cluster of SC08 (Mercury at NCSA); most numbers are assumptions (locks.md)."""
    system = FileSystem(
        name="GPFS",
        protocol="token",
        rpc_bytes=2**20,
        round_trip_s=100e-6,
        enqueue_s=10e-6,
        lock_service_s=50e-6,
        request_overhead_s=100e-6,
        server_bandwidth_bytes_s=60e6,
        client_bandwidth_bytes_s=110e6,
    )
    return _with_defaults(system, changes)


def unlocked(like: FileSystem) -> FileSystem:
    """Return the same file system without locks, with the same bandwidth and latency."""
    return replace(like, name=f"{like.name} without locks", protocol="none")
