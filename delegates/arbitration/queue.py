"""A queue of jobs on a machine with a pool of I/O nodes, under one policy: Section 5.3.

Problem.    A policy's worth shows when jobs come and go: what is good for those that run now may not be when the next
            one starts.
Algorithm.  Discrete events (simpy). Jobs start in strict FIFO order as compute nodes become free. Whenever jobs have
            started or ended the policy is asked; a policy that does not reallocate (STATIC) decides for new jobs only.
            A job does I/O all the time, at the bandwidth of what it has; a job that gets another number stands still
            for `migration_s`. It ends when its volume is moved.
Guarantees. Every byte of every job is moved (checked). Aggregate bandwidth is the sum over jobs of volume over
            running time (equation 2 over the queue); the time line holds the sum of the bandwidths of the jobs that
            run.
Source.     Section 5.3 of the arbitration paper: 96 compute nodes, 12 I/O nodes, no direct access.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mpiio_ext.common.extras import needing
from mpiio_ext.common.shown import Shown
from mpiio_ext.delegates.arbitration.errors import CurveError
from mpiio_ext.delegates.arbitration.jobs import Job, Machine
from mpiio_ext.delegates.arbitration.rules.base import Policy
from mpiio_ext.errors import ArgumentError

if TYPE_CHECKING:
    import simpy


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueJob:
    """A job in the queue: its sizes and curve, and the bytes that it moves."""

    job: Job
    volume_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A job that has run: times in s since the start of the queue, mean bandwidth in MB/s, changes of its I/O nodes."""

    name: str
    start_s: float
    end_s: float
    bandwidth: float
    changes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The state from `time_s` until the next step: job -> (I/O nodes, MB/s)."""

    time_s: float
    grants: dict[str, tuple[int, float]]

    @property
    def bandwidth(self) -> float:
        """Sum over the jobs, MB/s."""
        return sum(value for _, value in self.grants.values())


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class QueueResult(Shown):
    """A queue that is empty again."""

    policy: str
    jobs: tuple[Finished, ...]
    steps: tuple[Step, ...]

    @property
    def bandwidth(self) -> float:
        """Sum of the jobs' mean bandwidths, MB/s (equation 2)."""
        return sum(job.bandwidth for job in self.jobs)

    @property
    def makespan_s(self) -> float:
        """From the start of the first job to the end of the last, s."""
        return max(job.end_s for job in self.jobs)

    def lines(self) -> list[str]:
        """Return it in a sentence."""
        return queue_lines([self])

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each job."""
        return [
            {
                "policy": self.policy,
                "job": job.name,
                "start_s": job.start_s,
                "end_s": job.end_s,
                "bandwidth_mb_per_s": job.bandwidth,
                "changes": job.changes,
            }
            for job in self.jobs
        ]


@dataclass(slots=True)
class _Running:
    item: QueueJob
    start_s: float
    left_bytes: float
    io_nodes: int = -1
    rate: float = 0.0  # bytes a second
    still_until_s: float = 0.0
    since_s: float = 0.0
    changes: int = 0


class _Queue:
    """The state of one simulation; `process` is its only process."""

    def __init__(
        self,
        environment: simpy.Environment,
        items: Sequence[QueueJob],
        machine: Machine,
        policy: Policy,
        migration_s: float,
    ) -> None:
        self.environment, self.machine, self.policy, self.migration_s = environment, machine, policy, migration_s
        self.waiting = list(items)
        self.running: dict[str, _Running] = {}
        self.finished: list[Finished] = []
        self.steps: list[Step] = []
        self.nodes = machine.compute_nodes or 0

    def process(self) -> Generator[Any, Any, None]:
        """Start, decide, wait for the next end, until nothing is left."""
        while self.waiting or self.running:
            self._start()
            self._decide()
            yield self.environment.timeout(max(0.0, self._next_end() - self.environment.now))
            self._move()
            self._end()
        self.steps.append(Step(time_s=self.environment.now, grants={}))

    def _start(self) -> None:
        free = self.nodes - sum(each.item.job.compute_nodes for each in self.running.values())
        while self.waiting and self.waiting[0].job.compute_nodes <= free:
            item = self.waiting.pop(0)
            free -= item.job.compute_nodes
            now = self.environment.now
            self.running[item.job.name] = _Running(item, now, float(item.volume_bytes), since_s=now)

    def _decide(self) -> None:
        now = self.environment.now
        jobs = [
            replace(each.item.job, current=each.io_nodes if each.io_nodes >= 0 else None)
            for each in self.running.values()
        ]
        grants = self.policy.allocate(jobs, self.machine).grants
        for name, each in self.running.items():
            grant = grants[name]
            if each.io_nodes >= 0 and (grant.io_nodes == each.io_nodes or not self.policy.reallocates):
                continue
            assert grant.bandwidth is not None
            if grant.bandwidth <= 0:
                raise CurveError(
                    f"job {name}: would never end with {grant.io_nodes} I/O nodes: its curve has 0 MB/s there"
                )
            if each.io_nodes >= 0:
                each.changes += 1
                each.still_until_s = now + self.migration_s
            each.io_nodes, each.rate = grant.io_nodes, grant.bandwidth * 1e6
        self.steps.append(
            Step(time_s=now, grants={name: (each.io_nodes, each.rate / 1e6) for name, each in self.running.items()})
        )

    def _end_of(self, each: _Running) -> float:
        return max(self.environment.now, each.still_until_s) + each.left_bytes / each.rate

    def _next_end(self) -> float:
        return min(self._end_of(each) for each in self.running.values())

    def _move(self) -> None:
        now = self.environment.now
        for each in self.running.values():
            each.left_bytes -= each.rate * max(0.0, now - max(each.since_s, each.still_until_s))
            each.since_s = now

    def _end(self) -> None:
        now = self.environment.now
        for name, each in list(self.running.items()):
            if each.left_bytes <= 1e-6 * each.item.volume_bytes:  # rounding of times leaves less than that
                seconds = now - each.start_s
                self.finished.append(
                    Finished(
                        name=name,
                        start_s=each.start_s,
                        end_s=now,
                        changes=each.changes,
                        bandwidth=each.item.volume_bytes / 1e6 / seconds,
                    )
                )
                del self.running[name]


def run_queue(items: Sequence[QueueJob], machine: Machine, policy: Policy, *, migration_s: float = 0.0) -> QueueResult:
    """Run a queue to its end.

    Parameters
    ----------
    items : in the order in which they start; names are unique, every job has a curve and a volume
    machine : with `compute_nodes`
    migration_s : time without I/O of a job that gets another number of I/O nodes

    Raises
    ------
    ArgumentError
        A job that is larger than the machine, without curve or volume, or two of one name.
    MpiioExtError
        simpy is not installed.
    """
    with needing("arbitration", "the simulation of queues"):
        import simpy
    if machine.compute_nodes is None:
        raise ArgumentError("the simulation of a queue needs the machine's compute_nodes")
    names = [item.job.name for item in items]
    if len(set(names)) < len(names):
        raise ArgumentError("two jobs of the queue have one name")
    for item in items:
        if item.job.compute_nodes > machine.compute_nodes or item.volume_bytes < 1 or item.job.curve is None:
            raise ArgumentError(
                f"job {item.job.name}: needs a curve, a volume, and at most the machine's "
                f"{machine.compute_nodes} compute nodes"
            )
    environment = simpy.Environment()
    queue = _Queue(environment, items, machine, policy, migration_s)
    environment.process(queue.process())
    environment.run()
    return QueueResult(policy=policy.name, jobs=tuple(queue.finished), steps=tuple(queue.steps))


def queue_lines(results: Sequence[QueueResult]) -> list[str]:
    """Return a line for each policy; beside STATIC by the sum of the jobs' bandwidths, and by the time of the whole."""
    base = next((each for each in results if each.policy == "STATIC"), None)
    lines = []
    for each in results:
        text = (
            f"{each.policy}: {each.bandwidth / 1000:.2f} GB/s (sum of the jobs' means), {each.makespan_s:.0f} s, "
            f"{sum(job.changes for job in each.jobs)} changes of I/O nodes"
        )
        if base is not None and each is not base:
            text += (
                f"; {each.bandwidth / base.bandwidth:.2f}× STATIC, and the queue is through "
                f"{base.makespan_s / each.makespan_s:.2f}× as fast"
            )
        lines.append(text)
    return lines


def queue_document(results: Sequence[QueueResult]) -> dict[str, Any]:
    """Return the results of queues; times in s, bandwidths in MB/s."""
    return {
        "what": "arbitration queue",
        "units": {"bandwidth": "MB/s (10^6 bytes)", "time": "s"},
        "policies": {
            result.policy.lower(): {
                "bandwidth": result.bandwidth,
                "makespan_s": result.makespan_s,
                "jobs": [
                    {
                        "name": job.name,
                        "start_s": job.start_s,
                        "end_s": job.end_s,
                        "bandwidth": job.bandwidth,
                        "changes": job.changes,
                    }
                    for job in result.jobs
                ],
                "steps": [
                    {
                        "time_s": step.time_s,
                        "bandwidth": step.bandwidth,
                        "jobs": {
                            name: {"io_nodes": count, "bandwidth": value}
                            for name, (count, value) in step.grants.items()
                        },
                    }
                    for step in result.steps
                ],
            }
            for result in results
        },
    }
