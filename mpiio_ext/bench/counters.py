"""From what each rank counted to the columns of a row.

The extension's own counters where it did the work, the kernel's where the MPI library did: see
`mpiio_ext.bench.extension`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mpiio_ext.bench.results import Row

__all__ = ["change", "with_counters"]


def change(now: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """Return how far the counters of a process have moved on; names and texts as they are now."""
    out: dict[str, Any] = {}
    for name, value in now.items():
        if isinstance(value, (int, float)):
            out[name] = value - before[name]
        elif isinstance(value, tuple):
            out[name] = tuple(a - b for a, b in zip(value, before[name], strict=True))
        else:
            out[name] = value
    return out


def with_counters(row: Row, counted: Sequence[dict[str, Any] | None], kernel: Sequence[Sequence[Any]]) -> Row:
    """Return the row with the counters of all ranks.

    Parameters
    ----------
    row : without counters; its operation says which are meant
    counted : per rank, the extension's statistics of the run, None without extension
    kernel : per rank, (before, after) of `extension.kernel_counters`
    """
    kinds = ("write", "read") if row.operation == "both" else (row.operation,)
    statistics = [item for item in counted if item is not None]

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
    if all(before is not None and after is not None for before, after in kernel):
        def moved(name: str) -> int:
            return sum(
                int(getattr(after, name.format(kind)) - getattr(before, name.format(kind)))
                for before, after in kernel for kind in kinds
            )

        row = replace(
            row, requests=moved("{}_requests"), request_bytes=moved("{}_bytes"), requests_source="kernel"
        )
    return row
