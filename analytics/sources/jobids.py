"""Shared parts of the connectors of our own runs: IDs, histograms, sums of values that may be absent."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from mpiio_ext.analytics.tables.schema import SIZE_BINS


def job_id_of(*words: str) -> int:
    """Return a job ID far above any scheduler's, always the same for the same words."""
    digest = hashlib.blake2b("\0".join(words).encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 3) | 1 << 61


def identity(job: int, log: str, source_log: int, run: str = "") -> dict[str, int]:
    """Return the IDs of a job: the same job in two logs is two runs, and a job of the scheduler has several runs."""
    return {"job_id": job, "log_id": job_id_of(log, run or str(job)), "source_log": source_log}


def bins(direction: str, powers: Sequence[int] | None) -> dict[str, int]:
    """Return the columns of Darshan's histogram for a histogram of powers of two."""
    if powers is None:
        return {}
    out = dict.fromkeys((f"{direction}_size_{name}" for name in SIZE_BINS), 0)
    for power, count in enumerate(powers):
        name = next(name for name, bound in SIZE_BINS.items() if bound is None or 2**power < bound)
        out[f"{direction}_size_{name}"] += int(count)
    return out


def sum_of(values: Sequence[int | None]) -> int | None:
    """Return the sum of the values that are known; None without any."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
