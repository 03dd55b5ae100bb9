"""Our own runs, results of the bench and statistics of the library: ``runs``, ``darshan_job``, ``darshan_file``.

Results of the bench (``results.json``). A job is one pattern or kernel through one interface under one method. Each of
its operations is a row of ``runs``; all of them together are one row of ``darshan_job`` and one of ``darshan_file``
(source ``bench``). Times are those of the first repetition; a direction lasts as long as the medians of its operations,
which are laid one after the other. Where results do not say when they were measured, the operations of a job are laid
one after the other from the start of the bench. Requests are those to the file system.

Statistics of the library: :mod:`mpiio_ext.analytics.sources.statistics`.

Each job is a run of its own: ``log_id`` is different for each, as it is for each log of Darshan; ``source_log`` is the
file of results or statistics.

Histograms of both have powers of two; a bucket goes to the bin that most of it belongs to. So the shares below 1 KiB,
1 MiB, 4 MiB and 1 GiB are exact; but a request of exactly so many bytes, which Darshan counts in the bin that ends
there, is here in the next one. What is not recorded is NULL.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from mpiio_ext.analytics.sources.base import Converted, File, Head, Outcome, Parsed, Source, taken
from mpiio_ext.analytics.sources.content import first_lines
from mpiio_ext.analytics.sources.jobids import bins, identity, job_id_of, sum_of
from mpiio_ext.analytics.sources.records import SourceError
from mpiio_ext.analytics.sources.statistics import read_statistics
from mpiio_ext.analytics.tables.schema import DARSHAN_FILE, DARSHAN_JOB, RUNS, TABLES
from mpiio_ext.common.results import Measured
from mpiio_ext.report.errors import ReportError
from mpiio_ext.report.load import ResultSet, load

_TABLES = ("runs", "darshan_job", "darshan_file")
_LINE = re.compile(r'"kind"\s*:\s*"(?:file|run)"')
_Rows = dict[str, list[dict[str, Any]]]


class _LogError(Exception):
    """A log does not have its form; the message names the mistake."""


# ---- the bench -------------------------------------------------------------------------------------------------------


def _seconds(row: Measured) -> float:
    return row.seconds.get("view", 0.0) + row.seconds.get("data", 0.0)


def _started(results: ResultSet) -> float | None:
    try:
        return datetime.datetime.fromisoformat(str(results.environment["started"])).timestamp()
    except (KeyError, ValueError):
        return None


def _begun(rows: Sequence[Measured], start: float | None) -> float | None:
    """Return when the first of some operations began, as far as all results have it; else `start`."""
    begins = [row.periods[0][0] for row in rows if row.periods]
    return min(begins) if rows and len(begins) == len(rows) else start


def _run(results: ResultSet, row: Measured, ids: Mapping[str, Any], start: float | None) -> dict[str, Any]:
    last = row.last
    statistics = {
        name: getattr(row, name)
        for name in (
            "rounds",
            "requests",
            "request_bytes",
            "messages",
            "message_bytes",
            "collectives",
            "independents",
            "passed_on",
            "delegates",
            "delegated_accesses",
            "delegated_bytes",
            "bypass_bytes",
            "cache_hits",
            "cache_misses",
        )
    }
    statistics |= {f"{name}_s": value for name, value in row.seconds.items()}
    spread = row.bandwidth
    statistics |= {"repetitions": spread.count, "bandwidth_low": spread.low * 1e6, "bandwidth_high": spread.high * 1e6}
    statistics |= {"partition": last.partition, "reason": last.reason, "delegation": last.delegation}
    configuration = results.configuration
    methods = configuration.get("strategies")
    hints = {
        "all": configuration.get("hints"),
        "method": methods.get(row.key.strategy) if isinstance(methods, dict) else None,
    }
    return {
        **ids,
        "run_id": "/".join(
            [
                results.name,
                *filter(None, (row.key.variant, row.key.interface, row.key.strategy, row.key.phase, row.key.operation)),
            ]
        ),
        "time": _begun([row], start),
        "kind": last.kind,
        "pattern": row.key.variant,
        "interface": row.key.interface,
        "operation": row.key.operation,
        "phase": row.key.phase or None,
        "method": row.key.strategy,
        "ranks": last.ranks,
        "bytes": last.data_bytes,
        # What the bandwidth counts: of a pattern view and data, of a kernel's phase opening and closing, too.
        "seconds": last.data_bytes / (row.bandwidth.median * 1e6) if row.bandwidth.median > 0 else _seconds(row),
        "bandwidth": row.bandwidth.median * 1e6,
        "verified": bool(row.compared),
        "family": results.environment.get("mpi_library"),
        "hints": json.dumps(hints, ensure_ascii=False),
        "statistics": json.dumps(
            {name: value for name, value in statistics.items() if value is not None}, ensure_ascii=False
        ),
    }


def _direction(rows: Sequence[Measured], read: bool, start: float | None) -> tuple[dict[str, Any], float | None]:
    """Return the part of one direction's operations in the job and in its file, and their end."""
    name, noun = ("read", "reads") if read else ("write", "writes")
    moved = "bytes_read" if read else "bytes_written"
    mine = [row for row in rows if (row.key.operation == "read") == read and row.key.operation != "both"]
    out: dict[str, Any] = {moved: sum(row.last.data_bytes for row in mine), noun: None}
    if not mine:
        return {**out, noun: 0}, start
    start = _begun(mine, start)
    out[noun] = sum_of([row.requests for row in mine])
    out[f"{name}_start"] = start
    end = None if start is None else start + sum(_seconds(row) for row in mine)
    out[f"{name}_end"] = end
    histograms = [row.last.request_size_log2 for row in mine]
    if all(histogram is not None for histogram in histograms):
        for histogram in histograms:
            for column, count in bins(name, histogram).items():
                out[column] = out.get(column, 0) + count
    out[f"mpiio_coll_{noun}"] = sum_of([row.collectives for row in mine])
    return out, end


def _bench(results: ResultSet, log: str, log_id: int, out: _Rows) -> None:
    groups: dict[tuple[str, str, str], list[Measured]] = {}
    for row in results.rows:
        groups.setdefault((row.key.variant, row.key.interface, row.key.strategy), []).append(row)
    started = _started(results)
    environment = results.environment
    for (variant, interface, method), rows in groups.items():
        job = job_id_of(
            str(environment.get("started")), str(environment.get("hosts")), results.name, variant, interface, method
        )
        ids = identity(job, log, log_id)
        start = _begun(rows, started)
        out["runs"] += [_run(results, row, ids, start) for row in rows]
        written, then = _direction(rows, False, start)
        read, _ = _direction(rows, True, then)
        known = {**written, **read} if all(row.key.operation != "both" for row in rows) else {}
        common = {**ids, "source": "bench", "method": method, "processes": rows[0].last.ranks}
        took = sum(sum(row.seconds.get(name, 0.0) for name in ("open", "view", "data", "close")) for row in rows)
        out["darshan_job"].append(
            {
                **common,
                **_of("darshan_job", known),
                "log_file": log,
                "exe": environment.get("command_line"),
                "app": "mpiio_ext.bench",
                "start_time": start,
                "end_time": None if start is None else start + took,
                "run_time": took,
                "partial": results.failure is not None,
                "pattern": variant,
                "modules": [],
                "files": rows[0].last.files,
                "uses_mpiio": interface != "posix",
                "uses_hdf5": interface in ("hdf5", "netcdf4"),
                "uses_pnetcdf": interface == "pnetcdf",
            }
        )
        out["darshan_file"].append(
            {
                **common,
                **_of("darshan_file", known),
                "file_id": job,
                "file": f"{variant} [{interface}]",
                "mount": environment.get("file_system_mount"),
                "fs_type": environment.get("file_system_type"),
                "ranks": rows[0].last.ranks,
                "rounds": sum_of([row.rounds for row in rows]),
            }
        )


def _of(table: str, values: Mapping[str, Any]) -> dict[str, Any]:
    names = set(TABLES[table].names())
    return {name: value for name, value in values.items() if name in names}


# ---- logs ------------------------------------------------------------------------------------------------------------


def _statistics(path: Path, log: str, log_id: int, out: _Rows) -> Outcome:
    runs, bad = read_statistics(path, log, log_id, out)
    if not runs:
        raise _LogError(bad[0] if bad else "empty")
    more = f", and {len(bad) - 1:,} more" if len(bad) > 1 else ""
    return Outcome(log, "partial" if bad else "whole", f"{bad[0]}{more}" if bad else "", log_id)


def _convert(path: Path, log: str, log_id: int, out: _Rows) -> Outcome:
    if path.suffix == ".jsonl":
        return _statistics(path, log, log_id, out)
    results = load(path)
    if not isinstance(results, ResultSet):
        raise _LogError("a comparison of peers, which has no runs")
    _bench(results, log, log_id, out)
    if results.failure:
        return Outcome(log, "partial", f"the bench ended early: {results.failure}", log_id)
    return Outcome(log, "whole", "", log_id)


def convert(logs: Sequence[str], root: str) -> Converted:
    """Convert results of the bench (JSON) and statistics of the library (JSON lines).

    Parameters
    ----------
    logs : relative to `root`; names that end in ``.jsonl`` are statistics.
    """
    found: dict[str, list[Any]] = {name: [TABLES[name].schema().empty_table()] for name in _TABLES}
    outcomes = []
    for number, log in enumerate(logs, 1):
        mine: _Rows = {name: [] for name in _TABLES}
        path = Path(root) / log
        try:
            outcome = _convert(path, log, number, mine)
            tables = {name: pa.Table.from_pylist(mine[name], schema=TABLES[name].schema()) for name in _TABLES}
        except ReportError as error:
            outcomes.append(Outcome(log, "skipped", str(error).removeprefix(f"{path}: ")))
            continue
        except SourceError as error:
            outcomes.append(Outcome(log, "skipped", error.what))
            continue
        except (OSError, _LogError, pa.ArrowException, OverflowError) as error:
            outcomes.append(Outcome(log, "skipped", str(error)))
            continue
        outcomes.append(
            Outcome(
                outcome.log,
                outcome.status,
                outcome.reason,
                number,
                {name: table.num_rows for name, table in tables.items()},
            )
        )
        for name in _TABLES:
            found[name].append(tables[name])
    return Converted(tables={name: pa.concat_tables(tables) for name, tables in found.items()}, outcomes=outcomes)


class Results(Source):
    """Results of the bench, or statistics of the library."""

    NAME = "results"
    MEANING = "our own runs: results of the bench (results.json), statistics of the library (JSON lines)"
    ROLE = "programs"
    PATTERNS = ("results.json", "*.jsonl")
    TABLES = (RUNS, DARSHAN_JOB, DARSHAN_FILE)

    def recognizes(self, head: Head) -> bool:
        if head.path.name == "results.json":
            return True
        lines = first_lines(head.text, 1)
        return bool(lines) and lines[0].startswith("{") and _LINE.search(lines[0]) is not None

    def parse(self, file: File) -> Parsed:
        return taken(convert([file.path.name], str(file.path.parent)), file), {}


SOURCE = Results()
