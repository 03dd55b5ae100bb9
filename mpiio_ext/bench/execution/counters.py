"""From the counters of each rank to the columns of a row.

The extension's own counters where it did the work, the operating system's where the MPI library did: see
`mpiio_ext.bench.extension`. Delegates count their own work, and the ranks of their node read these counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mpiio_ext.bench.extension import SystemCalls
from mpiio_ext.common.results import Row

_DONE = {"write": "written", "read": "read"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The counters of one rank in a phase.

    Attributes
    ----------
    extension : its statistics of the phase by name, None without extension
    system_calls : before and after; None if the system does not say
    delegates : what the delegates of its node counted in the phase, closing included: delegate -> counters by name
    """

    extension: dict[str, Any] | None
    system_calls: tuple[SystemCalls | None, ...]
    delegates: dict[int, dict[str, Any]] = field(default_factory=dict)


def change(now: dict[str, Any] | None, before: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the increase of a process's counters, None without; names and texts have their present values."""
    if now is None or before is None:
        return None
    out: dict[str, Any] = {}
    for name, value in now.items():
        if isinstance(value, (int, float)):
            out[name] = value - before[name]
        elif isinstance(value, tuple):
            out[name] = tuple(a - b for a, b in zip(value, before[name], strict=True))
        else:
            out[name] = value
    return out


def change_of_each(now: dict[int, dict[str, Any]], before: dict[int, dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Return the increase of each delegate's counters; a new delegate began at 0."""
    moved = {index: change(item, before[index]) if index in before else item for index, item in now.items()}
    return {index: item for index, item in moved.items() if item is not None}


def _kinds(row: Row) -> tuple[str, ...]:
    return ("write", "read") if row.operation == "both" else (row.operation,)


def _all_delegates(counted: Sequence[Counted]) -> list[dict[str, Any]]:
    """Return the counters of each delegate once, the newest that any rank has seen."""
    newest: dict[int, dict[str, Any]] = {}
    for item in counted:
        for index, counters in item.delegates.items():
            known = newest.setdefault(index, counters)
            newest[index] = {
                name: max(known[name], value)
                if isinstance(value, int)
                else tuple(max(pair) for pair in zip(known[name], value, strict=True))
                for name, value in counters.items()
            }
    return list(newest.values())


def with_delegates(row: Row, counted: Sequence[Counted]) -> Row:
    """Return a row of a method with delegates with their bytes, and with their requests among the others."""
    statistics = [item.extension for item in counted if item.extension is not None]
    delegates = _all_delegates(counted)
    kinds = _kinds(row)

    def total(name: str) -> int:
        return sum(int(item[name.format(kind, _DONE[kind])]) for item in statistics for kind in kinds)

    def of_delegates(*names: str) -> int:
        return sum(int(item[name]) for item in delegates for name in names)

    row = replace(
        row,
        delegates=len(delegates),
        delegated_accesses=total("delegated_{0}s"),
        delegated_bytes=total("delegated_bytes_{1}"),
        bypass_bytes=total("bypass_bytes_{1}"),
        cache_hits=of_delegates("hits"),
        cache_misses=of_delegates("misses"),
        prefetched_pages=of_delegates("prefetched"),
        prefetch_used_pages=of_delegates("prefetch_used"),
        delegation=str(statistics[0]["delegation"]) if statistics else "",
    )
    if not row.delegated_accesses or row.requests_source != "extension":
        return row
    writes = "write" in kinds
    names = [*(["flush"] if writes else []), *(["fill"] if "read" in kinds else [])]
    sizes = [row.request_size_log2 or (0,) * 48, *(item["flush_size_log2"] for item in delegates if writes)]
    return replace(
        row,
        requests=(row.requests or 0) + of_delegates(*(f"{name}_requests" for name in names)),
        request_bytes=(row.request_bytes or 0) + of_delegates(*(f"{name}_bytes" for name in names)),
        request_size_log2=tuple(sum(counts) for counts in zip(*sizes, strict=True)),
        reason=row.reason if row.collectives_taken_over else "independent accesses through delegates",
    )


def with_counters(row: Row, counted: Sequence[Counted]) -> Row:
    """Return the row with the counters of all ranks that belong to its operation."""
    kinds = _kinds(row)
    statistics = [item.extension for item in counted if item.extension is not None]

    def total(name: str) -> int:
        return sum(int(item[name.format(kind)]) for item in statistics for kind in kinds)

    def longest(name: str) -> float:
        return max(float(item[name]) for item in statistics)

    if statistics:
        collectives, independents = total("collective_{}s"), total("independent_{}s")
        row = replace(
            row,
            collectives_taken_over=collectives,
            independents_taken_over=independents,
            native_calls=sum(int(item["native_calls"]) for item in statistics),
        )
        if collectives or independents:
            return replace(
                row,
                rounds=max(int(item["rounds"]) for item in statistics),
                requests=total("{}_requests"),
                request_bytes=total("{}_request_bytes"),
                requests_source="extension",
                messages=sum(int(item["messages"]) for item in statistics),
                message_bytes=sum(int(item["message_bytes"]) for item in statistics),
                plan_s=longest("plan_s"),
                exchange_s=longest("exchange_s"),
                io_s=longest("io_s"),
                wait_s=longest("wait_s"),
                independent_s=longest("independent_s"),
                request_size_log2=tuple(
                    sum(counts) for counts in zip(*(item["request_size_log2"] for item in statistics), strict=True)
                ),
                partition=str(statistics[0]["partition"]) if collectives else "",
                reason=str(statistics[0]["reason"]) if collectives else "independent accesses only",
            )
    calls = [(before, after) for before, after in (item.system_calls for item in counted) if before and after]
    if len(calls) == len(counted):

        def moved(name: str) -> int:
            return sum(
                int(getattr(after, name.format(kind)) - getattr(before, name.format(kind)))
                for before, after in calls
                for kind in kinds
            )

        row = replace(row, requests=moved("{}_requests"), request_bytes=moved("{}_bytes"), requests_source="kernel")
    return row
