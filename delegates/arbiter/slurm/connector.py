"""From lists of jobs to the files that the arbiter reads: :mod:`mpiio_ext.delegates.arbiter.slurm.scheduled`.

Problem.    The list of a scheduler is a picture of one moment; jobs begin while it is taken, and those that have ended
            are not in it for long. A list may also lack running jobs: other users' jobs if PrivateData=jobs hides them,
            or all jobs while a restarted controller reads its state.
Algorithm.  A job's line is written when its record has changed. A job that the folder has as not ended is
            UNLISTED when two whole lists in a row do not name it. The folder's statement must be older than `GRACE_S`:
            a younger job may have begun after the list was made. Jobs that were missing in the last list are stored in
            ``scheduler/.missing``, since each list may be read by a process of its own. Jobs that ended, or were not
            listed, long ago are removed.
Guarantees. If a list could not be read, or the text is no list, nothing changes. A job that is not listed is never
reported as
            ended: only a state that Slurm gives does that. A job that is listed again has the state in the list.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mpiio_ext.common.children import run
from mpiio_ext.common.files import write_whole
from mpiio_ext.delegates.arbiter.announcements import now_ns
from mpiio_ext.delegates.arbiter.slurm import scheduled
from mpiio_ext.delegates.arbiter.slurm.joblist import SlurmJob, parse
from mpiio_ext.errors import MpiioExtError

#: Padded, and the name, which a user chooses, is shorter than those in front of it: see `common.slurm`.
COLUMNS = "JobID:20|,HetJobID:20|,HetJobOffset:20|,State:20|,NumNodes:12|,NumTasks:12|,Name:64"
#: The usual query. A component of a heterogeneous job has a number of its own, and that of the job in HetJobID.
COMMAND = ("squeue", "--all", "--states=all", f"--Format={COLUMNS}")
#: Seconds, by the clock of the folder's file system.
GRACE_S = 30.0
#: Time after which ended or unlisted jobs are forgotten, s.
FORGET_S = 3600.0
_PATIENCE_S = 60.0
_MISSING = ".missing"


class QueryError(MpiioExtError, OSError):
    """The query of the scheduler failed."""


def query(command: Sequence[str]) -> str:
    """Return the output of a command.

    Raises
    ------
    QueryError
        The command is not installed, fails, or takes longer than a minute.
    """
    done = run(command, limit_s=_PATIENCE_S)
    if done.trouble:
        output = " ".join(done.errors.split())[:200]
        raise QueryError(f"{command[0]}: {done.trouble}" + (f": {output}" if output else ""))
    return done.output


def _age_s(folder: Path, job: SlurmJob, now: float) -> float:
    with contextlib.suppress(FileNotFoundError):
        return now - (folder / scheduled.FOLDER / job.id).stat().st_mtime
    return 0.0


def _missing(folder: Path) -> set[str]:
    """Return the jobs that the last whole list did not name."""
    try:
        return set((folder / scheduled.FOLDER / _MISSING).read_text(encoding="utf-8", errors="replace").split())
    except FileNotFoundError:
        return set()


def _set_missing(folder: Path, jobs: set[str]) -> None:
    write_whole(folder / scheduled.FOLDER / _MISSING, "".join(f"{job}\n" for job in sorted(jobs)), follow=False)


def _without(folder: Path, known: Mapping[str, SlurmJob], *, whole: bool) -> list[str]:
    """Treat the jobs that the folder has and a list lacks; returns lines about the changes."""
    now, changed = now_ns(folder / scheduled.FOLDER) / 1e9, []
    before = _missing(folder) if whole else set()
    for job in known.values():
        age_s = _age_s(folder, job, now)
        if job.phase in ("ended", "unlisted"):
            if age_s > FORGET_S:
                (folder / scheduled.FOLDER / job.id).unlink(missing_ok=True)
        elif job.id in before and age_s >= GRACE_S:
            scheduled.write(folder, replace(job, state="UNLISTED"))
            changed.append(f"{job.id}: is not in the list any more; its own announcement decides whether it has ended")
    missing = {job.id for job in known.values() if job.phase not in ("ended", "unlisted")}
    if whole and missing != before:
        _set_missing(folder, missing)
    return changed


def sync(folder: Path, text: str, *, whole: bool = True) -> tuple[list[str], Sequence[str]]:
    """Change the folder to agree with a list; returns lines about the changes, and about bad lines.

    Parameters
    ----------
    folder : the arbiter's
    text : the list
    whole : it is of all jobs: those that it does not name are missing

    Raises
    ------
    SlurmError
        The text is no list of jobs.
    OSError
        The folder cannot be read or written.
    """
    jobs, bad = parse(text)
    (folder / scheduled.FOLDER).mkdir(exist_ok=True)
    known = {job.id: job for job in scheduled.read_all(folder)[0]}
    changed = []
    for job in jobs:
        old = known.pop(job.id, None)
        if old is None and job.phase in ("waiting", "ended", "unknown"):
            continue
        if old is None or scheduled.encode(old) != scheduled.encode(job):
            scheduled.write(folder, job)
            changed.append(f"{job.id}: {job.state}")
    return changed + _without(folder, known, whole=whole), bad
