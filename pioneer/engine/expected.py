"""What a trace of a replay has to show: a workload path as a given number of ranks carries it out.

Problem.   A path that is carried out and traced again is compared with itself; but some of it cannot come back, by
           construction: operations that the engine leaves out or makes by another call, and, where there are fewer
           ranks than the path has groups, what missing groups do alone. A single rank has no private and no shared
           files: nothing in its trace tells them from its own.
Algorithm. The plans of one rank of each group that is there say which operations are made, by which call, and after
           which slack time; where the first rank of a group is not the one that was traced, at which offsets and
           through which views, too. Everything else is the path's. Files are classed by who of the ranks uses them, as
           `path.extract` does.
Guarantee. With as many ranks as were traced, and nothing left out, it is the path itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mpiio_ext.pioneer.engine.coverage import engine_name
from mpiio_ext.pioneer.engine.opens import with_opens
from mpiio_ext.pioneer.engine.places import Places
from mpiio_ext.pioneer.engine.plan import Plan, group_of_rank, make_plan
from mpiio_ext.pioneer.engine.rank_views import parsed
from mpiio_ext.pioneer.path import Template, WorkloadPath
from mpiio_ext.pioneer.path.views import views_of_groups
from mpiio_ext.pioneer.path.workload_path import COMMON, PER_GROUP

__all__ = ["expected_path"]


def _members(path: WorkloadPath, ranks: int) -> dict[int, tuple[int, ...]]:
    """Return the ranks of each group that has any."""
    found: dict[int, list[int]] = {}
    for rank in range(ranks):
        found.setdefault(group_of_rank(rank, ranks, path.info.members), []).append(rank)
    return {group: tuple(several) for group, several in sorted(found.items())}


def _owners(path: WorkloadPath, groups: NDArray[np.int64], members: Mapping[int, tuple[int, ...]]) -> pa.Array:
    """Return the class of the file of each operation, by the ranks that use it."""
    masks: dict[str, int] = {}
    files = path.words("file")
    for file, mask in zip(files, groups.tolist(), strict=True):
        if file is not None:
            masks[file] = masks.get(file, 0) | mask
    known = {}
    for file, mask in masks.items():
        users = sum(len(several) for group, several in members.items() if mask >> group & 1)
        if users > 1:
            known[file] = "private" if Template(file).has_rank else "shared"
        else:
            known[file] = "root" if mask & 1 else "child"
    return pa.array([None if file is None else known[file] for file in files], pa.string())


def _moved(path: WorkloadPath, members: Mapping[int, tuple[int, ...]]) -> set[int]:
    """Return the groups whose first rank is not the one that was traced."""
    return {group for group, several in members.items() if several[0] != path.info.representatives[group]}


def _own_view(found: dict[str, Any], plan: Plan, row: int) -> dict[str, Any] | None:
    """Return the `extra` of a call that sets a view with that of the plan's rank; None: it does not make the call."""
    at = np.flatnonzero(plan.ids == row)
    if not at.size:
        return None
    view = {"displacement": int(plan.offset[at[0]]), "filetype": plan.views[plan.view[at[0]]]}
    rest = {name: value for name, value in found.items() if name != "groups" and not name.startswith("filetype")}
    return rest | view


def _extras(path: WorkloadPath, plans: Mapping[int, Plan], moved: set[int]) -> pa.ChunkedArray | pa.Array:
    """Return the column `extra`: where views are told for each group, for those of the plans, and of their ranks."""
    column, count = path.table["extra"], path.group_count
    if len(plans) == count and not moved:
        return column
    texts = column.to_pylist()
    sets = path.words("operation") == "MPI_File_set_view"
    for row in np.flatnonzero(sets).tolist():
        found = parsed(texts[row])
        own = found.get("groups")
        several = own if isinstance(own, list) and len(own) == count else [found] * count
        views = views_of_groups(found, count)
        if views is not None:
            found["groups"] = [_own_view(found, plan, row) if group in moved else several[group]
                               for group, plan in plans.items()]  # fmt: skip
            texts[row] = json.dumps(found, separators=(",", ":"))
    return pa.array(texts, pa.string())


def _offsets(table: pa.Table, group: int, plan: Plan, *, moved: bool) -> pa.ChunkedArray | pa.Array:
    """Return the offsets of a group's first rank."""
    if not moved:
        return table[f"offset_{group}"]
    found = np.full(table.num_rows, -1, np.int64)
    found[plan.ids] = plan.stream
    return pa.array(found, mask=found < 0)


def _slack(plan: Plan, rows: int) -> pa.Array:
    """Return the slack times of a plan, at the rows of the path; null where it makes nothing."""
    found, made = np.zeros(rows, np.int64), np.zeros(rows, np.bool_)
    found[plan.ids], made[plan.ids] = plan.slack, True
    return pa.array(found, mask=~made)


def expected_path(path: WorkloadPath, ranks: int) -> WorkloadPath:
    """Return the path that the trace of a replay by so many ranks is to have.

    Parameters
    ----------
    path : what is carried out.
    ranks : that carry it out.

    Raises
    ------
    PlaceError
        A name of the path leads out of the folder.
    """
    path = with_opens(path)
    table, members = path.table, _members(path, ranks)
    plans = {group: make_plan(path, several[0], ranks, Places(Path.cwd())) for group, several in members.items()}
    groups = np.zeros(table.num_rows, np.int64)
    names = path.words("operation")
    for group, plan in plans.items():
        groups[plan.ids] |= 1 << group
        names[plan.ids] = [engine_name(int(number)) for number in plan.operation]
    columns = {field.name: table[field.name] for field in COMMON}
    moved = _moved(path, members)
    columns["extra"] = _extras(path, plans, moved)
    columns["operation"], columns["owner"] = pa.array(names, pa.string()), _owners(path, groups, members)
    columns["groups"] = pa.array(sum((groups >> group & 1) << new for new, group in enumerate(plans)))
    for new, (group, plan) in enumerate(plans.items()):
        own = {name: table[f"{name}_{group}"] for name in PER_GROUP} | {
            "slack": _slack(plan, table.num_rows), "offset": _offsets(table, group, plan, moved=group in moved)
        }  # fmt: skip
        columns |= {f"{name}_{new}": own[name] for name in PER_GROUP}
    whole = pa.table(columns).cast(WorkloadPath.schema(len(plans))).filter(pa.array(groups != 0))
    whole = whole.set_column(0, whole.schema.field("id"), pa.array(np.arange(whole.num_rows, dtype=np.int64)))
    info = replace(path.info, representatives=tuple(several[0] for several in members.values()),
                   members=tuple(members.values()), ranks=ranks)  # fmt: skip
    return WorkloadPath(whole, info)
