"""Summaries of jobs from their Darshan logs, or from results of the bench, and the sources of a site.

Problem. What a job did, what the servers saw meanwhile, in which state they were, which other jobs ran and where: five
kinds of sources, with other names, clocks and intervals, some of which are missing.

Algorithm. A log has the job's time and file system; this period, and a step behind its end in which servers still write
what they hold, is asked of everything else (:class:`mpiio_ext.analytics.tools.system.System`). States are those of the
last sample before the job began, with its age. Each answer fills its columns; what has no answer stays NULL and gets a
note.

A measurement of the bench is a row, too (:mod:`mpiio_ext.analytics.jobs.bench`).

Guarantees. One log, or one source, that cannot be read does not cost another. Nothing is guessed: a job whose file
system is not known gets no values of servers.

Source: TOKIO, Section "Data integration"; pytokio, summarize_job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.jobs import bench, darshan, row
from mpiio_ext.analytics.jobs.asked import TAIL_S, ask
from mpiio_ext.analytics.jobs.merging import places_of_logs
from mpiio_ext.analytics.jobs.table import Jobs, Slice
from mpiio_ext.analytics.sources.base import Outcome
from mpiio_ext.analytics.tools.moments import Period
from mpiio_ext.analytics.tools.series import Edges
from mpiio_ext.analytics.tools.system import FileSystem, Note, System

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
        for found in darshan.read(logs[first : first + _CHUNK]):
            if isinstance(found, Outcome):
                yield None, [Note("darshan", "skipped", f"{found.log}: {found.reason}")], {}
            else:
                yield _summary(found, system, file_system, edges, tail_s)


def _of_bench(
    paths: Sequence[str | Path], system: System, file_system: str | None, edges: Edges, tail_s: float
) -> Iterator[_Found]:
    for path in paths:
        files = bench.result_files(Path(path))
        if not files:
            yield None, [Note("results", "skipped", f"{path}: there is no results.json")], {}
        for file in files:
            try:
                found = bench.read(file)
            except AnalyticsError as error:
                yield None, [Note("results", "skipped", str(error))], {}
                continue
            for each in found:
                line, notes = bench.joined(each, system, file_system, edges, tail_s)
                slice_ = bench.slices(each, system, file_system, edges, tail_s)
                yield _noted(line, notes), notes, slice_


def _once(notes: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({tuple(note.items()): note for note in notes}.values())


def _chosen(system: System, log: darshan.Log, name: str | None) -> FileSystem:
    """Return the file system of a job: the requested one, or that of the mount point with most bytes."""
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
        notes.append(Note("darshan", "partial", f"{log.outcome.log}: the log has no end time of the job"))
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
