"""Slurm's accounting: ``sacct`` as text or JSON, and two forms that sites make of it, to rows of ``slurm``.

Problem. Sites dump different columns in any order; jobs have steps, array tasks and heterogeneous parts; times are
local, may be "Unknown" or "None", and node lists are compressed (``nid0[0001-0003,5]``).

Forms
-----
- text of ``sacct --parsable2`` or ``--parsable``: the first line names the columns; ``|`` separates them;
- ``sacct --json``: one object with ``jobs``;
- TOKIO's JSON: ``{"4478544.0": {"jobidraw", "start", "end", "nodelist"}, …}``;
- NERSC's job database: SQLite with the table ``summary`` (stepid, hostname, start, completion, numnodes).

Any of them may be compressed with gzip. One row a job: a job's steps only give what its own line lacks (the number of
tasks of the largest step, the span of their times, nodes). ``job_id`` is the raw ID: array tasks have their own; of a
heterogeneous job (``100+1``) the parts after the first count as further lines of job 100.

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
    plain,
    read_json,
    read_text,
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
    """Gathers lines of jobs and steps to one row a job."""

    def __init__(self) -> None:
        self.rows: dict[int, dict[str, Any]] = {}
        self.bad: list[str] = []

    def add(self, job_id: int, found: Mapping[str, Any], *, step: bool) -> None:
        """Add a line: a job's own fills its row; a step's fills missing values."""
        row = self.rows.setdefault(job_id, {"job_id": job_id, "own": False, "step": {}})
        if step or row["own"]:
            self._step(row["step"], found)
        if not step and not row["own"]:
            row.update({name: value for name, value in found.items() if value is not None}, own=True)

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
        out = []
        for row in self.rows.values():
            whole = {**row["step"], **{name: value for name, value in row.items() if name not in ("own", "step")}}
            if row["step"].get("tasks") is not None:
                whole["tasks"] = max(row["step"]["tasks"], row.get("tasks") or 0)
            start, end = whole.get("start_time"), whole.get("end_time")
            if whole.get("run_time") is None and start is not None and end is not None and end >= start:
                whole["run_time"] = end - start
            if whole.get("node_count") is None and whole.get("nodes"):
                whole["node_count"] = len(whole["nodes"])
            out.append(whole)
        return pa.Table.from_pylist(out, schema=SLURM.schema())


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


def _json_job(item: Mapping[str, Any], zone: zoneinfo.ZoneInfo) -> dict[str, Any]:
    times = item.get("time") if isinstance(item.get("time"), dict) else {}
    assert isinstance(times, dict)
    start, end = (_time(plain(times.get(name)), zone) for name in ("start", "end"))
    code = item.get("exit_code")
    elapsed = plain(times.get("elapsed"))
    return {
        "job_name": item.get("name") or None,
        "user": item.get("user") or None,
        "account": item.get("account") or None,
        "partition": item.get("partition") or None,
        "qos": item.get("qos") or None,
        "state": next(iter(states(item)), None),
        "exit_code": count(code.get("return_code")) if isinstance(code, dict) else None,
        "submit_time": _time(plain(times.get("submission")), zone),
        "start_time": start,
        "end_time": end,
        "run_time": None if start is None or elapsed is None else float(count(elapsed) or 0),
        "node_count": count(item.get("allocation_nodes")) or _count_of(item, "node"),
        "cores": _count_of(item, "cpu"),
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
                step=False,
            )
        except (SlurmError, AssertionError) as error:
            jobs.bad.append(f"step {str(step)[:40]}: {error}")


def _read(path: Path, zone: zoneinfo.ZoneInfo) -> _Jobs:
    jobs = _Jobs()

    def add(job: JobId, values: Mapping[str, Any]) -> None:
        found = _json_job(values, zone) if "job_id" in values else _line(values, zone)
        jobs.add(job.number, found, step=job.step is not None)

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
    if log.wrong and not jobs.rows:
        raise SlurmError(f"it cannot be unpacked: {log.wrong}")
    if log.wrong:
        jobs.bad.insert(0, f"the rest of the file, which cannot be unpacked: {log.wrong}")
    return jobs


def _outcome(log: str, jobs: _Jobs) -> Outcome:
    rows = {"slurm": len(jobs.rows)}
    if not jobs.bad:
        return Outcome(log, "whole", "", 0, rows)
    more = f", and {len(jobs.bad) - 1:,} more like it" if len(jobs.bad) > 1 else ""
    return Outcome(log, "partial" if jobs.rows else "skipped", f"left out: {jobs.bad[0]}{more}", 0, rows)


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
    return Converted({"slurm": pa.concat_tables(tables)}, outcomes)


# ---- lines as they are -----------------------------------------------------------------------------------------------


def _lines(path: Path, problems: Problems) -> pa.Table:
    """Return the lines of sacct's text, as they stand there."""
    names: list[str] = []
    rows: list[list[str]] = []
    trailing = False
    for number, line in lines_of(path, problems, ended=False):
        if not line.strip():
            continue
        values = [value.strip() for value in line.split("|")]
        if not names:
            names, trailing = values, values[-1] == ""
            names = names[: len(names) - trailing]
            if len(set(names)) < len(names) or not {"jobid", "jobidraw"} & {name.lower() for name in names}:
                raise SourceError(
                    str(path), number, "not sacct: no line that names its columns, each once, with JobID or JobIDRaw"
                )
            continue
        values = values[: len(values) - (trailing and values[-1] == "")]
        if len(values) != len(names):
            problems.add(number, f"{len(values)} columns, and the first line names {len(names)}")
            continue
        rows.append(values)
    if not names:
        raise SourceError(str(path), 0, "not sacct: no line that names the columns")
    return pa.table({name: pa.array([row[at] for row in rows], pa.string()) for at, name in enumerate(names)})


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
