"""From lists of jobs to what the arbiter reads: :mod:`mpiio_ext.delegates.arbiter.slurm.scheduled`.

Problem.    The list of a scheduler is a picture of one moment; jobs begin while it is taken, and those that have ended
            are not in it for long.
Algorithm.  Jobs that run, pause, end or have ended are written when what is said of them has changed. A job that the
            folder has as not ended, and that a whole list does not name, has ended, if what the folder says is older
            than `GRACE_S`: a younger one may have begun after the list was taken. What ended long ago is taken away.
Guarantees. A list that could not be had, or is none, changes nothing.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mpiio_ext.delegates.arbiter.slurm import scheduled
from mpiio_ext.delegates.arbiter.slurm.joblist import SlurmJob, parse
from mpiio_ext.errors import MpiioExtError

__all__ = ["COMMAND", "GRACE_S", "QueryError", "query", "sync"]

#: What is asked, as a rule. A job's number as SLURM_JOB_ID has it, its tasks, and its name last, which may have any
#: character.
COMMAND = ("squeue", "--all", "--states=all", "--Format=JobID:20|,State:20|,NumNodes:12|,NumTasks:12|,Name:64")
#: Seconds, by the clock of the folder's file system.
GRACE_S = 30.0
#: After which what has ended is forgotten, s.
FORGET_S = 3600.0
_PATIENCE_S = 60.0


class QueryError(MpiioExtError, OSError):
    """The scheduler could not be asked."""


def query(command: Sequence[str]) -> str:
    """Return what a command prints.

    Raises
    ------
    QueryError
        It is not there, fails, or takes longer than a minute.
    """
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_PATIENCE_S,
                              check=False, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise QueryError(f"{command[0]}: cannot be run: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise QueryError(f"{command[0]}: has not answered within {_PATIENCE_S:.0f} s") from error
    if done.returncode != 0:
        said = " ".join(done.stderr.split())[:200]
        raise QueryError(f"{command[0]}: exit status {done.returncode}" + (f": {said}" if said else ""))
    return done.stdout


def _now(folder: Path) -> float:
    """Return the time of the file system's clock, s."""
    probe = folder / scheduled.FOLDER / f".now.{os.getpid()}"
    probe.write_bytes(b"")
    now = probe.stat().st_mtime
    probe.unlink()
    return now


def _age_s(folder: Path, job: SlurmJob, now: float) -> float:
    with contextlib.suppress(FileNotFoundError):
        return now - (folder / scheduled.FOLDER / job.id).stat().st_mtime
    return 0.0


def sync(folder: Path, text: str, *, whole: bool = True) -> tuple[list[str], Sequence[str]]:
    """Bring what the folder says to what a list says; returns lines about what has changed, and about bad lines.

    Parameters
    ----------
    folder : the arbiter's
    text : the list
    whole : jobs that it does not name have ended

    Raises
    ------
    JobListError
        It is no list of jobs.
    OSError
        The folder cannot be read or written.
    """
    jobs, bad = parse(text)
    (folder / scheduled.FOLDER).mkdir(exist_ok=True)
    known = {job.id: job for job in scheduled.read_all(folder)[0]}
    now = _now(folder)
    changed = []
    for job in jobs:
        old = known.pop(job.id, None)
        if old is None and job.phase in ("waiting", "ended", "unknown"):
            continue
        if old is None or scheduled.encode(old) != scheduled.encode(job):
            scheduled.write(folder, job)
            changed.append(f"{job.id}: {job.state}")
    for job in known.values():
        if job.phase == "ended":
            if _age_s(folder, job, now) > FORGET_S:
                (folder / scheduled.FOLDER / job.id).unlink(missing_ok=True)
        elif whole and _age_s(folder, job, now) >= GRACE_S:
            scheduled.write(folder, replace(job, state="ENDED"))
            changed.append(f"{job.id}: is not in the list any more")
    return changed, bad

