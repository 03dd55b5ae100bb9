"""Results that an earlier version of schema 2 wrote are read as it read them, to the digit; their schema is one."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from mpiio_ext.bench.results.files import write_results
from mpiio_ext.bench.results.table import print_table
from mpiio_ext.common.results import Absent, Row, measure, with_ratios
from support.cbuild import ROOT

SAMPLE = Path(__file__).resolve().parents[1] / "samples" / "results-2"
DOCUMENT = json.loads((SAMPLE / "results.json").read_text(encoding="utf-8"))


def rows() -> list[Row]:
    found = []
    for record in DOCUMENT["runs"]:
        sizes = record["request_size_log2"]
        found.append(Row(**record | {"request_size_log2": sizes if sizes is None else tuple(sizes)}))
    return found


def test_written_again_they_are_the_same_files(tmp_path):
    write_results(
        tmp_path,
        environment=DOCUMENT["environment"],
        configuration=DOCUMENT["configuration"],
        rows=rows(),
        absent=[Absent(**item) for item in DOCUMENT["absent"]],
        failure=None,
    )
    assert (tmp_path / "results.json").read_bytes() == (SAMPLE / "results.json").read_bytes()
    for name in ("runs.parquet", "summary.parquet"):
        new, old = pq.read_table(tmp_path / name), pq.read_table(SAMPLE / name)
        assert new.to_pylist() == old.to_pylist()
        assert [(field.name, field.type) for field in new.schema] == [(field.name, field.type) for field in old.schema]
        assert new.schema.metadata == old.schema.metadata


def test_ratios_and_table_are_the_same():
    assert with_ratios(rows()) == rows()
    console = Console(file=io.StringIO(), width=150)
    print_table(console, measure(rows()))
    assert console.file.getvalue() == (SAMPLE / "table.txt").read_text(encoding="utf-8")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("bandwidth_total_mb_per_s: float", ["mpiio_ext/common/results.py"]),
        ("class Spread", ["mpiio_ext/common/results.py"]),
        (
            "start_new_session=True",
            [
                "mpiio_ext/bench/execution/last_words.py",
                "mpiio_ext/bench/interrupted.py",
                "mpiio_ext/common/children.py",
            ],
        ),
        ("from rich.progress", ["mpiio_ext/common/progress.py", "pioneer/cli_all.py"]),
    ],
)
def test_one_place_has_the_schema_the_children_and_the_bar(text, places):
    """Helpers that outlive their process, and the steps of a pipeline beside each other, are other ideas."""
    found = [
        path.relative_to(ROOT).as_posix()
        for folder in ("analytics", "delegates", "mpiio_ext", "partitioning", "pioneer")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if text in path.read_text(encoding="utf-8")
    ]
    assert found == places
