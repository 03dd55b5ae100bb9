"""The metric of which bytes are touched: by hand, against counting bytes, with the fault that it is for."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from mpiio_ext.cli import main
from mpiio_ext.pioneer.compare import LIMITS, compare_paths
from mpiio_ext.pioneer.compare.comparison import compare_workloads
from mpiio_ext.pioneer.compare.touched import Touched, touched_by_groups, touched_by_ranks
from mpiio_ext.pioneer.compare.workload import load_workload
from mpiio_ext.pioneer.engine.expected import expected_path
from mpiio_ext.pioneer.file_types import parse
from mpiio_ext.pioneer.path.views import View
from mpiio_ext.pioneer.table import SCHEMA, TraceInfo
from mpiio_ext.pioneer.traces import sanitized, save_sanitized, tables_of
from support.pioneer_paths import path_of, row

Extents = list[tuple[int, int]]


def touched(*several: tuple[str, int, bool, Extents]) -> Touched:
    """Return what (class, rank, writes, extents) say."""
    extents = {
        (owner, rank, writes): (
            np.array([at for at, _ in found], np.int64),
            np.array([end for _, end in found], np.int64),
        )
        for owner, rank, writes, found in several
    }
    return Touched(members=(0, 1), extents=extents)


#: 100 bytes, of which 10 are touched twice: 110 in all.
FIRST = touched(("shared", 0, True, [(0, 100), (50, 60)]))


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [
        (FIRST, FIRST, 0),
        # It lacks 20, and has 5 besides.
        (FIRST, touched(("shared", 0, True, [(0, 80), (50, 60), (200, 205)])), 25 / 110),
        (FIRST, touched(("shared", 0, True, [(0, 50), (50, 100), (50, 60)])), 0),
        (FIRST, touched(("shared", 0, True, [(0, 100)])), 10 / 110),
        (FIRST, touched(("shared", 0, False, [(0, 100), (50, 60)])), 2),
        (FIRST, touched(("shared", 1, True, [(0, 100), (50, 60)])), 2),
        (FIRST, touched(("root", 0, True, [(0, 100), (50, 60)])), 1),
        (touched(), FIRST, 1),
        # Rank 2 is in one of them only.
        (FIRST, touched(("shared", 0, True, [(0, 100), (50, 60)]), ("shared", 2, True, [(0, 7)])), 0),
    ],
)
def test_by_hand(first: Touched, second: Touched, distance: float) -> None:
    assert first.distance(second, "shared") == distance
    assert FIRST.distance(FIRST, "private") == 0


several_extents = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 20)).map(lambda pair: (pair[0], sum(pair))), max_size=12
)


@given(several_extents, several_extents)
def test_against_counting(first: Extents, second: Extents) -> None:
    counts = np.zeros((2, 100), np.int64)
    for number, found in enumerate((first, second)):
        for at, end in found:
            counts[number, at:end] += 1
    apart, whole = int(np.abs(counts[0] - counts[1]).sum()), int(counts[0].sum())
    distance = touched(("shared", 0, True, first)).distance(touched(("shared", 0, True, second)), "shared")
    assert distance == (apart / whole if whole else float(apart > 0))


@pytest.mark.parametrize(
    "text",
    [
        "A(6,4;3,2;3,2;0;8)",
        "A(6,4;3,2;3,2;1;8)",
        "V(3;2;40;4)",
        "V(3;2;40;V(2;1;8;4))",
        "R(0;64;8)",
        "S(2,1;0,64;4;V(2;3;16;4))",
        "I(1,2;0,40;4)",
        "B(2;0,40;4)",
        "C(3;R(0;8;4))",
        "D(4;1;8,8;1,2;-1,2;2,2;0;4)",
        "C(0;4)",
    ],
)
def test_joined_pieces_are_the_same_bytes(text: str) -> None:
    def bytes_of(offsets: Any, lengths: Any) -> list[int]:
        return [at + byte for at, size in zip(offsets.tolist(), lengths.tolist(), strict=True) for byte in range(size)]

    kind = parse(text)
    view = View(100, text, kind)
    offsets, lengths = kind.pieces(joined=True)
    assert bytes_of(offsets, lengths) == bytes_of(*kind.pieces())
    assert offsets.size <= kind.most_pieces
    for begin, end in ((0, 1), (3, 2 * kind.size + 1), (kind.size, kind.size + 5)) if kind.size else ():
        assert bytes_of(*view.pieces(begin, end, joined=True)) == bytes_of(*view.pieces(begin, end))


# ---- a wrong tile ----------------------------------------------------------------------------------------------------

TILE = 8 * 3 * 2


def tiles(order: list[int], *, told: bool = True) -> list[pa.RecordBatch]:
    """Return raw rows: each rank writes its tile of 3 x 2 doubles of an array of 6 x 4, twice; `order`: whose."""
    rows: list[dict[str, Any]] = []
    for rank, tile in enumerate(order):
        text = f"A(6,4;3,2;{tile // 2 * 3},{tile % 2 * 2};0;8)"
        view = {"displacement": 64, "etype_size": 8, "filetype_size": TILE, "filetype_extent": 192, "datarep": "native"}
        calls: list[tuple[str, int | None, dict[str, Any]]] = [
            ("MPI_File_open", None, {"amode": 9, "comm": "world", "comm_size": len(order)}),
            ("MPI_File_set_view", None, view | ({"filetype": text} if told else {})),
            ("MPI_File_write_all", TILE, {"count": 6, "type_size": 8}),
            ("MPI_File_write_all", TILE, {"count": 6, "type_size": 8}),
            ("MPI_File_close", None, {}),
        ]
        rows += [
            {
                "timestamp": 1000 * line,
                "operation": name,
                "file": "/d/array",
                "size": size,
                "duration": 500,
                "rank": rank,
                "thread": 0,
                "layer": "mpiio",
                "depth": 0,
                "result": 0,
                "handle": 7,
                "line": line,
                "extra": json.dumps(extra),
            }
            for line, (name, size, extra) in enumerate(calls, 1)
        ]
    return pa.Table.from_pylist(rows, SCHEMA).to_batches()


def saved(path: pathlib.Path, order: list[int]) -> pathlib.Path:
    save_sanitized(TraceInfo(format="test", ranks=len(order)), sanitized(tiles(order)), path)
    return path


def test_extents_through_a_view() -> None:
    """Rows of two doubles, 32 bytes apart; the second write goes on behind the array."""
    found = touched_by_ranks(tables_of(sanitized(tiles([0, 1, 2, 3]))))
    assert (found.members, found.classes) == ((0, 1, 2, 3), {"shared"})
    begins, ends = found.extents["shared", 3, True]
    first = 64 + 3 * 32 + 16
    assert begins.tolist() == [first + row * 32 + step * 192 for step in range(2) for row in range(3)]
    assert (ends - begins).tolist() == [16] * 6
    alike = touched_by_ranks(tables_of(sanitized(tiles([3, 2, 1, 0], told=False))))
    begins, ends = alike.extents["shared", 3, True]
    assert (begins.tolist(), ends.tolist()) == ([0, TILE], [TILE, 2 * TILE])


@pytest.mark.parametrize(("order", "value"), [([0, 1, 2, 2], 0.5), ([0, 1, 3, 2], 1.0), ([0, 1, 2, 3], 0.0)])
def test_a_rank_that_writes_another_tile(tmp_path: pathlib.Path, order: list[int], value: float) -> None:
    """The last rank of four, which represents nobody, has the view of another one: nothing but this metric sees it."""
    first, second = saved(tmp_path / "a.parquet", [0, 1, 2, 3]), saved(tmp_path / "b.parquet", order)
    workloads = [load_workload(path) for path in (first, second)]
    assert [len(ranks) for ranks in workloads[0].path.info.members] == [1, 3]
    assert compare_paths(workloads[0].path, workloads[1].path).failed == {}
    found = compare_workloads(*workloads)
    assert {metric.name: metric.value for metric in found.failed} == ({"shared.touched": value} if value else {})
    result = CliRunner().invoke(main, ["pioneer", "compare", str(first), str(second), "-o", str(tmp_path / "out")])
    assert (result.exit_code, "shared.touched" in result.output) == (int(value > 0), True), result.output
    document = json.loads((tmp_path / "out" / "comparison.json").read_text(encoding="utf-8"))
    metric = next(item for item in document["metrics"] if item["name"] == "shared.touched")
    assert (metric["value"], metric["limit"], metric["judged"]) == (value, LIMITS["touched"], True)
    assert document["choices"]["touched"].startswith("of every rank")
    assert "shared.touched" in (tmp_path / "out" / "comparison.html").read_text(encoding="utf-8")


def test_representatives_are_compared_where_ranks_are_not(tmp_path: pathlib.Path) -> None:
    """Of two paths, and of other numbers of ranks: a view of a representative that is wrong shows."""
    four, wrong = (
        load_workload(saved(tmp_path / "a.parquet", [0, 1, 2, 3])),
        load_workload(saved(tmp_path / "b.parquet", [0, 2, 1, 3])),
    )
    two = load_workload(saved(tmp_path / "c.parquet", [0, 1]))
    assert compare_paths(four.path, wrong.path).failed == {"shared.touched": 1.0}
    assert touched_by_groups(four.path).members == (0, 1)
    found = compare_workloads(four, two)
    assert [metric.value for metric in found.metrics if metric.name == "shared.touched"] == [0.0]


def test_views_that_all_groups_have_in_common_are_expected_of_fewer_ranks() -> None:
    """Of a path by one rank: the view stands for the groups that are left, and not in itself."""
    view = {"displacement": 0, "filetype": "8", "filetype_size": 8, "filetype_extent": 8}
    path = path_of(
        [
            row("MPI_File_open", "f", "shared", "mpiio"),
            row("MPI_File_set_view", "f", "shared", "mpiio", extra=view),
            row("MPI_File_write_all", "f", "shared", "mpiio", at=0, size=8),
            row("MPI_File_close", "f", "shared", "mpiio"),
        ]
    )
    found = json.loads(expected_path(path, 1).table["extra"].to_pylist()[1])
    assert found["displacement"] == 0 and all(item is None or "groups" not in item for item in found.get("groups", []))
