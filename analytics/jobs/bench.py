"""Measurements of the bench as rows of summaries, joined with the servers' data of the same time.

Problem. A run of the bench has many measurements: each kernel or pattern through each interface under each method, in
each phase and direction, several times. Only the same one can be compared from night to night; and a suite that is run
with other ranks or volumes is another measurement.

Algorithm. A measurement is a row. Its motif is all of its names, the ranks, and the bytes of a rank. performance is the
median over the repetitions, in the unit of the published column; what the extension says of its own phases stands in
columns ``bench_``. The bench goes round over all measurements in each repetition, so that those of one are minutes
apart: the sources are asked for each repetition by itself, and the row has the median of the answers, as of the
bandwidths. Names are those of the last repetition.

Guarantees. The bench has no Darshan counters, and none are made up; coverage factors are of the bytes that the bench
has moved. Results without a time of measurement have no columns of servers, and a note.

Results of the bench as a table of summaries: the nightly suite for the regression watch.

A row is a measurement (:mod:`mpiio_ext.analytics.jobs.bench`); its job is the time at which the bench was started.
With the sources of a site the rows have what the servers did meanwhile, so that a change can be explained by them, too.

Guarantees. A file that is no results of the bench, or is cut off, is named, and the others are read.
"""

from __future__ import annotations

import dataclasses
import datetime
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mpiio_ext.analytics.errors import AnalyticsError, HistoryError
from mpiio_ext.analytics.jobs import row
from mpiio_ext.analytics.jobs.columns import BENCH_COUNTS, BENCH_TIMES
from mpiio_ext.analytics.jobs.row import TAIL_S, ask
from mpiio_ext.analytics.jobs.table import ID, LOG, START, Jobs, Slice
from mpiio_ext.analytics.sources.jobids import job_id_of
from mpiio_ext.analytics.tools.moments import Period
from mpiio_ext.analytics.tools.series import Edges
from mpiio_ext.analytics.tools.system import FileSystem, Note, System
from mpiio_ext.common.results import Measured
from mpiio_ext.common.units import size_text
from mpiio_ext.report.errors import ReportError
from mpiio_ext.report.load import ResultSet, load

_MIB, _GIB = float(1 << 20), float(1 << 30)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measurement:
    """A measurement over its repetitions.

    Attributes
    ----------
    scalars : mapping of str to value
        Columns of the summary that the results know.
    moved : bytes of a repetition by the columns of Darshan that coverage factors are made of; empty if a phase both
        writes and reads.
    started : when the bench was started, as the results say it.
    started_unix_s : the same in seconds since 1970 UTC.
    periods : tuple of (float, float)
        Begin and end of each repetition; empty if the results do not say it.
    places : folder of the files, and mount point.
    job : of the scheduler.
    """

    scalars: Mapping[str, Any]
    moved: Mapping[str, int]
    started: str
    started_unix_s: float
    periods: tuple[tuple[float, float], ...]
    places: tuple[str, ...]
    job: int | None


def is_results(path: Path) -> bool:
    """Return whether a path is for results of the bench, by its name: a folder or a file of JSON."""
    return path.is_dir() or path.suffix.lower() == ".json"


def result_files(path: Path) -> list[Path]:
    """Return the files of results below a folder, by name; the path itself if it is a file."""
    return sorted(path.rglob("results.json")) if path.is_dir() else [path]


def read(path: Path) -> list[Measurement]:
    """Return the measurements of a file of results, in its order.

    Raises
    ------
    AnalyticsError
        The file is no results of the bench, is damaged, or does not have the time at which the bench was started.
    """
    try:
        results = load(path)
    except ReportError as error:
        raise AnalyticsError(str(error)) from error
    if not isinstance(results, ResultSet):
        raise AnalyticsError(f"{path}: a comparison of peers, which is no run of the bench")
    try:
        started = str(results.environment["started"])
        started_unix_s = datetime.datetime.fromisoformat(started).timestamp()
    except (KeyError, ValueError, OverflowError) as error:
        raise AnalyticsError(f"{path}: has no start time") from error
    return [_measurement(results, each, started, started_unix_s) for each in results.rows]


def _motif(measured: Measured) -> str:
    """Return all of a measurement's names but a phase that is called as its direction; numbers are exact and short."""
    key, last = measured.key, measured.last
    variant = re.sub(r"\d{4,}", lambda found: _binary(int(found[0])) or found[0], key.variant)
    names = (variant, key.phase if key.phase != key.operation else "", key.interface, key.strategy, key.operation)
    each = last.data_bytes / max(1, last.ranks)
    return "_".join([*filter(None, names), f"{last.ranks}x{_binary(each) or size_text(each).replace(' ', '')}"])


def _binary(size_bytes: float) -> str | None:
    """Return a size of whole KiB, MiB or GiB, below 1024 of the unit, such as ``4MiB``; None for another size."""
    text = size_text(size_bytes, exact=True).replace(" ", "")
    return text if size_bytes == int(size_bytes) and text.endswith("iB") and "," not in text else None


def _measurement(results: ResultSet, measured: Measured, started: str, started_unix_s: float) -> Measurement:
    environment = results.environment
    key, last, bandwidth = measured.key, measured.last, measured.bandwidth
    names = (key.variant, key.interface, key.strategy)
    whose = (started, str(environment.get("hosts")), results.name)
    run = "/".join([results.name, *filter(None, (*names, key.phase, key.operation))])
    number = re.match(r"\d{1,18}(?!\d)", str(environment.get("job") or ""))
    places = tuple(str(environment[name]) for name in ("path", "file_system_mount") if environment.get(name))
    scalars = {
        "_jobid": job_id_of(*whose, *names),
        "_log_id": job_id_of("bench", *whose, *names, key.phase, key.operation),
        "_log": run,
        "_benchmark_id": _motif(measured),
        "_file_system": places[-1] if places else "",
        "darshan_app": key.variant,
        "darshan_nprocs": last.ranks,
        "darshan_total_gibs_posix": last.data_bytes / _GIB,
        "darshan_agg_perf_by_slowest_posix": bandwidth.median * 1e6 / _MIB,
        "bench_method": key.strategy,
        "bench_interface": key.interface,
        "bench_operation": key.operation,
        "bench_mpi_library": _text(environment.get("mpi_library")),
        "bench_revision": _text(environment.get("git_revision")),
        "bench_repetitions": bandwidth.count,
        "bench_spread": (bandwidth.high - bandwidth.low) / bandwidth.median if bandwidth.median > 0 else None,
        "bench_ratio_to_native": None if measured.ratio is None else measured.ratio.median,
        **{f"bench_{name}_s": measured.seconds.get(name) for name in BENCH_TIMES},
        **{f"bench_{name}": getattr(measured, name) for name in BENCH_COUNTS},
    }
    read_bytes = {"read": last.data_bytes, "write": 0}.get(key.operation)
    moved = (
        {}
        if read_bytes is None
        else {
            "darshan_tot_bytes_read_posix": read_bytes,
            "darshan_tot_bytes_written_posix": last.data_bytes - read_bytes,
        }
    )
    return Measurement(
        scalars=scalars,
        moved=moved,
        started=started,
        started_unix_s=started_unix_s,
        periods=measured.periods,
        places=places,
        job=int(number[0]) if number else None,
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)


# ---- joined with the system ------------------------------------------------------------------------------------------


def _chosen(found: Measurement, system: System, name: str | None) -> FileSystem:
    return system.file_system(found.places) if name is None else system.named(name)


def joined(
    found: Measurement, system: System, file_system: str | None = None, edges: Edges = "begin", tail_s: float = TAIL_S
) -> tuple[dict[str, Any], list[Note]]:
    """Return the row of a measurement, with the sources' data for its repetitions, and notes on missing data.

    Parameters
    ----------
    system : the sources.
    file_system : the file system, by its name at the site or in the sources; default: that of the bench's folder.
    edges : {"begin", "touch", "share"}
    tail_s : seconds behind the end of a repetition that belong to it.

    Raises
    ------
    AnalyticsError
        The site has no such file system.
    """
    chosen = _chosen(found, system, file_system)
    scalars = {
        **found.scalars,
        "_file_system": chosen.name or found.scalars["_file_system"],
        "_edges": edges,
        "_datetime_start": found.started_unix_s,
        "_sources": "results",
    }
    if not found.periods:
        why = f"{scalars['_log']}: the results have no time of measurement"
        return scalars, [Note(source="results", status="missing", what=why)]
    answers = [ask(system, chosen, Period(begin, end + tail_s), edges, found.job) for begin, end in found.periods]
    columns = [dict(answer.columns) for answer in answers]
    used = dict.fromkeys(source for answer in answers for source in answer.sources)
    scalars |= {
        "_datetime_start": found.periods[0][0],
        "_datetime_end": found.periods[-1][1] + tail_s,
        "_sources": ",".join(["results", *used]),
        **_medians([each | row.coverage({**each, **found.moved}) for each in columns]),
    }
    return scalars, [*dict.fromkeys(note for answer in answers for note in answer.notes), *row.doubts(scalars)]


def slices(
    found: Measurement, system: System, file_system: str | None = None, edges: Edges = "begin", tail_s: float = TAIL_S
) -> Slice:
    """Return the servers' series from the first repetition to the last one; empty if those times are unknown."""
    if not found.periods:
        return {}
    period = Period(found.periods[0][0], found.periods[-1][1] + tail_s)
    return system.traffic(_chosen(found, system, file_system), period, edges)[0].series()


def _medians(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the medians of the values that are known by column, of counts the lower one; of texts the last."""
    out: dict[str, Any] = {}
    for name in dict.fromkeys(name for each in rows for name in each):
        known = [each[name] for each in rows if each.get(name) is not None]
        if not known:
            out[name] = None
        elif isinstance(known[0], str):
            out[name] = known[-1]
        else:
            of = statistics.median_low if all(isinstance(value, int) for value in known) else statistics.median
            out[name] = of(known)
    return out


#: Columns of a summary that a history of the bench does without: a measurement has no log.
_LEFT_OUT = frozenset((LOG, "_log_id", "_notes", "_sources", "_edges"))


def _row(found: Measurement, system: System | None, notes: list[Note]) -> dict[str, Any]:
    begin = found.periods[0][0] if found.periods else found.started_unix_s
    if system is None:
        line: dict[str, Any] = {**found.scalars, START: begin}
    else:
        line, wrong = joined(found, system)
        notes += wrong
    return {name: value for name, value in line.items() if name not in _LEFT_OUT} | {ID: found.started}


def bench_table(paths: Sequence[Path], system: System | None = None) -> tuple[Jobs, list[str], list[Note]]:
    """Return the table of results of the bench, by start.

    Parameters
    ----------
    paths : files of results, or folders such as the archive of a suite.
    system : sources that are asked what the servers did during each measurement; without, there are no columns of them.

    Returns
    -------
    table : Jobs
    left_out : list of str
        A line for each file that was left out.
    notes : list of Note
        What the sources do not know, of all rows.

    Raises
    ------
    HistoryError
        There are no results that can be read, or they have no possible start.
    """
    rows: list[dict[str, Any]] = []
    left_out: list[str] = []
    notes: list[Note] = []
    every: set[Path] = set()
    for file in (file for path in paths for file in result_files(path)):
        if file.resolve() in every:
            left_out.append(f"{file}: is read already")
            continue
        every.add(file.resolve())
        try:
            rows += [_row(each, system, notes) for each in read(file)]
        except AnalyticsError as error:
            left_out.append(str(error))
    if not rows:
        reason = left_out[0] if left_out else f"{', '.join(map(str, paths))}: there is no results.json"
        raise HistoryError(f"no results of the bench: {reason}")
    rows.sort(key=lambda row: row[START])
    names = dict.fromkeys(name for row in rows for name in row)
    table = Jobs({name: [row.get(name) for row in rows] for name in names}, str(paths[0]))
    table.times()  # refuses clocks that were never set
    return table, left_out, notes
