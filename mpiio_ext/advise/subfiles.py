"""The gain of a program that stores its file as several (``mpiox_subfiles``), and the cost of the merge.

Problem.   Where one file lies on one server, or ranks write in turn under a lock of each server, no hint that leaves
           the file as it is helps. Subfiles do, but other programs need a merge, whose time the program does not show.
           So the hint is proposed, and not put into a hints file.
Algorithm. The file system and the path show two cases. Whole files lie on servers by their names (GlusterFS,
           distribute). Or servers grant locks (Lustre), and ranks write pieces of one length in turn, each on its own.
           Then there are no file domains that could be chosen; with a subfile for each rank, of units as long as the
           pieces, nobody meets another one's lock. In these cases the path is carried out in pairs, as the tuner would
           have it and with subfiles, which are merged for real.
Guarantee. Nothing is reported about other file systems and accesses, nor if the calls are not faster by `_LEAST_GAIN`.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpiio_ext.common.units import size_text
from mpiio_ext.errors import MpiioExtError

if TYPE_CHECKING:
    from mpiio_ext.pioneer.path import WorkloadPath
    from mpiio_ext.tune.job import Job
    from mpiio_ext.tune.outcome import Result
    from mpiio_ext.tune.setting import Setting
    from mpiio_ext.tune.trial import Runner

#: Fewer bytes are not worth a word.
_LEAST_BYTES = 1 << 20
_LEAST_GAIN = 1.1
#: Pairs of runs; no other begins after this part of the budget.
_PAIRS, _MOST_PART = 3, 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why subfiles may pay.

    Attributes
    ----------
    why : in words.
    hints : that store the file so.
    """

    why: str
    hints: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """Times of the calls of the path, medians in seconds.

    Attributes
    ----------
    reason : why it was tried.
    before_s, after_s : without subfiles, and with them.
    merge_s, merged_by : of the merge, and how bytes were copied.
    """

    reason: Reason
    before_s: float
    after_s: float
    merge_s: float
    merged_by: str

    def __str__(self) -> str:
        """One sentence."""
        hints = " ".join(f"{name}={value}" for name, value in self.reason.hints.items())
        both_s = self.after_s + self.merge_s
        worth = (
            f"{self.before_s / both_s:.2g} times as fast with the merge"
            if both_s < self.before_s
            else "slower with the merge: use it only without one"
        )
        return (
            f"{self.reason.why}: with {hints} the calls take {self.after_s:.2g} s in place of "
            f"{self.before_s:.2g} s, and the merge {self.merge_s:.2g} s ({self.merged_by}): {worth}"
        )


def reason_of(path: WorkloadPath, main: str) -> Reason | None:
    """Return why subfiles may pay for the main file of a path; None: there is no reason."""
    from mpiio_ext import layout

    writes = [row for row in _rows(path, main) if row["writes"]]
    size_bytes = sum(size for row in writes for size in row["sizes"])
    if size_bytes < _LEAST_BYTES or path.info.ranks < 2:
        return None
    folder = Path(main).parent
    try:
        facts = layout.inspect(folder)
    except MpiioExtError:
        return None
    targets, kind = facts.value("targets"), facts.value("file_system")
    if isinstance(targets, int) and targets > 1:
        why = f"each file of {folder} lies on one of {targets} servers of {kind}"
        return Reason(why=why, hints={"mpiox_subfiles": "per_server"})
    piece = in_turn(path, main)
    if facts.value("lock_protocol") != "server" or piece is None:
        return None
    why = f"{path.info.ranks} ranks write pieces of {size_text(piece, exact=True)} in turn, under locks of {kind}"
    hints = {"mpiox_subfiles": str(path.info.ranks), "mpiox_subfile_unit": str(piece)}
    return Reason(why=why, hints=hints)


def _rows(path: WorkloadPath, main: str) -> list[dict[str, Any]]:
    """Return the calls of MPI-IO on a file that all ranks have, with offset and bytes of each rank that makes one."""
    from mpiio_ext.pioneer.operations import operation_of

    found = []
    counts = [len(members) for members in path.info.members]
    for row in path.table.to_pylist():
        if row["layer"] != "mpiio" or row["file"] is None or row["owner"] != "shared":
            continue
        if _name_of(row["file"]) != main:
            continue
        kind = operation_of("mpiio", row["operation"])
        groups = [group for group in range(path.group_count) if row[f"size_{group}"]]
        found.append(
            {
                "kind": kind,
                "writes": bool(kind.writes),
                "name": row["operation"],
                "at": {group: row[f"offset_{group}"] for group in groups},
                "sizes": [row[f"size_{group}"] for group in groups for _ in range(counts[group])],
            }
        )
    return found


def _name_of(template: str) -> str:
    from mpiio_ext.pioneer.path import Template

    return Template(template).name(0)


def in_turn(path: WorkloadPath, main: str) -> int | None:
    """Return the length of the pieces that ranks write in turn, each on its own at offsets that it names; None: others.

    Rank r writes only pieces whose number is r modulo the ranks, up to the order of the ranks.
    """
    rows = _rows(path, main)
    writes = [row for row in rows if row["writes"]]
    views = any(row["name"] == "MPI_File_set_view" for row in rows)
    if views or any(len(members) > 1 for members in path.info.members):
        return None
    if not writes or any(row["kind"].collective or not row["kind"].explicit_offset for row in writes):
        return None
    sizes = {size for row in writes for size in row["sizes"]}
    places = {(group, at) for row in writes for group, at in row["at"].items()}
    if len(sizes) != 1 or any(at is None for _, at in places):
        return None
    (piece,), ranks = sizes, path.info.ranks
    turns = {(group, at // piece % ranks) for group, at in places}
    own = len(turns) == len({group for group, _ in turns}) == len({turn for _, turn in turns}) == ranks
    meets = len({at // piece // ranks for _, at in places}) > 1
    return piece if own and meets and all(at % piece == 0 for _, at in places) else None


def proposed(
    path: WorkloadPath, main: str, job: Job, result: Result, *, log: Path, budget_s: float, seed: int
) -> Gain | None:
    """Return the gain of subfiles, if there is a reason to expect one; None: there is no reason, or no gain.

    Parameters
    ----------
    path, main : of the traced run, and its file.
    job, result : the tuning of that path, whose setting is to be beaten.
    log : folder for the output of the runs.
    budget_s : of all tuning.
    """
    from mpiio_ext.tune.setting import BASELINE

    if result.interrupted or result.broken_status or job.own is None or (reason := reason_of(path, main)) is None:
        return None
    won = result.candidate if result.verdict == "wins" else None
    return _gain(reason, job, BASELINE if won is None else won, log=log, budget_s=budget_s, seed=seed)


def _gain(reason: Reason, job: Job, without: Setting, *, log: Path, budget_s: float, seed: int) -> Gain | None:
    """Carry the path out without subfiles and with them, in pairs; None: it is not faster, or fails."""
    from mpiio_ext.tune.merging import MergingRunner
    from mpiio_ext.tune.replayed import END_MARK
    from mpiio_ext.tune.served import ServedRunner
    from mpiio_ext.tune.setting import Setting
    from mpiio_ext.tune.trial import ProcessRunner

    log.mkdir(exist_ok=True)
    several = Setting(tuple(sorted({**without.as_dict(), "mpiox_enable": "true", **reason.hints}.items())))
    served = ServedRunner(ProcessRunner(launch=job.launch, hints_text=job.hints_text, log=log), END_MARK)
    runner = MergingRunner(served, job.fresh)
    try:
        found = _pairs(runner, job, without, several, until_s=time.monotonic() + _MOST_PART * budget_s, seed=seed)
    finally:
        served.close()
    if found is None:
        return None
    before, after, merges = found
    gain = Gain(
        reason=reason,
        before_s=statistics.median(before),
        after_s=statistics.median(after),
        merge_s=statistics.median(merge_s for merge_s, _ in merges),
        merged_by=merges[-1][1],
    )
    return gain if gain.before_s >= _LEAST_GAIN * gain.after_s else None


def _pairs(
    runner: Runner, job: Job, without: Setting, several: Setting, *, until_s: float, seed: int
) -> tuple[list[float], list[float], list[tuple[float, str]]] | None:
    """Return the times of the runs, and the merges; None: a run or merge failed. The first pair does not count."""
    chance, limit_s = random.Random(seed), max(30.0, until_s - time.monotonic())
    costs: dict[Setting, list[float]] = {without: [], several: []}
    merges, number = [], 0
    for pair in range(1 + _PAIRS):
        if len(costs[several]) > 0 and time.monotonic() > until_s:
            break
        for one in chance.sample([without, several], 2):
            number += 1
            outcome = runner(one, number, limit_s)
            if outcome.status != "ok":
                return None
            if pair > 0:
                costs[one].append(job.metric.cost(outcome))
                merges += [(outcome.merge_s, outcome.merged_by)] if one == several else []
    return costs[without], costs[several], merges
