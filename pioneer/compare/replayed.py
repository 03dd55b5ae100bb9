"""A workload against the trace of its replay: what so many ranks can do of it.

Problem.   A replay leaves some operations out, calls others by the names of its stand-ins, and with another number of
           ranks nobody may be in a subgroup. Held against the trace as it is, a perfect replay would pass limits.
Content.   `against_replay` gives both sides as they can be compared (`engine.expected`).
"""

from __future__ import annotations

from dataclasses import replace

from mpiio_ext.pioneer.compare.activity import activity_of_path
from mpiio_ext.pioneer.compare.workload import Workload
from mpiio_ext.pioneer.engine.expected import comparable_path, expected_path

__all__ = ["against_replay"]


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
    expected = replace(original, path=expected_path(original.path, ranks))
    if original.kind == "path":  # of a trace what was left out is not in the activity
        expected = replace(expected, activity=activity_of_path(expected.path))
    return expected, replace(again, path=comparable_path(again.path, original.path, ranks))
