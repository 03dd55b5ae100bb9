"""Slurm's accounting: ``sacct`` as text or JSON, and two forms that sites make of it, to rows of ``slurm``.

Problem. Sites dump different columns in any order; jobs have steps, array tasks and heterogeneous parts; times are
local, may be "Unknown" or "None", and node lists are compressed (``nid0[0001-0003,5]``).

Forms
-----
- text of ``sacct --parsable2`` or ``--parsable``: the first line names the columns; ``|`` separates them;
- ``sacct --json`` and ``squeue --json``: one object with ``jobs``. squeue's has the expected start of a job that waits,
  and the expected end of one that runs: both times are left out;
- TOKIO's JSON: ``{"4478544.0": {"jobidraw", "start", "end", "nodelist"}, …}``;
- NERSC's job database: SQLite with the table ``summary`` (stepid, hostname, start, completion, numnodes).

Any of them may be compressed with gzip. One row a run of a job: a job that was requeued has several, with ``sacct -D``
and in JSON. A run's steps only give what its own line lacks (the number of tasks of the largest step, the span of their
times, nodes). ``job_id`` is the raw ID: array tasks have their own; the parts of a heterogeneous job (``100+1``) are
one row of job 100, if the source names the part.

A line that cannot be understood is left out and counted in the outcome's reason; of a compressed text that ends early
or is damaged the lines before that are kept.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import re
import sqlite3
import zoneinfo
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from mpiio_ext.analytics.sources.base import Converted, File, Head, Outcome, Parsed, Source, taken
from mpiio_ext.analytics.sources.content import first_lines, head_of, lines_of, read_only
from mpiio_ext.analytics.sources.content import read_json as read_document
from mpiio_ext.analytics.sources.numbers import has_local_time
from mpiio_ext.analytics.sources.opener import open_log
from mpiio_ext.analytics.sources.records import Problems, SourceError
from mpiio_ext.analytics.tables.schema import SLURM, Column, Table
from mpiio_ext.common.slurm import (
    JobId,
    SlurmError,
    count,
    expand_nodes,
    is_nothing,
    job_id,
    phase,
    plain,
    read_json,
    read_text,
    split_line,
    states,
    tasks,
)

LINES = Table(
    "lines",
    "one row a line of the source; a column for each of its columns, under its name (these, or others)",
    (
        Column("jobidraw", "string", "", "ID of the job or step"),
        Column("start", "string", "", "as printed: local time"),
        Column("end", "string", "", "as printed: local time"),
        Column("nodelist", "list<string>", "", "of TOKIO's JSON; a text of sacct"),
    ),
)

_SPAN = re.compile(r"^(?:(?P<days>\d+)-)?(?:(?P<hours>\d+):)?(?P<minutes>\d+):(?P<seconds>\d+)(?:\.\d+)?$")
#: Column of sacct (lower case) -> column of the table, for those that are taken as they are.
_TEXTS = {"jobname": "job_name", "user": "user", "account": "account", "partition": "partition", "qos": "qos"}


class _Jobs:
    """Gathers lines of jobs and steps to one row a run of a job: one that was requeued has several."""

    def __init__(self) -> None:
        self.runs: dict[tuple[int, int], list[dict[str, Any]]] = {}  # by number and part
        self._steps: list[tuple[tuple[int, int], int, Mapping[str, Any]]] = []
        self.bad: list[str] = []

    def add(self, job_id: int, found: Mapping[str, Any], *, step: bool, part: int = 0) -> None:
        """Add a line: a job's own begins a run, unless that has one; a further one, or a step's, fills its gaps."""
        runs = self.runs.setdefault((job_id, part), [])
        if step or any(_is_same(run, found) for run in runs):
            self._steps.append(((job_id, part), max(len(runs) - 1, 0), found))
        else:
            runs.append({name: value for name, value in found.items() if value is not None})

    @property
    def count(self) -> int:
        """Return the number of rows."""
        return len({(job, number) for (job, _), runs in self.runs.items() for number in range(max(len(runs), 1))})

    def _step(self, seen: dict[str, Any], found: Mapping[str, Any]) -> None:
        for name, best in (("tasks", max), ("start_time", min), ("end_time", max), ("node_count", max), ("cores", max)):
            value = found.get(name)
            if value is not None:
                seen[name] = best(seen[name], value) if name in seen else value
        if len(found.get("nodes") or ()) > len(seen.get("nodes") or ()):
            seen["nodes"] = found["nodes"]
        for name in ("state", "user", "job_name", "account"):
            if found.get(name) is not None:
                seen.setdefault(name, found[name])

    def table(self) -> pa.Table:
        """Return the rows as a table of the schema."""
        seen: dict[tuple[tuple[int, int], int], dict[str, Any]] = {}
        for job, before, found in self._steps:
            self._step(seen.setdefault((job, _run_of(self.runs[job], found, before)), {}), found)
        out: dict[tuple[int, int], dict[str, Any]] = {}
        for job, runs in sorted(self.runs.items(), key=lambda item: item[0][1]):  # the first parts first
            for number, row in enumerate(runs or [{}]):
                step = seen.get((job, number), {})
                whole = {"job_id": job[0], **step, **row}
                if step.get("tasks") is not None:
                    whole["tasks"] = max(step["tasks"], row.get("tasks") or 0)
                start, end = whole.get("start_time"), whole.get("end_time")
                if whole.get("run_time") is None and start is not None and end is not None and end >= start:
                    whole["run_time"] = end - start
                if whole.get("node_count") is None and whole.get("nodes"):
                    whole["node_count"] = len(whole["nodes"])
                _add_part(out.setdefault((job[0], number), {}), whole)
        return pa.Table.from_pylist(list(out.values()), schema=SLURM.schema())


def _add_part(whole: dict[str, Any], part: Mapping[str, Any]) -> None:
    """Add a part of a heterogeneous job to the parts before it, which own the values that do not add up."""
    for name, value in part.items():
        before = whole.get(name)
        if before is None:
            whole[name] = value
        elif value is not None and name in ("node_count", "cores", "tasks", "nodes"):
            whole[name] = before + value


def _is_same(run: Mapping[str, Any], line: Mapping[str, Any]) -> bool:
    """Return whether a job's line is about a run: by its start, of a run that waits by when it was submitted."""
    for name in ("start_time", "submit_time"):
        if run.get(name) is not None and line.get(name) is not None:
            return bool(run[name] == line[name])
    return True


def _run_of(runs: Sequence[Mapping[str, Any]], step: Mapping[str, Any], before: int) -> int:
    """Return the place of the run of a step: the last one that began before it; without times, the one `before` it."""
    start = step.get("start_time")
    begun = [place for place, run in enumerate(runs) if start is not None and run.get("start_time", start + 1) <= start]
    return max(begun, key=lambda place: float(runs[place]["start_time"]), default=before)


# ---- values ----------------------------------------------------------------------------------------------------------


def _time(value: Any, zone: zoneinfo.ZoneInfo) -> float | None:
    """Return seconds since 1970 UTC of ``2017-03-20T01:59:02`` (with or without zone), or of seconds."""
    if is_nothing(value):
        return None
    text = str(value).strip()
    if text.isdigit():
        seconds = int(text)
        if seconds >= 2**40:
            raise SlurmError(f"{text[:40]!r} is no time")
        return float(seconds) or None
    try:
        found = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
        return found.timestamp() if found.tzinfo else found.replace(tzinfo=zone).timestamp()
    except (ValueError, OverflowError) as error:
        raise SlurmError(f"{text[:40]!r} is no time") from error


def _span(value: Any) -> float | None:
    """Return the seconds of ``[DD-[HH:]]MM:SS``."""
    if is_nothing(value):
        return None
    match = _SPAN.match(str(value).strip())
    if match is None:
        raise SlurmError(f"{str(value)[:40]!r} is no duration")
    days, hours, minutes, seconds = (int(match[name] or 0) for name in ("days", "hours", "minutes", "seconds"))
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _exit_code(value: Any) -> int | None:
    return None if is_nothing(value) else count(str(value).split(":")[0])


def _nodes(value: Any) -> list[str] | None:
    if isinstance(value, list):
        return sorted(str(item) for item in value)
    return None if is_nothing(value) else expand_nodes(str(value))


# ---- forms -----------------------------------------------------------------------------------------------------------


def _line(found: Mapping[str, str], zone: zoneinfo.ZoneInfo) -> dict[str, Any]:
    """Return the values of one line of sacct; `found`: by column in lower case."""
    row: dict[str, Any] = {ours: found.get(theirs) or None for theirs, ours in _TEXTS.items()}
    row["state"] = (found.get("state") or "").split(" ")[0].rstrip("+") or None
    row["exit_code"] = _exit_code(found.get("exitcode"))
    for name in ("submit", "start", "end"):
        row[f"{name}_time"] = _time(found.get(name), zone)
    raw = found.get("elapsedraw")
    row["run_time"] = float(count(raw) or 0) if not is_nothing(raw) else _span(found.get("elapsed"))
    nodes = found.get("allocnodes") if not is_nothing(found.get("allocnodes")) else found.get("nnodes")
    row["node_count"] = count(nodes)
    cores = found.get("alloccpus") if not is_nothing(found.get("alloccpus")) else found.get("ncpus")
    row["cores"] = count(cores)
    row["tasks"] = count(found.get("ntasks"))
    row["nodes"] = _nodes(found.get("nodelist"))
    if row["start_time"] is None:
        row["run_time"] = None
    return row


def _count_of(item: Mapping[str, Any], kind: str) -> int | None:
    """Return how many of a trackable resource a job has been given."""
    tres = item.get("tres")
    for entry in (tres or {}).get("allocated", []) if isinstance(tres, dict) else []:
        if isinstance(entry, dict) and entry.get("type") == kind:
            return count(entry.get("count"))
    return None


def _times(item: Mapping[str, Any], state: str) -> dict[str, Any]:
    """Return when a job of JSON was submitted, began and ended, and how long it has run, by names of sacct.

    squeue also expects a start and an end, which are no facts yet.
    """
    found = item.get("time")
    if "job_state" not in item:
        return found if isinstance(found, dict) else {}
    is_over = phase(state) in ("ending", "ended")
    return {
        "submission": item.get("submit_time"),
        "start": None if phase(state) == "waiting" else item.get("start_time"),
        "end": item.get("end_time") if is_over else None,
    }


def _code(value: Any) -> int | None:
    """Return the exit status in JSON: sacct's, or squeue's, which may be the status that wait(2) returns."""
    if isinstance(value, dict):
        return count(value.get("return_code"))
    return None if (status := count(value)) is None else status >> 8


def _json_job(item: Mapping[str, Any], zone: zoneinfo.ZoneInfo) -> dict[str, Any]:
    state = next(iter(states(item)), "")
    times = _times(item, state)
    start, end = (_time(plain(times.get(name)), zone) for name in ("start", "end"))
    elapsed = plain(times.get("elapsed"))
    return {
        "job_name": item.get("name") or None,
        "user": item.get("user", item.get("user_name")) or None,
        "account": item.get("account") or None,
        "partition": item.get("partition") or None,
        "qos": item.get("qos") or None,
        "state": state or None,
        "exit_code": _code(item.get("exit_code")),
        "submit_time": _time(plain(times.get("submission")), zone),
        "start_time": start,
        "end_time": end,
        "run_time": None if start is None or elapsed is None else float(count(elapsed) or 0),
        "node_count": count(item.get("allocation_nodes", item.get("node_count"))) or _count_of(item, "node"),
        "cores": count(item.get("cpus")) or _count_of(item, "cpu"),
        "tasks": tasks(item),
        "nodes": _nodes(item.get("nodes")),
    }


def _database(path: Path, jobs: _Jobs) -> None:
    with contextlib.closing(read_only(path)) as base:
        try:
            rows = base.execute("SELECT stepid, start, completion, numnodes FROM summary").fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:  # a message of SQLite may have damaged names in it
            raise SlurmError(f"no job database as NERSC's (table summary): {error}") from error
    for step, start, end, nodes in rows:
        try:
            job = job_id(str(step).partition(".")[0])
            assert job is not None
            utc = zoneinfo.ZoneInfo("UTC")
            jobs.add(
                job.number,
                {"start_time": _time(start, utc), "end_time": _time(end, utc), "node_count": count(nodes)},
                step=(job.number, 0) in jobs.runs,
            )
        except (SlurmError, AssertionError) as error:
            jobs.bad.append(f"step {str(step)[:40]}: {error}")


def _read(path: Path, zone: zoneinfo.ZoneInfo) -> _Jobs:
    jobs = _Jobs()

    def add(job: JobId, values: Mapping[str, Any]) -> None:
        found = _json_job(values, zone) if "job_id" in values else _line(values, zone)
        jobs.add(job.number, found, step=job.step is not None, part=job.part or 0)

    head = head_of(path).data
    if head.startswith(b"SQLite format 3"):
        _database(path, jobs)
        return jobs
    if not head.strip():
        raise SlurmError("empty")
    with open_log(path) as log:
        if head.lstrip()[:1] in (b"{", b"["):
            text = log.read().decode("utf-8", "replace")
            if not log.wrong:
                read_json(text, add, jobs.bad, by_id=True)
        else:
            read_text((line.decode("utf-8", "replace") for line in log.lines()), add, jobs.bad)
    if log.wrong and not jobs.runs:
        raise SlurmError(f"it cannot be unpacked: {log.wrong}")
    if log.wrong:
        jobs.bad.insert(0, f"the rest of the file, which cannot be unpacked: {log.wrong}")
    return jobs


def _outcome(log: str, jobs: _Jobs) -> Outcome:
    rows = {"slurm": jobs.count}
    if not jobs.bad:
        return Outcome(log, "whole", "", 0, rows)
    more = f", and {len(jobs.bad) - 1:,} more like it" if len(jobs.bad) > 1 else ""
    return Outcome(log, "partial" if jobs.runs else "skipped", f"left out: {jobs.bad[0]}{more}", 0, rows)


def convert(logs: Sequence[str], root: str, time_zone: str = "UTC") -> Converted:
    """Convert Slurm's accounting to rows of ``slurm``.

    Parameters
    ----------
    logs : relative to `root`.
    time_zone : of times without zone.
    """
    zone = zoneinfo.ZoneInfo(time_zone)
    tables, outcomes = [SLURM.schema().empty_table()], []
    for log in logs:
        try:
            jobs = _read(Path(root) / log, zone)
            tables.append(jobs.table())
            outcomes.append(_outcome(log, jobs))
        except SlurmError as error:
            outcomes.append(Outcome(log, "skipped", str(error)))
        except SourceError as error:
            outcomes.append(Outcome(log, "skipped", error.what))
        except (OSError, sqlite3.Error) as error:
            outcomes.append(Outcome(log, "skipped", f"cannot be read: {error}"))
    return Converted(tables={"slurm": pa.concat_tables(tables)}, outcomes=outcomes)


# ---- lines as they are -----------------------------------------------------------------------------------------------


def _lines(path: Path, problems: Problems) -> pa.Table:
    """Return the lines of sacct's text, as they stand there."""
    names: list[str] = []
    rows: list[list[str]] = []
    for number, line in lines_of(path, problems, ended=False):
        if not line.strip():
            continue
        if not names:
            names = [value.strip() for value in line.split("|")]
            if len(set(names)) < len(names) or not {"jobid", "jobidraw"} & {name.lower() for name in names}:
                raise SourceError(
                    str(path), number, "not sacct: no line that names its columns, each once, with JobID or JobIDRaw"
                )
            continue
        try:
            rows.append(split_line(line, [name.lower() for name in names]))
        except SlurmError as error:
            problems.add(number, f"{error}, as the first line has")
    if not names:
        raise SourceError(str(path), 0, "not sacct: no line that names the columns")
    columns = [name for name in names if name]
    return pa.table({name: pa.array([row[at] for row in rows], pa.string()) for at, name in enumerate(columns)})


def _entries(document: Mapping[str, Any], problems: Problems) -> pa.Table:
    """Return the lines of TOKIO's JSON: ``{"4478544.0": {"jobidraw": …, "nodelist": […]}}``."""
    rows: list[dict[str, Any]] = []
    for name, item in document.items():
        if isinstance(item, dict) and all(_is_value(value) for value in item.values()):
            rows.append({"jobidraw": str(name)} | item)
        else:
            problems.add(0, f"job {str(name)[:40]}: no object of texts")
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {}
    for name in names:
        values = [row.get(name) for row in rows]
        lists = any(isinstance(value, list) for value in values)
        if lists:
            columns[name] = pa.array(
                [[value] if isinstance(value, str) else value for value in values], pa.list_(pa.string())
            )
        else:
            columns[name] = pa.array([None if value is None else str(value) for value in values], pa.string())
    return pa.table(columns)


def _is_value(value: object) -> bool:
    if isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return value is None or isinstance(value, (str, int, float))


def _json(path: Path, problems: Problems) -> tuple[str, pa.Table]:
    document = read_document(path, problems)
    if not isinstance(document, dict):
        raise SourceError(str(path), 0, "JSON, but no object as sacct gives")
    jobs = document.get("jobs")
    if not isinstance(jobs, list):
        return "tokio", _entries(document, problems)
    ids = [str(job.get("job_id")) if isinstance(job, dict) and "job_id" in job else None for job in jobs]
    for number, found in enumerate(ids):
        if found is None:
            problems.add(0, f"/jobs/{number}: no object with job_id")
    kept = [(found, json.dumps(job)) for found, job in zip(ids, jobs, strict=True) if found is not None]
    columns = {"job_id": [found for found, _ in kept], "json": [text for _, text in kept]}
    return "sacct-json", pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})


class Slurm(Source):
    """Slurm's accounting."""

    NAME = "slurm"
    MEANING = "jobs: sacct as text or JSON, or TOKIO's JSON of it"
    ROLE = "jobs"
    PATTERNS = ("*.slurm", "*.sacct", "*.sacct.gz", "*sacct*.json", "*sacct*.txt")
    TABLES = (SLURM, LINES)

    def recognizes(self, head: Head) -> bool:
        if head.tables or head.members:
            return False
        lines = first_lines(head.text, 1)
        if not lines:
            return False
        if lines[0].lstrip().startswith("{"):
            beginning = head.text[:4096].replace(" ", "").replace("\n", "")
            return '"jobidraw"' in beginning or '"job_id"' in head.text or beginning.startswith('{"jobs":[')
        names = [name.strip().lower() for name in lines[0].split("|")]
        return len(names) > 1 and bool({"jobid", "jobidraw"} & set(names))

    def local_times(self, head: Head) -> bool:
        return has_local_time(head.text)

    def parse(self, file: File) -> Parsed:
        path, problems = file.path, file.problems
        is_json = head_of(path).data.lstrip()[:1] in (b"{", b"[")
        form, lines = _json(path, problems) if is_json else ("sacct", _lines(path, problems))
        try:
            lines.validate(full=True)
        except pa.ArrowException as error:
            raise SourceError(str(path), 0, f"invalid texts: {error}") from error
        tables = {"slurm": SLURM.schema().empty_table()}
        try:
            tables |= taken(convert([path.name], str(path.parent), file.time_zone), file)
        except SourceError as error:
            if not lines.num_rows:
                raise
            problems.add(0, f"its lines are no jobs: {error.what}", 0)
        return {**tables, "lines": lines}, {"form": form}


SOURCE = Slurm()
