"""The scheduler's facts, applied to the jobs that have announced themselves.

Problem.    A job that has ended owns its I/O nodes until the end of a lease. A job that has begun has no I/O nodes
            until it opens its first file, and then the arbiter moves all other jobs. Older libraries do not announce on
            how many nodes they run.
Algorithm.  Announcements contain the scheduler's job ID. If that job has ended, or waits again, its announcements count
            no more, at once. A running job without an announcement counts as "slurm-ID", with the scheduler's numbers
            of nodes and processes, for `reserve_s` after the arbiter has first read of it. Its own announcement
            replaces that entry.
Guarantees. The scheduler's facts only add to the leases: without them, or if they are old, the leases decide alone. No
            fact extends the claim of a job that does not touch its announcement. Only a state that the scheduler
            reports ends a claim; a job that is missing in the scheduler's lists counts while it touches its
            announcement. The arbiter reports an unknown state once, and changes nothing for it. The arbiter reads the
            folder when it has changed, and every few seconds.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from mpiio_ext.delegates.arbiter.announcements import Announcement
from mpiio_ext.delegates.arbiter.slurm import scheduled
from mpiio_ext.delegates.arbiter.slurm.joblist import SlurmJob

#: Within this time, two changes may have the same modification time: the folder is read again.
_AGAIN_S = 2.0
_MOST_REPORTED = 1024


class Scheduler:
    """The facts from the scheduler.

    Parameters
    ----------
    folder : of the arbiter
    report : prints a line for people
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
        """Return the jobs that count: first the jobs that have announced themselves.

        Parameters
        ----------
        announced : announcements of jobs whose lease has not ended
        reserve_s : how long a job that has not announced itself counts; 0 = not at all
        io_nodes : number of I/O nodes in the pool

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
    """Return the announcement to expect of a job, from the scheduler's facts."""
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
