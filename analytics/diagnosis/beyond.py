"""Factors beyond their limits, whether or not they explain anything; and why a factor is unknown.

Problem. A rule inspects the critical files, and their cost. A job may have a factor beyond its limit that explains
nothing: the sentence that nothing is suspicious would contradict the table of factors beside it. And a factor may be
unknown although the log has the module: because too few files are alike, not because counters are missing.
"""

from __future__ import annotations

import numpy as np

from mpiio_ext.analytics.diagnosis.case import Case
from mpiio_ext.analytics.diagnosis.words import worded
from mpiio_ext.analytics.factors.storage import alike

#: Factor -> (limit's name, words, unit). What is no fault by itself is not here: one file alone, pauses, POSIX.
_LIMITS = {
    "processes_per_ost": ("contention", "processes per OST", "count"),
    "unaligned": ("unaligned", "requests that are not aligned", "share"),
    "root_writes": ("root", "bytes that rank 0 wrote", "share"),
    "metadata": ("metadata", "metadata calls in the time of all calls", "share"),
    "straggler": ("straggler", "time of the slowest rank that an average one does not need", "share"),
    "serialised": ("serialised", "how little the files overlap", "share"),
    "slow_file": ("slow", "slowest file, over its likes", "ratio"),
    "slow_ost": ("slow", "slowest OST, over the others", "ratio"),
}


def beyond(case: Case) -> list[str]:
    """Return each factor of the job that is beyond its limit, in words."""
    values = {**case.per_job, "metadata": case.metadata}
    if case.swept - float(case.files.largest(case.files.duration)[0]) < case.limits.reported * case.swept:
        values["serialised"] = float("nan")  # the others take no time, one after the other or not
    found = [
        f"{words} {worded(case.value(value), unit)}"
        for name, (limit, words, unit) in _LIMITS.items()
        if (value := values.get(name, float("nan"))) >= getattr(case.limits, limit)
    ]
    small, jumps = case.small, case.per_job["non_consecutive"]
    if small >= case.limits.small and jumps >= case.limits.non_consecutive:
        small, jumps = case.value(small), case.value(jumps)
        found.append(f"small requests {worded(small, 'share')}, non-consecutive ones {worded(jumps, 'share')}")
    return found


def why_unknown(case: Case, name: str) -> str:
    """Return why a factor is unknown whose module has counters of the critical files."""
    limits = case.limits
    if name != "slow_ost":
        return "too few of the critical files have the counters"
    likes = int(np.count_nonzero(~np.isnan(alike(case.files))))
    if likes < limits.alike_files:
        files = f"{case.value(likes):.0f} alike file{'' if likes == 1 else 's'}"
        return f"{files} to compare, and {limits.alike_files} are needed"
    return f"the alike files lie on fewer than {limits.alike_osts} OSTs"
