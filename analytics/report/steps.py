"""A job with several logs: its steps, the share of its time that has I/O, and one sentence about all of them.

Problem. The logs of a job are of programs side by side, or in turn. A diagnosis of the sums of their counters is of no
program, and the share of I/O in the sum of run times is of no time that passes.

Algorithm. Each log is diagnosed by itself, with its DXT and HEATMAP. Times are joined on the clock
(:mod:`mpiio_ext.analytics.diagnosis.together`). Logs whose first sentence names the same cause are one group. The job's
sentence is that of the group whose sure cause takes most of the time in I/O. Slow storage targets are searched in the
files of all logs together, too.

Guarantees. What is too little of a log's own run time is looked into all the same, where the I/O of all such logs
together is not too little of the job's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext.analytics.analyses.counting import count_words
from mpiio_ext.analytics.diagnosis.activity import Activity
from mpiio_ext.analytics.diagnosis.diagnose import time_of_log
from mpiio_ext.analytics.diagnosis.model import LOST, NOTHING, UNLESS
from mpiio_ext.analytics.diagnosis.together import LogTime, explained, running, stretches, together
from mpiio_ext.analytics.diagnosis.words import rounded, worded
from mpiio_ext.analytics.ledger import Interval
from mpiio_ext.analytics.report.findings import Known, diagnoses
from mpiio_ext.analytics.report.job import own_shares
from mpiio_ext.analytics.tables.plain import scalar_of
from mpiio_ext.common.page import Number
from mpiio_ext.common.units import amount_text

if TYPE_CHECKING:
    from mpiio_ext.analytics.tools.health import DiskStates

#: Columns of the table of steps.
COLUMNS = (
    "log",
    Number("start"),
    Number("duration"),
    Number("processes"),
    Number("read"),
    Number("written"),
    Number("time in I/O"),
    Number("of its run time"),
    "first sentence",
)
#: Logs of a table on a terminal, and on a page; those with most time in I/O.
MOST_STEPS = 48


@dataclasses.dataclass(frozen=True)
class Step:
    """One log of a job: its row of ``darshan_job``, its times, and its diagnoses, the most important first."""

    name: str
    row: Mapping[str, Any]
    time: LogTime
    diagnosed: Sequence[Mapping[str, Any]]

    @property
    def first(self) -> Mapping[str, Any] | None:
        """Return the finding that its first sentence names."""
        found = self.diagnosed[0]["document"]["findings"] if self.diagnosed else ()
        return found[0] if found else None

    @property
    def sentence(self) -> str:
        """Return its first sentence."""
        return (
            str(self.diagnosed[0]["document"]["conclusion"])
            if self.diagnosed
            else "No file has times of reads or writes."
        )

    @property
    def of_run(self) -> float:
        """Return its time in I/O over its run time; NaN where that is unknown."""
        return self.time.in_io.middle / self.time.run_time if self.time.run_time > 0 else float("nan")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Steps:
    """The logs of a job, in the order in which they began.

    Attributes
    ----------
    steps : sequence of Step
    known : what holds for all of them.
    targets : the finding that a storage target is slow, by the files of all logs; None where there is none.
    seen : DXT and HEATMAP of the logs, by ``log_id``.
    """

    steps: Sequence[Step]
    known: Known
    targets: Mapping[str, Any] | None = None
    seen: Mapping[int, Activity] = dataclasses.field(default_factory=dict)

    @property
    def busiest(self) -> tuple[str, Activity] | None:
        """Return the log with most time in I/O that has DXT or HEATMAP, and their facts."""
        there = [step for step in self.steps if step.row["log_id"] in self.seen]
        most = max(there, key=lambda step: step.time.in_io.middle, default=None)
        return None if most is None else (most.name, self.seen[most.row["log_id"]])

    @property
    def times(self) -> list[LogTime]:
        """Return the times of all logs."""
        return [step.time for step in self.steps]

    @property
    def in_io(self) -> Interval:
        """Return the time in which any log has I/O (s)."""
        return together(self.times)

    @property
    def run_time(self) -> float:
        """Return the time in which any log runs (s)."""
        return running(self.times)

    def groups(self) -> list[tuple[float, list[Step]]]:
        """Return the time that each cause takes (s) and the steps that name it first: sure ones, longest first."""
        named: dict[tuple[str, str, bool], list[int]] = {}
        for number, step in enumerate(self.steps):
            if (first := step.first) is not None:
                key = first["cause"], step.diagnosed[0]["document"]["direction"], first["confidence"] == "high"
                named.setdefault(key, []).append(number)
        found = []
        for (_, _, sure), numbers in named.items():
            time = explained([self.times[k] for k in numbers], [_time(self.steps[k]) for k in numbers])
            found.append((not sure, -time, sorted((self.steps[k] for k in numbers), key=lambda step: -_time(step))))
        return [(-time, steps) for _, time, steps in sorted(found, key=lambda each: each[:2])]

    @property
    def conclusion(self) -> str:
        """Return the first sentence about all logs."""
        run, io, lost = self.run_time, self.in_io, any(seen.lost for seen in self.seen.values())
        io = Interval(io.least, io.least) if lost else io
        spent, share, least = io.middle, io.over(run), "at least " if io.narrow else ""
        whole = (
            f"I/O takes {least}{self._between(share, 'share')} of the time in which any program of the"
            f" job's {len(self.steps):,} logs runs ({self._between(io, 's')} of {self._said(run, 's')})."
        )
        if share.most < self.known.limits.trivial:
            return f"{whole} {'But ' + LOST if lost else f'This is too little to be worth tuning{UNLESS}'}."
        if self.targets is not None:
            of = min(1.0, self.targets["time"]["value"] / spent) if spent > 0 else 0.0
            return (
                f"{whole} In the files of all logs together: {self.targets['title']} The cause explains"
                f" {self._said(of, 'share')} of the job's time in I/O."
            )
        groups = self.groups()
        if not groups:
            longest = max(self.steps, key=lambda step: step.time.in_io.middle)
            return f"{whole} No cause was found. {longest.name} has most time in I/O: {longest.sentence}"
        time, steps = groups[0]
        first = steps[0].first or {}
        sure = first["confidence"] == "high"
        of = self._said(min(1.0, time / spent) if spent > 0 else 0.0, "share")
        bound = "at most " if first["at_most"] and of != "100 %" else ""
        who = (
            f"In {steps[0].name}"
            if len(steps) == 1
            else f"In all {len(steps)} logs"
            if len(steps) == len(self.steps)
            else f"In {len(steps)} of {len(self.steps)} logs"
        )
        explains = f"The cause {'explains' if sure else 'may explain'} {bound}{of} of the job's time in I/O."
        return f"{whole} {'' if sure else f'{NOTHING} Possible: '}{who}: {first['title']} {explains}"

    def _said(self, value: float, unit: str) -> str:
        return "unknown" if value != value else worded(rounded(value, 2) if self.known.anonymous else value, unit)

    def _between(self, value: Interval, unit: str) -> str:
        least, most = (self._said(each, unit) for each in (value.least, value.most))
        return self._said(value.middle, unit) if value.narrow or least == most else f"between {least} and {most}"

    @property
    def order(self) -> str:
        """Return how many logs ran at once, and how many in turn, in words."""
        found = [len(each) for each in stretches(self.times)]
        if len(found) == 1:
            return f"{count_words(len(self.steps), 'log')} side by side"
        alone = all(count == 1 for count in found)
        how = "one after the other" if alone else f"in {len(found)} turns, up to {max(found)} side by side"
        return f"{count_words(len(self.steps), 'log')}, {how}"

    def rows(self) -> list[tuple[str, ...]]:
        """Return the table of steps in words; of many, those with most time in I/O."""
        base = min((time.start for time in self.times if time.known), default=0.0)
        shown = sorted(self.steps, key=lambda step: -step.time.in_io.middle)[:MOST_STEPS]
        return [
            (
                step.name,
                f"+{step.time.start - base:,.0f} s" if step.time.known else "–",
                self._said(step.time.run_time, "s"),
                self._said(step.row["processes"] or float("nan"), "count"),
                *(_bytes(step.row[name]) for name in ("bytes_read", "bytes_written")),
                self._between(step.time.in_io, "s"),
                self._between(step.time.in_io.over(step.time.run_time), "share"),
                step.sentence,
            )
            for step in self.steps
            if step in shown
        ]

    def document(self) -> dict[str, Any]:
        """Return the same as JSON can hold it."""
        base = min((time.start for time in self.times if time.known), default=0.0)
        steps = [
            {
                "log": step.name,
                "start": step.time.start - base if step.time.known else None,
                "run_time": step.row["run_time"],
                "processes": step.row["processes"],
                "bytes_read": step.row["bytes_read"],
                "bytes_written": step.row["bytes_written"],
                "io_time": step.time.in_io.middle,
                "io_time_bounds": dataclasses.astuple(step.time.in_io),
                "io_of_run": step.of_run if step.of_run == step.of_run else None,
                "conclusion": step.sentence,
                "diagnosis": [one["document"] for one in step.diagnosed],
            }
            for step in self.steps
        ]
        run = self.run_time
        return {
            "conclusion": self.conclusion,
            "run_time": run,
            "io_time": self.in_io.middle,
            "io_time_bounds": dataclasses.astuple(self.in_io),
            "io_of_run": self.in_io.middle / run if run > 0 else None,
            "steps": steps,
        }

    def diagnosed(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Return the diagnoses to show in full: of each group that of its longest step, and of steps without a cause.

        With each goes of how many logs it is, in words.
        """
        shown = [(steps[0], _and_more(steps, "with this cause")) for _, steps in self.groups()]
        none = [step for step in self.steps if step.first is None and step.diagnosed]
        if none:
            none.sort(key=lambda step: -step.time.in_io.middle)
            shown.append((none[0], _and_more(none, "without a cause")))
        return [(words, one) for step, words in shown for one in step.diagnosed]


def _and_more(steps: Sequence[Step], what: str) -> str:
    return steps[0].name + (f" (and {len(steps) - 1} more {what})" if len(steps) > 1 else "")


def _time(step: Step) -> float:
    return float(step.first["time"]["value"]) if step.first is not None else 0.0


def _bytes(value: float | None) -> str:
    return "–" if value is None else amount_text(value)


def of_job(
    tables: Mapping[str, pa.Table],
    known: Known,
    seen: Mapping[int, Activity],
    disks: Mapping[int, DiskStates | None] | None = None,
) -> Steps:
    """Return the steps of a job.

    Parameters
    ----------
    tables : rows of one job with several logs, by table.
    known : Known
        Facts that apply to all logs.
    seen : DXT and HEATMAP of the logs, by ``log_id``.
    disks : which disks were down or not ready when each log began.
    """
    logs = tables["darshan_job"].sort_by("start_time").to_pylist()
    parts = {row["log_id"]: of_log(tables, row["log_id"]) for row in logs}
    times = {
        number: time_of_log(part["darshan_job"], part["darshan_file"], seen.get(number))
        for number, part in parts.items()
    }
    steps = []
    for place, row in enumerate(logs, 1):
        number = row["log_id"]
        own = dataclasses.replace(known, activity=seen.get(number), disks=(disks or {}).get(number))
        name = f"log {place}" if known.anonymous or not row["log_file"] else row["log_file"]
        steps.append(Step(name, row, times[number], _diagnosed(parts[number], own)))
    little = [
        step for step in steps if step.diagnosed and not any(one["document"]["worth_tuning"] for one in step.diagnosed)
    ]
    if together([step.time for step in little]).most >= known.limits.trivial * running(list(times.values())):
        limits = dataclasses.replace(known.limits, trivial=0.0)
        for place, step in enumerate(steps):
            number = step.row["log_id"]
            own = dataclasses.replace(known, activity=seen.get(number), limits=limits)
            if step in little:
                steps[place] = dataclasses.replace(step, diagnosed=_diagnosed(parts[number], own))
    by_one = any(step.first and step.first["cause"] == "slow_ost" for step in steps)
    return Steps(steps=steps, known=known, targets=None if by_one else _slow_target(tables, known), seen=seen)


def _slow_target(tables: Mapping[str, pa.Table], known: Known) -> Mapping[str, Any] | None:
    """Return the finding, of the files of all logs, that a storage target is slow; None where there is no sure one."""
    slow = [
        each
        for one in diagnoses(tables, known)
        for each in one["document"]["findings"]
        if each["cause"] == "slow_ost" and each["confidence"] == "high"
    ]
    return max(slow, key=lambda each: each["time"]["value"], default=None)


def of_log(tables: Mapping[str, pa.Table], number: int) -> dict[str, pa.Table]:
    """Return the rows of one log; those of other tables are of all logs."""
    log = scalar_of(number)
    own = {name: tables[name].filter(pc.equal(tables[name]["log_id"], log)) for name in ("darshan_job", "darshan_file")}
    return {**tables, **own}


def _diagnosed(tables: Mapping[str, pa.Table], known: Known) -> list[dict[str, Any]]:
    """Return the diagnoses of a log."""
    return diagnoses(tables, known, own_shares(tables))
