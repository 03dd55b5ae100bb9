"""Lists of jobs: what ``squeue`` and ``sacct`` print, as text or JSON.

Problem.    Sites print different columns, in any order, padded or not; newer versions wrap numbers in objects, states
            in lists; steps, pending tasks of arrays and the parts of heterogeneous jobs stand among the jobs.
Forms.      Text whose first line names the columns, separated by ``|`` (``squeue --format='%A|%T|%D|%C|%j'``,
            ``squeue --Format='JobID:20|,...'``, ``sacct --parsable2``, ``--parsable``); ``squeue --json``,
            ``sacct --json``: one object with ``jobs``.
Guarantees. A document without columns or jobs is refused as a whole: an error message is never taken for an empty
            list. A line that cannot be understood is left out and told. What is not said is None and not 0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from mpiio_ext.errors import MpiioExtError

__all__ = ["JobListError", "Phase", "SlurmJob", "parse", "phase"]

Phase = Literal["waiting", "running", "paused", "ending", "ended", "unlisted", "unknown"]

_PHASES: dict[Phase, str] = {
    "waiting": "PENDING PD REQUEUED RQ REQUEUE_FED RF REQUEUE_HOLD RH RESV_DEL_HOLD RD SPECIAL_EXIT SE",
    "running": "RUNNING R CONFIGURING CF RESIZING RS SIGNALING SI POWER_UP_NODE",
    "paused": "SUSPENDED S STOPPED ST",
    "ending": "COMPLETING CG STAGE_OUT SO",
    "ended": "BOOT_FAIL BF CANCELLED CA COMPLETED CD DEADLINE DL FAILED F NODE_FAIL NF OUT_OF_MEMORY OOM PREEMPTED PR "
             "REVOKED RV TIMEOUT TO LAUNCH_FAILED RECONFIG_FAIL",
    "unlisted": "UNLISTED",  # not Slurm's: lists that should name the job do not, see connector.py
}
_PHASE_OF: dict[str, Phase] = {word: phase for phase, words in _PHASES.items() for word in words.split()}

#: What is taken of a job -> the columns that say it, the best first.
_COLUMNS = {
    "id": ("jobidraw", "jobid"), "state": ("state", "st"), "nodes": ("allocnodes", "nnodes", "nodes"),
    "tasks": ("ntasks", "tasks"), "processors": ("alloccpus", "ncpus", "cpus"), "name": ("jobname", "name"),
}
_JOB = re.compile(r"(?P<job>\d{1,18})(?:\+(?P<part>\d+))?(?:\.(?P<step>.+))?")
_ARRAY = re.compile(r"\d+_.*")
_NOTHING = frozenset({"", "n/a", "none", "unknown", "(null)"})


class JobListError(MpiioExtError, ValueError):
    """A text is no list of jobs; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmJob:
    """One job.

    Attributes
    ----------
    id : number, as SLURM_JOB_ID has it
    state : Slurm's word
    nodes : compute nodes; None = not said
    processes : tasks, or processors where nothing is said of tasks; None = not said
    name : of the job
    """

    id: str
    state: str
    nodes: int | None
    processes: int | None
    name: str

    @property
    def phase(self) -> Phase:
        """What the state means for its I/O nodes."""
        return phase(self.state)


def phase(state: str) -> Phase:
    """Return what a word of Slurm for a state means; "CANCELLED by 1000" is one, too."""
    words = state.upper().rstrip("+").split()
    return _PHASE_OF.get(words[0], "unknown") if words else "unknown"


class _Jobs:
    """Gathers lines to jobs."""

    def __init__(self) -> None:
        self.found: dict[str, SlurmJob] = {}
        self.tasks: dict[str, int] = {}  # of the largest step
        self.said: set[str] = set()  # jobs whose own line says tasks
        self.bad: list[str] = []

    def add(self, identity: str, given: Mapping[str, Any]) -> None:
        """Add a line.

        Raises
        ------
        JobListError
            It is not understood.
        """
        match = _JOB.fullmatch(identity)
        if match is None:
            if _ARRAY.fullmatch(identity):
                if "[" in identity:
                    return  # tasks that wait
                raise JobListError(f"{identity[:40]!r} is a task of an array without its own ID: print %A or JobIDRaw")
            raise JobListError(f"{identity[:40]!r} is no job ID")
        job, tasks = match["job"], _count(given.get("tasks"))
        if match["step"] is not None:
            self.tasks[job] = max(self.tasks.get(job, 0), tasks or 0)
            return
        state = str(given.get("state") or "").strip()
        if not state:
            raise JobListError(f"job {job} has no state")
        processors = _count(given.get("processors"))
        new = SlurmJob(id=job, state=state, nodes=_count(given.get("nodes")),
                       processes=tasks if tasks is not None else processors, name=str(given.get("name") or "").strip())
        if tasks is not None:
            self.said.add(job)
        known = self.found.get(job)
        if known is None:
            self.found[job] = new
        elif match["part"] is not None:  # of a heterogeneous job
            self.found[job] = replace(known, nodes=_sum(known.nodes, new.nodes),
                                      processes=_sum(known.processes, new.processes))
        else:
            self.found[job] = new  # requeued: the last line is the newest

    def jobs(self) -> list[SlurmJob]:
        """Return them, with the tasks of steps where the job itself does not say them."""
        return [replace(job, processes=self.tasks[key]) if key not in self.said and self.tasks.get(key) else job
                for key, job in self.found.items()]


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None and b is None else (a or 0) + (b or 0)


def _count(value: Any) -> int | None:
    """Return a number of 1 or more; None: nothing is said."""
    if isinstance(value, Mapping):  # {"set": true, "infinite": false, "number": 5}
        value = value.get("number") if value.get("set", True) and not value.get("infinite") else None
    if value is None or (isinstance(value, str) and value.strip().lower() in _NOTHING):
        return None
    text = str(value).strip()
    match = re.fullmatch(r"(\d{1,9})(?:-\d+)?([KM]?)", text, re.IGNORECASE)  # "1-4": nodes of a job that waits
    if match is None or isinstance(value, bool):
        raise JobListError(f"{text[:40]!r} is no number")
    number = int(match[1]) * {"": 1, "K": 1000, "M": 1000_000}[match[2].upper()]
    return number or None


# ---- forms -----------------------------------------------------------------------------------------------------------


def _text(text: str, jobs: _Jobs) -> None:
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    names = [name.strip().lower() for name in lines[0][1].split("|")] if lines else []
    places = {ours: next((names.index(each) for each in theirs if each in names), None)
              for ours, theirs in _COLUMNS.items()}
    if len(names) < 2 or places["id"] is None or places["state"] is None:
        first = lines[0][1].strip()[:60] if lines else ""
        raise JobListError("no list of jobs: a first line with columns is expected, separated by |, with JOBID (or "
                           f"JobIDRaw) and STATE among them, not {first!r}")
    width = len(names) - (names[-1] == "")
    for number, line in lines[1:]:
        try:
            values = line.split("|", len(names) - 1)
            if len(values) < width:
                raise JobListError(f"{len(values)} columns, not {width}")
            given = {ours: values[at].strip() for ours, at in places.items() if at is not None}
            jobs.add(given["id"], given)
        except JobListError as error:
            jobs.bad.append(f"line {number}: {error}")


def _state_of(item: Mapping[str, Any]) -> str:
    state = item.get("job_state", item.get("state"))
    state = state.get("current") if isinstance(state, Mapping) else state
    words = [str(each) for each in state] if isinstance(state, list) else [str(state or "")]
    # Flags stand beside the state: ["COMPLETED", "COMPLETING"] has processes still.
    return next((word for word in words if phase(word) == "ending"), words[0] if words else "")


def _tasks_of(item: Mapping[str, Any]) -> Any:
    if item.get("tasks") is not None:
        return item["tasks"]
    counts = [_count(step["tasks"].get("count")) for step in item.get("steps") or []
              if isinstance(step, Mapping) and isinstance(step.get("tasks"), Mapping)]
    return max((count for count in counts if count is not None), default=None)


def _json(text: str, jobs: _Jobs) -> None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise JobListError(f"no list of jobs: {error}") from error
    items = document.get("jobs") if isinstance(document, Mapping) else None
    if not isinstance(items, list):
        raise JobListError("no list of jobs: JSON without a list `jobs`")
    errors = document.get("errors")
    if errors and not items:
        raise JobListError(f"Slurm says: {json.dumps(errors)[:200]}")
    for number, item in enumerate(items):
        try:
            if not isinstance(item, Mapping):
                raise JobListError("is no object")
            required = item.get("required")
            processors = item.get("cpus", required.get("CPUs") if isinstance(required, Mapping) else None)
            jobs.add(str(item.get("job_id", "")), {
                "state": _state_of(item), "nodes": item.get("node_count", item.get("allocation_nodes")),
                "tasks": _tasks_of(item), "processors": processors, "name": item.get("name"),
            })
        except (JobListError, AttributeError, TypeError) as error:
            jobs.bad.append(f"jobs/{number}: {error}")


def parse(text: str) -> tuple[list[SlurmJob], Sequence[str]]:
    """Return the jobs of a list, and a line for each that was not understood.

    Raises
    ------
    JobListError
        It is no list of jobs.
    """
    jobs = _Jobs()
    if text.lstrip()[:1] in ("{", "["):
        _json(text, jobs)
    else:
        _text(text, jobs)
    return jobs.jobs(), jobs.bad
