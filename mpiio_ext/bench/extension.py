"""Counters of the extension and the operating system: the bench's one place that reads `mpiio_ext.stats`.

The MPI library's own path has no statistics. So its file-system requests come from the counters that the system has for
the process (/proc/self/io): system calls that read or write, including those on sockets and pipes. Both sources are
named in the results.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
from pathlib import Path
from typing import Any


def absent_reason() -> str | None:
    """Return why the extension's methods cannot run in this process, or None when they can."""
    import mpiio_ext

    interposed = getattr(mpiio_ext, "interposed", None)
    if interposed is None or not interposed():
        return "MPI_File_* of this process does not go through libmpiio_ext.so"
    if importlib.util.find_spec("mpiio_ext.stats") is None:
        return "this build of the extension has no statistics (mpiio_ext.stats)"
    return None


def _as_dict(statistics: Any) -> dict[str, Any]:
    return {field.name: getattr(statistics, field.name) for field in dataclasses.fields(statistics)}


def file_statistics(file: Any) -> dict[str, Any] | None:
    """Return this rank's counters of an open mpi4py file by name, or None when the extension is not there."""
    if absent_reason() is not None:
        return None
    return _as_dict(importlib.import_module("mpiio_ext.stats").of(file))


def process_statistics() -> dict[str, Any] | None:
    """Return the counters of this process, all files together, or None when the extension is not there."""
    if absent_reason() is not None:
        return None
    return _as_dict(importlib.import_module("mpiio_ext.stats").total())


def delegate_statistics() -> dict[int, dict[str, Any]]:
    """Return the counters of the job's delegates on this node, delegate -> counters by name; empty without any."""
    if absent_reason() is not None:
        return {}
    own = importlib.import_module("mpiio_ext.delegates").own()
    return {item.delegate: {**item.counters, "flush_size_log2": item.flush_size_log2} for item in own}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SystemCalls:
    """System calls of this process that read or write, and their bytes."""

    read_requests: int
    write_requests: int
    read_bytes: int
    write_bytes: int


def system_calls() -> SystemCalls | None:
    """Return the counts of this process so far, or None if the system does not give them."""
    try:
        text = Path("/proc/self/io").read_text()
    except OSError:
        return None
    values = {name: int(value) for name, _, value in (line.partition(":") for line in text.splitlines())}
    return SystemCalls(
        read_requests=values["syscr"],
        write_requests=values["syscw"],
        read_bytes=values["rchar"],
        write_bytes=values["wchar"],
    )
