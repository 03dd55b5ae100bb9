"""The scheduler's facts, applied to the jobs that have announced themselves.

Problem.    A job that has ended keeps its I/O nodes for a lease; one that has begun has none until its first file, and
            then all others are moved; older libraries do not say on how many nodes they run.
Algorithm.  Announcements carry the scheduler's job ID. Those of a job that has ended, or waits again, count no more, at
            once. A running job that has not announced itself is counted for `reserve_s` from when it was first seen,
            with the scheduler's number of nodes and processes, as "slurm-ID"; its own announcement replaces this.
Guarantees. The scheduler only adds: without what it says, or when it is old, leases decide as ever. Nothing that it
            says keeps a silent job alive, and only a state that it gives ends a job's claim: one that its lists do not
            name goes on for as long as it touches its announcement. A state that is not known changes nothing, and is
            reported once. The folder is
            read when it has changed, and every few seconds.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from mpiio_ext.delegates.arbiter.announcements import Announcement
from mpiio_ext.delegates.arbiter.slurm import scheduled
from mpiio_ext.delegates.arbiter.slurm.joblist import SlurmJob

#: The time of a folder may be coarser than two changes are apart.
_AGAIN_S = 2.0
_MOST_REPORTED = 1024


class Scheduler:
    """The facts from the scheduler.

    Parameters
    ----------
    folder : the arbiter's
    report : receives lines for people
    """

    def __init__(self, folder: Path, report: Callable[[str], None]) -> None:
        self._folder, self._report = folder, report
        self._seen: int | None = None
        self._read_at = float("-inf")
        self._jobs: list[SlurmJob] = []
        self._reported: set[str] = set()
        self._first: dict[str, float] = {}  # running job -> when it was seen first, s
        self._announced: set[str] = set()  # running jobs that have announced themselves, now or before

    def _look(self) -> None:
        path = self._folder / scheduled.FOLDER
        try:
            changed = path.stat().st_mtime_ns
        except FileNotFoundError:
            self._jobs = []
            return
        now = time.monotonic()
        if changed == self._seen and now - self._read_at < _AGAIN_S:
            return
        self._jobs, others = scheduled.read_all(self._folder)
        self._seen, self._read_at = changed, now
        for name in others:
            self._once(f"{path / name}: no scheduler's record of a job; left out")
        for job in self._jobs:
            if job.phase == "unknown":
                self._once(f"{path / job.id}: state {job.state!r} is not known; left out")

    def _once(self, line: str) -> None:
        if line not in self._reported and len(self._reported) < _MOST_REPORTED:  # users choose the names of jobs
            self._reported.add(line)
            self._report(line)

    def apply(self, announced: Sequence[Announcement], reserve_s: float, io_nodes: int) -> list[Announcement]:
        """Return the jobs that count, those that have announced themselves first.

        Parameters
        ----------
        announced : jobs that live
        reserve_s : how long a job that has not announced itself is counted; 0 = not at all
        io_nodes : in the pool

        Raises
        ------
        OSError
            The file system fails.
        """
        self._look()
        by_id = {job.id: job for job in self._jobs}
        living = [
            self._completed(job, by_id.get(job.scheduler_job))
            for job in announced
            if not self._has_ended(job, by_id.get(job.scheduler_job))
        ]
        running = {job.id for job in self._jobs if job.phase == "running"}
        self._announced = (self._announced & running) | {job.scheduler_job for job in living}
        now = time.monotonic()
        self._first = {job: self._first.get(job, now) for job in running}
        waited = [
            job
            for job in self._jobs
            if job.id in running and job.id not in self._announced and now - self._first[job.id] < reserve_s
        ]
        return [*living, *(_reserved(job, io_nodes) for job in waited)]

    def _has_ended(self, announcement: Announcement, job: SlurmJob | None) -> bool:
        if job is None or job.phase not in ("ended", "waiting"):
            return False
        self._once(f"{announcement.job}: job {job.id} of the scheduler is {job.state}")
        return True

    def _completed(self, announcement: Announcement, job: SlurmJob | None) -> Announcement:
        """Return the announcement with the compute nodes that its library left out."""
        if announcement.nodes is not None or job is None or job.nodes is None:
            return announcement
        return dataclasses.replace(announcement, nodes=job.nodes)


def _reserved(job: SlurmJob, io_nodes: int) -> Announcement:
    """Return the expected announcement of a job, as far as the scheduler knows it."""
    return Announcement(
        job=f"slurm-{job.id}",
        host="-",
        pid=1,
        boot="",
        processes=0,
        ranks=job.processes or job.nodes or 1,
        nodes=job.nodes,
        delegates=io_nodes,
        program=job.name,
        scheduler_job=job.id,
        applied=0,
        touched_ns=0,
        age_s=0.0,
    )
