"""Jobs of Slurm for the arbiter: their states and sizes, from ``squeue`` or ``sacct``.

Algorithm.  :mod:`mpiio_ext.common.slurm` reads the list; here its lines are gathered to jobs. The parts of a
            heterogeneous job are added up, and have the state of the first one. A job that was requeued has the state
            of its last line. Steps give the tasks that the job itself does not say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mpiio_ext.common import slurm
from mpiio_ext.common.slurm import JobId, Phase, SlurmError, count, phase

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


class _Jobs:
    """Gathers lines to jobs."""

    def __init__(self) -> None:
        self.found: dict[int, dict[int, SlurmJob]] = {}  # by number, and by the part of a heterogeneous job
        self.tasks: dict[tuple[int, int], int] = {}  # of the largest step
        self.own_tasks: set[tuple[int, int]] = set()  # jobs whose own line has tasks

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
        # A state may have flags: a job with ["COMPLETED", "COMPLETING"] still has processes.
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
        key = (job.number, job.part or 0)
        if job.step is not None:
            self.tasks[key] = max(self.tasks.get(key, 0), tasks or 0)
            return
        if not state:
            raise SlurmError(f"job {job.number} has no state")
        processes = tasks or count(processors) or None
        if tasks:
            self.own_tasks.add(key)
        self.found.setdefault(job.number, {})[key[1]] = SlurmJob(  # requeued: the last line is the newest
            id=str(job.number), state=state, nodes=nodes or None, processes=processes, name=str(name or "").strip()
        )

    def jobs(self) -> list[SlurmJob]:
        """Return the jobs, with the tasks of steps if the job itself has none."""
        return [
            replace(
                parts[min(parts)],
                nodes=_sum([job.nodes for job in parts.values()]),
                processes=_sum([self._processes((number, part), job) for part, job in parts.items()]),
            )
            for number, parts in self.found.items()
        ]

    def _processes(self, key: tuple[int, int], job: SlurmJob) -> int | None:
        return job.processes if key in self.own_tasks else self.tasks.get(key) or job.processes


def _sum(counts: Sequence[int | None]) -> int | None:
    return sum(number or 0 for number in counts) or None


def parse(text: str) -> tuple[list[SlurmJob], Sequence[str]]:
    """Return the jobs of a list, and a line for each that was not understood.

    Raises
    ------
    SlurmError
        The text is no list of jobs.
    """
    jobs, bad = _Jobs(), list[str]()
    if text.lstrip()[:1] in ("{", "["):
        slurm.read_json(text, jobs.add_entry, bad)
    else:
        slurm.read_text(text.splitlines(), jobs.add_line, bad, need=_STATE)
    return jobs.jobs(), bad
