"""Jobs of Slurm for the arbiter: the meaning of their states, and their sizes, from ``squeue`` or ``sacct``.

Algorithm.  :mod:`mpiio_ext.common.slurm` reads the list; here its lines are gathered to jobs. The parts of a
            heterogeneous job are added up. A job that was put back is what its last line says. Steps give the tasks
            that the job itself does not say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mpiio_ext.common import slurm
from mpiio_ext.common.slurm import JobId, SlurmError, count

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

#: Columns that have a fact, the best first.
_STATE = ("state", "st")
_NODES = ("allocnodes", "nnodes", "nodes")
_TASKS = ("ntasks", "tasks")
_PROCESSORS = ("alloccpus", "ncpus", "cpus")
_NAME = ("jobname", "name")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmJob:
    """One job.

    Attributes
    ----------
    id : number, as SLURM_JOB_ID has it
    state : Slurm's word
    nodes : compute nodes; None = unknown
    processes : tasks, or processors where nothing is said of tasks; None = unknown
    name : of the job
    """

    id: str
    state: str
    nodes: int | None
    processes: int | None
    name: str

    @property
    def phase(self) -> Phase:
        """The meaning of the state for its I/O nodes."""
        return phase(self.state)


def phase(state: str) -> Phase:
    """Return the meaning of a word of Slurm for a state; "CANCELLED by 1000" is one, too."""
    words = state.upper().rstrip("+").split()
    return _PHASE_OF.get(words[0], "unknown") if words else "unknown"


class _Jobs:
    """Gathers lines to jobs."""

    def __init__(self) -> None:
        self.found: dict[int, SlurmJob] = {}
        self.tasks: dict[int, int] = {}  # of the largest step
        self.own_tasks: set[int] = set()  # jobs whose own line has tasks

    def add_line(self, job: JobId, values: Mapping[str, object]) -> None:
        """Add a line of a text."""

        def first(names: Sequence[str]) -> object:
            return next((values[name] for name in names if name in values), None)

        self._add(
            job, str(first(_STATE) or ""), count(first(_NODES)), count(first(_TASKS)), first(_PROCESSORS), first(_NAME)
        )

    def add_entry(self, job: JobId, item: Mapping[str, object]) -> None:
        """Add an entry of JSON."""
        words = slurm.states(item)
        # Flags stand beside the state: ["COMPLETED", "COMPLETING"] has processes still.
        state = next((word for word in words if phase(word) == "ending"), words[0] if words else "")
        required = item.get("required")
        processors = item.get("cpus", required.get("CPUs") if isinstance(required, Mapping) else None)
        self._add(
            job,
            state,
            count(item.get("node_count", item.get("allocation_nodes"))),
            slurm.tasks(item),
            processors,
            item.get("name"),
        )

    def _add(
        self, job: JobId, state: str, nodes: int | None, tasks: int | None, processors: object, name: object
    ) -> None:
        key = job.number
        if job.step is not None:
            self.tasks[key] = max(self.tasks.get(key, 0), tasks or 0)
            return
        if not state:
            raise SlurmError(f"job {key} has no state")
        processes = tasks or count(processors) or None
        new = SlurmJob(id=str(key), state=state, nodes=nodes or None, processes=processes, name=str(name or "").strip())
        if tasks:
            self.own_tasks.add(key)
        known = self.found.get(key)
        if known is not None and job.part is not None:
            new = replace(known, nodes=_sum(known.nodes, new.nodes), processes=_sum(known.processes, new.processes))
        self.found[key] = new  # requeued: the last line is the newest

    def jobs(self) -> list[SlurmJob]:
        """Return the jobs, with the tasks of steps if the job itself has none."""
        return [
            replace(job, processes=self.tasks[key]) if key not in self.own_tasks and self.tasks.get(key) else job
            for key, job in self.found.items()
        ]


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None and b is None else (a or 0) + (b or 0)


def parse(text: str) -> tuple[list[SlurmJob], Sequence[str]]:
    """Return the jobs of a list, and a line for each that was not understood.

    Raises
    ------
    SlurmError
        It is no list of jobs.
    """
    jobs, bad = _Jobs(), list[str]()
    if text.lstrip()[:1] in ("{", "["):
        slurm.read_json(text, jobs.add_entry, bad)
    else:
        slurm.read_text(text.splitlines(), jobs.add_line, bad, need=_STATE, open_end=True)
    return jobs.jobs(), bad
