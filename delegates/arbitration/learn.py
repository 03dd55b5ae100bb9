"""Access patterns learnt from logs: rows of the analytics' tables.

Problem.    The first run of an application is unknown, later ones need not be: Darshan's counters say how it accessed
            its files.
Algorithm.  For each file and direction: shared where more than one rank opened it, else one of a family of files per
            process. It is contiguous where at least half of the requests were consecutive (Darshan's CONSEC), strided
            otherwise. The request size is the mean. Patterns that are the same are added up; each is estimated from
            base patterns, and joined by its volume (mpiio_ext.delegates.arbitration.estimate).
Guarantees. A counter that is absent (None) is never taken for 0: a direction whose bytes or requests are absent gives
            no pattern; without CONSEC the layout decides (a file of its own is taken for contiguous).
Source.     Section 3.1 of the arbitration paper; the columns are those of darshan_job and darshan_file
            (analytics/tables/schema.py), given as plain mappings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mpiio_ext.delegates.arbitration.curves import Curve
from mpiio_ext.delegates.arbitration.errors import CurveError
from mpiio_ext.delegates.arbitration.estimate import estimate, joined
from mpiio_ext.delegates.arbitration.pattern import Layout, Pattern, Spatiality

Row = Mapping[str, Any]

#: Share of consecutive requests from which on a file is contiguous.
_CONSECUTIVE = 0.5


def _spatiality(consecutive: Any, requests: int, layout: Layout) -> Spatiality:
    if consecutive is None:
        return "contiguous" if layout == "file-per-process" else "strided"
    # The first request of a rank has no request before it, so that a single request shows no pattern.
    return "contiguous" if requests <= 1 or consecutive >= _CONSECUTIVE * (requests - 1) else "strided"


def patterns_of_log(job: Row, files: Iterable[Row], *, compute_nodes: int | None = None) -> dict[Pattern, int]:
    """Return the access patterns of a log with their volumes in bytes.

    Parameters
    ----------
    job : row of darshan_job: `processes` is needed
    files : rows of darshan_file of that log
    compute_nodes : of the job, from the scheduler; None = one for every 48 processes, as on the paper's machine

    Raises
    ------
    CurveError
        The row of the job has no number of processes.
    """
    processes = job.get("processes")
    if processes is None or processes < 1:
        raise CurveError(f"log {job.get('log_file', job.get('log_id', '?'))}: the number of processes is not known")
    nodes = compute_nodes if compute_nodes is not None else max(1, -(-int(processes) // 48))
    found: dict[Pattern, int] = {}
    for file in files:
        layout: Layout = "shared" if (file.get("ranks") or 1) > 1 else "file-per-process"
        for operation, size, count, consec in (
            ("write", "bytes_written", "writes", "consec_writes"),
            ("read", "bytes_read", "reads", "consec_reads"),
        ):
            volume, requests = file.get(size), file.get(count)
            if not volume or not requests:
                continue
            pattern = Pattern(
                layout=layout,
                spatiality=_spatiality(file.get(consec), int(requests), layout),
                request_bytes=_power_of_two(volume / requests),
                compute_nodes=nodes,
                processes=int(processes),
                operation=operation,
            )
            found[pattern] = found.get(pattern, 0) + int(volume)
    return found


def _power_of_two(size: float) -> int:
    """Return the power of two at or below: patterns that differ by a few bytes are one."""
    return 1 << (max(int(size), 1).bit_length() - 1)


def learn(patterns: Mapping[Pattern, int], base: Mapping[Pattern, Curve]) -> Curve:
    """Return the curve of a job from its patterns, with volumes in bytes, and measured base patterns.

    Raises
    ------
    CurveError
        No pattern with a volume, or base patterns without a number of I/O nodes in common.
    """
    return joined([(float(volume), estimate(pattern, base)) for pattern, volume in patterns.items()])
