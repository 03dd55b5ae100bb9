"""Files that a program moves through DAOS: rows of ``darshan_file`` from the modules DFS and DAOS of a log.

Problem. The reader of logs joins POSIX, STDIO, MPI-IO and Lustre. Bytes that a job moves through libdfs are in none of
these modules: a report would state that the job moved nothing, and that the log is complete.

Algorithm. Records of DFS are added up by file, as those of POSIX are. DAOS has the objects below: where there are
records of DFS, their bytes are those of DFS again, and are counted once.

Guarantees. Bytes that cannot be counted (another version, a damaged region, objects beside DFS) make the log
``partial``, with the reason.

Source: darshan-util, darshan-dfs-log-format.h, darshan-daos-log-format.h.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mpiio_ext.analytics.sources.base import Converted
from mpiio_ext.analytics.tables.arrays import Numbers, Whole
from mpiio_ext.analytics.tables.schema import DARSHAN_JOB, SIZE_BINS
from mpiio_ext.common.darshanfile import DamagedLogError, DarshanFile

MODULES = ("DFS", "DAOS")
#: Where counters of a module are: opens, bytes read, the first bin of sizes read, the rank that is slowest.
_PLACES = {"DFS": ((0, 1), 14, 19, 50), "DAOS": ((0, 9, 17), 24, 29, 62)}
#: More bytes of objects than of files, from which on they are other ones.
_BESIDE = 1.05
_HIGHEST = (1 << 63) - 1
_SUMS = ("bytes_read", "bytes_written", "reads", "writes", "opens", "read_time", "write_time", "meta_time")


def with_daos(found: Converted, root: str) -> Converted:
    """Return converted logs with the files of those that use DAOS."""
    modules = found.tables["darshan_job"]["modules"].to_pylist()
    if not any(set(MODULES) & set(each or ()) for each in modules):
        return found
    jobs, files, outcomes = found.tables["darshan_job"].to_pylist(), [], list(found.outcomes)
    places = [place for place, outcome in enumerate(outcomes) if outcome.status != "skipped"]
    for place, job in zip(places, jobs, strict=True):
        if not set(MODULES) & set(job["modules"] or ()):
            continue
        rows, problem = _rows(Path(root) / outcomes[place].log, job)
        files += rows
        _add(job, rows)
        counts = dict(outcomes[place].rows)
        counts["darshan_file"] = counts.get("darshan_file", 0) + len(rows)
        outcomes[place] = dataclasses.replace(outcomes[place], rows=counts)
        if problem:
            job["partial"] = True
            reason = "; ".join(filter(None, [outcomes[place].reason, problem]))
            outcomes[place] = dataclasses.replace(outcomes[place], status="partial", reason=reason)
    schema = found.tables["darshan_file"].schema
    more = pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in files], schema=schema)
    tables = {
        **found.tables,
        "darshan_job": pa.Table.from_pylist(jobs, schema=DARSHAN_JOB.schema()),
        "darshan_file": _ordered(pa.concat_tables([found.tables["darshan_file"], more]), jobs),
    }
    return Converted(tables=tables, outcomes=outcomes)


def _ordered(files: pa.Table, jobs: list[dict[str, Any]]) -> pa.Table:
    """Return files with those of a log side by side, in the order of the logs."""
    place = {job["log_id"]: number for number, job in enumerate(jobs)}
    order = np.argsort([place[log] for log in files["log_id"].to_pylist()], kind="stable")
    return files.take(pa.array(order))


def _rows(path: Path, job: Mapping[str, Any]) -> tuple[list[dict[str, Any]], str]:
    """Return the rows of a log, and the part that could not be counted."""
    try:
        log = DarshanFile(path)
        found = {module: _files(log, module, job) for module in MODULES if module in log.modules}
        names = dict(log.names())
    except (OSError, DamagedLogError) as error:
        return [], f"what the job moved through DAOS is not counted: {error}"
    unknown = [module for module, rows in found.items() if rows is None]
    if unknown:
        return [], f"what the job moved through DAOS is not counted: this version of module {unknown[0]} is not known"
    rows = found.get("DFS") or found.get("DAOS") or {}
    moved = [
        sum(row["bytes_read"] + row["bytes_written"] for row in (each or {}).values())
        for each in (found.get("DFS"), found.get("DAOS"))
    ]
    beside = moved[1] > _BESIDE * moved[0] > 0
    problem = "bytes of DAOS objects that are no files of DFS are not counted" if beside else ""
    for number, row in rows.items():
        row |= {name: _within(value) for name, value in row.items() if isinstance(value, int) and name != "log_id"}
        row |= {"file_id": number - (1 << 64) if number >= 1 << 63 else number, "file": names.get(number)}
    return list(rows.values()), problem


def _files(log: DarshanFile, module: str, job: Mapping[str, Any]) -> dict[int, dict[str, Any]] | None:
    """Return the rows of a module by file; None if its version is not known."""
    rows: dict[int, dict[str, Any]] = {}
    parts = list(log.counters(module))
    if not parts:
        return None
    for part in parts:
        every = zip(
            part["file"].tolist(),
            part["rank"].tolist(),
            part["counters"].astype(np.int64),
            part["times"].astype(float),
            strict=True,
        )
        for file, rank, counters, times in every:
            row = rows.setdefault(file, _empty(job))
            _take(row, module, rank, counters, times, job)
    return rows


def _empty(job: Mapping[str, Any]) -> dict[str, Any]:
    identity = {name: job[name] for name in ("job_id", "log_id", "source_log", "source", "processes")}
    sizes = {f"{way}_size_{size}": 0 for way in ("read", "write") for size in SIZE_BINS}
    return {**identity, "fs_type": "daos", "ranks": 0, **sizes, **dict.fromkeys(_SUMS, 0), "root_bytes_written": 0}


def _take(row: dict[str, Any], module: str, rank: int, counters: Whole, times: Numbers, job: Mapping[str, Any]) -> None:
    """Add a record to the row of its file."""
    opens, moved, sizes, slowest = _PLACES[module]
    row["ranks"] = job["processes"] if rank < 0 else row["ranks"] + 1
    row["opens"] += int(counters[list(opens)].sum())
    for way, at, bytes_of, time, start in (
        ("read", sizes, "bytes_read", 8, 1),
        ("write", sizes + len(SIZE_BINS), "bytes_written", 9, 2),
    ):
        row[bytes_of] += int(counters[moved + (way == "write")])
        for size, count in zip(SIZE_BINS, counters[at : at + len(SIZE_BINS)].tolist(), strict=True):
            row[f"{way}_size_{size}"] += count
            row[f"{way}s"] += count
        row[f"{way}_time"] += float(times[time])
        for edge, place, pick in (("start", start, min), ("end", start + 4, max)):
            if times[place] > 0:
                known = row.get(f"{way}_{edge}")
                when = job["start_time"] + float(times[place])
                row[f"{way}_{edge}"] = when if known is None else pick(known, when)
    row["meta_time"] += float(times[10])
    if rank < 0:
        row["root_bytes_written"] = None
        row |= {
            "slowest_rank": int(counters[slowest]) if 0 <= counters[slowest] < 1 << 31 else None,
            "slowest_rank_bytes": int(counters[slowest + 1]),
            "fastest_rank_bytes": int(counters[slowest - 1]),
            "fastest_rank_time": float(times[13]),
            "slowest_rank_time": float(times[14]),
        }
    elif rank == 0:
        row["root_bytes_written"] += int(counters[moved + 1])


def _within(value: float) -> float:
    """Return a sum, within the range of a column: damaged counters may be any numbers."""
    return min(max(value, -_HIGHEST), _HIGHEST) if isinstance(value, int) else value


def _add(job: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """Add rows to the sums of their job."""
    for row in rows:
        for name in _SUMS:
            job[name] = _within((job[name] or 0) + row[name])
        job["files"] = (job["files"] or 0) + (row["opens"] > 0)
        job["files_read"] = (job["files_read"] or 0) + (row["bytes_read"] > 0)
        job["files_written"] = (job["files_written"] or 0) + (row["bytes_written"] > 0)
        for name, pick in (("read_start", min), ("write_start", min), ("read_end", max), ("write_end", max)):
            known = [each for each in (job[name], row.get(name)) if each is not None]
            job[name] = pick(known) if known else None
