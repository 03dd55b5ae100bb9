"""More ranks than traced in a file of all: where their parts go."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

from mpiio_ext.pioneer.engine.coverage import engine_name
from mpiio_ext.pioneer.engine.places import Places
from mpiio_ext.pioneer.engine.plan import make_plan
from support.small_paths import grouped

Row = dict[str, Any]


def mpiio(operation: str, **values: Any) -> Row:
    return {"operation": f"MPI_File_{operation}", "file": "all", "owner": "shared", "layer": "mpiio", **values}


def blocks_of_all(rows: list[Row], members: tuple[tuple[int, ...], ...], ranks: int, folder: pathlib.Path) -> list[int]:
    """Return the offsets of the accesses to the one file of a path by so many ranks, in their order in the file."""
    found = []
    for rank in range(ranks):
        plan = make_plan(grouped(rows, members), rank, ranks, Places(folder))
        moves = np.isin([engine_name(int(number)) for number in plan.operation], ["pwrite", "MPI_File_write_at"])
        found += plan.place[moves].tolist()
    return sorted(found)


@pytest.mark.parametrize("members", [((0,), (1, 2, 3)), ((0,), (1,), (2, 3)), ((0,), (1,), (2,), (3,))])
@pytest.mark.parametrize("ranks", [4, 5, 6, 9])
def test_blocks_that_ranks_write_in_turn_have_copies_of_the_file(
    tmp_path: pathlib.Path, ranks: int, members: tuple[tuple[int, ...], ...]
) -> None:
    """Of 4 ranks that write 3 rounds: rank 4 would write what rank 0 writes in the next one. The header is of all."""
    firsts = [group[0] for group in members]
    header = {f"g{group}": (0, 100, 0) for group in range(len(members))}
    rounds = [
        {f"g{group}": (100 + 400 * step + 100 * rank, 100, 0) for group, rank in enumerate(firsts)} for step in range(3)
    ]
    rows = [
        {"operation": name, "file": "all", "owner": "shared", **data}
        for name, data in (("open", {}), ("pwrite", header), *(("pwrite", each) for each in rounds), ("close", {}))
    ]
    places = blocks_of_all(rows, members, ranks, tmp_path)
    assert places.count(0) == ranks
    own = [place for place in places if place]
    assert len(set(own)) == len(own) == 3 * ranks
    copies = [own[12 * copy : 12 * copy + 12] for copy in range(-(-ranks // 4))]
    assert copies[0] == list(range(100, 1300, 100))
    assert all(set(copy) <= {number * 2**20 + place for place in copies[0]} for number, copy in enumerate(copies))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([{"g0": (0, 50, 0), "g1": (100, 50, 0)}, {"g0": (50, 50, 0), "g1": (150, 50, 0)}], list(range(0, 600, 50))),
        (
            [{"g0": (0, 50, 0), "g1": (100, 50, 0)}, {"groups": 1, "g0": (400, 9, 0)}],
            [0, 100, 200, 300, 400, 2**20, 2**20 + 100],
        ),
        ([{"groups": 2, "g1": (100, 50, 0)}, {"groups": 1, "g0": (0, 9, 0)}], [0, *[100] * 5]),
    ],
)
def test_parts_behind_one_another_go_on_behind_them(
    tmp_path: pathlib.Path, rows: list[Row], expected: list[int]
) -> None:
    """Of 4 ranks by 6; not where the root has an end behind them all. What children alone do is done at one place."""
    calls = [{"operation": "pwrite", "file": "all", "owner": "shared", **row} for row in rows]
    whole = [{"operation": name, "file": "all", "owner": "shared"} for name in ("open", "close")]
    assert blocks_of_all([whole[0], *calls, whole[1]], ((0,), (1, 2, 3)), 6, tmp_path) == expected


def test_plain_views_of_blocks_in_turn_have_copies(tmp_path: pathlib.Path) -> None:
    """Each rank's view begins at its first block; offsets through it go round by round."""
    views = [{"displacement": at, "filetype": "10"} for at in (0, 10)]
    steps = [mpiio("write_at", g0=(20 * step, 10, 0), g1=(20 * step, 10, 0)) for step in range(3)]
    rows = [mpiio("open"), mpiio("set_view", extra={**views[0], "groups": views}), *steps, mpiio("close")]
    places = blocks_of_all(rows, ((0,), (1,)), 4, tmp_path)
    assert places == [*range(0, 60, 10), *range(2**20, 2**20 + 60, 10)]
