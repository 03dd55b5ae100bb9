"""Summaries of jobs from their Darshan logs and the sources of a site.

Problem. What a job did, what the servers saw meanwhile, in which state they were, who else ran and where: five kinds of
sources, with other names, clocks and intervals, some of which are missing.

Algorithm. A log says when the job ran and on which file system; this period, and a step behind its end in which servers
still write what they hold, is asked of everything else (:class:`mpiio_ext.analytics.tools.system.System`). States are
those of the last sample before the job began, with its age. Each answer fills its columns; what has no answer stays
NULL and gets a note.

Guarantees. One log, or one source, that cannot be read does not cost another. Nothing is guessed: a job whose file
system is not known gets no values of servers.

Source: TOKIO, Section "Data integration"; pytokio, summarize_job.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mpiio_ext.analytics.connectors.base import Outcome
from mpiio_ext.analytics.summaries import darshan, row
from mpiio_ext.analytics.summaries.model import Slice, Summaries, places_of_logs
from mpiio_ext.analytics.tools.moments import Period
from mpiio_ext.analytics.tools.series import Edges
from mpiio_ext.analytics.tools.system import FileSystem, Note, System
from mpiio_ext.analytics.tools.traffic import LMT_STEP_S

__all__ = ["TAIL_S", "summarize"]

#: Seconds behind the end of a job that belong to its period: servers still write then what they hold.
TAIL_S = LMT_STEP_S
#: Logs that are read by one child process.
_CHUNK = 256


def summarize(
    logs: Sequence[str | Path],
    system: System | None = None,
    *,
    file_system: str | None = None,
    edges: Edges = "begin",
    tail_s: float = TAIL_S,
) -> Summaries:
    """Return a row of scalars, notes, and slices of the servers' series for each log.

    Parameters
    ----------
    logs : sequence of path
        Darshan logs.
    system : System, optional
        The sources; without, only the columns of Darshan are filled.
    file_system : str, optional
        The file system that the jobs used, by its name at the site or in the sources; default: the one with most of
        their bytes.
    edges : {"begin", "touch", "share"}
        What becomes of steps at the edges of a job; see :mod:`mpiio_ext.analytics.tools.series`.
    tail_s : float
        Seconds behind the end of a job that belong to its period.

    Raises
    ------
    AnalyticsError
        The package ``darshan`` is not installed, or the site has no such file system; never for a bad log or source.
    """
    system = system if system is not None else System()
    if file_system is not None:
        system.named(file_system)  # refuses one that the site does not have, before the work
    rows, notes, slices = [], [], {}
    for first in range(0, len(logs), _CHUNK):
        for found in darshan.read(logs[first : first + _CHUNK]):
            if isinstance(found, Outcome):
                notes.append({"source": "darshan", "status": "skipped", "what": f"{found.log}: {found.reason}"})
                continue
            line, wrong, slice_ = _summary(found, system, file_system, edges, tail_s)
            rows.append(line)
            notes += [{"_jobid": line["_jobid"], "_log_id": line["_log_id"], "source": note.source,
                       "status": note.status, "what": note.what} for note in wrong]  # fmt: skip
            if slice_:
                slices[line["_log_id"]] = slice_
    rows = [rows[place] for place in places_of_logs(rows)]
    kept = {each["_log_id"] for each in rows} | {None}
    return Summaries.of(
        rows,
        _once(note for note in notes if note.get("_log_id") in kept),
        {log: found for log, found in slices.items() if log in kept},
    )


def _once(notes: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({tuple(note.items()): note for note in notes}.values())


def _chosen(system: System, log: darshan.Log, name: str | None) -> FileSystem:
    """Return the file system of a job: the one asked for, or that of the mount point with most bytes."""
    if name is not None:
        return system.named(name)
    scalars = log.scalars
    ways = sorted(("write", "read"), key=lambda way: -(scalars.get(f"darshan_biggest_{way}_fs_bytes") or 0))
    biggest = [scalars.get(f"darshan_biggest_{way}_fs") for way in ways]
    return system.file_system([mount for mount in (*biggest, *log.mounts) if mount and mount != "_unknown"])


def _summary(
    log: darshan.Log, system: System, name: str | None, edges: Edges, tail_s: float
) -> tuple[dict[str, Any], list[Note], Slice]:
    scalars = dict(log.scalars)
    notes: list[Note] = []
    if log.outcome.status == "partial":
        notes.append(Note("darshan", "partial", f"{log.outcome.log}: {log.outcome.reason}"))
    chosen = _chosen(system, log, name)
    scalars |= {"_file_system": chosen.name, "_edges": edges, "_sources": "darshan"}
    start, end = scalars["darshan_start_time"], scalars["darshan_end_time"]
    if start is None or end is None or end < start:
        notes.append(Note("darshan", "partial", f"{log.outcome.log}: the log does not say when the job ended"))
        return _noted(scalars, notes), notes, {}
    period = Period(float(start), float(end) + tail_s)
    scalars |= {"_datetime_start": period.start, "_datetime_end": period.end}
    slice_ = _ask(system, chosen, period, edges, scalars, notes)
    scalars |= row.coverage(scalars)
    return _noted(scalars, notes), notes, slice_


def _ask(
    system: System, chosen: FileSystem, period: Period, edges: Edges, scalars: dict[str, Any], notes: list[Note]
) -> Slice:
    """Fill the columns of all sources but Darshan; return the series of the servers."""
    moved, wrong = system.traffic(chosen, period, edges)
    notes += wrong
    full, wrong = system.fullness(chosen, period.start)
    notes += wrong
    failed, wrong = system.failovers(chosen, period.start)
    notes += wrong
    others, wrong = system.jobs(period)
    notes += wrong
    job, wrong = system.job(scalars["_jobid"], period)
    notes += wrong
    place, wrong = system.placement(scalars["_jobid"], period)
    notes += wrong
    scalars |= (
        row.servers(moved) | row.health(period.start, full, failed) | row.others(others, job) | row.topology(place)
    )
    told = [*moved.sources, *(each.source for each in (full, failed) if each is not None)]
    told += (["jobs"] if others is not None or job else []) + (["topology"] if place is not None else [])
    scalars["_sources"] = ",".join(dict.fromkeys(["darshan", *told]))
    series = moved.series()
    notes[:] = list(dict.fromkeys(notes))
    return series


def _noted(scalars: dict[str, Any], notes: Sequence[Note]) -> dict[str, Any]:
    return {**scalars, "_notes": "\n".join(str(note) for note in dict.fromkeys(notes)) or None}
