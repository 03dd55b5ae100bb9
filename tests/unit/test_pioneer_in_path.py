"""Whether a path stands for its own trace is known before it is carried out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mpiio_ext.pioneer.compare.in_path import differences_in_path
from mpiio_ext.pioneer.path import MOST_GROUPS
from mpiio_ext.pioneer.pipeline import not_in_path
from mpiio_ext.pioneer.table import SCHEMA, Source, TraceInfo
from mpiio_ext.pioneer.traces import path_of

RANKS, CALLS, SIZE = 6, 40, 100
INFO = TraceInfo(format="test", ranks=RANKS, sources=[Source(path="x")])


def tables(offset: Callable[[int, int], int], size: Callable[[int], int] = lambda rank: SIZE) -> dict[int, pa.Table]:
    """Return the operations of ranks that write to a shared file at the offsets of (rank, step), and to their own."""
    found = {}
    for rank in range(RANKS):
        rows: list[dict[str, Any]] = [{"operation": "open", "file": "/d/all", "result": 3}]
        rows += [
            {"operation": "pwrite", "file": "/d/all", "offset": offset(rank, step), "size": size(rank)}
            for step in range(CALLS)
        ]
        rows += [
            {"operation": "close", "file": "/d/all"},
            {"operation": "open", "file": f"/d/own.{rank}", "result": 3},
            {"operation": "pwrite", "file": f"/d/own.{rank}", "offset": 0, "size": 7},
            {"operation": "close", "file": f"/d/own.{rank}"},
        ]
        found[rank] = pa.Table.from_pylist(
            [
                {
                    "timestamp": 10 * at,
                    "duration": 1,
                    "rank": rank,
                    "thread": 0,
                    "layer": "posix",
                    "depth": 0,
                    "line": at,
                    **row,
                }
                for at, row in enumerate(rows)
            ],
            SCHEMA,
        )
    return found


@pytest.mark.parametrize("each_rank", [False, True])
def test_offsets_that_follow_a_rule_are_in_the_path(each_rank: bool) -> None:
    regular = tables(lambda rank, step: (step * RANKS + rank) * SIZE)
    found = differences_in_path(path_of(regular, INFO, each_rank=each_rank), regular)
    assert found == {"private": 0.0, "shared": 0.0}
    assert not_in_path(found, RANKS) == ""


def test_random_offsets_are_not_unless_each_rank_is_kept() -> None:
    places = np.random.default_rng(5).permutation(RANKS * CALLS).reshape(RANKS, CALLS)
    random = tables(lambda rank, step: int(places[rank, step]) * SIZE)
    found = differences_in_path(path_of(random, INFO), random)
    assert found["shared"] > 0.5  # ranks 2 to 5 are put elsewhere
    assert found["private"] == 0
    said = not_in_path(found, RANKS)
    assert said.count("\n") == 0
    assert f"shared files {found['shared']:.2f} of the bytes differ, limit 0.02" in said
    assert said.endswith("repeat it with --each-rank, which writes the operations of every rank")
    assert differences_in_path(path_of(random, INFO, each_rank=True), random) == {"private": 0.0, "shared": 0.0}


def test_sizes_of_single_ranks_show() -> None:
    """The representative of the children writes less than one of them."""
    uneven = tables(lambda rank, step: (step * RANKS + rank) * SIZE, lambda rank: SIZE if rank < 4 else SIZE // 2)
    assert differences_in_path(path_of(uneven, INFO), uneven)["shared"] == pytest.approx(1 / 5)


def test_reads_that_end_early_are_in_the_path() -> None:
    """They touch what they have read: lines by fgets, whose plan asks for no more, and a read at the file's end."""
    found = tables(lambda rank, step: (step * RANKS + rank) * SIZE)
    for rank, table in found.items():
        rows = [
            {"operation": "fopen", "file": "/d/conf", "result": 0},
            {"operation": "fgets", "file": "/d/conf", "offset": 0, "size": 99, "result": 7},
            {"operation": "fread", "file": "/d/conf", "offset": 7, "size": 5000, "result": 20},
            {"operation": "fclose", "file": "/d/conf"},
        ]
        lines = [
            {
                "timestamp": 10000 + at,
                "duration": 1,
                "rank": rank,
                "thread": 0,
                "layer": "stdio",
                "depth": 0,
                "line": 1000 + at,
                **row,
            }
            for at, row in enumerate(rows)
        ]
        found[rank] = pa.concat_tables([table, pa.Table.from_pylist(lines, SCHEMA)])
    assert differences_in_path(path_of(found, INFO), found) == {"private": 0.0, "shared": 0.0}


def test_more_ranks_than_a_path_can_tell_apart() -> None:
    assert f"trace at most {MOST_GROUPS} ranks" in not_in_path({"shared": 0.3}, MOST_GROUPS + 1)


def test_many_operations_are_planned_for_some_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evenly spaced: the first and the last among them."""
    monkeypatch.setattr("mpiio_ext.pioneer.compare.in_path._MOST_PLANNED", 3)
    last = tables(lambda rank, step: (step * RANKS + (rank if rank < 5 else 50)) * SIZE)
    found = differences_in_path(path_of(last, INFO), last)
    assert found["shared"] == pytest.approx(1.0)
