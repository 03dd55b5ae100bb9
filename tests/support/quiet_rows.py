"""A job and its files as rows, with nothing wrong: tests of the diagnosis make one thing worse at a time.

The rows are made: a case has a number on either side of a bound, or the numbers of a known problem with another
reason. No program ends up there; the logs that programs made are in tests/samples/diagnosis.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from mpiio_ext.analytics.diagnosis import Diagnosis
from mpiio_ext.analytics.diagnosis.activity import Activity
from mpiio_ext.analytics.factors.files import Files
from mpiio_ext.analytics.ledger import Ledger, of_rows, records
from mpiio_ext.analytics.tables.schema import SIZE_BINS

JOB = {
    "job_id": 4711,
    "log_id": 1,
    "uid": 31337,
    "app": "secret_solver",
    "exe": "/home/alice/secret_solver -x",
    "processes": 64,
    "run_time": 100.0,
    "start_time": 1.6e9,
    "modules": ["LUSTRE", "MPI-IO", "POSIX"],
    "uses_mpiio": True,
    "partial": False,
}


def file(start: float, end: float, way: str = "write", **columns: Any) -> dict[str, Any]:
    """Return a quiet file: large consecutive aligned requests by one rank, collective, on four OSTs."""
    moved = "written" if way == "write" else "read"
    quiet: dict[str, Any] = {
        "job_id": 4711,
        "log_id": 1,
        "file_id": int(start * 1e6),
        "file": f"/scratch/alice/out.{start}",
        "processes": 64,
        f"{way}_start": 1.6e9 + start,
        f"{way}_end": 1.6e9 + end,
        "meta_time": 0.0,
        f"bytes_{moved}": 100 << 20,
        f"{way}s": 100,
        f"consec_{way}s": 99,
        "ranks": 1,
        "opens": 1,
        "unaligned": 0,
        "stripe_count": 4,
        "osts": [0, 1, 2, 3],
        f"mpiio_coll_{way}s": 100,
        f"mpiio_indep_{way}s": 0,
        f"mpiio_nb_{way}s": 0,
        "alignment": 1 << 20,
        "root_bytes_written": 0,
        "slowest_rank_time": None,
        "fastest_rank_bytes": None,
        "slowest_rank_bytes": None,
    }
    quiet |= {f"{other}_size_{name}": 0 for other in ("read", "write") for name in SIZE_BINS}
    quiet |= {"read_time": 0.0, "write_time": 0.0, f"{way}_time": float(end - start), f"{way}_size_1m_4m": 100}
    return {**quiet, **columns}


def small(way: str = "write", **columns: Any) -> dict[str, Any]:
    return {
        f"bytes_{'written' if way == 'write' else 'read'}": 100 << 10,
        f"{way}_size_1k_10k": 100,
        f"{way}_size_1m_4m": 0,
        f"consec_{way}s": 0,
        **columns,
    }


def summary(found: Diagnosis) -> dict[str, Any]:
    """Return what a diagnosis concludes, its findings with numbers, files and advice, and what it notes beside them."""
    findings = [
        {
            "cause": f"{one.cause}, {one.confidence}{', by times alone' if one.by_times else ''}",
            "explains": f"{'at most ' if one.at_most else ''}{one.time:.4g} s, {one.share:.4g} of {one.of}",
            "title": one.title,
            **({} if one.what in one.title else {"what": one.what}),
            "files": ", ".join([*one.files, *(f"OST {name}" for name in one.osts)]),
            "evidence": [each.text() for each in one.evidence],
            "advice": [" > ".join(filter(None, (each.text, each.command, each.see))) for each in one.advice],
        }
        for one in found.findings
    ]
    told = found.to_dict()
    bounds = f"{'' if told['low_bandwidth'] else 'not '}low, {'' if told['worth_tuning'] else 'not '}worth tuning"
    parts = {
        "conclusion": found.conclusion,
        "bandwidth": bounds,
        "findings": findings,
        "notes": found.notes,
        "beyond limits": found.beyond,
    }
    if found.critical_files:
        parts["longest"] = f"{found.critical_files[0][0]}, {found.critical_files[0][1].text()}"
    return {name: part for name, part in parts.items() if part}


def in_mpi(
    seen: Activity, row: dict[str, Any], *others: dict[str, Any], opening: float = 0.0, **ways: tuple[float, float]
) -> Activity:
    """Return what a log says, with the time of ranks in MPI-IO calls on a file (s).

    Parameters
    ----------
    seen : the rest of what it says.
    row, others : of that file, and of all others.
    opening : of a rank in calls that open and close.
    ways : read, write: of an average rank and of the slowest one in calls that do so.
    """
    files = Files(pa.Table.from_pylist([row, *others]), "write")
    below = of_rows(files, seen.processes, seen.run_time).records if seen.ledger is None else seen.ledger.records
    asked = records.empty(1)
    asked["layer"], asked["file"] = records.LAYERS.index("MPI-IO"), row["file_id"]
    asked["rank"], asked["ranks"], asked["slowest"] = records.ALL, seen.processes, 0
    for way, (mean, slowest) in {**ways, "meta": (opening, opening)}.items():
        asked["seconds"][:, records.KINDS.index(way)] = seen.processes * mean
        asked["slowest_s"] += max(mean, slowest)
    seen.ledger = Ledger(np.concatenate([below, asked]), seen.processes, seen.run_time, traced=seen.traced())
    return seen
