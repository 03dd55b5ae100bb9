"""Accesses that are planned all at once: the plan is that of going along every operation."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpiio_ext.pioneer.engine import meetings, plan
from mpiio_ext.pioneer.engine.places import Places
from mpiio_ext.pioneer.engine.plain import Columns
from mpiio_ext.pioneer.engine.plan import Plan, make_plan
from mpiio_ext.pioneer.operations import operation_of
from mpiio_ext.pioneer.path.workload_path import WorkloadPath
from support.pioneer_paths import path_of

Row = dict[str, Any]
MEMBERS = ((0,), (1, 2, 3))
EACH = [{"displacement": 64 + 20 * group, "filetype": "V(4;1;40;10)"} for group in range(2)]
VIEW = {**EACH[0], "groups": EACH}
MPIIO = (
    "MPI_File_open",
    "MPI_File_close",
    "MPI_File_write_at",
    "MPI_File_read",
    "MPI_File_seek",
    "MPI_File_iwrite_at",
    "MPI_File_write_shared",
    "MPI_File_set_view",
)
POSIX = (
    "open",
    "close",
    "read",
    "write",
    "pread",
    "pwrite",
    "lseek",
    "dup",
    "ftruncate",
    "unlink",
    "stat",
    "sendfile",
    "mmap",
    "munmap",
    "readdir",
    "nonsense",
)
EXTRAS: tuple[Row | None, ...] = (
    None,
    None,
    None,
    {"whence": "SEEK_CUR"},
    {"moved": 3},
    {"file2": "b"},
    {"errno": 2},
    {"comm": "self"},
    {"flags": 66, "amode": 5},
)


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    """Draw operations of some sessions, most of which begin with an open."""
    found: list[Row] = []
    number = st.one_of(st.none(), st.integers(0, 2000))
    for _ in range(draw(st.integers(1, 40))):
        session = draw(st.integers(0, 3))
        layer, names = ("mpiio", MPIIO) if session % 2 else ("posix", POSIX)
        begun = any(row["session"] == session for row in found)
        name = draw(st.sampled_from(names)) if begun or draw(st.integers(0, 5)) == 0 else names[0]
        extra = VIEW if name == "MPI_File_set_view" else draw(st.sampled_from(EXTRAS))
        per_group = {f"{column}_{group}": draw(number) for column in ("offset", "size", "slack") for group in (0, 1)}
        found.append(
            {
                "id": len(found),
                "layer": layer,
                "operation": name,
                "session": session,
                "file": draw(st.sampled_from(("a", "b", "p.{rank}", None))) if session > 1 else "c",
                "owner": draw(st.sampled_from(("shared", "private", "root"))),
                "groups": draw(st.sampled_from((3, 3, 3, 1, 2))),
                "extra": None if extra is None else json.dumps(extra),
                **per_group,
            }
        )
    return found


def planned(path: WorkloadPath, rank: int, folder: pathlib.Path) -> Plan | str:
    try:
        return make_plan(path, rank, 4, Places(folder))
    except (ValueError, KeyError, IndexError, TypeError) as error:
        return type(error).__name__


def content(found: Plan | str) -> dict[str, Any]:
    """Return what can be compared."""
    if isinstance(found, str):
        return {"error": found}
    values = {field.name: getattr(found, field.name) for field in dataclasses.fields(found)}
    return {
        name: (value.dtype.name, value.tolist()) if isinstance(value, np.ndarray) else value
        for name, value in values.items()
    }


@settings(max_examples=30, deadline=None)
@given(rows())
def test_the_plan_is_that_of_each_operation(operations: list[Row]) -> None:
    path, folder = path_of(operations, members=MEMBERS), pathlib.Path("/tmp/somewhere")
    for rank in (0, 2):
        at_once = content(planned(path, rank, folder))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(plan, "plain_rows", lambda _, every: np.zeros(every.size, np.bool_))
            patch.setattr(meetings, "_AGAIN", frozenset())
            assert at_once == content(planned(path, rank, folder))


def test_accesses_of_open_files_are_planned_at_once(tmp_path: pathlib.Path) -> None:
    """All but the first of a file; through a view, too."""
    base = {"file": "a", "owner": "shared", "groups": 3, "session": 0, "layer": "mpiio", "size_0": 8, "size_1": 8}
    made = [base | {"operation": "MPI_File_open"}, base | {"operation": "MPI_File_set_view", "extra": json.dumps(VIEW)}]
    made += [base | {"operation": "MPI_File_write_at", "offset_0": 8 * i, "offset_1": 8 * i} for i in range(9)]
    path = path_of([row | {"id": number} for number, row in enumerate(made)], members=MEMBERS)
    assert operation_of("mpiio", "MPI_File_write_at").explicit_offset
    gone_along: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        one = plan.Planner.row

        def row(planner: plan.Planner, number: int) -> Columns | None:
            gone_along.append(number)
            return one(planner, number)

        patch.setattr(plan.Planner, "row", row)
        found = make_plan(path, 0, 4, Places(tmp_path))
    assert gone_along == [0, 1, 2]
    assert found.size.tolist()[2:] == [8] * 9
    assert found.offset.tolist()[2:] == [8 * i for i in range(9)]
