"""Results of the bench as a table of summaries: what the nightly suite gives to the regression watch.

Problem. A run of the bench has many measurements: each kernel or pattern through each interface under each method, in
each phase and direction. Only the same one can be compared from night to night; and a suite that is run with other
ranks or volumes is another measurement.

Algorithm. A measurement is a row. Its motif is all of its names, the ranks, and the bytes of a rank; its file system
that of the bench's folder; its job the time at which the bench was started. Performance is the median over the
repetitions, in the unit of the published column. What the extension says of its own phases stands in columns
``bench_*``, so that a change can be explained by them; the bench has no Darshan counters and makes none up.

Guarantees. A file that is no results of the bench, or is cut off, is named, and the others are read.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mpiio_ext.analytics.histories.errors import HistoryError
from mpiio_ext.analytics.histories.table import ID, MOTIF, PERFORMANCE, START, SYSTEM, Jobs
from mpiio_ext.analytics.units import size_words
from mpiio_ext.report.errors import ReportError
from mpiio_ext.report.load import ResultSet, load
from mpiio_ext.report.rows import Measured

__all__ = ["bench_table", "result_files"]

_MIB, _GIB = float(1 << 20), float(1 << 30)
_PHASES = ("open", "close", "plan", "exchange", "io", "wait", "independent")
_COUNTS = ("rounds", "requests", "request_bytes", "messages", "message_bytes", "cache_hits", "cache_misses")


def result_files(path: Path) -> list[Path]:
    """Return the files of results below a folder, by name; the path itself where it is a file."""
    return sorted(path.rglob("results.json")) if path.is_dir() else [path]


def _started(results: ResultSet) -> float | None:
    try:
        return datetime.datetime.fromisoformat(str(results.environment["started"])).timestamp()
    except (KeyError, ValueError, OverflowError):
        return None


def _motif(row: Measured) -> str:
    key, last = row.key, row.last
    each = size_words(last.data_bytes / max(1, last.ranks)).replace(" ", "")
    names = (key.variant, key.phase, key.interface, key.strategy, key.operation)
    return "_".join([*filter(None, names), f"{last.ranks}x{each}"])


def _row(results: ResultSet, row: Measured, start: float | None) -> dict[str, Any]:
    last, environment = row.last, results.environment
    seconds = {f"bench_{name}_s": row.seconds.get(name) for name in _PHASES}
    spread = (row.bandwidth.high - row.bandwidth.low) / row.bandwidth.median if row.bandwidth.median > 0 else None
    return {
        ID: str(environment.get("started") or results.name), START: start, MOTIF: _motif(row),
        SYSTEM: str(environment.get("file_system_mount") or environment.get("path") or ""),
        "darshan_app": row.key.variant, "darshan_nprocs": last.ranks,
        "darshan_total_gibs_posix": last.data_bytes / _GIB, PERFORMANCE: row.bandwidth.median * 1e6 / _MIB,
        "bench_method": row.key.strategy, "bench_interface": row.key.interface, "bench_operation": row.key.operation,
        "bench_mpi_library": environment.get("mpi_library"), "bench_revision": environment.get("git_revision"),
        "bench_repetitions": row.bandwidth.count, "bench_spread": spread,
        "bench_ratio_to_native": None if row.ratio is None else row.ratio.median,
        **seconds, **{f"bench_{name}": getattr(row, name) for name in _COUNTS},
    }  # fmt: skip


def bench_table(paths: Sequence[Path]) -> tuple[Jobs, list[str]]:
    """Return the table of results of the bench, by start, and a line for each file that was left out.

    Parameters
    ----------
    paths : sequence of Path
        Files of results, or folders such as the archive of a suite.

    Raises
    ------
    HistoryError
        There are no results that can be read.
    """
    rows, left_out = [], []
    files = [file for path in paths for file in result_files(path)]
    for file in files:
        try:
            results = load(file)
        except ReportError as error:
            left_out.append(str(error))
            continue
        start = _started(results) if isinstance(results, ResultSet) else None
        if not isinstance(results, ResultSet):
            left_out.append(f"{file}: a comparison of peers, which is no run of the bench")
        elif start is None:
            left_out.append(f"{file}: does not say when it was started")
        else:
            rows += [_row(results, row, start) for row in results.rows]
    if not rows:
        reason = left_out[0] if left_out else f"{', '.join(map(str, paths))}: there is no results.json"
        raise HistoryError(f"no results of the bench: {reason}")
    rows.sort(key=lambda row: row[START])
    columns = {name: np.array([row[name] for row in rows], dtype=object) for name in rows[0]}
    return Jobs(columns, str(paths[0])), left_out
