"""Runs of a workload path by ranks that have started once.

Problem.   Starting Python and MPI on every rank takes several times as long as the calls of a short path, and tuning
           runs it dozens of times.
Algorithm. ``mpiio-ext pioneer replay --orders`` stays: rank 0 reads an order a line from standard input (variables to
           set and to take away), the ranks carry the path out, and rank 0 prints what became of it and an end mark. The
           library reads its hints when a file is opened, so that each run has its own, as after a start. Delegates a
           job has from its start on: settings that ask for the same ones share a job of their own. A delegate drops the
           pages of a file that is closed, so that no run finds what another has left. The time of a start is not
           counted as a run's.
Guarantee. A run that exceeds its limit, or a job that ends, is ended with all its processes, and the next run starts
           another. If the launcher passes no input on, every run has a start of its own.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from mpiio_ext.common.children import launched
from mpiio_ext.tune.errors import TuneError
from mpiio_ext.tune.setting import BASELINE, Setting
from mpiio_ext.tune.trial import Outcome, ProcessRunner, fold, outcome_of

_LONGEST_PAUSE_S = 1.0
#: Jobs that wait at a time; another one ends the one that has waited longest.
_MOST_JOBS = 3


def delegates_of(setting: Setting) -> Setting:
    """Return the hints that a job needs at its start: the hints of its delegates, if the job has delegates."""
    hints = setting.as_dict()
    if hints.get("mpiox_delegates", "0") in ("0", "0%", "per_node=0"):
        return BASELINE
    return Setting(tuple(pair for pair in setting.hints if pair[0].startswith("mpiox_delegate")))


@dataclass(slots=True)
class _Job:
    """A job that waits for orders."""

    process: subprocess.Popen[bytes]
    ending: contextlib.ExitStack  # ends it with all its processes
    errors: Path
    text: bytes = b""

    def order(self, words: dict[str, object]) -> bool:
        """Send an order; return whether the job has read it."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(words).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            return False
        return True

    def answer(self, limit_s: float, end_mark: str) -> tuple[bytes, int | None]:
        """Return the output of rank 0 until the end mark, and its status; None if the time or the job has ended."""
        assert self.process.stdout is not None
        until_s, mark = time.monotonic() + limit_s, b"\n" + end_mark.encode()
        while True:
            text, found, rest = (b"\n" + self.text).partition(mark)
            if found and b"\n" in rest:
                status, _, self.text = rest.partition(b"\n")
                return text[1:] + b"\n", int(status)
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                return self.text, None
            if not select.select([self.process.stdout], [], [], min(left_s, _LONGEST_PAUSE_S))[0]:
                continue
            more = os.read(self.process.stdout.fileno(), 1 << 16)
            if not more:
                return self.text, None
            self.text += more


class ServedRunner:
    """Runs a workload path under settings.

    Parameters
    ----------
    alone : runs it with a start of its own.
    end_mark : begins the line that rank 0 prints when it is ready and behind each order; an exit status is behind it.
    """

    def __init__(self, alone: ProcessRunner, end_mark: str) -> None:
        self._alone, self._end_mark = alone, end_mark
        self._jobs: dict[Setting, _Job] = {}  # by their delegates, the one that was used last at the end
        self._works, self._started_s, self._count = True, 0.0, 0

    def start_s(self, setting: Setting) -> float:
        """Return the seconds that the start of the next run will take: those of the last start, 0 without a start."""
        return 0.0 if not self._works or delegates_of(setting) in self._jobs else self._started_s

    def __call__(self, setting: Setting, number: int, limit_s: float, *, keep: bool = False) -> Outcome:
        """Run once; see `mpiio_ext.tune.trial.Runner`. A start is within the limit, and not in the time of the run."""
        begin_s = time.monotonic()
        try:
            outcome = self._served(setting, number, limit_s, keep) if self._works else None
        except OSError as error:
            raise TuneError(f"cannot write to the log folder {self._alone.log}: {error.strerror or error}") from error
        if outcome is None:
            left_s = limit_s - (time.monotonic() - begin_s)
            return self._alone(setting, number, max(left_s, 0.01), keep=keep)
        return outcome

    def close(self) -> None:
        """End all jobs that wait."""
        for delegates in list(self._jobs):
            self._end(delegates)

    def _end(self, delegates: Setting) -> None:
        job = self._jobs.pop(delegates)
        assert job.process.stdin is not None and job.process.stdout is not None
        with job.ending, contextlib.suppress(OSError, subprocess.TimeoutExpired):
            job.process.stdin.close()
            job.process.wait(timeout=_LONGEST_PAUSE_S)
        job.process.stdout.close()

    def _start(self, delegates: Setting, variables: dict[str, str], without: tuple[str, ...]) -> _Job:
        if len(self._jobs) == _MOST_JOBS:
            self._end(next(iter(self._jobs)))
        launch = self._alone.launch(variables, without)
        self._count += 1
        errors, ending = self._alone.log / f"start-{self._count}.err", contextlib.ExitStack()
        with errors.open("wb") as err:
            process = ending.enter_context(
                launched(
                    [*launch.arguments, "--orders"],
                    launch.environment,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=err,
                )
            )
        self._jobs[delegates] = _Job(process=process, ending=ending, errors=errors)
        return self._jobs[delegates]

    def _served(self, setting: Setting, number: int, limit_s: float, keep: bool) -> Outcome | None:
        """Run once; return None if this launcher passes no input on."""
        stem, delegates = self._alone.log / f"{number:04d}", delegates_of(setting)
        variables, without = self._alone.settle(setting, stem)
        began_s, is_first = time.monotonic(), not self._jobs
        text, status, returned = b"", None, 0
        try:
            job = self._jobs.get(delegates)
            if job is None:
                job = self._start(delegates, variables, without)
                text, status = job.answer(limit_s, self._end_mark)  # it is ready
                self._started_s = time.monotonic() - began_s
                with contextlib.suppress(subprocess.TimeoutExpired):
                    if status is None and is_first and job.process.wait(timeout=_LONGEST_PAUSE_S) == 0:
                        self._works = False
            else:
                self._jobs[delegates] = self._jobs.pop(delegates)
                status = 0
            before, ready_s = job.errors.stat().st_size, time.monotonic()
            if status == 0:
                status = None
                if job.order({"set": variables, "unset": list(without)}):
                    text, status = job.answer(limit_s - (ready_s - began_s), self._end_mark)
            now_s = time.monotonic()
        except BaseException:
            self.close()
            raise
        if status is None:
            stopped = job.process.poll() is None and now_s - began_s >= limit_s
            self._end(delegates)
            returned = 143 if stopped else job.process.returncode or 1
        if not self._works:
            return None
        stem.with_suffix(".out").write_bytes(text)
        stem.with_suffix(".err").write_bytes(job.errors.read_bytes()[0 if status is None else before :])
        outcome = outcome_of(status or returned, now_s - ready_s, stem, limit_s if status is None and stopped else None)
        if not keep:
            stem.with_suffix(".stats").unlink(missing_ok=True)
        return dataclasses.replace(outcome, output=stem.with_suffix(".log"), output_bytes=fold(stem))
