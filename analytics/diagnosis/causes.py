"""All causes, in the order in which their rules are tried, and the causes that are effects of other ones.

Each rule inspects a :class:`Case` and returns a finding or None. A share of critical time is either the exclusive time
of the files that the rule is about (``at_most``), or, where that can be computed, the time that it costs. Evidence
against a cause keeps it away. Where few ranks move the data, not all meet at an OST. A sure cause removes those that
are only its effects.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from mpiio_ext.analytics.diagnosis.case import Case
from mpiio_ext.analytics.diagnosis.cause import Cause
from mpiio_ext.analytics.diagnosis.causes_calls import (
    HDF5_METADATA,
    READ_AMPLIFICATION,
    READ_BACK,
    READ_BEFORE_WRITE,
    READ_MODIFY_WRITE,
    SHARED_POINTER,
)
from mpiio_ext.analytics.diagnosis.causes_folders import SLOW_FOLDER
from mpiio_ext.analytics.diagnosis.causes_metadata import METADATA, OPENING, SEEKS, SHARED_OPENS, SYNCS
from mpiio_ext.analytics.diagnosis.causes_ranks import (
    COPIES,
    FEW_AGGREGATORS,
    FEW_READERS,
    FEW_WRITERS,
    PIECES_OF_ONE,
    ROOT_READS,
    ROOT_WRITES,
    STRAGGLERS,
)
from mpiio_ext.analytics.diagnosis.causes_requests import SMALL_REQUESTS
from mpiio_ext.analytics.diagnosis.causes_storage import (
    CONTENTION,
    DOMINANT_FILE,
    MANY_AGGREGATORS,
    MANY_OSTS,
    REDUNDANT_READS,
    REDUNDANT_WRITES,
    SERIALISED,
    SLOW_FILE,
    SLOW_OST,
    SMALL_FILES,
    STORAGE_FAULT,
    UNALIGNED,
)
from mpiio_ext.analytics.diagnosis.causes_time import (
    EXCHANGE,
    LATE_RANK,
    LOAD_BY_OTHERS,
    SLOWED_DOWN,
    TURNS,
    WAITING_CALLS,
)
from mpiio_ext.analytics.diagnosis.model import Finding
from mpiio_ext.analytics.tables.arrays import Flags

#: In the order in which they are reported if they explain the same.
CAUSES: tuple[Cause, ...] = (
    SLOW_OST,
    SLOW_FOLDER,
    SLOW_FILE,
    READ_MODIFY_WRITE,
    READ_BEFORE_WRITE,
    READ_BACK,
    READ_AMPLIFICATION,
    SHARED_POINTER,
    PIECES_OF_ONE,
    HDF5_METADATA,
    SMALL_REQUESTS,
    REDUNDANT_READS,
    REDUNDANT_WRITES,
    CONTENTION,
    COPIES,
    ROOT_WRITES,
    ROOT_READS,
    FEW_WRITERS,
    FEW_READERS,
    FEW_AGGREGATORS,
    MANY_AGGREGATORS,
    MANY_OSTS,
    SERIALISED,
    SMALL_FILES,
    METADATA,
    SHARED_OPENS,
    SEEKS,
    OPENING,
    STRAGGLERS,
    TURNS,
    LATE_RANK,
    EXCHANGE,
    WAITING_CALLS,
    SYNCS,
    SLOWED_DOWN,
    LOAD_BY_OTHERS,
    STORAGE_FAULT,
    UNALIGNED,
    DOMINANT_FILE,
)


def named(name: str) -> Cause:
    """Return the cause of a finding."""
    return next(one for one in CAUSES if one.name == name)


def found_in(case: Case) -> list[Finding]:
    """Return the findings of all rules without those that are effects of others, surest first."""
    rules = dict.fromkeys(one.rule for one in CAUSES)  # a rule may find several causes
    found = [finding for rule in rules if (finding := rule(case)) is not None]
    return sorted(_without_effects(case, found), key=lambda finding: finding.rank)


def _without_effects(case: Case, found: list[Finding]) -> list[Finding]:
    """Return the findings without those that are only effects of a sure one about the same files.

    A shared pointer is there or not, and so are pieces of one rank: what they cost may not be sure, that waiting, or
    one rank's time, is their effect is.
    """
    of = {each.cause: named(each.cause) for each in found}
    gone = {effect for one in of.values() if one.effects_if == "anywhere" for effect in one.effects}
    found = [each for each in found if each.cause not in gone]
    sure = [
        each for each in found if of[each.cause].effects_if == "found" or (each.confidence == "high" and each.costs)
    ]
    return [
        _less_sure(each, found)
        for each in found
        if not any(
            each.cause in of[one.cause].effects
            and not (_about(case, each) & ~_about(case, one)).any()
            and not (of[each.cause].waits and each.time > 2 * one.time)
            for one in sure
        )
    ]


def _less_sure(one: Finding, found: list[Finding]) -> Finding:
    """Return a finding of small requests that is not sure, where ranks wait far longer in calls beside them."""
    waits = max((each.time for each in found if each.cause == "waiting_calls"), default=0.0)
    if one.cause != "small_requests" or one.confidence != "high" or waits <= 2 * one.time:
        return one
    reason = f"{one.reason}; but ranks wait in the calls for far longer than these take"
    return dataclasses.replace(one, confidence="medium", reason=reason)


def _about(case: Case, finding: Finding) -> Flags:
    """Return the critical files with the time that a finding is about, without the files that hardly have any."""
    there = case.about[finding.cause] & case.files.critical
    return np.asarray(there & (case.exclusive >= case.limits.reported * case.time))
