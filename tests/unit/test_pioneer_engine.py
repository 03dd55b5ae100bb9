"""Phase E of PIONEER without MPI: places of files, groups of ranks, plans."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

import pyarrow as pa
import pytest

from mpiio_ext.pioneer.engine.places import PlaceError, Places
from mpiio_ext.pioneer.engine.plan import group_of_rank, make_plan, open_flags
from mpiio_ext.pioneer.operations import operation_of
from mpiio_ext.pioneer.path.workload_path import PathInfo, WorkloadPath

Row = dict[str, Any]


def path_of(rows: list[Row], members: tuple[tuple[int, ...], ...] = ((0,), (1, 2, 3))) -> WorkloadPath:
    """Return a path; `g0`, `g1` of a row are (offset, size, slack) of the groups, `extra` an object."""
    schema = WorkloadPath.schema(len(members))
    everybody = (1 << len(members)) - 1
    filled = []
    for number, row in enumerate(rows):
        values = {f"{name}_{group}": value for group in range(len(members))
                  for name, value in zip(("offset", "size", "slack"), row.get(f"g{group}", ()), strict=False)}
        extra = json.dumps(row["extra"]) if "extra" in row else None
        filled.append({"layer": "posix", "groups": everybody, "id": number, **row, **values, "extra": extra})
    columns = {}
    for field in schema:
        kind = pa.string() if pa.types.is_dictionary(field.type) else field.type
        columns[field.name] = pa.array([row.get(field.name) for row in filled], kind)
    return WorkloadPath(pa.table(columns).cast(schema),
                        PathInfo(representatives=tuple(group[0] for group in members), members=members))


# ---- places ----------------------------------------------------------------------------------------------------------


def test_places_are_below_the_folder(tmp_path: pathlib.Path) -> None:
    places = Places(tmp_path)
    assert places.of("/scratch/u/out.nc") == tmp_path / "scratch/u/out.nc"
    assert places.of("run/./out.nc") == tmp_path / "run/out.nc"
    assert places.of("/opt/lib/../etc/x.conf") == tmp_path / "opt/etc/x.conf"
    assert places.of("//x") == tmp_path / "x"


@pytest.mark.parametrize("name", ["", "/", "../x", "a/../../x", "a/..", "x\0y", "out/file", "link"])
def test_names_that_lead_out(tmp_path: pathlib.Path, name: str) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "out").symlink_to(tmp_path)
    (tmp_path / "inside" / "link").symlink_to("/etc/passwd")
    with pytest.raises(PlaceError):
        Places(tmp_path / "inside").of(name)


# ---- ranks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ranks", "members", "expected"),
    [
        (4, ((0,),), [0, 0, 0, 0]),
        (4, ((0,), (1, 2, 3)), [0, 1, 1, 1]),
        (1, ((0,), (1, 2, 3)), [0]),
        (7, ((0,), (1, 2), (3,)), [0, 1, 1, 1, 1, 2, 2]),
        (4, ((0,), (1,), (2,), (3,)), [0, 1, 2, 3]),
        (3, ((0,), (1,), (2,)), [0, 1, 2]),
    ],
)
def test_groups_are_scaled(ranks: int, members: tuple[tuple[int, ...], ...], expected: list[int]) -> None:
    assert [group_of_rank(rank, ranks, members) for rank in range(ranks)] == expected


# ---- flags -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layer", "name", "extra", "reads", "writes", "flags"),
    [
        ("posix", "open", {"flags": os.O_RDWR | os.O_CREAT | os.O_EXCL}, True, True, os.O_RDWR | os.O_CREAT),
        ("posix", "open", {"flags": "O_WRONLY|O_CREAT|O_EXCL"}, False, True, os.O_WRONLY | os.O_CREAT),
        ("posix", "open", {}, True, False, os.O_RDONLY), ("posix", "open", {}, True, True, os.O_RDWR | os.O_CREAT),
        ("posix", "creat", {}, False, True, os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        ("stdio", "fopen", {"mode": "r+"}, True, True, 3), ("stdio", "fopen", {"mode": "wb"}, False, True, 6),
        ("stdio", "fopen", {}, True, False, 1), ("stdio", "fopen", {"mode": "a"}, False, True, 8),
        ("mpiio", "MPI_File_open", {"amode": 73}, True, True, 9),
        ("mpiio", "MPI_File_open", {"amode": "MPI_MODE_WRONLY|MPI_MODE_CREATE"}, False, True, 5),
        ("mpiio", "MPI_File_open", {}, True, False, 2),
    ],
)  # fmt: skip
def test_flags_of_opens(layer: str, name: str, extra: Row, reads: bool, writes: bool, flags: int) -> None:
    assert open_flags(operation_of(layer, name), extra, reads=reads, writes=writes) == flags


# ---- plans -----------------------------------------------------------------------------------------------------------


def rows_of_plan(path: WorkloadPath, rank: int, ranks: int, folder: pathlib.Path) -> list[tuple[Any, ...]]:
    plan = make_plan(path, rank, ranks, Places(folder))
    names = [None if file < 0 else str(pathlib.Path(plan.paths[file]).relative_to(folder)) for file in plan.file]
    return list(zip(plan.ids.tolist(), names, plan.slot.tolist(), plan.offset.tolist(), plan.size.tolist(),
                    plan.slack.tolist(), strict=True))  # fmt: skip


def test_each_rank_has_its_names_and_offsets(tmp_path: pathlib.Path) -> None:
    path = path_of([
        {"operation": "open", "file": "cfg", "owner": "root", "groups": 1, "g0": (None, None, 5)},
        {"operation": "open", "file": "p.{rank:03}", "owner": "private", "g0": (None, None, 7), "g1": (None, None, 9)},
        {"operation": "strange", "file": "all", "owner": "shared", "g0": (None, None, 2), "g1": (None, None, 3)},
        {"operation": "open", "file": "all", "owner": "shared", "g0": (None, None, 1), "g1": (None, None, 1)},
        {"operation": "pwrite", "file": "all", "owner": "shared", "g0": (1000, 10, 4), "g1": (1010, 20, 4)},
        {"operation": "pwrite", "file": "p.{rank:03}", "owner": "private", "g0": (0, 8, 4), "g1": (64, 8, 4)},
        {"operation": "close", "file": "all", "owner": "shared"},
        {"operation": "close", "file": "cfg", "owner": "root", "groups": 1},
        {"operation": "open", "file": "all", "owner": "shared"},
    ])
    assert rows_of_plan(path, 0, 2, tmp_path) == [
        (0, "cfg", 0, -1, 0, 5), (1, "p.000", 1, -1, 0, 7), (3, "all", 2, -1, 0, 3), (4, "all", 2, 1000, 10, 4),
        (5, "p.000", 1, 0, 8, 4), (6, "all", 2, -1, 0, 0), (7, "cfg", 0, -1, 0, 0), (8, "all", 0, -1, 0, 0),
    ]  # fmt: skip
    assert rows_of_plan(path, 5, 8, tmp_path) == [
        (1, "p.005", 0, -1, 0, 9), (3, "all", 1, -1, 0, 4), (4, "all", 1, 1050, 20, 4), (5, "p.005", 0, 64, 8, 4),
        (6, "all", 1, -1, 0, 0), (8, "all", 1, -1, 0, 0),
    ]  # fmt: skip
    plan = make_plan(path, 5, 8, Places(tmp_path))
    assert plan.unknown == {"strange": 1}
    assert plan.everybody.tolist() == [False, True, True, False, True, True]
    assert plan.bytes_written == 28


def test_offsets_that_are_no_multiple_stay(tmp_path: pathlib.Path) -> None:
    path = path_of([
        {"operation": "open", "file": "all", "owner": "shared"},
        {"operation": "pwrite", "file": "all", "owner": "shared", "g0": (0, 4, 0), "g1": (5, 4, 0)},
    ], members=((0,), (2, 3)))  # fmt: skip
    assert [row[3] for row in rows_of_plan(path, 3, 4, tmp_path)] == [-1, 5]


def test_operations_without_an_open_are_left_out(tmp_path: pathlib.Path) -> None:
    path = path_of([{"operation": "pwrite", "file": "a", "owner": "shared", "g0": (0, 4, 6)},
                    {"operation": "stat", "file": "a", "owner": "shared", "g0": (None, None, 1)}])
    plan = make_plan(path, 0, 1, Places(tmp_path))
    assert (plan.unknown, plan.slack.tolist()) == ({"pwrite": 1}, [7])


def test_a_path_that_leads_out(tmp_path: pathlib.Path) -> None:
    path = path_of([{"operation": "stat", "file": "../a", "owner": "shared"}])
    with pytest.raises(PlaceError, match=r"'\.\./a' has no place below"):
        make_plan(path, 0, 1, Places(tmp_path))
