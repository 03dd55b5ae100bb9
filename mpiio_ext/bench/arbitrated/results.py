"""Bandwidth of the jobs under each policy: JSON, and the figure beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mpiio_ext.common.files import write_whole
from mpiio_ext.common.plots import svg_file
from mpiio_ext.delegates.arbitration.curves import Curve
from mpiio_ext.delegates.arbitration.store import plain
from mpiio_ext.report.arbitration import FILE, FORMAT, ONE_RUN, chart, parsed


def document(
    runs: Sequence[Mapping[str, Any]],
    curves: Mapping[str, Curve],
    configuration: Mapping[str, Any],
    environment: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the results as plain data; `runs` as `run_policy` returns them."""
    return {
        "what": "arbitration run",
        "format": FORMAT,
        "units": {"_mb_per_s": "MB/s (10^6 bytes)", "_bytes": "bytes", "_s": "s"},
        "environment": dict(environment),
        "configuration": dict(configuration),
        "curves": {name: plain(curve) for name, curve in curves.items()},
        "policies": {
            str(run["policy"]): {
                **{key: value for key, value in run.items() if key != "policy"},
                "bandwidth_mb_per_s": _together(run),
            }
            for run in runs
        },
    }


def _together(run: Mapping[str, Any]) -> float:
    """Return the bytes of all jobs a second, in MB/s, while every job wrote; 0 if they never wrote at the same time.

    The window has whole slots of each job: a slot in which a job begins or ends is partly idle.
    """
    jobs = run["jobs"].values()
    begin, end = max(job["begin_s"] for job in jobs), min(job["end_s"] for job in jobs)
    moved = 0.0
    for job in jobs:
        length = job["slot_s"]
        sizes = [s["data_bytes"] for s in job["slots"] if begin <= s["time_s"] and s["time_s"] + length <= end]
        moved += sum(sizes) / 1e6 / (len(sizes) * length) if sizes else 0.0
    return moved


def lines(found: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each policy and job, and one on what they cannot prove."""
    out = []
    for policy, run in parsed(found).policies.items():
        out += [
            f"{policy.upper()}: {name}: {job.bandwidth_mb_per_s:,.0f} MB/s, I/O nodes {run.io_nodes(name)}"
            for name, job in run.jobs.items()
        ]
        out.append(f"{policy.upper()}: {run.bandwidth_mb_per_s:,.0f} MB/s while all jobs wrote")
    return [*out, ONE_RUN]


def write(folder: Path, found: Mapping[str, Any]) -> list[Path]:
    """Write arbitration.json and arbitration.svg into a folder; whole.

    Raises
    ------
    OSError
        The file system fails.
    """
    paths = []
    for name, text in (("arbitration.svg", svg_file(chart(parsed(found)))), (FILE, json.dumps(found, indent=1) + "\n")):
        write_whole(folder / name, text)
        paths.append(folder / name)
    return paths
