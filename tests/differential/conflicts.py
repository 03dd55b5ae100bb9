"""Conflicts of a data-access call: with what is under way, and between the ranks that make it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from differential.filestate import File
from differential.state import Case, Handle, How, Illegal, Memory, Op, follows, verb_of
from differential.typetree import Offsets, distinct

MOST_IN_RACE = 4  # ranks whose order may matter in one call: all orders are tried


@dataclass(slots=True, kw_only=True)
class Plan:
    """One data-access call before it is carried out: what every rank that takes part asks for."""

    op: Op
    how: How
    handle: Handle
    memories: dict[int, Memory]
    targets: dict[int, Offsets]


def check_pending(pending: dict[int, Plan], files: dict[str, File], plan: Plan, rank: int) -> None:
    """Refuse a conflict with what is under way: nothing orders the two, not even on one rank."""
    file = files[plan.handle.file_of(rank)]
    target, writes = plan.targets[rank], verb_of(plan.op, rank) == "write"
    top = int(target.max()) + 1
    for other in pending.values():
        for r, theirs in other.targets.items():
            if files[other.handle.file_of(r)] is not file or not len(theirs):
                continue
            they_write = verb_of(other.op, r) == "write"
            if (writes or they_write) and np.isin(target, theirs).any():
                raise Illegal("conflict with a call under way")
            if writes and not they_write and int(theirs.max()) >= min(file.settled, len(file.data)) < top:
                raise Illegal("file grows during a read past its end")
            if they_write and not writes and top > file.settled and int(theirs.max()) >= file.settled:
                raise Illegal("read past the end while the file grows")


def racers(case: Case, files: dict[str, File], plan: Plan) -> list[int]:
    """Return the ranks whose order within the call matters."""
    handle = plan.handle
    busy = [rank for rank, target in plan.targets.items() if len(target)]
    if plan.how.pointer == "shared":
        racing = busy if len(busy) > 1 else []
    else:
        racing = overlapping(case, files, plan, busy)
        if racing and not handle.atomic:
            raise Illegal("ranks write different data to the same byte")
        if racing and len({handle.first + handle.group[rank] for rank in racing}) > 1:
            raise Illegal("ranks of different opens in conflict")
    if len(racing) > MOST_IN_RACE:
        raise Illegal("too many orders")
    return racing


def overlapping(case: Case, files: dict[str, File], plan: Plan, busy: list[int]) -> list[int]:
    """Return the ranks that touch a byte that another rank writes other data to in the same call."""
    op, handle = plan.op, plan.handle
    if not any(verb_of(op, rank) == "write" for rank in busy):
        return []
    same = all(follows(case, op, handle.tracks[r].view.rep) for r in busy) and not case.get("strict")
    if op["op"] == "write" and same:
        return []
    every = {name: [r for r in busy if handle.file_of(r) == name] for name in set(handle.files)}
    apart = all(distinct(np.concatenate([plan.targets[r] for r in ranks])) for ranks in every.values() if ranks)
    if apart and op["op"] == "write":
        return []
    racing = set()
    for one, other in itertools.combinations(busy, 2):
        writes = "write" in (verb_of(op, one), verb_of(op, other))
        one_file = handle.file_of(one) == handle.file_of(other)
        if writes and one_file and np.isin(plan.targets[one], plan.targets[other]).any():
            racing |= {one, other}
        elif one_file and op["op"] == "mixed":  # a read past the end beside a write that moves it
            racing |= end_race(files, plan, one, other)
    return sorted(racing)


def end_race(files: dict[str, File], plan: Plan, one: int, other: int) -> set[int]:
    """Return the two ranks when one reads past the end of the file that the other moves."""
    size = len(files[plan.handle.file_of(one)].data)
    tops = {verb_of(plan.op, rank): int(plan.targets[rank].max()) for rank in (one, other)}
    return {one, other} if len(tops) == 2 and min(tops.values()) >= size else set()
