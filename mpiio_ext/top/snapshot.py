"""All facts of a job at one moment: its ranks and files, its delegates, its grant by the arbiter.

Guarantees. If a rank's page shows that the job has delegates, `mpiio_ext.delegates` reads them. The arbiter's map is on
a file system that may hang: a thread reads it, and the last one that came is shown.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpiio_ext.common.commands import FAILED
from mpiio_ext.common.segments import PROC
from mpiio_ext.errors import MpiioExtError
from mpiio_ext.top import jobs
from mpiio_ext.top.jobs import Job, Rank, Rates, files_of
from mpiio_ext.top.names import program_of
from mpiio_ext.top.pages import Counts

#: The line if there is no job at all.
NOTHING = (
    "no MPI program of this user with this library is running on this node; "
    "mpiio-ext doctor -- ./app checks whether the library reaches a program"
)
#: Most jobs that the message for an unknown job lists.
_MOST_TOLD = 10

if TYPE_CHECKING:
    from mpiio_ext.delegates._status import Observation
    from mpiio_ext.delegates._status import Watch as DelegateWatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Arbitrated:
    """The arbiter's grant to a job: its folder, the map's generation, I/O nodes by index; or why it is not known."""

    folder: str
    generation: int = 0
    nodes: tuple[int, ...] | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A job with its delegates on this node, and its arbiter's grant (None: it follows no arbiter)."""

    job: Job
    delegates: tuple[Observation, ...] = ()
    arbiter: Arbitrated | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Jobs of this user on this node; `problems` are sentences about unreadable parts."""

    host: str
    sampled_unix_s: float
    jobs: tuple[Watched, ...]
    problems: tuple[str, ...] = ()

    def only(self, name: str | None) -> Snapshot:
        """Return the same of the jobs that a number or else a word means; None: of all."""
        if name is None:
            return self
        kept = tuple(each for each in self.jobs if each.job.is_numbered(name))
        return replace(self, jobs=kept or tuple(each for each in self.jobs if each.job.has_word(name)))

    @property
    def ended_unix_s(self) -> float | None:
        """When the last of the jobs was found to have ended; None if one runs, or there is no job."""
        ends = [each.job.ended_unix_s for each in self.jobs]
        return None if None in ends else max((end for end in ends if end is not None), default=None)


class _Maps:
    """The maps of arbiters' folders, read beside."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Arbitrated] = {}
        self._reading: set[tuple[str, str]] = set()

    def of(self, folder: str, job: str) -> Arbitrated:
        """Return the last reading; begin to read anew."""
        if (folder, job) not in self._reading:
            self._reading.add((folder, job))
            reader = threading.Thread(target=self._read, args=(folder, job), daemon=True)
            reader.start()
            reader.join(0.1)
        return self._known.get((folder, job)) or Arbitrated(folder=folder, problem="the map is being read")

    def _read(self, folder: str, job: str) -> None:
        from mpiio_ext.delegates.arbiter import mapfile

        try:
            found = mapfile.read(Path(folder))
            nodes = found.jobs.get(job)
            problem = "" if nodes is not None else "the map does not name the job: all its delegates serve it"
            new = Arbitrated(folder=folder, generation=found.generation, nodes=nodes, problem=problem)
        except (OSError, mapfile.MapError) as error:
            new = Arbitrated(folder=folder, problem=str(error))
        finally:
            self._reading.discard((folder, job))
        self._known[folder, job] = new


class Watch:
    """Looks at everything again and again."""

    def __init__(self, proc: Path = PROC) -> None:
        self._jobs = jobs.Watch(proc)
        self._delegates: DelegateWatch | None = None
        self._maps = _Maps()
        self._no_delegates = ""

    def look(self) -> Snapshot:
        """Return the present snapshot."""
        import os

        found = self._jobs.look()
        rows = self._look_at_delegates() if any(job.first.service for job in found) else ()
        problems = [
            f"{count} process{'es' * (count != 1)} could not be read: {reason}"
            for reason, count in sorted(self._jobs.unreadable.items())
        ]
        problems += [self._no_delegates] if self._no_delegates else []
        return Snapshot(
            host=os.uname().nodename,
            sampled_unix_s=time.time(),
            jobs=tuple(self._with_delegates(job, rows) for job in found),
            problems=tuple(problems),
        )

    def _look_at_delegates(self) -> Sequence[Observation]:
        """Return the rows of `mpiio-ext delegates status`, which needs the library."""
        try:
            from mpiio_ext.delegates import _status
        except (ImportError, OSError) as error:
            self._no_delegates = f"delegates cannot be inspected: {error}"
            return ()
        self._delegates = self._delegates or _status.Watch()
        return self._delegates.look()

    def _with_delegates(self, job: Job, rows: Sequence[Observation]) -> Watched:
        page = job.first
        if not page.service:
            return Watched(job=job)
        arbiter = self._maps.of(page.arbiter, page.service) if page.arbiter else None
        return Watched(
            job=job, delegates=tuple(row for row in rows if row.status.group == page.service), arbiter=arbiter
        )


class NoJobError(MpiioExtError, LookupError):
    """There is no job of the requested name; the message lists the jobs.

    Attributes
    ----------
    seen : what was seen, without a job.
    """

    exit_status = FAILED

    def __init__(self, name: str, seen: Snapshot) -> None:
        there = [f"{each.job.name} ({each.job.called})" for each in seen.jobs[-_MOST_TOLD:]]
        more = len(seen.jobs) - len(there)
        others = f"there are {', '.join(there)}{f' and {more} more' if more else ''}" if there else NOTHING
        super().__init__(f"no job {name} of this user on this node: {others}")
        self.seen = replace(seen, jobs=())


class Follower:
    """The requested jobs (None: all jobs), read again and again; the last readings of ended ones stay."""

    def __init__(self, watch: Watch, name: str | None) -> None:
        self._watch, self.name = watch, name
        self._last: tuple[Watched, ...] = ()

    def look(self) -> Snapshot:
        """Look once.

        Raises
        ------
        NoJobError
            There has been no such job yet.
        """
        seen = self._watch.look()
        asked = seen.only(self.name)
        if self.name is not None and not asked.jobs and not self._last:
            raise NoJobError(self.name, seen)
        self._last = asked.jobs or self._last
        return replace(asked, jobs=self._last)

    def is_over(self, seen: Snapshot) -> bool:
        """Return whether all jobs have ended; with all jobs selected, more may come at any time."""
        return self.name is not None and seen.ended_unix_s is not None


# ---- for programs ----------------------------------------------------------------------------------------------------


def _numbers(total: Counts, moved: Rates) -> dict[str, Any]:
    return {
        "read_bytes": total.read_bytes,
        "written_bytes": total.written_bytes,
        "reads": total.reads,
        "writes": total.writes,
        "read_mb_per_s": round(moved.read_bytes_per_s / 1e6, 3),
        "written_mb_per_s": round(moved.written_bytes_per_s / 1e6, 3),
        "reads_per_s": round(moved.reads_per_s, 3),
        "writes_per_s": round(moved.writes_per_s, 3),
    }


def _rank(rank: Rank) -> dict[str, Any]:
    page = rank.page
    return {
        "rank": page.rank,
        "pid": rank.pid,
        "state": rank.state,
        "files_open": page.open,
        "files_opened": page.opened,
        "files_not_listed": page.unlisted,
        **_numbers(page.total, rank.rates),
    }


def _job(watched: Watched) -> dict[str, Any]:
    job, page = watched.job, watched.job.first
    found: dict[str, Any] = {
        "job": job.name,
        "scheduler_job": page.scheduler_job or None,
        "program": program_of(page.command, page.program),
        "command": page.command,
        "ranks": page.ranks,
        "ranks_here": len(job.ranks),
        "started_unix_s": round(page.started_unix_s, 3),
        "interval_s": round(job.rates.interval_s, 3),
        **_numbers(job.total, job.rates),
        "ranks_seen": [_rank(rank) for rank in job.ranks],
        "files": [
            {"path": file.path, "ranks": file.ranks, **_numbers(file.total, file.rates)} for file in files_of(job.ranks)
        ],
        "delegates": [],
        "arbiter": None,
    }
    if watched.delegates:
        from mpiio_ext.delegates._status import as_json

        found["delegates"] = as_json(watched.delegates)["delegates"]
    if watched.arbiter is not None:
        given = watched.arbiter
        found["arbiter"] = {
            "folder": given.folder,
            "generation": given.generation,
            "problem": given.problem or None,
            "nodes": None if given.nodes is None else list(given.nodes),
        }
    return found


def as_json(seen: Snapshot) -> dict[str, Any]:
    """Return an object for scripts: every name ends with its unit unless it counts things that it names."""
    return {
        "host": seen.host,
        "sampled_unix_s": round(seen.sampled_unix_s, 3),
        "problems": list(seen.problems),
        "jobs": [_job(watched) for watched in seen.jobs],
    }
