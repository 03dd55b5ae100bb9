"""The result of the lock model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mpiio_ext.partitioning._plan import Geometry, IntArray
from mpiio_ext.partitioning.locks._systems import FileSystem

FloatArray = npt.NDArray[np.float64]

#: Counts of a server, in the order of the columns that C returns: see `Outcome`.
COUNTERS = (
    "lock_requests",
    "grants",
    "matches",
    "conflicts",
    "revocations",
    "shared_units",
    "data_requests",
    "data_bytes",
    "owner_changes",
    "aggregators",
    "smallest_request_bytes",
    "largest_request_bytes",
)
#: Counters that do not add up over servers.
_NO_SUMS = ("aggregators", "smallest_request_bytes", "largest_request_bytes")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """Counts of every server and the predicted time. Arrays are read-only int64 of shape (servers,).

    Parameters
    ----------
    geometry, method, file_system
        What was simulated.
    aggregators_used : int
        After the method's adjustment.
    lock_requests, grants : ndarray
        Locks asked for and granted. With tokens they are counted at the server of the request's first byte.
    matches : ndarray
        Accesses under a lock that their aggregator held already: no message.
    conflicts : ndarray
        Lock requests that met another aggregator's lock in the range that they require.
    revocations : ndarray
        Locks that were cancelled (server) or cut (token) for such requests.
    shared_units : ndarray
        False sharing: lock units that more than one aggregator writes.
    data_requests, data_bytes : ndarray
        Parts of file-system requests that a server serves, and their bytes.
    owner_changes : ndarray
        The static "lock extent conflicts" of Figure 2: how often the owner changes along a server's stripes.
    aggregators : ndarray
        Distinct aggregators that access a server.
    smallest_request_bytes, largest_request_bytes : ndarray
        Of a server's data requests; 0 if it has none.
    request_sizes : ndarray of int64, shape (64,)
        File-system requests of [2**i, 2**(i + 1)) bytes.
    rounds, steps : int
        Over all collectives.
    time_s : float
        When the last aggregator has finished.
    """

    geometry: Geometry
    method: str
    file_system: FileSystem
    window_bytes: int
    stripe_size_io: bool
    operation: str
    collectives: int
    aggregators_used: int
    lock_requests: IntArray
    grants: IntArray
    matches: IntArray
    conflicts: IntArray
    revocations: IntArray
    shared_units: IntArray
    data_requests: IntArray
    data_bytes: IntArray
    owner_changes: IntArray
    aggregators: IntArray
    smallest_request_bytes: IntArray
    largest_request_bytes: IntArray
    request_sizes: IntArray
    rounds: int
    steps: int
    time_s: float

    @property
    def totals(self) -> dict[str, int]:
        """Counts summed over all servers, by name; without `aggregators` and sizes, which do not add up."""
        return {name: int(getattr(self, name).sum()) for name in COUNTERS if name not in _NO_SUMS}

    @property
    def mean_request_bytes(self) -> FloatArray:
        """Mean size of each server's data requests, shape (servers,); 0 without requests."""
        return self.data_bytes / np.maximum(self.data_requests, 1)

    @property
    def total_lock_requests(self) -> int:
        """Locks requested at all servers."""
        return int(self.lock_requests.sum())

    @property
    def total_conflicts(self) -> int:
        """Conflicts at all servers."""
        return int(self.conflicts.sum())

    @property
    def total_revocations(self) -> int:
        """Revocations at all servers."""
        return int(self.revocations.sum())

    @property
    def total_bytes(self) -> int:
        """Bytes of all collectives."""
        return int(self.data_bytes.sum())

    @property
    def requests(self) -> int:
        """File-system requests of all aggregators."""
        return int(self.request_sizes.sum())

    @property
    def bandwidth_bytes_s(self) -> float:
        """Bytes of all collectives by the predicted time; 0 without any."""
        return self.total_bytes / self.time_s if self.time_s > 0 else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers as plain data: totals, time, bandwidth; unit suffixes in the names."""
        sizes = {str(2 ** int(i)): int(self.request_sizes[i]) for i in np.flatnonzero(self.request_sizes)}
        return {
            "method": self.method,
            "stripe_size_io": self.stripe_size_io,
            "aggregators": self.geometry.aggregators,
            "aggregators_used": self.aggregators_used,
            **self.totals,
            "aggregators_per_server_max": int(self.aggregators.max()),
            "requests": self.requests,
            "requests_by_size_from_bytes": sizes,
            "rounds": self.rounds,
            "steps": self.steps,
            "time_s": self.time_s,
            "bandwidth_bytes_s": self.bandwidth_bytes_s,
        }
