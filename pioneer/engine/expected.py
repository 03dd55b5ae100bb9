"""The expected trace of a replay: a workload path as a given number of ranks carries it out.

Problem.   A path that is carried out and traced again is compared with itself. Some of it cannot come back, by
           construction: operations that the engine leaves out or makes by another call, and, where there are fewer
           ranks than groups, what missing groups do alone. A single rank has no private and no shared files: nothing in
           its trace separates them from its own. What missing ranks have written to a shared file is not there: a read
           at the file pointer ends early, and the places of the accesses after it are unknown.
Algorithm. The plans of one rank of each group that is there say which operations are made, by which call, and after
           which slack time. Where the first rank of a group is not the one that was traced, they also say at which
           offsets and through which views. Everything else is the path's. Files are classed by who of the ranks uses
           them, as `path.extract` does. With fewer ranks than were traced, some accesses at the file pointer of a
           shared file have no offset: those behind a read at it, with no seek between. How much such reads have moved
           is unknown. They get none here, and by `comparable_path` in the path of the replay's trace. Sizes that the
           original's tracer could not record are in neither (`unknown`), and neither are offsets in files that are
           written by accesses of such sizes, with any number of ranks.
Guarantee. With as many ranks as were traced, and nothing left out, it is the path itself. What the plans leave out, and
           what they add (`opens`), is counted for all ranks.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mpiio_ext.pioneer.access import parsed
from mpiio_ext.pioneer.engine.beside import MOVED_SIZES
from mpiio_ext.pioneer.engine.coverage import engine_name
from mpiio_ext.pioneer.engine.opens import IMPLIED_MARK, with_opens
from mpiio_ext.pioneer.engine.places import Places
from mpiio_ext.pioneer.engine.plan import Plan, make_plan
from mpiio_ext.pioneer.engine.unknown import files_of_unknown_size, without_unknown_sizes
from mpiio_ext.pioneer.operations import DATA, Role, operation_of
from mpiio_ext.pioneer.path import Template, WorkloadPath
from mpiio_ext.pioneer.path.groups_of_ranks import group_of_rank
from mpiio_ext.pioneer.path.views import views_of_groups
from mpiio_ext.pioneer.path.workload_path import COMMON, PER_GROUP
from mpiio_ext.pioneer.profile import find_sessions

_MOVING = DATA | {Role.BEGIN}


def _members(path: WorkloadPath, ranks: int) -> dict[int, tuple[int, ...]]:
    """Return the ranks of each group that has any."""
    found: dict[int, list[int]] = {}
    for rank in range(ranks):
        found.setdefault(group_of_rank(rank, ranks, path.info.members, path.info.communicators), []).append(rank)
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
        if Template(file).of_part:
            known[file] = _owner_of_part(Template(file), mask, members)
        elif users > 1 or (Template(file).refers and sum(map(len, members.values())) > 1):
            known[file] = "private" if Template(file).has_rank or Template(file).refers else "shared"
        else:
            known[file] = "root" if mask & 1 else "child"
    return pa.array([None if file is None else known[file] for file in files], pa.string())


def _owner_of_part(file: Template, mask: int, members: Mapping[int, tuple[int, ...]]) -> str:
    """Return the class of the file of a communicator: with few ranks it may be one rank's own."""
    ranks = sum(map(len, members.values()))
    users = {
        rank: file.name(rank, ranks) for group, several in members.items() for rank in several if mask >> group & 1
    }
    names = set(users.values())
    if len(names) < len(users):
        return "shared"
    return "private" if len(names) > 1 else "root" if mask & 1 else "child"


def _moved(path: WorkloadPath, members: Mapping[int, tuple[int, ...]]) -> set[int]:
    """Return the groups whose first rank is not the one that was traced."""
    return {group for group, several in members.items() if several[0] != path.info.representatives[group]}


def _own_view(found: dict[str, Any], plan: Plan, row: int) -> dict[str, Any] | None:
    """Return a call's `extra` with the view that the plan's rank sets; None if that rank does not make the call."""
    at = np.flatnonzero(plan.ids == row)
    if not at.size:
        return None
    view = {"displacement": int(plan.offset[at[0]]), "filetype": plan.views[plan.view[at[0]]]}
    rest = {name: value for name, value in found.items() if name != "groups" and not name.startswith("filetype")}
    return rest | view


def _extras(path: WorkloadPath, plans: Mapping[int, Plan], moved: set[int]) -> pa.ChunkedArray | pa.Array:
    """Return the column `extra`: where views are given for each group, for those of the plans, and of their ranks."""
    column, count = path.table["extra"], path.group_count
    if len(plans) == count and not moved:
        return column
    texts = column.to_pylist()
    sets = path.words("operation") == "MPI_File_set_view"
    for row in np.flatnonzero(sets).tolist():
        found = parsed(texts[row])
        own = found.get("groups")
        several = own if isinstance(own, list) and len(own) == count else [dict(found)] * count
        views = views_of_groups(found, count)
        if views is not None:
            found["groups"] = [
                _own_view(found, plan, row) if group in moved else several[group] for group, plan in plans.items()
            ]
            texts[row] = json.dumps(found, separators=(",", ":"))
    return pa.array(texts, pa.string())


def _offsets(table: pa.Table, group: int, plan: Plan, *, moved: bool) -> pa.ChunkedArray | pa.Array:
    """Return the offsets of a group's first rank."""
    if not moved:
        return table[f"offset_{group}"]
    found = np.full(table.num_rows, -1, np.int64)
    found[plan.ids] = plan.stream
    return pa.array(found, mask=found < 0)


def _sizes(path: WorkloadPath, group: int, plan: Plan) -> pa.ChunkedArray | pa.Array:
    """Return the sizes of a group's operations: for some the engine uses the bytes that they moved."""
    column = path.table[f"size_{group}"]
    rows = np.flatnonzero(np.isin(path.words("operation")[plan.ids], sorted(MOVED_SIZES)))
    if not rows.size:
        return column
    found = pc.fill_null(column, -1).to_numpy().copy()
    found[plan.ids[rows]] = plan.size[rows]
    return pa.array(found, mask=found < 0)


def _slack(plan: Plan, rows: int) -> pa.Array:
    """Return the slack times of a plan, at the rows of the path; null for rows that it leaves out."""
    found, made = np.zeros(rows, np.int64), np.zeros(rows, np.bool_)
    found[plan.ids], made[plan.ids] = plan.slack, True
    return pa.array(found, mask=~made)


# ---- reads that end early --------------------------------------------------------------------------------------------


def _short_of_data(path: WorkloadPath, ranks: int) -> set[str]:
    """Return the files of a path that lack data: of ranks which are not there, or of writes of unknown size."""
    found = files_of_unknown_size(path)
    traced = path.info.ranks or sum(len(several) for several in path.info.members)
    if ranks < traced:
        pairs = set(zip(path.words("file").tolist(), path.words("owner").tolist(), strict=True))
        found |= {file for file, owner in pairs if owner == "shared" and file is not None}
    return found


def _behind_reads(path: WorkloadPath, files: set[str]) -> NDArray[np.bool_]:
    """Return which accesses are at a file pointer that a read has moved by an unknown distance."""
    found = np.zeros(path.table.num_rows, np.bool_)
    sessions = find_sessions(path)
    wanted = [number for number, session in enumerate(sessions.sessions) if session.file in files]
    layers, names = path.words("layer"), path.words("operation")
    lost: dict[int, bool] = {}
    for row in np.flatnonzero(np.isin(sessions.of, wanted)).tolist():
        kind, session = operation_of(layers[row], names[row]), int(sessions.of[row])
        if kind.role is Role.SEEK:  # the engine makes it to the place where it led to
            lost[session] = False
        elif kind.role in _MOVING and not kind.explicit_offset:
            found[row] = lost.get(session, False)
            lost[session] = found[row] or not kind.writes
    return found


def _without_offsets(path: WorkloadPath, rows: NDArray[np.bool_]) -> WorkloadPath:
    table = path.table
    for group in range(path.group_count if rows.any() else 0):
        place = table.schema.get_field_index(f"offset_{group}")
        kept = pc.if_else(pa.array(rows), pa.scalar(None, pa.int64()), table[f"offset_{group}"])
        table = table.set_column(place, table.schema.field(place), kept)
    return WorkloadPath(table, path.info)


def _as_asked(path: WorkloadPath, files: set[str]) -> WorkloadPath:
    """Return a path without the bytes that reads of some files moved: fewer than requested, if data is missing."""
    texts = path.table["extra"].to_pylist()
    known = [
        row for row, file in enumerate(path.words("file").tolist()) if file in files and "moved" in (texts[row] or "")
    ]
    for row in known:
        rest = {name: value for name, value in parsed(texts[row]).items() if name != "moved"}
        texts[row] = json.dumps(rest, separators=(",", ":")) if rest else None
    if not known:
        return path
    place = path.table.schema.get_field_index("extra")
    field = path.table.schema.field(place)
    return WorkloadPath(path.table.set_column(place, field, pa.array(texts, pa.string()).cast(field.type)), path.info)


def comparable_path(again: WorkloadPath, path: WorkloadPath, ranks: int) -> WorkloadPath:
    """Return the path of the trace of a replay without what `expected_path` cannot predict.

    Parameters
    ----------
    again : of the replay's trace; its files are those of `path`, below any folder.
    path : what was carried out.
    ranks : that have carried it out.
    """
    short = {f"/{file.lstrip('/')}" for file in _short_of_data(path, ranks)}
    used = set(again.words("file").tolist()) - {None}
    names = {name for name in used if any(f"/{name}".endswith(end) for end in short)}
    return without_unknown_sizes(_without_offsets(_as_asked(again, names), _behind_reads(again, names)), path)


# ---- the path --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """The contents that the trace of a replay must have.

    Attributes
    ----------
    path : its path.
    left_out : operations of all ranks that the engine does not make, by name.
    made_up : opens and closes of all ranks that it makes and the original lacks.
    """

    path: WorkloadPath
    left_out: Mapping[str, int]
    made_up: int


def expected_path(path: WorkloadPath, ranks: int) -> WorkloadPath:
    """Return the path that the trace of a replay by so many ranks is to have; see `expectation`."""
    return expectation(path, ranks).path


def _counted(
    path: WorkloadPath, recorded: int, plans: Mapping[int, Plan], members: Mapping[int, tuple[int, ...]]
) -> tuple[Counter[str], int]:
    """Return what all ranks leave out, and how many of their operations are made up; `recorded`: rows without these."""
    left_out: Counter[str] = Counter()
    for group, plan in plans.items():
        for name, count in plan.unknown.items():
            left_out[name] += count * len(members[group])
    if path.table.num_rows == recorded:
        return left_out, 0
    implied = pc.fill_null(pc.match_substring(path.table["extra"].cast("string"), IMPLIED_MARK), False).to_numpy()
    return left_out, sum(int(implied[plan.ids].sum()) * len(members[group]) for group, plan in plans.items())


def expectation(path: WorkloadPath, ranks: int) -> Expectation:
    """Return the contents that the trace of a replay by so many ranks must have.

    Parameters
    ----------
    path : what is carried out.
    ranks : that carry it out.

    Raises
    ------
    PlaceError
        A name of the path leads out of the folder.
    """
    recorded, path = path.table.num_rows, with_opens(path)
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
            "slack": _slack(plan, table.num_rows),
            "offset": _offsets(table, group, plan, moved=group in moved),
            "size": _sizes(path, group, plan),
        }
        columns |= {f"{name}_{new}": own[name] for name in PER_GROUP}
    whole = pa.table(columns).cast(WorkloadPath.schema(len(plans))).filter(pa.array(groups != 0))
    whole = whole.set_column(0, whole.schema.field("id"), pa.array(np.arange(whole.num_rows, dtype=np.int64)))
    info = replace(
        path.info,
        representatives=tuple(several[0] for several in members.values()),
        members=tuple(members.values()),
        ranks=ranks,
        starts=tuple(path.info.start(group) for group in members),
    )
    found = WorkloadPath(whole, info)
    short = _short_of_data(path, ranks)
    left_out, made_up = _counted(path, recorded, plans, members)
    kept = without_unknown_sizes(_without_offsets(_as_asked(found, short), _behind_reads(found, short)), path)
    return Expectation(path=kept, left_out=left_out, made_up=made_up)
