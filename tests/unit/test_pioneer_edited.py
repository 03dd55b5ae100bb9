"""Profiles whose numbers were edited: what keeps its structure, and what each edit changes."""

from __future__ import annotations

import json
import pathlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from mpiio_ext.cli import main
from mpiio_ext.pioneer.path import WorkloadPath
from mpiio_ext.pioneer.profile import Profile, characterize
from mpiio_ext.pioneer.profile.document import load, save
from mpiio_ext.pioneer.synthesis import Scale, find_violations, synthesize, with_shapes
from mpiio_ext.pioneer.synthesis.edited import edited, keeps_shapes
from support.pioneer_paths import path_of, row

Edit = Callable[[dict[str, Any]], None]


def workload() -> WorkloadPath:
    """Return two shared files in turn, written in pieces of two sizes, and a private one that is renamed at the end."""
    rows = []
    for turn in range(12):
        for file in ("a", "b"):
            rows.append(row("open", file, "shared", slack=1000 * (1 + turn)))
            rows += [
                row("pwrite", file, "shared", at=1000 * piece, size=1000 - 500 * (piece % 2), slack=10 + piece)
                for piece in range(4)
            ]
            rows.append(row("close", file, "shared", slack=5))
        own = f"p{turn % 3}.{{rank}}"
        rows += [
            row("open", own, "private", slack=7),
            row("write", own, "private", at=0, size=64, slack=3),
            row("close", own, "private", slack=2),
        ]
    rows += [row("rename", "p0.{rank}", "private", extra={"file2": "q.{rank}"})]
    return path_of(rows)


def after(edit: Edit, folder: pathlib.Path) -> Profile:
    """Return the profile of the workload after somebody has edited the file."""
    path = workload()
    save(with_shapes(characterize(path), path), folder / "profile.json")
    document = json.loads((folder / "profile.json").read_text("utf-8"))
    edit(document["classes"])
    (folder / "profile.json").write_text(json.dumps(document), "utf-8")
    return load(folder / "profile.json")


def counts(path: WorkloadPath) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*(path.words(name).tolist() for name in ("operation", "file", "layer", "owner")), strict=True))


def column(path: WorkloadPath, name: str, owner: str) -> list[int]:
    pairs = zip(path.table[name].to_pylist(), path.words("owner").tolist(), strict=True)
    return sorted(value for value, own in pairs if own == owner and value is not None)


def twice(distribution: dict[str, Any]) -> None:
    distribution["values"] = [2 * value for value in distribution["values"]]


def test_nothing_edited(tmp_path: pathlib.Path) -> None:
    assert edited(after(lambda _: None, tmp_path)) == set()


def test_slack_times_of_one_class(tmp_path: pathlib.Path) -> None:
    """Those of the other classes, and all else, stay."""
    profile = after(lambda classes: twice(classes["private"]["slack"]), tmp_path)
    assert edited(profile) == {("private", "slack")}
    assert keeps_shapes(profile)
    path, found = workload(), synthesize(profile, seed=3)
    assert counts(found) == counts(path)
    assert find_violations(found) == []
    for group in (0, 1):
        assert column(found, f"slack_{group}", "private") == [2 * each for each in column(path, "slack_0", "private")]
        assert column(found, f"slack_{group}", "shared") == column(path, "slack_0", "shared")
        assert column(found, f"size_{group}", "shared") == column(path, "size_0", "shared")


def test_sizes_keep_their_order_and_get_the_new_values(tmp_path: pathlib.Path) -> None:
    """Half of the larger ones become 4,000 bytes."""

    def edit(classes: dict[str, Any]) -> None:
        classes["shared"]["size"] = {"values": [500, 1000, 4000], "counts": [2, 1, 1]}

    found = synthesize(after(edit, tmp_path), seed=1)
    assert counts(found) == counts(workload())
    assert Counter(column(found, "size_0", "shared")) == {500: 48, 1000: 24, 4000: 24}
    rows = [
        (at, size)
        for operation, at, size in zip(
            found.words("operation"),
            found.table["offset_0"].to_pylist(),
            found.table["size_0"].to_pylist(),
            strict=True,
        )
        if operation == "pwrite"
    ]
    assert {at for at, size in rows if size == 500} == {1000, 3000}  # as before: every second piece


def test_offsets(tmp_path: pathlib.Path) -> None:
    found = synthesize(after(lambda classes: twice(classes["shared"]["offset"]), tmp_path))
    assert Counter(column(found, "offset_0", "shared")) == dict.fromkeys((0, 2000, 4000, 6000), 24)


def test_files_and_sessions(tmp_path: pathlib.Path) -> None:
    """Of the class that was edited alone."""

    def edit(classes: dict[str, Any]) -> None:
        classes["private"]["files"] *= 2

    found = synthesize(after(edit, tmp_path))
    own = characterize(found).classes
    assert own["private"].files == 6
    assert own["shared"].files == 2
    assert find_violations(found) == []

    def more(classes: dict[str, Any]) -> None:
        classes["shared"]["opened"] = {"values": [24], "counts": [2]}

    own = characterize(synthesize(after(more, tmp_path))).classes
    assert own["shared"].opened.multiset().tolist() == [24, 24]
    assert own["private"].opened.multiset().tolist() == [4, 4, 4]


def test_scales_beside_edits(tmp_path: pathlib.Path) -> None:
    profile = after(lambda classes: twice(classes["private"]["slack"]), tmp_path)
    found = synthesize(profile, mode="tuned", scale=Scale(slack=3.0))
    assert column(found, "slack_0", "private") == [6 * each for each in column(workload(), "slack_0", "private")]
    assert column(found, "slack_0", "shared") == [3 * each for each in column(workload(), "slack_0", "shared")]


@pytest.mark.parametrize("name", ["duration", "request_gap", "access_mode", "inside"])
def test_another_structure_is_drawn_independently(tmp_path: pathlib.Path, name: str) -> None:
    def edit(classes: dict[str, Any]) -> None:
        item = classes["shared"][name]
        if "values" in item:
            twice(item)
        else:
            item[next(iter(item))] += 1

    profile = after(edit, tmp_path)
    assert edited(profile) == {("shared", name)}
    assert not keeps_shapes(profile)


def test_a_class_that_was_taken_out(tmp_path: pathlib.Path) -> None:
    profile = after(lambda classes: classes.pop("private"), tmp_path)
    assert edited(profile) is None
    assert "private" not in characterize(synthesize(profile)).classes


def test_the_command_says_what_was_edited(tmp_path: pathlib.Path) -> None:
    after(lambda classes: twice(classes["shared"]["size"]), tmp_path)
    words = ["pioneer", "synthesize", str(tmp_path / "profile.json"), "-o", str(tmp_path / "out.parquet")]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    assert "shared/size edited; the structure stays" in result.output
    after(lambda classes: twice(classes["shared"]["duration"]), tmp_path)
    result = CliRunner().invoke(main, words)
    assert "shared/duration edited, which makes another structure: all characteristics are drawn" in result.output


values = st.lists(st.integers(0, 10**6), min_size=1, max_size=6, unique=True).map(sorted)


@given(values, st.integers(0, 5))
@settings(max_examples=30, deadline=None)
def test_any_sizes_are_met(tmp_path_factory: pytest.TempPathFactory, wanted: list[int], seed: int) -> None:
    """Frequencies are those of the edited distribution, to less than one operation."""

    def edit(classes: dict[str, Any]) -> None:
        classes["shared"]["size"] = {"values": wanted, "counts": [1] * len(wanted)}

    found = synthesize(after(edit, tmp_path_factory.mktemp("edited")), seed=seed)
    own = Counter(column(found, "size_1", "shared"))
    assert set(own) <= set(wanted)
    assert all(abs(own[value] - 96 / len(wanted)) < 1 + 1e-9 for value in wanted)
    assert np.all(np.diff(found.table["id"].to_numpy()) == 1)
