"""Operations of a path that a replay would refuse, or hang in: found before there are ranks.

Problem.   A path that a person has written may have anything in it: a number where a name belongs, a file that leads
           out of the folder, a collective call that one rank makes and another does not.
Algorithm. The plan of the first rank of each group is made, as in a replay with as many ranks as were traced. What
           cannot be planned names its operation. The plans' collective calls on files that all have opened are compared
           one by one, with the meetings between them (`Plan.together`).
Guarantee. A path without a refusal, whose hard dependencies are fulfilled, is carried out to its end.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mpiio_ext.pioneer.engine.coverage import engine_name
from mpiio_ext.pioneer.engine.opens import opened
from mpiio_ext.pioneer.engine.places import PlaceError, Places
from mpiio_ext.pioneer.engine.plan import Plan, PlanError, make_plan
from mpiio_ext.pioneer.path import WorkloadPath
from mpiio_ext.pioneer.path.groups_of_ranks import group_of_rank

_NOWHERE = Path("/replay")


def _plans(path: WorkloadPath) -> tuple[dict[int, Plan], list[str]]:
    """Return the plan of a rank of each group, and why a group has none."""
    plans, wrong = dict[int, Plan](), list[str]()
    info = path.info
    groups = [group_of_rank(rank, info.traced, info.members, info.communicators) for rank in range(info.traced)]
    for group in sorted(set(groups)):
        try:
            plans[group] = make_plan(path, groups.index(group), info.traced, Places(_NOWHERE))
        except PlaceError as error:
            wrong.append(f"group {group}: a replay refuses the path: {error}")
        except PlanError as error:
            wrong.append(f"group {group}: {error}")
        except ValueError as error:
            wrong.append(f"group {group}: it cannot be planned: {error}")
    return plans, wrong


def _apart(first: Plan, other: Plan) -> tuple[Plan, int] | None:
    """Return where the collective calls of two plans part: which has one that the other has not, and its place."""
    common = min(len(first.together), len(other.together))
    differs = np.flatnonzero((first.together[:common, :3] != other.together[:common, :3]).any(axis=1))
    if not differs.size and len(first.together) == len(other.together):
        return None
    at = int(differs[0]) if differs.size else common
    several = [plan for plan in (first, other) if at < len(plan.together)]
    return min(several, key=lambda plan: int(plan.together[at, 3])), at


def refusals(path: WorkloadPath) -> list[str]:
    """Return why a replay would refuse a path, or never end, a line each with its operation; empty: it does neither."""
    plans, wrong = _plans(path)
    if wrong or 0 not in plans:
        return wrong
    ids = opened(path)[1]
    for group, plan in plans.items():
        found = _apart(plans[0], plan)
        if found is not None:
            whose, at = found
            _, number, _, row = whose.together[at].tolist()
            who = (0, group) if whose is plans[0] else (group, 0)
            wrong.append(
                f"operation {ids[row]}, group {who[0]}: {engine_name(number)} is collective, and group "
                f"{who[1]} does not make it at this point: a replay would hang"
            )
    return wrong
