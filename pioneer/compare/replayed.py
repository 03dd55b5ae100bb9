"""A workload against the trace of its replay: the part that this number of ranks can carry out.

Problem.   A replay leaves some operations out, calls others by the names of its stand-ins, and with another number of
           ranks nobody may be in a subgroup. Compared with the trace as it is, a perfect replay would pass limits.
Content.   `against_replay` gives both sides as they can be compared (`engine.expected`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from mpiio_ext.pioneer.compare.activity import activity_of_path
from mpiio_ext.pioneer.compare.workload import Workload
from mpiio_ext.pioneer.engine.coverage import LEFT_OUT
from mpiio_ext.pioneer.engine.expected import comparable_path, expectation


def against_replay(original: Workload, again: Workload, ranks: int = 0) -> tuple[Workload, Workload]:
    """Return a workload and the trace of its replay, with paths that can be compared.

    Parameters
    ----------
    original : what was carried out, or its trace without `engine.coverage.LEFT_OUT`.
    again : the trace of the replay.
    ranks : that have carried it out; 0: those of the trace.

    Raises
    ------
    PlaceError
        A name of the original leads out of any folder.
    """
    ranks = ranks or again.activity.ranks
    found = expectation(original.path, ranks)
    expected = replace(original, path=found.path)
    if original.kind == "path":
        expected = replace(expected, activity=activity_of_path(expected.path), left_out=found.left_out)
    else:  # LEFT_OUT is not in the activity; what is left out for another reason, by its session, is
        single = {name: count for name, count in found.left_out.items() if name not in LEFT_OUT}
        expected = replace(
            expected,
            left_out=Counter(original.left_out) + Counter(single),
            made_up=found.made_up,
            not_made=sum(single.values()),
        )
    return expected, replace(again, path=comparable_path(again.path, original.path, ranks))
