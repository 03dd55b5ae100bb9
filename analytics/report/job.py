"""What is known of one job: its rows of every table, its factors, its diagnosis, and the page about them.

Problem. Why was this job slow? The answer needs its files, the time they took, and what the servers did meanwhile.

Algorithm. First the job's rows are selected from the store (of LMT: the steps of its time, and the OSTs of its files).
Everything else works on these few rows. So the code treats a job of a store and a single log alike, and can remove
names before it makes anything of the rows.

The time line shows each file from its first to its last access, for reads and for writes, and on top the part in which
it is on the critical path (Section II-D). Files beyond the most important ones are not drawn, and the caption says how
many.

Source: IOMiner, Sections II-D and III-F; the load of the servers beside it as in UMAMI.
"""

from __future__ import annotations

import datetime
import functools
import math
import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext.analytics.analyses.counting import count_words, share, share_words
from mpiio_ext.analytics.analyses.result import Chart
from mpiio_ext.analytics.analyses.source import Source, Tables, expression, fetch, has
from mpiio_ext.analytics.diagnosis.activity import Activity
from mpiio_ext.analytics.diagnosis.diagnose import uncounted
from mpiio_ext.analytics.diagnosis.ranks import processes, run_time
from mpiio_ext.analytics.diagnosis.words import short_name
from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.factors import extract
from mpiio_ext.analytics.factors.files import Files
from mpiio_ext.analytics.factors.storage import count_of_osts
from mpiio_ext.analytics.report.accesses import common_sizes, place_chart, size_chart
from mpiio_ext.analytics.report.findings import Known, diagnoses
from mpiio_ext.analytics.sweep import critical_files
from mpiio_ext.analytics.tables.plain import column_of_array
from mpiio_ext.analytics.tables.requeued import run_at
from mpiio_ext.analytics.tables.schema import OST_WORD_BITS
from mpiio_ext.common.units import amount_text, seconds_text

if TYPE_CHECKING:
    from mpiio_ext.analytics.report.steps import Steps

#: Seconds of LMT shown before and after a job; the step of LMT's rows.
_MARGIN_S, _STEP_S = 60.0, 5.0
#: Applications of a job that are named.
_MOST_APPS = 5
#: Characters of a command line that are shown.
_MOST_COMMAND = 200
#: Logs that are named because they cannot be read.
_MOST_LOGS = 5
#: Files that are drawn.
_MOST_FILES = 16
#: Of these, files that are drawn for comparison where there are more.
_ORDINARY = 4
_DIRECTIONS: tuple[Literal["read", "write"], ...] = ("read", "write")
_BARS = (
    "A blue bar reaches from the first to the last access of a file; an orange bar is the file's part of the critical"
    " path. The critical path is all time with I/O, divided among the fewest files that cover this time. Standard"
    " streams are not drawn."
)


# ---- rows ------------------------------------------------------------------------------------------------------------


def job_tables(source: Source, job_id: int, user: int | None = None) -> dict[str, pa.Table]:
    """Return the rows of a job in every table that the store has.

    Parameters
    ----------
    user : whose job it is: schedulers of several machines give the same IDs.

    Raises
    ------
    AnalyticsError
        The store has no log of this job, or logs of several users.
    """
    found = {}
    for name in ("darshan_job", "darshan_file", "slurm"):
        if name == "slurm" and not has(source, name):
            continue
        rows = expression(source, name)
        found[name] = fetch(rows.filter(rows["job_id"] == job_id))
    logs = found["darshan_job"]
    if user is not None:
        logs = logs.filter(pc.fill_null(pc.equal(logs["uid"], user), False))
        own = pc.is_in(found["darshan_file"]["log_id"], logs["log_id"].combine_chunks())
        found |= {"darshan_job": logs, "darshan_file": found["darshan_file"].filter(own)}
    if not logs.num_rows:
        raise AnalyticsError(f"job {job_id}: the store has no log of it; `mpiio-ext analyze manifest` lists the logs")
    if (count := pc.count_distinct(logs["uid"]).as_py()) > 1:
        raise AnalyticsError(
            f"job {job_id}: the store has logs of {count} users with this ID; --user says whose it is"
            f" (`mpiio-ext analyze query darshan_job --filter 'job_id = {job_id}' --group uid` lists"
            " them)"
        )
    lmt = _lmt_rows(source, found)
    return found | ({"lmt": lmt} if lmt is not None else {})


def _lmt_rows(source: Source, tables: Mapping[str, pa.Table]) -> pa.Table | None:
    """Return the steps of LMT around a job on the OSTs of its files.

    OSTs of several file systems have the same numbers. The set-up maps mount points to file systems (``lmt_mounts``).
    If the set-up does not, LMT must have only one file system, which then counts as the job's.
    """
    osts = _osts(tables["darshan_file"])
    starts = [time for time in tables["darshan_job"]["start_time"].to_pylist() if time is not None]
    ends = [time for time in tables["darshan_job"]["end_time"].to_pylist() if time is not None]
    if not osts or not starts or not ends or not has(source, "lmt"):
        return None
    rows = expression(source, "lmt")
    near = (rows["time"] >= min(starts) - _MARGIN_S) & (rows["time"] <= max(ends) + _MARGIN_S)
    if mounts := getattr(getattr(source, "setup", None), "lmt_mounts", {}):
        own = [
            (rows["file_system"] == name) & rows["ost"].isin(sorted(osts[mount]))
            for name, mount in mounts.items()
            if mount in osts
        ]
        found = fetch(rows.filter(near & functools.reduce(operator.or_, own))) if own else None
    else:
        found = fetch(rows.filter(near & rows["ost"].isin(sorted(set().union(*osts.values())))))
        found = None if len(found["file_system"].unique()) > 1 else found
    return found if found is not None and found.num_rows else None


def _osts(files: pa.Table) -> dict[str, set[int]]:
    """Return the OSTs of files by mount point."""
    found: dict[str, set[int]] = {}
    for mount, osts in zip(files["mount"].to_pylist(), files["osts"].to_pylist(), strict=True):
        if osts:
            found.setdefault(mount or "", set()).update(osts)
    return found


def store_osts(source: Source, tables: Mapping[str, pa.Table]) -> int | None:
    """Return how many OSTs there are where a job's files lie, by the files of the whole store; None where unknown."""
    files = expression(source, "darshan_file")
    words = sorted((name for name in files.columns if name.startswith("ost_word_")), key=lambda name: int(name[9:]))
    mounts = [mount for mount in _osts(tables["darshan_file"]) if mount]
    if not words or not mounts:
        return None
    there = files.filter(files["mount"].isin(mounts))
    masks = fetch(there.aggregate(**{name: there[name].bit_or() for name in words})).to_pylist()[0].values()
    return count_of_osts(
        number * OST_WORD_BITS + bit
        for number, mask in enumerate(masks)
        for bit in range(OST_WORD_BITS)
        if (mask or 0) >> bit & 1
    )


def data_files(tables: Mapping[str, pa.Table]) -> pa.Table:
    """Return the files of a job in order of their jobs, without the standard streams.

    A program has those open from its first to its last line: they would be the critical path of most jobs.
    """
    files = tables["darshan_file"]
    streams = pc.and_kleene(pc.is_valid(files["file"]), pc.starts_with(files["file"], "<STD"))
    return files.filter(pc.invert(streams)).sort_by("job_id")


# ---- facts -----------------------------------------------------------------------------------------------------------


def _together(jobs: pa.Table) -> tuple[float, float]:
    """Return how many processes of a job's logs run at once, and the time in which any runs (s); NaN where unknown."""
    logs = Files(jobs, "read", "job_id")
    return processes(logs), run_time(logs)


def _sum(table: pa.Table, column: str) -> int | float | None:
    known = [value for value in table[column].to_pylist() if value is not None]
    return sum(known) if known else None


def _files_words(every: int, data: int, opened: int | None) -> str:
    """Return the number of files, the same one that every other part of a page counts from, and what is special.

    `opened` is the number in ``darshan_job``: a program may also ask about files that it does not open.
    """
    streams, closed = every - data, 0 if opened is None else every - opened
    parts = [count_words(streams, "standard stream")] if streams else []
    parts += [f"{closed:,} not opened"] if closed > 0 else []
    return f"{every:,}" + (f", including {' and '.join(parts)}" if parts else "")


def _opened(jobs: pa.Table) -> int | None:
    """Return how many files a job has opened; None if a log does not have it."""
    counts = jobs["files"].to_pylist()
    return None if None in counts else sum(counts)


def started(time_s: float | None) -> list[tuple[str, str]]:
    """Return when a run began (s since 1970 UTC), as a fact; none where that is not known."""
    if time_s is None:
        return []
    return [("started", f"{datetime.datetime.fromtimestamp(time_s, datetime.timezone.utc):%Y-%m-%d %H:%M:%S} UTC")]


def _head(jobs: pa.Table, known: Known | None) -> list[tuple[str, str]]:
    """Return when the job began and by which command, both of its first log; empty if names are removed."""
    if known is not None and known.anonymous:
        return []
    first = jobs.sort_by("start_time").to_pylist()[0]
    command = str(first["exe"] or "")
    shown = command if len(command) <= _MOST_COMMAND else f"{command[:_MOST_COMMAND]}…"
    return [*([("command", shown)] if command else []), *started(first["start_time"])]


def facts(tables: Mapping[str, pa.Table], known: Known | None = None) -> list[tuple[str, str]]:
    """Return the facts that the logs contain about a job, in words; and the logs that contain none."""
    jobs, files = tables["darshan_job"], data_files(tables)
    rows = jobs.select(["app", "modules"]).to_pylist()
    apps = list(dict.fromkeys(row["app"] for row in rows if row["app"]))
    modules = dict.fromkeys(name for row in rows for name in row["modules"] or ())
    processes, run_time = _together(jobs)
    ledger = None if known is None or known.activity is None else known.activity.ledger
    if jobs.num_rows == 1 and ledger is not None:
        run_time = max(run_time, ledger.run_s)  # until the end of the last call, as all shares of the run
    moved = [
        amount_text(total) if (total := _sum(jobs, name)) is not None else "not known"
        for name in ("bytes_read", "bytes_written")
    ]
    out = [
        ("application", ", ".join([*apps[:_MOST_APPS], *(["…"] if apps[_MOST_APPS:] else [])]) or "not known"),
        *_head(jobs, known),
        ("processes", f"{processes:,.0f}" if processes > 0 else "not known"),
        ("run time", seconds_text(run_time) if run_time > 0 else "not known"),
        ("read, written at the file system", ", ".join(moved)),
        *common_sizes(None if known is None or known.anonymous else known.activity),
        ("files", _files_words(tables["darshan_file"].num_rows, files.num_rows, _opened(jobs))),
        ("modules", ", ".join(modules) or "not known"),
    ]
    if "slurm" in tables and tables["slurm"].num_rows:
        runs = sorted(tables["slurm"].to_pylist(), key=lambda run: run["start_time"] or math.inf)
        row = run_at(runs, min((time for time in jobs["start_time"].to_pylist() if time is not None), default=None))
        place = [name for name, _ in out].index("run time")
        if row is not None and row["node_count"] is not None:
            out.insert(place, ("nodes", f"{row['node_count']:,}"))
        if row is not None and len(runs) > 1:
            out.insert(place, ("run", f"number {runs.index(row) + 1} of {len(runs)}: the job was requeued"))
    if jobs.num_rows > 1:
        words = (
            "the run time is the time in which any program of the logs runs; processes are the most that run at once"
        )
        out.append(("logs", f"{jobs.num_rows:,}; {words}"))
    out += [("note", text) for text in uncounted(jobs)]
    if any(jobs["partial"].to_pylist()):
        which = "a" if jobs.num_rows > 1 else "this"
        out.append(("note", f"{which} log is incomplete: no number includes the records that the log has lost"))
    if known is not None and known.unread:
        names = ", ".join([*known.unread[:_MOST_LOGS], *(["…"] if known.unread[_MOST_LOGS:] else [])])
        words = f"no number includes {count_words(len(known.unread), 'log')}"
        out.append(("not read", words if known.anonymous else f"{words}: {names}"))
    return out


def document(tables: Mapping[str, pa.Table], known: Known | None = None, steps: Steps | None = None) -> dict[str, Any]:
    """Return the document of a job: facts, diagnoses, factors, critical files; as JSON values.

    Of a job with several logs, `steps` has the diagnoses. Without any diagnosis ``undiagnosed`` says why.

    All these parts use the same files, so that they agree: the files that are not in the background
    (:class:`mpiio_ext.analytics.factors.files.Files`).
    """
    jobs, files = tables["darshan_job"], tables["darshan_file"].sort_by("job_id")
    own = own_shares(tables)
    diagnosed = diagnoses(tables, known, own) if steps is None else [dict(one) for _, one in steps.diagnosed()]
    headline = known.headline if known is not None and steps is None and diagnosed else None
    documents = [one["document"] for one in diagnosed]
    found: dict[str, Any] = {
        "job_id": jobs["job_id"][0].as_py(),
        **({"sentence": headline(tables, known, documents)} if headline is not None and known is not None else {}),
        "facts": dict(facts(tables, known)),
        "diagnosis": diagnosed,
        "directions": {},
    }
    if not diagnosed:
        found["undiagnosed"] = f"Nothing could be diagnosed: {_no_diagnosis(tables)}."
    for direction in _DIRECTIONS:
        factors = extract(files, direction=direction, jobs=jobs, by="job_id").to_pylist()
        if factors:
            found["directions"][direction] = {
                "factors": factors[0],
                "critical_files": _critical(files, direction),
                "own_share": own[direction],
            }
    return found


def own_shares(tables: Mapping[str, pa.Table]) -> dict[str, float | None]:
    """Return the job's share of the bytes that its OSTs moved in its run, by direction; None without data of LMT."""
    return {direction: _own_share(tables, direction) for direction in _DIRECTIONS}


def _no_diagnosis(tables: Mapping[str, pa.Table]) -> str:
    lost = any(tables["darshan_job"]["partial"].to_pylist())
    if not tables["darshan_file"].num_rows:
        return "the log has lost the records of its files" if lost else "the log has no files"
    if lost:
        return "the log has lost the records that have times of reads and writes"
    return (
        "the log has no time of a read or write; Darshan records no accesses to mapped memory, and no accesses by some"
        " layers"
    )


def _own_share(tables: Mapping[str, pa.Table], direction: Literal["read", "write"]) -> float | None:
    """Return the job's share of the bytes that its OSTs moved while its files were in use; None without data of LMT."""
    if "lmt" not in tables or len(_osts(tables["darshan_file"])) > 1:  # OSTs of two mount points have the same numbers
        return None
    from mpiio_ext.analytics.analyses.interference import interference

    source = Tables({"darshan_file": data_files(tables), "lmt": tables["lmt"]})
    try:
        rows = interference(source.load("darshan_file"), source.load("lmt"), direction).rows()
    except AnalyticsError:  # OSTs of several file systems have the same numbers
        return None
    known = [row for row in rows if row["traffic"] is not None and row["own"] is not None]
    traffic = sum(row["traffic"] for row in known)
    return min(1.0, sum(row["own"] for row in known) / traffic) if traffic else None


def _critical(files: pa.Table, direction: Literal["read", "write"]) -> list[dict[str, Any]]:
    swept = files.filter(column_of_array(~Files(files, direction, "job_id").background()))
    rows = critical_files(swept, direction, ("file",)).to_pylist()
    return [
        {name: row[name] for name in ("file", f"{direction}_start", f"{direction}_end", "since", "exclusive", "share")}
        for row in rows
    ]


# ---- figures ---------------------------------------------------------------------------------------------------------


def _with_ordinary(rows: Sequence[dict[str, Any]], direction: str) -> list[dict[str, Any]]:
    """Return the most important files; if they are many, some files with an ordinary time replace the last of them.

    Among files that are all slow, none appears slow. So the drawn ordinary files have the times at the quarters of all
    others.
    """
    if len(rows) <= _MOST_FILES:
        return list(rows)
    kept = _MOST_FILES - _ORDINARY
    others = sorted(rows[kept:], key=lambda row: row[f"{direction}_end"] - row[f"{direction}_start"])
    return [*rows[:kept], *(others[(2 * k + 1) * len(others) // (2 * _ORDINARY)] for k in range(_ORDINARY))]


def _time_line(
    files: pa.Table, direction: Literal["read", "write"], critical: Sequence[Mapping[str, Any]], base: float
) -> Chart | None:
    rows = [
        row
        for row in files.to_pylist()
        if row[f"{direction}_start"] is not None and row[f"{direction}_end"] is not None
    ]
    if not rows:
        return None
    exclusive: dict[str, float] = {}
    for part in critical:
        exclusive[part["file"]] = exclusive.get(part["file"], 0.0) + part["exclusive"]
    rows.sort(key=lambda row: (-exclusive.get(row["file"], 0.0), row[f"{direction}_start"] - row[f"{direction}_end"]))
    shown = sorted(_with_ordinary(rows, direction), key=lambda row: row[f"{direction}_start"])
    place, names = {row["file"]: number for number, row in enumerate(shown)}, {row["file"] or "" for row in rows}
    spans = [(at, row[f"{direction}_start"], row[f"{direction}_end"], False) for at, row in enumerate(shown)]
    spans += [
        (place[part["file"]], part["since"], part["since"] + part["exclusive"], True)
        for part in critical
        if part["file"] in place
    ]
    bars = [{"row": at, "start": start - base, "end": end - base, "critical": own} for at, start, end, own in spans]
    left = len(rows) - len(shown)
    left_out = (
        f" The picture leaves out {count_words(left, 'more file')} with less time on the critical path. {_ORDINARY}"
        " of the drawn files are examples of files with an ordinary time."
    )
    return Chart(
        kind="files",
        name=f"time-line-{direction}",
        title=_finding(direction, exclusive, len(rows)),
        data={
            "bars": bars,
            "labels": [short_name(row["file"] or f"file {row['file_id']}", names) for row in shown],
            "x_label": "time since the start of the job [s]",
            "y_label": "",
            "caption": _BARS + (left_out if left else ""),
        },
    )


def _finding(direction: str, exclusive: Mapping[str, float], files: int) -> str:
    """Return what a time line shows: which file has most of the critical path."""
    every, title = sum(exclusive.values()), f"{direction.capitalize()}s"
    if every <= 0:
        return f"{title} of {count_words(files, 'file')}: no file is on the critical path"
    name = max(exclusive, key=lambda one: exclusive[one])
    part = share_words(share(exclusive[name], every))
    label = short_name(name or "file without a name", [each for each in exclusive if each])
    return f"{title} of {count_words(files, 'file')}: {label} has {part} of the critical path"


def _lmt_chart(lmt: pa.Table, span: tuple[float, float]) -> Chart:
    totals: dict[float, dict[str, float | None]] = {}
    for row in lmt.to_pylist():
        step = totals.setdefault(row["time"], {"bytes_read": None, "bytes_written": None})
        for name in step:
            if row[name] is not None:
                step[name] = (step[name] or 0.0) + row[name]
    first, last = min(totals), max(totals)
    times = [first + _STEP_S * k for k in range(round((last - first) / _STEP_S) + 1)]
    series = []
    for name, label in (("bytes_read", "read from the job's OSTs"), ("bytes_written", "written to the job's OSTs")):
        values = [totals.get(time, {}).get(name) for time in times]
        series.append(
            {"name": f"{label}, by all jobs", "y": [None if value is None else value / _STEP_S for value in values]}
        )
    return Chart(
        kind="steps",
        name="lmt",
        title=_load(series, times, span),
        data={
            "x": [time - span[0] for time in times],
            "step": _STEP_S,
            "series": series,
            "spans": [[0.0, span[1] - span[0]]],
            "quantity": "rate",
            "x_label": "time since the start of the job [s]",
            "y_label": "bytes per second [B/s]",
            "caption": "The shaded time is the run time of the job. The curves include the job's own bytes.",
        },
    )


def _load(series: Sequence[Mapping[str, Any]], times: Sequence[float], span: tuple[float, float]) -> str:
    """Return what the load of the servers shows: the most that they moved while the job ran."""
    most = []
    for one, verb in zip(series, ("read", "written"), strict=True):
        during = [
            value
            for at, value in zip(times, one["y"], strict=True)
            if value is not None and span[0] - _STEP_S < at <= span[1]
        ]
        most += [f"{amount_text(max(during))}/s {verb}"] if during else []
    if not most:
        return "The bytes that the file servers moved during the job are not known"
    return f"The file servers moved at most {' and '.join(most)} during the job"


def charts(tables: Mapping[str, pa.Table], found: Mapping[str, Any], activity: Activity | None = None) -> list[Chart]:
    """Return the figures of a job: time lines of its files, sizes and places of requests, the load of their OSTs.

    `activity`: the DXT of a job with one log.
    """
    jobs, files = tables["darshan_job"], data_files(tables)
    starts = [time for time in jobs["start_time"].to_pylist() if time is not None]
    begins = [time for name in ("read_start", "write_start") for time in files[name].to_pylist() if time is not None]
    base = min(starts or begins or [0.0])
    ends = [time for time in jobs["end_time"].to_pylist() if time is not None]
    out = []
    for direction in _DIRECTIONS:
        critical = found["directions"].get(direction, {}).get("critical_files", ())
        out.append(_time_line(files, direction, critical, base))
    out.append(size_chart(files))
    out.append(place_chart(activity, files))
    if "lmt" in tables:
        out.append(_lmt_chart(tables["lmt"], (base, max(ends or [base]))))
    return [chart for chart in out if chart is not None]
