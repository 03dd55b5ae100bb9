"""The scalars of a Darshan log: job, counters of POSIX, the slowest rank, the busiest interface and mount point.

Problem. What pytokio took from the text of darshan-parser, in seconds a log, is wanted in milliseconds, and of damaged
logs as far as they can be read.

Algorithm. The reader (:mod:`mpiio_ext.analytics.sources.darshan`) observes the counters when it joins the records for
the tables of the store. Here the results get names, and quotients are made.

Guarantees. What a log does not have is None. A log that cannot be read gives no row but its reason.

Source: pytokio, summarize_job; darshan-util, darshan-parser (run time, performance by the slowest rank).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpiio_ext.analytics.jobs.columns import COUNTERS
from mpiio_ext.analytics.sources.base import Outcome
from mpiio_ext.analytics.sources.darshan import read_logs

if TYPE_CHECKING:
    import pyarrow as pa

#: Interfaces, in the order in which the first of equal ones counts.
_INTERFACES = ("posix", "mpiio", "stdio")
_MIB, _GIB = 2.0**20, 2.0**30


@dataclasses.dataclass(frozen=True, kw_only=True)
class Log:
    """A log that could be read.

    Attributes
    ----------
    outcome : whether it is whole, and why not.
    scalars : mapping of str to value
        Columns of the summary that begin with ``darshan_``, ``_jobid``, ``_log_id`` and ``_log``.
    mounts : mount points with bytes of the job, the one with most first.
    """

    outcome: Outcome
    scalars: Mapping[str, Any]
    mounts: tuple[str, ...]


def read(paths: Sequence[str | Path]) -> list[Log | Outcome]:
    """Read logs, each by itself.

    Parameters
    ----------
    paths : sequence of path

    Returns
    -------
    list of Log, or Outcome where a log cannot be read
        In the order of `paths`.
    """
    if not paths:
        return []
    found = read_logs([str(Path(path).absolute()).lstrip("/") for path in paths], "/")
    jobs = {row["log_id"]: row for row in found.tables["darshan_job"].to_pylist()}
    sums = {row["log_id"]: row for row in found.tables["summary"].to_pylist()}
    moved = _by_mount(found.tables["darshan_file"])
    out: list[Log | Outcome] = []
    for path, outcome in zip(paths, found.outcomes, strict=True):
        named = dataclasses.replace(outcome, log=str(path))
        if outcome.status == "skipped":
            out.append(named)
            continue
        job, mounts = jobs[outcome.log_id], moved.get(outcome.log_id, {})
        scalars = {
            "_jobid": job["job_id"],
            "_log_id": outcome.log_id,
            "_log": Path(path).name,
            **_job(job),
            **_posix(sums[outcome.log_id]),
            **_interfaces(sums[outcome.log_id]),
            **_places(mounts),
        }
        order = sorted((name for name in mounts if name), key=lambda name: -sum(mounts[name]))
        out.append(Log(outcome=named, scalars=scalars, mounts=tuple(order)))
    return out


def _job(job: Mapping[str, Any]) -> dict[str, Any]:
    start, end = job["start_time"], job["end_time"]
    whole = None if start is None else math.floor(start)
    last = None if end is None else math.floor(end)
    return {
        "darshan_jobid": job["job_id"],
        "darshan_app": (job["exe"] or "").split(None, 1)[0] if (job["exe"] or "").strip() else None,
        "darshan_nprocs": job["processes"],
        "darshan_start_time": whole,
        "darshan_end_time": last,
        "darshan_walltime": None if whole is None or last is None else last - whole + 1,
    }


def _posix(sums: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in COUNTERS:
        total, count = sums[f"tot_{name}"], sums[f"num_{name}"]
        found |= {f"darshan_{how}_{name}_posix": sums[f"{how}_{name}"] for how in ("tot", "num", "min", "max")}
        found[f"darshan_ave_{name}_posix"] = total / count if count else None
    both = [sums[f"tot_bytes_{way}"] for way in ("read", "written")]
    times = [sums[name] for name in ("unique_time", "shared_time") if sums[name] is not None]
    seconds = sum(times) if times else None
    if None not in both:
        moved = both[0] + both[1]
        found["darshan_total_gibs_posix"] = moved / _GIB
        if seconds:
            found["darshan_agg_perf_by_slowest_posix"] = moved / _MIB / seconds if moved else None
    found["darshan_io_time"] = seconds
    return found


def _interfaces(sums: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for way, past in (("read", "read"), ("write", "written")):
        known = {api: sums[f"{api}_bytes_{past}"] for api in _INTERFACES if sums[f"{api}_bytes_{past}"] is not None}
        if not known:
            continue
        best = max(known, key=lambda api: known[api])
        found[f"darshan_biggest_{way}_api"] = best
        found[f"darshan_biggest_{way}_api_bytes"] = known[best]
        found[f"darshan_biggest_{way}_api_files"] = sums[f"{best}_records_{past}"]
    return found


def _by_mount(files: pa.Table) -> dict[int, dict[str, tuple[int, int]]]:
    """Return bytes read and written by mount point ("" if a file has none), of each log."""
    import pyarrow.compute as pc

    table = files.select(["log_id", "bytes_read", "bytes_written"])
    table = table.append_column("mount", pc.fill_null(files["mount"], ""))
    sums = table.group_by(["log_id", "mount"]).aggregate([("bytes_read", "sum"), ("bytes_written", "sum")])
    found: dict[int, dict[str, tuple[int, int]]] = {}
    for row in sums.to_pylist():
        both = (row["bytes_read_sum"] or 0, row["bytes_written_sum"] or 0)
        found.setdefault(row["log_id"], {})[row["mount"]] = both
    return found


def _places(mounts: Mapping[str, tuple[int, int]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, way in enumerate(("read", "write")):
        if mounts:
            best = max(sorted(mounts), key=lambda name: mounts[name][number])
            found[f"darshan_biggest_{way}_fs"] = best or "_unknown"
            found[f"darshan_biggest_{way}_fs_bytes"] = mounts[best][number]
    return found
