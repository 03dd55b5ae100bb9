"""The arbiter itself: it reads the announcements, applies the policy, and writes the map.

Problem. Jobs come and go. I/O nodes should follow at once, and no job may depend on the life of the arbiter.
Algorithm. A step reads settings, announcements and the map. If the jobs or the settings differ from those of the last
decision, the policy decides the numbers, `placement` chooses the I/O nodes, and the arbiter writes the new map if it
differs.
Guarantees. All state lies in the folder: an arbiter that starts again continues with the next generation, and jobs
retain their nodes. Generations only rise, also when the map has been lost: jobs say which one they follow. A map that
could not be written is written with the next step. Where the policy finds no allocation SIZE decides. Under a policy
that does not reallocate running jobs keep their number, until the settings change. One arbiter at a time per folder. A
job that has expired stays expired, also for the next arbiter, until it speaks again. A job that was silent for longer
than the lease when an arbiter begins has a few seconds to speak: by whose clock a file is stamped depends on the file
system. `announcements` decides which jobs the arbiter believes; `shares` limits what one user can take from another.
Each refusal is one line.
Source. Arbitration paper, Sections 3 and 4.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import os
import stat
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from mpiio_ext.delegates.arbiter import announcements, mapfile, settings
from mpiio_ext.delegates.arbiter.announcements import Announcement, Refusal
from mpiio_ext.delegates.arbiter.expired import Expired
from mpiio_ext.delegates.arbiter.lines import Lines
from mpiio_ext.delegates.arbiter.mapfile import Map, MapError
from mpiio_ext.delegates.arbiter.placement import place, place_beside_shared
from mpiio_ext.delegates.arbiter.programs import Programs
from mpiio_ext.delegates.arbiter.settings import Settings
from mpiio_ext.delegates.arbiter.shares import shared_out
from mpiio_ext.delegates.arbiter.slurm.apply import Scheduler
from mpiio_ext.delegates.arbitration import Size
from mpiio_ext.delegates.arbitration.jobs import Grant, Job, Machine
from mpiio_ext.errors import ArgumentError, MpiioExtError

#: For which a job that seems dead to an arbiter that begins is waited for, s; jobs speak every second.
_DOUBT_S = 3.0
#: Jobs that a line of a generation names.
_MOST_NAMED = 32
#: A job may say that it follows a map so many generations ahead of what this arbiter knows.
_AHEAD = 1_000_000


class BusyError(MpiioExtError):
    """Another arbiter serves the folder."""


class Arbiter:
    """Serves one folder.

    Parameters
    ----------
    folder : on a file system that all jobs see; made if it is not there
    first : settings to begin with; None: those in the folder
    report : receives lines for people

    Raises
    ------
    BusyError
        Another arbiter serves the folder.
    ArgumentError
        There are no settings, or wrong ones.
    OSError
        The folder cannot be made or written.
    """

    def __init__(self, folder: Path, first: Settings | None = None, report: Callable[[str], None] = print) -> None:
        self._folder, self._report = folder, report
        (folder / "jobs").mkdir(parents=True, exist_ok=True)
        self._lock = _lock(folder)
        for path, what in ((folder, "replace the map"), (folder / "jobs", "replace announcements of others")):
            if path.stat().st_mode & (stat.S_IWOTH | stat.S_ISVTX) == stat.S_IWOTH:
                report(f"{path}: every user can {what}: chmod {'1777' if path != folder else '755'} {path}")
        known = (folder / "settings.json").exists()
        #: The number of every job is to be decided, also where the policy does not reallocate.
        self._anew = first is not None and known and _before(folder) != first
        if first is not None:
            settings.write(folder, first)
        elif not known:
            raise ArgumentError(f"{folder} has no settings.json: give --io-nodes")
        self._settings = settings.read(folder)
        self._settings_seen: int | None = (folder / "settings.json").stat().st_mtime_ns
        self._programs = Programs(self._settings, report)
        self._map = self._last_map()
        self._decided: object = None
        self._strange: dict[str, Refusal] = {}
        self._named: dict[str, Refusal] = {}
        self._silent: dict[str, tuple[int, float]] = {}  # job -> its file's time, and since when that stays, s
        self._expired = Expired(folder)
        self._began_ns: int | None = announcements.now_ns(folder)  # None: the first look is over
        self._looked = time.monotonic()
        self._scheduler = Scheduler(folder, report)
        self._lines = Lines(report, f"{folder / 'jobs'}")

    def __enter__(self) -> Arbiter:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()

    @property
    def map(self) -> Map:
        """The map in force."""
        return self._map

    def _last_map(self) -> Map:
        try:
            return mapfile.read(self._folder)
        except MapError as error:
            # Readers keep to the generation that they have: go on well behind anything that was ever written.
            self._report(f"{self._folder / 'map'}: {error}; beginning anew")
            return Map(int(time.time()))

    def step(self) -> bool:
        """Look, and decide if something has changed. Returns whether a new map was written.

        Raises
        ------
        OSError
            The folder cannot be read or written; the map in force stays.
        """
        self._follow_settings()
        jobs = self._jobs()
        reason = (self._settings, [(a.job, a.delegates, a.ranks, a.nodes) for a in jobs])
        generation = max([self._map.generation, *(a.applied for a in jobs)])
        if reason == self._decided and generation == self._map.generation:
            return False
        nodes = self._place(jobs)
        self._anew = False
        if nodes == self._map.jobs and self._map.generation == generation > 0:
            self._decided = reason
            return False
        new = Map(generation + 1, nodes)
        mapfile.write(self._folder, new)
        self._map, self._decided = new, reason
        lines = [f"{job} {','.join(map(str, has))}" for job, has in nodes.items()]
        lines[_MOST_NAMED:] = [f"{len(lines) - _MOST_NAMED} more"] if len(lines) > _MOST_NAMED else []
        self._report(f"generation {new.generation}: {', '.join(lines) or 'no jobs'}")
        return True

    def _follow_settings(self) -> None:
        path = self._folder / "settings.json"
        try:
            seen = path.stat().st_mtime_ns if path.exists() else None
            if seen == self._settings_seen:
                return
            self._settings_seen = seen
            found = settings.read(self._folder)
            if found != self._settings:
                self._settings, self._anew = found, True
                self._programs = Programs(found, self._report)
        except (ArgumentError, OSError) as error:
            self._report(f"{error}; the settings before it stay in force")

    def _jobs(self) -> list[Announcement]:
        now = time.monotonic()
        found, refused = announcements.look(self._folder, self._expired.times)
        found = self._counted(found, refused)
        self._name(refused)
        silent_s = {job.job: self._silence(job, now - self._looked) for job in found}
        gone = {job.job for job in found if silent_s[job.job] > self._settings.lease_s or announcements.is_gone(job)}
        self._expire([job for job in found if job.job in gone], silent_s)
        living = [job for job in found if job.job not in gone]
        self._looked, self._began_ns = now, None
        for name in set(self._silent) - {job.job for job in found}:
            del self._silent[name]
        return self._scheduler.apply(living, self._settings.reserve_s, self._settings.io_nodes)

    def _expire(self, dead: Sequence[Announcement], silent_s: Mapping[str, float]) -> None:
        new = set(self._expired.add({job.job: job.touched_ns for job in dead}))
        dead = [job for job in dead if job.job in new]
        for job in dead:
            with contextlib.suppress(OSError):  # another user's, perhaps
                (self._folder / "jobs" / job.job).unlink()
        self._lines.report(
            (job.uid, f"{job.job}: expired after {silent_s[job.job]:.0f} s without a sign of life") for job in dead
        )

    def _counted(self, found: Sequence[Announcement], refused: dict[str, Refusal]) -> list[Announcement]:
        """Return the announcements that fit the pool; `refused` gets the others."""
        chosen, counted = [], Counter[int]()
        ahead = max(self._map.generation, int(time.time())) + _AHEAD  # else one claim would use all numbers up
        most = self._settings.compute_nodes
        for job in found:
            counted[job.uid] += 1
            if job.applied > ahead:
                refused[job.job] = Refusal(job.uid, f"it follows generation {job.applied}, which no map can have")
            elif counted[job.uid] > self._settings.jobs_per_user:
                refused[job.job] = Refusal(job.uid, f"its owner has more than {self._settings.jobs_per_user} jobs here")
            elif most is not None and job.nodes is not None and job.nodes > most:
                refused[job.job] = Refusal(job.uid, f"it requests {job.nodes} compute nodes of {most}")
            else:
                chosen.append(job)
        return chosen

    def _name(self, refused: dict[str, Refusal]) -> None:
        """Report once which files are refused. It takes two checks, since a file may still be in writing."""
        named = {name: why for name, why in self._named.items() if refused.get(name) == why}
        fresh = [name for name, why in refused.items() if self._strange.get(name) == why and name not in named]
        paths = {
            name: self._folder / "jobs" / (name if name.isascii() and name.isprintable() else ascii(name))
            for name in fresh
        }
        self._lines.report(
            (refused[name].uid, f"{path}: refused, of user {refused[name].uid}: {refused[name].why}; left out")
            for name, path in paths.items()
        )
        self._named = named | {name: refused[name] for name in fresh}
        self._strange = refused

    def _silence(self, job: Announcement, since_s: float) -> float:
        """Return for how long the job gave no sign of life, s. A late check is not the job's silence alone."""
        lease_s = self._settings.lease_s
        touched_ns, silent_s = self._silent.get(job.job, (job.touched_ns, 0.0))
        silent_s = silent_s + min(since_s, lease_s / 4) if touched_ns == job.touched_ns else 0.0
        if self._began_ns is not None:  # before this arbiter began
            age_s = (self._began_ns - job.touched_ns) / 1e9
            silent_s = max(0.0, min(age_s, lease_s - min(_DOUBT_S, lease_s / 2)))
        self._silent[job.job] = (job.touched_ns, silent_s)
        return silent_s

    def _place(self, jobs: Sequence[Announcement]) -> dict[str, tuple[int, ...]]:
        """Return which I/O nodes each job gets."""
        pool, before = self._settings.io_nodes, self._map.jobs
        usable = {a.job: a.delegates for a in jobs}
        users = {a.job: a.uid for a in jobs}
        grants = self._decide(jobs, users) if jobs else {}
        counts = {job: grant.io_nodes for job, grant in grants.items()}
        policy = self._settings.make_policy()
        if not policy.reallocates and not self._anew:
            counts |= {job: len(has) for job, has in before.items() if job in counts and has}
        if getattr(policy, "shared_node", False):
            shared = {job for job, grant in grants.items() if grant.shared}
            return place_beside_shared(counts, shared, usable, before, pool, users)
        return place(counts, usable, before, pool, users)

    def _decide(self, jobs: Sequence[Announcement], users: Mapping[str, int]) -> dict[str, Grant]:
        """Ask the policy how many I/O nodes each job gets, each user within its share."""
        asked = [self._job(announcement) for announcement in jobs]
        notes: dict[str, None] = {}
        found = shared_out(
            asked,
            users,
            self._settings.io_nodes,
            self._settings.user_share,
            lambda some, io_nodes: self._ask(some, io_nodes, notes),
        )
        for note in notes:
            self._report(f"{self._settings.policy}: {note}")
        return found

    def _ask(self, asked: Sequence[Job], io_nodes: int, notes: dict[str, None]) -> Mapping[str, Grant]:
        """Apply the policy to some jobs and so many I/O nodes; its remarks go to the notes."""
        chosen = self._settings
        machine = Machine(
            io_nodes=io_nodes,
            compute_nodes=chosen.compute_nodes,
            direct=False,
            most=min(chosen.most or io_nodes, io_nodes),
            divisible=chosen.divisible,
        )
        try:
            found = chosen.make_policy().allocate(asked, machine)
        except MpiioExtError as error:
            notes[f"{error}; I/O nodes are given by the size of the jobs"] = None
            found = Size().allocate([dataclasses.replace(job, curve=None) for job in asked], machine)
        notes.update(dict.fromkeys(found.notes))
        return found.grants

    def _job(self, announcement: Announcement) -> Job:
        has = self._map.jobs.get(announcement.job)
        current = None if not has else 0 if self._settings.shared_node and has == (0,) else len(has)
        return Job(
            name=announcement.job,
            compute_nodes=announcement.nodes or 1,
            processes=announcement.ranks,
            curve=self._programs.curve(announcement.program, announcement.delegates),
            weight=self._settings.weights.get(announcement.program, 1.0),
            current=current,
        )


def _before(folder: Path) -> Settings | None:
    """Return the settings in a folder; None: they cannot be used."""
    try:
        return settings.read(folder)
    except ArgumentError:
        return None


def is_served(folder: Path) -> bool | None:
    """Return whether an arbiter serves a folder now; None: only its user may query that."""
    try:
        with (folder / ".lock").open(encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except PermissionError:
        return None
    except FileNotFoundError:
        return False
    return False


def _lock(folder: Path) -> IO[str]:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    file = os.fdopen(os.open(folder / ".lock", flags, 0o600), "w", encoding="utf-8")
    try:
        os.fchmod(file.fileno(), 0o600)  # a user who can open it can lock it, and no arbiter would start any more
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        raise BusyError(f"{folder}: another arbiter serves this folder") from error
    return file
