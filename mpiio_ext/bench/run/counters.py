"""From what each rank counted to the columns of a row.

The extension's own counters where it did the work, the operating system's where the MPI library did: see
`mpiio_ext.bench.extension`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from mpiio_ext.bench.extension import SystemCalls
from mpiio_ext.bench.results.rows import Row

__all__ = ["Counted", "change", "with_counters"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What one rank counted in a phase.

    Attributes
    ----------
    extension : its statistics of the phase by name, None without extension
    system_calls : before and after; None where the system does not say
    """

    extension: dict[str, Any] | None
    system_calls: tuple[SystemCalls | None, ...]


def change(now: dict[str, Any] | None, before: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return how far the counters of a process have moved on, None without; names and texts as they are now."""
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


def with_counters(row: Row, counted: Sequence[Counted]) -> Row:
    """Return the row with the counters of all ranks; the operation of the row, without them, says which are meant."""
    kinds = ("write", "read") if row.operation == "both" else (row.operation,)
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
                for before, after in calls for kind in kinds
            )

        row = replace(
            row, requests=moved("{}_requests"), request_bytes=moved("{}_bytes"), requests_source="kernel"
        )
    return row
