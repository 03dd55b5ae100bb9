"""Synthesis of workloads that remove and rename files: what is repeated, and what is refused."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from mpiio_ext.cli import main
from mpiio_ext.pioneer.path import WorkloadPath
from mpiio_ext.pioneer.profile import characterize
from mpiio_ext.pioneer.synthesis import Scale, find_violations, synthesize, with_shapes
from support.pioneer_paths import path_of, row

Row = dict[str, Any]

_MAKING, _READING = {"flags": "O_WRONLY|O_CREAT|O_TRUNC"}, {"flags": "O_RDONLY"}


def written(name: str, *, before_close: int = 1) -> list[Row]:
    writes = [row("write", name, "root", at=5 * at, size=5, groups=1) for at in range(before_close)]
    return [row("open", name, "root", extra=_MAKING, groups=1), *writes, row("close", name, "root", groups=1)]


def read(name: str) -> list[Row]:
    return [
        row("open", name, "root", extra=_READING, groups=1),
        row("read", name, "root", at=0, size=5, groups=1),
        row("close", name, "root", groups=1),
    ]


def renamed(name: str, to: str) -> Row:
    return row("rename", name, "root", extra={"file2": to}, groups=1)


def other() -> Row:
    """Return something between, so that what comes behind it is a unit of its own."""
    return row("stat", "log", "root", groups=1)


def checkpoint() -> list[Row]:
    return [*written("c.tmp"), other(), renamed("c.tmp", "c"), other(), *read("c")]


def calls(path: WorkloadPath) -> list[tuple[str, str, str | None]]:
    """Return operations with their files, and the second ones."""
    table = path.table
    rows = zip(*(table[name].to_pylist() for name in ("operation", "file", "extra")), strict=True)
    return [(operation, file, json.loads(extra or "{}").get("file2")) for operation, file, extra in rows]


def failing(path: WorkloadPath, there: set[str]) -> list[str]:
    """Return the calls that fail where these files are there at first, and no others."""
    found, there = [], set(there)
    flags = [json.loads(extra or "{}").get("flags", "") for extra in path.table["extra"].to_pylist()]
    for (operation, file, second), told in zip(calls(path), flags, strict=True):
        needs = operation in ("rename", "unlink") or (operation == "open" and "O_CREAT" not in told)
        if needs and file not in there:
            found.append(f"{operation} {file}")
            continue
        if operation == "open":
            there.add(file)
        if operation in ("rename", "unlink"):
            there.discard(file)
        if second is not None:
            there.add(second)
    return found


def without(path: WorkloadPath, name: str) -> list[tuple[str, str, str | None]]:
    return [call for call in calls(path) if call[1] != name]


@pytest.mark.parametrize("seed", range(5))
def test_a_checkpoint_that_is_renamed_is_repeated_whole(seed: int) -> None:
    path = path_of(checkpoint())
    once = without(path, "log")
    found = synthesize(path, mode="tuned", seed=seed, scale=Scale(opens=3))
    assert without(found, "log") == once * 3
    assert find_violations(found) == []
    assert failing(found, set()) == []


@pytest.mark.parametrize("seed", range(5))
def test_more_files_are_renamed_to_names_of_their_own(seed: int) -> None:
    found = synthesize(path_of(checkpoint()), mode="tuned", seed=seed, scale=Scale(files=2))
    both = without(found, "log")
    mine = [call for call in both if ".1" not in call[1]]
    assert [call for call in mine if not call[1].startswith("log")] == without(path_of(checkpoint()), "log")
    assert ("rename", "c.tmp.1", "c.1") in both
    assert failing(found, set()) == []


def test_fewer_and_more_than_were_counted() -> None:
    """Ten checkpoints in turn: a fifth of them, and half as many again."""
    path = path_of([item for _ in range(10) for item in checkpoint()])
    for factor, count in ((0.2, 2), (1.5, 15)):
        found = synthesize(path, mode="tuned", seed=2, scale=Scale(opens=factor))
        operations = found.table["operation"].to_pylist()
        assert (operations.count("rename"), operations.count("write"), operations.count("read")) == (count,) * 3
        assert failing(found, set()) == []


def test_files_that_are_removed_are_made_again() -> None:
    path = path_of([*written("scratch"), other(), row("unlink", "scratch", "root", groups=1)])
    found = synthesize(path, mode="tuned", scale=Scale(opens=2))
    assert [call[0] for call in without(found, "log")] == ["open", "write", "close", "unlink"] * 2


def test_generations() -> None:
    """The checkpoint before is kept as `old`, which the first one has not got."""
    first, second = checkpoint(), checkpoint()
    path = path_of([*first, other(), renamed("c", "old"), *second, *read("old")])
    found = synthesize(path, mode="tuned", seed=4, scale=Scale(opens=2))
    assert failing(path, set()) == failing(found, set()) == []
    assert found.table["operation"].to_pylist().count("rename") == 5  # two lives: the first, and three of the second


def test_what_cannot_be_repeated_is_refused_before_anything_is_written(tmp_path: pathlib.Path) -> None:
    path = path_of([*read("input"), other(), renamed("input", "input.done")])
    path.save(tmp_path / "path.parquet")
    arguments = [
        "pioneer",
        "synthesize",
        str(tmp_path / "path.parquet"),
        "-o",
        str(tmp_path / "out.parquet"),
        "--mode",
        "tuned",
    ]
    result = CliRunner().invoke(main, [*arguments, "--multiply", "opens=2"])
    assert result.exit_code != 0
    assert "scale of opens: input was there before the program, which removes or renames it" in result.output
    assert not (tmp_path / "out.parquet").exists()
    result = CliRunner().invoke(main, [*arguments, "--multiply", "files=2"])
    assert result.exit_code == 0, result.output
    assert ("rename", "input.1", "input.done.1") in calls(WorkloadPath.load(tmp_path / "out.parquet"))


def test_a_profile_keeps_what_is_linked(tmp_path: pathlib.Path) -> None:
    path = path_of(checkpoint())
    profile = with_shapes(characterize(path), path)
    for scale in (None, Scale(opens=2), Scale(files=3)):
        mode = "sampled" if scale is None else "tuned"
        assert calls(synthesize(profile, mode=mode, seed=1, scale=scale)) == calls(
            synthesize(path, mode=mode, seed=1, scale=scale)
        )
    path.save(tmp_path / "path.parquet")
    profile_file = str(tmp_path / "profile.json")
    made = CliRunner().invoke(main, ["pioneer", "profile", str(tmp_path / "path.parquet"), "-o", profile_file])
    assert made.exit_code == 0, made.output
    document = json.loads((tmp_path / "profile.json").read_text("utf-8"))
    item = next(item for item in document["shapes"]["archetypes"] if "linked" in item)
    at = document["shapes"]["archetypes"].index(item)
    for change, said in (
        ({"linked": [{"owner": "root", "names": []}]}, "/linked/0/names: is empty"),
        ({"linked": [{"owner": "root", "names": ["a", "b"]}]}, "/linked: not 1 names of each"),
        ({"linked": [{"owner": "nobody", "names": ["a"]}]}, '/linked/0/owner: "nobody" is not one of'),
        ({"track": item["track"] | {"members": [[0, 0, 99]]}}, "/track/members"),
        ({"track": item["track"] | {"members": [[5, 0, 1]]}}, "/track/members"),
    ):
        document["shapes"]["archetypes"][at] = item | change
        (tmp_path / "profile.json").write_text(json.dumps(document), "utf-8")
        result = CliRunner().invoke(main, ["pioneer", "check", profile_file])
        assert result.exit_code != 0 and said in result.output, result.output
        assert result.output.count(f"/{at}/linked/0/names: ") <= 1, result.output


@st.composite
def programs(draw: st.DrawFn) -> list[Row]:
    """Draw a program that makes, reads, renames and removes a few files, each call of which succeeds."""
    rows: list[Row] = []
    there: set[str] = set()
    for _ in range(draw(st.integers(1, 12))):
        name = draw(st.sampled_from("abcd"))
        if name not in there:
            rows += written(name)
            there.add(name)
            continue
        what = draw(st.sampled_from(["read", "write", "rename", "unlink", "other"]))
        if what == "read":
            rows += read(name)
        elif what == "write":
            rows += written(name, before_close=2)
        elif what == "rename":
            to = draw(st.sampled_from("abcd".replace(name, "")))
            rows.append(renamed(name, to))
            there = there - {name} | {to}
        elif what == "unlink":
            rows.append(row("unlink", name, "root", groups=1))
            there.discard(name)
        else:
            rows.append(other())
    return rows


@given(
    rows=programs(),
    seed=st.integers(0, 99),
    scale=st.sampled_from(
        [
            Scale(),
            Scale(slack=2),
            Scale(opens=2),
            Scale(opens=3.4),
            Scale(opens=0.3),
            Scale(files=2),
            Scale(files=3, opens=2),
        ]
    ),
)
@settings(max_examples=200, deadline=None)
def test_programs_whose_calls_succeed_give_such_programs(rows: list[Row], seed: int, scale: Scale) -> None:
    path = path_of(rows)
    assert failing(path, set()) == []
    try:
        found = synthesize(path, mode="tuned", seed=seed, scale=scale)
    except ValueError as error:
        assert scale.opens != 1 and "scale of opens" in str(error)
        return
    assert failing(found, set()) == []
    assert find_violations(found) == []
