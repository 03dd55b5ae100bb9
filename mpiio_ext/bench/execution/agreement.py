"""Ranks that do the same thing: timing a phase over all of them, and agreeing on its errors before any continues."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from mpiio_ext.bench.errors import BenchError, SetupError

if TYPE_CHECKING:
    from mpi4py import MPI

Value = TypeVar("Value")


class Watch:
    """Says when something began and ends, in seconds since 1970 UTC.

    Time that has passed is of the monotonic clock: an end is never before its begin, also where the clock is set
    meanwhile.

    Attributes
    ----------
    begin_unix_s : when this was made
    """

    def __init__(self) -> None:
        self.begin_unix_s = time.time()
        self._start = time.perf_counter()

    def now_unix_s(self) -> float:
        """Return the time now."""
        return self.begin_unix_s + (time.perf_counter() - self._start)


def _one_line(error: BaseException) -> str:
    return " ".join((str(error) or type(error).__name__).split())


def agree(comm: MPI.Intracomm, error: Exception | None, doing: str) -> None:
    """Raise on every rank of `comm` when one has an error; collective.

    Raises
    ------
    BenchError
        Names what was being done, the lowest rank with an error and its message. The error's own type is kept for
        errors of the bench.
    """
    failed = np.array([error is not None], np.int32)
    total = np.zeros(1, np.int32)
    comm.Allreduce(failed, total)
    if not total[0]:
        return
    found = comm.allgather(None if error is None else (type(error), _one_line(error)))
    rank, (kind, message) = next((rank, item) for rank, item in enumerate(found) if item is not None)
    if issubclass(kind, BenchError):
        raise kind(message)
    raise BenchError(f"{doing}: {message} (rank {rank}, {int(total[0])} of {comm.size} ranks failed)")


def on_rank_0(comm: MPI.Intracomm, action: Callable[[], Value]) -> Value:
    """Return the result of `action` on rank 0 to every rank; its OSError becomes a SetupError of all; collective."""
    result: Value | None = None
    error: Exception | None = None
    if comm.rank == 0:
        try:
            result = action()
        except BenchError as caught:
            error = caught
        except OSError as caught:
            text = f"{caught.strerror or caught}"
            error = SetupError(text + (f": {caught.filename}" if caught.filename else ""))
    agree(comm, error, "preparing")
    found: Value = comm.bcast(result)
    return found


def span_of(marks: Sequence[tuple[str, float, float]]) -> float:
    """Return the seconds from the first begin to the last end, of the host where that is longest.

    With more ranks than processors some ranks begin when others have ended: no rank's own time is the time of the
    phase. Ranks of a host have a common clock, hosts have not.

    Parameters
    ----------
    marks : (host, begin, end) of each rank, in seconds of the host's clock
    """
    first: dict[str, float] = {}
    last: dict[str, float] = {}
    for host, begin, end in marks:
        first[host] = min(first.get(host, begin), begin)
        last[host] = max(last.get(host, end), end)
    return max(last[host] - first[host] for host in first)


def timed(comm: MPI.Intracomm, phase: Callable[[], None], doing: str) -> float:
    """Run `phase` on every rank at once and return its time by `span_of` in seconds; collective.

    Raises
    ------
    BenchError
        The phase failed on some rank; raised on all.
    """
    error: Exception | None = None
    comm.Barrier()
    start = time.perf_counter()
    try:
        phase()
    except Exception as caught:
        error = caught
    end = time.perf_counter()
    marks = comm.allgather((platform.node(), start, end))
    agree(comm, error, doing)
    return span_of(marks)


def wait_quietly(comm: MPI.Intracomm, failed: bool) -> bool:
    """Wait for every rank of `comm`, sleeping rather than spinning, and return whether one has failed; collective."""
    from mpi4py import MPI

    mine, any_failed = np.array([failed], np.int32), np.zeros(1, np.int32)
    request = comm.Iallreduce(mine, any_failed, op=MPI.MAX)
    while not request.Test():
        time.sleep(0.001)
    return bool(any_failed[0])
