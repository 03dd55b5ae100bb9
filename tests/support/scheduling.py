"""The queue in which requests wait for the file system in a delegate, for tests of its policies.

Which request is next is what the hint ``mpiox_delegate_scheduler`` chooses. The queue is that of libmpiio_ext.so
(csrc/iod/schedule/mpiox_schedule.h), and knows no clock: times are given, so that a policy can be simulated and tested.
See docs/explanation/delegates.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from mpiio_ext._binding import ffi, lib
from mpiio_ext.errors import ArgumentError, MpiioExtError

#: No time.
NEVER = 2**63 - 1

_E_ARG, _E_FULL = -2, -7


def _text(pointer: Any) -> str:
    return bytes(ffi.string(pointer)).decode()


def policies() -> dict[str, str]:
    """Return the source of every policy, by its name."""
    found: dict[str, str] = {}
    while (name := lib.mpiio_ext_schedule_policy_name(len(found))) != ffi.NULL:
        found[_text(name)] = _text(lib.mpiio_ext_schedule_policy_source(len(found)))
    return found


@dataclass(frozen=True, slots=True)
class Request:
    """A request that waits for the file system.

    Attributes
    ----------
    file, offset, length : which bytes; length > 0
    write : direction
    flow, weight : who is charged and how large a share it has ("wfq")
    server : that has the bytes, -1: not known ("twins")
    """

    file: int
    offset: int
    length: int
    write: bool = True
    flow: int = 0
    weight: int = 1
    server: int = -1


class Batch(NamedTuple):
    """What is served next.

    Attributes
    ----------
    ids : of the requests, in file order; empty: nothing now
    until : ns, when to ask again if nothing is served now; `NEVER`: when a request was added or done
    """

    ids: tuple[int, ...]
    until: int


class Queue:
    """Requests that wait, and the policy that says which is next.

    Parameters
    ----------
    policy : a name of `policies`
    capacity : requests that wait or are being served, at most
    quantum : bytes that a file or flow is served before another has its turn
    window : ns, of a server's time window ("twins") or to wait for requests in between ("aioli")
    patience : ns, what has waited so long is overdue: the oldest is served in every 8th batch at the latest; 0: never
    batch_bytes, batch_requests : of one batch, at most
    first_server : the number of the delegate, which is that of the server in window 0 ("twins")
    clock_offset : ns, what to add to a time to get one that all delegates share ("twins")

    Raises
    ------
    ArgumentError
        The policy does not exist, or a number is out of range.

    Not for use by several threads at once.
    """

    __slots__ = ("_handle", "_id", "_ids", "_until")

    def __init__(
        self,
        policy: str,
        *,
        capacity: int = 4096,
        quantum: int = 1 << 20,
        window: int = 0,
        patience: int = 0,
        batch_bytes: int = 16 << 20,
        batch_requests: int = 256,
        first_server: int = 0,
        clock_offset: int = 0,
    ) -> None:
        numbers = [capacity, quantum, window, patience, batch_bytes, batch_requests, first_server, clock_offset]
        out = ffi.new("mpiio_ext_schedule **")
        rc = lib.mpiio_ext_schedule_create(policy.encode(), ffi.new("int64_t[]", numbers), out)
        if rc == _E_ARG:
            raise ArgumentError(
                f"scheduler {policy!r} with {numbers}: choose one of {', '.join(policies())}, a "
                "quantum and batches of 1 or more, and no negative number"
            )
        if rc != 0:
            raise MpiioExtError(f"not enough memory for a queue of {capacity} requests")
        self._handle: Any = ffi.gc(out[0], lib.mpiio_ext_schedule_free)
        self._ids = ffi.new("uint32_t[]", batch_requests)
        self._id = ffi.new("uint32_t *")
        self._until = ffi.new("int64_t *")

    def __len__(self) -> int:
        return int(lib.mpiio_ext_schedule_depth(self._handle))

    def add(self, request: Request, now: int) -> int:
        """Let a request come at a time (ns); return its id.

        Raises
        ------
        ArgumentError
            A number of the request is out of range, or the queue is full.
        """
        r = request
        numbers = ffi.new("int64_t[]", [r.file, r.offset, r.length, r.flow, r.weight, r.server, r.write])
        rc = lib.mpiio_ext_schedule_add(self._handle, numbers, now, self._id)
        if rc == _E_FULL:
            raise ArgumentError("the queue is full: make it with a larger capacity, or serve requests first")
        if rc != 0:
            raise ArgumentError(f"{request}: length and weight must be 1 or more, offset 0 or more")
        return int(self._id[0])

    def next(self, now: int, *, hurry: bool = False) -> Batch:
        """Take the next batch out; with `hurry` no policy lets time pass."""
        count = lib.mpiio_ext_schedule_next(self._handle, now, hurry, self._ids, self._until)
        return Batch(tuple(self._ids[0:count]), int(self._until[0]))

    def done(self, request: int) -> None:
        """Say that a request that was taken out is served: those that overlap it may be next."""
        if lib.mpiio_ext_schedule_done(self._handle, request) != 0:
            raise ArgumentError(f"request {request} is not being served")

    def cancel(self, request: int) -> None:
        """Take a request out that waits."""
        if lib.mpiio_ext_schedule_cancel(self._handle, request) != 0:
            raise ArgumentError(f"request {request} does not wait")

    @property
    def counters(self) -> dict[str, int]:
        """Totals by name, see MPIOX_SCHEDULE_COUNTERS in csrc/iod/schedule/mpiox_schedule.h."""
        found: dict[str, int] = {}
        while (name := lib.mpiio_ext_schedule_counter_name(len(found))) != ffi.NULL:
            found[_text(name)] = int(lib.mpiio_ext_schedule_counter(self._handle, len(found)))
        return found
