"""Statistics of the library (``MPIOX_STATS_FILE``, a JSON object a line): ``runs``, ``darshan_job``, ``darshan_file``.

Problem. Jobs append to one file, at the same time too, and a job's processes write lines of their own. A line counts
over all ranks of one file, reads and writes together, and times are sums over the ranks.

Algorithm. Lines with the same ``run`` are one run of a program. It is a row of ``darshan_job``; its files are rows of
``darshan_file`` (source ``library``). Its job ID is the scheduler's, or one made of ``run``: the same wherever the file
lies. Of lines that name no ``run``, a run is what stands up to a line of the kind ``run``.

What a run did by one method and in one direction is a row of ``runs``, so that two runs of a program can be compared
like two runs of the bench. Bytes and counts are added up over its files, times are of the mean rank, and seconds are
the time in which any of the files was accessed. For a file that was read and written, the statistics do not divide the
times: its operation is ``both``.

Guarantees. Bytes of a collective that each rank moved alone count once, though the library counts them twice. A time
that the library has not seen (the end of an access that the MPI library carried out) is NULL, and so is what follows
from it. A line that cannot be read is left out, and named.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mpiio_ext.analytics.sources.jobids import bins, identity, job_id_of, sum_of
from mpiio_ext.analytics.sources.opener import open_log

_WAYS = (("read", "reads"), ("write", "writes"))
#: Counters of a line that are taken into the statistics of ``runs``: name there -> names in the line, added up.
_COUNTS = {
    "rounds": ("rounds",),
    "requests": ("read_requests", "write_requests"),
    "request_bytes": ("read_request_bytes", "write_request_bytes"),
    "messages": ("messages",),
    "message_bytes": ("message_bytes",),
    "collectives": ("collective_writes", "collective_reads"),
    "independents": ("independent_writes", "independent_reads"),
    "passed_on": ("native_calls",),
    "delegated_accesses": ("delegated_writes", "delegated_reads"),
    "delegated_bytes": ("delegated_bytes_written", "delegated_bytes_read"),
    "bypass_bytes": ("bypass_bytes_written", "bypass_bytes_read"),
}
_TIMES = ("plan_s", "exchange_s", "io_s", "wait_s", "total_s", "independent_s", "delegated_s", "flush_barrier_s")
_NUMBER = re.compile(r"\d{1,18}")


class StatisticsError(Exception):
    """A line does not have its form; the message names the mistake."""


@dataclasses.dataclass
class _Run:
    """Lines of one run: of its files, and of the run itself as far as there is one."""

    name: str
    files: list[Mapping[str, Any]] = dataclasses.field(default_factory=list)
    ends: list[Mapping[str, Any]] = dataclasses.field(default_factory=list)

    @property
    def lines(self) -> list[Mapping[str, Any]]:
        return [*self.files, *self.ends]


# ---- values ----------------------------------------------------------------------------------------------------------


def _count(record: Mapping[str, Any], name: str) -> int | None:
    value = record.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise StatisticsError(f"{name} is {str(value)[:40]!r}, which is no count")
    return value


def _time(record: Mapping[str, Any], name: str) -> float | None:
    value = record.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e12:
        raise StatisticsError(f"{name} is {str(value)[:40]!r}, which is no time")
    return float(value)


def _text(record: Mapping[str, Any], name: str) -> str | None:
    value = record.get(name)
    if value is not None and not isinstance(value, str):
        raise StatisticsError(f"{name} is {str(value)[:40]!r}, which is no text")
    return value or None


def _least(values: Sequence[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)


def _greatest(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _bytes(record: Mapping[str, Any], past: str) -> int | None:
    """Return the bytes ``read`` or ``written``, those of direct collectives once; None if that is not known."""
    total = sum_of([_count(record, f"bytes_{past}"), _count(record, f"independent_bytes_{past}")])
    return None if total is None else max(0, total - (_count(record, f"direct_bytes_{past}") or 0))


def _method(record: Mapping[str, Any]) -> str | None:
    """Return how a file's accesses were carried out: the file-domain method, its replacement, or None."""
    named = _text(record, "partition")
    if named is not None:
        return named
    if _count(record, "native_calls"):
        return "native"
    if _count(record, "direct_calls"):
        return "direct"
    return "independent" if sum_of([_count(record, f"independent_{noun}") for _, noun in _WAYS]) else None


# ---- a file ----------------------------------------------------------------------------------------------------------


def _activity(record: Mapping[str, Any]) -> dict[str, Any]:
    reads, writes = _count(record, "read_requests"), _count(record, "write_requests")
    sizes = record.get("request_size_log2")
    out: dict[str, Any] = {
        "bytes_read": _bytes(record, "read"),
        "bytes_written": _bytes(record, "written"),
        "reads": reads,
        "writes": writes,
    }
    if isinstance(sizes, list) and len(sizes) <= 64 and all(type(item) is int for item in sizes):
        if not writes:
            out |= {**bins("read", sizes), **bins("write", ())}
        elif not reads:
            out |= {**bins("write", sizes), **bins("read", ())}
    return out


def _span(record: Mapping[str, Any], way: str) -> dict[str, float | None]:
    """Return first and last access; both only if both are known, and in this order."""
    start, end = (_time(record, f"{way}_{which}") for which in ("start", "end"))
    known = start is not None and end is not None and end >= start
    return {f"{way}_start": start if known else None, f"{way}_end": end if known else None}


def _file(record: Mapping[str, Any]) -> dict[str, Any]:
    ranks = _count(record, "ranks") or 0
    activity = _activity(record)
    path = str(record.get("path", ""))
    collective = {
        f"mpiio_coll_{noun}": None if (count := _count(record, f"collective_{noun}")) is None else count * ranks
        for _, noun in _WAYS
    }
    return {
        **activity,
        **collective,
        **_span(record, "read"),
        **_span(record, "write"),
        "source": "library",
        "ranks": ranks,
        "file": path,
        "file_id": job_id_of(path),
        "method": _text(record, "partition"),
        "rounds": _count(record, "rounds"),
        "exchange_time": _time(record, "exchange_s"),
        "storage_time": _time(record, "io_s"),
        "mpiio_bytes_read": activity["bytes_read"],
        "mpiio_bytes_written": activity["bytes_written"],
        "mpiio_indep_reads": _count(record, "independent_reads"),
        "mpiio_indep_writes": _count(record, "independent_writes"),
    }


# ---- a run -----------------------------------------------------------------------------------------------------------


def _first(lines: Sequence[Mapping[str, Any]], name: str) -> str | None:
    return next((found for line in lines if (found := _text(line, name)) is not None), None)


def _job(run: _Run, files: Sequence[dict[str, Any]], ids: Mapping[str, Any], log: str) -> dict[str, Any]:
    names = ("bytes_read", "bytes_written", "reads", "writes")
    start = _least([_time(line, "start") for line in run.lines])
    end = _greatest([_time(line, "time") for line in run.ends])
    spans = {
        f"{way}_{which}": choose([row[f"{way}_{which}"] for row in files])
        for way, _ in _WAYS
        for which, choose in (("start", _least), ("end", _greatest))
    }
    ranks = [_count(line, "ranks") or 0 for line in run.lines]
    return {
        **ids,
        **spans,
        "source": "library",
        "log_file": log,
        "uid": next((uid for line in run.lines if (uid := _count(line, "uid")) is not None), None),
        "app": _first(run.lines, "program"),
        "exe": _first(run.lines, "command"),
        "start_time": start,
        "end_time": end,
        "run_time": None if start is None or end is None or end < start else end - start,
        "partial": not run.ends,
        "uses_mpiio": True,
        "modules": [],
        "processes": max(ranks, default=0),
        **{name: sum_of([row.get(name) for row in files]) for name in names},
        "files": len(files),
        "files_read": sum(bool(row["bytes_read"]) for row in files),
        "files_written": sum(bool(row["bytes_written"]) for row in files),
        "method": next((row["method"] for row in files if row["method"]), None),
    }


def _operation(file: Mapping[str, Any]) -> str | None:
    """Return the operations on a file; None for a file that was not accessed."""
    moved = [way for way, past in (("read", "bytes_read"), ("write", "bytes_written")) if file[past] != 0]
    return "both" if len(moved) == 2 else moved[0] if moved else None


def _covered(spans: Sequence[tuple[float, float]]) -> float:
    """Return the length of the union of intervals [s]."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def _seconds(files: Sequence[Mapping[str, Any]], operation: str) -> float | None:
    """Return the time in which any of the files was accessed; None if that of one is not known."""
    ways = ("read", "write") if operation == "both" else (operation,)
    spans = [(file[f"{way}_start"], file[f"{way}_end"]) for file in files for way in ways]
    known = [(start, end) for start, end in spans if start is not None and end is not None]
    return _covered(known) if known and len(known) == len(spans) else None


def _statistics(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return counts over all files, and times of the mean rank."""
    out: dict[str, Any] = {
        name: sum_of([_count(line, each) for line in lines for each in names]) for name, names in _COUNTS.items()
    }
    for name in _TIMES:
        shares = [time / (_count(line, "ranks") or 1) for line in lines if (time := _time(line, name)) is not None]
        out[name] = sum(shares) if shares else None
    for name in ("partition", "reason", "delegation"):
        out[name] = _first(lines, name)
    return out


def _hints(lines: Sequence[Mapping[str, Any]]) -> str:
    found: dict[str, Any] = {}
    for line in lines:
        hints = line.get("hints")
        for name, hint in hints.items() if isinstance(hints, dict) else ():
            found[str(name)] = hint.get("value") if isinstance(hint, dict) else None
    return json.dumps({"all": found}, ensure_ascii=False)


def _measurements(
    run: _Run, files: Sequence[dict[str, Any]], job: Mapping[str, Any], ids: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of ``runs``: one of each method and operation."""
    groups: dict[tuple[str, str], list[int]] = {}
    for place, (line, file) in enumerate(zip(run.files, files, strict=True)):
        method, operation = _method(line), _operation(file)
        if method is not None and operation is not None:
            groups.setdefault((method, operation), []).append(place)
    for (method, operation), places in groups.items():
        lines, mine = [run.files[place] for place in places], [files[place] for place in places]
        seconds = _seconds(mine, operation)
        moved = [file[past] for file in mine for past in ("bytes_read", "bytes_written")]
        total = sum_of(moved) if None not in moved else None
        yield {
            **ids,
            "run_id": f"{run.name}/{method}/{operation}",
            "time": _least([file[f"{way}_start"] for file in mine for way, _ in _WAYS]) or job["start_time"],
            "kind": "program",
            "pattern": job["app"] or "program",
            "interface": "mpiio",
            "operation": operation,
            "phase": None,
            "method": method,
            "ranks": job["processes"],
            "bytes": total,
            "seconds": seconds,
            "bandwidth": total / seconds if seconds and total is not None else None,
            "verified": None,
            "family": None,
            "hints": _hints(lines),
            "statistics": json.dumps(
                {name: value for name, value in _statistics(lines).items() if value is not None}, ensure_ascii=False
            ),
        }


# ---- a log -----------------------------------------------------------------------------------------------------------


def _runs(path: Path, bad: list[str]) -> list[_Run]:
    """Return the runs of a file in the order of their first lines."""
    runs: dict[str, _Run] = {}
    unnamed = 0  # runs of lines that name none
    with open_log(path) as log:
        for number, data in enumerate(log.lines(), 1):
            line = data.decode("utf-8", "replace")
            try:
                record = json.loads(line) if line.strip() else None
                if record is None:
                    continue
                kind = record.get("kind") if isinstance(record, dict) else None
                if kind not in ("file", "run"):
                    raise StatisticsError("no statistics of the library")
                _check(record)
                name = _text(record, "run")
                run = runs.setdefault(name or f"#{unnamed}", _Run(name or ""))
                (run.files if kind == "file" else run.ends).append(record)
                unnamed += name is None and kind == "run"
            except (ValueError, RecursionError, StatisticsError) as error:
                bad.append(f"line {number}: {error}")
    if log.wrong:
        bad.append(f"{log.wrong}; what stands before is read")
    return list(runs.values())


def _check(record: Mapping[str, Any]) -> None:
    """Raise StatisticsError for a line with a value that no row could be made of."""
    _file(record)
    _statistics([record])
    for name in ("start", "time", "opened", "closed"):
        _time(record, name)
    for name in ("program", "command", "scheduler_job"):
        _text(record, name)
    _count(record, "uid")


def _job_number(run: _Run, path: Path, number: int) -> int:
    """Return the scheduler's number of the job, or one that is made of the run's own ID."""
    scheduler = _first(run.lines, "scheduler_job")
    found = _NUMBER.match(scheduler) if scheduler is not None else None
    if found is not None:
        return int(found[0])
    return job_id_of(run.name) if run.name else job_id_of(str(path.absolute()), str(number))


def read_statistics(path: Path, log: str, log_id: int, out: dict[str, list[dict[str, Any]]]) -> tuple[int, list[str]]:
    """Read a file of statistics.

    Parameters
    ----------
    log : its name for the manifest.
    log_id : its number there.
    out : mapping of str to list
        Rows of ``runs``, ``darshan_job`` and ``darshan_file`` are added.

    Returns
    -------
    runs : int
        How many there are.
    bad : list of str
        What could not be read, and runs without an end.

    Raises
    ------
    SourceError
        The file cannot be read, or the file or a line is larger than the limit of the opener.
    """
    bad: list[str] = []
    runs = _runs(path, bad)
    unended = sum(not run.ends for run in runs)
    if unended:
        which = f"{unended:,} of {len(runs):,} runs have" if unended > 1 else f"a run of {len(runs):,} has"
        bad.append(f"{which} no end: the program was killed, or still ran")
    for number, run in enumerate(runs):
        ids = identity(_job_number(run, path, number), log, log_id, run.name)
        files = [_file(line) for line in run.files]
        job = _job(run, files, ids, log)
        out["darshan_job"].append(job)
        out["darshan_file"] += [{**file, **ids, "processes": job["processes"]} for file in files]
        out["runs"] += _measurements(run, files, job, ids)
    return len(runs), bad
