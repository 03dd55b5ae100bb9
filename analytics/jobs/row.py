"""The answers of the tools, as the scalars of a job's row.

Sums, means and extremes are defined as in TOKIO's published tables: rates are of all targets together, step by step;
loads and rates of operations are of single servers. Means and extremes leave out a step in which no server has a value;
``fs_frac_missing`` is the share of the values (target, step) of the period that no source has.

Source: pytokio, summarize_job and tools; tokio-abcutils, core (coverage factors).

The facts of a site's sources about a period: all columns of a summary but those of the program.

Problem. A job's log and a measurement of the bench need the same facts from the same sources.

Algorithm. The servers, the scheduler and the network are queried for the period; the state of the file system is that
of the last sample before its begin. Each answer fills its columns (:mod:`mpiio_ext.analytics.jobs.row`).

Guarantees. Facts without an answer have no column, and a note has the reason.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mpiio_ext.analytics.jobs.columns import OPERATIONS
from mpiio_ext.analytics.jobs.coverage import COVERAGE, MOST_COVERAGE
from mpiio_ext.analytics.jobs.table import Slice
from mpiio_ext.analytics.sources.topology import JobRadius
from mpiio_ext.analytics.tables.arrays import Numbers
from mpiio_ext.analytics.tools.health import DiskStates, Failovers, Fullness, Target
from mpiio_ext.analytics.tools.moments import Period
from mpiio_ext.analytics.tools.others import Others
from mpiio_ext.analytics.tools.series import Edges, Series
from mpiio_ext.analytics.tools.system import FileSystem, Note, System
from mpiio_ext.analytics.tools.traffic import LMT_STEP_S, Traffic
from mpiio_ext.common.units import digits_text

#: Share of the servers' values, or of the list of jobs, that may be missing for a coverage factor. What is known is too
#: small by as much then, and a factor up to 1.2 times too large: the same excess.
MOST_MISSING = 1 - 1 / MOST_COVERAGE
_GIB = 2.0**30
#: Disks that are not as they should be of which a row has the names.
_MOST_DISKS = 8


def servers(traffic: Traffic) -> dict[str, Any]:
    """Return the columns ``fs_`` of what servers moved."""
    row: dict[str, Any] = {}
    for way, series in (("read", traffic.read), ("written", traffic.written)):
        if series is not None:
            row |= _bytes(way, series)
    for kind, load in traffic.cpu.items():
        if kind in ("oss", "mds"):
            row[f"fs_ave_{kind}_cpu"] = _mean_of_means(load.values)
            row[f"fs_max_{kind}_cpu"] = float(np.nanmax(load.values))
    for name in OPERATIONS:
        if name in traffic.operations:
            row |= _operations(name, traffic.operations[name])
    both = [series for series in (traffic.read, traffic.written) if series is not None]
    if both:
        gone = [series.missing for series in both if series.missing is not None]
        row["fs_frac_missing"] = sum(gone) / len(gone) if gone else None
        row["fs_step_s"] = both[0].step_s
        row["fs_targets"] = len(set().union(*(series.names for series in both)))
    return row


def _bytes(way: str, series: Series) -> dict[str, Any]:
    rates = series.rates()
    rates = rates[np.isfinite(rates)]
    total = series.total()
    row: dict[str, Any] = {f"fs_frac_zero_{way}": series.zeros}
    numbers: list[tuple[str, str, float | None]] = [("tot", "", total)]
    if len(rates):
        numbers += [
            (how, "_per_sec", float(of(rates))) for how, of in (("ave", np.mean), ("max", np.max), ("min", np.min))
        ]
    for how, per, value in numbers:
        row[f"fs_{how}_bytes_{way}{per}"] = value
        row[f"fs_{how}_gibs_{way}{per}"] = None if value is None else value / _GIB
    return row


def _mean_of_means(values: Numbers) -> float | None:
    """Return the mean over the columns that have values of their means."""
    known = np.isfinite(values)
    columns = known.any(axis=0)
    if not columns.any():
        return None
    means = np.nansum(values, axis=0)[columns] / known.sum(axis=0)[columns]
    return float(means.mean())


def _operations(name: str, series: Series) -> dict[str, Any]:
    rates = series.values / series.step_s
    return {
        f"fs_tot_{name}_ops": series.total(),
        f"fs_ave_{name}_ops_per_sec": _mean_of_means(rates),
        f"fs_max_{name}_ops_per_sec": float(np.nanmax(rates)),
        f"fs_min_{name}_ops_per_sec": float(np.nanmin(rates)),
    }


def health(
    when: float, full: Fullness | None, failed: Failovers | None, disks: DiskStates | None = None
) -> dict[str, Any]:
    """Return the columns ``fshealth_`` of the state before a moment."""
    row: dict[str, Any] = {}
    if full is not None or failed is not None or disks is not None:
        row["fshealth_ost_requested_timestamp"] = when
    if full is not None:
        row |= {
            "fshealth_ost_count": len(full.targets),
            "fshealth_ost_avg_full_kib": full.mean_kib,
            "fshealth_ost_avg_full_pct": full.percent,
            "fshealth_ost_actual_timestamp": full.time,
            "fshealth_ost_next_timestamp": full.next_time,
            "fshealth_ost_fullness_lead_secs": full.lead_s,
            **_target("least", full.least),
            **_target("most", full.most),
        }
    if failed is not None:
        row |= {
            "fshealth_ost_failures_lead_secs": failed.lead_s,
            "fshealth_ost_overloaded_oss_count": len(failed.overloaded),
            "fshealth_ost_overloaded_ost_count": failed.overloaded_osts,
            "fshealth_ost_overloaded_pct": 100.0 * failed.overloaded_osts / failed.osts,
            "fshealth_ost_avg_overloaded_ost_per_oss": failed.osts_per_oss,
            "fshealth_ost_avg_overloaded_overload_factor": failed.factor,
        }
    if disks is not None:
        faults = [f"{disk} ({words})" for disk, words in list(disks.words.items())[:_MOST_DISKS]]
        if len(disks.words) > _MOST_DISKS:
            faults.append(f"and {len(disks.words) - _MOST_DISKS:,} more")
        row |= {
            "fshealth_disk_states_lead_secs": disks.lead_s,
            "fshealth_disk_count": disks.disks,
            "fshealth_disk_down_count": len(disks.down),
            "fshealth_disk_not_ready_count": len(disks.not_ready),
            "fshealth_disk_faults": ", ".join(faults) or None,
        }
    return row


def _target(which: str, target: Target) -> dict[str, Any]:
    return {
        f"fshealth_ost_{which}_full_name": target.name.rpartition("-" if "-OST" in target.name else "\n")[2],
        f"fshealth_ost_{which}_full_id": target.index,
        f"fshealth_ost_{which}_full_kib": target.used_kib,
        f"fshealth_ost_{which}_full_pct": target.percent,
    }


def others(found: Others | None, job: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the columns ``jobsdb_``."""
    row: dict[str, Any] = {"jobsdb_nodes": (job or {}).get("node_count")}
    if found is not None:
        row |= {
            "jobsdb_concurrent_jobs": found.jobs.num_rows,
            "jobsdb_concurrent_nodes": found.nodes,
            "jobsdb_concurrent_nodehrs": found.node_hours,
            "jobsdb_frac_missing": found.missing,
        }
    return row


def topology(found: JobRadius | None) -> dict[str, Any]:
    """Return the columns ``topology_``."""
    if found is None:
        return {}
    return {
        "topology_job_min_radius": found.least,
        "topology_job_max_radius": found.greatest,
        "topology_job_avg_radius": found.mean,
    }


def coverage(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the coverage factors of a row: the job's share of what the servers, or all jobs, did.

    None where more than `MOST_MISSING` of that is missing.
    """
    nodes, seconds = row.get("jobsdb_nodes"), row.get("darshan_walltime")
    hours = nodes * seconds / 3600.0 if nodes and seconds else None
    of_servers, of_jobs = row.get("fs_frac_missing") or 0.0, row.get("jobsdb_frac_missing") or 0.0
    shares = {
        name: (_sum(row, mine), _sum(row, whole)) if of_servers <= MOST_MISSING else (None, None)
        for name, (mine, whole) in COVERAGE.items()
        if name != "ops"
    }
    shares["nodehrs"] = (hours, row.get("jobsdb_concurrent_nodehrs")) if of_jobs <= MOST_MISSING else (None, None)
    return {
        f"coverage_factor_{name}": float(part) / float(whole) if part is not None and whole else None
        for name, (part, whole) in shares.items()
    }


def _sum(row: Mapping[str, Any], names: Sequence[str]) -> float | None:
    known = [value for name in names if (value := row.get(name)) is not None]
    return sum(known) if len(known) == len(names) else None


def doubts(row: Mapping[str, Any]) -> list[Note]:
    """Return notes about a row whose servers' values are there in part, or whose coverage factors cannot be."""
    found = []
    gone = row.get("fs_frac_missing") or 0.0
    if gone > 0:
        more = "; too much for coverage factors" if gone > MOST_MISSING else ""
        found.append(
            Note(source="servers", status="missing", what=f"no value for {gone:.3%} of the targets and steps{more}")
        )
    above = [
        f"{name} {digits_text(value)}"
        for name, value in row.items()
        if name.startswith("coverage_factor_") and value is not None and value > MOST_COVERAGE
    ]
    if above:
        found.append(
            Note(
                source="servers",
                status="missing",
                what=f"{', '.join(above)}: a job cannot do more than all did; samples are missing, a clock, unit "
                "or file system is wrong, or caches answered",
            )
        )
    return found


#: Seconds behind the end of a job that belong to its period: servers still write their caches then.
TAIL_S = LMT_STEP_S


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer:
    """The answers of the sources about a period.

    Attributes
    ----------
    columns : mapping of str to value
        Of the summary: ``fs_``, ``fshealth_``, ``jobsdb_``, ``topology_``.
    notes : what is missing or damaged.
    series : of the servers.
    sources : names of those that have said something.
    """

    columns: Mapping[str, Any]
    notes: tuple[Note, ...]
    series: Slice
    sources: tuple[str, ...]


def ask(system: System, chosen: FileSystem, period: Period, edges: Edges, job_id: int | None) -> Answer:
    """Return the answers of the sources about a period.

    Parameters
    ----------
    chosen : whose servers are asked.
    edges : {"begin", "touch", "share"}
    job_id : of the scheduler's job that ran; None: not known.
    """
    moved, notes = system.traffic(chosen, period, edges)
    full, wrong = system.fullness(chosen, period.start)
    notes += wrong
    failed, wrong = system.failovers(chosen, period.start)
    notes += wrong
    disks, wrong = system.disk_states(chosen, period.start)
    notes += wrong
    beside, wrong = system.jobs(period)
    notes += wrong
    job, place = None, None
    if job_id is None:
        notes.append(
            Note(source="jobs", status="missing", what="the results do not name the scheduler's job of the bench")
        )
    else:
        job, wrong = system.job(job_id, period)
        notes += wrong
        place, wrong = system.placement(job_id, period)
        notes += wrong
    columns = servers(moved) | health(period.start, full, failed, disks) | others(beside, job)
    used = [*moved.sources, *(each.source for each in (full, failed, disks) if each is not None)]
    used += (["jobs"] if beside is not None or job else []) + (["topology"] if place is not None else [])
    return Answer(
        columns=columns | topology(place),
        notes=tuple(dict.fromkeys(notes)),
        series=moved.series(),
        sources=tuple(dict.fromkeys(used)),
    )
