"""Cobalt's jobs: the published tables of ALCF, accounting records, and ``qstat``, to ``slurm`` and ``cobalt``.

Problem. The scheduler of Mira, Theta and Cooley describes a job in forms of its own, but queries about other jobs use
the columns of Slurm's jobs.

Forms
-----
- CSV of ALCF's public data, ``ANL-ALCF-DJC-MIRA_20170101_20171231.csv``: a row a job, of 30 to 66 columns by their
  names (``COBALT_JOBID``, ``START_TIMESTAMP``, ``NODES_USED`` …); times have no zone;
- accounting records as PBS writes them: ``11/07/2014 23:02:10;E;359758;queue=default start=1415422720.9 …``; those of
  a job are put together, those of reservations and tasks are left out;
- ``qstat``, ``qstat -f`` (a table whose heading says where its columns begin) and ``qstat -l`` (a line a value).

Guarantees. One row a job, the last record of a job counts. Missing facts are NULL. A line that cannot be parsed is left
out and named. A state is ``COMPLETED`` if the exit status is 0, else ``FAILED``, in Slurm's words; for ``qstat`` it is
the printed state.

Source: Cobalt, accounting and qstat(1); ALCF public data; TOKIO, Section "Job scheduling".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from mpiio_ext.analytics.sources.base import Converted, File, Head, Outcome, Parsed, Source
from mpiio_ext.analytics.sources.content import csv_values, first_lines, head_of, lines_of
from mpiio_ext.analytics.sources.numbers import Zone, decimal
from mpiio_ext.analytics.sources.records import Problems, Row, SourceError, make_table
from mpiio_ext.analytics.tables.schema import SLURM, Column, Table
from mpiio_ext.common.slurm import SlurmError, expand_nodes

COBALT = Table(
    "cobalt",
    "one row a job: columns of Cobalt that slurm does not have",
    (
        Column("job_id", "int64", "", "ID of the job"),
        Column("machine", "string", "", "mira, theta …; NULL if unknown"),
        Column("location", "string", "", "partition (MIR-08800-3BFF1-3-4096) or nodes (3-6,10), as printed"),
        Column("mode", "string", "", "script, c16 …"),
        Column("nodes_requested", "int64", "count", ""),
        Column("time_requested", "float64", "s", "wall time asked for"),
        Column("queued_wait", "float64", "s", "from submission to start"),
        Column("used_core_hours", "float64", "h", "cores by hours"),
        Column("program_runs", "int64", "count", "programs that the job's script started"),
    ),
)

_FORMS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f", "%a %b %d %H:%M:%S %Y", "%a %b %d %H:%M:%S %Y %z")
_NOTHING = frozenset({"", "n/a", "na", "nan", "null", "none", "unknown"})
#: Counts and times that are not known; an exit status may be it.
_NEGATIVE = frozenset({"-1", "-1.0"})
_RECORD = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;([A-Za-z]{1,2});([^;]+);(.*)")
_PAIR = re.compile(r'([A-Za-z_][\w.]*)=("(?:[^"\\]|\\.)*"|\S*)(?:\s+|$)')
_SPAN = re.compile(r"(?:(\d{1,6}):)?(\d{1,4}):(\d\d)(?:\.\d+)?")
_NUMBERED = re.compile(r"(\d{1,18})(?:\.\D.*)?")
_LOCATION = re.compile(r"\d{1,6}(?:-\d{1,6})?(?:,\d{1,6}(?:-\d{1,6})?)*")
_LONG = re.compile(r"\s*([A-Za-z_]\w*)\s*: ?(.*)")
_LATEST = 2**33
#: Records of a job that end it, start it, or are about it before; others are of reservations, tasks and holds.
_OF_JOBS = {"E": "", "S": "RUNNING", "Q": "QUEUED", "A": "ABORTED", "D": "DELETED"}

#: Column of the store, or of `COBALT`, -> names that it has in the forms, in lower case; the first that says something
#: counts.
_NAMES: dict[str, tuple[str, ...]] = {
    "job_name": ("job_name", "jobname"),
    "user": ("username_genid", "username", "user"),
    "account": ("project_name_genid", "project_name", "account", "project"),
    "partition": ("queue_name", "queue"),
    "machine": ("machine_name", "resource"),
    "location": ("location", "exec_host"),
    "mode": ("mode",),
    "submit_time": ("queued_timestamp", "ctime", "qtime", "submittime"),
    "start_time": ("start_timestamp", "start", "starttime"),
    "end_time": ("end_timestamp", "end"),
    "run_time": ("runtime_seconds", "resources_used.walltime", "runtime"),
    "time_requested": ("walltime_seconds", "resource_list.walltime", "walltime"),
    "queued_wait": ("queued_wait_seconds",),
    "node_count": ("nodes_used", "resources_used.nodect", "resource_list.nodect", "nodes"),
    "nodes_requested": ("nodes_requested", "resource_list.nodect", "nodes"),
    "cores": ("cores_used", "resources_used.ncpus", "resource_list.ncpus"),
    "used_core_hours": ("used_core_hours",),
    "program_runs": ("cobalt_num_tasks",),
    "exit_code": ("exit_status", "exit_code"),
    "state": ("state",),
}
_TIMES = ("submit_time", "start_time", "end_time")
_SPANS = ("run_time", "time_requested", "queued_wait")
_COUNTS = {"node_count": 2**31, "cores": 2**31, "nodes_requested": 2**62, "program_runs": 2**62}


# ---- values ----------------------------------------------------------------------------------------------------------


def _said(values: Mapping[str, str], column: str) -> str | None:
    """Return the first non-empty value of a column; None if there is none."""
    for name in _NAMES[column]:
        text = values.get(name, "").strip()
        if text and text.lower() not in _NOTHING and (text not in _NEGATIVE or column == "exit_code"):
            return text
    return None


def _time(text: str, zone: Zone) -> float:
    if re.fullmatch(r"\d{1,10}(?:\.\d+)?", text):
        if float(text) >= _LATEST:
            raise ValueError(f"{text[:40]!r} is no time")
        return float(text)
    return zone.seconds(re.sub(r" \([A-Z]+\)$", "", text))


def _span(text: str) -> float:
    """Return the seconds of a number, or of ``[HH:]MM:SS``."""
    if match := _SPAN.fullmatch(text):
        hours, minutes, seconds = (int(part or 0) for part in match.groups())
        return float((hours * 60 + minutes) * 60 + seconds)
    found = decimal(text)
    if found < 0:
        raise ValueError(f"{text[:40]!r} is no duration")
    return found


def _whole(text: str, most: int) -> int:
    """Return a count, which pandas may have made a decimal number of: 512.0."""
    number = decimal(text)
    if not (0 <= number < most and number == int(number)):
        raise ValueError(f"{text[:40]!r} is no count")
    return int(number)


def _exit(text: str) -> int:
    number = decimal(text)
    if abs(number) >= 2**31 or number != int(number):
        raise ValueError(f"{text[:40]!r} is no exit status")
    return int(number)


def _job_id(values: Mapping[str, str]) -> int:
    """Return the ID of a job: its own column, or the number that its name begins with (359758.mira)."""
    for name in ("cobalt_jobid", "jobid", "job_name"):
        text = values.get(name, "").strip().removesuffix(".0")
        match = _NUMBERED.fullmatch(text)
        if match is not None and int(match[1]) > 0:
            return int(match[1])
    raise ValueError("neither COBALT_JOBID, JobID nor JOB_NAME is the ID of a job")


def _nodes(location: str | None) -> list[str] | None:
    """Return the names of nodes, nid00003 of Theta's 3; those of a partition are not in its name."""
    if location is None or not _LOCATION.fullmatch(location):
        return None
    try:
        return [f"nid{int(number):05}" for number in expand_nodes(f"[{location}]")]
    except SlurmError as error:
        raise ValueError(str(error)) from error


def _row(values: Mapping[str, str], zone: Zone) -> Row:
    """Return a row of both tables of a job's values, by their names in lower case.

    Raises
    ------
    ValueError
        A value has not the form of its column.
    """
    row: Row = {"job_id": _job_id(values)}
    zone.restart()
    for column in _NAMES:
        text = _said(values, column)
        if text is None:
            row[column] = None
        elif column in _TIMES:
            row[column] = _time(text, zone)
        elif column in _SPANS:
            row[column] = _span(text)
        elif column in _COUNTS:
            row[column] = _whole(text, _COUNTS[column])
        elif column == "exit_code":
            row[column] = _exit(text)
        else:
            row[column] = decimal(text) if column == "used_core_hours" else text
    row["nodes"] = _nodes(row["location"])
    if row["state"] is not None:
        row["state"] = row["state"].upper()
    elif row["exit_code"] is not None and row["end_time"] is not None:
        row["state"] = "FAILED" if row["exit_code"] else "COMPLETED"
    start, end = row["start_time"], row["end_time"]
    if row["run_time"] is None and start is not None and end is not None and end >= start:
        row["run_time"] = end - start
    return row


# ---- forms -----------------------------------------------------------------------------------------------------------

#: Lines with their numbers; values of a job by name in lower case, with the number of their line.
_Lines = Iterator[tuple[int, str]]
_Found = Iterator[tuple[int, dict[str, str]]]


def _csv(lines: _Lines, problems: Problems) -> _Found:
    names: list[str] = []
    for number, text in lines:
        try:
            values = csv_values(text)
            if not names:
                names = [name.strip().lower() for name in values]
                continue
            if len(values) != len(names):
                raise ValueError(f"{len(values)} values, and the first line names {len(names)}")
        except ValueError as error:
            problems.add(number, str(error))
            continue
        yield number, dict(zip(names, values, strict=True))


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if len(text) > 1 and text[0] == text[-1] == '"' else text


def _accounting(lines: _Lines, problems: Problems) -> _Found:
    jobs: dict[str, dict[str, str]] = {}
    where: dict[str, int] = {}
    for number, text in lines:
        match = _RECORD.fullmatch(text.strip())
        pairs = list(_PAIR.finditer(match[3])) if match else []
        if match is None or sum(len(pair[0]) for pair in pairs) != len(match[3]):
            problems.add(number, f"no accounting record: {text.strip()[:60]!r}")
            continue
        if match[1] not in _OF_JOBS or not _NUMBERED.fullmatch(match[2]):
            continue
        found = {pair[1].lower(): _unquoted(pair[2]) for pair in pairs}
        jobs[match[2]] = jobs.get(match[2], {}) | found | {"jobid": match[2], "state": _OF_JOBS[match[1]]}
        where[match[2]] = number
    for name, values in jobs.items():
        yield where[name], values


def _table(lines: _Lines, problems: Problems) -> _Found:
    """Read the table of qstat: the words of the heading stand where the columns begin."""
    columns: list[tuple[str, int]] = []
    for number, text in lines:
        if not columns:
            columns = [(match[0].lower(), match.start()) for match in re.finditer(r"\S+", text)]
        elif not re.fullmatch(r"[= ]+", text):
            ends = [start for _, start in columns[1:]] + [len(text)]
            if any(text[end - 1 : end].strip() for end in ends[:-1]):
                problems.add(number, f"the columns are not those of the heading: {text.strip()[:60]!r}")
                continue
            yield number, {name: text[start:end].strip() for (name, start), end in zip(columns, ends, strict=True)}


def _long(lines: _Lines, problems: Problems) -> _Found:
    """Read qstat -l: a line a value, a job from each JobID on."""
    found: dict[str, str] = {}
    first = 0
    for number, text in lines:
        match = _LONG.fullmatch(text)
        if match is None:
            problems.add(number, f"no value of a job: {text.strip()[:60]!r}")
        elif match[1] == "JobID":
            if found:
                yield first, found
            found, first = {"jobid": match[2]}, number
        else:
            found[match[1].lower()] = match[2]
    if found:
        yield first, found


def _form(text: str) -> Callable[[_Lines, Problems], _Found] | None:
    """Return the reader of a text that begins so; None if it is not from Cobalt."""
    lines = first_lines(text, 2)
    if not lines:
        return None
    words = lines[0].replace('"', "").upper()
    if "START_TIMESTAMP" in words and ("COBALT_JOBID" in words or "JOB_NAME" in words):
        return _csv
    if _RECORD.match(lines[0]):
        return _accounting
    if re.match(r"JobID\s+.*\bUser\b.*\bState\b", lines[0].strip()):
        return _table
    return _long if re.fullmatch(r"JobID: \d+", lines[0].strip()) else None


def _jobs(path: Path, problems: Problems, time_zone: str) -> list[Row]:
    """Return a row a job, in the order of their last records.

    Raises
    ------
    SourceError
        The file has none of the forms of Cobalt, or cannot be read.
    """
    form = _form(head_of(path).text)
    if form is None:
        raise SourceError(
            problems.file,
            0,
            "no jobs of Cobalt: neither a line that names COBALT_JOBID and "
            "START_TIMESTAMP, an accounting record, nor a heading of qstat",
        )
    zone = Zone(time_zone, _FORMS)
    rows: dict[int, Row] = {}
    lines = ((number, text) for number, text in lines_of(path, problems, ended=form is not _csv) if text.strip())
    for number, values in form(lines, problems):
        try:
            row = _row(values, zone)
        except ValueError as error:
            problems.add(number, str(error))
            continue
        rows.pop(row["job_id"], None)
        rows[row["job_id"]] = row
    return list(rows.values())


def convert(logs: Sequence[str], root: str, time_zone: str = "UTC") -> Converted:
    """Convert Cobalt's jobs to rows of ``slurm``.

    Parameters
    ----------
    logs : relative to `root`.
    time_zone : of times without zone.
    """
    rows: list[Row] = []
    outcomes = []
    for log in logs:
        path = Path(root) / log
        problems = Problems(str(path))
        try:
            found = _jobs(path, problems, time_zone)
        except SourceError as error:
            outcomes.append(Outcome(log, "skipped", error.what))
            continue
        rows += found
        bad = problems.all()
        more = f", and {len(bad) - 1:,} more like it" if len(bad) > 1 else ""
        reason = f"left out: line {bad[0].line}: {bad[0].what}{more}" if bad else ""
        status: Literal["whole", "partial", "skipped"] = "whole"
        if bad:
            status = "partial" if found else "skipped"
        outcomes.append(Outcome(log, status, reason, 0, {"slurm": len(found)}))
    return Converted(tables={"slurm": make_table(SLURM, rows)}, outcomes=outcomes)


class Cobalt(Source):
    """Jobs of Cobalt."""

    NAME = "cobalt"
    MEANING = "jobs: ALCF's Cobalt, published tables (ANL-ALCF-DJC-*.csv), accounting records or qstat"
    ROLE = "jobs"
    PATTERNS = ("ANL-ALCF-DJC-*.csv*", "*cobalt*.log*", "*qstat*.txt*")
    TABLES = (SLURM, COBALT)

    def recognizes(self, head: Head) -> bool:
        return not head.tables and not head.members and _form(head.text) is not None

    def local_times(self, head: Head) -> bool:
        form = _form(head.text)
        return form is _csv or (form in (_table, _long) and "StartTime" in head.text)

    def parse(self, file: File) -> Parsed:
        rows: list[Any] = _jobs(file.path, file.problems, file.time_zone)
        if not rows:
            raise SourceError(str(file.path), 0, f"no job: {file.problems.first or 'there is only a heading'}")
        return {"slurm": rows, "cobalt": rows}, {}


SOURCE = Cobalt()
