"""Summaries of jobs from their Darshan logs, or from results of the bench, and the sources of a site.

Problem. A summary needs the job's activity, the servers' counters meanwhile, the servers' state, other jobs, and the
places of nodes: five kinds of sources, with different names, clocks and intervals, some of which are missing.

Algorithm. A log has the job's time and file system; this period, and a step behind its end in which servers still write
what they hold, is asked of everything else (:class:`mpiio_ext.analytics.tools.system.System`). States are those of the
last sample before the job began, with its age. Each answer fills its columns; what has no answer stays NULL and gets a
note.

A measurement of the bench is a row, too (:mod:`mpiio_ext.analytics.jobs.bench`).

Guarantees. One log, or one source, that cannot be read does not cost another. Nothing is guessed: a job whose file
system is unknown gets no values of servers.

Source: TOKIO, Section "Data integration"; pytokio, summarize_job.

The scalars of a Darshan log: job, counters of POSIX, the slowest rank, the busiest interface and mount point.

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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.jobs import bench, row
from mpiio_ext.analytics.jobs.columns import COUNTERS
from mpiio_ext.analytics.jobs.merging import places_of_logs
from mpiio_ext.analytics.jobs.row import TAIL_S, ask
from mpiio_ext.analytics.jobs.table import Jobs, Slice
from mpiio_ext.analytics.sources.base import Outcome
from mpiio_ext.analytics.sources.darshan import read_logs
from mpiio_ext.analytics.tools.moments import Period
from mpiio_ext.analytics.tools.series import Edges
from mpiio_ext.analytics.tools.system import FileSystem, Note, System

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
    table = files.select(["log_id", "bytes_read", "bytes_written"])
    table = table.append_column("mount", pc.fill_null(files["mount"], ""))
    sums = table.group_by(["log_id", "mount"]).aggregate([("bytes_read", "sum"), ("bytes_written", "sum")])
    found: dict[int, dict[str, tuple[int, int]]] = {}
    for each in sums.to_pylist():
        both = (each["bytes_read_sum"] or 0, each["bytes_written_sum"] or 0)
        found.setdefault(each["log_id"], {})[each["mount"]] = both
    return found


def _places(mounts: Mapping[str, tuple[int, int]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, way in enumerate(("read", "write")):
        if mounts:
            best = max(sorted(mounts), key=lambda name: mounts[name][number])
            found[f"darshan_biggest_{way}_fs"] = best or "_unknown"
            found[f"darshan_biggest_{way}_fs_bytes"] = mounts[best][number]
    return found


#: Logs that are read in one go.
_CHUNK = 256


def summarize(
    logs: Sequence[str | Path],
    system: System | None = None,
    *,
    file_system: str | None = None,
    edges: Edges = "begin",
    tail_s: float = TAIL_S,
) -> Jobs:
    """Return a row of scalars, notes, and slices of the servers' series for each log.

    Parameters
    ----------
    logs : Darshan logs; results of the bench (JSON), or folders of such.
    system : the sources; without, only the columns of Darshan are filled.
    file_system : the file system that the jobs used, by its name at the site or in the sources; default: the one with
        most of their bytes.
    edges : {"begin", "touch", "share"}
        What becomes of steps at the edges of a job; see :mod:`mpiio_ext.analytics.tools.series`.
    tail_s : seconds behind the end of a job that belong to its period.

    Raises
    ------
    AnalyticsError
        The package ``darshan`` is not installed, or the site has no such file system; never for a bad log or source.
    """
    system = system if system is not None else System()
    if file_system is not None:
        system.named(file_system)  # refuses one that the site does not have, before the work
    rows: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    slices: dict[int, Slice] = {}
    own = [log for log in logs if bench.is_results(Path(log))]
    others = [log for log in logs if not bench.is_results(Path(log))]
    for line, wrong, slice_ in (
        *_of_darshan(others, system, file_system, edges, tail_s),
        *_of_bench(own, system, file_system, edges, tail_s),
    ):
        if line is not None:
            rows.append(line)
        ids = {name: line[name] for name in ("_jobid", "_log_id")} if line is not None else {}
        notes += [ids | {"source": note.source, "status": note.status, "what": note.what} for note in wrong]
        if line is not None and slice_:
            slices[line["_log_id"]] = slice_
    rows = [rows[place] for place in places_of_logs(rows)]
    kept = {each["_log_id"] for each in rows} | {None}
    return Jobs.of_rows(
        rows,
        _once(note for note in notes if note.get("_log_id") in kept),
        {log: found for log, found in slices.items() if log in kept},
    )


#: A row, or None if a log cannot be read; its notes; its slices.
_Found = tuple[dict[str, Any] | None, list[Note], Slice]


def _of_darshan(
    logs: Sequence[str | Path], system: System, file_system: str | None, edges: Edges, tail_s: float
) -> Iterator[_Found]:
    for first in range(0, len(logs), _CHUNK):
        for found in read(logs[first : first + _CHUNK]):
            if isinstance(found, Outcome):
                yield None, [Note(source="darshan", status="skipped", what=f"{found.log}: {found.reason}")], {}
            else:
                yield _summary(found, system, file_system, edges, tail_s)


def _of_bench(
    paths: Sequence[str | Path], system: System, file_system: str | None, edges: Edges, tail_s: float
) -> Iterator[_Found]:
    for path in paths:
        files = bench.result_files(Path(path))
        if not files:
            yield None, [Note(source="results", status="skipped", what=f"{path}: there is no results.json")], {}
        for file in files:
            try:
                found = bench.read(file)
            except AnalyticsError as error:
                yield None, [Note(source="results", status="skipped", what=str(error))], {}
                continue
            for each in found:
                line, notes = bench.joined(each, system, file_system, edges, tail_s)
                slice_ = bench.slices(each, system, file_system, edges, tail_s)
                yield _noted(line, notes), notes, slice_


def _once(notes: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({tuple(note.items()): note for note in notes}.values())


def _chosen(system: System, log: Log, name: str | None) -> FileSystem:
    """Return the file system of a job: the requested one, or that of the mount point with most bytes."""
    if name is not None:
        return system.named(name)
    scalars = log.scalars
    ways = sorted(("write", "read"), key=lambda way: -(scalars.get(f"darshan_biggest_{way}_fs_bytes") or 0))
    biggest = [scalars.get(f"darshan_biggest_{way}_fs") for way in ways]
    return system.file_system([mount for mount in (*biggest, *log.mounts) if mount and mount != "_unknown"])


def _summary(
    log: Log, system: System, name: str | None, edges: Edges, tail_s: float
) -> tuple[dict[str, Any], list[Note], Slice]:
    scalars = dict(log.scalars)
    notes: list[Note] = []
    if log.outcome.status == "partial":
        notes.append(Note(source="darshan", status="partial", what=f"{log.outcome.log}: {log.outcome.reason}"))
    chosen = _chosen(system, log, name)
    scalars |= {"_file_system": chosen.name, "_edges": edges, "_sources": "darshan"}
    start, end = scalars["darshan_start_time"], scalars["darshan_end_time"]
    if start is None or end is None or end < start:
        notes.append(
            Note(source="darshan", status="partial", what=f"{log.outcome.log}: the log has no end time of the job")
        )
        return _noted(scalars, notes), notes, {}
    period = Period(float(start), float(end) + tail_s)
    scalars |= {"_datetime_start": period.start, "_datetime_end": period.end}
    answer = ask(system, chosen, period, edges, scalars["_jobid"])
    notes = list(dict.fromkeys([*notes, *answer.notes]))
    scalars |= {**answer.columns, "_sources": ",".join(["darshan", *answer.sources])}
    scalars |= row.coverage(scalars)
    notes += row.doubts(scalars)
    return _noted(scalars, notes), notes, answer.series


def _noted(scalars: dict[str, Any], notes: Sequence[Note]) -> dict[str, Any]:
    return {**scalars, "_notes": "\n".join(str(note) for note in dict.fromkeys(notes)) or None}
