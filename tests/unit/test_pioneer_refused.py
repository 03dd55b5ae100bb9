"""What `pioneer check` refuses, and that everything else can be planned: random paths, and single ones."""

from __future__ import annotations

import contextlib
import io
import pathlib
import random
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpiio_ext.pioneer.cli import _check_path
from mpiio_ext.pioneer.engine.places import Places
from mpiio_ext.pioneer.engine.plan import PlanError, make_plan
from mpiio_ext.pioneer.engine.refused import refusals
from mpiio_ext.pioneer.engine.unmade import unmade
from support.pioneer_paths import EVERYTHING, path_of, row
from support.pioneer_random import spoilt_path


def test_good_paths_are_not_refused() -> None:
    assert refusals(path_of(EVERYTHING)) == []


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_what_is_accepted_can_be_planned(tmp_path: pathlib.Path, seed: int) -> None:
    """For any number of ranks; what is refused names an operation."""
    path = spoilt_path(random.Random(seed))
    path.save(tmp_path / "path.parquet")
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        refused = _check_path(str(tmp_path / "path.parquet"))
    if refused:
        assert re.search(r"operation \d+", said.getvalue()), said.getvalue()
        return
    for ranks in (1, 2, 3, 5):
        plans = [make_plan(path, rank, ranks, Places(tmp_path / "out")) for rank in range(ranks)]
        for plan in plans:
            assert (plan.file < len(plan.paths)).all() and (plan.second < len(plan.paths)).all()
            assert (plan.slot < plan.slots).all() and (plan.request < plan.requests).all()
            assert (plan.size >= 0).all() and (plan.meets >= 0).all()
            assert (plan.together[:, :3] == plans[0].together[:, :3]).all()


@pytest.mark.parametrize(
    ("spoilt", "why"),
    [
        (row("open", "a", "shared", extra={"flags": 2**40}), "operation 1: open: flags, offset or size are beyond"),
        (row("mmap", "all", "shared", at=0, size=9, extra={"protection": "x"}), "operation 1: mmap: "),
        (row("stat", "../../x", "shared"), "operation 1: stat: '../../x' has no place"),
        (row("stat", "a{rank", "shared"), "operation 1: stat: 'a{rank' is no file name with rank fields"),
        (row("rename", "a", "shared", extra={"file2": "../x"}), "operation 1: rename: '../x' has no place"),
        (row("pwrite", "all", "shared", at=2**62, size=9), "operation 1: pwrite: offset_"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_operation(spoilt: dict[str, Any], why: str) -> None:
    rows = [row("open", "all", "shared"), spoilt, row("close", "all", "shared")]
    found = refusals(path_of(rows))
    assert found and all(why in line for line in found), found


def test_a_collective_that_a_group_does_not_make() -> None:
    """The others would wait for it for ever; of a file that each opens alone it is nobody's matter."""
    rows = [
        row("MPI_File_open", "a", "shared", "mpiio"),
        row("MPI_File_write_all", "a", "shared", "mpiio", size=9, groups=2),
        row("MPI_File_close", "a", "shared", "mpiio"),
    ]
    (line,) = refusals(path_of(rows))
    assert line.startswith("operation 1, group 1: MPI_File_write_all is collective, and group 0 does not make it")
    rows[0]["extra"] = '{"comm":"self"}'
    assert refusals(path_of(rows)) == []


def test_calls_without_a_name_are_left_out_with_a_reason(tmp_path: pathlib.Path) -> None:
    """Such paths come from traces without names; `check` says which operation it is."""
    rows = [
        row("unlink", None, None),
        row("rename", "a", "shared"),
        row("open", None, None),
        row("stat", "b", "shared"),
    ]
    path = path_of(rows)
    plan = make_plan(path, 0, 2, Places(tmp_path))
    assert plan.ids.tolist() == [3]
    assert dict(plan.unknown) == {"unlink": 1, "rename": 1, "open": 1}
    assert plan.reasons["unlink"] == plan.reasons["open"] == "the path names no file for it"
    assert "no second name" in plan.reasons["rename"]
    said = unmade(path)
    assert any("2 operations name no file: open, unlink" in line and "operation 0" in line for line in said), said
    assert any("1 operations have no second name" in line and "operation 1" in line for line in said), said


def test_the_id_is_that_of_the_path_where_opens_are_made_up() -> None:
    rows = [row("write", "a", "shared", at=0, size=9), row("stat", "a{", "shared")]
    with pytest.raises(PlanError, match="operation 1: stat"):
        make_plan(path_of(rows), 0, 2, Places(pathlib.Path("/replay")))
