"""Statistics of the library for a file, or for all files of this process.

The fields of `FileStats` and `RunStats` are the C list ``MPIOX_STATS_COUNTERS`` and ``MPIOX_STATS_TIMES`` of
``csrc/core/stats/mpiox_stats.h``; the two are compared when the first value is read. Numbers are those of the calling
rank; sums over ranks are printed at close with ``MPIOX_STATS=1``.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mpiio_ext._binding import ffi, lib
from mpiio_ext._load import check_in_time
from mpiio_ext.common.shown import Shown
from mpiio_ext.common.units import digits_text
from mpiio_ext.errors import ArgumentError, LoadError

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = ["FileStats", "Number", "RunStats", "calls", "numbers", "of", "total"]

_BUCKETS = 48
#: Fields that are neither counters nor times.
_WAYS = ("write", "read")
_OTHERS = (
    "request_size_log2",
    "partition",
    "reason",
    *(f"{way}_{what}" for way in _WAYS for what in ("partition", "stripe_size_io", "reason")),
    "delegation",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """Name, unit and meaning of one counter or time."""

    name: str
    unit: str
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _Stats(Shown):
    """The numbers of one rank.

    Attributes
    ----------
    collective_writes, collective_reads : collectives carried out by this library.
    native_calls : data-access calls handed to the MPI library.
    direct_calls : collectives that went straight to the file without exchange.
    individual_calls : of those, calls in which a rank did not wait for another.
    bytes_written, bytes_read : data bytes of this rank's collectives.
    direct_bytes_written, direct_bytes_read : of those, bytes that each rank moved alone, straight or through delegates;
        they count as independent ones, too.
    pieces : contiguous file pieces those bytes consist of.
    rounds : two-phase rounds.
    windows_full : windows written by one request because every byte was covered.
    windows_holes : windows with holes, of which only the covered extents were written.
    messages, message_bytes : messages between nodes and their size in bytes.
    write_requests, write_request_bytes : file-system write requests and their size in bytes.
    read_requests, read_request_bytes : file-system read requests and their size in bytes.
    independent_writes, independent_reads : accesses of one rank alone, those of direct collectives included.
    independent_bytes_written, independent_bytes_read : data bytes of those.
    chunks_whole, chunks_sieved, chunks_mapped, chunks_listed : parts of such accesses by the way they were moved: one
        request without holes, data sieving, through a mapping of the file, one request per piece.
    locks : file ranges locked for atomic mode.
    device_bytes_written, device_bytes_read : data bytes written from, and read into, the memory of a GPU.
    nonblocking_calls : nonblocking accesses carried out by this library.
    views_set : file views set.
    errors : collectives that ended with an error.
    failed_writes, failed_reads, failed_syncs : calls of a rank that failed: that wrote, that read, and that synced,
        preallocated or changed the size; failed_no_space, failed_quota, failed_io : of those, with MPI_ERR_NO_SPACE,
        MPI_ERR_QUOTA and MPI_ERR_IO.
    delegated_calls : collectives carried out through the delegates.
    delegated_writes, delegated_reads : accesses of one rank through the delegates; they count as independent ones, too.
    delegated_bytes_written, delegated_bytes_read : data bytes that those moved to and from pages of the delegates.
    delegated_misses : pages that were not cached, so that ranks requested them. delegated_messages,
    delegated_message_bytes : requests to delegates of other nodes and their size in bytes, with
        the answers.
    bypass_bytes_written, bypass_bytes_read : bytes that went past the delegates: whole pages of long runs.
    delegated_flush_barriers : flushes of all written bytes to the file. moved_ranges : page ranges assigned to another
    delegate to balance the load. remapped_ranges : page ranges assigned to another delegate by the arbiter's map.
    redirected_pages : page accesses repeated because the page had moved to another delegate. deferred_errors : ranges
    of bytes that delegates had accepted and could not write. dead_delegate_accesses : page accesses made in the file
    because the page's delegate was dead. plan_s, exchange_s, io_s, wait_s, total_s : seconds of planning, of copying
    and messages, of file-system requests,
        of waiting for other ranks, and inside collectives altogether.
    messages_s : of those of copying and messages, seconds of messages between nodes.
    independent_s : seconds inside accesses of one rank alone.
    delegated_s : of those, seconds inside accesses through delegates.
    flush_barrier_s : seconds until bytes written through delegates were in the file: sync, close, other ways of access.
    write_s, read_s, sync_s : seconds inside calls that wrote, that read, and that brought written bytes to the file;
        0 without statistics.
    device_s : seconds in the driver of a GPU, for copies of its memory.
    request_size_log2 : element k counts the file-system requests of 2^k to 2^(k+1)-1 bytes; 48 elements.
    partition : file-domain method of the last collective that had file domains, whether it wrote or read.
    reason : why the last collective had that method and that path.
    write_partition, read_partition : method of the last collective that wrote, and of the last one that read; "" when
        it had no file domains, or there was none.
    write_stripe_size_io, read_stripe_size_io : whether its requests were no larger than a stripe.
    write_reason, read_reason : why it had that method and that path; "" when there was none.
    delegation : which delegates, or why there are none; "" when none were asked for.
    """

    collective_writes: int
    collective_reads: int
    native_calls: int
    direct_calls: int
    individual_calls: int
    bytes_written: int
    bytes_read: int
    direct_bytes_written: int
    direct_bytes_read: int
    pieces: int
    rounds: int
    windows_full: int
    windows_holes: int
    messages: int
    message_bytes: int
    write_requests: int
    write_request_bytes: int
    read_requests: int
    read_request_bytes: int
    independent_writes: int
    independent_reads: int
    independent_bytes_written: int
    independent_bytes_read: int
    chunks_whole: int
    chunks_sieved: int
    chunks_mapped: int
    chunks_listed: int
    locks: int
    device_bytes_written: int
    device_bytes_read: int
    nonblocking_calls: int
    views_set: int
    errors: int
    failed_writes: int
    failed_reads: int
    failed_syncs: int
    failed_no_space: int
    failed_quota: int
    failed_io: int
    delegated_calls: int
    delegated_writes: int
    delegated_reads: int
    delegated_bytes_written: int
    delegated_bytes_read: int
    delegated_misses: int
    delegated_messages: int
    delegated_message_bytes: int
    bypass_bytes_written: int
    bypass_bytes_read: int
    delegated_flush_barriers: int
    moved_ranges: int
    remapped_ranges: int
    redirected_pages: int
    deferred_errors: int
    dead_delegate_accesses: int
    plan_s: float
    exchange_s: float
    messages_s: float
    io_s: float
    wait_s: float
    total_s: float
    independent_s: float
    delegated_s: float
    flush_barrier_s: float
    write_s: float
    read_s: float
    sync_s: float
    device_s: float
    request_size_log2: tuple[int, ...]
    partition: str
    reason: str
    write_partition: str
    write_stripe_size_io: bool
    write_reason: str
    read_partition: str
    read_stripe_size_io: bool
    read_reason: str
    delegation: str

    def rows(self) -> list[dict[str, object]]:
        """Return name, value, unit and meaning of the numbers that are not 0."""
        found = ((number, getattr(self, number.name)) for number in numbers())
        return [
            {"name": number.name, "value": value, "unit": number.unit, "meaning": number.meaning}
            for number, value in found
            if value
        ]

    def lines(self) -> list[str]:
        """Return the methods with their reasons, and the numbers that are not 0."""
        ways = [
            f"{way}: {getattr(self, f'{way}_partition')}; {getattr(self, f'{way}_reason')}"
            for way in _WAYS
            if getattr(self, f"{way}_partition")
        ]
        rows = [
            f"{row['name']:<26} {digits_text(getattr(self, str(row['name'])), 6):>16} {row['unit']}"
            for row in self.rows()
        ]
        return [*ways, *(rows or ["nothing was done"])]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FileStats(_Stats):
    """The library's work for one open file on this rank; `_Stats` describes the numbers.

    Attributes
    ----------
    path : the file's name as the program opened it.
    """

    path: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunStats(_Stats):
    """The library's work for all files of this process so far, closed ones and open ones.

    Attributes
    ----------
    calls : how often the process called each MPI function that is wrapped, {"MPI_File_open": 3, …}; functions that
        were never called are left out.
    """

    calls: dict[str, int]


def _text(pointer: object) -> str:
    return str(ffi.string(pointer).decode("utf-8", "surrogateescape"))


@functools.cache
def numbers() -> tuple[Number, ...]:
    """Return name, unit and meaning of every counter and time, in the library's order.

    Raises
    ------
    LoadError
        The library's list is not that of the dataclasses: library and package are not of one version.
    """
    count = lib.mpiio_ext_stats_counter_count() + lib.mpiio_ext_stats_time_count()
    found = tuple(
        Number(
            name=_text(lib.mpiio_ext_stats_name(index)),
            unit=_text(lib.mpiio_ext_stats_unit(index)),
            meaning=_text(lib.mpiio_ext_stats_meaning(index)),
        )
        for index in range(count)
    )
    fields = [name for name in _Stats.__dataclass_fields__ if name not in _OTHERS]
    if [number.name for number in found] != fields:
        raise LoadError("mpiio_ext.stats and libmpiio_ext.so list different numbers: reinstall mpiio_ext")
    return found


def _fields(handle: object) -> dict[str, Any]:
    counters = lib.mpiio_ext_stats_counter_count()
    values: dict[str, Any] = {}
    for index, number in enumerate(numbers()):
        if index < counters:
            values[number.name] = int(lib.mpiio_ext_stats_counter(handle, index))
        else:
            values[number.name] = float(lib.mpiio_ext_stats_time(handle, index - counters))
    values["request_size_log2"] = tuple(int(lib.mpiio_ext_stats_requests(handle, power)) for power in range(_BUCKETS))
    values["partition"] = _text(lib.mpiio_ext_stats_partition(handle))
    values["reason"] = _text(lib.mpiio_ext_stats_reason(handle))
    for way in _WAYS:
        write = int(way == "write")
        values[f"{way}_partition"] = _text(lib.mpiio_ext_stats_way_partition(handle, write))
        values[f"{way}_stripe_size_io"] = bool(lib.mpiio_ext_stats_way_stripe_size_io(handle, write))
        values[f"{way}_reason"] = _text(lib.mpiio_ext_stats_way_reason(handle, write))
    values["delegation"] = _text(lib.mpiio_ext_stats_delegation(handle))
    return values


def calls() -> dict[str, int]:
    """Return how often this process called each wrapped MPI function, zeros left out."""
    check_in_time()
    counts = {
        _text(lib.mpiio_ext_call_name(index)): int(lib.mpiio_ext_calls(index))
        for index in range(lib.mpiio_ext_call_count())
    }
    return {name: count for name, count in counts.items() if count}


def of(file: MPI.File) -> FileStats:
    """Return the statistics of an open file on this rank. Local.

    Raises
    ------
    ArgumentError
        The file is closed, or was not opened through this library.
    """
    check_in_time()
    from mpi4py import MPI

    handle = lib.mpiio_ext_stats_of(ffi.cast("const void *", MPI._addressof(file)))
    if handle == ffi.NULL:
        raise ArgumentError("file: closed, or not opened through mpiio_ext")
    handle = ffi.gc(handle, lib.mpiio_ext_stats_free)
    return FileStats(path=_text(lib.mpiio_ext_stats_path(handle)), **_fields(handle))


def total() -> RunStats:
    """Return the statistics of all files of this process so far. Local; needs no initialised MPI."""
    check_in_time()
    handle = lib.mpiio_ext_stats_total()
    if handle == ffi.NULL:
        raise MemoryError("mpiio_ext_stats_total")
    return RunStats(calls=calls(), **_fields(ffi.gc(handle, lib.mpiio_ext_stats_free)))
