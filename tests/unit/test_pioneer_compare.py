"""Fidelity metrics: what is the same is close, and what has been spoilt in one way fails in that way."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from mpiio_ext.pioneer.compare import LIMITS, compare_paths
from mpiio_ext.pioneer.compare.metrics import TIMED
from mpiio_ext.pioneer.path.workload_path import WorkloadPath
from support.pioneer_paths import path_of, row

SESSIONS, WRITES = 60, 30


def checkpoint(seed: int = 1) -> WorkloadPath:
    """Return a path of sixty files that are written in bursts with pauses between them, and a stat before each."""
    random = np.random.default_rng(seed)
    rows = []
    for session in range(SESSIONS):
        file = f"out.{session % 20}"
        pause = int(1e8 * (1 + random.pareto(2.5)))
        rows.append(("stat", None, None, pause, file))
        rows.append(("open", None, None, 1000, file))
        rows += [
            ("pwrite", at * 4096, 4096 if at % 3 else 8192, int(random.integers(500, 1500)), file)
            for at in range(WRITES)
        ]
        rows.append(("close", None, None, 800, file))
    return made(rows)


def made(rows: list[tuple[str, int | None, int | None, int, str]]) -> WorkloadPath:
    return path_of(
        [
            {
                "operation": operation,
                "file": file,
                "owner": "shared",
                "groups": 1,
                "layer": "posix",
                "offset_0": offset,
                "size_0": size,
                "duration_0": 10_000,
                "slack_0": slack,
            }
            for operation, offset, size, slack, file in rows
        ],
        groups=1,
    )


def with_column(path: WorkloadPath, name: str, values: object) -> WorkloadPath:
    place = path.table.schema.get_field_index(name)
    field = path.table.schema.field(name)
    return WorkloadPath(path.table.set_column(place, field, pa.array(values).cast(field.type)), path.info)


def test_the_same_is_close() -> None:
    found = compare_paths(checkpoint(), checkpoint())
    assert set(found.values.values()) == {0.0}
    assert found.failed == {}
    assert {name.rpartition(".")[2] for name in found.values} == set(LIMITS) - {"in_path"}  # of a trace


def test_another_draw_of_the_same_slack_is_close_in_all_but_time() -> None:
    assert set(compare_paths(checkpoint(1), checkpoint(2)).failed) <= TIMED


def test_a_shuffled_order_fails() -> None:
    path = checkpoint()
    order = np.random.default_rng(3).permutation(path.table.num_rows)
    shuffled = WorkloadPath(path.table.take(order), path.info)
    shuffled = with_column(shuffled, "id", np.arange(path.table.num_rows))
    failed = compare_paths(path, shuffled).failed
    assert {"order", "shared.request_gap", "shared.duration"} <= set(failed)
    assert "counts" not in failed
    assert "shared.size" not in failed


def test_poisson_slack_fails() -> None:
    path = checkpoint()
    slack = path.table["slack_0"].to_numpy()
    drawn = np.random.default_rng(4).exponential(slack.mean(), slack.size).astype(np.int64)
    assert set(compare_paths(path, with_column(path, "slack_0", drawn)).failed) == {"slack", "slack_us", "arrival"}


def test_uniform_offsets_fail() -> None:
    path = checkpoint()
    offsets = path.table["offset_0"].to_pylist()
    random = np.random.default_rng(5)
    drawn = [None if at is None else int(random.integers(0, WRITES * 4096)) for at in offsets]
    assert set(compare_paths(path, with_column(path, "offset_0", drawn)).failed) == {"shared.offset", "shared.touched"}


@pytest.mark.parametrize(("column", "metric"), [("offset_1", "offset"), ("size_1", "size")])
def test_children_that_access_other_places_fail(column: str, metric: str) -> None:
    """The root's offsets and sizes are the program's; those of the others are not."""
    rows = [
        row("open", "f", "shared"),
        *[row("pwrite", "f", "shared", at=at * 512, size=512, step=512 * WRITES) for at in range(WRITES)],
        row("close", "f", "shared"),
    ]
    path = path_of(rows)
    drawn = np.random.default_rng(6).integers(0, 10**9, path.table.num_rows)
    spoilt = with_column(
        path,
        column,
        [None if old is None else int(new) for old, new in zip(path.table[column].to_pylist(), drawn, strict=True)],
    )
    failed = set(compare_paths(path, spoilt).failed)
    assert f"shared.{metric}" in failed and failed <= {f"shared.{metric}", "shared.touched"}


def test_missing_operations_fail() -> None:
    path = checkpoint()
    fewer = WorkloadPath(path.table.slice(0, path.table.num_rows * 9 // 10), path.info)
    assert {"counts", "span"} <= set(compare_paths(path, fewer).failed)
    assert "counts" in compare_paths(path, made([])).failed


def test_operations_that_take_longer_fail_in_makespan() -> None:
    path = checkpoint()
    longer = with_column(path, "duration_0", [10_000_000] * path.table.num_rows)
    assert "makespan" in compare_paths(path, longer).failed
    assert not {"slack", "counts", "order"} & set(compare_paths(path, longer).failed)


def test_ids_that_are_there_twice_fail() -> None:
    path = checkpoint()
    ids = np.arange(path.table.num_rows)
    ids[10:20] = 9
    found = compare_paths(path, with_column(path, "id", ids))
    assert found.values["duplicates"] == pytest.approx(10 / path.table.num_rows)
    assert "duplicates" in found.failed
