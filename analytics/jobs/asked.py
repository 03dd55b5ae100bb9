"""The sources of a site about a period: all columns of a summary but those of the program.

Problem. A job's log and a measurement of the bench are joined to the same sources by the same questions.

Algorithm. The period is asked of the servers, the scheduler and the network; the state of the file system is that of
the last sample before its begin. Each answer fills its columns (:mod:`mpiio_ext.analytics.jobs.row`).

Guarantees. Facts without an answer have no column, and a note has the reason.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from mpiio_ext.analytics.jobs import row
from mpiio_ext.analytics.jobs.table import Slice
from mpiio_ext.analytics.tools.moments import Period
from mpiio_ext.analytics.tools.series import Edges
from mpiio_ext.analytics.tools.system import FileSystem, Note, System
from mpiio_ext.analytics.tools.traffic import LMT_STEP_S

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
    others, wrong = system.jobs(period)
    notes += wrong
    job, place = None, None
    if job_id is None:
        notes.append(Note("jobs", "missing", "the results do not name the scheduler's job of the bench"))
    else:
        job, wrong = system.job(job_id, period)
        notes += wrong
        place, wrong = system.placement(job_id, period)
        notes += wrong
    columns = row.servers(moved) | row.health(period.start, full, failed, disks) | row.others(others, job)
    used = [*moved.sources, *(each.source for each in (full, failed, disks) if each is not None)]
    used += (["jobs"] if others is not None or job else []) + (["topology"] if place is not None else [])
    return Answer(
        columns=columns | row.topology(place),
        notes=tuple(dict.fromkeys(notes)),
        series=moved.series(),
        sources=tuple(dict.fromkeys(used)),
    )
