"""Rows of results, their schema, and medians over repetitions.

One `Row` is one operation (write or read) of one run. Column names carry their units: ``_unix_s`` seconds since 1970
UTC, other ``_s`` seconds, ``_bytes``, ``_mb_per_s`` 10⁶ bytes per second; others are counts or pure ratios. `Summary`
has one row per operation, pattern or kernel's phase, interface and method, over the repetitions. Columns keep their
names while `SCHEMA_VERSION` does: a pattern or kernel is called a workload there, and a method a strategy.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

__all__ = ["SCHEMA_VERSION", "Absent", "Row", "Summary", "summarize", "with_ratios"]

SCHEMA_VERSION = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """Something that was not run, and why."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One operation of one run.

    Attributes
    ----------
    workload, variant, label : name of the pattern or kernel, of this variant of it, and the latter for people
    interface, strategy : names; the strategy is the method
    operation : "write", "read", or "both" where a phase does both
    kind : "pattern" or "kernel" (the I/O of an application)
    phase : of a kernel, e.g. "S" of MADBench2; "" for patterns
    noncontiguous : a rank's accesses are in pieces, in the file or in memory; None = not said
    files : how many files hold the data
    compared : how the files were compared with those of the other methods: "bytes" (equal byte by byte), or the tool
        of the format that found no difference, e.g. "h5diff"; "" = not compared
    repetition : from 0
    order : how many runs came before this one
    ranks : that took part
    scaled : the native path ran on a smaller file than the others, because the full one would have taken too long
    gaps_written : the file had other than zero where no rank wrote, which only native methods are allowed
    file_bytes : extent of the file's data
    data_bytes : transferred by all ranks together
    open_s, view_s, data_s, close_s : longest time of a rank in each phase; view_s is the file view, or the dataset
    bandwidth_mb_per_s : data_bytes / (view_s + data_s), with delegates data_bytes / (view_s + data_s + close_s),
        because closing is when the last of the data reaches the file; of a kernel's phase the same as the next
    bandwidth_total_mb_per_s : data_bytes / (open_s + view_s + data_s + close_s)
    ratio_to_native : bandwidth over that of "native" in the same repetition; None when that was not run
    ratio_to_best_native : the same over the faster of "native" and "native_tuned"; None when neither was run
    collectives_taken_over, native_calls : data-access calls carried out by the extension, and handed to the MPI
        library, summed over the ranks; None without the extension
    rounds : two-phase rounds of the busiest aggregator; None without the extension
    requests, request_bytes : file-system requests of all ranks
    requests_source : "extension" (exact) or "kernel" (every system call that reads or writes), "" when unknown
    messages, message_bytes : between nodes, all ranks
    plan_s, exchange_s, io_s, wait_s : time of the extension's phases, longest rank
    independents_taken_over : accesses of one rank alone that the extension carried out, those of direct collectives
        included, summed over the ranks; None without the extension
    independent_s : time inside those, longest rank
    request_size_log2 : element k counts the file-system requests of 2^k to 2^(k+1)-1 bytes, all ranks; 48 elements;
        None without the extension
    partition, reason : the method that the extension used, and why
    delegates : delegates that were seen to count; None = the method has none, as for all that follow
    delegated_accesses, delegated_bytes, bypass_bytes : accesses of all ranks through delegates; their data bytes; those
        of them that went past the delegates straight to the file
    cache_hits, cache_misses : page accesses that found the page in a delegate's cache, and that did not
    prefetched_pages, prefetch_used_pages : pages read ahead of any request; those that were then accessed
    delegation : which delegates, or why none
    begin_unix_s, end_unix_s : when it began and ended, by the clock of rank 0, in seconds since 1970 UTC: before the
        first file is opened, and after the last one was closed on all ranks; None in results of older versions
    """

    workload: str
    variant: str
    label: str
    interface: str
    strategy: str
    operation: str
    repetition: int
    order: int
    ranks: int
    scaled: bool
    file_bytes: int
    data_bytes: int
    open_s: float
    view_s: float
    data_s: float
    close_s: float
    bandwidth_mb_per_s: float
    bandwidth_total_mb_per_s: float
    ratio_to_native: float | None = None
    ratio_to_best_native: float | None = None
    collectives_taken_over: int | None = None
    native_calls: int | None = None
    rounds: int | None = None
    requests: int | None = None
    request_bytes: int | None = None
    requests_source: str = ""
    messages: int | None = None
    message_bytes: int | None = None
    plan_s: float | None = None
    exchange_s: float | None = None
    io_s: float | None = None
    wait_s: float | None = None
    partition: str = ""
    reason: str = ""
    gaps_written: bool = False
    kind: str = "pattern"
    phase: str = ""
    noncontiguous: bool | None = None
    files: int = 1
    compared: str = ""
    independents_taken_over: int | None = None
    independent_s: float | None = None
    request_size_log2: tuple[int, ...] | None = None
    delegates: int | None = None
    delegated_accesses: int | None = None
    delegated_bytes: int | None = None
    bypass_bytes: int | None = None
    cache_hits: int | None = None
    cache_misses: int | None = None
    prefetched_pages: int | None = None
    prefetch_used_pages: int | None = None
    delegation: str = ""
    begin_unix_s: float | None = None
    end_unix_s: float | None = None

    @property
    def place(self) -> tuple[str, str, str, str]:
        """What the methods that are compared have in common."""
        return self.variant, self.interface, self.phase, self.operation

    @property
    def group(self) -> tuple[str, str, str, str, str]:
        """What the repetitions have in common."""
        return self.variant, self.interface, self.strategy, self.phase, self.operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One operation of one pattern or phase, interface and method, over all repetitions.

    Attributes
    ----------
    ratio_to_native, ratio_to_best_native : median over the repetitions of the ratio within the repetition
    open_median_s … independent_median_s : medians of the times of the same name
    request_size_log2 : of the last repetition
    begin_unix_s, end_unix_s : begin of the first repetition and end of the last one; other rows were measured between
        them, where there are several repetitions
    others : as in `Row`; "median", "min" and "max" over the repetitions; counts are medians
    """

    workload: str
    variant: str
    label: str
    interface: str
    strategy: str
    operation: str
    repetitions: int
    ranks: int
    scaled: bool
    file_bytes: int
    data_bytes: int
    bandwidth_median_mb_per_s: float
    bandwidth_min_mb_per_s: float
    bandwidth_max_mb_per_s: float
    bandwidth_total_median_mb_per_s: float
    data_access_median_s: float
    open_close_median_s: float
    ratio_to_native: float | None
    ratio_to_native_min: float | None
    ratio_to_native_max: float | None
    ratio_to_best_native: float | None
    rounds: int | None
    requests: int | None
    request_bytes: int | None
    requests_source: str
    taken_over: bool | None
    partition: str
    reason: str
    gaps_written: bool
    kind: str
    phase: str
    noncontiguous: bool | None
    files: int
    compared: str
    independents_taken_over: int | None
    open_median_s: float
    view_median_s: float
    data_median_s: float
    close_median_s: float
    plan_median_s: float | None
    exchange_median_s: float | None
    io_median_s: float | None
    wait_median_s: float | None
    independent_median_s: float | None
    request_size_log2: tuple[int, ...] | None
    delegates: int | None
    delegated_accesses: int | None
    delegated_bytes: int | None
    bypass_bytes: int | None
    cache_hits: int | None
    cache_misses: int | None
    prefetched_pages: int | None
    prefetch_used_pages: int | None
    delegation: str
    begin_unix_s: float | None
    end_unix_s: float | None


def with_ratios(rows: Iterable[Row]) -> list[Row]:
    """Return the rows with their ratios set from the native methods of the same repetition."""
    rows = list(rows)
    natives: dict[tuple[Any, ...], dict[str, float]] = {}
    for row in rows:
        if row.strategy in ("native", "native_tuned"):
            natives.setdefault((*row.place, row.repetition), {})[row.strategy] = row.bandwidth_mb_per_s
    out = []
    for row in rows:
        there = natives.get((*row.place, row.repetition), {})
        native, best = there.get("native"), max(there.values(), default=None)
        out.append(
            replace(
                row,
                ratio_to_native=row.bandwidth_mb_per_s / native if native else None,
                ratio_to_best_native=row.bandwidth_mb_per_s / best if best else None,
            )
        )
    return out


def _median_count(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return int(statistics.median_low(known)) if known else None


def _median_time(rows: list[Row], name: str) -> float | None:
    known = [value for row in rows if (value := getattr(row, name)) is not None]
    return statistics.median(known) if known else None


def _delegate_counts(rows: list[Row]) -> dict[str, Any]:
    names = ("delegates", "delegated_accesses", "delegated_bytes", "bypass_bytes", "cache_hits", "cache_misses",
             "prefetched_pages", "prefetch_used_pages")
    return {name: _median_count([getattr(row, name) for row in rows]) for name in names}


def _summary(rows: list[Row]) -> Summary:
    first = rows[0]
    bandwidths = [row.bandwidth_mb_per_s for row in rows]
    ratios = [row.ratio_to_native for row in rows if row.ratio_to_native is not None]
    best = [row.ratio_to_best_native for row in rows if row.ratio_to_best_native is not None]
    taken = [
        None if row.collectives_taken_over is None else row.collectives_taken_over + (row.independents_taken_over or 0)
        for row in rows
    ]
    return Summary(
        workload=first.workload,
        variant=first.variant,
        label=first.label,
        interface=first.interface,
        strategy=first.strategy,
        operation=first.operation,
        repetitions=len(rows),
        ranks=first.ranks,
        scaled=first.scaled,
        file_bytes=first.file_bytes,
        data_bytes=first.data_bytes,
        bandwidth_median_mb_per_s=statistics.median(bandwidths),
        bandwidth_min_mb_per_s=min(bandwidths),
        bandwidth_max_mb_per_s=max(bandwidths),
        bandwidth_total_median_mb_per_s=statistics.median(row.bandwidth_total_mb_per_s for row in rows),
        data_access_median_s=statistics.median(row.view_s + row.data_s for row in rows),
        open_close_median_s=statistics.median(row.open_s + row.close_s for row in rows),
        ratio_to_native=statistics.median(ratios) if ratios else None,
        ratio_to_native_min=min(ratios) if ratios else None,
        ratio_to_native_max=max(ratios) if ratios else None,
        ratio_to_best_native=statistics.median(best) if best else None,
        rounds=_median_count([row.rounds for row in rows]),
        requests=_median_count([row.requests for row in rows]),
        request_bytes=_median_count([row.request_bytes for row in rows]),
        requests_source=first.requests_source,
        taken_over=None if taken[0] is None else all(taken),
        partition=rows[-1].partition,
        reason=rows[-1].reason,
        gaps_written=any(row.gaps_written for row in rows),
        kind=first.kind,
        phase=first.phase,
        noncontiguous=first.noncontiguous,
        files=first.files,
        compared=next((row.compared for row in rows if row.compared), ""),
        independents_taken_over=_median_count([row.independents_taken_over for row in rows]),
        open_median_s=statistics.median(row.open_s for row in rows),
        view_median_s=statistics.median(row.view_s for row in rows),
        data_median_s=statistics.median(row.data_s for row in rows),
        close_median_s=statistics.median(row.close_s for row in rows),
        plan_median_s=_median_time(rows, "plan_s"),
        exchange_median_s=_median_time(rows, "exchange_s"),
        io_median_s=_median_time(rows, "io_s"),
        wait_median_s=_median_time(rows, "wait_s"),
        independent_median_s=_median_time(rows, "independent_s"),
        request_size_log2=rows[-1].request_size_log2,
        delegation=rows[-1].delegation,
        begin_unix_s=min((row.begin_unix_s for row in rows if row.begin_unix_s is not None), default=None),
        end_unix_s=max((row.end_unix_s for row in rows if row.end_unix_s is not None), default=None),
        **_delegate_counts(rows),
    )


def summarize(rows: Iterable[Row]) -> list[Summary]:
    """Return one summary per group of repetitions, in the order in which the groups first appear."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    return [_summary(group) for group in groups.values()]
